package deploy_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A change to the template, and the rule that must notice it.
type change struct {
	does  string
	path  string // in the transformed template, from its root; Written. leads into the written one
	to    any    // nil takes the property away
	finds string // the rule's sentence
}

func changes() []change {
	const resources = "Resources."
	of := func(id string) string { return resources + id + ".Properties." }
	const together = "the stack makes tables and key, with names of CloudFormation's, or is given all of them"
	var list []change
	add := func(does, path string, to any, finds string) {
		list = append(list, change{does, path, to, finds})
	}
	for _, m := range []string{"OutboxStreamFunctionOutbox", "DeliverFunctionWork", "DeliverFunctionSlowWork"} {
		add("no partial failures from "+m, of(m)+"FunctionResponseTypes", nil, "each mapping reports partial failures")
		add("a window for "+m, of(m)+"MaximumBatchingWindowInSeconds", 5, "batches are 100 from the stream, 10 from the queue and 1 from the slow queue, without a window")
		add("another batch size for "+m, of(m)+"BatchSize", 2, "batches are 100 from the stream, 10 from the queue and 1 from the slow queue, without a window")
		add("without the mapping "+m, resources+m, nil, "the three mappings join the stream, the queue and the slow queue to their functions")
	}
	stream := of("OutboxStreamFunctionOutbox")
	add("only what comes after the deployment", stream+"StartingPosition", "LATEST", "the stream is read from its beginning")
	add("no bisection", stream+"BisectBatchOnFunctionError", nil, "a stream batch that fails is cut in two")
	add("bisection off", stream+"BisectBatchOnFunctionError", false, "a stream batch that fails is cut in two")
	add("no age bound", stream+"MaximumRecordAgeInSeconds", nil, "a stream record is given up after six hours")
	add("an endless age bound", stream+"MaximumRecordAgeInSeconds", -1, "a stream record is given up after six hours")
	add("no bound on tries", stream+"MaximumRetryAttempts", nil, "a stream record is given up after some tries")
	add("endless tries", stream+"MaximumRetryAttempts", -1, "a stream record is given up after some tries")
	add("no on-failure queue", stream+"DestinationConfig", nil, "what the stream mapping gives up goes to the on-failure queue")
	add("the dead-letter queue for on-failure", stream+"DestinationConfig.OnFailure.Destination", tree{"Fn::GetAtt": []any{"DeadLetterQueue", "Arn"}}, "what the stream mapping gives up goes to the on-failure queue")
	add("no stream filter", stream+"FilterCriteria", nil, "the stream mapping lets through what rings, and nothing else")
	add("a filter on another type", stream+"FilterCriteria.Filters.0.Pattern", `{"dynamodb":{"NewImage":{"ring":{"S":[{"exists":true}]}}}}`, "the stream mapping lets through what rings, and nothing else")
	add("a second filter", stream+"FilterCriteria.Filters", []any{tree{"Pattern": "{}"}, tree{"Pattern": "{}"}}, "the stream mapping lets through what rings, and nothing else")
	add("a filter on the queue", of("DeliverFunctionWork")+"FilterCriteria", tree{"Filters": []any{tree{"Pattern": `{"body":{"v":[1]}}`}}}, "a queue's mapping has no filter, for it would delete what it passes over")
	add("a filter on the slow queue", of("DeliverFunctionSlowWork")+"FilterCriteria", tree{"Filters": []any{tree{"Pattern": `{"body":{"v":[1]}}`}}}, "a queue's mapping has no filter, for it would delete what it passes over")
	add("unbounded workers", of("DeliverFunctionWork")+"ScalingConfig", nil, "the queues' mappings run 5 and 2 at once, or what their parameters say")
	add("unbounded slow workers", of("DeliverFunctionSlowWork")+"ScalingConfig", nil, "the queues' mappings run 5 and 2 at once, or what their parameters say")
	add("a fixed bound", of("DeliverFunctionWork")+"ScalingConfig.MaximumConcurrency", 5, "the queues' mappings run 5 and 2 at once, or what their parameters say")
	add("a stream knob that turns nothing", stream+"ParallelizationFactor", 1, "a stream shard is read by one function at once, or by as many as its parameter says")

	for _, q := range []string{"Queue", "SlowQueue"} {
		add("visibility below the timeout of "+q, of(q)+"VisibilityTimeout", 19, "a message stays hidden for as long as the deliver function may run")
		add("no visibility of "+q, of(q)+"VisibilityTimeout", nil, "a message stays hidden for as long as the deliver function may run")
		add("no redrive of "+q, of(q)+"RedrivePolicy", nil, "both queues set aside to the dead-letter queue what was received a hundred times")
		add("a hasty redrive of "+q, of(q)+"RedrivePolicy.maxReceiveCount", 3, "both queues set aside to the dead-letter queue what was received a hundred times")
		add("redrive of "+q+" elsewhere", of(q)+"RedrivePolicy.deadLetterTargetArn", tree{"Fn::GetAtt": []any{"OnFailureQueue", "Arn"}}, "both queues set aside to the dead-letter queue what was received a hundred times")
	}
	for _, q := range []string{"Queue", "SlowQueue", "DeadLetterQueue", "OnFailureQueue"} {
		add("the service's own retention for "+q, of(q)+"MessageRetentionPeriod", nil, "messages are kept for 4 days, and for 14 where they were set aside")
		add("no encryption of "+q, of(q)+"SqsManagedSseEnabled", nil, "queues are encrypted")
	}
	add("a timeout above the visibility", of("DeliverFunction")+"Timeout", 31, "a message stays hidden for as long as the deliver function may run")

	for _, table := range []string{"ContentTable", "DeliveryTable"} {
		add("no expiry in "+table, of(table)+"TimeToLiveSpecification", nil, "items expire by expiresAt")
		add("expiry by another attribute in "+table, of(table)+"TimeToLiveSpecification.AttributeName", "ttl", "items expire by expiresAt")
		add("expiry off in "+table, of(table)+"TimeToLiveSpecification.Enabled", false, "items expire by expiresAt")
		add("no restore of "+table, of(table)+"PointInTimeRecoverySpecification", nil, "tables can be restored to any second")
		add("restore off for "+table, of(table)+"PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled", false, "tables can be restored to any second")
		add("no encryption of "+table, of(table)+"SSESpecification", nil, "tables are encrypted")
		add("no protection of "+table, of(table)+"DeletionProtectionEnabled", nil, "tables are protected against deletion in production, and elsewhere not")
		add("protection of "+table+" everywhere", of(table)+"DeletionProtectionEnabled", true, "tables are protected against deletion in production, and elsewhere not")
		add("no key for "+table, of(table)+"KeySchema.1", nil, "the two tables have the keys pk and sk, both texts, and are paid by request")
		add("no billing mode for "+table, of(table)+"BillingMode", nil, "the two tables have the keys pk and sk, both texts, and are paid by request")
		add("a fixed name for "+table, of(table)+"TableName", "colophon-tables", together)
		add("a default for "+table+"Name", "Parameters."+table+"Name.Default", "colophon-tables", together)
		add("any characters for "+table+"Name", "Parameters."+table+"Name.AllowedPattern", nil, together)
	}
	for _, id := range []string{"ContentTable", "DeliveryTable", "SealingKey"} {
		for _, policy := range []string{"DeletionPolicy", "UpdateReplacePolicy"} {
			const outlive = "tables and key outlive the stack, in every environment"
			add("no "+policy+" of "+id, resources+id+"."+policy, nil, outlive)
			add(policy+" of "+id+" by a condition", resources+id+"."+policy, tree{"Fn::If": []any{"IsProduction", "Retain", "Delete"}}, outlive)
		}
		add(id+" made always", resources+id+".Condition", nil, together)
	}
	const loses = "no update loses the tables or the key of a stack"
	for _, id := range []string{"ContentTable", "DeliveryTable"} {
		add("another name for "+id, of(id)+"TableName", "colophon-tables", loses)
		add("another key for "+id, of(id)+"KeySchema.1.AttributeName", "sort", loses)
		add("another condition for "+id, resources+id+".Condition", "HasAlarmTopic", "the template settles")
	}
	add("another condition for all", "Conditions.MakesTablesAndKey", tree{"Fn::Not": []any{tree{"Fn::Equals": []any{tree{"Ref": "ContentTableName"}, ""}}}}, loses)
	add("a key of another kind", of("SealingKey")+"KeySpec", "RSA_2048", loses)
	add("a second transform", "Written.Transform", []any{"AWS::LanguageExtensions", "AWS::Serverless-2016-10-31"}, "tables and key outlive the stack, in every environment")
	add("no rule on names", "Rules.TablesAndKeyAreNamedTogether", nil, "tables and key are named together or not at all")
	for i, name := range []string{"ContentTableName", "DeliveryTableName", "DeliveryStreamArn", "SealingKeyArn"} {
		one := strconv.Itoa(i)
		add("a table made beside a given "+name, "Conditions.MakesTablesAndKey.Fn::And."+one, nil, "tables and key are named together or not at all")
		add("all but "+name+" given", "Rules.TablesAndKeyAreNamedTogether.Assertions.0.Assert.Fn::Or.1.Fn::And."+one, nil, "tables and key are named together or not at all")
		add(name+" given alone", "Rules.TablesAndKeyAreNamedTogether.Assertions.0.Assert.Fn::Or.0.Fn::And."+one, nil, "tables and key are named together or not at all")
	}
	add("no sweep index", of("DeliveryTable")+"GlobalSecondaryIndexes", nil, "the delivery table has the sweep index, of keys alone, and no table has another")
	add("a full sweep index", of("DeliveryTable")+"GlobalSecondaryIndexes.0.Projection.ProjectionType", "ALL", "the delivery table has the sweep index, of keys alone, and no table has another")
	add("a sweep index in no order", of("DeliveryTable")+"GlobalSecondaryIndexes.0.KeySchema.1", nil, "the delivery table has the sweep index, of keys alone, and no table has another")
	add("shards as texts", of("DeliveryTable")+"AttributeDefinitions.2.AttributeType", "S", "the two tables have the keys pk and sk, both texts, and are paid by request")
	add("no stream", of("DeliveryTable")+"StreamSpecification", nil, "the delivery table streams new images, the content table nothing")
	add("keys in the stream", of("DeliveryTable")+"StreamSpecification.StreamViewType", "KEYS_ONLY", "the delivery table streams new images, the content table nothing")
	add("a stream of content", of("ContentTable")+"StreamSpecification", tree{"StreamViewType": "NEW_IMAGE"}, "the delivery table streams new images, the content table nothing")
	add("a key that is never turned", of("SealingKey")+"EnableKeyRotation", nil, "the sealing key is turned each year, and its policy hands the say to the account alone")
	add("a key for everybody", of("SealingKey")+"KeyPolicy.Statement.0.Principal.AWS", "*", "the sealing key is turned each year, and its policy hands the say to the account alone")

	for function, seconds := range map[string]int{"ApiFunction": 29, "DeliverFunction": 19, "OutboxStreamFunction": 3, "SweepFunction": 30} {
		add("another timeout of "+function, of(function)+"Timeout", seconds, "the functions end in the protocol's times")
	}
	for _, function := range functionIDs {
		add("no JSON from "+function, of(function)+"LoggingConfig.LogFormat", nil, "each function logs JSON to its own group, and each group forgets")
		add("another's log group for "+function, of(function)+"LoggingConfig.LogGroup", tree{"Ref": "AccessLogs"}, "each function logs JSON to its own group, and each group forgets")
		add("logs for ever in "+logsOf(function), of(logsOf(function))+"RetentionInDays", nil, "each function logs JSON to its own group, and each group forgets")
		add("tracing of "+function, of(function)+"TracingConfig", tree{"Mode": "Active"}, "each function is a small binary of its own on the processor that is asked for")
		add("a fixed processor of "+function, of(function)+"Architectures.0", "arm64", "each function is a small binary of its own on the processor that is asked for")
		add("a broad role of "+function, of(function)+"Role", tree{"Fn::Sub": "arn:aws:iam::${AWS::AccountId}:role/Administrator"}, "each function is a small binary of its own on the processor that is asked for")
		add("nothing told to "+function, of(function)+"Environment", nil, "each function is told what it needs, and no more")
		add("the access log named to "+function, of(function)+"Environment.Variables.EVERYTHING", tree{"Ref": "AccessLogs"}, "each function is told what it needs, and no more")

		role := of(roleOf(function))
		statements := role + "Policies.0.PolicyDocument.Statement."
		add("every resource for "+roleOf(function), statements+"0.Resource", "*", "no function's role holds a wildcard but in its own log group's streams")
		add("every action for "+roleOf(function), statements+"0.Action", "dynamodb:*", "no function's role holds a wildcard but in its own log group's streams")
		add("a pattern of resources for "+roleOf(function), statements+"0.Resource", tree{"Fn::Sub": "arn:aws:sqs:${AWS::Region}:${AWS::AccountId}:?ueue"}, "no function's role holds a wildcard but in its own log group's streams")
		add("a managed policy for "+roleOf(function), role+"ManagedPolicyArns", []any{"arn:aws:iam::aws:policy/AmazonDynamoDBFullAccess"}, "each function has a role of its own, and SAM adds neither a role nor a policy")
		add("a broad policy template for "+function, resources+function+"Policy", tree{"Type": "AWS::IAM::Policy", "Properties": tree{"PolicyName": "crud"}}, "each function has a role of its own, and SAM adds neither a role nor a policy")
		add("anybody behind "+roleOf(function), role+"AssumeRolePolicyDocument.Statement.0.Principal", "*", "each function has a role of its own, and SAM adds neither a role nor a policy")
	}
	add("no slow queue named to deliver", of("DeliverFunction")+"Environment.Variables.SLOW_QUEUE_URL", nil, "each function starts with what it is told, in every environment")
	add("logs for ever of requests", of("AccessLogs")+"RetentionInDays", nil, "each function logs JSON to its own group, and each group forgets")
	add("a concurrency that is always reserved", of("ApiFunction")+"ReservedConcurrentExecutions", 100, "the api's concurrency is reserved only where that is asked for")
	add("a concurrency that never is", of("ApiFunction")+"ReservedConcurrentExecutions", nil, "the api's concurrency is reserved only where that is asked for")
	add("no rule on loopback", "Rules", nil, "production refuses loopback receivers, other environments don't")
	add("a rule for staging alone", "Rules.ProductionCallsPublicAddressesOnly.RuleCondition", tree{"Fn::Equals": []any{tree{"Ref": "Environment"}, "staging"}}, "production refuses loopback receivers, other environments don't")
	add("a rule everywhere", "Rules.ProductionCallsPublicAddressesOnly.RuleCondition", nil, "production refuses loopback receivers, other environments don't")
	add("loopback by default", "Parameters.AllowLoopbackReceivers.Default", "true", "production refuses loopback receivers, other environments don't")
	add("no sweeps", resources+"SweepFunctionEachMinute", nil, "the template settles")
	add("rare sweeps", of("SweepFunctionEachMinute")+"ScheduleExpression", "rate(1 hour)", "the sweeper runs each minute, and a failed sweep is not repeated")
	add("sweeps repeated", of("SweepFunctionEventInvokeConfig")+"MaximumRetryAttempts", 2, "the sweeper runs each minute, and a failed sweep is not repeated")
	add("a resource of SAM's", resources+"ApiFunctionRole", tree{"Type": "AWS::IAM::Role"}, "the stack consists of these resources")
	for _, function := range functionIDs {
		add("no rights for "+function, of(roleOf(function))+"Policies.0.PolicyDocument.Statement.0", nil, "each role is granted the calls that its function makes")
		add("another action for "+function, of(roleOf(function))+"Policies.0.PolicyDocument.Statement.0.Action", "dynamodb:Scan", "each role is granted the calls that its function makes")
	}
	const bound = "what is sealed is bound to one destination"
	for role, statements := range map[string][]string{"ApiRole": {"2", "3"}, "DeliverRole": {"3", "4", "5"}} {
		for _, statement := range statements {
			seal := of(role) + "Policies.0.PolicyDocument.Statement." + statement
			add("sealing by anything in "+role+" "+statement, seal+".Condition", nil, bound)
			add("sealing with any keys besides in "+role+" "+statement, seal+".Condition.ForAllValues:StringEquals", nil, bound)
			add("sealing and opening in "+role+" "+statement, seal+".Action", []any{"kms:Encrypt", "kms:Decrypt"}, bound)
		}
	}
	add("opening without a context", of("DeliverRole")+"Policies.0.PolicyDocument.Statement.3.Condition.Null", nil, bound)
	add("opening with a project alone", of("DeliverRole")+"Policies.0.PolicyDocument.Statement.3.Condition.Null.kms:EncryptionContext:destination", nil, bound)
	add("sealing a secret of any project", of("ApiRole")+"Policies.0.PolicyDocument.Statement.2.Condition.Null.kms:EncryptionContext:project", nil, bound)
	add("sealing headers for any origin", of("ApiRole")+"Policies.0.PolicyDocument.Statement.3.Condition.Null.kms:EncryptionContext:origin", nil, bound)
	add("sealing for any purpose", of("ApiRole")+"Policies.0.PolicyDocument.Statement.2.Condition.StringEquals", nil, bound)
	const settings = "deliver and sweep leave destinations' settings alone"
	for role, statement := range map[string]string{"DeliverRole": "6", "SweepRole": "2"} {
		leave := of(role) + "Policies.0.PolicyDocument.Statement." + statement
		add("settings written by "+role, leave+".Effect", "Allow", settings)
		add("addresses written by "+role, leave+".Condition.ForAnyValue:StringEquals.dynamodb:Attributes.0", "other", settings)
	}
	add("anybody calls the api", of("ApiFunctionRootPermissionv1")+"SourceArn", nil, "the API alone may call the api function, the schedule alone the sweeper")

	add("no throttling", of("Apiv1Stage")+"MethodSettings", nil, "the API is throttled, and neither its requests nor its answers are logged")
	add("bodies in logs", of("Apiv1Stage")+"MethodSettings.0.DataTraceEnabled", true, "the API is throttled, and neither its requests nor its answers are logged")
	const inAccessLog = "each request is a line of JSON in the access log, of what no caller can choose"
	for _, variable := range []string{
		"$context.path", "$context.identity.userAgent", "$context.requestId", "$context.xrayTraceId", "$context.domainName",
		"$context.authorizer.token", "$context.error.message", "$context.protocol", "$context.requestOverride.path.x",
	} {
		add(variable+" in the access log", of("Apiv1Stage")+"AccessLogSetting.Format", `{"id":"$context.extendedRequestId","x":"`+variable+`"}`, inAccessLog)
	}
	add("an access log that ends a line early", of("Apiv1Stage")+"AccessLogSetting.Format", "{\"id\":\n\"$context.extendedRequestId\"}", inAccessLog)
	add("an access log without quotes", of("Apiv1Stage")+"AccessLogSetting.Format", `{"id":$context.extendedRequestId}`, inAccessLog)
	add("no access log", of("Apiv1Stage")+"AccessLogSetting", nil, inAccessLog)
	add("tokens in the access log", of("Apiv1Stage")+"AccessLogSetting.Format", `{"requestId":"r","method":"m","path":"p","status":"s","error":"e","milliseconds":"m","token":"$context.authorizer.token"}`, inAccessLog)
	add("an id that changes", of("Api")+"Tags", nil, "the local stack gives the API its stable id")
	add("any TLS", of("Api")+"Body.x-amazon-apigateway-security-policy", nil, "every path and method reaches the api function, by one stage and TLS 1.2 or newer")
	add("plain HTTP in links", "Parameters.PublicAddress.AllowedPattern", "(https?://.+)?", "the public address is https, or http on loopback")
	add("one path alone", of("Api")+"Body.paths./{proxy+}", nil, "every path and method reaches the api function, by one stage and TLS 1.2 or newer")
	const responses = "Body.x-amazon-apigateway-gateway-responses."
	add("no answer of ours to a throttled request", of("Api")+responses+"THROTTLED", nil, "what the gateway answers by itself is a problem document in our own words")
	add("the gateway's own words", of("Api")+responses+"DEFAULT_4XX.responseTemplates.application/json", `{"type":"about:blank","title":"$context.error.message","requestId":"$context.requestId"}`, "what the gateway answers by itself is a problem document in our own words")
	add("the account's role from under others", resources+"ApiGatewayLoggingRole.DeletionPolicy", nil, "the gateway's logging role is the account's, made only where that is asked for, and outlives the stack")
	const inOrder = "the account gets its logging role after the API is there and before the stage, which logs"
	add("a stage before the account's role", of("Apiv1Stage")+"Variables", nil, inOrder)
	add("a logging role for an account without an API", resources+"ApiGatewayAccount.DependsOn", nil, inOrder)
	add("an API that waits for the account", resources+"Api.DependsOn", "ApiGatewayAccount", inOrder)
	add("a fixed name for the access log", of("AccessLogs")+"LogGroupName", "/colophon/access", "each function logs JSON to its own group, and each group forgets")

	for _, alarm := range []string{"DeadLettersAlarm", "OnFailureAlarm", "StreamAgeAlarm", "FirstNotificationsAlarm", "OldestDueAlarm", "SweeperErrorsAlarm", "OurFaultsAlarm", "TableFailuresAlarm", "ClockAlarm"} {
		add("without "+alarm, resources+alarm, nil, "the nine alarms watch what they are named for")
		add("another metric for "+alarm, of(alarm)+"MetricName", "Invocations", "the nine alarms watch what they are named for")
		add("silence of "+alarm, of(alarm)+"AlarmActions", nil, "alarms and their ends are told to the topic, where there is one")
		add("no end of "+alarm, of(alarm)+"OKActions", nil, "alarms and their ends are told to the topic, where there is one")
	}
	for _, output := range []string{"Environment", "ApiUrl", "ApiId", "QueueUrl", "SealingKeyArn", "SweepFunctionName"} {
		add("without the output "+output, "Outputs."+output, nil, "the outputs say where everything is")
	}
	return list
}

func TestEachChangeToTheTemplateIsNoticed(t *testing.T) {
	t.Parallel()
	whole := load(t)
	exercised := map[string]bool{"the template settles": true}
	for _, c := range changes() {
		exercised[c.finds] = true
		changed := with(t, whole, strings.Split(c.path, "."), c.to)
		found := findings(changed)
		if _, noticed := found[c.finds]; !noticed {
			t.Errorf("%s (%s) is not noticed by %q; found: %v", c.does, c.path, c.finds, slices.Sorted(maps.Keys(found)))
		}
	}
	for _, r := range rules {
		if !exercised[r.sentence] {
			t.Errorf("no change breaks the rule %q", r.sentence)
		}
	}
	if found := findings(whole); len(found) > 0 {
		t.Errorf("a change leaked into the next: %v", found)
	}
}

// unheld are the parts that no rule needs to hold, each with the reason.
var unheld = map[string]string{
	"Sid":                                                         "a name",
	"Properties.Description":                                      "words for the console",
	"Function.Properties.Tags":                                    "SAM's mark",
	"Apiv1Stage.Properties.Tags":                                  "the API's tag, of use on the API alone",
	"Code.S3Bucket":                                               "where packaging puts what it made",
	"Api.Properties.Body.info":                                    "the API's name in the console",
	"Api.Properties.Body.openapi":                                 "SAM writes it",
	"x-amazon-apigateway-any-method.responses":                    "empty where SAM writes it",
	"Api.Properties.Parameters":                                   "the endpoint's kind a second time, by SAM",
	"SweepFunctionEachMinute.Properties.Targets.0.Id":             "SAM writes it",
	"SweepFunctionEventInvokeConfig.Metadata":                     "the function's, a second time, by SAM",
	"SweepFunctionEventInvokeConfig.Properties.DestinationConfig": "empty where SAM writes it",
}

func isHeld(path []string) bool {
	for part := range unheld {
		if strings.Contains("."+strings.Join(path, ".")+".", part+".") {
			return false
		}
	}
	return true
}

func TestNoPartOfAResourceCanBeTakenAwayUnnoticed(t *testing.T) {
	t.Parallel()
	whole := load(t)
	taken := 0
	for _, path := range parts(section(whole.Transformed, "Resources"), []string{"Resources"}) {
		if !isHeld(path) {
			continue
		}
		taken++
		changed := with(t, whole, path, nil)
		if strings.HasSuffix(path[1], "Role") { // as if its author had not written it: SAM passes roles on as they are
			changed.Written = with(t, changed, append([]string{"Written"}, path...), nil).Written
		}
		if found := findings(changed); len(found) == 0 {
			t.Errorf("%s was taken away, and no rule noticed", strings.Join(path, "."))
		}
	}
	if taken < 500 {
		t.Errorf("only %d parts were taken away: the walk does not reach them", taken)
	}
}

// parts gives the path of each member and element below a value.
func parts(v any, here []string) [][]string {
	var all [][]string
	below := func(step string, value any) {
		path := append(slices.Clone(here), step)
		all = append(append(all, path), parts(value, path)...)
	}
	switch v := v.(type) {
	case tree:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			below(name, v[name])
		}
	case []any:
		for i, element := range v {
			below(strconv.Itoa(i), element)
		}
	}
	return all
}

// with gives a template in which the part at a path is another, or is gone; the original stays as it is. The path begins
// in the transformed template, or with "Written" in the written one.
func with(t *testing.T, original template, path []string, to any) template {
	t.Helper()
	where, rest := &original.Transformed, path
	if path[0] == "Written" {
		where, rest = &original.Written, path[1:]
	}
	changed, is := replaced(*where, rest, to)
	if !is {
		t.Fatalf("there is nothing at %v", path)
	}
	*where = changed.(tree)
	return original
}

// replaced copies the values along the path and shares all others. It is false where nothing stands at the path, unless
// the last step names a new member.
func replaced(v any, path []string, to any) (any, bool) {
	if len(path) == 0 {
		return to, true
	}
	step, rest := path[0], path[1:]
	switch v := v.(type) {
	case tree:
		old, has := v[step]
		if !has && (len(rest) > 0 || to == nil) {
			return nil, false
		}
		member, is := replaced(old, rest, to)
		changed := maps.Clone(v)
		changed[step] = member
		if len(rest) == 0 && to == nil {
			delete(changed, step)
		}
		return changed, is
	case []any:
		i, err := strconv.Atoi(step)
		if err != nil || i >= len(v) {
			return nil, false
		}
		changed := slices.Clone(v)
		if len(rest) == 0 && to == nil {
			return slices.Delete(changed, i, i+1), true
		}
		var is bool
		changed[i], is = replaced(v[i], rest, to)
		return changed, is
	}
	return nil, false
}
