package iam

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Policy is a policy document that was parsed and is understood in full.
type Policy struct {
	statements []statement
}

type statement struct {
	deny       bool
	principals []string // of a key's policy: ARNs, account ids or "*"; services are left out, they call for nobody here
	actions    patterns
	resources  patterns
	conditions []condition
}

// patterns matches by a list of wildcards, or, for NotAction and NotResource, by none of the list.
type patterns struct {
	list []string
	not  bool
}

type condition struct {
	test     operator
	set      setOperator
	ifExists bool
	key      string // lower case: condition keys have no case
	values   []string
}

type setOperator string

const (
	oneValue     setOperator = ""
	forAllValues setOperator = "ForAllValues"
	forAnyValue  setOperator = "ForAnyValue"
)

// Parse reads a policy document, in JSON. It fails on anything that it could not evaluate.
// Grammar: IAM User Guide, "Grammar of the IAM JSON policy language".
func Parse(document []byte) (Policy, error) {
	var raw struct {
		Version   string
		ID        string `json:"Id"`
		Statement oneOrMore[rawStatement]
	}
	if err := strictly(document, &raw); err != nil {
		return Policy{}, fmt.Errorf("reading a policy: %w", err)
	}
	if raw.Version != "2012-10-17" {
		return Policy{}, fmt.Errorf("reading a policy: version %q is not 2012-10-17", raw.Version)
	}
	var p Policy
	for i, r := range raw.Statement {
		s, err := r.understand()
		if err != nil {
			return Policy{}, fmt.Errorf("reading statement %d (%q): %w", i, r.Sid, err)
		}
		p.statements = append(p.statements, s)
	}
	return p, nil
}

type rawStatement struct {
	Sid         string
	Effect      string
	Principal   principals
	Action      oneOrMore[string]
	NotAction   oneOrMore[string]
	Resource    oneOrMore[string]
	NotResource oneOrMore[string]
	Condition   map[string]map[string]oneOrMore[conditionValue]
}

func (r rawStatement) understand() (statement, error) {
	s := statement{principals: r.Principal, deny: r.Effect == "Deny"}
	if !s.deny && r.Effect != "Allow" {
		return s, fmt.Errorf("effect %q is neither Allow nor Deny", r.Effect)
	}
	var err error
	if s.actions, err = either(r.Action, r.NotAction); err != nil {
		return s, fmt.Errorf("actions: %w", err)
	}
	if s.resources, err = either(r.Resource, r.NotResource); err != nil {
		return s, fmt.Errorf("resources: %w", err)
	}
	for name, keys := range r.Condition {
		if len(keys) == 0 {
			return s, fmt.Errorf("condition %q has no key", name)
		}
		for key, values := range keys {
			c, err := parseCondition(name, key, values)
			if err != nil {
				return s, err
			}
			s.conditions = append(s.conditions, c)
		}
	}
	return s, nil
}

func either(list, notList []string) (patterns, error) {
	if (len(list) == 0) == (len(notList) == 0) {
		return patterns{}, errors.New("exactly one of the list and its Not form must be there")
	}
	p := patterns{list: list}
	if len(notList) > 0 {
		p = patterns{list: notList, not: true}
	}
	for _, v := range p.list {
		if strings.Contains(v, "${") {
			return patterns{}, fmt.Errorf("policy variables are not understood: %q", v)
		}
	}
	return p, nil
}

func parseCondition(name, key string, values []conditionValue) (condition, error) {
	c := condition{key: strings.ToLower(key)}
	base := name
	if set, rest, found := strings.Cut(name, ":"); found {
		c.set, base = setOperator(set), rest
		if c.set != forAllValues && c.set != forAnyValue {
			return c, fmt.Errorf("set operator %q is not understood", set)
		}
	}
	if without, found := strings.CutSuffix(base, "IfExists"); found {
		c.ifExists, base = true, without
	}
	test, known := operators[base]
	if !known {
		return c, fmt.Errorf("condition operator %q is not understood", name)
	}
	c.test = test
	if base == null && (c.set != oneValue || c.ifExists) {
		return c, fmt.Errorf("%q: Null takes neither a set operator nor IfExists", name)
	}
	if len(values) == 0 {
		return c, fmt.Errorf("%q on %q has no value", name, key)
	}
	for _, v := range values {
		if strings.Contains(string(v), "${") {
			return c, fmt.Errorf("policy variables are not understood: %q", v)
		}
		if (base == null || base == boolean) && v != "true" && v != "false" {
			return c, fmt.Errorf("%q takes true or false, not %q", name, v)
		}
		c.values = append(c.values, string(v))
	}
	return c, nil
}

// oneOrMore is a JSON value or a list of such values.
type oneOrMore[T any] []T

func (m *oneOrMore[T]) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		return strictly(data, (*[]T)(m))
	}
	var one T
	if err := strictly(data, &one); err != nil {
		return err
	}
	*m = oneOrMore[T]{one}
	return nil
}

// conditionValue is a string, or a boolean or number that stands for its text.
type conditionValue string

func (v *conditionValue) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte(`"`)) {
		return json.Unmarshal(data, (*string)(v))
	}
	var anything any
	if err := json.Unmarshal(data, &anything); err != nil {
		return err
	}
	switch anything.(type) {
	case bool, float64:
		*v = conditionValue(data)
		return nil
	}
	return fmt.Errorf("a condition's value can't be %s", data)
}

type principals []string

func (p *principals) UnmarshalJSON(data []byte) error {
	if string(data) == `"*"` {
		*p = principals{"*"}
		return nil
	}
	var byKind map[string]oneOrMore[string]
	if err := json.Unmarshal(data, &byKind); err != nil {
		return err
	}
	for kind, list := range byKind {
		switch kind {
		case "AWS":
			*p = append(*p, list...)
		case "Service":
		default:
			return fmt.Errorf("principals of kind %q are not understood", kind)
		}
	}
	return nil
}

// strictly decodes one JSON value and refuses members that into has no field for, and anything after the value.
func strictly(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON value")
	}
	return nil
}
