package delivery

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// longestAsked bounds what is kept of an absurd Retry-After.
const longestAsked = 365 * 24 * time.Hour

// Retry is when the next try is due, and what the receiver asked for.
type Retry struct {
	TryAt time.Time
	Asked time.Duration // 0: nothing, or nothing that can be read
	Used  time.Duration
}

// Schedule says when the try after the tries-th is due, counted from now, the
// end of the last one. Jitter, from [0, 1), and Retry-After move it later, never
// earlier, and at most so far that the waits still to come fit in the hour from
// the round's first try. The caller asks only while tries are left.
func Schedule(tries int64, first, now time.Time, retryAfter string, jitter float64) Retry {
	planned := waits[tries-1]
	asked := ParseRetryAfter(retryAfter, now)
	wanted := max(asked, withJitter(planned, jitter))
	wait := max(planned, min(wanted, latest(tries, first).Sub(now)))
	return Retry{TryAt: now.Add(wait), Asked: asked, Used: wait}
}

// latest is when the try after the tries-th may begin at the latest: the hour
// less the waits that follow it.
func latest(tries int64, first time.Time) time.Time {
	at := first.Add(RetryHorizon)
	for _, wait := range waits[tries:] {
		at = at.Add(-wait)
	}
	return at
}

func withJitter(wait time.Duration, jitter float64) time.Duration {
	return wait + time.Duration(float64(wait)*JitterPercent/100*min(max(jitter, 0), 1))
}

// ParseRetryAfter reads the header's two forms (RFC 9110, section 10.2.3):
// seconds, or a date in any of HTTP's three. What is not of that form, negative
// or past counts as none; what is beyond all use is cut.
func ParseRetryAfter(value string, now time.Time) time.Duration {
	value = strings.Trim(value, " \t")
	if value == "" {
		return 0
	}
	if strings.Trim(value, "0123456789") == "" {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > int64(longestAsked/time.Second) {
			return longestAsked
		}
		return time.Duration(seconds) * time.Second
	}
	date, err := http.ParseTime(value)
	if err != nil || !date.After(now) {
		return 0
	}
	return min(date.Sub(now), longestAsked)
}

// oursWait is how long a delivery rests after the count-th fault of our own:
// 1, 2, 4 … 15 minutes.
func oursWait(count int64) time.Duration {
	if count > 4 {
		return 15 * time.Minute
	}
	return min(time.Duration(math.Exp2(float64(max(count, 1)-1)))*time.Minute, 15*time.Minute)
}

// sweepTime is when the sweeper looks for a delivery that is due at tryAt: a
// short wait rides on its message, so the sweeper is only the net below it; a
// long one is off the queue, and the sweeper is what ends it.
func sweepTime(tryAt, now time.Time) time.Time {
	if tryAt.Sub(now) > LongestVisibleWait {
		return tryAt
	}
	return later(tryAt, now).Add(SweepDelay)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
