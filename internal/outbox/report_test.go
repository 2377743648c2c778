package outbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"

	"colophon/internal/outbox"
)

// emitted is what was emitted last.
type emitted map[string]float64

func (e *emitted) Emit(figures map[string]float64) { *e = figures }

func TestASweepThatSawNotAllDoesNotSayThatNothingIsDue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		swept outbox.Swept
		says  bool
	}{
		"idle":                              {outbox.Swept{Complete: true}, true},
		"out of time":                       {outbox.Swept{}, false},
		"a shard was not read":              {outbox.Swept{Complete: true, Faults: 1}, false},
		"a shard was not read, one overdue": {outbox.Swept{Complete: true, Faults: 1, OldestDue: time.Minute}, true},
		"out of time, one overdue":          {outbox.Swept{OldestDue: time.Minute}, true},
	} {
		var figures emitted
		outbox.ReportSwept(slog.New(slog.DiscardHandler), &figures)(t.Context(), c.swept)
		if value, says := figures["OldestDueSeconds"]; says != c.says || value != c.swept.OldestDue.Seconds() {
			t.Errorf("%s: %v", name, figures)
		}
	}
}

func TestEachBatchAndEachSweepIsOneStructuredLine(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&lines, nil))
	var ignored emitted
	read := func() map[string]any {
		t.Helper()
		line := map[string]any{}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("%s: %v", lines.Bytes(), err)
		}
		lines.Reset()
		return line
	}
	expect := func(line map[string]any, want map[string]any) {
		t.Helper()
		for name, value := range want {
			if line[name] != value {
				t.Errorf("%s is %v, want %v", name, line[name], value)
			}
		}
	}
	forwarded, swept := outbox.ReportForwarded(log, &ignored), outbox.ReportSwept(log, &ignored)
	ctx := context.Background()

	forwarded(ctx, outbox.Forwarded{Trace: "1-2-3", Records: 5, Sent: 2, Silent: 1, SetAside: 2})
	expect(read(), map[string]any{
		"level": "WARN", "msg": "forwarded", "trace": "1-2-3", "records": 5., "sent": 2., "silent": 1., "setAside": 2., "left": 0.,
	})
	forwarded(ctx, outbox.Forwarded{Records: 5, Sent: 2, Left: 3, Cause: errors.New("down")})
	expect(read(), map[string]any{"level": "ERROR", "left": 3., "error": "down"})
	swept(ctx, outbox.Swept{Trace: "1-2-3", Queries: 64, Sent: 2, OldestDue: 90 * time.Second, Complete: true, Took: 40 * time.Millisecond})
	expect(read(), map[string]any{
		"level": "INFO", "msg": "swept", "trace": "1-2-3", "queries": 64., "sent": 2., "oldestDueSeconds": 90., "complete": true, "milliseconds": 40.,
	})
	swept(ctx, outbox.Swept{Unreadable: 1, Stray: "P#p1 META", Faults: 1, Cause: errors.New("down")})
	expect(read(), map[string]any{"level": "ERROR", "unreadable": 1., "stray": "P#p1 META", "faults": 1., "error": "down"})
}
