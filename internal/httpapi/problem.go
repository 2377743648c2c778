package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"time"

	"github.com/ogen-go/ogen/ogenerrors"

	"colophon/internal/failure"
	"colophon/internal/httpapi/openapi"
)

// Codes of refusals that only this package makes.
const (
	codeInvalid              = "invalid"
	codeNotFound             = "not-found"
	codeUnauthenticated      = "unauthenticated"
	codeMethodNotAllowed     = "method-not-allowed"
	codePreconditionRequired = "precondition-required"
	codeTooLarge             = "too-large"
	codeUnsupportedMediaType = "unsupported-media-type"
	codeUnknownOutcome       = "unknown-outcome"
	codeInternal             = "internal"
)

// typePrefix and a code make a problem's type.
const typePrefix = "urn:colophon:problem:"

const internalDetail = "Something went wrong on our side. Ask again; if it stays, tell the operator the request id."

// kind is what is the same for all problems of a code.
type kind struct {
	status int
	title  string
}

// problems are all codes that the API answers, the services' among them. The
// codes are stable; docs/api.md explains them.
var problems = map[string]kind{
	codeInvalid:              {http.StatusBadRequest, "The request is not right"},
	codeUnauthenticated:      {http.StatusUnauthorized, "A valid token is needed"},
	"forbidden":              {http.StatusForbidden, "The token does not allow this"},
	codeNotFound:             {http.StatusNotFound, "Not found"},
	codeMethodNotAllowed:     {http.StatusMethodNotAllowed, "The method does not fit"},
	"nothing-to-publish":     {http.StatusConflict, "Nothing to publish"},
	"too-many-documents":     {http.StatusConflict, "Too many documents"},
	"project-full":           {http.StatusConflict, "The project is full"},
	"too-many-destinations":  {http.StatusConflict, "Too many destinations"},
	"too-many-secrets":       {http.StatusConflict, "Too many secrets sign"},
	"destination-removed":    {http.StatusConflict, "The destination was removed"},
	"destination-paused":     {http.StatusConflict, "The destination is paused"},
	"not-ended":              {http.StatusConflict, "The delivery has not ended"},
	"ended":                  {http.StatusConflict, "The delivery has ended"},
	"being-sent":             {http.StatusConflict, "The delivery is being sent"},
	"not-newest":             {http.StatusConflict, "The release is not the newest"},
	"newer-release":          {http.StatusConflict, "There is a newer release"},
	"unreadable":             {http.StatusConflict, "The record cannot be read"},
	"precondition-failed":    {http.StatusPreconditionFailed, "It is not at that version"},
	"changed":                {http.StatusPreconditionFailed, "It is not at that version"},
	codePreconditionRequired: {http.StatusPreconditionRequired, "If-Match is needed"},
	codeTooLarge:             {http.StatusRequestEntityTooLarge, "Too large"},
	codeUnsupportedMediaType: {http.StatusUnsupportedMediaType, "The content type does not fit"},
	"idempotency-mismatch":   {http.StatusUnprocessableEntity, "The key was used with another request"},
	"too-often":              {http.StatusTooManyRequests, "Too often"},
	codeInternal:             {http.StatusInternalServerError, "Something went wrong"},
	"busy":                   {http.StatusServiceUnavailable, "Busy"},
	"unavailable":            {http.StatusServiceUnavailable, "Not available"},
	codeUnknownOutcome:       {http.StatusServiceUnavailable, "Outcome unknown"},
}

// shortWait is what a 503 asks for: what it waits for is over in a moment.
const shortWait = time.Second

type problemAnswer = openapi.ProblemStatusCodeWithHeaders

func problem(requestID, code, detail string) *problemAnswer {
	k := problems[code]
	p := &problemAnswer{StatusCode: k.status, Response: openapi.Problem{
		Type: typePrefix + code, Code: openapi.NewOptString(code), Title: k.title,
		Status: openapi.NewOptInt(k.status), Detail: openapi.NewOptString(detail), RequestId: requestID,
	}}
	switch k.status {
	case http.StatusUnauthorized:
		p.WWWAuthenticate = openapi.NewOptString(`Bearer realm="colophon"`)
	case http.StatusServiceUnavailable:
		p.RetryAfter = openapi.NewOptInt(int(shortWait.Seconds()))
	}
	return p
}

// NewError makes a problem of what a handler, or the check of a token, returned.
// It is where errors end: what is no refusal is logged here, and nowhere else.
func (a *API) NewError(ctx context.Context, err error) *problemAnswer {
	id := inquiryOf(ctx).id
	var refusal *failure.Error
	switch {
	case errors.As(err, &refusal) && known(string(refusal.Code)):
		p := problem(id, string(refusal.Code), refusal.Message)
		p.Response.Field = optional(refusal.Field)
		p.Response.Newest = optionalNumber(refusal.Newest)
		if wait := refusal.RetryAfter; wait > 0 {
			p.RetryAfter = openapi.NewOptInt(int(math.Ceil(wait.Seconds())))
		}
		a.note(ctx, p, refusal.Cause)
		return p
	case errors.Is(err, ogenerrors.ErrSecurityRequirementIsNotSatisfied):
		return problem(id, codeUnauthenticated, `This needs a token. Send it as "Authorization: Bearer clp_…"; "colophon token create" makes one.`)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		a.c.Log.ErrorContext(ctx, "out of time", slog.String("request", id), slog.Any("error", err))
		return problem(id, codeUnknownOutcome, "There was not enough time to finish this, and it is not known whether it was done. Look before you ask again, or ask again with the same Idempotency-Key.")
	}
	a.c.Log.ErrorContext(ctx, "fault", slog.String("request", id), slog.Any("error", err))
	return problem(id, codeInternal, internalDetail)
}

// note logs what led to a refusal that is no fault of whoever asked.
func (a *API) note(ctx context.Context, p *problemAnswer, cause error) {
	if p.StatusCode >= http.StatusInternalServerError {
		a.c.Log.WarnContext(ctx, "not available", slog.String("request", p.Response.RequestId),
			slog.String("code", p.Response.Code.Value), slog.Any("error", cause))
	}
}

func known(code string) bool { _, ok := problems[code]; return ok }

// write answers with a problem where the generated server does not.
func (a *API) write(w http.ResponseWriter, p *problemAnswer) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	text, err := p.Response.MarshalJSON()
	if err != nil {
		a.c.Log.Error("problem could not be written", slog.Any("error", err))
	}
	w.WriteHeader(p.StatusCode)
	_, _ = w.Write(text) // whoever asked has gone
}
