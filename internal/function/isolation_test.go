package function_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"colophon/client"
	"colophon/internal/clock"
	"colophon/internal/delivery"
	"colophon/internal/egress"
	"colophon/internal/outbox"
	"colophon/internal/runtime/sealing"
	"colophon/internal/store"
)

// lane is the key under which an invocation's context names its queue.
type lane struct{}

// attempt is one request, and the queue whose invocation made it.
type attempt struct{ project, destination, queue string }

// lanes is a system whose deliver function serves both of its queues, on a clock
// that the test moves, and that tells which queue each attempt was made from.
type lanes struct {
	*system
	*delivery.Courier
	consumer *outbox.Consumer
	sweeper  *outbox.Sweeper
	receiver *httptest.Server

	mu       sync.Mutex
	changed  chan struct{} // closed by each change of what stands below
	now      time.Time
	hangs    bool            // so does the receiver, for what comes to /hang
	requests map[string]int  // that arrived, by path
	made     []attempt       // in their order
	underWay map[string]int  // attempts, by project
	recorded map[string]int  // attempts, by project and class
	slow     map[string]bool // destinations that hung, until they answer in time
	broken   string          // what must not happen and did
	over     bool            // the test: nothing hangs any more
}

func newLanes(t *testing.T) *lanes {
	t.Helper()
	w := &lanes{
		system: newSystem(t), changed: make(chan struct{}), requests: map[string]int{}, underWay: map[string]int{},
		recorded: map[string]int{}, slow: map[string]bool{},
		now: time.Now().Add(time.Hour), // what the api writes by the machine's clock is due, and stays so
	}
	engine, err := store.NewDynamo(store.DynamoConfig{Client: w.tables.Client})
	must(t, err)
	deliveries, err := store.NewDeliveries(store.DeliveriesConfig{Engine: engine, Table: w.tables.Delivery, Clock: w.clock})
	must(t, err)
	opener, err := sealing.NewOpener(sealing.OpenerConfig{Decrypt: w.keys.Decrypt, Key: w.key, Clock: w.clock, OldContext: func() {}})
	must(t, err)
	out, err := egress.New(egress.Config{Clock: w.clock, Allow: []egress.TargetOption{egress.AllowLoopback()}})
	must(t, err)
	w.Courier, err = delivery.NewCourier(delivery.CourierConfig{Opener: opener, Client: out, Clock: w.clock})
	must(t, err)
	worker, err := delivery.NewWorker(delivery.Config{
		Reader: deliveries, Slots: deliveries, Endings: deliveries, Notes: deliveries, Tests: deliveries, Sender: w,
		Observe: w.observe, Clock: w.clock, Jitter: func() float64 { return 0 }, Token: rand.Text, Sleep: clock.Sleep,
		Beside: delivery.Beside, Left: delivery.Left,
	})
	must(t, err)
	w.consumer, err = outbox.NewConsumer(outbox.ConsumerConfig{
		QueueURL: w.queue, SlowQueueURL: w.system.slow, Worker: worker, Slow: w.sender(w.system.slow), Dead: w.sender(w.dead),
		ChangeVisibility: w.queues.ChangeMessageVisibility, Log: slog.New(slog.DiscardHandler),
	})
	must(t, err)
	index, err := store.NewSweep(store.SweepConfig{Engine: engine, Table: w.tables.Delivery})
	must(t, err)
	w.sweeper, err = outbox.NewSweeper(outbox.SweeperConfig{
		Index: index, Queue: w.sender(w.queue), Clock: w.clock, Random: rand.Reader, Observe: func(context.Context, outbox.Swept) {},
	})
	must(t, err)
	w.receiver = httptest.NewServer(http.HandlerFunc(w.answer))
	t.Cleanup(w.receiver.Close)
	return w
}

func (w *lanes) sender(queue string) *outbox.Sender {
	w.t.Helper()
	sender, err := outbox.NewSender(outbox.SenderConfig{QueueURL: queue, SendBatch: w.queues.SendMessageBatch})
	must(w.t, err)
	return sender
}

// project is a project with so many destinations at a path of the receiver.
func (w *lanes) project(path string, destinations int) (id string) {
	w.t.Helper()
	project, err := w.api.CreateProject(w.t.Context(), &client.NewProject{Name: path})
	must(w.t, err)
	for i := range destinations {
		_, err := w.api.CreateDestination(w.t.Context(), &client.NewDestination{Name: fmt.Sprint(i), URL: w.receiver.URL + path},
			client.CreateDestinationParams{Project: project.ID})
		must(w.t, err)
	}
	return project.ID
}

// publish publishes a release and rings for it.
func (w *lanes) publish(project string) {
	w.t.Helper()
	_, err := w.api.PublishRelease(w.t.Context(), client.NewOptPublish(client.Publish{Force: client.NewOptBool(true)}),
		client.PublishReleaseParams{Project: project})
	must(w.t, err)
	w.stream()
}

// serve invokes the function for a queue's batches, as a mapping of that
// concurrency does, until it is stopped.
func (w *lanes) serve(queue string, batch int32, concurrency int) (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	var workers sync.WaitGroup
	for range concurrency {
		workers.Go(func() {
			for ctx.Err() == nil {
				invocation := context.WithValue(context.WithoutCancel(ctx), lane{}, queue)
				w.invoke(invocation, w.consumer, queue, w.receive(ctx, queue, batch))
			}
		})
	}
	stop = func() {
		cancel()
		workers.Wait()
	}
	w.t.Cleanup(func() {
		w.change(func() { w.over = true })
		stop()
	})
	return stop
}

func (w *lanes) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *lanes) pass(d time.Duration) { w.change(func() { w.now = w.now.Add(d) }) }

// change changes what the mutex guards, and tells who waits for it.
func (w *lanes) change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
	close(w.changed)
	w.changed = make(chan struct{})
}

// wait waits until it holds; false where the context ends first.
func (w *lanes) wait(ctx context.Context, holds func() bool) bool {
	for {
		w.mu.Lock()
		held, changed := holds(), w.changed
		w.mu.Unlock()
		if held {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// until is wait in the test's own words. What must not happen ends the test at once.
func (w *lanes) until(what string, holds func() bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Minute)
	defer cancel()
	held := w.wait(ctx, func() bool { return w.broken != "" || holds() })
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken != "" {
		w.t.Fatalf("until %s: %s", what, w.broken)
	}
	if !held {
		w.t.Fatalf("not: %s; requests %v, under way %v, recorded %v", what, w.requests, w.underWay, w.recorded)
	}
}

// attempts takes a project's since the last time.
func (w *lanes) attempts(project string) (made []attempt) {
	w.change(func() {
		w.made = slices.DeleteFunc(w.made, func(a attempt) bool {
			if a.project == project {
				made = append(made, a)
			}
			return a.project == project
		})
	})
	return made
}

func (w *lanes) answer(rw http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil { // unread, it would hide that the sender hangs up
		w.t.Error(err)
	}
	hangs := false
	w.change(func() {
		w.requests[r.URL.Path]++
		hangs = w.hangs && r.URL.Path == "/hang"
	})
	if hangs {
		<-r.Context().Done() // the sender has hung up
		return
	}
	rw.WriteHeader(http.StatusNoContent)
}

// Send is the real courier's, with its deadline on the test's clock: what hangs,
// hangs until that is moved.
func (w *lanes) Send(ctx context.Context, s delivery.Sending) delivery.Outcome {
	queue, _ := ctx.Value(lane{}).(string)
	w.change(func() {
		w.made = append(w.made, attempt{s.Delivery.Project, s.Delivery.ID, queue})
		w.underWay[s.Delivery.Project]++
		if queue == w.queue && w.slow[s.Delivery.ID] {
			w.broken = "a destination that hung before is sent to from the fast queue"
		}
	})
	defer w.change(func() { w.underWay[s.Delivery.Project]-- })
	ctx, end := context.WithCancel(ctx)
	defer end()
	go func() {
		w.wait(ctx, func() bool { return w.over || !w.now.Before(s.At.Add(delivery.AttemptTime)) })
		end()
	}()
	outcome := w.Courier.Send(ctx, s)
	if outcome.Class == delivery.ClassTimeout {
		<-ctx.Done() // the way out has a deadline on the machine's clock too, and that may have come first
		outcome.Elapsed = w.clock().Sub(s.At)
	}
	return outcome
}

func (w *lanes) observe(_ context.Context, e delivery.Event) {
	switch e.Kind {
	case delivery.EventAttempt:
		class := e.Transition.Attempt.Class
		w.change(func() {
			w.recorded[e.Delivery.Project+" "+string(class)]++
			w.slow[e.Delivery.ID] = class == delivery.ClassTimeout
		})
	case delivery.EventFault, delivery.EventLate:
		w.change(func() { w.broken = fmt.Sprintf("%s: %s %v", e.Kind, e.Doing, e.Err) })
	}
}

// The figure that comes of it is the bench's; here it is shown by order and by
// counts, with a single worker on the fast queue and a clock that stands still.
func TestFiftyDestinationsThatHangTakeNoWorkerOfTheFastQueueAfterTheirFirst(t *testing.T) {
	t.Parallel()
	const many, few = 50, 10
	w := newLanes(t)
	fast, slow := w.queue, w.system.slow
	hanging, healthy := w.project("/hang", many), w.project("/well", few)
	all := func(what, project string, destinations int, queue string) {
		t.Helper()
		seen := map[string]bool{}
		for _, a := range w.attempts(project) {
			if a.queue != queue {
				t.Fatalf("%s: an attempt from %s", what, a.queue)
			}
			if seen[a.destination] {
				t.Fatalf("%s: two attempts for one destination", what)
			}
			seen[a.destination] = true
		}
		if len(seen) != destinations {
			t.Fatalf("%s: attempts for %d destinations, want %d", what, len(seen), destinations)
		}
	}

	// Each hangs once, to the deadline, and nobody could know that it would.
	w.change(func() { w.hangs = true })
	stop := w.serve(fast, 10, many)
	w.publish(hanging)
	w.until("each hangs for the first time", func() bool { return w.requests["/hang"] == many })
	w.pass(delivery.AttemptTime)
	w.until("each first hang is recorded", func() bool { return w.recorded[hanging+" timeout"] == many })
	stop()
	all("first hang", hanging, many, fast)

	// Their second tries stand on the fast queue before what is well. Its one worker
	// gets past them all, and delivers, before any of them has ended.
	w.pass(time.Minute + delivery.SweepDelay + time.Second)
	must(t, w.sweeper.Handle(t.Context()))
	w.publish(healthy)
	w.serve(fast, 10, 1)
	w.serve(slow, 1, many)
	w.until("all fifty hang again, and what is well has its releases", func() bool {
		return w.requests["/hang"] == 2*many && w.recorded[healthy+" delivered"] == few
	})
	w.until("none of the fifty has ended", func() bool {
		return w.underWay[hanging] == many && w.recorded[hanging+" timeout"] == many
	})
	all("second hang", hanging, many, slow)
	all("beside the second hang", healthy, few, fast)
	w.pass(delivery.AttemptTime)
	w.until("each second hang is recorded", func() bool { return w.recorded[hanging+" timeout"] == 2*many })

	// They answer in time again: once more from the slow queue, and then from the fast one.
	w.change(func() { w.hangs = false })
	w.publish(hanging)
	w.until("the next release is delivered", func() bool { return w.recorded[hanging+" delivered"] == many })
	all("the first answer in time", hanging, many, slow)
	w.publish(hanging)
	w.until("the one after it is delivered", func() bool { return w.recorded[hanging+" delivered"] == 2*many })
	all("after an answer in time", hanging, many, fast)
	w.until("no request arrived that no attempt tells of", func() bool {
		return w.requests["/hang"] == 4*many && w.requests["/well"] == few
	})
}
