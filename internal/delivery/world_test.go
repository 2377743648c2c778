package delivery_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"sync"
	"testing"
	"time"

	"colophon/internal/clock"
	"colophon/internal/content"
	"colophon/internal/delivery"
	"colophon/internal/destination"
	"colophon/internal/enginetest"
	"colophon/internal/ratelimit"
	"colophon/internal/store"
	"colophon/internal/webhook"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// world is a stack without its queues: real tables on a real engine, the real
// content and destination services, a worker whose receiver is a script, and a
// clock that the test moves.
type world struct {
	t            testing.TB
	tables       enginetest.Tables
	engine       store.Engine
	store        *store.Deliveries
	contents     *content.Service
	destinations *destination.Service
	project      string
	dest         delivery.Destination

	mu       sync.Mutex
	now      time.Time
	units    []store.Consumption
	sent     []delivery.Sending
	events   []delivery.Event
	open     error
	receiver func(delivery.Sending) delivery.Outcome // nil: 204 after 20 ms
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, tables: enginetest.NewTables(t), now: time.Now().UTC().Truncate(time.Millisecond)}
	ctx := context.Background()
	var err error
	w.engine, err = store.NewDynamo(store.DynamoConfig{Client: w.tables.Client, Observe: func(c store.Consumption) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.units = append(w.units, c)
	}})
	must(t, err)
	w.store, err = store.NewDeliveries(store.DeliveriesConfig{Engine: w.engine, Table: w.tables.Delivery, Clock: w.clock})
	must(t, err)
	contents, err := store.NewContents(store.ContentsConfig{Engine: w.engine, ContentTable: w.tables.Content, DeliveryTable: w.tables.Delivery})
	must(t, err)
	w.contents, err = content.New(content.Config{
		Store: contents, Announce: announce, PublicAddress: "https://colophon.example", Clock: w,
		Publishes: ratelimit.PerMinute(60_000, 60_000), // this clock stands still between a test's publishes
	})
	must(t, err)
	destinations, err := store.NewDestinations(store.DestinationsConfig{Engine: w.engine, ContentTable: w.tables.Content, DeliveryTable: w.tables.Delivery})
	must(t, err)
	w.destinations, err = destination.New(destination.Config{
		Store: destinations, History: destinations, Sealer: plainSealer{}, ParseTarget: func(_ context.Context, raw string) (*url.URL, error) { return url.Parse(raw) }, Clock: w.clock, Random: rand.Reader,
	})
	must(t, err)
	project, err := w.contents.CreateProject(ctx, "Shop")
	must(t, err)
	w.project = project.ID
	w.dest = w.addDestination("first")
	return w
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func announce(a content.Announcement) (string, []byte, error) {
	id, err := webhook.NewID(rand.Reader)
	if err != nil {
		return "", nil, err
	}
	body, err := webhook.Release{
		Project: webhook.Project{ID: a.Project, Name: a.ProjectName}, Number: a.Release, Documents: int(a.Documents),
		Message: a.Message, URL: a.URL,
	}.Body(a.At)
	return id, body, err
}

// plainSealer stands for KMS, which has tests of its own.
type plainSealer struct{}

func (plainSealer) Seal(_ context.Context, _ delivery.Binding, plain []byte) (delivery.Sealed, error) {
	return delivery.Sealed{Bytes: append([]byte("sealed:"), plain...), Context: delivery.SealedForPurpose}, nil
}

func (w *world) addDestination(name string) delivery.Destination {
	w.t.Helper()
	added, err := w.destinations.Add(context.Background(), w.project, destination.Addition{Name: name, URL: "https://receiver.example/hook"})
	must(w.t, err)
	return delivery.Destination{Project: w.project, ID: added.Destination.ID}
}

func (w *world) publish() int64 {
	w.t.Helper()
	published, err := w.contents.Publish(context.Background(), w.project, content.PublishRequest{Message: "news", Force: true, Who: "test"})
	must(w.t, err)
	return published.Number
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// Now and Sleep make the world content's clock: its waits are short and real.
func (w *world) Now() time.Time { return w.clock() }

func (w *world) Sleep(ctx context.Context, d time.Duration) error { return clock.Sleep(ctx, d) }

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// worker is one more worker on the world's tables.
func (w *world) worker(change ...func(*delivery.Config)) *delivery.Worker {
	w.t.Helper()
	c := delivery.Config{
		Reader: w.store, Slots: w.store, Endings: w.store, Notes: w.store, Tests: w.store, Sender: w,
		Clock: w.clock, Jitter: func() float64 { return 0 }, Token: rand.Text,
		Observe: func(_ context.Context, e delivery.Event) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.events = append(w.events, e)
		},
		Sleep: func(context.Context, time.Duration) error { return nil }, Beside: delivery.Beside, Left: delivery.Left,
	}
	for _, f := range change {
		f(&c)
	}
	worker, err := delivery.NewWorker(c)
	must(w.t, err)
	return worker
}

func (w *world) Open(context.Context, delivery.Destination, delivery.Settings) (delivery.Opened, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return delivery.Opened{}, w.open
}

func (w *world) Send(_ context.Context, s delivery.Sending) delivery.Outcome {
	w.mu.Lock()
	w.sent = append(w.sent, s)
	receiver := w.receiver
	w.mu.Unlock()
	if receiver == nil {
		return answers(204)
	}
	return receiver(s)
}

func answers(status int) delivery.Outcome {
	return delivery.Outcome{
		Class: delivery.ClassOfStatus(status), Status: status, Received: delivery.Answered, Elapsed: 20 * time.Millisecond,
	}
}

// answering sets what the receiver answers from now on.
func (w *world) answering(f func(delivery.Sending) delivery.Outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.receiver = f
}

func (w *world) status(status int) {
	w.answering(func(delivery.Sending) delivery.Outcome { return answers(status) })
}

func (w *world) ring(release int64) delivery.Ring {
	return delivery.Ring{Key: delivery.Key{Destination: w.dest, Release: release}, Receives: 1}
}

// answer answers a ring with a fresh worker.
func (w *world) answer(release int64) delivery.Disposition {
	w.t.Helper()
	return w.worker().Answer(context.Background(), w.ring(release))
}

func (w *world) delivery(release int64) delivery.Delivery {
	w.t.Helper()
	d, err := w.store.ReadDelivery(context.Background(), delivery.Key{Destination: w.dest, Release: release})
	must(w.t, err)
	if d == nil {
		w.t.Fatalf("there is no delivery of release %d", release)
	}
	return *d
}

func (w *world) slot() delivery.Slot {
	w.t.Helper()
	target, err := w.store.ReadTarget(context.Background(), w.dest)
	must(w.t, err)
	return target.Slot
}

// sendings are the requests so far, as release/attempt.
func (w *world) sendings() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []string
	for _, s := range w.sent {
		list = append(list, fmt.Sprintf("%d/%d", s.Delivery.Release, s.Attempt))
	}
	return list
}

// consumed takes what was consumed since the last time.
func (w *world) consumed() (calls []string, read, write float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, u := range w.units {
		calls, read, write = append(calls, u.Call), read+u.ReadUnits, write+u.WriteUnits
	}
	w.units = nil
	return calls, read, write
}

func (w *world) stands(release int64, status delivery.Status, reason delivery.Reason) delivery.Delivery {
	w.t.Helper()
	d := w.delivery(release)
	if d.Status != status || d.Reason != reason {
		w.t.Errorf("release %d is %s %q, want %s %q", release, d.Status, d.Reason, status, reason)
	}
	return d
}

func sameRequest(a, b delivery.Sending) bool { return a.ID == b.ID && bytes.Equal(a.Body, b.Body) }
