package content_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"colophon/internal/clock"
	"colophon/internal/content"
	"colophon/internal/delivery"
	"colophon/internal/enginetest"
	"colophon/internal/store"
	"colophon/internal/store/storetest"
	"colophon/internal/webhook"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// world is a Service on a real engine, and the engine for looking behind it.
type world struct {
	*content.Service
	t       *testing.T
	tables  enginetest.Tables
	engine  *store.Dynamo
	faulty  *storetest.Faulty
	used    usage
	project string
}

// usage is what the table calls of a world consumed.
type usage struct {
	sync.Mutex
	calls []store.Consumption
}

func (u *usage) observe(c store.Consumption) {
	u.Lock()
	defer u.Unlock()
	u.calls = append(u.calls, c)
}

// since gives the calls of one action.
func (u *usage) of(act func()) []store.Consumption {
	u.Lock()
	before := len(u.calls)
	u.Unlock()
	act()
	u.Lock()
	defer u.Unlock()
	return u.calls[before:]
}

func newWorld(t *testing.T, change ...func(*content.Config)) *world {
	t.Helper()
	w := &world{t: t, tables: enginetest.NewTables(t)}
	var err error
	if w.engine, err = store.NewDynamo(store.DynamoConfig{Client: w.tables.Client, Observe: w.used.observe}); err != nil {
		t.Fatal(err)
	}
	w.faulty = &storetest.Faulty{Engine: w.engine, Delay: func() time.Duration { return 10 * time.Millisecond }}
	w.Service = w.service(change...)
	p, err := w.CreateProject(t.Context(), "Handbook")
	if err != nil {
		t.Fatal(err)
	}
	w.project = p.ID
	return w
}

// service makes another Service on the same tables, as another sandbox would be.
func (w *world) service(change ...func(*content.Config)) *content.Service {
	w.t.Helper()
	contents, err := store.NewContents(store.ContentsConfig{
		Engine: w.faulty, ContentTable: w.tables.Content, DeliveryTable: w.tables.Delivery,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	c := content.Config{
		Store: contents, Announce: announce, PublicAddress: "https://colophon.example/v1", Clock: unhurried{time.Now()},
	}
	for _, f := range change {
		f(&c)
	}
	s, err := content.New(c)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

var announced atomic.Int64

// announce makes the real body and an id that nobody else has.
func announce(a content.Announcement) (string, []byte, error) {
	body, err := webhook.Release{
		Project: webhook.Project{ID: a.Project, Name: a.ProjectName},
		Number:  a.Release, Documents: int(a.Documents), Message: a.Message, URL: a.URL,
	}.Body(a.At)
	return fmt.Sprintf("msg_%026d", announced.Add(1)), body, err
}

// addDestinations makes n destinations of the project known to it.
func (w *world) addDestinations(n int) []string {
	w.t.Helper()
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("dst_%020d", i)
	}
	_, err := w.engine.Write(w.t.Context(), store.Write{
		Table: w.tables.Content, Key: store.Key{PK: "P#" + w.project, SK: "META"},
		Changes: []store.Change{store.Set(store.At("destinations"), store.Texts(ids)), store.Add(store.At("version"), 1)},
		If:      store.Exists(store.At("pk")),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return ids
}

// save saves a document with this content.
func (w *world) save(path, text string) content.Saved {
	w.t.Helper()
	saved, err := w.PutDocument(w.t.Context(), w.project, content.Save{
		Path: path, Content: []byte(text), Type: "text/markdown", Who: "Ada",
	})
	if err != nil {
		w.t.Fatalf("save %s: %v", path, err)
	}
	return saved
}

// publish publishes, and fails the test if that is refused.
func (w *world) publish(r content.PublishRequest) content.Published {
	w.t.Helper()
	p, err := w.Publish(w.t.Context(), w.project, r)
	if err != nil {
		w.t.Fatalf("publish: %v", err)
	}
	return p
}

// delivery reads a destination's delivery of a release; nil where there is none.
func (w *world) delivery(destination string, release int64) *delivery.Delivery {
	w.t.Helper()
	deliveries, err := store.NewDeliveries(store.DeliveriesConfig{Engine: w.engine, Table: w.tables.Delivery, Clock: time.Now})
	if err != nil {
		w.t.Fatal(err)
	}
	d, err := deliveries.ReadDelivery(context.Background(), delivery.Key{
		Destination: delivery.Destination{Project: w.project, ID: destination}, Release: release,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

// releases reads all releases, oldest first, and checks that they are numbered
// without a gap and that each has its deliveries.
func (w *world) releases(destinations []string) []content.Release {
	w.t.Helper()
	var all []content.Release
	for cursor := ""; ; {
		page, err := w.ListReleases(w.t.Context(), w.project, cursor, 0)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, r := range page.Releases {
			all = append([]content.Release{r}, all...)
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	ids := map[string]bool{}
	for i, r := range all {
		if r.Number != int64(i+1) {
			w.t.Fatalf("release %d stands at place %d", r.Number, i+1)
		}
		for _, destination := range destinations {
			d := w.delivery(destination, r.Number)
			if d == nil {
				w.t.Fatalf("release %d has no delivery to %s", r.Number, destination)
			}
			if ids[d.WebhookID] {
				w.t.Fatalf("webhook id %s is used twice", d.WebhookID)
			}
			ids[d.WebhookID] = true
		}
	}
	for _, destination := range destinations {
		if d := w.delivery(destination, int64(len(all)+1)); d != nil {
			w.t.Fatalf("there is a delivery of release %d, which is not there", d.Release)
		}
	}
	p, err := w.Project(w.t.Context(), w.project)
	if err != nil || p.Seq != int64(len(all)) {
		w.t.Fatalf("the project counts %d releases and has %d (%v)", p.Seq, len(all), err)
	}
	return all
}

// paths lists what a release holds, each with a space behind it.
func (w *world) paths(release int64) string {
	w.t.Helper()
	documents, err := w.ReleaseDocuments(w.t.Context(), w.project, release)
	if err != nil {
		w.t.Fatal(err)
	}
	var b strings.Builder
	for _, d := range documents {
		b.WriteString(d.Path + " ")
	}
	return b.String()
}

// code is the code of a refusal; any other error fails the test.
func code(t *testing.T, err error) content.Code {
	t.Helper()
	var refusal *content.Error
	if err == nil {
		return ""
	}
	if !errors.As(err, &refusal) {
		t.Fatalf("not a refusal: %v", err)
	}
	if refusal.Message == "" || !strings.HasSuffix(refusal.Message, ".") {
		t.Errorf("a refusal without a sentence: %v", err)
	}
	return refusal.Code
}

// unhurried is a clock on which time and waits pass at a fifth of their pace: a
// machine that is busy with other things does not use an operation's time up.
type unhurried struct{ since time.Time }

func (c unhurried) Now() time.Time { return c.since.Add(time.Since(c.since) / 5) }

func (c unhurried) Sleep(ctx context.Context, d time.Duration) error { return clock.Sleep(ctx, 5*d) }

// patient is a clock on which waiting takes no time.
type patient struct {
	sync.Mutex
	now    time.Time
	sleeps int
}

func newPatient() *patient { return &patient{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)} }

func (c *patient) Now() time.Time {
	c.Lock()
	defer c.Unlock()
	return c.now
}

func (c *patient) Sleep(_ context.Context, d time.Duration) error {
	c.advance(d)
	return nil
}

func (c *patient) advance(d time.Duration) {
	c.Lock()
	defer c.Unlock()
	c.now = c.now.Add(d)
	c.sleeps++
}

// leisurely makes every random wait the same, for a patient clock: time is up after 25.
func leisurely(time.Duration) time.Duration { return 200 * time.Millisecond }
