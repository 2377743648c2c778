package ratelimit

import (
	"errors"
	"time"
)

// Limit is a token bucket: Burst calls at once, and one more after each Every.
type Limit struct {
	Burst int
	Every time.Duration
}

// PerMinute makes a limit of burst calls at once and perMinute calls a minute
// from then on.
func PerMinute(burst, perMinute int) Limit {
	return Limit{Burst: burst, Every: time.Minute / time.Duration(max(perMinute, 1))}
}

// Validate refuses a limit that allows nothing, or everything.
func (l Limit) Validate() error {
	if l.Burst < 1 || l.Every <= 0 {
		return errors.New("ratelimit: a limit needs a burst of at least 1 and a positive interval")
	}
	return nil
}

// Take takes one call. Full is the limit's state: the instant at which the whole
// burst is available again; zero where nothing was taken yet. It returns the
// state to store, or, where the limit is exhausted, full as it was and how long
// to wait for the next call, in whole seconds: at least one.
func (l Limit) Take(full, now time.Time) (next time.Time, wait time.Duration) {
	refill := time.Duration(l.Burst) * l.Every
	from := full
	switch {
	case full.Before(now):
		from = now
	case full.Sub(now) > refill: // stored under a larger limit, or by a clock that was ahead
		from = now.Add(refill)
	}
	next = from.Add(l.Every)
	if over := next.Sub(now) - refill; over > 0 {
		return full, (over + time.Second - 1).Truncate(time.Second)
	}
	return next, 0
}
