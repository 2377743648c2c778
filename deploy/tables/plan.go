package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/go-faster/yaml"
)

// target is the stack that is deployed.
type target struct{ Stack, Region, Profile string }

var stackName = regexp.MustCompile(`^[a-zA-Z][-a-zA-Z0-9]{0,127}$`)

// choose gives the stack that sam would deploy with its settings. The stack that
// was given comes before the settings', the settings' region before the one given:
// that is sam's order for what make has from its command line and the environment.
func choose(settings string, given target) (target, error) {
	type parameters struct {
		Stack   string `toml:"stack_name"`
		Region  string `toml:"region"`
		Profile string `toml:"profile"`
	}
	var read struct {
		Default map[string]struct {
			Parameters parameters `toml:"parameters"`
		} `toml:"default"`
	}
	if _, err := toml.Decode(settings, &read); err != nil {
		return target{}, errors.New("it is not TOML")
	}
	deploy, global := read.Default["deploy"].Parameters, read.Default["global"].Parameters
	to := target{
		Stack:   first(given.Stack, deploy.Stack, global.Stack),
		Region:  first(deploy.Region, global.Region, given.Region),
		Profile: first(deploy.Profile, global.Profile),
	}
	if !stackName.MatchString(to.Stack) {
		return target{}, fmt.Errorf("%q is no name of a stack: `make deploy STACK_NAME=…` names one", to.Stack)
	}
	if to.Region == "" {
		return target{}, errors.New("no region is known: set AWS_REGION")
	}
	return to, nil
}

func first(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// arguments make sam deploy this stack.
func (t target) arguments() []string {
	return []string{"--stack-name", t.Stack, "--region", t.Region}
}

// given are the parameters that name tables and key which are there already.
var given = []string{"ContentTableName", "DeliveryTableName", "DeliveryStreamArn", "SealingKeyArn"}

// plan is what a deployment is held to, and the line that says so.
type plan struct {
	hold map[string]string // parameters by name: the value that each has to keep
	says string
}

var errPolicyFirst = errors.New("its tables are its own and would be deleted, because its Environment is not production: " +
	"follow docs/operations.md, \"From a stack whose tables have names\", which deploys the policy first")

// decide gives what the deployment of a stack is held to; found are its parameters, nil where there is none.
func decide(to target, found map[string]string, move bool) (plan, error) {
	where := fmt.Sprintf("Stack %s in %s", to.Stack, to.Region)
	if found == nil {
		return plan{says: where + " is not there yet: it gets new tables, unless you name some. Another stack: make deploy STACK_NAME=…"}, nil
	}
	hold := map[string]string{}
	var missing []string
	for _, name := range given {
		if value := found[name]; value != "" {
			hold[name] = value
		} else {
			missing = append(missing, name)
		}
	}
	if len(hold) == 0 {
		return plan{says: where + " has tables and a key of its own and keeps them while you leave " + strings.Join(given, ", ") + " empty. Another stack: make deploy STACK_NAME=…"}, nil
	}
	// Before there was DeliveryStreamArn, a stack's tables had names and were its own.
	if _, isNow := found["DeliveryStreamArn"]; !isNow && found["Environment"] != "production" {
		return plan{}, fmt.Errorf("stack %s: %w", to.Stack, errPolicyFirst)
	}
	var says strings.Builder
	if move {
		fmt.Fprintf(&says, "%s may move to other tables with this deployment (MOVE_TABLES=yes). Enter keeps today's; none of these may be empty:", where)
	} else {
		fmt.Fprintf(&says, "%s runs on tables that it was given, and this deployment takes no others:", where)
	}
	for _, name := range given {
		if value, is := hold[name]; is {
			fmt.Fprintf(&says, "\n  %s=%s", name, value)
		}
	}
	if len(missing) > 0 {
		fmt.Fprintf(&says, "\nGive %s too, or the deployment is refused:", strings.Join(missing, " and "))
		if slices.Contains(missing, "DeliveryStreamArn") {
			fmt.Fprintf(&says, "\n  DeliveryStreamArn: aws dynamodb describe-table --region %s --table-name %s --query Table.LatestStreamArn", to.Region, first(found["DeliveryTableName"], "…"))
		}
		if slices.Contains(missing, "SealingKeyArn") {
			fmt.Fprintf(&says, "\n  SealingKeyArn: aws cloudformation describe-stacks --region %s --stack-name %s --query \"Stacks[0].Outputs[?OutputKey=='SealingKeyArn'].OutputValue\"", to.Region, to.Stack)
		}
	}
	if !move {
		says.WriteString("\nTo move to other tables on purpose (a second restore): make deploy MOVE_TABLES=yes. Another stack: make deploy STACK_NAME=…, not at sam's prompt.")
	}
	return plan{hold: hold, says: says.String()}, nil
}

var errForm = errors.New("the template's parameters are not written as sam writes them")

// narrow lets the template's parameters take the values that are held alone; where
// the stack may move, any but an empty one. The text is edited and not written
// anew, so that the rest of it stays as sam wrote it.
func narrow(template []byte, hold map[string]string, move bool) ([]byte, error) {
	lines := strings.SplitAfter(string(template), "\n")
	for _, name := range given {
		value, isHeld := hold[name]
		if !isHeld {
			continue
		}
		start := slices.Index(lines, "  "+name+":\n")
		if start < 0 {
			return nil, errForm
		}
		end := start + 1
		for end < len(lines) && strings.HasPrefix(lines[end], "    ") {
			end++
		}
		quoted := strconv.Quote(value)
		block := []string{lines[start], "    Default: " + quoted + "\n"}
		if move {
			block = append(block, "    MinLength: 1\n")
		} else {
			block = append(block, "    AllowedValues:\n", "    - "+quoted+"\n")
		}
		lines = slices.Replace(lines, start, end, append(block, without(lines[start+1:end], "Default", "AllowedValues", "MinLength")...)...)
	}
	narrowed := []byte(strings.Join(lines, ""))
	return narrowed, check(narrowed, hold)
}

var property = regexp.MustCompile(`^    ([A-Za-z]+):`)

// without leaves out the lines of a parameter's properties, those that continue them among them.
func without(lines []string, properties ...string) (kept []string) {
	isOut := false
	for _, line := range lines {
		if name := property.FindStringSubmatch(line); name != nil {
			isOut = slices.Contains(properties, name[1])
		}
		if !isOut {
			kept = append(kept, line)
		}
	}
	return kept
}

// check reads the narrowed template back, whatever form it had.
func check(template []byte, hold map[string]string) error {
	var read struct {
		Parameters map[string]struct {
			Type    string `yaml:"Type"`
			Default string `yaml:"Default"`
		} `yaml:"Parameters"`
	}
	if err := yaml.Unmarshal(template, &read); err != nil {
		return errForm
	}
	for name, value := range hold {
		if p := read.Parameters[name]; p.Default != value || p.Type != "String" {
			return errForm
		}
	}
	return nil
}
