package destination

import (
	"fmt"
	"time"
)

// Code names a refusal; it is stable and part of the API.
type Code string

// The refusals.
const (
	CodeNotFound    Code = "not-found"             // no such project, destination, delivery or test
	CodeInvalid     Code = "invalid"               // Field says what
	CodeTooMany     Code = "too-many-destinations" // the project has as many as it can
	CodeChanged     Code = "changed"               // somebody else changed it: Change.Version is not the newest
	CodeRemoved     Code = "destination-removed"
	CodePaused      Code = "destination-paused"
	CodeNotEnded    Code = "not-ended"       // a redelivery of what is still to be sent
	CodeEnded       Code = "ended"           // try now of what has ended
	CodeBeingSent   Code = "being-sent"      // try now of what is on its way
	CodeNotNewest   Code = "not-newest"      // a redelivery of an older release needs force; Newest says over which
	CodeNewer       Code = "newer-release"   // a newer release than the person saw; Newest says which
	CodeUnreadable  Code = "unreadable"      // the delivery's record is damaged or of a newer build
	CodeTooOften    Code = "too-often"       // RetryAfter says how long to wait
	CodeBusy        Code = "busy"            // others kept changing it; nothing was done
	CodeUnknown     Code = "unknown-outcome" // it may or may not have been done
	CodeUnavailable Code = "unavailable"     // the table does not answer; nothing was done
)

// Error is a refusal that a person can act on. Any other error of this package
// is a fault of ours, and its text is not for people.
type Error struct {
	Code       Code
	Message    string        // plain words: what is wrong and what to do next
	Field      string        // with CodeInvalid: name, url, headers or over
	Newest     int64         // with CodeNotNewest and CodeNewer
	RetryAfter time.Duration // with CodeTooOften, in whole seconds
	cause      error
}

func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Unwrap returns what led to the refusal, for logs only.
func (e *Error) Unwrap() error { return e.cause }

func refuse(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}
