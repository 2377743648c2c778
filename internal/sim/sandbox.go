package sim

import (
	"context"
	"io"
	"log/slog"
	"strconv"
	"time"

	"colophon/internal/delivery"
	"colophon/internal/killpoint"
	"colophon/internal/outbox"
	"colophon/internal/store"
)

// sandbox is a process of the deliver function.
type sandbox struct {
	*process
	consumer *outbox.Consumer
}

// deliver starts an invocation of the deliver function for a batch, in an idle
// sandbox or a new one.
func (w *World) deliver(q *queue, batch []*message) {
	s := w.idleSandbox()
	w.turnClock(s.process)
	q.busy++
	s.release = func() {
		q.busy--
		q.plan()
	}
	event := q.event(batch)
	w.begin(s.process, w.latency(), func() {
		w.step()
		answer, err := s.consumer.Handle(w.invocation(s.process, delivery.FunctionTime), event)
		w.passes(killpoint.BeforeAck)
		w.mishap()
		if err != nil {
			w.violate("a batch fails as a whole", "%s: %v", s.name, err)
		}
		if s.abandoned {
			return
		}
		failed := make(map[string]bool, len(answer.BatchItemFailures))
		for _, failure := range answer.BatchItemFailures {
			failed[failure.ItemIdentifier] = true
		}
		for _, m := range event.Records {
			if !failed[m.MessageId] {
				q.remove(m.ReceiptHandle)
			}
		}
		w.retire(s.process)
		w.idle = append(w.idle, s)
	}, nil)
}

func (w *World) idleSandbox() *sandbox {
	for len(w.idle) > 0 {
		i := w.choices.below(chooseOrder, len(w.idle))
		s := w.idle[i]
		w.idle = append(w.idle[:i], w.idle[i+1:]...)
		if !s.dead {
			return s
		}
	}
	w.workers++
	return w.newSandbox("worker " + strconv.Itoa(w.workers))
}

func (w *World) newSandbox(name string) *sandbox {
	s := &sandbox{process: w.newProcess(name, roleWorker)}
	s.mortal = true
	engine := w.engine()
	deliveries, err := store.NewDeliveries(store.DeliveriesConfig{Engine: engine, Table: deliveryTable, Clock: s.clock})
	if err != nil {
		panic(err)
	}
	config := delivery.Config{
		Reader: deliveries, Slots: deliveries, Endings: deliveries, Notes: deliveries, Tests: deliveries,
		Sender: &sender{w: w, process: s.process}, Observe: w.observe, Clock: s.clock,
		Jitter: w.jitter, Token: w.token, Sleep: w.sleep, Beside: w.beside,
		Left: func(context.Context) time.Duration { return s.deadline - w.now - outbox.AnswerTime },
	}
	if w.mutant.Worker != nil {
		w.mutant.Worker(w, s.process, &config)
	}
	worker, err := delivery.NewWorker(config)
	if err != nil {
		panic(err)
	}
	s.consumer, err = outbox.NewConsumer(outbox.ConsumerConfig{
		QueueURL: w.queue.url(), SlowQueueURL: w.slow.url(), Worker: worker, Slow: w.sender(w.slow), Dead: w.sender(w.dead),
		ChangeVisibility: w.changeVisibility, Log: silent,
	})
	if err != nil {
		panic(err)
	}
	return s
}

var silent = slog.New(slog.DiscardHandler)

func (w *World) sender(q *queue) *outbox.Sender {
	s, err := outbox.NewSender(outbox.SenderConfig{QueueURL: q.url(), SendBatch: q.sendBatch})
	if err != nil {
		panic(err)
	}
	return s
}

func ignoreForwarded(context.Context, outbox.Forwarded) {}

// sweep is what the schedule does each minute. A sweep that would find nothing
// changes nothing, so it is left out.
func (w *World) sweep() {
	if w.tables.index.due(w.now, w.start.Add(w.now)) {
		p := w.newProcess("sweeper", roleCourier)
		p.mortal = true
		index, err := store.NewSweep(store.SweepConfig{Engine: w.engine(), Table: deliveryTable})
		if err != nil {
			panic(err)
		}
		config := outbox.SweeperConfig{
			Index: index, Queue: w.sender(w.queue), Clock: p.clock, Random: w,
			Observe: func(context.Context, outbox.Swept) {}, Beside: func(a, b func()) { a(); b() },
		}
		if w.mutant.Sweeper != nil {
			w.mutant.Sweeper(w, &config)
		}
		sweeper, err := outbox.NewSweeper(config)
		if err != nil {
			panic(err)
		}
		w.begin(p, w.latency(), func() {
			w.step()
			_ = sweeper.Handle(w.invocation(p, 5*time.Minute)) // its faults are those that were put in
			w.retire(p)
		}, nil)
	}
	w.calendar.add(event{at: w.now + time.Minute, do: w.sweep})
}

// invocation is the context of one: its deadline is by the process's clock. Past
// it Lambda kills a sandbox. One that stands still just then is given up, and may
// go on later all the same.
func (w *World) invocation(p *process, timeout time.Duration) context.Context {
	p.deadline = w.now + timeout
	end := p.deadline
	w.calendar.add(event{at: end, do: func() {
		switch {
		case p.dead || p.deadline != end:
		case p.frozen > w.now:
			p.abandoned = true
			p.free()
		default:
			w.tell("%s is killed: its time is over", p.name)
			w.kill(p)
		}
	}})
	return deadline{Context: context.Background(), at: w.start.Add(end + p.skew), process: p}
}

// deadline is a context that ends by the world's clock: Lambda counts the time of
// an invocation whatever its host's clock says.
type deadline struct {
	context.Context
	at      time.Time
	process *process
}

func (d deadline) Deadline() (time.Time, bool) { return d.at.Add(d.process.off), true }

func (d deadline) Err() error {
	if at, _ := d.Deadline(); d.process.clock().Before(at) {
		return nil
	}
	return context.DeadlineExceeded
}

// retire ends an invocation.
func (w *World) retire(p *process) {
	p.deadline = 0
	p.tasks = p.tasks[:0]
	p.free()
}

// sleep is the worker's Sleep.
func (w *World) sleep(ctx context.Context, d time.Duration) error {
	w.step()
	w.pause(d)
	w.back()
	// A context derived from an invocation's ends by the machine's clock, so never here.
	if at, ok := ctx.Deadline(); ok && !w.current.process.clock().Before(at) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// travel is the way of a request: here it can be overtaken, and here its sender
// can be killed or frozen before it is carried out.
func (w *World) travel() {
	w.mishap()
	w.pause(w.latency())
}

// back is the way of an answer: its receiver can be killed or frozen before it
// has read it.
func (w *World) back() { w.mishap() }

// mishap kills or freezes the process that runs, or lets it be.
func (w *World) mishap() {
	p := w.current.process
	if p.dead {
		panic(killed{})
	}
	if !p.mortal {
		return
	}
	if w.happens(faultCrash) {
		w.counts.Kills[w.current.point]++
		w.tell("%s is killed (%s)", p.name, w.current.point)
		w.kill(p)
	}
	if !w.current.turns && w.happens(faultFreeze) {
		freezes := [...]moment{500, 2_000, 4_000, 8_000, 11_000, 13_000, 14_000, 16_000, 20_000, 31_000, 60_000, 300_000, 900_000}
		d := freezes[w.choices.below(faultFreeze, len(freezes))] * time.Millisecond
		p.frozen, p.stood = w.now+d, p.stood+d
		w.counts.Freezes++
		w.tell("%s stands still for %v", p.name, d)
		w.pause(d)
	}
	if w.happens(faultClock) { // within its bound: NTP moves it
		before := p.skew
		p.skew = time.Duration(w.choices.below(faultClock, 21)-10) * 50 * time.Millisecond
		w.tell("the clock of %s moves by %v", p.name, p.skew-before)
	}
}

// offsets are how far the clock of a host that is out of bounds is off. Between
// the bound that clocks keep and the least of them is what the guard may let pass:
// delivery.ClockBound and ClockWidth.
var offsets = [...]time.Duration{
	8 * time.Second, 10 * time.Second, 15 * time.Second, 20 * time.Second, time.Minute, 5 * time.Minute,
}

// turnClock puts a host's clock out of bounds, or right again, and says whether it
// did. It is not done while the host holds a slot: what was read before would not
// show it.
func (w *World) turnClock(p *process) bool {
	if !p.mortal || p.role != roleWorker || !w.choices.calm && !w.happens(faultHost) {
		return false
	}
	before := p.off
	p.off = 0
	if !w.choices.calm {
		if n := w.choices.below(faultHost, 2*len(offsets)+1); n > 0 {
			p.off = offsets[(n-1)/2]
			if n%2 == 0 {
				p.off = -p.off
			}
		}
	}
	if p.off != before {
		w.tell("the clock of %s is off by %v now", p.name, p.off)
	}
	return p.off != before
}

// latency is how long a request or an answer is under way.
func (w *World) latency() moment {
	latencies := [...]moment{1, 1, 2, 2, 3, 3, 4, 5, 6, 8, 10, 14, 20, 40, 90, 250}
	return latencies[w.choices.below(chooseLatency, len(latencies))] * time.Millisecond
}

// jitter is from [0, 1).
func (w *World) jitter() float64 { return float64(w.choices.below(chooseJitter, 16)) / 16 }

// token is unique in the world, and short enough to be read in a story.
func (w *World) token() string {
	w.tokens++
	return "t" + strconv.Itoa(w.tokens)
}

// Read makes the world a source of randomness for ids and traces.
func (w *World) Read(b []byte) (int, error) {
	for i := range b {
		if w.draws%8 == 0 {
			w.noise = w.noise*6364136223846793005 + 1442695040888963407
		}
		b[i] = byte(w.noise >> (8 * (w.draws % 8)))
		w.draws++
	}
	return len(b), nil
}

var _ io.Reader = (*World)(nil)
