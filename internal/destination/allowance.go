package destination

import (
	"time"

	"colophon/internal/ratelimit"
)

// A destination's allowance of redeliveries, tries now and test sends together:
// they send to an address of somebody else, and must not become a tool to hammer it.
const (
	AllowanceAtOnce = 10          // so many at once,
	AllowanceEach   = time.Minute // and one more after each of these
)

// Spending takes one from a destination's allowance. The allowance is one
// instant: the one at which all that was taken will have been given back.
type Spending struct {
	Was   time.Time // as read; zero: there was none
	Until time.Time
}

// spend takes one from the allowance, or says for how long it is used up.
func spend(was, now time.Time) (Spending, error) {
	until, wait := ratelimit.Limit{Burst: AllowanceAtOnce, Every: AllowanceEach}.Take(was, now)
	if wait > 0 {
		e := refuse(CodeTooOften, "This destination was sent to by hand %d times in a short while. "+
			"Wait %d seconds and try again.", AllowanceAtOnce, int(wait.Seconds()))
		e.RetryAfter = wait
		return Spending{}, e
	}
	return Spending{Was: was, Until: until}, nil
}
