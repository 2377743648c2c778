package delivery

import "time"

// ClockOffset bounds how far the table's clock is ahead of this host's, as the
// response to one read showed. Its zero value: the response had no date.
type ClockOffset struct {
	Known       bool
	Least, Most time.Duration
}

// MeasureClock compares the date of a response with this host's wall clock: the
// request was sent at asked, the response had come at answered. A date has whole
// seconds, and was taken at any moment between the two.
func MeasureClock(date, asked, answered time.Time) ClockOffset {
	asked, answered = asked.Round(0), answered.Round(0) // a monotonic clock stands still in a frozen environment
	return ClockOffset{Known: true, Least: date.Sub(answered), Most: date.Add(time.Second).Sub(asked)}
}

// OutOfBounds says whether this host's clock is further off than ClockBound for
// certain: all of the interval lies beyond it.
func (o ClockOffset) OutOfBounds() bool {
	return o.Known && !o.Vague() && (o.Least > ClockBound || o.Most < -ClockBound)
}

// Vague says whether the offset tells nothing: the environment was frozen, or its
// clock was set, between request and response.
func (o ClockOffset) Vague() bool {
	return o.Known && (o.Most < o.Least || o.Most-o.Least > ClockWidth)
}

// sound says whether the clock may be relied on, as far as is known.
func (o ClockOffset) sound() bool { return !o.OutOfBounds() && !o.Vague() }
