package destination_test

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"colophon/internal/clock"
	"colophon/internal/content"
	"colophon/internal/delivery"
	"colophon/internal/destination"
	"colophon/internal/egress"
	"colophon/internal/enginetest"
	"colophon/internal/store"
	"colophon/internal/webhook"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// desk is a project with what acts on it: people, a publisher, a worker and the
// receiver that the worker sends to. All but the receiver are the real ones, on
// a real engine.
type desk struct {
	*destination.Service
	t        *testing.T
	project  string
	config   destination.Config
	tables   enginetest.Tables
	engine   store.Engine
	sealer   *sealer
	content  *content.Service
	worker   *delivery.Worker
	receiver *receiver
	ahead    atomic.Int64 // of the system's clock
}

// newDesk makes a desk; between may put something between people and the engine.
func newDesk(t *testing.T, between ...func(store.Engine) store.Engine) *desk {
	t.Helper()
	d := &desk{t: t, tables: enginetest.NewTables(t), sealer: newSealer(t), receiver: &receiver{answer: arrives}}
	engine, err := store.NewDynamo(store.DynamoConfig{Client: d.tables.Client})
	must(t, err)
	d.engine = engine
	for _, b := range between {
		d.engine = b(d.engine)
	}
	destinations, err := store.NewDestinations(store.DestinationsConfig{
		Engine: d.engine, ContentTable: d.tables.Content, DeliveryTable: d.tables.Delivery,
	})
	must(t, err)
	d.config = destination.Config{
		Store: destinations, History: destinations, Sealer: d.sealer, Clock: d.now, Random: rand.Reader,
		ParseTarget: func(_ context.Context, raw string) (*url.URL, error) { return egress.ParseTarget(raw) },
	}
	d.Service, err = destination.New(d.config)
	must(t, err)
	client, err := egress.New(egress.Config{Clock: d.now})
	must(t, err)
	d.receiver.courier, err = delivery.NewCourier(delivery.CourierConfig{Opener: d.sealer, Client: client, Clock: d.now})
	must(t, err)

	contents, err := store.NewContents(store.ContentsConfig{
		Engine: engine, ContentTable: d.tables.Content, DeliveryTable: d.tables.Delivery,
	})
	must(t, err)
	d.content, err = content.New(content.Config{
		Store: contents, PublicAddress: "https://colophon.example.org",
		Announce: func(a content.Announcement) (string, []byte, error) {
			id, err := webhook.NewID(rand.Reader)
			if err != nil {
				return "", nil, err
			}
			body, err := webhook.Release{Project: webhook.Project{ID: a.Project, Name: a.ProjectName}, Number: a.Release}.Body(a.At)
			return id, body, err
		},
	})
	must(t, err)
	project, err := d.content.CreateProject(t.Context(), "One")
	must(t, err)
	d.project = project.ID

	deliveries, err := store.NewDeliveries(store.DeliveriesConfig{Engine: engine, Table: d.tables.Delivery, Clock: d.now})
	must(t, err)
	d.worker, err = delivery.NewWorker(delivery.Config{
		Reader: deliveries, Slots: deliveries, Endings: deliveries, Notes: deliveries, Tests: deliveries,
		Sender: d.receiver, Observe: func(context.Context, delivery.Event) {}, Clock: d.now,
		Jitter: func() float64 { return 0 }, Token: rand.Text, Sleep: clock.Sleep, Beside: delivery.Beside,
		Left: func(context.Context) time.Duration { return delivery.FunctionTime },
	})
	must(t, err)
	return d
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (d *desk) now() time.Time { return time.Now().Add(time.Duration(d.ahead.Load())) }

func (d *desk) pass(by time.Duration) { d.ahead.Add(int64(by)) }

func (d *desk) add() string {
	d.t.Helper()
	added, err := d.Add(d.t.Context(), d.project, destination.Addition{Name: "Site", URL: "https://hooks.colophon.dev/in"})
	must(d.t, err)
	return added.Destination.ID
}

func (d *desk) publish() int64 {
	d.t.Helper()
	p, err := d.content.Publish(d.t.Context(), d.project, content.PublishRequest{Force: true, Who: "ann"})
	must(d.t, err)
	return p.Number
}

func (d *desk) key(id string, release int64) delivery.Key {
	return delivery.Key{Destination: delivery.Destination{Project: d.project, ID: id}, Release: release}
}

// ring lets the worker answer a delivery's message until it is done with it.
func (d *desk) ring(id string, release int64) {
	d.t.Helper()
	for receives := 1; receives < 5; receives++ {
		switch end := d.worker.Answer(d.t.Context(), delivery.Ring{Key: d.key(id, release), Receives: receives}).(type) {
		case delivery.Done:
			return
		case delivery.Keep:
			if end.For > time.Second {
				return // it waits for its next try
			}
		default:
			d.t.Fatalf("the worker says %T", end)
		}
	}
}

func (d *desk) delivery(id string, release int64) destination.Delivery {
	d.t.Helper()
	got, err := d.Delivery(d.t.Context(), d.key(id, release))
	must(d.t, err)
	return got
}

func (d *desk) get(id string) destination.Destination {
	d.t.Helper()
	got, err := d.Get(d.t.Context(), d.project, id)
	must(d.t, err)
	return got
}

// want expects a refusal with this code.
func want(t *testing.T, err error, code destination.Code) *destination.Error {
	t.Helper()
	var refusal *destination.Error
	if !errors.As(err, &refusal) || refusal.Code != code {
		t.Fatalf("got %v, want %q", err, code)
	}
	return refusal
}

// receiver is a Sender that keeps what arrives, opened as the worker does.
type receiver struct {
	courier *delivery.Courier
	mu      sync.Mutex
	got     []delivery.Sending
	answer  func(delivery.Sending) delivery.Outcome
}

// Open is the courier's.
func (r *receiver) Open(ctx context.Context, d delivery.Destination, s delivery.Settings) (delivery.Opened, error) {
	return r.courier.Open(ctx, d, s)
}

func (r *receiver) Send(_ context.Context, s delivery.Sending) delivery.Outcome {
	r.mu.Lock()
	r.got = append(r.got, s)
	answer := r.answer
	r.mu.Unlock()
	return answer(s)
}

// answers lets the receiver answer so from now on.
func (r *receiver) answers(with func(delivery.Sending) delivery.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = with
}

// releases are those that arrived, in order.
func (r *receiver) releases() []int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	var releases []int64
	for _, s := range r.got {
		releases = append(releases, s.Delivery.Release)
	}
	return releases
}

func (r *receiver) arrived(t *testing.T, releases ...int64) {
	t.Helper()
	if got := r.releases(); !slices.Equal(got, releases) {
		t.Fatalf("the receiver got releases %v, want %v", got, releases)
	}
}

func arrives(delivery.Sending) delivery.Outcome {
	return delivery.Outcome{Class: delivery.ClassDelivered, Status: 200, Received: delivery.Answered}
}

func unavailable(delivery.Sending) delivery.Outcome {
	return delivery.Outcome{Class: delivery.ClassUnavailable, Status: 503, Received: delivery.Answered}
}

func gone(delivery.Sending) delivery.Outcome {
	return delivery.Outcome{Class: delivery.ClassGone, Status: 410, Received: delivery.Answered}
}

// sealer encrypts as the stack's key does: bound to the destination.
type sealer struct {
	aead   cipher.AEAD
	refuse atomic.Bool
	asked  atomic.Int64
}

func newSealer(t *testing.T) *sealer {
	t.Helper()
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	block, err := aes.NewCipher(key)
	must(t, err)
	aead, err := cipher.NewGCMWithRandomNonce(block)
	must(t, err)
	return &sealer{aead: aead}
}

// bound is what a value is bound to, under the context of its kind.
func bound(b delivery.Binding, c delivery.SealContext) []byte {
	if c == delivery.SealedForDestination {
		b.Purpose = ""
	}
	if b.Purpose != delivery.PurposeHeaders {
		b.Origin = ""
	}
	return fmt.Appendf(nil, "%d %+v", c, b)
}

func (s *sealer) Seal(_ context.Context, b delivery.Binding, plain []byte) (delivery.Sealed, error) {
	s.asked.Add(1)
	if s.refuse.Load() {
		return delivery.Sealed{}, errors.New("key: marked-key-fault")
	}
	return s.sealUnder(b, delivery.SealedForPurpose, plain), nil
}

func (s *sealer) sealUnder(b delivery.Binding, c delivery.SealContext, plain []byte) delivery.Sealed {
	return delivery.Sealed{Bytes: s.aead.Seal(nil, nil, plain, bound(b, c)), Context: c}
}

// Open opens as the stack's key does: under the context that is stored with the value.
func (s *sealer) Open(_ context.Context, b delivery.Binding, sealed delivery.Sealed) ([]byte, error) {
	plain, err := s.aead.Open(nil, nil, sealed.Bytes, bound(b, sealed.Context))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", delivery.ErrSealedForAnother, err)
	}
	return plain, nil
}

// Reseal moves a value to the newest context, as the key does.
func (s *sealer) Reseal(ctx context.Context, b delivery.Binding, sealed delivery.Sealed) (delivery.Sealed, error) {
	plain, err := s.Open(ctx, b, sealed)
	if err != nil {
		return delivery.Sealed{}, err
	}
	return s.sealUnder(b, delivery.SealedForPurpose, plain), nil
}

func (s *sealer) openSecret(t *testing.T, d delivery.Destination, sealed delivery.Sealed) string {
	t.Helper()
	plain, err := s.Open(t.Context(), delivery.Binding{Destination: d, Purpose: delivery.PurposeSecret}, sealed)
	must(t, err)
	return string(plain)
}

func (s *sealer) openHeaders(t *testing.T, d delivery.Destination, origin string, sealed delivery.Sealed) string {
	t.Helper()
	plain, err := s.Open(t.Context(), delivery.Binding{Destination: d, Purpose: delivery.PurposeHeaders, Origin: origin}, sealed)
	must(t, err)
	return string(plain)
}

// settings are a destination's as they are stored.
func (d *desk) settings(id string) delivery.Settings {
	d.t.Helper()
	destinations, err := store.NewDestinations(store.DestinationsConfig{
		Engine: d.engine, ContentTable: d.tables.Content, DeliveryTable: d.tables.Delivery,
	})
	must(d.t, err)
	held, err := destinations.Holdings(d.t.Context(), d.project, []string{id})
	must(d.t, err)
	return held[0].Settings
}

// slot is a destination's as it is stored.
func (d *desk) slot(id string) delivery.Slot {
	d.t.Helper()
	deliveries, err := store.NewDeliveries(store.DeliveriesConfig{Engine: d.engine, Table: d.tables.Delivery, Clock: d.now})
	must(d.t, err)
	target, err := deliveries.ReadTarget(d.t.Context(), delivery.Destination{Project: d.project, ID: id})
	must(d.t, err)
	return target.Slot
}

// together runs all at the same time and returns their errors in order.
func together(do ...func() error) []error {
	errs := make([]error, len(do))
	var begin, end sync.WaitGroup
	begin.Add(1)
	for i, f := range do {
		end.Go(func() {
			begin.Wait()
			errs[i] = f()
		})
	}
	begin.Done()
	end.Wait()
	return errs
}
