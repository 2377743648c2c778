package content

import "colophon/internal/failure"

// Code and Error are failure's: a refusal that a person can act on.
type (
	Code  = failure.Code
	Error = failure.Error
)

// The refusals, and the HTTP status that each one means.
const (
	CodeInvalid                  = failure.Invalid         // 400; Field says what
	CodeUnauthenticated          = failure.Unauthenticated // 401
	CodeForbidden                = failure.Forbidden       // 403: the role is too low
	CodeNotFound                 = failure.NotFound        // 404: missing, or foreign: the two look the same
	CodeNothingToPublish    Code = "nothing-to-publish"    // 409
	CodeTooManyDocuments    Code = "too-many-documents"    // 409
	CodePrecondition        Code = "precondition-failed"   // 412: the draft is not at that version, or is there already
	CodeTooLarge            Code = "too-large"             // 413
	CodeProjectFull         Code = "project-full"          // 409: no more new content
	CodeTooOften            Code = "too-often"             // 429: RetryAfter says how long to wait
	CodeIdempotencyMismatch Code = "idempotency-mismatch"  // 422: the key was used with another request
	CodeBusy                     = failure.Busy            // 503: others kept changing it; nothing was done
	CodeUnavailable              = failure.Unavailable     // 503: the table does not answer, or takes no more; nothing was done
	CodeUnknownOutcome           = failure.UnknownOutcome  // 503: it may or may not have been done
)

func refuse(code Code, format string, args ...any) *Error { return failure.New(code, format, args...) }

func invalid(field, format string, args ...any) *Error {
	e := refuse(CodeInvalid, format, args...)
	e.Field = field
	return e
}

// NoSuchProject is the refusal where a project is missing, and where it is
// foreign to whoever asks: they look the same.
func NoSuchProject() *Error {
	return refuse(CodeNotFound, "There is no such project, or your token does not reach it. Check the project's id.")
}
