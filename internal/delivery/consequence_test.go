package delivery_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"colophon/internal/delivery"
	"colophon/internal/failure"
)

func TestWhatFollowsFromACallToTheTableThatFailed(t *testing.T) {
	t.Parallel()
	keep := func(wait time.Duration) delivery.Disposition { return delivery.Keep{For: wait} }
	refused := errors.New("AccessDeniedException")
	for name, row := range map[string]struct {
		err             error
		read            bool
		receives, moved int
		end             delivery.Disposition
		report, ours    bool
	}{
		"moved: decide again":                           {err: failure.ErrMoved, receives: 1, moved: 1},
		"moved, and again: a second":                    {err: failure.ErrMoved, receives: 1, moved: 2, end: keep(time.Second)},
		"moved for the fiftieth time: a second":         {err: failure.ErrMoved, receives: 50, moved: 2, end: keep(time.Second)},
		"a conflict: a second":                          {err: failure.ErrBusy, receives: 1, end: keep(time.Second)},
		"a conflict, at the fiftieth receive: a second": {err: failure.ErrBusy, receives: 50, end: keep(time.Second)},
		"unknown: a second":                             {err: failure.ErrUnknown, receives: 50, end: keep(time.Second)},
		"throttled: a second":                           {err: failure.ErrThrottled, receives: 1, end: keep(time.Second)},
		"throttled again: two":                          {err: failure.ErrThrottled, receives: 2, end: keep(2 * time.Second)},
		"throttled a third time: four, and an event":    {err: failure.ErrThrottled, receives: 3, end: keep(4 * time.Second), report: true},
		"throttled a fifth time: sixteen":               {err: failure.ErrThrottled, receives: 5, end: keep(16 * time.Second), report: true},
		"throttled a sixth time: thirty":                {err: failure.ErrThrottled, receives: 6, end: keep(30 * time.Second), report: true},
		"throttled a hundredth time: thirty":            {err: failure.ErrThrottled, receives: 100, end: keep(30 * time.Second), report: true},
		"a fault of our own: counted":                   {err: refused, receives: 1, ours: true},
		"a read that got no answer: an event":           {err: failure.ErrUnavailable, read: true, receives: 1, end: keep(0), report: true},
		"a read on a write's way: the same":             {err: failure.ErrUnavailable, receives: 1, end: keep(0), report: true},
		"a read that was refused: an event":             {err: refused, read: true, receives: 1, end: keep(0), report: true},
		"a throttled read: a second":                    {err: failure.ErrThrottled, read: true, receives: 1, end: keep(time.Second)},
		"a throttled read, third time: four":            {err: failure.ErrThrottled, read: true, receives: 3, end: keep(4 * time.Second), report: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := fmt.Errorf("claim slot: %w", row.err)
			got := delivery.AfterFailedWrite(err, row.receives, row.moved)
			if row.read {
				got = delivery.AfterFailedRead(err, row.receives)
			}
			want := delivery.Consequence{Err: err, End: row.end, Report: row.report, Ours: row.ours}
			if got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

// shortOfUnits refuses what deliver writes first.
type shortOfUnits struct {
	delivery.Slots
	refuse error
}

func (s shortOfUnits) Claim(context.Context, delivery.Destination, delivery.Slot, delivery.Holder) (delivery.Slot, error) {
	return delivery.Slot{}, s.refuse
}

func TestAMessageWaitsLongerEachTimeForATableShortOfUnits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish()
	short := w.worker(func(c *delivery.Config) { c.Slots = shortOfUnits{c.Slots, failure.ErrThrottled} })
	const receives = 100 // the queues' maxReceiveCount
	var all time.Duration
	for n := 1; n <= receives; n++ {
		ring := w.ring(1)
		ring.Receives = n
		end, ok := short.Answer(t.Context(), ring).(delivery.Keep)
		if !ok || end.For < time.Second || end.For > 30*time.Second {
			t.Fatalf("receive %d ends as %#v", n, end)
		}
		all += end.For
		w.mu.Lock()
		if events := len(w.events); events != max(n-2, 0) {
			t.Fatalf("%d events after %d receives", events, n)
		}
		w.mu.Unlock()
	}
	if all.Round(time.Minute) != 48*time.Minute {
		t.Errorf("%d receives last %v", receives, all)
	}
	for _, e := range w.events {
		if e.Kind != delivery.EventTable || !errors.Is(e.Err, failure.ErrThrottled) || e.Counted {
			t.Fatalf("event %+v", e)
		}
	}
	if d := w.stands(1, delivery.Queued, ""); d.Tries != 0 || d.Ours.Count != 0 {
		t.Errorf("tries %d, faults of our own %d", d.Tries, d.Ours.Count)
	}
	// The shortage ends, and so does the wait: no other queue was in between.
	ring := w.ring(1)
	ring.Receives = receives
	if end := w.worker().Answer(t.Context(), ring); end != (delivery.Done{}) {
		t.Errorf("ends as %#v", end)
	}
	w.stands(1, delivery.Delivered, "")
}

type deaf struct {
	delivery.Reader
	fail error
}

func (r deaf) Read(context.Context, delivery.Key) (delivery.Reading, error) {
	return delivery.Reading{}, r.fail
}

type counter map[string]float64

func (c counter) Emit(metrics map[string]float64) {
	for name, n := range metrics {
		c[name] += n
	}
}

func TestTheMetricOfOurOwnFaultsFollowsWhatIsCounted(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change       func(w *world, c *delivery.Config)
		receives     int
		ours, failed float64
		counted      int64 // on the delivery
	}{
		"a read that got no answer": {func(_ *world, c *delivery.Config) {
			c.Reader = deaf{c.Reader, fmt.Errorf("query: %w", failure.ErrUnavailable)}
		}, 1, 0, 1, 0},
		"a table short of units, for a moment": {func(_ *world, c *delivery.Config) {
			c.Slots = shortOfUnits{c.Slots, failure.ErrThrottled}
		}, 2, 0, 0, 0},
		"a table short of units, for longer": {func(_ *world, c *delivery.Config) {
			c.Slots = shortOfUnits{c.Slots, failure.ErrThrottled}
		}, 3, 0, 1, 0},
		"a conflict": {func(_ *world, c *delivery.Config) {
			c.Slots = shortOfUnits{c.Slots, failure.ErrBusy}
		}, 9, 0, 0, 0},
		"a claim that is not allowed": {func(_ *world, c *delivery.Config) {
			c.Slots = shortOfUnits{c.Slots, errors.New("AccessDeniedException")}
		}, 1, 1, 0, 1},
		"a key that does not answer": {func(w *world, _ *delivery.Config) {
			w.open = errors.New("KMSInternalException")
		}, 1, 1, 0, 1},
		"a fault that could not be counted": {func(w *world, c *delivery.Config) {
			w.open = errors.New("KMSInternalException")
			c.Endings = uncountable{c.Endings}
		}, 1, 0, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.publish()
			metrics, log := counter{}, bytes.Buffer{}
			worker := w.worker(func(c *delivery.Config) {
				row.change(w, c)
				c.Observe = delivery.Report(slog.New(slog.NewTextHandler(&log, nil)), metrics)
			})
			ring := w.ring(1)
			ring.Receives = row.receives
			worker.Answer(t.Context(), ring)
			if metrics[delivery.FigureOurFaults] != row.ours || metrics[delivery.FigureTableFailures] != row.failed {
				t.Errorf("metrics %v", metrics)
			}
			if d := w.delivery(1); d.Ours.Count != row.counted || d.Tries != 0 {
				t.Errorf("counted %+v, tries %d", d.Ours, d.Tries)
			}
			if said := strings.Contains(log.String(), "doing="); said != (row.ours+row.failed > 0) {
				t.Errorf("the log says %q", log.String())
			}
		})
	}
}

type uncountable struct{ delivery.Endings }

func (uncountable) CountOurs(context.Context, delivery.Delivery) error { return failure.ErrThrottled }

// givenBackLate refuses so many give-backs.
type givenBackLate struct {
	delivery.Slots
	refusals *[]error
}

func (g givenBackLate) GiveBack(ctx context.Context, d delivery.Destination, token string) error {
	if left := *g.refusals; len(left) > 0 {
		*g.refusals = left[1:]
		return fmt.Errorf("give slot back: %w", left[0])
	}
	return g.Slots.GiveBack(ctx, d, token)
}

func TestALeaseThatCannotBeGivenBackAtOnceIsGivenBackWhileItLasts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish()
	w.open = errors.New("key not available")
	refusals := []error{failure.ErrBusy, failure.ErrThrottled, failure.ErrUnknown, failure.ErrBusy, failure.ErrBusy}
	worker := w.worker(func(c *delivery.Config) {
		c.Slots = givenBackLate{c.Slots, &refusals}
		c.Sleep = func(_ context.Context, d time.Duration) error { w.pass(d); return nil }
	})
	if end := worker.Answer(t.Context(), w.ring(1)); end != (delivery.Done{}) {
		t.Errorf("ends as %#v", end)
	}
	if w.slot().Holder != nil || len(refusals) != 0 {
		t.Fatalf("held by %+v with %d refusals to come", w.slot().Holder, len(refusals))
	}
	// The key answers again: the one request is the one try.
	w.mu.Lock()
	w.open = nil
	w.mu.Unlock()
	w.answer(1)
	d := w.stands(1, delivery.Delivered, "")
	if d.Tries != 1 || d.Lost != 0 || len(d.Attempts) != 1 || d.Attempts[0].Received != delivery.Answered || len(w.sendings()) != 1 {
		t.Errorf("tries %d, lost %d, attempts %+v, requests %v", d.Tries, d.Lost, d.Attempts, w.sendings())
	}
}

func TestALeaseIsNotGivenBackForLongerThanTheInvocationLasts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish()
	w.open = errors.New("key not available")
	began := w.clock()
	worker := w.worker(func(c *delivery.Config) {
		c.Slots = neverGivenBack{c.Slots}
		c.Sleep = func(_ context.Context, d time.Duration) error { w.pass(d); return nil }
		c.Left = func(context.Context) time.Duration { return began.Add(delivery.InvocationFloor).Sub(w.clock()) }
	})
	worker.Answer(t.Context(), w.ring(1))
	if took := w.clock().Sub(began); took > delivery.InvocationFloor-time.Second {
		t.Errorf("took %v of %v", took, delivery.InvocationFloor)
	}
}
