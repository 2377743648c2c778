package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"colophon/internal/content"
	"colophon/internal/lambdahttp"
)

// inquiry is what handlers need of a request beside its parameters.
type inquiry struct {
	id          string // the request's
	address     string // where the API's paths begin, as the gateway knows it; empty outside of one
	contentType string // as it was sent, parameters included
	body        *body
	answer      *answer
	parallel    *sync.WaitGroup // what runs in parallel with the handler, and ends before the answer leaves
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
		asked := inquiry{contentType: contentTypeOf(r), body: &body{header: r.Header}, answer: answer, parallel: &sync.WaitGroup{}}
		defer asked.parallel.Wait()
		if gateway, ok := lambdahttp.GatewayOf(r.Context()); ok {
			asked.id, asked.address = gateway.RequestID, gateway.Address
		}
		if asked.id == "" {
			asked.id = a.c.RequestID()
		}
		ctx := context.WithValue(r.Context(), inquiryKey{}, asked)
		method, began := r.Method, a.c.Clock()
		// Deferred first, so that it runs last: with the status of what a panic was answered with.
		defer func() { a.logRequest(ctx, asked, method, r, answer.status, a.c.Clock().Sub(began)) }()
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
		asked.body.json = r.Method != http.MethodPut && isJSON(asked.contentType)
		asked.body.r = http.MaxBytesReader(answer, r.Body, largestBody)
		r.Body = asked.body
		next.ServeHTTP(answer, r)
	})
}

// What a caller chose is cut to these lengths: a line is paid for by its bytes.
const (
	loggedPath  = 512
	loggedAgent = 256
)

// logRequest writes one line for a request, whatever it was answered with. The
// log escapes what the caller chose, which the gateway's access log does not and
// therefore leaves out. Neither query, nor other headers, nor bodies belong here.
func (a *API) logRequest(ctx context.Context, asked inquiry, method string, r *http.Request, status int, took time.Duration) {
	gateway, _ := lambdahttp.GatewayOf(ctx)
	a.c.Log.InfoContext(ctx, "request", slog.String("request", asked.id), slog.String("extended", gateway.Extended),
		slog.String("method", method), slog.String("path", upTo(loggedPath, r.URL.Path)), slog.Int("status", status),
		slog.Int64("milliseconds", took.Milliseconds()), slog.String("userAgent", upTo(loggedAgent, r.UserAgent())))
}

func upTo(n int, text string) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "…"
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
	begun  bool
	status int
}

func (w *answer) WriteHeader(status int) {
	if !w.begun {
		w.begun, w.status = true, status
		h := w.Header()
		// For a year, this host alone: what else the domain serves is not ours to say.
		h.Set("Strict-Transport-Security", "max-age=31536000")
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
