package content

import "fmt"

// Code names a refusal; it is stable and part of the API.
type Code string

// The refusals, and the HTTP status that each one means.
const (
	CodeInvalid             Code = "invalid"              // 400; Field says what
	CodeUnauthenticated     Code = "unauthenticated"      // 401
	CodeForbidden           Code = "forbidden"            // 403: the role is too low
	CodeNotFound            Code = "not-found"            // 404: missing, or foreign: the two look the same
	CodeNothingToPublish    Code = "nothing-to-publish"   // 409
	CodeTooManyDocuments    Code = "too-many-documents"   // 409
	CodePrecondition        Code = "precondition-failed"  // 412: the draft is not at that version, or is there already
	CodeTooLarge            Code = "too-large"            // 413
	CodeIdempotencyMismatch Code = "idempotency-mismatch" // 422: the key was used with another request
	CodeBusy                Code = "busy"                 // 503: others kept changing it; nothing was done
	CodeUnavailable         Code = "unavailable"          // 503: the table does not answer; nothing was done
	CodeUnknownOutcome      Code = "unknown-outcome"      // 503: it may or may not have been done
)

// Error is a refusal that a person can act on. Any other error of this package
// is a fault of ours, and its text is not for people.
type Error struct {
	Code    Code
	Message string // plain words: what is wrong and what to do next
	Field   string // with CodeInvalid, CodeTooLarge: what it is about, as the API names it
	cause   error
}

func (e *Error) Error() string {
	if e.cause != nil {
		return fmt.Sprintf("%s: %s (%v)", e.Code, e.Message, e.cause)
	}
	return string(e.Code) + ": " + e.Message
}

// Unwrap returns what led to the refusal, for logs only.
func (e *Error) Unwrap() error { return e.cause }

func refuse(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

func invalid(field, format string, args ...any) *Error {
	return &Error{Code: CodeInvalid, Field: field, Message: fmt.Sprintf(format, args...)}
}

// NoSuchProject is the refusal where a project is missing, and where it is
// foreign to whoever asks: they look the same.
func NoSuchProject() *Error {
	return refuse(CodeNotFound, "There is no such project, or your token does not reach it. Check the project's id.")
}
