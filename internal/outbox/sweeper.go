package outbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"colophon/internal/clock"
	"colophon/internal/delivery"
	"colophon/internal/store"
)

const (
	endTime   = 30 * time.Second // of an invocation is kept: nothing new is taken up in it
	sweepers  = 8                // pages that are worked on side by side
	sweepPage = 50               // entries of a shard, before the other shards have their turn
)

// Index is where what is due is found.
type Index interface {
	// DueDeliveries reads a page of a shard's entries due before an instant.
	DueDeliveries(ctx context.Context, shard int, before time.Time, after store.Item, limit int32) (store.DuePage, error)
	// MoveOn moves an entry to next; false where it is not as it was seen.
	MoveOn(ctx context.Context, d store.Due, next func(sweeps int64) time.Time) (store.Swept, bool, error)
}

// SweeperConfig is what a Sweeper needs.
type SweeperConfig struct {
	Index   Index
	Queue   *Sender
	Clock   func() time.Time
	Random  io.Reader                    // of trace ids
	Observe func(context.Context, Swept) // is told of each sweep
	Beside  func(a, b func())            // runs both, returns when both have ended; nil: on two goroutines
}

func (c SweeperConfig) validate() error {
	if c.Index == nil || c.Queue == nil || c.Clock == nil || c.Random == nil || c.Observe == nil {
		return errors.New("outbox: a sweeper's config is not complete")
	}
	return nil
}

// Sweeper rings for deliveries that are due and that nobody rang for.
type Sweeper struct{ SweeperConfig }

// NewSweeper makes a Sweeper.
func NewSweeper(c SweeperConfig) (*Sweeper, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	if c.Beside == nil {
		c.Beside = delivery.Beside
	}
	return &Sweeper{c}, nil
}

// Swept is what a sweep found and did.
type Swept struct {
	Trace      string
	Queries    int           // of the index; the idle cost is their number
	Sent       int           // deliveries moved on and rung for
	Unsent     int           // moved on, but not known to be on the queue: the next sweep that finds them rings again
	First      int           // of those moved on: nothing had been done about them, so the stream's notification is missing or late
	Passed     int           // ended or moved by others since they were seen
	Unreadable int           // entries that name no delivery; moved on, so that they hide no other
	Stray      string        // the first of them: its key
	Faults     int           // steps that failed
	OldestDue  time.Duration // since the most overdue delivery met was due; 0: none
	Complete   bool          // false: time ran out, or the queue took nothing
	Took       time.Duration
	Cause      error // of the first fault
}

// Handle is one sweep over all shards. Each delivery that is due is first moved
// on in the index and then sent: two sweeps at once, and one that is killed, ring
// at most once for what they find, and what was moved but not sent is found again
// when it is due again.
func (s *Sweeper) Handle(ctx context.Context) error {
	began := s.Clock()
	trace, err := traceID(ctx, began, s.Random)
	if err != nil {
		return err
	}
	run := &sweep{Sweeper: s, began: began, report: Swept{Trace: trace}}
	taking, stop := clock.EndingBefore(ctx, endTime)
	defer stop()
	ctx, end := clock.EndingBefore(ctx, reportTime)
	defer end()
	if taking.Err() != nil {
		return fmt.Errorf("outbox: a sweep needs more than %v", endTime)
	}
	run.shards(ctx, taking, stop)
	run.report.Complete = taking.Err() == nil
	run.report.Took = s.Clock().Sub(run.began)
	s.Observe(ctx, run.report)
	if run.report.Faults > 0 {
		return fmt.Errorf("sweep: %d steps failed, the first: %w", run.report.Faults, run.report.Cause)
	}
	return nil
}

// sweep is one sweep under way.
type sweep struct {
	*Sweeper
	began time.Time

	mu     sync.Mutex
	report Swept
}

// place is where a shard's next page begins.
type place struct {
	shard int
	after store.Item
}

// shards works through all shards, a page of each in turn, so that a full one
// holds up no other.
func (s *sweep) shards(ctx, taking context.Context, stop context.CancelFunc) {
	places := make(chan place, store.SweepShards)
	var open sync.WaitGroup
	open.Add(store.SweepShards)
	for shard := range store.SweepShards {
		places <- place{shard: shard}
	}
	go func() {
		open.Wait()
		close(places)
	}()
	s.sideBySide(sweepers, func() {
		for at := range places {
			var next store.Item
			s.guarded(func() { next = s.page(ctx, taking, stop, at) })
			if next != nil && taking.Err() == nil {
				places <- place{shard: at.shard, after: next}
			} else {
				open.Done()
			}
		}
	})
}

func (s *sweep) sideBySide(n int, do func()) {
	if n == 1 {
		do()
		return
	}
	s.Beside(do, func() { s.sideBySide(n-1, do) })
}

// page works on one page and returns where the next begins; nil where there is
// none, or no time for it.
func (s *sweep) page(ctx, taking context.Context, stop context.CancelFunc, at place) store.Item {
	if taking.Err() != nil {
		return nil
	}
	page, err := s.Index.DueDeliveries(ctx, at.shard, s.began, at.after, sweepPage)
	s.count(func(r *Swept) { r.Queries++ })
	if err != nil {
		s.fault(err)
		return nil
	}
	var messages []Message
	for _, due := range page.Due {
		if taking.Err() != nil {
			break
		}
		s.guarded(func() {
			if m, ok := s.moveOn(ctx, due); ok {
				messages = append(messages, m)
			}
		})
	}
	unsent := s.Queue.Send(ctx, messages)
	s.count(func(r *Swept) {
		r.Sent += len(messages) - len(unsent)
		r.Unsent += len(unsent)
	})
	if len(unsent) > 0 {
		s.fault(unsent[0].Err)
		if len(unsent) == len(messages) {
			stop() // a queue that takes nothing: what is not moved on yet is found in a minute
		}
	}
	return page.Last
}

// moveOn moves one entry on, and says what to ring for.
func (s *sweep) moveOn(ctx context.Context, due store.Due) (m Message, ok bool) {
	now := s.Clock()
	swept, moved, err := s.Index.MoveOn(ctx, due, func(sweeps int64) time.Time { return nextSweep(now, sweeps) })
	if err != nil {
		s.fault(err)
		return Message{}, false
	}
	m = Message{Destination: due.Delivery.Destination, Release: due.Delivery.Release, Trace: s.report.Trace}
	readable := m.fault() == ""
	s.count(func(r *Swept) {
		switch {
		case !moved:
			r.Passed++
		case !readable:
			r.Unreadable++
			if r.Stray == "" {
				r.Stray = due.Key.PK + " " + due.Key.SK
			}
		case !swept.TryAt.IsZero():
			r.OldestDue = max(r.OldestDue, now.Sub(swept.TryAt))
		}
		if moved && readable && swept.Untouched {
			r.First++
		}
	})
	return m, moved && readable
}

// nextSweep is when a delivery is swept next, that was swept sweeps times: after
// 2, 4, 8 … minutes, at most an hour. A receiver that is down for a day is not
// looked after each minute.
func nextSweep(now time.Time, sweeps int64) time.Time {
	wait := delivery.SweepDelay
	for ; sweeps > 0 && wait < delivery.LongestSweep; sweeps-- {
		wait *= 2
	}
	return now.Add(min(wait, delivery.LongestSweep))
}

func (s *sweep) count(add func(*Swept)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	add(&s.report)
}

func (s *sweep) fault(err error) {
	s.count(func(r *Swept) {
		r.Faults++
		if r.Cause == nil {
			r.Cause = err
		}
	})
}

// guarded makes a panic a fault of the one entry or page that it was met in: it
// must not hide the others from this sweep and from all that follow.
func (s *sweep) guarded(do func()) {
	defer func() {
		if cause := recover(); cause != nil {
			s.fault(fmt.Errorf("panic: %v", cause))
		}
	}()
	do()
}
