package deploy_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

const (
	region  = "eu-west-1"
	account = "111122223333"
)

var pseudoParameters = tree{
	"AWS::Region": region, "AWS::AccountId": account, "AWS::Partition": "aws", "AWS::URLSuffix": "amazonaws.com",
	"AWS::StackName": "colophon",
}

// stack is a transformed template with every reference and condition settled for one set of parameters:
// resources by logical id, those left out that a condition leaves out.
type stack struct {
	resources tree
	outputs   tree
	// refused holds the descriptions of the rules' assertions that these parameters do not meet.
	refused []string
}

// settle does what CloudFormation does between a template and its resources. Physical names are the logical ids.
func settle(transformed tree, parameters tree) (stack, error) {
	s, err := newSettler(transformed, parameters)
	if err != nil {
		return stack{}, err
	}
	var done stack
	if done.refused, err = s.refused(); err != nil {
		return stack{}, err
	}
	if done.resources, err = s.resources(slices.Collect(maps.Keys(section(transformed, "Resources")))...); err != nil {
		return stack{}, err
	}
	outputs, err := s.value(section(transformed, "Outputs"))
	if err != nil {
		return stack{}, fmt.Errorf("outputs: %w", err)
	}
	done.outputs = outputs.(tree)
	return done, nil
}

// newSettler takes a template and the parameters whose defaults do not count.
func newSettler(transformed, parameters tree) (settler, error) {
	s := settler{template: transformed, parameters: maps.Clone(pseudoParameters)}
	for name, p := range section(transformed, "Parameters") {
		if byDefault, has := p.(tree)["Default"]; has {
			s.parameters[name] = byDefault
		}
	}
	for name, value := range parameters {
		if _, known := s.parameters[name]; !known {
			return settler{}, fmt.Errorf("there is no parameter %q", name)
		}
		s.parameters[name] = value
	}
	return s, nil
}

// refused gives the descriptions of all rules' assertions that the parameters do not meet.
func (s settler) refused() ([]string, error) {
	var all []string
	for name, rule := range section(s.template, "Rules") {
		refused, err := s.refusedBy(rule.(tree))
		if err != nil {
			return nil, fmt.Errorf("rule %s: %w", name, err)
		}
		all = append(all, refused...)
	}
	return all, nil
}

// resources settles some, and leaves out those that a condition leaves out.
func (s settler) resources(ids ...string) (tree, error) {
	settled := tree{}
	for _, id := range ids {
		r, is := section(s.template, "Resources")[id].(tree)
		if !is {
			continue
		}
		if condition, has := r["Condition"].(string); has {
			holds, err := s.condition(condition)
			if err != nil {
				return nil, fmt.Errorf("resource %s: %w", id, err)
			}
			if !holds {
				continue
			}
		}
		value, err := s.value(r)
		if err != nil {
			return nil, fmt.Errorf("resource %s: %w", id, err)
		}
		settled[id] = value
	}
	return settled, nil
}

func section(template tree, name string) tree {
	s, _ := template[name].(tree)
	return s
}

type settler struct {
	template   tree
	parameters tree
}

// noValue is what AWS::NoValue leaves behind: the property is left out.
type noValue struct{}

func (s settler) value(v any) (any, error) {
	switch v := v.(type) {
	case []any:
		list := []any{}
		for _, element := range v {
			settled, err := s.value(element)
			if err != nil {
				return nil, err
			}
			if _, left := settled.(noValue); !left {
				list = append(list, settled)
			}
		}
		return list, nil
	case tree:
		if len(v) == 1 {
			for name, argument := range v {
				if name == "Ref" || strings.HasPrefix(name, "Fn::") {
					return s.function(name, argument)
				}
			}
		}
		settled := tree{}
		for name, member := range v {
			value, err := s.value(member)
			if err != nil {
				return nil, err
			}
			if _, left := value.(noValue); !left {
				settled[name] = value
			}
		}
		return settled, nil
	default:
		return v, nil
	}
}

func (s settler) function(name string, argument any) (any, error) {
	switch name {
	case "Ref":
		id, _ := argument.(string)
		return s.ref(id)
	case "Fn::GetAtt":
		switch a := argument.(type) {
		case string:
			id, attribute, _ := strings.Cut(a, ".")
			return s.attribute(id, attribute)
		case []any:
			if len(a) == 2 {
				return s.attribute(fmt.Sprint(a[0]), fmt.Sprint(a[1]))
			}
		}
	case "Fn::Sub":
		switch a := argument.(type) {
		case string:
			return s.substitute(a, nil)
		case []any:
			if len(a) == 2 {
				own, _ := a[1].(tree)
				return s.substitute(fmt.Sprint(a[0]), own)
			}
		}
	case "Fn::If":
		if a, ok := argument.([]any); ok && len(a) == 3 {
			holds, err := s.condition(fmt.Sprint(a[0]))
			if err != nil {
				return nil, err
			}
			if holds {
				return s.value(a[1])
			}
			return s.value(a[2])
		}
	}
	return nil, fmt.Errorf("function %s of %v is not understood", name, argument)
}

func (s settler) ref(id string) (any, error) {
	if id == "AWS::NoValue" {
		return noValue{}, nil
	}
	if value, is := s.parameters[id]; is {
		return value, nil
	}
	kind, properties, err := s.resource(id)
	if err != nil {
		return nil, err
	}
	switch kind {
	case "AWS::SQS::Queue":
		return fmt.Sprintf("https://sqs.%s.amazonaws.com/%s/%s", region, account, id), nil
	case "AWS::Logs::LogGroup":
		if name, has := properties["LogGroupName"]; has {
			return s.value(name)
		}
	}
	return id, nil
}

func (s settler) attribute(id, attribute string) (any, error) {
	kind, _, err := s.resource(id)
	if err != nil {
		return nil, err
	}
	name, err := s.ref(id)
	if err != nil {
		return nil, err
	}
	arn := func(service, resource string) (any, error) {
		return fmt.Sprintf("arn:aws:%s:%s:%s:%s", service, region, account, resource), nil
	}
	switch kind + "." + attribute {
	case "AWS::DynamoDB::Table.Arn":
		return arn("dynamodb", fmt.Sprintf("table/%v", name))
	case "AWS::DynamoDB::Table.StreamArn":
		return arn("dynamodb", fmt.Sprintf("table/%v/stream/2026-01-01T00:00:00.000", name))
	case "AWS::SQS::Queue.Arn":
		return arn("sqs", id)
	case "AWS::SQS::Queue.QueueName":
		return id, nil
	case "AWS::KMS::Key.Arn":
		return arn("kms", "key/"+id)
	case "AWS::Logs::LogGroup.Arn": // CloudFormation's own value ends so: the group's streams
		return arn("logs", fmt.Sprintf("log-group:%v:*", name))
	case "AWS::IAM::Role.Arn":
		return fmt.Sprintf("arn:aws:iam::%s:role/%s", account, id), nil
	case "AWS::Lambda::Function.Arn":
		return arn("lambda", "function:"+id)
	case "AWS::Events::Rule.Arn":
		return arn("events", "rule/"+id)
	}
	return nil, fmt.Errorf("attribute %s of %s %s is not understood", attribute, kind, id)
}

func (s settler) resource(id string) (kind string, properties tree, err error) {
	r, ok := section(s.template, "Resources")[id].(tree)
	if !ok {
		return "", nil, fmt.Errorf("there is no resource %q", id)
	}
	if condition, has := r["Condition"].(string); has {
		holds, err := s.condition(condition)
		if err != nil {
			return "", nil, err
		}
		if !holds {
			return "", nil, fmt.Errorf("resource %q is left out by its condition, and is referred to", id)
		}
	}
	kind, _ = r["Type"].(string)
	return kind, section(r, "Properties"), nil
}

// substitute puts values into a text, those that the function names itself before all others.
func (s settler) substitute(text string, own tree) (any, error) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "${")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		name, after, found := strings.Cut(rest, "}")
		if !found {
			return nil, fmt.Errorf("${ is not closed in %q", text)
		}
		var value any
		var err error
		if given, is := own[name]; is {
			value, err = s.value(given)
		} else if id, attribute, dotted := strings.Cut(name, "."); dotted {
			value, err = s.attribute(id, attribute)
		} else {
			value, err = s.ref(name)
		}
		if err != nil {
			return nil, err
		}
		fmt.Fprint(&out, value)
		text = after
	}
}

func (s settler) condition(name string) (bool, error) {
	c, is := section(s.template, "Conditions")[name]
	if !is {
		return false, fmt.Errorf("there is no condition %q", name)
	}
	return s.holds(c)
}

func (s settler) holds(c any) (bool, error) {
	test, _ := c.(tree)
	if name, is := test["Condition"].(string); is {
		return s.condition(name)
	}
	if a, is := test["Fn::Equals"].([]any); is && len(a) == 2 {
		left, err := s.value(a[0])
		if err != nil {
			return false, err
		}
		right, err := s.value(a[1])
		return fmt.Sprint(left) == fmt.Sprint(right), err // a parameter is text, whatever its type
	}
	if a, is := test["Fn::Not"].([]any); is && len(a) == 1 {
		holds, err := s.holds(a[0])
		return !holds, err
	}
	for function, whenAny := range map[string]bool{"Fn::And": false, "Fn::Or": true} {
		a, is := test[function].([]any)
		if !is || len(a) < 2 || len(a) > 10 { // CloudFormation takes two to ten
			continue
		}
		result := !whenAny
		for _, part := range a {
			holds, err := s.holds(part)
			if err != nil {
				return false, err
			}
			if holds == whenAny {
				result = whenAny
			}
		}
		return result, nil
	}
	return false, fmt.Errorf("condition %v is not understood", c)
}

// refusedBy gives the descriptions of a rule's assertions that do not hold.
func (s settler) refusedBy(rule tree) ([]string, error) {
	if condition, has := rule["RuleCondition"]; has {
		if holds, err := s.holds(condition); err != nil || !holds {
			return nil, err
		}
	}
	var refused []string
	assertions, _ := rule["Assertions"].([]any)
	for _, a := range assertions {
		assertion, _ := a.(tree)
		holds, err := s.holds(assertion["Assert"])
		if err != nil {
			return nil, err
		}
		if !holds {
			refused = append(refused, fmt.Sprint(assertion["AssertDescription"]))
		}
	}
	return refused, nil
}

// at walks a path such as "Queue.Properties.RedrivePolicy.maxReceiveCount" or "Filters.0.Pattern"; nil where it ends early.
func at(v any, path string) any {
	for _, step := range strings.Split(path, ".") {
		switch in := v.(type) {
		case tree:
			v = in[step]
		case []any:
			i := slices.Index([]string{"0", "1", "2", "3", "4", "5", "6", "7"}, step)
			if i < 0 || i >= len(in) {
				return nil
			}
			v = in[i]
		default:
			return nil
		}
	}
	return v
}

// text is a value's JSON, by which values are compared.
func text(v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(out)
}

func TestSettlingDoesAsCloudFormationDoes(t *testing.T) {
	t.Parallel()
	var template tree
	document := `{
	  "Parameters": {"Stage": {"Default": "one"}, "Count": {"Default": 0}},
	  "Conditions": {"IsOne": {"Fn::Equals": [{"Ref": "Stage"}, "one"]}, "IsOther": {"Fn::Not": [{"Condition": "IsOne"}]},
	                 "Counts": {"Fn::Not": [{"Fn::Equals": [{"Ref": "Count"}, "0"]}]},
	                 "Both": {"Fn::And": [{"Condition": "IsOne"}, {"Condition": "Counts"}]}, "Either": {"Fn::Or": [{"Condition": "IsOne"}, {"Condition": "Counts"}]}},
	  "Rules": {"R": {"RuleCondition": {"Fn::Equals": [{"Ref": "Stage"}, "two"]},
	                  "Assertions": [{"Assert": {"Fn::Equals": [{"Ref": "Count"}, "1"]}, "AssertDescription": "count one"}]}},
	  "Resources": {
	    "Q": {"Type": "AWS::SQS::Queue", "Properties": {"Tag": {"Fn::Sub": ["${Stage}-${AWS::Region}-${Q.Arn}-${Own}", {"Own": {"Ref": "Count"}}]},
	          "Left": {"Fn::If": ["IsOne", {"Ref": "AWS::NoValue"}, "there"]}, "List": [{"Ref": "AWS::NoValue"}, {"Ref": "Q"}]}},
	    "Sometimes": {"Type": "T", "Condition": "IsOther"}, "WithBoth": {"Type": "T", "Condition": "Both"}, "WithEither": {"Type": "T", "Condition": "Either"}
	  },
	  "Outputs": {"Group": {"Value": {"Fn::GetAtt": ["Q", "Arn"]}}}
	}`
	if err := json.Unmarshal([]byte(document), &template); err != nil {
		t.Fatal(err)
	}
	one, err := settle(template, nil)
	if err != nil {
		t.Fatal(err)
	}
	two, err := settle(template, tree{"Stage": "two"})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		sentence string
		got      any
		want     string
	}{
		{"a text's references are put in", at(one.resources, "Q.Properties.Tag"), `"one-eu-west-1-arn:aws:sqs:eu-west-1:111122223333:Q-0"`},
		{"no value leaves the property out", at(one.resources, "Q.Properties"), `{"List":["https://sqs.eu-west-1.amazonaws.com/111122223333/Q"],"Tag":"one-eu-west-1-arn:aws:sqs:eu-west-1:111122223333:Q-0"}`},
		{"the other branch of a condition", at(two.resources, "Q.Properties.Left"), `"there"`},
		{"a resource is left out by its condition", at(one.resources, "Sometimes"), `null`},
		{"a resource is there by its condition", at(two.resources, "Sometimes.Type"), `"T"`},
		{"not both of two conditions", at(one.resources, "WithBoth"), `null`},
		{"one of two conditions", at(one.resources, "WithEither.Type"), `"T"`},
		{"neither of two conditions", at(two.resources, "WithEither"), `null`},
		{"a rule whose condition does not hold refuses nothing", one.refused, `null`},
		{"a rule refuses with its description", two.refused, `["count one"]`},
		{"an output's attribute", at(one.outputs, "Group.Value"), `"arn:aws:sqs:eu-west-1:111122223333:Q"`},
	} {
		if got := text(row.got); got != row.want {
			t.Errorf("%s: got %s, want %s", row.sentence, got, row.want)
		}
	}
	for _, broken := range []string{
		`{"Resources": {"A": {"Properties": {"P": {"Ref": "Nobody"}}}}}`,
		`{"Resources": {"A": {"Properties": {"P": {"Fn::Cidr": []}}}}}`,
		`{"Resources": {"A": {"Properties": {"P": {"Fn::GetAtt": "A.Colour"}}}}}`,
		`{"Resources": {"A": {"Condition": "Nothing"}}}`,
		`{"Parameters": {"P": {"Default": "1"}}, "Conditions": {"C": {"Fn::Equals": [{"Ref": "P"}, "2"]}},
		  "Resources": {"A": {"Type": "T", "Condition": "C"}, "B": {"Properties": {"P": {"Ref": "A"}}}}}`,
		`{"Conditions": {"C": {"Fn::And": [{"Fn::Equals": ["a", "a"]}]}}, "Resources": {"A": {"Condition": "C"}}}`,
		`{"Conditions": {"C": {"Fn::Mystery": []}}, "Resources": {"A": {"Condition": "C"}}}`,
	} {
		var template tree
		if err := json.Unmarshal([]byte(broken), &template); err != nil {
			t.Fatal(err)
		}
		if _, err := settle(template, nil); err == nil {
			t.Errorf("%s settles, and should not", broken)
		}
	}
}
