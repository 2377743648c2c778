// Package retry is the one loop around what may fail for a moment. The clock and
// the waits are given, so that a test or a simulated world decides them; how long
// and how often is the caller's [Policy].
package retry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"colophon/internal/failure"
)

// Try is a try that failed.
type Try struct {
	Number int           // from 0
	Took   time.Duration // this try
	Total  time.Duration // since the loop was made
}

// Policy says how long to wait after a try that failed, and whether there is
// another one.
type Policy func(t Try) (wait time.Duration, again bool)

// Doubling waits first, then twice as long after each try, at most the longest.
func Doubling(first, longest time.Duration) Policy {
	return func(t Try) (time.Duration, bool) {
		wait := first
		for n := t.Number; n > 0 && wait < longest; n-- {
			wait *= 2
		}
		return min(wait, longest), true
	}
}

// Within makes a policy's tries begin before a time has passed.
func Within(limit time.Duration, p Policy) Policy {
	return func(t Try) (time.Duration, bool) {
		wait, again := p(t)
		return wait, again && t.Total+wait < limit
	}
}

// Times makes a policy end after so many tries.
func Times(most int, p Policy) Policy {
	return func(t Try) (time.Duration, bool) {
		wait, again := p(t)
		return wait, again && t.Number+1 < most
	}
}

// Jittered makes each wait longer by a random part of it; random is from [0, 1).
func Jittered(random func() float64, p Policy) Policy {
	return func(t Try) (time.Duration, bool) {
		wait, again := p(t)
		return wait + time.Duration(float64(wait)*random()), again
	}
}

// Clock tells the time and waits.
type Clock struct {
	Now func() time.Time
	// Sleep waits, or returns the context's error where that ends first.
	Sleep func(ctx context.Context, d time.Duration) error
}

// Loop counts the tries of one operation.
type Loop struct {
	clock  Clock
	policy Policy
	number int
	first  time.Time
	begun  time.Time // of the try under way
}

// New begins a loop, and with it the first try.
func New(c Clock, p Policy) *Loop {
	now := c.Now()
	return &Loop{clock: c, policy: p, first: now, begun: now}
}

// Again waits before the next try; false: there is none.
func (l *Loop) Again(ctx context.Context) bool {
	now := l.clock.Now()
	wait, again := l.policy(Try{Number: l.number, Took: now.Sub(l.begun), Total: now.Sub(l.first)})
	if !again || l.clock.Sleep(ctx, wait) != nil {
		return false
	}
	l.number, l.begun = l.number+1, l.clock.Now()
	return true
}

// UntilKnown repeats one write until its outcome is known. The write must be the
// very same each time, under the same token. While the outcome is unknown it is
// repeated whatever else is returned: the first may still be on its way. The
// error wraps failure.ErrUnknown where the tries ended before that.
func (l *Loop) UntilKnown(ctx context.Context, write func() error) error {
	unknown := false
	for {
		err := write()
		switch {
		case errors.Is(err, failure.ErrUnknown):
			unknown = true
		case unknown && (errors.Is(err, failure.ErrBusy) || errors.Is(err, failure.ErrUnavailable)):
			err = fmt.Errorf("%w: %v", failure.ErrUnknown, err) // not %w: nobody may read "nothing was written" out of it
		default:
			return err
		}
		if !l.Again(ctx) {
			return err
		}
	}
}
