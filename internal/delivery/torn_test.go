package delivery_test

import (
	"context"
	"testing"
	"time"

	"colophon/internal/delivery"
)

// torn answers with a reading that mixes before and after until so much time has
// passed, and with the whole one then.
type torn struct {
	delivery.Reader
	part, whole delivery.Reading
	slept       time.Duration
	wholeAfter  time.Duration
}

func (r *torn) Read(context.Context, delivery.Key) (delivery.Reading, error) {
	if r.slept < r.wholeAfter {
		return r.part, nil
	}
	return r.whole, nil
}

// claims counts claims, and lets none through.
type claims struct {
	delivery.Slots
	n int
}

func (c *claims) Claim(context.Context, delivery.Destination, delivery.Slot, delivery.Holder) (delivery.Slot, error) {
	c.n++
	return delivery.Slot{}, delivery.ErrBusy
}

// sealed opens whatever it is asked to.
type sealed struct{ delivery.Sender }

func (sealed) Open(context.Context, delivery.Destination, delivery.Settings) (delivery.Opened, error) {
	return delivery.Opened{}, nil
}

func TestATransactionThatIsSeenInPartIsWaitedFor(t *testing.T) {
	t.Parallel()
	// Release 5 was just delivered: the slot says so already, the delivery not yet.
	freed := slot(sentThrough(5), func(s *delivery.Slot) { s.LastRelease, s.LastRev = 5, 1 })
	ended := queued(5, is(delivery.Delivered), func(d *delivery.Delivery) { d.Rev = 1 })
	for name, row := range map[string]struct {
		wholeAfter time.Duration
		claims     int
	}{
		"whole at once":             {0, 0},
		"whole after a second":      {time.Second, 0},
		"whole after most of it":    {delivery.TornTime * 9 / 10, 0},
		"never whole: it is damage": {time.Hour, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reader := &torn{
				part:       delivery.Reading{Key: key(5), Slot: freed, Newest: queued(5), Rang: queued(5)},
				whole:      delivery.Reading{Key: key(5), Slot: freed, Newest: ended, Rang: ended},
				wholeAfter: row.wholeAfter,
			}
			claimed := &claims{}
			w := &delivery.Worker{Config: delivery.Config{
				Reader: reader, Slots: claimed, Sender: sealed{}, Observe: func(context.Context, delivery.Event) {},
				Clock: func() time.Time { return now }, Token: func() string { return "t" },
				Sleep:  func(_ context.Context, d time.Duration) error { reader.slept += d; return nil },
				Beside: func(a, b func()) { a(); b() }, Left: func(context.Context) time.Duration { return delivery.FunctionTime },
			}}
			w.Answer(t.Context(), delivery.Ring{Key: key(5), Receives: 1})
			if claimed.n != row.claims {
				t.Errorf("claimed %d times, want %d", claimed.n, row.claims)
			}
			if reader.slept > delivery.TornTime {
				t.Errorf("waited for %v", reader.slept)
			}
		})
	}
}
