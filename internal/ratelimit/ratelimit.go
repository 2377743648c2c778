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

// clockTolerance is by how much clocks may differ before a state counts as wrong. It
// is far above what differs between hosts that are used, so that two of them cannot
// correct each other's states for free calls.
const clockTolerance = time.Minute

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
	case full.Sub(now) > refill+clockTolerance:
		// Stored under a larger limit, or by a clock that was far ahead. The call is
		// allowed, because only an allowed call is stored: refusing would keep the
		// state, and refuse everybody until that instant.
		return now.Add(refill), 0
	}
	next = from.Add(l.Every)
	if over := next.Sub(now) - refill; over > 0 {
		return full, (over + time.Second - 1).Truncate(time.Second)
	}
	return next, 0
}
