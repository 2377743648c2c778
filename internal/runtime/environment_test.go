package runtime_test

import (
	"maps"
	"strings"
	"testing"

	"colophon/internal/ratelimit"
	"colophon/internal/runtime"
)

// complete is an environment in which every function starts.
var complete = map[string]string{
	"CONTENT_TABLE": "colophon-content", "DELIVERY_TABLE": "colophon-delivery",
	"DELIVERY_STREAM_ARN":   "arn:aws:dynamodb:eu-west-1:123456789012:table/colophon-delivery/stream/2026-01-01T00:00:00.000",
	"QUEUE_URL":             "https://sqs.eu-west-1.amazonaws.com/123456789012/queue",
	"SLOW_QUEUE_URL":        "https://sqs.eu-west-1.amazonaws.com/123456789012/slow",
	"DEAD_LETTER_QUEUE_URL": "https://sqs.eu-west-1.amazonaws.com/123456789012/dead",
	"ON_FAILURE_QUEUE_URL":  "http://127.0.0.1:4566/000000000000/on-failure",
	"SEALING_KEY_ID":        "arn:aws:kms:eu-west-1:123456789012:key/0",
	"API_ID":                "abc123",
	"TOKEN_REQUEST_BURST":   "7",
	"PUBLIC_ADDRESS":        "https://colophon.example/base/",
	"COLOPHON_ENVIRONMENT":  "staging", "ALLOW_LOOPBACK_RECEIVERS": "true", "METRICS_NAMESPACE": "Staging/Colophon",
	"PUBLISH_BURST": "7", "PUBLISHES_PER_MINUTE": "8", "PROJECT_CONTENT_LIMIT": "9",
}

// with is the complete environment with some variables changed; an empty one is unset.
func with(changes map[string]string) func(string) string {
	environment := maps.Clone(complete)
	maps.Copy(environment, changes)
	return func(name string) string { return environment[name] }
}

func TestEachFunctionReadsItsEnvironment(t *testing.T) {
	t.Parallel()
	api, err := runtime.ReadAPI(with(nil))
	if want := (runtime.API{
		Stage: runtime.Staging, ContentTable: "colophon-content", DeliveryTable: "colophon-delivery",
		SealingKey: complete["SEALING_KEY_ID"], PublicAddress: "https://colophon.example/base", AllowsLoopback: true,
		DestinationLimit: ratelimit.PerMinute(10, 1), OriginLimit: ratelimit.PerMinute(40, 10),
		PublishLimit: ratelimit.PerMinute(7, 8), ProjectContentLimit: 9,
		TokenLimit: ratelimit.PerMinute(7, 600), // the one is set, the other is the usual one
	}); err != nil || api != want {
		t.Errorf("got %+v, %v", api, err)
	}
	stream, err := runtime.ReadOutboxStream(with(nil))
	if want := (runtime.OutboxStream{
		Stage: runtime.Staging, DeliveryStream: complete["DELIVERY_STREAM_ARN"],
		QueueURL: complete["QUEUE_URL"], OnFailureQueue: complete["ON_FAILURE_QUEUE_URL"], Namespace: "Staging/Colophon",
	}); err != nil || stream != want {
		t.Errorf("got %+v, %v", stream, err)
	}
	deliver, err := runtime.ReadDeliver(with(nil))
	if want := (runtime.Deliver{
		Stage: runtime.Staging, DeliveryTable: "colophon-delivery", QueueURL: complete["QUEUE_URL"], SlowQueue: complete["SLOW_QUEUE_URL"],
		DeadLetterQueue: complete["DEAD_LETTER_QUEUE_URL"], SealingKey: complete["SEALING_KEY_ID"], AllowsLoopback: true, Namespace: "Staging/Colophon",
		APIID: "abc123", PublicAddress: "https://colophon.example/base",
	}); err != nil || deliver != want {
		t.Errorf("got %+v, %v", deliver, err)
	}
	sweep, err := runtime.ReadSweep(with(nil))
	if want := (runtime.Sweep{
		Stage: runtime.Staging, DeliveryTable: "colophon-delivery", QueueURL: complete["QUEUE_URL"], Namespace: "Staging/Colophon",
	}); err != nil || sweep != want {
		t.Errorf("got %+v, %v", sweep, err)
	}
}

func TestLimitsOfSendsByHandAreRead(t *testing.T) {
	t.Parallel()
	api, err := runtime.ReadAPI(with(map[string]string{
		"DESTINATION_SEND_BURST": "3", "DESTINATION_SENDS_PER_MINUTE": "2", "ORIGIN_SEND_BURST": "7", "ORIGIN_SENDS_PER_MINUTE": "60",
	}))
	if err != nil || api.DestinationLimit != ratelimit.PerMinute(3, 2) || api.OriginLimit != ratelimit.PerMinute(7, 60) {
		t.Errorf("got %+v, %v", api, err)
	}
}

func TestWhatIsNotSaidIsTheStrictest(t *testing.T) {
	t.Parallel()
	deliver, err := runtime.ReadDeliver(with(map[string]string{
		"COLOPHON_ENVIRONMENT": "", "ALLOW_LOOPBACK_RECEIVERS": "", "METRICS_NAMESPACE": "",
	}))
	if err != nil || deliver.Stage != runtime.Production || deliver.AllowsLoopback || deliver.Namespace != "Colophon" {
		t.Errorf("got %+v, %v", deliver, err)
	}
	api, err := runtime.ReadAPI(with(map[string]string{"PUBLIC_ADDRESS": ""}))
	if err != nil || api.PublicAddress != "" {
		t.Errorf("got %+v, %v", api, err)
	}
}

func TestAFunctionWithAWrongEnvironmentDoesNotStartAndSaysAllThatIsWrong(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		read    func(func(string) string) error
		changes map[string]string
		says    []string
	}{
		{"api without anything", api, map[string]string{"CONTENT_TABLE": "", "DELIVERY_TABLE": "", "SEALING_KEY_ID": ""},
			[]string{"CONTENT_TABLE is missing", "DELIVERY_TABLE is missing", "SEALING_KEY_ID is missing"}},
		{"api, limits that allow nothing or are no numbers", api, map[string]string{"DESTINATION_SEND_BURST": "0", "ORIGIN_SENDS_PER_MINUTE": "many"},
			[]string{"DESTINATION_SEND_BURST is not a whole number from 1", "ORIGIN_SENDS_PER_MINUTE is not a whole number from 1"}},
		{"api, production, loopback", api, map[string]string{"COLOPHON_ENVIRONMENT": "production"},
			[]string{"ALLOW_LOOPBACK_RECEIVERS is true, which production refuses", "AllowLoopbackReceivers"}},
		{"deliver, production, loopback", deliver, map[string]string{"COLOPHON_ENVIRONMENT": "production"}, []string{"which production refuses"}},
		{"deliver, no stage, loopback", deliver, map[string]string{"COLOPHON_ENVIRONMENT": ""}, []string{"which production refuses"}},
		{"an unknown stage", deliver, map[string]string{"COLOPHON_ENVIRONMENT": "prod"},
			[]string{"COLOPHON_ENVIRONMENT is neither", "which production refuses"}},
		{"loopback neither way", api, map[string]string{"ALLOW_LOOPBACK_RECEIVERS": "yes"}, []string{"neither true nor false"}},
		{"a limit of nothing", api, map[string]string{"TOKEN_REQUEST_BURST": "0"}, []string{"TOKEN_REQUEST_BURST is not a whole number"}},
		{"a limit in words", api, map[string]string{"TOKEN_REQUESTS_PER_MINUTE": "many"}, []string{"TOKEN_REQUESTS_PER_MINUTE is not a whole number"}},
		{"a public address without a scheme", api, map[string]string{"PUBLIC_ADDRESS": "colophon.example"}, []string{"PUBLIC_ADDRESS is not"}},
		{"a public address with a query", api, map[string]string{"PUBLIC_ADDRESS": "https://colophon.example?a"}, []string{"PUBLIC_ADDRESS is not"}},
		{"a public address with a password", api, map[string]string{"PUBLIC_ADDRESS": "https://a:b@colophon.example"}, []string{"PUBLIC_ADDRESS is not"}},
		{"api, production, plain HTTP", api, map[string]string{"COLOPHON_ENVIRONMENT": "", "ALLOW_LOOPBACK_RECEIVERS": "", "PUBLIC_ADDRESS": "http://colophon.example"},
			[]string{"PUBLIC_ADDRESS begins with http://, which production refuses"}},
		{"api, production, plain HTTP in capitals", api, map[string]string{"COLOPHON_ENVIRONMENT": "production", "ALLOW_LOOPBACK_RECEIVERS": "", "PUBLIC_ADDRESS": "HTTP://colophon.example"},
			[]string{"PUBLIC_ADDRESS begins with http://, which production refuses"}},
		{"deliver without queues", deliver, map[string]string{"QUEUE_URL": "", "SLOW_QUEUE_URL": "", "DEAD_LETTER_QUEUE_URL": "dead"},
			[]string{": QUEUE_URL is missing", "SLOW_QUEUE_URL is missing", "DEAD_LETTER_QUEUE_URL is not an address"}},
		{"deliver without a key and a table", deliver, map[string]string{"SEALING_KEY_ID": "", "DELIVERY_TABLE": ""},
			[]string{"SEALING_KEY_ID is missing", "DELIVERY_TABLE is missing"}},
		{"outbox-stream without queues", outboxStream, map[string]string{"QUEUE_URL": "", "ON_FAILURE_QUEUE_URL": ""},
			[]string{": QUEUE_URL is missing", "ON_FAILURE_QUEUE_URL is missing"}},
		{"outbox-stream without table and stream", outboxStream, map[string]string{"DELIVERY_TABLE": "", "DELIVERY_STREAM_ARN": ""},
			[]string{"DELIVERY_TABLE is missing", "DELIVERY_STREAM_ARN is missing"}},
		{"outbox-stream with another table's stream", outboxStream, map[string]string{"DELIVERY_TABLE": "colophon-deliver"},
			[]string{"DELIVERY_STREAM_ARN is not a stream of the table that DELIVERY_TABLE names: set the stack's parameters DeliveryStreamArn"}},
		{"sweep without table and queue", sweep, map[string]string{"DELIVERY_TABLE": "", "QUEUE_URL": ""},
			[]string{"DELIVERY_TABLE is missing", "QUEUE_URL is missing"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			err := test.read(with(test.changes))
			if err == nil {
				t.Fatal("it starts")
			}
			for _, part := range test.says {
				if strings.Count(err.Error(), part) != 1 {
					t.Errorf("it says %q, and not %q once", err, part)
				}
			}
			if n := strings.Count(err.Error(), "; ") + 1; n != len(test.says) && !strings.Contains(test.name, "loopback") {
				t.Errorf("it says %d things: %v", n, err)
			}
		})
	}
}

func api(getenv func(string) string) error     { _, err := runtime.ReadAPI(getenv); return err }
func deliver(getenv func(string) string) error { _, err := runtime.ReadDeliver(getenv); return err }
func outboxStream(getenv func(string) string) error {
	_, err := runtime.ReadOutboxStream(getenv)
	return err
}
func sweep(getenv func(string) string) error { _, err := runtime.ReadSweep(getenv); return err }
