package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/ogen-go/ogen/ogenerrors"
	"github.com/ogen-go/ogen/validate"

	"colophon/internal/content"
	"colophon/internal/httpapi/openapi"
)

// refuseRequest answers what the generated server refused to decode. It says
// what is wrong in its own words: the decoder's repeat what was sent.
func (a *API) refuseRequest(ctx context.Context, w http.ResponseWriter, r *http.Request, err error) {
	id := inquiryOf(ctx).id
	var (
		inParams *ogenerrors.DecodeParamsError
		inBody   *ogenerrors.DecodeRequestError
		refused  *content.Error
	)
	switch {
	case errors.As(err, &refused): // the body is not the one that was sent
		a.write(w, a.NewError(ctx, refused))
	case errors.As(err, &inParams):
		a.write(w, wrongParameter(id, inParams, r))
	case errors.As(err, &inBody):
		a.write(w, wrongBody(id, inBody, r))
	default: // an answer could not be written
		if p := a.NewError(ctx, err); !inquiryOf(ctx).answer.begun {
			a.write(w, p)
		}
	}
}

// expected says in words what a parameter or a field takes.
var expected = map[string]string{
	"path":            "a document's path, 1 to 512 bytes",
	"Content-Digest":  "a digest of the body, such as sha-256=:…:",
	"Repr-Digest":     "a digest of the body, such as sha-256=:…:",
	"cursor":          "the “next” of the page before",
	"limit":           "a whole number from 1 to 100",
	"from":            "a release's number",
	"to":              "a release's number",
	"since":           "a release's number, or 0",
	"Idempotency-Key": "1 to 255 ASCII characters without spaces",
	"If-Match":        "an ETag of this API",
	"If-None-Match":   "an ETag of this API, or *",
	"name":            "text of 1 to 100 characters",
	"url":             "text of 1 to 2,048 characters",
	"headers":         "an object of up to 20 headers, each a name with a text",
	"message":         "text of up to 1,000 characters",
	"force":           "true or false",
	"over":            "a release's number",
	"revokeOld":       "true or false",
	"secret":          "whsec_ and the base64 of 24 to 64 random bytes",
	"position":        "a whole number from 1 to 3",
}

// fields are those that an operation's body can have.
var fields = map[openapi.OperationName][]string{
	openapi.CreateProjectOperation:              {"name"},
	openapi.PublishReleaseOperation:             {"message", "force"},
	openapi.CreateDestinationOperation:          {"name", "url", "headers"},
	openapi.UpdateDestinationOperation:          {"name", "url", "headers"},
	openapi.RotateDestinationSecretOperation:    {"revokeOld", "secret"},
	openapi.RevokeOldDestinationSecretOperation: {"position"},
	openapi.RedeliverOperation:                  {"force", "over"},
}

func wrongParameter(id string, err *ogenerrors.DecodeParamsError, r *http.Request) *problemAnswer {
	var one *ogenerrors.DecodeParamError
	if !errors.As(err, &one) {
		return problem(id, codeInvalid, "A parameter of this request is not right.")
	}
	if one.In == "path" { // what has not its shape names nothing
		return problem(id, codeNotFound, "There is nothing at this address. Check the ids and numbers in it.")
	}
	detail := fmt.Sprintf("%s is %s.", one.Name, expected[one.Name])
	if one.In == "query" && !r.URL.Query().Has(one.Name) {
		detail = fmt.Sprintf("%s is missing from the query. It is %s.", one.Name, expected[one.Name])
	}
	p := problem(id, codeInvalid, detail)
	p.Response.Field = optional(one.Name)
	return p
}

func wrongBody(id string, err *ogenerrors.DecodeRequestError, r *http.Request) *problemAnswer {
	var (
		badJSON *jsonError
		wrong   *validate.Error
	)
	takes := "The body takes " + describe(fields[err.Name]) + "."
	if detail, ok := tooLarge(err); ok {
		return problem(id, codeTooLarge, detail)
	}
	switch {
	case errors.As(err, &badJSON):
		return problem(id, codeInvalid, "The body cannot be read. "+badJSON.Error()+".")
	case errors.Is(err, validate.ErrBodyRequired), r.ContentLength == 0:
		return problem(id, codeInvalid, "This needs a body. "+takes)
	case err.Name == openapi.PutDocumentOperation: // which takes every type there is
		return problem(id, codeUnsupportedMediaType, "Send a document under its own type, such as text/markdown, or without one: then it follows from the path.")
	case !isJSON(r.Header.Get("Content-Type")):
		return problem(id, codeUnsupportedMediaType, "Send the body as JSON, with the header “Content-Type: application/json”.")
	case errors.As(err, &wrong) && len(wrong.Fields) > 0:
		// Behind an object's name come those of its members, which are not ours to repeat.
		name, _, _ := strings.Cut(wrong.Fields[0].Name, ".")
		words, ok := expected[name]
		if !ok {
			break
		}
		detail := fmt.Sprintf("%s is %s.", name, words)
		if errors.Is(wrong.Fields[0].Error, validate.ErrFieldRequired) {
			detail = fmt.Sprintf("%s is missing. It is %s.", name, words)
		}
		p := problem(id, codeInvalid, detail)
		p.Response.Field = optional(name)
		return p
	}
	return problem(id, codeInvalid, "A field of the body is unknown or of the wrong kind. "+takes)
}

// tooLarge says that a body was not read to its end because it is too large.
func tooLarge(err error) (detail string, ok bool) {
	var over *http.MaxBytesError
	return fmt.Sprintf("A request's body holds at most %d bytes, and this one has more. Nothing was done.", largestBody), errors.As(err, &over)
}

func describe(names []string) string {
	words := make([]string, len(names))
	for i, name := range names {
		words[i] = fmt.Sprintf("%s (%s)", name, expected[name])
	}
	return strings.Join(words, ", ")
}

func (a *API) refuseRoute(w http.ResponseWriter, r *http.Request) {
	a.write(w, problem(inquiryOf(r.Context()).id, codeNotFound,
		"There is nothing at this address. The API's description, api/openapi.yaml, names all addresses."))
}

// refuseMethod also answers OPTIONS, with what there is and nothing for other
// origins: the API is not for pages.
func (a *API) refuseMethod(w http.ResponseWriter, r *http.Request, allowed string) {
	methods := strings.Split(allowed, ",")
	for i, method := range methods {
		methods[i] = strings.TrimSpace(method)
		if methods[i] == http.MethodGet {
			methods[i] = "GET, HEAD"
		}
	}
	h := w.Header()
	for name := range h {
		if strings.HasPrefix(name, "Access-Control-") {
			h.Del(name)
		}
	}
	h.Set("Allow", strings.Join(append(methods, http.MethodOptions), ", "))
	if r.Method == http.MethodOptions {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	a.write(w, problem(inquiryOf(r.Context()).id, codeMethodNotAllowed,
		fmt.Sprintf("This address takes %s.", strings.Join(methods, ", "))))
}
