package destination

import "colophon/internal/failure"

// Code and Error are failure's: a refusal that a person can act on.
type (
	Code  = failure.Code
	Error = failure.Error
)

// The refusals.
const (
	CodeNotFound            = failure.NotFound        // no such project, destination, delivery or test
	CodeInvalid             = failure.Invalid         // Field says what: name, url, headers, secret or over
	CodeTooMany        Code = "too-many-destinations" // the project has as many as it can
	CodeTooManySecrets Code = "too-many-secrets"      // as many replaced secrets sign as can; RetryAfter says when the first ends
	CodeChanged        Code = "changed"               // somebody else changed it: Change.Version is not the newest
	CodeRemoved        Code = "destination-removed"
	CodePaused         Code = "destination-paused"
	CodeNotEnded       Code = "not-ended"            // a redelivery of what is still to be sent
	CodeEnded          Code = "ended"                // try now of what has ended
	CodeBeingSent      Code = "being-sent"           // try now of what is on its way
	CodeNotNewest      Code = "not-newest"           // a redelivery of an older release needs force; Newest says over which
	CodeNewer          Code = "newer-release"        // a newer release than the person saw; Newest says which
	CodeUnreadable     Code = "unreadable"           // the delivery's record is damaged or of a newer build
	CodeTooOften       Code = "too-often"            // RetryAfter says how long to wait
	CodeBusy                = failure.Busy           // others kept changing it; nothing was done
	CodeUnknown             = failure.UnknownOutcome // it may or may not have been done
	CodeUnavailable         = failure.Unavailable    // the table does not answer, or takes no more; nothing was done
)

func refuse(code Code, format string, args ...any) *Error { return failure.New(code, format, args...) }
