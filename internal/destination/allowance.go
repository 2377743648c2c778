package destination

import (
	"errors"
	"time"

	"colophon/internal/egress"
	"colophon/internal/ratelimit"
)

// Limits bound what people can have sent by hand, which is redeliveries, tries
// now, test sends and examinations together: they go to an address of somebody
// else, and must not become a tool to hammer it.
type Limits struct {
	Destination ratelimit.Limit
	// Origin holds for all destinations of a project on the same scheme, host and
	// port, and outlasts them: removing and adding one restores nothing. Origins
	// of services that many customers share count per destination only.
	Origin ratelimit.Limit
}

// DefaultLimits are those that hold where nothing else is configured.
func DefaultLimits() Limits {
	return Limits{Destination: ratelimit.PerMinute(10, 1), Origin: ratelimit.PerMinute(40, 10)}
}

func (l Limits) validate() error {
	return errors.Join(l.Destination.Validate(), l.Origin.Validate())
}

// Spent is what was taken from the limits of a destination and its origin, each
// instant as ratelimit.Limit.Take has it; zero: nothing.
type Spent struct {
	Until       time.Time
	Origin      string // empty: only the destination's limit counts
	OriginUntil time.Time
}

// Spending takes one call from the limits of a destination and its origin.
type Spending struct {
	Was         time.Time // the destination's, as read; zero: there was none
	Until       time.Time
	Origin      string // as Spent's
	OriginWas   time.Time
	OriginUntil time.Time
}

// countedOrigin is the origin whose limit holds for an address; empty: none does.
func countedOrigin(address string) string {
	origin := egress.Origin(address)
	if sharedByCustomers(origin) {
		return ""
	}
	return origin
}

// spend takes one call, or says for how long a limit is exhausted.
func spend(l Limits, spent Spent, now time.Time) (Spending, error) {
	s := Spending{Was: spent.Until, Origin: spent.Origin, OriginWas: spent.OriginUntil}
	var wait time.Duration
	if s.Until, wait = l.Destination.Take(spent.Until, now); wait > 0 {
		return Spending{}, tooOften(wait, "This destination was sent to by hand %d times in a short while.", l.Destination.Burst)
	}
	if spent.Origin == "" {
		return s, nil
	}
	if s.OriginUntil, wait = l.Origin.Take(spent.OriginUntil, now); wait > 0 {
		return Spending{}, tooOften(wait, "Destinations of this project at the same host were sent to by hand %d times in a short while.", l.Origin.Burst)
	}
	return s, nil
}

func tooOften(wait time.Duration, format string, args ...any) *Error {
	e := refuse(CodeTooOften, format+" Wait %d seconds and try again.", append(args, int(wait.Seconds()))...)
	e.RetryAfter = wait
	return e
}
