package deploy_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"colophon/internal/delivery"
	"colophon/internal/outbox"
	"colophon/internal/runtime"
	"colophon/internal/store"
)

// rule is one property that the template must have. Its sentence is what a finding says.
type rule struct {
	sentence string
	check    func(*view)
}

// view is a template settled as its users settle it, and what a rule finds in it.
type view struct {
	template
	production stack // the parameters' defaults
	local      stack // the local stack's parameters
	tuned      stack // each optional knob turned
	restored   stack // production, with tables and a key that were there before
	findings   []string
}

var (
	localParameters = tree{"Environment": "local", "AllowLoopbackReceivers": "true", "CreateApiGatewayLoggingRole": "false"}
	tunedParameters = tree{
		"Environment": "staging", "Architecture": "x86_64",
		"PublicAddress": "https://colophon.example", "AlarmTopicArn": "arn:aws:sns:eu-west-1:111122223333:pages",
		"MetricsNamespace": "Tuned", "LogRetentionDays": float64(7),
		"ApiRateLimit": float64(11), "ApiBurstLimit": float64(12), "ApiReservedConcurrency": float64(13),
		"PublishBurst": float64(17), "PublishesPerMinute": float64(18), "ProjectContentLimit": float64(19),
		"StreamParallelization": float64(5), "DeliverConcurrency": float64(15), "SlowDeliverConcurrency": float64(16),
	}
	// restoredParameters name tables and a key that the stack did not make.
	restoredParameters = tree{
		"ContentTableName": "restored-content", "DeliveryTableName": "restored-delivery",
		"DeliveryStreamArn": "arn:aws:dynamodb:eu-west-1:111122223333:table/restored-delivery/stream/2026-02-02T00:00:00.000",
		"SealingKeyArn":     "arn:aws:kms:eu-west-1:111122223333:key/former",
	}
)

// findings gives the sentences of the rules that a template does not keep, each with what was found.
func findings(t template) map[string][]string {
	v := view{template: t}
	for name, settled := range map[string]struct {
		into       *stack
		parameters tree
	}{
		"production": {&v.production, nil}, "local": {&v.local, localParameters}, "tuned": {&v.tuned, tunedParameters},
		"restored": {&v.restored, restoredParameters},
	} {
		var err error
		if *settled.into, err = settle(t.Transformed, settled.parameters); err != nil {
			return map[string][]string{"the template settles": {name + ": " + err.Error()}}
		}
	}
	found := map[string][]string{}
	for _, r := range rules {
		v.findings = nil
		r.check(&v)
		if len(v.findings) > 0 {
			found[r.sentence] = v.findings
		}
	}
	return found
}

func (v *view) find(format string, values ...any) {
	v.findings = append(v.findings, fmt.Sprintf(format, values...))
}

// is compares what stands at a path of production's resources.
func (v *view) is(path string, want any) {
	v.same("production: "+path, at(v.production.resources, path), want)
}

func (v *view) same(what string, got, want any) {
	if text(got) != text(want) {
		v.find("%s is %s, not %s", what, text(got), text(want))
	}
}

// ofType gives production's resources of a type, by logical id.
func (v *view) ofType(kind string) map[string]tree {
	found := map[string]tree{}
	for id, r := range v.production.resources {
		if r := r.(tree); r["Type"] == kind {
			found[id] = section(r, "Properties")
		}
	}
	return found
}

func (v *view) hasExactly(kind string, ids ...string) {
	found := slices.Sorted(maps.Keys(v.ofType(kind)))
	slices.Sort(ids)
	v.same("the resources of type "+kind, found, ids)
}

func (v *view) seconds(path string) time.Duration {
	n, is := at(v.production.resources, path).(float64)
	if !is {
		v.find("%s is no number", path)
	}
	return time.Duration(n) * time.Second
}

const (
	streamMapping = "OutboxStreamFunctionOutbox.Properties."
	queueMapping  = "DeliverFunctionWork.Properties."
	slowMapping   = "DeliverFunctionSlowWork.Properties."
)

var rules = []rule{
	{"the stack consists of these resources", func(v *view) {
		found := map[string]any{}
		for id, r := range v.production.resources {
			if strings.HasPrefix(id, "ApiDeployment") {
				id = "ApiDeployment" // SAM adds a digest
			}
			found[id] = r.(tree)["Type"]
		}
		v.same("the resources", found, consistsOf)
	}},

	// From the table to the receivers.
	{"the three mappings join the stream, the queue and the slow queue to their functions", func(v *view) {
		v.hasExactly("AWS::Lambda::EventSourceMapping", "OutboxStreamFunctionOutbox", "DeliverFunctionWork", "DeliverFunctionSlowWork")
		v.is(streamMapping+"EventSourceArn", "arn:aws:dynamodb:eu-west-1:111122223333:table/DeliveryTable/stream/2026-01-01T00:00:00.000")
		v.same("restored: the stream", at(v.restored.resources, streamMapping+"EventSourceArn"), restoredParameters["DeliveryStreamArn"])
		v.is(streamMapping+"FunctionName", "OutboxStreamFunction")
		v.is(queueMapping+"EventSourceArn", "arn:aws:sqs:eu-west-1:111122223333:Queue")
		v.is(queueMapping+"FunctionName", "DeliverFunction")
		v.is(slowMapping+"EventSourceArn", "arn:aws:sqs:eu-west-1:111122223333:SlowQueue")
		v.is(slowMapping+"FunctionName", "DeliverFunction")
	}},
	{"each mapping reports partial failures", func(v *view) {
		for id, mapping := range v.ofType("AWS::Lambda::EventSourceMapping") {
			v.same(id, mapping["FunctionResponseTypes"], []string{"ReportBatchItemFailures"})
		}
	}},
	{"batches are 100 from the stream, 10 from the queue and 1 from the slow queue, without a window", func(v *view) {
		for mapping, size := range map[string]int{streamMapping: 100, queueMapping: 10, slowMapping: 1} {
			v.is(mapping+"BatchSize", size)
			v.is(mapping+"MaximumBatchingWindowInSeconds", 0)
		}
	}},
	{"the stream is read from its beginning", func(v *view) { v.is(streamMapping+"StartingPosition", "TRIM_HORIZON") }},
	{"a stream batch that fails is cut in two", func(v *view) { v.is(streamMapping+"BisectBatchOnFunctionError", true) }},
	{"a stream record is given up after six hours", func(v *view) { v.is(streamMapping+"MaximumRecordAgeInSeconds", 6*60*60) }},
	{"a stream record is given up after some tries", func(v *view) {
		if tries, is := at(v.production.resources, streamMapping+"MaximumRetryAttempts").(float64); !is || tries < 1 || tries > 100 {
			v.find("MaximumRetryAttempts is %v", tries)
		}
	}},
	{"what the stream mapping gives up goes to the on-failure queue", func(v *view) {
		v.is(streamMapping+"DestinationConfig", tree{"OnFailure": tree{"Destination": "arn:aws:sqs:eu-west-1:111122223333:OnFailureQueue"}})
	}},
	{"the stream mapping lets through what rings, and nothing else", func(v *view) {
		filters, _ := at(v.production.resources, streamMapping+"FilterCriteria.Filters").([]any)
		if len(filters) != 1 {
			v.find("there are %d filters", len(filters))
			return
		}
		var pattern any
		written, _ := at(filters[0], "Pattern").(string)
		if err := json.Unmarshal([]byte(written), &pattern); err != nil {
			v.find("the pattern is no JSON: %v", err)
		}
		// "exists" works on leaves alone, so the attribute's type is named: the store writes a number.
		v.same("the pattern", pattern, tree{"dynamodb": tree{"NewImage": tree{"ring": tree{"N": []any{tree{"exists": true}}}}}})
	}},
	{"a queue's mapping has no filter, for it would delete what it passes over", func(v *view) {
		for _, mapping := range []string{queueMapping, slowMapping} {
			v.is(mapping+"FilterCriteria", nil)
		}
	}},
	{"the queues' mappings run 5 and 2 at once, or what their parameters say", func(v *view) {
		v.is(queueMapping+"ScalingConfig.MaximumConcurrency", 5)
		v.is(slowMapping+"ScalingConfig.MaximumConcurrency", 2)
		v.same("tuned", at(v.tuned.resources, queueMapping+"ScalingConfig.MaximumConcurrency"), 15)
		v.same("tuned", at(v.tuned.resources, slowMapping+"ScalingConfig.MaximumConcurrency"), 16)
	}},
	{"a stream shard is read by one function at once, or by as many as its parameter says", func(v *view) {
		v.is(streamMapping+"ParallelizationFactor", 1)
		v.same("tuned", at(v.tuned.resources, streamMapping+"ParallelizationFactor"), 5)
	}},

	// Queues.
	{"a message stays hidden for as long as the deliver function may run", func(v *view) {
		timeout := v.seconds("DeliverFunction.Properties.Timeout")
		for _, queue := range []string{"Queue", "SlowQueue"} {
			hidden := v.seconds(queue + ".Properties.VisibilityTimeout")
			if hidden < timeout {
				v.find("%s: visibility %s, timeout %s", queue, hidden, timeout)
			}
			if hidden != delivery.VisibilityTime {
				v.find("%s: visibility %s, the protocol's is %s", queue, hidden, delivery.VisibilityTime)
			}
		}
	}},
	{"both queues set aside to the dead-letter queue what was received a hundred times", func(v *view) {
		v.hasExactly("AWS::SQS::Queue", "Queue", "SlowQueue", "DeadLetterQueue", "OnFailureQueue")
		for _, queue := range []string{"Queue", "SlowQueue"} {
			v.is(queue+".Properties.RedrivePolicy", tree{
				"deadLetterTargetArn": "arn:aws:sqs:eu-west-1:111122223333:DeadLetterQueue", "maxReceiveCount": 100,
			})
		}
	}},
	{"messages are kept for 4 days, and for 14 where they were set aside", func(v *view) {
		const day = 24 * 60 * 60
		for queue, days := range map[string]int{"Queue": 4, "SlowQueue": 4, "DeadLetterQueue": 14, "OnFailureQueue": 14} {
			v.is(queue+".Properties.MessageRetentionPeriod", days*day)
		}
	}},
	{"queues are encrypted", func(v *view) {
		for id, queue := range v.ofType("AWS::SQS::Queue") {
			v.same(id, queue["SqsManagedSseEnabled"], true)
		}
	}},

	// Tables and key.
	{"the two tables have the keys pk and sk, both texts, and are paid by request", func(v *view) {
		v.hasExactly("AWS::DynamoDB::Table", "ContentTable", "DeliveryTable")
		for id, table := range v.ofType("AWS::DynamoDB::Table") {
			v.same(id, table["KeySchema"], []any{
				tree{"AttributeName": "pk", "KeyType": "HASH"}, tree{"AttributeName": "sk", "KeyType": "RANGE"},
			})
			v.same(id, table["BillingMode"], "PAY_PER_REQUEST")
		}
		v.is("ContentTable.Properties.AttributeDefinitions", []any{attribute("pk", "S"), attribute("sk", "S")})
		v.is("DeliveryTable.Properties.AttributeDefinitions", []any{
			attribute("pk", "S"), attribute("sk", "S"), attribute("sweepShard", "N"), attribute("sweepAt", "N"),
		})
	}},
	{"the delivery table has the sweep index, of keys alone, and no table has another", func(v *view) {
		v.is("DeliveryTable.Properties.GlobalSecondaryIndexes", []any{tree{
			"IndexName": store.SweepIndex,
			"KeySchema": []any{
				tree{"AttributeName": "sweepShard", "KeyType": "HASH"}, tree{"AttributeName": "sweepAt", "KeyType": "RANGE"},
			},
			"Projection": tree{"ProjectionType": "KEYS_ONLY"},
		}})
		v.is("ContentTable.Properties.GlobalSecondaryIndexes", nil)
	}},
	{"the delivery table streams new images, the content table nothing", func(v *view) {
		v.is("DeliveryTable.Properties.StreamSpecification", tree{"StreamViewType": "NEW_IMAGE"})
		v.is("ContentTable.Properties.StreamSpecification", nil)
	}},
	{"items expire by expiresAt", func(v *view) {
		for id, table := range v.ofType("AWS::DynamoDB::Table") {
			v.same(id, table["TimeToLiveSpecification"], tree{"AttributeName": "expiresAt", "Enabled": true})
		}
	}},
	{"tables can be restored to any second", func(v *view) {
		for id, table := range v.ofType("AWS::DynamoDB::Table") {
			v.same(id, table["PointInTimeRecoverySpecification"], tree{"PointInTimeRecoveryEnabled": true})
		}
	}},
	{"tables are encrypted", func(v *view) {
		for id, table := range v.ofType("AWS::DynamoDB::Table") {
			v.same(id, table["SSESpecification"], tree{"SSEEnabled": true})
		}
	}},
	{"tables are protected against deletion in production, and elsewhere not", func(v *view) {
		for _, table := range []string{"ContentTable", "DeliveryTable"} {
			v.is(table+".Properties.DeletionProtectionEnabled", true)
			v.same("local "+table, at(v.local.resources, table+".Properties.DeletionProtectionEnabled"), false)
		}
	}},
	{"tables and key outlive the stack, in every environment", func(v *view) {
		for _, id := range []string{"ContentTable", "DeliveryTable", "SealingKey"} {
			for _, policy := range []string{".DeletionPolicy", ".UpdateReplacePolicy"} {
				// As it is written, not as it is settled: CloudFormation takes no function there.
				v.same(id+policy, at(section(v.Transformed, "Resources"), id+policy), "Retain")
			}
		}
		v.same("the transforms", v.Written["Transform"], "AWS::Serverless-2016-10-31")
	}},
	{"the stack makes tables and key, with names of CloudFormation's, or is given all of them", func(v *view) {
		for _, id := range []string{"ContentTable", "DeliveryTable", "SealingKey"} {
			v.is(id+".Properties.TableName", nil)
			v.same("restored: "+id, v.restored.resources[id], nil)
			v.same(id+"'s condition", at(section(v.Transformed, "Resources"), id+".Condition"), "MakesTablesAndKey")
		}
		for name, pattern := range map[string]string{
			"ContentTableName": "([a-zA-Z0-9_.-]{3,255})?", "DeliveryTableName": "([a-zA-Z0-9_.-]{3,255})?",
			"DeliveryStreamArn": "(arn:[^:]+:dynamodb:[^:]+:[0-9]{12}:table/[^/]+/stream/.+)?",
			"SealingKeyArn":     "(arn:[^:]+:kms:[^:]+:[0-9]{12}:key/.+)?",
		} {
			parameter := section(section(v.Transformed, "Parameters"), name)
			v.same(name+"'s default", parameter["Default"], "")
			v.same(name+"'s form", parameter["AllowedPattern"], pattern)
			if given := fmt.Sprint(restoredParameters[name]); !regexp.MustCompile("^(?:" + pattern + ")$").MatchString(given) {
				v.find("%s is not taken: %s", name, given)
			}
		}
	}},
	{"tables and key are named together or not at all", func(v *view) {
		names := slices.Sorted(maps.Keys(restoredParameters))
		for some := range 1 << len(names) { // each choice of the four
			given := tree{}
			for i, name := range names {
				if some&(1<<i) != 0 {
					given[name] = restoredParameters[name]
				}
			}
			s, err := newSettler(v.Transformed, given)
			if err != nil {
				v.find("with %v: %v", given, err)
				continue
			}
			refused, err := s.refused()
			partly := len(given) > 0 && len(given) < len(names)
			if err != nil || (len(refused) > 0) != partly {
				v.find("with %v the refusals are %v, %v", slices.Sorted(maps.Keys(given)), refused, err)
			}
			if !partly {
				continue
			}
			// Where rules are not heeded (the local stack), nothing is made and a function says at its start what is missing.
			found, err := s.resources(append(slices.Clone(functionIDs), "ContentTable", "DeliveryTable", "SealingKey")...)
			if err != nil || len(found) != len(functionIDs) {
				v.find("with %v there are %v, %v", slices.Sorted(maps.Keys(given)), slices.Sorted(maps.Keys(found)), err)
			}
			starting := 0
			for id, start := range starts {
				if err := start(variablesOf(stack{resources: found}, id)); err == nil {
					starting++
				}
			}
			if starting == len(starts) {
				v.find("with %v every function starts", slices.Sorted(maps.Keys(given)))
			}
		}
	}},
	// What is recorded is never changed: an update of a stack that has it must find it again. (History is not asked: a
	// checkout may have none.)
	{"no update loses the tables or the key of a stack", func(v *view) {
		before, err := recorded()
		if err != nil {
			v.find("%v", err)
			return
		}
		v.same("what is recorded", slices.Sorted(maps.Keys(before)), kept)
		for name, s := range map[string]stack{"production": v.production, "local": v.local, "tuned": v.tuned} {
			fates := update(before, s.resources)
			for _, id := range kept {
				if fates[id] != stays && fates[id] != changed {
					v.find("%s: %s %s", name, id, fates[id])
				}
			}
		}
	}},
	{"the sealing key is turned each year, and its policy hands the say to the account alone", func(v *view) {
		v.hasExactly("AWS::KMS::Key", "SealingKey")
		v.is("SealingKey.Properties.EnableKeyRotation", true)
		v.is("SealingKey.Properties.PendingWindowInDays", 30)
		v.is("SealingKey.Properties.KeyPolicy", keyPolicy)
	}},

	// Functions.
	{"the functions end in the protocol's times", func(v *view) {
		if timeout := v.seconds("DeliverFunction.Properties.Timeout"); timeout != delivery.FunctionTime {
			v.find("deliver ends after %s, the protocol's time is %s", timeout, delivery.FunctionTime)
		}
		if timeout := v.seconds("ApiFunction.Properties.Timeout"); timeout < 10*time.Second || timeout >= 29*time.Second {
			v.find("api ends after %s: a publish takes up to 5 s, the gateway gives up after 29 s", timeout)
		}
		if timeout := v.seconds("OutboxStreamFunction.Properties.Timeout"); timeout < 10*time.Second || timeout > time.Minute {
			v.find("outbox-stream ends after %s", timeout)
		}
		if timeout := v.seconds("SweepFunction.Properties.Timeout"); timeout != time.Minute {
			v.find("sweep ends after %s, and works until 30 s before: a sweep each minute", timeout)
		}
	}},
	{"each function is a small binary of its own on the processor that is asked for", func(v *view) {
		v.hasExactly("AWS::Lambda::Function", functionIDs...)
		for id, function := range v.ofType("AWS::Lambda::Function") {
			v.same(id+"'s runtime", function["Runtime"], "provided.al2023")
			v.same(id+"'s handler", function["Handler"], "bootstrap")
			v.same(id+"'s processor", function["Architectures"], []string{"arm64"})
			v.same("tuned "+id, at(v.tuned.resources, id+".Properties.Architectures"), []string{"x86_64"})
			v.same(id+"'s package", section(function, "Code")["S3Key"], "function.zip")
			v.same(id+"'s build", at(v.production.resources, id+".Metadata.BuildMethod"), "makefile")
			v.same(id+"'s tracing", function["TracingConfig"], nil)
			v.same(id+"'s role", function["Role"], "arn:aws:iam::111122223333:role/"+roleOf(id))
		}
		for id, memory := range map[string]int{"ApiFunction": 512, "OutboxStreamFunction": 256, "DeliverFunction": 256, "SweepFunction": 256} {
			v.is(id+".Properties.MemorySize", memory)
		}
	}},
	{"each function logs JSON to its own group, and each group forgets", func(v *view) {
		for _, id := range functionIDs {
			v.is(id+".Properties.LoggingConfig", tree{
				"LogFormat": "JSON", "ApplicationLogLevel": "INFO", "SystemLogLevel": "WARN",
				"LogGroup": "/colophon/colophon/" + names[id],
			})
		}
		groups := map[string]string{}
		for _, id := range functionIDs {
			groups[logsOf(id)] = names[id]
		}
		// The gateway may make groups, and a group of a fixed name that it made again would block the next stack.
		v.hasExactly("AWS::Logs::LogGroup", append(slices.Collect(maps.Keys(groups)), "AccessLogs")...)
		v.is("AccessLogs.Properties.LogGroupName", nil)
		groups["AccessLogs"] = ""
		for id, name := range groups {
			if name != "" {
				v.is(id+".Properties.LogGroupName", "/colophon/colophon/"+name)
			}
			v.is(id+".Properties.RetentionInDays", 30)
			v.same("tuned "+id, at(v.tuned.resources, id+".Properties.RetentionInDays"), 7)
		}
	}},
	{"each function is told what it needs, and no more", func(v *view) {
		const queues = "https://sqs.eu-west-1.amazonaws.com/111122223333/"
		for given, of := range map[string]struct {
			stack
			content, delivery, stream, key any
		}{
			"production": {v.production, "ContentTable", "DeliveryTable",
				"arn:aws:dynamodb:eu-west-1:111122223333:table/DeliveryTable/stream/2026-01-01T00:00:00.000", "arn:aws:kms:eu-west-1:111122223333:key/SealingKey"},
			"restored": {v.restored, restoredParameters["ContentTableName"], restoredParameters["DeliveryTableName"],
				restoredParameters["DeliveryStreamArn"], restoredParameters["SealingKeyArn"]},
		} {
			for id, told := range map[string]tree{
				"ApiFunction": {
					"CONTENT_TABLE": of.content, "DELIVERY_TABLE": of.delivery, "SEALING_KEY_ID": of.key,
					"PUBLIC_ADDRESS": "", "ALLOW_LOOPBACK_RECEIVERS": "false",
					"DESTINATION_SEND_BURST": 10, "DESTINATION_SENDS_PER_MINUTE": 1, "ORIGIN_SEND_BURST": 40, "ORIGIN_SENDS_PER_MINUTE": 10,
					"PUBLISH_BURST": 60, "PUBLISHES_PER_MINUTE": 60, "PROJECT_CONTENT_LIMIT": 10,
					"TOKEN_REQUEST_BURST": float64(2000), "TOKEN_REQUESTS_PER_MINUTE": float64(600),
				},
				"OutboxStreamFunction": {
					"DELIVERY_TABLE": of.delivery, "DELIVERY_STREAM_ARN": of.stream,
					"QUEUE_URL": queues + "Queue", "ON_FAILURE_QUEUE_URL": queues + "OnFailureQueue",
				},
				"DeliverFunction": {
					"DELIVERY_TABLE": of.delivery, "QUEUE_URL": queues + "Queue", "SLOW_QUEUE_URL": queues + "SlowQueue",
					"DEAD_LETTER_QUEUE_URL": queues + "DeadLetterQueue", "SEALING_KEY_ID": of.key, "ALLOW_LOOPBACK_RECEIVERS": "false",
					"API_ID": "Api", "PUBLIC_ADDRESS": "",
				},
				"SweepFunction": {"DELIVERY_TABLE": of.delivery, "QUEUE_URL": queues + "Queue"},
			} {
				told["COLOPHON_ENVIRONMENT"] = "production"
				told["METRICS_NAMESPACE"] = "Colophon"
				v.same(given+" "+id, at(of.resources, id+".Properties.Environment.Variables"), told)
			}
		}
		const variables = ".Properties.Environment.Variables."
		v.same("tuned address", at(v.tuned.resources, "ApiFunction"+variables+"PUBLIC_ADDRESS"), "https://colophon.example")
		v.same("tuned burst of publishes", at(v.tuned.resources, "ApiFunction"+variables+"PUBLISH_BURST"), float64(17))
		v.same("tuned publishes", at(v.tuned.resources, "ApiFunction"+variables+"PUBLISHES_PER_MINUTE"), float64(18))
		v.same("tuned content", at(v.tuned.resources, "ApiFunction"+variables+"PROJECT_CONTENT_LIMIT"), float64(19))
		v.same("tuned namespace", at(v.tuned.resources, "SweepFunction"+variables+"METRICS_NAMESPACE"), "Tuned")
		for _, id := range []string{"ApiFunction", "DeliverFunction"} {
			v.same("local allowance of "+id, at(v.local.resources, id+variables+"ALLOW_LOOPBACK_RECEIVERS"), "true")
			v.same("local environment of "+id, at(v.local.resources, id+variables+"COLOPHON_ENVIRONMENT"), "local")
		}
	}},
	{"each function starts with what it is told, in every environment", func(v *view) {
		for name, s := range map[string]stack{"production": v.production, "local": v.local, "tuned": v.tuned, "restored": v.restored} {
			for id, start := range starts {
				if err := start(variablesOf(s, id)); err != nil {
					v.find("%s %s: %v", name, id, err)
				}
			}
		}
	}},
	{"the api's concurrency is reserved only where that is asked for", func(v *view) {
		v.is("ApiFunction.Properties.ReservedConcurrentExecutions", nil)
		v.same("tuned", at(v.tuned.resources, "ApiFunction.Properties.ReservedConcurrentExecutions"), 13)
	}},
	{"production refuses loopback receivers, other environments don't", func(v *view) {
		v.same("refusals by default", v.production.refused, []string(nil))
		v.same("refusals of the local stack", v.local.refused, []string(nil))
		careless, err := settle(v.Transformed, tree{"AllowLoopbackReceivers": "true"})
		if err != nil || text(careless.refused) != `["AllowLoopbackReceivers must be false in production"]` {
			v.find("production with loopback receivers is refused with %v (%v)", careless.refused, err)
			return
		}
		// Where nobody heeds rules (the local stack does not), the functions themselves refuse to start.
		for _, id := range []string{"ApiFunction", "DeliverFunction"} {
			if starts[id](variablesOf(careless, id)) == nil {
				v.find("%s starts in production with loopback receivers", id)
			}
		}
	}},
	{"the public address is https, or http on loopback", func(v *view) {
		pattern, _ := section(section(v.Transformed, "Parameters"), "PublicAddress")["AllowedPattern"].(string)
		form, err := regexp.Compile("^(?:" + pattern + ")$") // CloudFormation matches the whole value
		if err != nil {
			v.find("the pattern %q: %v", pattern, err)
			return
		}
		for address, want := range map[string]bool{
			"": true, "https://colophon.example": true, "https://colophon.example/base/": true, "https://[2001:db8::1]:8443": true,
			"http://127.0.0.1:4566/x": true, "http://localhost": true, "http://[::1]:80": true,
			"http://colophon.example": false, "http://127.0.0.1.example": false, "http://localhost.example/": false,
			"http://127.0.0.1@colophon.example": false, "ftp://colophon.example": false, "colophon.example": false,
			"https://colophon.example?a": false, "https://a:b@colophon.example": false, "HTTP://colophon.example": false,
		} {
			if form.MatchString(address) != want {
				v.find("%q is taken: %v", address, !want)
			}
		}
		// The one that passes the pattern and is not for production is refused at the start.
		careless, err := newSettler(v.Transformed, tree{"PublicAddress": "http://127.0.0.1:4566"})
		if err != nil {
			v.find("%v", err)
			return
		}
		found, err := careless.resources("ApiFunction")
		if err != nil || starts["ApiFunction"](variablesOf(stack{resources: found}, "ApiFunction")) == nil {
			v.find("api starts in production with links of plain HTTP (%v)", err)
		}
	}},
	{"the sweeper runs each minute, and a failed sweep is not repeated", func(v *view) {
		v.is("SweepFunctionEachMinute.Properties.ScheduleExpression", "rate(1 minute)")
		v.is("SweepFunctionEachMinute.Properties.Targets.0.Arn", "arn:aws:lambda:eu-west-1:111122223333:function:SweepFunction")
		v.is("SweepFunctionEventInvokeConfig.Properties.FunctionName", "SweepFunction")
		v.is("SweepFunctionEventInvokeConfig.Properties.Qualifier", "$LATEST")
		v.is("SweepFunctionEventInvokeConfig.Properties.MaximumRetryAttempts", 0)
		v.is("SweepFunctionEventInvokeConfig.Properties.MaximumEventAgeInSeconds", 60)
	}},
	{"the API alone may call the api function, the schedule alone the sweeper", func(v *view) {
		permission := func(function, service, source string) tree {
			return tree{
				"Action": "lambda:InvokeFunction", "FunctionName": function, "Principal": service + ".amazonaws.com", "SourceArn": source,
			}
		}
		v.same("the permissions", v.ofType("AWS::Lambda::Permission"), map[string]tree{
			"ApiFunctionRootPermissionv1":       permission("ApiFunction", "apigateway", "arn:aws:execute-api:eu-west-1:111122223333:Api/*/*/"),
			"ApiFunctionBelowPermissionv1":      permission("ApiFunction", "apigateway", "arn:aws:execute-api:eu-west-1:111122223333:Api/*/*/*"),
			"SweepFunctionEachMinutePermission": permission("SweepFunction", "events", "arn:aws:events:eu-west-1:111122223333:rule/SweepFunctionEachMinute"),
		})
	}},

	// Roles. That they grant nothing else is judged in roles_test.go.
	{"each role is granted the calls that its function makes", func(v *view) {
		v.findings = append(ungranted(rolesOf(v.production)), ungranted(rolesOf(v.restored))...)
	}},
	{"what is sealed is bound to one destination", func(v *view) {
		v.findings = append(sealing(rolesOf(v.production)), sealing(rolesOf(v.restored))...)
	}},
	{"deliver and sweep leave destinations' settings alone", func(v *view) {
		v.findings = append(settingsWritten(rolesOf(v.production)), settingsWritten(rolesOf(v.restored))...)
	}},
	{"each function has a role of its own, and SAM adds neither a role nor a policy", func(v *view) {
		byAuthor := map[string]any{}
		for id, r := range section(v.Written, "Resources") {
			if kind, _ := r.(tree)["Type"].(string); strings.HasPrefix(kind, "AWS::IAM::") {
				byAuthor[id] = r.(tree)["Properties"]
			}
		}
		deployed := map[string]any{}
		for id, r := range section(v.Transformed, "Resources") {
			if kind, _ := r.(tree)["Type"].(string); strings.HasPrefix(kind, "AWS::IAM::") {
				deployed[id] = r.(tree)["Properties"]
			}
		}
		v.same("the roles and policies as deployed", deployed, byAuthor)
		v.hasExactly("AWS::IAM::Role", "ApiRole", "OutboxStreamRole", "DeliverRole", "SweepRole", "ApiGatewayLoggingRole")
		for _, id := range functionIDs {
			role, _ := at(v.production.resources, roleOf(id)+".Properties").(tree)
			v.same("what "+roleOf(id)+" consists of", slices.Sorted(maps.Keys(role)), []string{"AssumeRolePolicyDocument", "Policies"})
			v.same(roleOf(id)+"'s trust", role["AssumeRolePolicyDocument"], trust("lambda.amazonaws.com"))
			v.same(roleOf(id)+"'s policy", at(role, "Policies.0.PolicyName"), names[id])
		}
	}},
	{"no function's role holds a wildcard but in its own log group's streams", func(v *view) {
		for _, id := range functionIDs {
			own := `"arn:aws:logs:eu-west-1:111122223333:log-group:/colophon/colophon/` + names[id] + `:*"`
			policies := strings.ReplaceAll(text(at(v.production.resources, roleOf(id)+".Properties.Policies")), own, "")
			if i := strings.IndexAny(policies, "*?"); i >= 0 {
				v.find("%s: …%s…", roleOf(id), policies[max(0, i-40):min(len(policies), i+10)])
			}
		}
	}},
	{"the gateway's logging role is the account's, made only where that is asked for, and outlives the stack", func(v *view) {
		v.is("ApiGatewayLoggingRole.DeletionPolicy", "Retain")
		v.is("ApiGatewayLoggingRole.UpdateReplacePolicy", "Retain")
		v.is("ApiGatewayLoggingRole.Properties", tree{
			"AssumeRolePolicyDocument": tree{"Version": "2012-10-17", "Statement": []any{tree{
				"Effect": "Allow", "Principal": tree{"Service": "apigateway.amazonaws.com"}, "Action": "sts:AssumeRole",
				"Condition": tree{"StringEqualsIfExists": tree{"aws:SourceAccount": account}},
			}}},
			"ManagedPolicyArns": []any{"arn:aws:iam::aws:policy/service-role/AmazonAPIGatewayPushToCloudWatchLogs"},
		})
		v.is("ApiGatewayAccount.Properties.CloudWatchRoleArn", "arn:aws:iam::111122223333:role/ApiGatewayLoggingRole")
		for _, id := range []string{"ApiGatewayLoggingRole", "ApiGatewayAccount"} {
			v.same("local "+id, v.local.resources[id], nil)
		}
	}},
	// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-apigateway-account.html
	{"the account gets its logging role after the API is there and before the stage, which logs", func(v *view) {
		v.is("ApiGatewayAccount.DependsOn", "Api")
		v.is("Api.DependsOn", nil)
		v.is("Apiv1Stage.DependsOn", nil)
		v.is("Apiv1Stage.Properties.Variables", tree{"account": "ApiGatewayAccount"})
		v.same("local: the stage's variables", at(v.local.resources, "Apiv1Stage.Properties.Variables"), nil)
	}},

	// API.
	{"every path and method reaches the api function, by one stage and TLS 1.2 or newer", func(v *view) {
		v.is("Apiv1Stage.Properties.StageName", "v1")
		v.is("Apiv1Stage.Properties.RestApiId", "Api")
		v.is("Api.Properties.EndpointConfiguration", tree{"Types": []any{"REGIONAL"}})
		for id, deployment := range v.ofType("AWS::ApiGateway::Deployment") {
			v.is("Apiv1Stage.Properties.DeploymentId", id)
			v.same(id+"'s API", deployment["RestApiId"], "Api")
		}
		v.is("Api.Properties.Body.x-amazon-apigateway-security-policy", "TLS_1_2")
		v.hasExactly("AWS::ApiGateway::Stage", "Apiv1Stage")
		v.hasExactly("AWS::ApiGateway::RestApi", "Api")
		paths, _ := at(v.production.resources, "Api.Properties.Body.paths").(tree)
		v.same("the paths", slices.Sorted(maps.Keys(paths)), []string{"/", "/{proxy+}"})
		for path, methods := range paths {
			v.same("the methods of "+path, slices.Sorted(maps.Keys(methods.(tree))), []string{"x-amazon-apigateway-any-method"})
			v.same(path, at(methods, "x-amazon-apigateway-any-method.x-amazon-apigateway-integration"), tree{
				"httpMethod": "POST", "type": "aws_proxy",
				"uri": "arn:aws:apigateway:eu-west-1:lambda:path/2015-03-31/functions/arn:aws:lambda:eu-west-1:111122223333:function:ApiFunction/invocations",
			})
		}
	}},
	{"the API is throttled, and neither its requests nor its answers are logged", func(v *view) {
		v.is("Apiv1Stage.Properties.MethodSettings", []any{tree{
			"ResourcePath": "/*", "HttpMethod": "*", "ThrottlingRateLimit": 200, "ThrottlingBurstLimit": 400,
			"MetricsEnabled": false, "LoggingLevel": "OFF", "DataTraceEnabled": false,
		}})
		v.same("tuned rate", at(v.tuned.resources, "Apiv1Stage.Properties.MethodSettings.0.ThrottlingRateLimit"), 11)
		v.same("tuned burst", at(v.tuned.resources, "Apiv1Stage.Properties.MethodSettings.0.ThrottlingBurstLimit"), 12)
		v.is("Apiv1Stage.Properties.TracingEnabled", nil)
	}},
	{"each request is a line of JSON in the access log, of what no caller can choose", func(v *view) {
		v.is("Apiv1Stage.Properties.AccessLogSetting.DestinationArn", "arn:aws:logs:eu-west-1:111122223333:log-group:AccessLogs:*")
		written, _ := at(v.production.resources, "Apiv1Stage.Properties.AccessLogSetting.Format").(string)
		used := map[string]bool{}
		for _, variable := range gatewayVariable.FindAllString(written, -1) {
			used[variable] = true
			if _, safe := safeInAccessLog[variable]; !safe {
				v.find("the format holds %s, which may be a caller's text", variable)
			}
		}
		for variable := range safeInAccessLog {
			if !used[variable] {
				v.find("the format lacks %s", variable)
			}
		}
		if rest := gatewayVariable.ReplaceAllString(written, ""); strings.ContainsAny(rest, "$\n") {
			v.find("the format holds more than variables of the gateway: %s", rest)
		}
		var line map[string]string
		if err := json.Unmarshal([]byte(accessLogLine(written)), &line); err != nil {
			v.find("a line is no JSON object of texts: %v", err)
		}
	}},
	{"the local stack gives the API its stable id", func(v *view) {
		v.is("Api.Properties.Tags", []any{tree{"Key": "_custom_id_", "Value": "colophon"}})
	}},
	{"what the gateway answers by itself is a problem document in our own words", func(v *view) {
		const responses = "Api.Properties.Body.x-amazon-apigateway-gateway-responses"
		found, _ := at(v.production.resources, responses).(tree)
		v.same("the responses", slices.Sorted(maps.Keys(found)), []string{"DEFAULT_4XX", "DEFAULT_5XX", "REQUEST_TOO_LARGE", "THROTTLED"})
		for name, response := range found {
			v.same(name+"'s transport", section(response.(tree), "responseParameters")["gatewayresponse.header.Strict-Transport-Security"], "'max-age=31536000'")
			v.same(name+"'s type", section(response.(tree), "responseParameters")["gatewayresponse.header.Content-Type"], "'application/problem+json'")
			written, _ := section(response.(tree), "responseTemplates")["application/json"].(string)
			if rest := strings.ReplaceAll(written, "$context.extendedRequestId", "R"); strings.Contains(rest, "$") {
				v.find("%s shows another's words: %s", name, written)
			}
			var problem struct{ Type, Title, RequestID string }
			if err := json.Unmarshal([]byte(written), &problem); err != nil || problem.Type == "" || problem.Title == "" || problem.RequestID == "" {
				v.find("%s is no problem document: %s", name, written)
			}
		}
		v.same("a throttled request's status", section(tree(found), "THROTTLED")["statusCode"], "429")
		v.same("a throttled request's advice", at(found, "THROTTLED.responseParameters"), tree{
			"gatewayresponse.header.Content-Type": "'application/problem+json'", "gatewayresponse.header.Retry-After": "'1'",
			"gatewayresponse.header.Strict-Transport-Security": "'max-age=31536000'",
		})
		v.same("a large request's status", section(tree(found), "REQUEST_TOO_LARGE")["statusCode"], "413")
	}},

	// Alarms and outputs.
	{"the nine alarms watch what they are named for", func(v *view) {
		type alarm struct {
			namespace, metric, statistic, missing string
			dimensions                            []any
			threshold, periods                    int
		}
		queue := func(name string) []any { return []any{tree{"Name": "QueueName", "Value": name}} }
		function := func(name string) []any { return []any{tree{"Name": "FunctionName", "Value": name}} }
		alarms := map[string]alarm{
			"DeadLettersAlarm":        {"AWS/SQS", "ApproximateNumberOfMessagesVisible", "Maximum", "notBreaching", queue("DeadLetterQueue"), 0, 1},
			"OnFailureAlarm":          {"AWS/SQS", "ApproximateNumberOfMessagesVisible", "Maximum", "notBreaching", queue("OnFailureQueue"), 0, 1},
			"StreamAgeAlarm":          {"AWS/Lambda", "IteratorAge", "Maximum", "notBreaching", function("OutboxStreamFunction"), 120_000, 3},
			"FirstNotificationsAlarm": {"Colophon", outbox.FigureFirst, "Sum", "notBreaching", nil, 3, 1},
			"OldestDueAlarm":          {"Colophon", outbox.FigureOldestDue, "Maximum", "breaching", nil, 200, 1},
			"SweeperErrorsAlarm":      {"AWS/Lambda", "Errors", "Sum", "notBreaching", function("SweepFunction"), 0, 5},
			"OurFaultsAlarm":          {"Colophon", delivery.FigureOurFaults, "Sum", "notBreaching", nil, 0, 1},
			"TableFailuresAlarm":      {"Colophon", delivery.FigureTableFailures, "Sum", "notBreaching", nil, 4, 1},
			"ClockAlarm":              {"Colophon", delivery.FigureClock, "Sum", "notBreaching", nil, 0, 3},
		}
		v.hasExactly("AWS::CloudWatch::Alarm", slices.Collect(maps.Keys(alarms))...)
		for id, a := range alarms {
			want := tree{
				"Namespace": a.namespace, "MetricName": a.metric, "Statistic": a.statistic, "Period": 60,
				"EvaluationPeriods": a.periods, "ComparisonOperator": "GreaterThanThreshold", "Threshold": a.threshold,
				"TreatMissingData": a.missing,
			}
			if a.dimensions != nil {
				want["Dimensions"] = a.dimensions
			}
			switch id {
			case "OldestDueAlarm", "TableFailuresAlarm":
				want["Period"] = 300
			case "FirstNotificationsAlarm":
				want["Period"], want["ComparisonOperator"] = 3600, "GreaterThanOrEqualToThreshold"
			case "StreamAgeAlarm":
				want["Unit"] = "Milliseconds"
			case "SweeperErrorsAlarm":
				want["DatapointsToAlarm"] = 3
			}
			got := maps.Clone(v.ofType("AWS::CloudWatch::Alarm")[id])
			if told, _ := got["AlarmDescription"].(string); told == "" {
				v.find("%s does not say what it means", id)
			}
			delete(got, "AlarmDescription")
			v.same(id, got, want)
		}
		for _, id := range []string{"OldestDueAlarm", "OurFaultsAlarm", "FirstNotificationsAlarm", "TableFailuresAlarm", "ClockAlarm"} {
			v.same("tuned "+id, at(v.tuned.resources, id+".Properties.Namespace"), "Tuned")
		}
	}},
	{"alarms and their ends are told to the topic, where there is one", func(v *view) {
		for id := range v.ofType("AWS::CloudWatch::Alarm") {
			for _, kind := range []string{"AlarmActions", "OKActions"} {
				v.is(id+".Properties."+kind, nil)
				v.same("tuned "+id, at(v.tuned.resources, id+".Properties."+kind), []any{tunedParameters["AlarmTopicArn"]})
			}
		}
	}},
	{"the outputs say where everything is", func(v *view) {
		const queues = "https://sqs.eu-west-1.amazonaws.com/111122223333/"
		want := map[string]string{
			"Environment": "production",
			"ApiUrl":      "https://Api.execute-api.eu-west-1.amazonaws.com/v1", "ApiId": "Api",
			"ContentTableName": "ContentTable", "DeliveryTableName": "DeliveryTable",
			"DeliveryStreamArn": "arn:aws:dynamodb:eu-west-1:111122223333:table/DeliveryTable/stream/2026-01-01T00:00:00.000",
			"QueueUrl":          queues + "Queue", "SlowQueueUrl": queues + "SlowQueue",
			"DeadLetterQueueUrl": queues + "DeadLetterQueue", "OnFailureQueueUrl": queues + "OnFailureQueue",
			"SealingKeyArn":      "arn:aws:kms:eu-west-1:111122223333:key/SealingKey",
			"AccessLogGroupName": "AccessLogs",
			"ApiFunctionName":    "ApiFunction", "OutboxStreamFunctionName": "OutboxStreamFunction",
			"DeliverFunctionName": "DeliverFunction", "SweepFunctionName": "SweepFunction",
		}
		got := map[string]any{}
		for name, output := range v.production.outputs {
			got[name] = output.(tree)["Value"]
		}
		v.same("the outputs", got, want)
		for parameter, given := range restoredParameters { // so that a stack's outputs can be given to another
			v.same("restored: "+parameter, at(v.restored.outputs, parameter+".Value"), given)
		}
	}},
}

// consistsOf is the whole stack: what the author wrote, and what SAM makes of it.
var consistsOf = map[string]string{
	"ContentTable": "AWS::DynamoDB::Table", "DeliveryTable": "AWS::DynamoDB::Table", "SealingKey": "AWS::KMS::Key",
	"Queue": "AWS::SQS::Queue", "SlowQueue": "AWS::SQS::Queue",
	"DeadLetterQueue": "AWS::SQS::Queue", "OnFailureQueue": "AWS::SQS::Queue",

	"Api": "AWS::ApiGateway::RestApi", "ApiDeployment": "AWS::ApiGateway::Deployment", "Apiv1Stage": "AWS::ApiGateway::Stage",
	"ApiGatewayAccount": "AWS::ApiGateway::Account", "ApiGatewayLoggingRole": "AWS::IAM::Role", "AccessLogs": "AWS::Logs::LogGroup",

	"ApiFunction": "AWS::Lambda::Function", "ApiRole": "AWS::IAM::Role", "ApiLogs": "AWS::Logs::LogGroup",
	"ApiFunctionRootPermissionv1": "AWS::Lambda::Permission", "ApiFunctionBelowPermissionv1": "AWS::Lambda::Permission",

	"OutboxStreamFunction": "AWS::Lambda::Function", "OutboxStreamRole": "AWS::IAM::Role", "OutboxStreamLogs": "AWS::Logs::LogGroup",
	"OutboxStreamFunctionOutbox": "AWS::Lambda::EventSourceMapping",

	"DeliverFunction": "AWS::Lambda::Function", "DeliverRole": "AWS::IAM::Role", "DeliverLogs": "AWS::Logs::LogGroup",
	"DeliverFunctionWork": "AWS::Lambda::EventSourceMapping", "DeliverFunctionSlowWork": "AWS::Lambda::EventSourceMapping",

	"SweepFunction": "AWS::Lambda::Function", "SweepRole": "AWS::IAM::Role", "SweepLogs": "AWS::Logs::LogGroup",
	"SweepFunctionEachMinute": "AWS::Events::Rule", "SweepFunctionEachMinutePermission": "AWS::Lambda::Permission",
	"SweepFunctionEventInvokeConfig": "AWS::Lambda::EventInvokeConfig",

	"DeadLettersAlarm": "AWS::CloudWatch::Alarm", "OnFailureAlarm": "AWS::CloudWatch::Alarm",
	"FirstNotificationsAlarm": "AWS::CloudWatch::Alarm",
	"StreamAgeAlarm":          "AWS::CloudWatch::Alarm", "OldestDueAlarm": "AWS::CloudWatch::Alarm",
	"SweeperErrorsAlarm": "AWS::CloudWatch::Alarm", "OurFaultsAlarm": "AWS::CloudWatch::Alarm", "TableFailuresAlarm": "AWS::CloudWatch::Alarm",
	"ClockAlarm": "AWS::CloudWatch::Alarm",
}

// starts reads each function's environment as its main does.
var starts = map[string]func(getenv func(string) string) error{
	"ApiFunction":          func(getenv func(string) string) error { _, err := runtime.ReadAPI(getenv); return err },
	"OutboxStreamFunction": func(getenv func(string) string) error { _, err := runtime.ReadOutboxStream(getenv); return err },
	"DeliverFunction":      func(getenv func(string) string) error { _, err := runtime.ReadDeliver(getenv); return err },
	"SweepFunction":        func(getenv func(string) string) error { _, err := runtime.ReadSweep(getenv); return err },
}

func variablesOf(s stack, function string) func(string) string {
	return func(name string) string {
		value, _ := at(s.resources, function+".Properties.Environment.Variables."+name).(string)
		return value
	}
}

// gatewayVariable is what the gateway puts a value for, as its mapping templates have it.
var gatewayVariable = regexp.MustCompile(`\$context(\.[A-Za-z]+)+`)

// safeInAccessLog are the variables whose values the gateway or the template makes, each with a value as AWS documents
// its form. Not among them, although it looks so: $context.requestId, which a client may choose ("Clients can override
// this request ID", API Gateway Developer Guide, "Variables for access logging for API Gateway").
var safeInAccessLog = map[string]string{
	"$context.extendedRequestId":  "JXJ0CHhJDoEEPzA=",
	"$context.requestTimeEpoch":   "1796076039258",
	"$context.httpMethod":         "ANY", // of those that HTTP names; others are refused before they are logged here
	"$context.resourcePath":       "/{proxy+}",
	"$context.status":             "200",
	"$context.error.responseType": "-",
	"$context.responseLength":     "812",
	"$context.responseLatency":    "12",
	"$context.integrationLatency": "10",
	"$context.identity.sourceIp":  "2001:db8::1",
}

// accessLogLine is the line that the gateway writes by a format for a hostile request: what the caller can choose is put
// in as it came, which is what the gateway does.
func accessLogLine(format string) string {
	return gatewayVariable.ReplaceAllStringFunc(format, func(variable string) string {
		if value, safe := safeInAccessLog[variable]; safe {
			return value
		}
		return hostileText
	})
}

// hostileText, as a path or a User-Agent, ends the member it stands in and adds a metric of CloudWatch's embedded format.
const hostileText = `x","status":"200","_aws":{"Timestamp":1,"CloudWatchMetrics":[{"Namespace":"Colophon","Dimensions":[[]],"Metrics":[{"Name":"OldestDueSeconds"}]}]},"OldestDueSeconds":"0`

// keyPolicy is the sealing key's: the account's IAM policies decide.
var keyPolicy = tree{"Version": "2012-10-17", "Statement": []any{tree{
	"Sid": "AccountDecidesByItsPolicies", "Effect": "Allow",
	"Principal": tree{"AWS": "arn:aws:iam::111122223333:root"}, "Action": "kms:*", "Resource": "*",
}}}

func attribute(name, kind string) tree { return tree{"AttributeName": name, "AttributeType": kind} }

func trust(service string) tree {
	return tree{"Version": "2012-10-17", "Statement": []any{
		tree{"Effect": "Allow", "Principal": tree{"Service": service}, "Action": "sts:AssumeRole"},
	}}
}

// The functions by logical id, each with its folder's name.
var (
	functionIDs = []string{"ApiFunction", "OutboxStreamFunction", "DeliverFunction", "SweepFunction"}
	names       = map[string]string{
		"ApiFunction": "api", "OutboxStreamFunction": "outbox-stream", "DeliverFunction": "deliver", "SweepFunction": "sweep",
	}
)

func roleOf(function string) string { return strings.TrimSuffix(function, "Function") + "Role" }
func logsOf(function string) string { return strings.TrimSuffix(function, "Function") + "Logs" }

func TestACraftedRequestLeavesOneAccessLogLineOfTheGatewaysOwnValues(t *testing.T) {
	t.Parallel()
	s, err := settle(load(t).Transformed, nil)
	if err != nil {
		t.Fatal(err)
	}
	format, _ := at(s.resources, "Apiv1Stage.Properties.AccessLogSetting.Format").(string)
	line := accessLogLine(format)
	var members map[string]string
	if err := json.Unmarshal([]byte(line), &members); err != nil || strings.Contains(line, "\n") {
		t.Fatalf("%s is not one line of JSON: %v", line, err)
	}
	if members["status"] != "200" || members["sourceIp"] != "2001:db8::1" || len(members) != len(safeInAccessLog) {
		t.Errorf("got %v", members)
	}
	// What the test rests on: with a caller's text in the format the same request forges a metric.
	var forged map[string]any
	withAgent := strings.Replace(format, "{", `{"userAgent":"$context.identity.userAgent",`, 1)
	if err := json.Unmarshal([]byte(accessLogLine(withAgent)), &forged); err != nil || forged["_aws"] == nil {
		t.Errorf("a User-Agent in the format forges nothing: %v, %v", forged, err)
	}
}

func TestTheTemplateKeepsItsRules(t *testing.T) {
	t.Parallel()
	for sentence, found := range findings(load(t)) {
		t.Errorf("%s:\n\t%s", sentence, strings.Join(found, "\n\t"))
	}
}
