package retry_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"colophon/internal/failure"
	"colophon/internal/retry"
)

const ms = time.Millisecond

// loop is one on a clock that waits alone move; waits are those that it made.
func loop(p retry.Policy) (l *retry.Loop, waits *[]time.Duration) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	waits = &[]time.Duration{}
	return retry.New(retry.Clock{
		Now: func() time.Time { return now },
		Sleep: func(ctx context.Context, d time.Duration) error {
			now = now.Add(d)
			*waits = append(*waits, d)
			return ctx.Err()
		},
	}, p), waits
}

func TestWaitsFollowThePolicy(t *testing.T) {
	t.Parallel()
	half := func() float64 { return 0.5 }
	for name, c := range map[string]struct {
		policy retry.Policy
		waits  []time.Duration // until there is no other try, or the first ten
	}{
		"doubled up to the longest":      {retry.Doubling(10*ms, 50*ms), []time.Duration{10 * ms, 20 * ms, 40 * ms, 50 * ms, 50 * ms, 50 * ms, 50 * ms, 50 * ms, 50 * ms, 50 * ms}},
		"so many tries":                  {retry.Times(3, retry.Doubling(10*ms, 50*ms)), []time.Duration{10 * ms, 20 * ms}},
		"one try":                        {retry.Times(1, retry.Doubling(10*ms, 50*ms)), nil},
		"no try begins after the time":   {retry.Within(70*ms, retry.Doubling(10*ms, 50*ms)), []time.Duration{10 * ms, 20 * ms}},
		"a try begins just before it":    {retry.Within(71*ms, retry.Doubling(10*ms, 50*ms)), []time.Duration{10 * ms, 20 * ms, 40 * ms}},
		"a random part is added to each": {retry.Times(3, retry.Jittered(half, retry.Doubling(10*ms, 50*ms))), []time.Duration{15 * ms, 30 * ms}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, waits := loop(c.policy)
			for range 10 {
				if !l.Again(t.Context()) {
					break
				}
			}
			if !slices.Equal(*waits, c.waits) {
				t.Errorf("waits %v, want %v", *waits, c.waits)
			}
		})
	}
}

func TestAContextThatEndsEndsTheTries(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if l, _ := loop(retry.Doubling(ms, ms)); l.Again(ended) {
		t.Error("tries on")
	}
}

func TestAnUnknownOutcomeIsRepeatedUntilItIsKnown(t *testing.T) {
	t.Parallel()
	unknown, busy, throttled, moved := failure.ErrUnknown, failure.ErrBusy, failure.ErrThrottled, failure.ErrMoved
	for name, c := range map[string]struct {
		results []error // of the write, in turn; the last one stays
		want    error
		writes  int
	}{
		"done at once":                         {[]error{nil}, nil, 1},
		"unknown, then done":                   {[]error{unknown, nil}, nil, 2},
		"unknown, then refused":                {[]error{unknown, moved}, moved, 2},
		"unknown, busy, throttled, then done":  {[]error{unknown, busy, throttled, nil}, nil, 4},
		"busy: known, the caller decides":      {[]error{busy, nil}, busy, 1},
		"throttled: known, the caller decides": {[]error{throttled, nil}, throttled, 1},
		"unknown, then busy until time is up":  {[]error{unknown, busy}, unknown, 4},
		"unknown, then throttled until then":   {[]error{unknown, throttled}, unknown, 4},
		"unknown until time is up":             {[]error{unknown}, unknown, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, _ := loop(retry.Times(4, retry.Doubling(ms, ms)))
			writes := 0
			err := l.UntilKnown(t.Context(), func() error {
				result := c.results[min(writes, len(c.results)-1)]
				writes++
				return result
			})
			if !errors.Is(err, c.want) || writes != c.writes {
				t.Errorf("%v after %d writes, want %v after %d", err, writes, c.want, c.writes)
			}
			if c.want == unknown && failure.NotDone(err) {
				t.Errorf("%v reads as not done", err)
			}
		})
	}
}
