package delivery_test

import (
	"context"
	"testing"
	"time"

	"colophon/internal/delivery"
	"colophon/internal/store"
)

func TestAClockIsOutOfBoundsOnlyWhereItIsCertain(t *testing.T) {
	t.Parallel()
	const out, vague, right = "out of bounds", "vague", "right"
	for _, row := range []struct {
		what  string
		off   time.Duration // of this host's clock
		into  time.Duration // how far the table's second had gone when it wrote its date
		there time.Duration // the request's way
		back  time.Duration // the response's way
		set   time.Duration // the clock is set by so much between the two
		want  string
	}{
		{what: "a clock that is right", want: right},
		{what: "a clock that is right, at a second's end", into: 999 * time.Millisecond, want: right},
		{what: "a second ahead", off: time.Second, into: 500 * time.Millisecond, want: right},
		{what: "3 s ahead, at a second's beginning", off: 3 * time.Second, want: right},
		{what: "3 s behind, at a second's end", off: -3 * time.Second, into: 999 * time.Millisecond, want: right},
		{what: "3.9 s ahead, at a second's beginning: it may be 2.9 s", off: 3900 * time.Millisecond, want: right},
		{what: "4.1 s ahead, at any moment of a second", off: 4100 * time.Millisecond, want: out},
		{what: "4.1 s behind, at any moment of a second", off: -4100 * time.Millisecond, into: 999 * time.Millisecond, want: out},
		{what: "minutes ahead", off: 5 * time.Minute, want: out},
		{what: "minutes behind", off: -5 * time.Minute, want: out},
		{what: "a slow call is no offset", there: time.Second, back: time.Second, want: right},
		{what: "a slow call of a host that is far off", off: 8 * time.Second, there: time.Second, back: time.Second, want: out},
		{what: "frozen on the way back, for minutes", back: 5 * time.Minute, want: vague},
		{what: "frozen on the way there, for minutes", there: 5 * time.Minute, want: vague},
		{what: "frozen, and far off", off: 20 * time.Second, back: 20 * time.Second, want: vague},
		{what: "set ahead between request and response", set: 20 * time.Second, want: vague},
		{what: "set back between request and response", set: -20 * time.Second, want: vague},
	} {
		t.Run(row.what, func(t *testing.T) {
			t.Parallel()
			table := now.Add(row.into)
			asked, answered := table.Add(row.off-row.there), table.Add(row.off+row.back+row.set)
			o := delivery.MeasureClock(table.Truncate(time.Second), asked, answered)
			got := right
			switch {
			case o.OutOfBounds():
				got = out
			case o.Vague():
				got = vague
			}
			if got != row.want {
				t.Errorf("%s, want %s: %+v", got, row.want, o)
			}
			if offset := -row.off; row.set == 0 && (offset < o.Least || offset > o.Most) {
				t.Errorf("%v is not in %+v", offset, o)
			}
		})
	}
	if o := (delivery.ClockOffset{}); o.OutOfBounds() || o.Vague() {
		t.Error("no date, and it is judged")
	}
}

// offsets is a reader whose host's clock is off as it is said, read by read; the
// last for ever.
type offsets struct {
	*store.Deliveries
	of    []delivery.ClockOffset
	reads int
}

func (r *offsets) next() delivery.ClockOffset {
	o := r.of[min(r.reads, len(r.of)-1)]
	r.reads++
	return o
}

func (r *offsets) Read(ctx context.Context, k delivery.Key) (delivery.Reading, error) {
	reading, err := r.Deliveries.Read(ctx, k)
	reading.Clock = r.next()
	return reading, err
}

func (r *offsets) ReadTarget(ctx context.Context, d delivery.Destination) (delivery.Target, error) {
	target, err := r.Deliveries.ReadTarget(ctx, d)
	target.Clock = r.next()
	return target, err
}

var (
	sound = delivery.ClockOffset{Known: true, Least: -500 * time.Millisecond, Most: 600 * time.Millisecond}
	ahead = delivery.ClockOffset{Known: true, Least: -21 * time.Second, Most: -20 * time.Second}
	froze = delivery.ClockOffset{Known: true, Least: -5 * time.Minute, Most: time.Second}
)

// hosted is a worker on a host with these offsets.
func (w *world) hosted(of ...delivery.ClockOffset) (*delivery.Worker, *offsets) {
	r := &offsets{Deliveries: w.store, of: of}
	return w.worker(func(c *delivery.Config) { c.Reader, c.Tests = r, r }), r
}

func (w *world) clockEvents() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events {
		if e.Kind == delivery.EventClock && e.Clock == ahead {
			n++
		}
	}
	return n
}

func TestAHostWhoseClockIsOffNeitherReclaimsNorClaims(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish()
	off, reader := w.hosted(ahead)
	if end := off.Answer(t.Context(), w.ring(1)); end != (delivery.Keep{For: delivery.ClockWait}) {
		t.Errorf("a delivery that is due: %#v", end)
	}
	if reader.reads != 2 || w.clockEvents() != 1 || len(w.sendings()) != 0 {
		t.Errorf("%d reads, %d events, sent: %v", reader.reads, w.clockEvents(), w.sendings())
	}
	// A live lease of another host, which looks over to this one.
	w.answering(func(delivery.Sending) delivery.Outcome {
		before := w.slot()
		w.pass(delivery.LeaseTime + 2*delivery.ClockAllowance)
		if end := off.Answer(t.Context(), w.ring(1)); end != (delivery.Keep{For: delivery.ClockWait}) {
			t.Errorf("a slot that is held: %#v", end)
		}
		if after := w.slot(); after.Version != before.Version {
			t.Errorf("the slot moved: %+v", after)
		}
		w.pass(-delivery.LeaseTime - 2*delivery.ClockAllowance)
		return answers(204)
	})
	if end := w.answer(1); end != (delivery.Done{}) {
		t.Errorf("a host whose clock is right: %#v", end)
	}
	w.stands(1, delivery.Delivered, "")
}

func TestAnOffsetIsBelievedAfterASecondReadOnly(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		of   []delivery.ClockOffset
		want delivery.Disposition
		sent int
	}{
		"off, then right":      {[]delivery.ClockOffset{ahead, sound}, delivery.Done{}, 1},
		"frozen, then right":   {[]delivery.ClockOffset{froze, sound}, delivery.Done{}, 1},
		"frozen twice":         {[]delivery.ClockOffset{froze, froze}, delivery.Keep{For: time.Second}, 0},
		"frozen, then off":     {[]delivery.ClockOffset{froze, ahead}, delivery.Keep{For: delivery.ClockWait}, 0},
		"no date in responses": {[]delivery.ClockOffset{{}}, delivery.Done{}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.publish()
			worker, _ := w.hosted(row.of...)
			if end := worker.Answer(t.Context(), w.ring(1)); end != row.want {
				t.Errorf("%#v, want %#v", end, row.want)
			}
			if got := len(w.sendings()); got != row.sent {
				t.Errorf("%d requests, want %d", got, row.sent)
			}
		})
	}
}

func TestATestSendIsLeftToAHostWhoseClockIsRight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asked, err := w.destinations.SendTest(t.Context(), w.project, w.dest.ID)
	must(t, err)
	ring := delivery.TestRing{Destination: w.dest, ID: asked.ID, Receives: 1}
	w.pass(delivery.TestWaits) // to a host that is ahead it has waited too long
	off, _ := w.hosted(ahead)
	if end := off.AnswerTest(t.Context(), ring); end != (delivery.Keep{For: delivery.ClockWait}) || w.clockEvents() != 1 {
		t.Errorf("%#v, %d events", end, w.clockEvents())
	}
	w.pass(-delivery.TestWaits)
	if end := w.worker().AnswerTest(t.Context(), ring); end != (delivery.Done{}) || len(w.sendings()) != 1 {
		t.Errorf("%#v, sent: %v", end, w.sendings())
	}
}
