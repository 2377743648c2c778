package failure

import (
	"fmt"
	"time"
)

// Code names a refusal; it is stable and part of the API.
type Code string

// The codes that more than one package uses.
const (
	Invalid         Code = "invalid"         // Field says what
	Unauthenticated Code = "unauthenticated" // no valid token
	Forbidden       Code = "forbidden"       // the role is too low
	NotFound        Code = "not-found"       // missing, or foreign: the two look the same
	Busy            Code = "busy"            // others kept changing it; nothing was done
	Unavailable     Code = "unavailable"     // the table does not answer, or takes no more just now; nothing was done
	UnknownOutcome  Code = "unknown-outcome" // it may or may not have been done
)

// Error is a refusal that a person can act on. Any other error is a fault of
// our own, and its text is not for people.
type Error struct {
	Code       Code
	Message    string        // plain words: what is wrong and what to do next
	Field      string        // what it is about, as the API names it
	RetryAfter time.Duration // how long to wait, in whole seconds; 0: nothing is known
	Newest     int64         // the newest release, where that is the reason
	Cause      error         // what led to it, for logs only
}

// New makes a refusal without a cause.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

func (e *Error) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("%s: %s (%v)", e.Code, e.Message, e.Cause)
	}
	return string(e.Code) + ": " + e.Message
}

// Unwrap returns what led to the refusal.
func (e *Error) Unwrap() error { return e.Cause }
