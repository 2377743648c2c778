package outbox_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"colophon/internal/delivery"
	"colophon/internal/enginetest"
	"colophon/internal/function/outboxstream"
	"colophon/internal/function/sweep"
	"colophon/internal/store"
)

// environment is a function's environment as the template and Lambda set it,
// with both engines in the place of AWS.
func environment(t testing.TB, more map[string]string) func(string) string {
	all := map[string]string{
		"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local",
		"AWS_ENDPOINT_URL_SQS": queueServer(), "AWS_ENDPOINT_URL_DYNAMODB": "http://" + enginetest.Shared(t).Address,
		"COLOPHON_ENVIRONMENT": "local", "METRICS_NAMESPACE": "Colophon/test",
	}
	for name, value := range more {
		all[name] = value
	}
	return func(name string) string { return all[name] }
}

// figures reads back what CloudWatch would take out of a function's output.
func figures(t testing.TB, output string) map[string]float64 {
	t.Helper()
	found := map[string]float64{}
	for line := range bytes.Lines([]byte(output)) {
		var document map[string]json.RawMessage
		if err := json.Unmarshal(line, &document); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		var embedded struct {
			CloudWatchMetrics []struct {
				Namespace string
				Metrics   []struct{ Name, Unit string }
			}
		}
		if err := json.Unmarshal(document["_aws"], &embedded); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		for _, directive := range embedded.CloudWatchMetrics {
			if directive.Namespace != "Colophon/test" {
				t.Errorf("namespace %q", directive.Namespace)
			}
			for _, metric := range directive.Metrics {
				var value float64
				if err := json.Unmarshal(document[metric.Name], &value); err != nil {
					t.Errorf("%s: %v", metric.Name, err)
				}
				found[metric.Name] = value
			}
		}
	}
	return found
}

func TestTheSweepFunctionRingsForWhatIsDueAndSaysForHowLongItWas(t *testing.T) {
	t.Parallel()
	w, queue := newWorld(t), newQueue(t, nil)
	var output bytes.Buffer
	sweeper, err := sweep.New(environment(t, map[string]string{
		"DELIVERY_TABLE": w.tables.Delivery, "QUEUE_URL": queue,
	}), &output, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := sweeper.Handle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if f := figures(t, output.String()); len(f) != 3 || f["OldestDueSeconds"] != 0 || f["Swept"] != 0 || f["SweptUnsent"] != 0 {
		t.Errorf("an idle sweep's figures: %v", f)
	}

	w.put(t, key("d1", 6), deliveryItem(time.Now().Add(-time.Hour)))
	w.put(t, key("d1", 7), deliveryItem(time.Now().Add(-delivery.SweepDelay-time.Second)))
	output.Reset()
	if err := sweeper.Handle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := takeMessages(t, queue); !slices.Equal(got, []string{"d1/6", "d1/7"}) {
		t.Errorf("on the queue: %v", got)
	}
	if f := figures(t, output.String()); f["Swept"] != 2 || f["OldestDueSeconds"] < 3600 || f["OldestDueSeconds"] > 3660 {
		t.Errorf("figures: %v", f)
	}
}

func TestTheOutboxStreamFunctionForwardsWhatRings(t *testing.T) {
	t.Parallel()
	w, queue, onFailure := newWorld(t), newQueue(t, nil), newQueue(t, nil)
	var output bytes.Buffer
	forwarder, err := outboxstream.New(environment(t, map[string]string{
		"DELIVERY_TABLE": "deliveries", "DELIVERY_STREAM_ARN": "arn:aws:dynamodb:eu-west-1:000000000000:table/deliveries/stream/1",
		"QUEUE_URL": queue, "ON_FAILURE_QUEUE_URL": onFailure,
	}), &output)
	if err != nil {
		t.Fatal(err)
	}
	w.put(t, key("d1", 6), deliveryItem(start))
	w.put(t, store.Key{PK: "P#p1#D#d1", SK: "R#"}, deliveryItem(start))
	out, err := forwarder.Handle(t.Context(), w.stream(t))
	if err != nil || len(out.BatchItemFailures) > 0 {
		t.Fatalf("%+v, %v", out, err)
	}
	if got := takeMessages(t, queue); !slices.Equal(got, []string{"d1/6"}) {
		t.Errorf("on the queue: %v", got)
	}
	if got := take(t, onFailure); len(got) != 1 {
		t.Errorf("set aside: %v", got)
	}
	if f := figures(t, output.String()); f["Forwarded"] != 1 || f["RecordsSetAside"] != 1 {
		t.Errorf("figures: %v", f)
	}
}

func TestAFunctionWithoutItsEnvironmentDoesNotStart(t *testing.T) {
	t.Parallel()
	for name, getenv := range map[string]func(string) string{
		"nothing":    func(string) string { return "" },
		"one queue":  environment(t, map[string]string{"QUEUE_URL": "http://queue"}),
		"no region":  environment(t, map[string]string{"AWS_REGION": "", "QUEUE_URL": "http://a", "ON_FAILURE_QUEUE_URL": "http://b", "DELIVERY_TABLE": "t", "DELIVERY_STREAM_ARN": "a:table/t/stream/1"}),
		"no address": environment(t, map[string]string{"QUEUE_URL": "queue", "ON_FAILURE_QUEUE_URL": "http://b", "DELIVERY_TABLE": "t", "DELIVERY_STREAM_ARN": "a:table/t/stream/1"}),
	} {
		if _, err := outboxstream.New(getenv, &bytes.Buffer{}); err == nil {
			t.Errorf("%s: outbox-stream starts", name)
		}
		if _, err := sweep.New(getenv, &bytes.Buffer{}, nil); err == nil {
			t.Errorf("%s: sweep starts", name)
		}
	}
}
