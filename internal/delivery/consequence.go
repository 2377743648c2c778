package delivery

import (
	"errors"
	"time"

	"colophon/internal/failure"
)

// Consequence is what follows from a call to the table that failed.
type Consequence struct {
	Err    error
	End    Disposition // of the message; nil: read and decide again, or Ours
	Report bool        // it makes an event and counts in the metric of failed calls
	Ours   bool        // a fault of our own: counted on the delivery
}

// AfterFailedWrite decides about a message after a write that failed; moved is
// how often what was read had moved, this time included. A conflict or a move is
// over in a moment. A shortage is not, and each call feeds it, so those waits
// alone grow.
func AfterFailedWrite(err error, receives, moved int) Consequence {
	switch {
	case errors.Is(err, failure.ErrMoved) && moved <= 1:
		return Consequence{Err: err}
	case errors.Is(err, failure.ErrMoved), errors.Is(err, failure.ErrBusy), errors.Is(err, failure.ErrUnknown):
		return Consequence{Err: err, End: Keep{For: time.Second}}
	case errors.Is(err, failure.ErrUnavailable): // throttled, or a read on the way failed
		return AfterFailedRead(err, receives)
	}
	return Consequence{Err: err, Ours: true}
}

// AfterFailedRead decides about a message after a read that failed. Nothing is
// counted on a delivery, for none was seen.
func AfterFailedRead(err error, receives int) Consequence {
	if errors.Is(err, failure.ErrThrottled) {
		return Consequence{Err: err, End: Keep{For: ThrottledWait(receives)}, Report: receives >= ThrottledReport}
	}
	return Consequence{Err: err, End: Keep{}, Report: true}
}

// ThrottledWait is how long a message waits that was received so often while the
// table is short of units: 1, 2, 4 … 30 seconds.
func ThrottledWait(receives int) time.Duration {
	wait := time.Second
	for ; receives > 1 && wait < LongestThrottledWait; receives-- {
		wait *= 2
	}
	return min(wait, LongestThrottledWait)
}
