package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"colophon/internal/access"
	"colophon/internal/content"
	"colophon/internal/delivery"
	"colophon/internal/destination"
	"colophon/internal/httpapi"
)

// Ids that requests of these tests name.
const (
	ours    = "prj_abcdefghijklmnop2345"
	foreign = "prj_zyxwvutsrqponmlk7654"
	website = "dst_abcdef234567"
)

var now = time.Date(2026, 11, 29, 23, 30, 0, 0, time.UTC)

// world stands for the services behind the API: it knows tokens, counts what it
// is asked, and answers everything with the same error, or with the same things.
type world struct {
	place func(*destination.Destination) // changes the destination that is there; nil: nothing
	fail  error                          // what every service answers
	panic any                            // what every service does
	test  delivery.TestSend

	tooOften error                       // what the token's limit answers
	record   func(context.Context) error // records a use; nil: none is due

	mu    sync.Mutex
	asked int
	saved content.Save

	deleted content.Deletion
}

func (w *world) answer() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked++
	if w.panic != nil {
		panic(w.panic)
	}
	return w.fail
}

func (w *world) calls() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked
}

// Authenticate knows a token of each role for all projects, and of each for one:
// "editor" and "editor-of-ours".
func (w *world) Authenticate(_ context.Context, bearer string) (access.Principal, error) {
	role, bound := strings.CutSuffix(bearer, "-of-ours")
	if !access.Role(role).Valid() {
		return access.Principal{}, &content.Error{Code: content.CodeUnauthenticated, Message: "This token is not known."}
	}
	token := access.Token{ID: "tok_somebody", Name: "somebody", Role: access.Role(role)}
	if bound {
		token.Project = ours
	}
	return access.Principal{Token: token}, nil
}

func (w *world) TakeRequest(context.Context, access.Principal) error { return w.tooOften }
func (w *world) UseIsDue(access.Principal) bool                      { return w.record != nil }
func (w *world) RecordUse(ctx context.Context, _ access.Principal) error {
	return w.record(ctx)
}

var (
	project  = content.Project{ID: ours, Name: "Handbook", Seq: 6, CreatedAt: now}
	document = content.Document{Path: "guide/index.md", Hash: content.HashOf([]byte("# Guide\n")), Size: 8, Type: "text/markdown; charset=utf-8"}
	draft    = content.Draft{Document: document, Version: 7, Who: "somebody", WhoID: "tok_somebody", At: now}
	release  = content.Release{Project: ours, Number: 6, Message: "Hours", Who: "somebody", WhoID: "tok_somebody", At: now, Documents: 1, Destinations: []string{website}}
	place    = destination.Destination{
		Project: ours, ID: website, Name: "Website", URL: "https://www.example.com/", State: delivery.SlotActive,
		HeaderNames: []string{"Authorization"}, Version: 3, CreatedAt: now, UpdatedAt: now,
	}
	duty = destination.Delivery{Destination: place, Newest: 6, Delivery: delivery.Delivery{
		Key:    delivery.Key{Destination: delivery.Destination{Project: ours, ID: website}, Release: 6},
		Status: delivery.Queued, Round: 1, WebhookID: "msg_a", CreatedAt: now, TryAt: now,
	}}
)

func (w *world) CreateProject(context.Context, string) (content.Project, error) {
	return project, w.answer()
}
func (w *world) Project(context.Context, string) (content.Project, error) { return project, w.answer() }
func (w *world) ListProjects(context.Context, string, int) (content.ProjectPage, error) {
	return content.ProjectPage{Projects: []content.Project{project}, Next: "next"}, w.answer()
}

func (w *world) PutDocument(_ context.Context, _ string, s content.Save) (content.Saved, error) {
	err := w.answer()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.saved = s
	return content.Saved{Draft: draft, Created: s.IfAbsent, Changed: true}, err
}

func (w *world) GetDocument(context.Context, string, string) (content.Draft, []byte, error) {
	return draft, []byte("# Guide\n"), w.answer()
}
func (w *world) DeleteDocument(_ context.Context, _ string, d content.Deletion) error {
	w.mu.Lock()
	w.deleted = d
	w.mu.Unlock()
	return w.answer()
}
func (w *world) ListDocuments(context.Context, string, string, int) (content.DraftPage, error) {
	return content.DraftPage{}, w.answer()
}
func (w *world) Publish(context.Context, string, content.PublishRequest) (content.Published, error) {
	return content.Published{Release: release}, w.answer()
}
func (w *world) Release(context.Context, string, int64) (content.Release, error) {
	return release, w.answer()
}
func (w *world) ListReleases(context.Context, string, string, int) (content.ReleasePage, error) {
	return content.ReleasePage{Releases: []content.Release{release}}, w.answer()
}
func (w *world) ReleasesSince(context.Context, string, int64, int) (content.Feed, error) {
	return content.Feed{Releases: []content.Release{release}, Newest: 6}, w.answer()
}
func (w *world) ReleaseDocuments(context.Context, string, int64) ([]content.Document, error) {
	return []content.Document{document}, w.answer()
}
func (w *world) ReleaseDocument(context.Context, string, int64, string) (content.Document, []byte, error) {
	return document, []byte("# Guide\n"), w.answer()
}

func (w *world) shown() destination.Destination {
	d := place
	if w.place != nil {
		w.place(&d)
	}
	return d
}

func (w *world) Add(context.Context, string, destination.Addition) (destination.Added, error) {
	return destination.Added{Destination: place, Secret: "whsec_a"}, w.answer()
}
func (w *world) List(context.Context, string) ([]destination.Destination, error) {
	return []destination.Destination{w.shown()}, w.answer()
}
func (w *world) Get(context.Context, string, string) (destination.Destination, error) {
	return w.shown(), w.answer()
}
func (w *world) Change(context.Context, string, string, destination.Change) (destination.Destination, error) {
	return w.shown(), w.answer()
}
func (w *world) Rotate(context.Context, string, string, destination.Rotation) (destination.Rotated, error) {
	return destination.Rotated{Secret: "whsec_b"}, w.answer()
}
func (w *world) RevokePrevious(context.Context, string, string, destination.Revocation) error {
	return w.answer()
}
func (w *world) Pause(context.Context, string, string) (destination.Destination, error) {
	return w.shown(), w.answer()
}
func (w *world) Resume(context.Context, string, string) (destination.Resumed, error) {
	return destination.Resumed{Destination: place, Newest: 6, SendNewest: true}, w.answer()
}
func (w *world) Remove(context.Context, string, string) error { return w.answer() }
func (w *world) Deliveries(context.Context, string, int64) ([]destination.Delivery, error) {
	return []destination.Delivery{duty}, w.answer()
}
func (w *world) DestinationDeliveries(context.Context, string, string, destination.Range) (destination.DeliveryPage, error) {
	return destination.DeliveryPage{Deliveries: []destination.Delivery{duty}, Next: 5}, w.answer()
}
func (w *world) Delivery(context.Context, delivery.Key) (destination.Delivery, error) {
	return duty, w.answer()
}
func (w *world) Redeliver(context.Context, delivery.Key, destination.Redelivery) (destination.Delivery, error) {
	return duty, w.answer()
}
func (w *world) TryNow(context.Context, delivery.Key) (destination.Delivery, error) {
	return duty, w.answer()
}
func (w *world) SendTest(context.Context, string, string) (delivery.TestSend, error) {
	return w.test, w.answer()
}
func (w *world) Test(context.Context, string, string, string) (delivery.TestSend, error) {
	return w.test, w.answer()
}
func (w *world) Examine(context.Context, string, string) (delivery.TestSend, error) {
	return w.test, w.answer()
}
func (w *world) Examination(context.Context, string, string, string) (delivery.TestSend, error) {
	return w.test, w.answer()
}

// publishing is a world that notes what is published and has documents.
type publishing struct {
	world
	asked     content.PublishRequest
	published content.Published
	documents []content.Document
}

func (p *publishing) Publish(_ context.Context, _ string, r content.PublishRequest) (content.Published, error) {
	p.asked = r
	return p.published, nil
}

func (p *publishing) ReleaseDocuments(context.Context, string, int64) ([]content.Document, error) {
	return p.documents, nil
}

// delivering is a world with one delivery and one test, that notes ranges.
type delivering struct {
	world
	delivery destination.Delivery
	test     delivery.TestSend
	asked    destination.Range
}

func (d *delivering) Delivery(context.Context, delivery.Key) (destination.Delivery, error) {
	return d.delivery, nil
}

func (d *delivering) Test(context.Context, string, string, string) (delivery.TestSend, error) {
	return d.test, nil
}

func (d *delivering) Examination(context.Context, string, string, string) (delivery.TestSend, error) {
	return d.test, nil
}

func (d *delivering) DestinationDeliveries(_ context.Context, _, _ string, r destination.Range) (destination.DeliveryPage, error) {
	d.asked = r
	return destination.DeliveryPage{Next: 5}, nil
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func handlerOf(t *testing.T, w interface {
	httpapi.Tokens
	httpapi.Content
	httpapi.Announcing
}) http.Handler {
	t.Helper()
	h, err := httpapi.New(httpapi.Config{
		Tokens: w, Content: w, Announcing: w, Log: quiet(),
		Clock: func() time.Time { return now }, RequestID: func() string { return "request-1" },
	})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// api makes the API before a world, and what it logs of faults. (Its line for each request: see log_test.go.)
func api(t *testing.T, w *world) (http.Handler, *bytes.Buffer) {
	t.Helper()
	w.test = delivery.TestSend{Destination: delivery.Destination{Project: ours, ID: website}, ID: "a", CreatedAt: now}
	var log bytes.Buffer
	h, err := httpapi.New(httpapi.Config{
		Tokens: w, Content: w, Announcing: w, Log: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Clock: func() time.Time { return now }, RequestID: func() string { return "request-1" },
	})
	if err != nil {
		t.Fatal(err)
	}
	return h, &log
}

// ask is a request: "PUT /projects/…", a token, a body, headers in pairs.
func ask(method, target, token, body string, headers ...string) *http.Request {
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	r := httptest.NewRequest(method, target, content)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" && method != http.MethodPut {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

func serve(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// problem is a problem as it stands in an answer.
type problem struct {
	Type, Code, Title, Detail, RequestID, Field string
	Status                                      int
	Newest                                      int64
}

// problemOf reads an answer that must be a problem in its one form.
func problemOf(t *testing.T, w *httptest.ResponseRecorder) problem {
	t.Helper()
	var p problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		t.Fatalf("%d %q is no problem: %v", w.Code, w.Body, err)
	}
	if got := w.Header().Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("the content type is %q", got)
	}
	if p.Status != w.Code || p.Type != "urn:colophon:problem:"+p.Code || p.Code == "" || p.Title == "" || p.Detail == "" ||
		p.RequestID != w.Header().Get("X-Request-Id") || p.RequestID == "" {
		t.Errorf("%d is told as %+v", w.Code, p)
	}
	return p
}
