package deploy_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// fate is what an update of a stack does to a resource, as CloudFormation documents it ("Update behaviors of stack
// resources", "DeletionPolicy attribute", "UpdateReplacePolicy attribute").
type fate string

const (
	made            fate = "made"
	stays           fate = "stays"
	changed         fate = "is changed in place"
	replacedAndKept fate = "is replaced, the old one kept outside the stack"
	replacedAndGone fate = "is replaced, the old one deleted"
	leavesAndIsKept fate = "leaves the stack and is kept"
	leavesAndIsGone fate = "leaves the stack and is deleted"
	retain               = "Retain"
)

// replacing are the properties whose change makes CloudFormation replace a resource ("Update requires: Replacement" in
// each resource's reference), for the types that hold something or are reached by an address.
var replacing = map[string][]string{
	"AWS::DynamoDB::Table":            {"TableName", "KeySchema", "ImportSourceSpecification"},
	"AWS::KMS::Key":                   {"KeySpec", "KeyUsage", "MultiRegion", "Origin"},
	"AWS::ApiGateway::RestApi":        {},
	"AWS::ApiGateway::Stage":          {"RestApiId", "StageName"},
	"AWS::SQS::Queue":                 {"QueueName", "FifoQueue"},
	"AWS::Lambda::EventSourceMapping": {"EventSourceArn", "StartingPosition", "SelfManagedEventSource"},
	"AWS::Lambda::Function":           {"FunctionName", "PackageType"},
	"AWS::Logs::LogGroup":             {"LogGroupName"},
}

// update gives the fate of each resource whose type is in replacing.
func update(before, after tree) map[string]fate {
	fates := map[string]fate{}
	for id, resource := range after {
		if _, was := before[id]; !was && replacing[kindOf(resource)] != nil {
			fates[id] = made
		}
	}
	for id, was := range before {
		properties, judged := replacing[kindOf(was)]
		if !judged {
			continue
		}
		is, there := after[id]
		switch {
		case !there && at(was, "DeletionPolicy") == retain:
			fates[id] = leavesAndIsKept
		case !there:
			fates[id] = leavesAndIsGone
		case kindOf(is) != kindOf(was) || slices.ContainsFunc(properties, func(p string) bool {
			return text(at(is, "Properties."+p)) != text(at(was, "Properties."+p))
		}):
			fates[id] = replacedAndGone
			if at(is, "UpdateReplacePolicy") == retain {
				fates[id] = replacedAndKept
			}
		case text(at(is, "Properties")) != text(at(was, "Properties")):
			fates[id] = changed
		default:
			fates[id] = stays
		}
	}
	return fates
}

func kindOf(resource any) string {
	kind, _ := at(resource, "Type").(string)
	return kind
}

func settled(t *testing.T, of template, parameters tree) stack {
	t.Helper()
	s, err := settle(of.Transformed, parameters)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// kept are the resources that hold what nothing can make again.
var kept = []string{"ContentTable", "DeliveryTable", "SealingKey"}

// wayUp are the parameters of docs/operations.md, "From a stack whose tables have names".
var wayUp = tree{
	"ContentTableName": "colophon-content", "DeliveryTableName": "colophon-delivery",
	"DeliveryStreamArn": "arn:aws:dynamodb:eu-west-1:111122223333:table/colophon-delivery/stream/2026-01-01T00:00:00.000",
	"SealingKeyArn":     "arn:aws:kms:eu-west-1:111122223333:key/SealingKey",
}

func TestTheWayUpFromNamedTablesKeepsTablesKeyAndAddress(t *testing.T) {
	t.Parallel()
	former, now := loadFormer(t), load(t)
	staging := tree{"Environment": "staging"}
	with := func(more tree) tree {
		all := maps.Clone(wayUp)
		maps.Copy(all, more)
		return all
	}
	for _, row := range []struct {
		does          string
		before, after stack
		want          fate // of tables and key
	}{
		{"production, with the four parameters", settled(t, former, nil), settled(t, now, wayUp), leavesAndIsKept},
		{"staging, with the four parameters at once: the trap", settled(t, former, staging), settled(t, now, with(staging)), leavesAndIsGone},
		{"staging, the policy first", settled(t, former, staging), settled(t, former, nil), changed},
		{"staging, then the four parameters", settled(t, former, nil), settled(t, now, with(staging)), leavesAndIsKept},
		{"later updates", settled(t, now, wayUp), settled(t, now, with(tree{"DeliverConcurrency": float64(50)})), ""},
		{"un-named again: the other trap", settled(t, now, wayUp), settled(t, now, nil), made},
	} {
		fates := update(row.before.resources, row.after.resources)
		for _, id := range kept {
			got := fates[id]
			if id == "SealingKey" && row.want == changed {
				got = changed // the key has nothing that depends on the environment but its policy
			}
			if got != row.want {
				t.Errorf("%s: %s %s, want %q", row.does, id, got, row.want)
			}
		}
		for _, id := range []string{"Api", "Apiv1Stage", "Queue", "SlowQueue", "DeadLetterQueue"} {
			if fates[id] != stays && fates[id] != changed {
				t.Errorf("%s: %s %s", row.does, id, fates[id])
			}
		}
	}
	// Without the parameters the stack goes on with empty tables, while the old ones lie outside it.
	fates := update(settled(t, former, nil).resources, settled(t, now, nil).resources)
	for _, id := range []string{"ContentTable", "DeliveryTable"} {
		if fates[id] != replacedAndKept {
			t.Errorf("without the parameters: %s %s", id, fates[id])
		}
	}
}

func TestARestoreByParametersMovesNeitherAddressNorQueues(t *testing.T) {
	t.Parallel()
	now := load(t)
	fates := update(settled(t, now, nil).resources, settled(t, now, restoredParameters).resources)
	want := map[string]fate{
		"ContentTable": leavesAndIsKept, "DeliveryTable": leavesAndIsKept, "SealingKey": leavesAndIsKept,
		"OutboxStreamFunctionOutbox": replacedAndGone, // a mapping has one source: the new one reads the new stream from its beginning
	}
	for id, got := range fates {
		expected, special := want[id]
		if special && got != expected || !special && got != stays && got != changed {
			t.Errorf("%s %s", id, got)
		}
	}
	if len(fates) < 15 {
		t.Errorf("only %d resources were judged", len(fates))
	}
}

// recorded is what stacks out there have: see testdata/recorded.json.
func recorded() (tree, error) {
	content, err := os.ReadFile(filepath.Join("testdata", "recorded.json"))
	if err != nil {
		return nil, err
	}
	var resources tree
	return resources, json.Unmarshal(content, &resources)
}
