package deploy_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"colophon/deploy/iam"
)

// The resources that calls are made on, by the names they have in the tables below.
var arns = map[string]string{
	"content":         "arn:aws:dynamodb:eu-west-1:111122223333:table/ContentTable",
	"deliveries":      "arn:aws:dynamodb:eu-west-1:111122223333:table/DeliveryTable",
	"sweep index":     "arn:aws:dynamodb:eu-west-1:111122223333:table/DeliveryTable/index/sweep",
	"stream":          "arn:aws:dynamodb:eu-west-1:111122223333:table/DeliveryTable/stream/2026-01-01T00:00:00.000",
	"queue":           "arn:aws:sqs:eu-west-1:111122223333:Queue",
	"slow queue":      "arn:aws:sqs:eu-west-1:111122223333:SlowQueue",
	"dead letters":    "arn:aws:sqs:eu-west-1:111122223333:DeadLetterQueue",
	"on failure":      "arn:aws:sqs:eu-west-1:111122223333:OnFailureQueue",
	"key":             "arn:aws:kms:eu-west-1:111122223333:key/SealingKey",
	"logs of ":        "arn:aws:logs:eu-west-1:111122223333:log-group:/colophon/colophon/%s:log-stream:2026/11/29/[1]0123",
	"another table":   "arn:aws:dynamodb:eu-west-1:111122223333:table/DeliveryTable2",
	"another account": "arn:aws:dynamodb:eu-west-1:999999999999:table/DeliveryTable",
	"another index":   "arn:aws:dynamodb:eu-west-1:111122223333:table/DeliveryTable/index/sweeping",
	"another queue":   "arn:aws:sqs:eu-west-1:111122223333:Queue2",
	"another key":     "arn:aws:kms:eu-west-1:111122223333:key/Other",
	"a function":      "arn:aws:lambda:eu-west-1:111122223333:function:ApiFunction",
	"a role":          "arn:aws:iam::111122223333:role/ApiRole",
	"a bucket":        "arn:aws:s3:::anything/at/all",
	"everything":      "*",
}

// right is one action on one resource. A call needs one or more of them: a transaction is judged as the puts, updates,
// deletes and checks in it, a batch of messages as its single form (DynamoDB and SQS developer guides).
type right struct{ action, on string }

func (r right) String() string { return r.action + " on " + r.on }

type call struct {
	does  string
	needs []right
}

// calls are those that each function's code makes, and those that Lambda makes in its role.
var calls = map[string][]call{
	"ApiFunction": {
		{"read a project, a document, a token", []right{{"dynamodb:GetItem", "content"}}},
		{"read draft heads, releases, tokens by range", []right{{"dynamodb:Query", "content"}}},
		{"read blobs and a manifest's parts", []right{{"dynamodb:BatchGetItem", "content"}}},
		{"put a blob if it is absent, save a document, make a project", []right{{"dynamodb:PutItem", "content"}}},
		{"change a project", []right{{"dynamodb:UpdateItem", "content"}}},
		{"revoke a token, take a document away", []right{{"dynamodb:DeleteItem", "content"}}},
		{"publish in one transaction", []right{
			{"dynamodb:UpdateItem", "content"}, {"dynamodb:PutItem", "content"}, {"dynamodb:ConditionCheckItem", "content"},
			{"dynamodb:PutItem", "deliveries"},
		}},
		{"add or remove a destination in one transaction", []right{
			{"dynamodb:UpdateItem", "content"}, {"dynamodb:PutItem", "deliveries"}, {"dynamodb:UpdateItem", "deliveries"},
		}},
		{"pause, resume, redeliver, try now", []right{{"dynamodb:UpdateItem", "deliveries"}, {"dynamodb:ConditionCheckItem", "deliveries"}}},
		{"show a destination and its deliveries", []right{
			{"dynamodb:GetItem", "deliveries"}, {"dynamodb:BatchGetItem", "deliveries"}, {"dynamodb:Query", "deliveries"},
		}},
		{"seal a secret", []right{{"kms:Encrypt", "key"}}},
	},
	"OutboxStreamFunction": {
		{"read the stream (Lambda)", []right{
			{"dynamodb:DescribeStream", "stream"}, {"dynamodb:GetRecords", "stream"}, {"dynamodb:GetShardIterator", "stream"},
			{"dynamodb:ListStreams", "stream"},
		}},
		{"ring", []right{{"sqs:SendMessage", "queue"}}},
		{"put an unreadable record aside; what the mapping gives up (Lambda)", []right{{"sqs:SendMessage", "on failure"}}},
	},
	"DeliverFunction": {
		{"take messages (Lambda)", []right{
			{"sqs:ReceiveMessage", "queue"}, {"sqs:DeleteMessage", "queue"}, {"sqs:GetQueueAttributes", "queue"},
			{"sqs:ReceiveMessage", "slow queue"}, {"sqs:DeleteMessage", "slow queue"}, {"sqs:GetQueueAttributes", "slow queue"},
		}},
		{"wait by the message's own visibility", []right{
			{"sqs:ChangeMessageVisibility", "queue"}, {"sqs:ChangeMessageVisibility", "slow queue"},
		}},
		{"pass to the slow queue", []right{{"sqs:SendMessage", "slow queue"}}},
		{"set a poisonous message aside", []right{{"sqs:SendMessage", "dead letters"}}},
		{"read slot, settings and deliveries", []right{{"dynamodb:Query", "deliveries"}, {"dynamodb:GetItem", "deliveries"}}},
		{"claim; record, settle and skip in one transaction", []right{{"dynamodb:UpdateItem", "deliveries"}}},
		{"end a delivery of a destination that never was", []right{
			{"dynamodb:ConditionCheckItem", "deliveries"}, {"dynamodb:UpdateItem", "deliveries"},
		}},
		{"open a secret", []right{{"kms:Decrypt", "key"}}},
	},
	"SweepFunction": {
		{"find what is overdue", []right{{"dynamodb:Query", "sweep index"}}},
		{"move it on", []right{{"dynamodb:UpdateItem", "deliveries"}}},
		{"ring", []right{{"sqs:SendMessage", "queue"}}},
	},
}

// logging is what Lambda does in each function's role.
func logging(function string) call {
	return call{"write its log (Lambda)", []right{
		{"logs:CreateLogStream", "logs of " + names[function]}, {"logs:PutLogEvents", "logs of " + names[function]},
	}}
}

// actions are asked of each role on each resource; what no call needs must be refused.
var actions = strings.Fields(`
	dynamodb:BatchGetItem dynamodb:BatchWriteItem dynamodb:ConditionCheckItem dynamodb:CreateBackup
	dynamodb:CreateGlobalTable dynamodb:CreateTable dynamodb:DeleteBackup dynamodb:DeleteItem
	dynamodb:DeleteResourcePolicy dynamodb:DeleteTable dynamodb:DescribeContinuousBackups dynamodb:DescribeStream
	dynamodb:DescribeTable dynamodb:DescribeTimeToLive dynamodb:DisableKinesisStreamingDestination
	dynamodb:EnableKinesisStreamingDestination dynamodb:ExportTableToPointInTime dynamodb:GetItem dynamodb:GetRecords
	dynamodb:GetShardIterator dynamodb:ImportTable dynamodb:ListStreams dynamodb:ListTables dynamodb:PartiQLDelete
	dynamodb:PartiQLInsert dynamodb:PartiQLSelect dynamodb:PartiQLUpdate dynamodb:PutItem dynamodb:PutResourcePolicy
	dynamodb:Query dynamodb:RestoreTableFromBackup dynamodb:RestoreTableToPointInTime dynamodb:Scan dynamodb:TagResource
	dynamodb:UpdateContinuousBackups dynamodb:UpdateItem dynamodb:UpdateTable dynamodb:UpdateTimeToLive
	sqs:AddPermission sqs:CancelMessageMoveTask sqs:ChangeMessageVisibility sqs:CreateQueue sqs:DeleteMessage
	sqs:DeleteQueue sqs:GetQueueAttributes sqs:GetQueueUrl sqs:ListQueues sqs:PurgeQueue sqs:ReceiveMessage
	sqs:RemovePermission sqs:SendMessage sqs:SetQueueAttributes sqs:StartMessageMoveTask
	kms:CancelKeyDeletion kms:CreateAlias kms:CreateGrant kms:Decrypt kms:DeriveSharedSecret kms:DescribeKey
	kms:DisableKey kms:DisableKeyRotation kms:EnableKey kms:Encrypt kms:GenerateDataKey kms:GenerateDataKeyPair
	kms:GenerateDataKeyPairWithoutPlaintext kms:GenerateDataKeyWithoutPlaintext kms:GenerateMac kms:GetKeyPolicy
	kms:GetPublicKey kms:ListGrants kms:PutKeyPolicy kms:ReEncryptFrom kms:ReEncryptTo kms:RetireGrant kms:RevokeGrant
	kms:ScheduleKeyDeletion kms:Sign kms:UpdateAlias kms:Verify
	logs:CreateLogGroup logs:CreateLogStream logs:DeleteLogGroup logs:DeleteLogStream logs:FilterLogEvents
	logs:GetLogEvents logs:PutLogEvents logs:PutRetentionPolicy logs:PutSubscriptionFilter
	lambda:InvokeFunction lambda:UpdateFunctionCode lambda:UpdateFunctionConfiguration
	iam:PassRole iam:PutRolePolicy iam:AttachRolePolicy sts:AssumeRole s3:GetObject s3:PutObject
	secretsmanager:GetSecretValue ssm:GetParameter events:PutEvents sns:Publish cloudwatch:PutMetricData
	execute-api:Invoke
`)

// context gives the condition keys of a KMS request with an encryption context (KMS Developer Guide, "AWS KMS
// condition keys"): one key for each member, and the list of members' names.
func context(members map[string]string) map[string][]string {
	c := map[string][]string{}
	for name, value := range members {
		c["kms:EncryptionContext:"+name] = []string{value}
		c["kms:EncryptionContextKeys"] = append(c["kms:EncryptionContextKeys"], name)
	}
	return c
}

// The contexts that values are sealed under: internal/runtime/sealing makes them.
var (
	ofOneDestination = context(map[string]string{"project": "p1", "destination": "d1"}) // by older versions
	ofSecret         = context(map[string]string{"project": "p1", "destination": "d1", "purpose": "secret"})
	ofHeaders        = context(map[string]string{"project": "p1", "destination": "d1", "purpose": "headers", "origin": "https://a.example"})
)

// roles are a stack's roles, ready to be judged.
type roles struct {
	places     map[string]string // arns, where the stack is
	byFunction map[string][]iam.Policy
	key        iam.Policy
	err        error // a policy that can't be read: nothing is allowed
}

func rolesOf(s stack) roles {
	found := roles{byFunction: map[string][]iam.Policy{}, places: maps.Clone(arns)}
	if s.resources["ContentTable"] == nil { // named by the parameters
		found.places["content"] = "arn:aws:dynamodb:eu-west-1:111122223333:table/" + fmt.Sprint(restoredParameters["ContentTableName"])
		table := "arn:aws:dynamodb:eu-west-1:111122223333:table/" + fmt.Sprint(restoredParameters["DeliveryTableName"])
		found.places["deliveries"], found.places["sweep index"] = table, table+"/index/sweep"
		found.places["stream"] = fmt.Sprint(restoredParameters["DeliveryStreamArn"])
		found.places["key"] = fmt.Sprint(restoredParameters["SealingKeyArn"])
		// What the stack would have made is another's then.
		found.places["another table"], found.places["another key"] = arns["deliveries"], arns["key"]
	}
	read := func(path string, document any) iam.Policy {
		p, err := iam.Parse([]byte(text(document)))
		if err != nil {
			found.err = fmt.Errorf("%s: %w", path, err)
		}
		return p
	}
	for _, function := range functionIDs {
		inline, _ := at(s.resources, roleOf(function)+".Properties.Policies").([]any)
		for _, policy := range inline {
			found.byFunction[function] = append(found.byFunction[function], read(roleOf(function), at(policy, "PolicyDocument")))
		}
	}
	policy := at(s.resources, "SealingKey.Properties.KeyPolicy")
	if s.resources["SealingKey"] == nil { // its policy stays as the stack that made it wrote it
		policy = keyPolicy
	}
	found.key = read("SealingKey", policy)
	return found
}

// judge evaluates one right of a function's role, by its policies and, for the key, by the key's own.
func (r roles) judge(function string, wanted right, condition map[string][]string) iam.Decision {
	if r.err != nil {
		return iam.Decision(r.err.Error())
	}
	arn := r.places[wanted.on]
	if of, is := strings.CutPrefix(wanted.on, "logs of "); is {
		arn = fmt.Sprintf(arns["logs of "], of)
	}
	request := iam.Request{
		Principal: "arn:aws:iam::" + account + ":role/" + roleOf(function), Action: wanted.action, Resource: arn, Context: condition,
	}
	if wanted.on == "key" {
		return iam.EvaluateForKey(r.key, r.byFunction[function], request)
	}
	return iam.Evaluate(r.byFunction[function], request)
}

// usualContext is the one that a function's calls of the key have, which other calls do not look at.
func usualContext(function string) map[string][]string {
	if function == "DeliverFunction" {
		return ofOneDestination // what is sealed so it has to open as well
	}
	return ofSecret
}

// places are the names in arns, the log groups one by one.
func places() []string {
	var all []string
	for name := range arns {
		if name != "logs of " {
			all = append(all, name)
		}
	}
	for _, function := range []string{"api", "outbox-stream", "deliver", "sweep", "access"} {
		all = append(all, "logs of "+function)
	}
	slices.Sort(all)
	return all
}

// deployedRoles gives the roles of a stack that makes its tables and key, and of one that is given them.
func deployedRoles(t *testing.T) map[string]roles {
	t.Helper()
	deployed := map[string]roles{}
	for name, parameters := range map[string]tree{"tables of its own": nil, "tables that are given": restoredParameters} {
		s, err := settle(load(t).Transformed, parameters)
		if err != nil {
			t.Fatal(err)
		}
		deployed[name] = rolesOf(s)
	}
	return deployed
}

func TestEachRoleIsGrantedWhatItsCodeCallsAndNothingElse(t *testing.T) {
	t.Parallel()
	for name, deployed := range deployedRoles(t) {
		for _, function := range functionIDs {
			t.Run(name+"/"+names[function], func(t *testing.T) {
				t.Parallel()
				judgeEachRight(t, deployed, function)
			})
		}
	}
}

func judgeEachRight(t *testing.T, deployed roles, function string) {
	needed := map[right]string{}
	for _, c := range append(calls[function], logging(function)) {
		for _, r := range c.needs {
			needed[r] = c.does
		}
	}
	for _, action := range actions {
		for _, place := range places() {
			r := right{action, place}
			decision := deployed.judge(function, r, usualContext(function))
			does, is := needed[r]
			delete(needed, r)
			switch {
			case is && decision != iam.Allowed:
				t.Errorf("%s is refused (%s), and is needed to %s", r, decision, does)
			case !is && decision == iam.Allowed:
				t.Errorf("%s is granted, and no call needs it", r)
			}
		}
	}
	for r := range needed {
		t.Errorf("%s is needed and was not asked for: the list of actions lacks it", r)
	}
}

// I6 of docs/design.md.
func TestNoOtherRoleThanTheApisReachesContent(t *testing.T) {
	t.Parallel()
	for name, deployed := range deployedRoles(t) {
		for _, function := range []string{"OutboxStreamFunction", "DeliverFunction", "SweepFunction"} {
			for _, action := range actions {
				if decision := deployed.judge(function, right{action, "content"}, nil); decision != iam.ImplicitDeny {
					t.Errorf("%s: %s, %s on content: %s", name, names[function], action, decision)
				}
			}
		}
	}
}

func TestSealingIsBoundToOneDestination(t *testing.T) {
	t.Parallel()
	for name, deployed := range deployedRoles(t) {
		for _, found := range sealing(deployed) {
			t.Errorf("%s: %s", name, found)
		}
	}
}

// sealing gives what is wrong with who may seal and open, and for what.
func sealing(deployed roles) []string {
	var found []string
	ask := func(function, action, with string, condition map[string][]string, want iam.Decision) {
		if decision := deployed.judge(function, right{action, "key"}, condition); decision != want {
			found = append(found, fmt.Sprintf("%s, %s, %s: %s instead of %s", names[function], action, with, decision, want))
		}
	}
	members := func(names ...string) map[string][]string {
		m := map[string]string{}
		for _, name := range names {
			m[name] = "x"
		}
		return context(m)
	}
	for function, action := range map[string]string{"ApiFunction": "kms:Encrypt", "DeliverFunction": "kms:Decrypt"} {
		ask(function, action, "a secret", ofSecret, iam.Allowed)
		ask(function, action, "headers", ofHeaders, iam.Allowed)
		ask(function, action, "without an encryption context: the hole of ForAllValues", nil, iam.ImplicitDeny)
		ask(function, action, "with an empty list of context keys", map[string][]string{"kms:EncryptionContextKeys": {}}, iam.ImplicitDeny)
		ask(function, action, "with the project alone", members("project"), iam.ImplicitDeny)
		ask(function, action, "with the destination alone", members("destination"), iam.ImplicitDeny)
		ask(function, action, "with foreign keys alone", members("table", "purpose"), iam.ImplicitDeny)
		ask(function, action, "with a purpose that is not known", members("project", "destination", "purpose"), iam.ImplicitDeny)
		ask(function, action, "with keys in other letters", members("Project", "destination"), iam.ImplicitDeny)
		for _, name := range []string{"project", "destination", "purpose", "origin"} {
			for what, of := range map[string]map[string][]string{"a secret": ofSecret, "headers": ofHeaders} {
				if _, is := of["kms:EncryptionContext:"+name]; !is {
					continue
				}
				without := map[string]string{}
				for key, values := range of {
					if member, is := strings.CutPrefix(key, "kms:EncryptionContext:"); is && member != name {
						without[member] = values[0]
					}
				}
				if what == "headers" && name == "origin" || name != "purpose" {
					ask(function, action, what+" without "+name, context(without), iam.ImplicitDeny)
				}
				without[name], without["table"] = "x", "x"
				ask(function, action, what+" with a foreign key", context(without), iam.ImplicitDeny)
			}
		}
		ask(function, action, "a secret that is bound to an origin", context(map[string]string{
			"project": "p1", "destination": "d1", "purpose": "secret", "origin": "https://a.example",
		}), iam.ImplicitDeny)
		ask(function, action, "headers that are bound to none", context(map[string]string{
			"project": "p1", "destination": "d1", "purpose": "headers",
		}), iam.ImplicitDeny)
	}
	ask("ApiFunction", "kms:Encrypt", "under the context of older versions", ofOneDestination, iam.ImplicitDeny)
	ask("DeliverFunction", "kms:Decrypt", "what older versions sealed", ofOneDestination, iam.Allowed)
	for what, of := range map[string]map[string][]string{"what older versions sealed": ofOneDestination, "a secret": ofSecret, "headers": ofHeaders} {
		ask("ApiFunction", "kms:Decrypt", what, of, iam.ImplicitDeny)
		ask("DeliverFunction", "kms:Encrypt", what, of, iam.ImplicitDeny)
		for _, action := range []string{"kms:ReEncryptFrom", "kms:ReEncryptTo"} { // the operator's
			ask("ApiFunction", action, what, of, iam.ImplicitDeny)
			ask("DeliverFunction", action, what, of, iam.ImplicitDeny)
		}
		for _, function := range []string{"OutboxStreamFunction", "SweepFunction"} {
			ask(function, "kms:Encrypt", what, of, iam.ImplicitDeny)
			ask(function, "kms:Decrypt", what, of, iam.ImplicitDeny)
		}
	}
	return found
}

// where are the attributes of SETTINGS that say where a destination's requests go and what is sealed for it.
var where = strings.Fields("url secret previous previousUntil headers headerNames seal olderSecrets secretFingerprint")

// settingsWritten gives which roles besides the api's may update where requests go or what is sealed.
func settingsWritten(deployed roles) []string {
	var found []string
	update := right{"dynamodb:UpdateItem", "deliveries"}
	for _, function := range []string{"DeliverFunction", "SweepFunction"} {
		for _, attribute := range where {
			named := map[string][]string{"dynamodb:Attributes": {"pk", "sk", "version", attribute}}
			if decision := deployed.judge(function, update, named); decision != iam.ExplicitDeny {
				found = append(found, fmt.Sprintf("%s may update %s: %s", names[function], attribute, decision))
			}
		}
		for _, attributes := range [][]string{{"pk", "sk", "holder", "version", "state"}, {"pk", "sk", "sweepAt", "sweeps"}, {"pk", "sk"}} {
			named := map[string][]string{"dynamodb:Attributes": attributes}
			if decision := deployed.judge(function, update, named); decision != iam.Allowed {
				found = append(found, fmt.Sprintf("%s may not update %v: %s", names[function], attributes, decision))
			}
		}
	}
	return found
}

func TestDeliverAndSweepCannotChangeWhereRequestsGoOrWhatIsSealed(t *testing.T) {
	t.Parallel()
	for name, deployed := range deployedRoles(t) {
		for _, found := range settingsWritten(deployed) {
			t.Errorf("%s: %s", name, found)
		}
	}
}

// ungranted gives the calls that the roles do not allow.
func ungranted(deployed roles) []string {
	var found []string
	for _, function := range functionIDs {
		for _, c := range append(calls[function], logging(function)) {
			for _, r := range c.needs {
				if decision := deployed.judge(function, r, usualContext(function)); decision != iam.Allowed {
					found = append(found, fmt.Sprintf("%s can't %s: %s (%s)", names[function], c.does, r, decision))
				}
			}
		}
	}
	return found
}
