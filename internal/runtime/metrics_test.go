package runtime_test

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"colophon/internal/runtime"
)

func newMetrics(t *testing.T, w *bytes.Buffer) *runtime.Metrics {
	t.Helper()
	m, err := runtime.NewMetrics(runtime.MetricsConfig{
		Writer: w, Namespace: "Colophon", Clock: func() time.Time { return time.UnixMilli(1795995000123) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestFiguresAreOneLineOfTheEmbeddedMetricFormat(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	newMetrics(t, &out).Emit(map[string]float64{"Delivered": 1, "AttemptMilliseconds": 12.5, "OldestDueSeconds": 0})

	if strings.Count(out.String(), "\n") != 1 || !strings.HasSuffix(out.String(), "}\n") {
		t.Fatalf("got %q", out.String())
	}
	var got, want any
	decode(t, out.Bytes(), &got)
	decode(t, []byte(`{
		"_aws": {
			"Timestamp": 1795995000123,
			"CloudWatchMetrics": [{
				"Namespace": "Colophon", "Dimensions": [[]],
				"Metrics": [
					{"Name": "AttemptMilliseconds", "Unit": "Milliseconds"},
					{"Name": "Delivered", "Unit": "Count"},
					{"Name": "OldestDueSeconds", "Unit": "Seconds"}
				]
			}]
		},
		"Delivered": 1, "AttemptMilliseconds": 12.5, "OldestDueSeconds": 0
	}`), &want)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestNoFiguresAreNoLine(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	newMetrics(t, &out).Emit(nil)
	if out.Len() > 0 {
		t.Errorf("got %q", out.String())
	}
}

func TestAFigureThatIsNoNumberIsSaidToBeMissing(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	newMetrics(t, &out).Emit(map[string]float64{"Delivered": math.NaN()})
	var line struct{ Level, Message string }
	decode(t, out.Bytes(), &line)
	if line.Level != "ERROR" || !strings.Contains(line.Message, "metrics") {
		t.Errorf("got %q", out.String())
	}
}

func TestLinesOfConcurrentFiguresStayWhole(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer // not safe by itself: the race detector sees it too
	m := newMetrics(t, &out)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { m.Emit(map[string]float64{"Retries": 1}) })
	}
	all.Wait()
	lines := bytes.Split(bytes.TrimSuffix(out.Bytes(), []byte("\n")), []byte("\n"))
	if len(lines) != 50 {
		t.Errorf("got %d lines", len(lines))
	}
	for _, line := range lines {
		var any map[string]any
		decode(t, line, &any)
	}
}

func TestMetricsNeedAllTheyWriteWith(t *testing.T) {
	t.Parallel()
	for _, c := range []runtime.MetricsConfig{
		{Namespace: "Colophon", Clock: time.Now}, {Writer: &bytes.Buffer{}, Clock: time.Now}, {Writer: &bytes.Buffer{}, Namespace: "Colophon"},
	} {
		if _, err := runtime.NewMetrics(c); err == nil {
			t.Errorf("%+v makes metrics", c)
		}
	}
}

func decode(t *testing.T, text []byte, to any) {
	t.Helper()
	if err := json.Unmarshal(text, to); err != nil {
		t.Fatalf("%v: %q", err, text)
	}
}
