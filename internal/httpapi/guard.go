package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"

	"colophon/internal/content"
	"colophon/internal/lambdahttp"
)

// inquiry is what handlers need of a request beside its parameters.
type inquiry struct {
	id          string // the request's
	address     string // where the API's paths begin, as the gateway knows it; empty outside of one
	contentType string // as it was sent, parameters included
	answer      *answer
}

type inquiryKey struct{}

func inquiryOf(ctx context.Context) inquiry {
	i, _ := ctx.Value(inquiryKey{}).(inquiry)
	return i
}

// guard stands around the generated server: it names the request, makes HEAD of
// GET, checks the body while it is read, and answers where something panics.
func (a *API) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := &answer{ResponseWriter: w}
		asked := inquiry{contentType: contentTypeOf(r), answer: answer}
		if gateway, ok := lambdahttp.GatewayOf(r.Context()); ok {
			asked.id, asked.address = gateway.RequestID, gateway.Address
		}
		if asked.id == "" {
			asked.id = a.c.RequestID()
		}
		ctx := context.WithValue(r.Context(), inquiryKey{}, asked)
		answer.Header().Set("X-Request-Id", asked.id)
		defer func() {
			if cause := recover(); cause != nil {
				a.c.Log.ErrorContext(ctx, "panic", slog.String("request", asked.id), slog.String("method", r.Method),
					slog.String("cause", fmt.Sprint(cause)), slog.String("stack", string(debug.Stack())))
				if !answer.begun {
					a.write(answer, problem(asked.id, codeInternal, internalDetail))
				}
			}
		}()

		r = r.Clone(ctx)
		if r.Method == http.MethodHead {
			r.Method = http.MethodGet // whoever called us drops the body
		}
		if asked.contentType != "" {
			r.Header.Set("Content-Type", asked.contentType)
		}
		// What is put is a document, also where it is JSON: it is kept as it came.
		checked := r.Method != http.MethodPut && isJSON(asked.contentType)
		r.Body = &body{r: http.MaxBytesReader(answer, r.Body, largestBody), json: checked}
		next.ServeHTTP(answer, r)
	})
}

// contentTypeOf is a request's content type. A document's may be left to its
// path; curl's own, which stands for "not said", counts as left.
func contentTypeOf(r *http.Request) string {
	given := r.Header.Get("Content-Type")
	unsaid := given == "" || strings.HasPrefix(given, "application/x-www-form-urlencoded")
	if unsaid && r.Method == http.MethodPut {
		return content.TypeOfPath(r.URL.Query().Get("path"))
	}
	return given
}

// answer adds what each answer carries, and knows whether one has begun.
type answer struct {
	http.ResponseWriter
	begun bool
}

func (w *answer) WriteHeader(status int) {
	if !w.begun {
		w.begun = true
		h := w.Header()
		// No page of another origin reads this API, so no header is exposed to one.
		h.Del("Access-Control-Expose-Headers")
		// What editors wrote is served under their content type: it must neither be
		// taken for another, nor run, nor stay in a cache beyond its token's life.
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
		h.Set("Cache-Control", "no-store")
		h.Set("Referrer-Policy", "no-referrer")
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *answer) Write(p []byte) (int, error) {
	if !w.begun {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(p)
}
