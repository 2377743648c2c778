package sim

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"colophon/internal/delivery"
	"colophon/internal/destination"
	"colophon/internal/killpoint"
	"colophon/internal/store"
)

// poison is a message that nobody can read.
const poison = `{"v":1,"project":"?"}`

// Bounds of a run: what is longer is an end that never comes.
const (
	stepsMost = 60_000
	patience  = 4 * time.Hour  // from the end of the faults to the end of the last delivery: a sweep's longest, and the hour of five tries
	endurance = 26 * time.Hour // where secrets can never be opened: our own faults are borne for a day
)

// Violation is something that must not happen, and did.
type Violation struct {
	Name   string // of the rule, stable
	Detail string
	At     time.Duration // since the world began
}

func (v *Violation) Error() string { return fmt.Sprintf("%s at %v: %s", v.Name, v.At, v.Detail) }

// Counts is what a run did and met.
type Counts struct {
	Steps     int
	Idle      int // queries of the sweep index that found nothing: no steps
	Releases  int
	Claims    int
	Sends     int
	Arrivals  int
	Settled   int
	Delivered int
	Failed    int
	Skipped   int
	Late      int // results that came after their lease
	Freezes   int
	Torn      int // queries that saw a transaction in part
	HeldBack  int // deliveries that a host left to others for its clock
	Kills     map[killpoint.Name]int
}

// add adds another run's counts.
func (c *Counts) add(o Counts) {
	c.Steps += o.Steps
	c.Idle += o.Idle
	c.Releases += o.Releases
	c.Claims += o.Claims
	c.Sends += o.Sends
	c.Arrivals += o.Arrivals
	c.Settled += o.Settled
	c.Delivered += o.Delivered
	c.Failed += o.Failed
	c.Skipped += o.Skipped
	c.Late += o.Late
	c.Freezes += o.Freezes
	c.Torn += o.Torn
	c.HeldBack += o.HeldBack
	if c.Kills == nil {
		c.Kills = map[killpoint.Name]int{}
	}
	for name, n := range o.Kills {
		c.Kills[name] += n
	}
}

// World is one stack: tables, queues, functions, receivers and people, on one
// clock and with one source of choices.
type World struct {
	choices   *choices
	threads   *threads
	calendar  calendar
	start     time.Time
	now       moment
	current   *task
	processes []*process
	mutant    mutant
	story     func(at moment, line string)

	tables    *tables
	stream    *stream
	queue     *queue
	slow      *queue
	dead      *queue
	onFailure *queue
	receivers map[delivery.Destination]*receiver
	project   string
	known     []delivery.Destination
	people    int // still at work
	idle      []*sandbox
	dressed   []store.Key // deliveries of a newer build, until it is there

	check     *check
	violation *Violation
	counts    Counts

	workers, tokens, messages, receipts, draws int
	noise                                      uint64
}

func newWorld(c *choices, pool *threads, m mutant, story func(moment, string)) *World {
	w := &World{
		choices: c, threads: pool, mutant: m, story: story,
		// So far ahead that no timer of the machine's clock ever meets it.
		start:     time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
		receivers: map[delivery.Destination]*receiver{}, noise: 0x9e3779b97f4a7c15,
	}
	w.counts.Kills = map[killpoint.Name]int{}
	w.tables = newTables(w, contentTable, deliveryTable)
	w.stream = &stream{w: w}
	w.check = newCheck(w)
	w.queue = &queue{w: w, name: "deliveries", batch: 10}
	w.slow = &queue{w: w, name: "slow", batch: 1}
	w.dead = &queue{w: w, name: "dead-letters"}
	w.onFailure = &queue{w: w, name: "on-failure"}
	return w
}

// engine is what a process calls the tables through.
func (w *World) engine() store.Engine {
	if w.mutant.Engine != nil {
		return w.mutant.Engine(w, w.tables)
	}
	return w.tables
}

func (w *World) receiver(d delivery.Destination) *receiver {
	r := w.receivers[d]
	if r == nil {
		r = &receiver{sealed: w.choices.below(chooseReceiver, 50) == 49}
		w.receivers[d] = r
	}
	return r
}

// step counts what the simulator's speed is measured in: an engine call, an
// attempt and its bytes leaving, an invocation, a queue call, a wait.
func (w *World) step() { w.counts.Steps++ }

// happens says whether a fault happens here.
func (w *World) happens(l label) bool { return w.choices.happens(l) }

// passes notes a named point of the protocol, so that a kill after it is
// counted under its name.
func (w *World) passes(name killpoint.Name) { w.current.point = name }

// tell adds a line to the story.
func (w *World) tell(format string, args ...any) {
	if w.story != nil && w.violation == nil {
		w.story(w.now, fmt.Sprintf(format, args...))
	}
}

func (w *World) violate(name, format string, args ...any) {
	if w.violation == nil {
		w.tell("VIOLATION of “%s”: "+format, append([]any{name}, args...)...)
		w.violation = &Violation{Name: name, Detail: fmt.Sprintf(format, args...), At: w.now}
	}
}

// observe is the worker's: only a panic that was not put in matters here.
func (w *World) observe(_ context.Context, e delivery.Event) {
	switch {
	case w.current.process.dead:
	case e.Kind == delivery.EventLate:
		w.counts.Late++
	case e.Kind == delivery.EventClock:
		w.counts.HeldBack++
		w.tell("%s leaves release %d for %s to others: its clock is off", w.current.process.name, e.Ring.Release, w.check.at(e.Ring.Destination).name)
		if p := w.current.process; p.clock().Sub(w.start.Add(w.now)).Abs() <= delivery.ClockAllowance/2 {
			w.violate(ruleHeldBack, "%s takes its clock for off by %v to %v", p.name, -e.Clock.Most, -e.Clock.Least)
		}
	case e.Kind == delivery.EventFault && e.Doing == "panic" && e.Err.Error() != "panic: "+errInjected.Error():
		w.violate("panic", "%s: %v", w.current.process.name, e.Err)
	case e.Kind == delivery.EventFault:
		w.tell("%s notes a fault: %s: %v", w.current.process.name, e.Doing, e.Err)
	}
}

// run lets the world go until all has ended, or something that must not happen.
func (w *World) run() {
	w.populate()
	w.calendar.add(event{at: time.Duration(w.choices.below(chooseSize, 60)) * time.Second, do: w.sweep})
	w.until(func() bool { return w.people == 0 })
	more := w.now + [...]moment{0, time.Minute, 10 * time.Minute, time.Hour}[w.choices.below(chooseSize, 4)]
	w.until(func() bool { return w.now >= more || w.check.pending == 0 })
	w.choices.calm = true
	w.tell("the faults end")
	calm := w.now
	w.until(func() bool { return w.now >= calm+10*time.Second }) // no transaction is under way any more
	for _, k := range w.dressed {
		w.tables.dress(k, 1)
	}
	over := func() bool {
		for _, r := range w.receivers {
			if r.sealed {
				return w.now > calm+endurance
			}
		}
		return w.now > calm+patience
	}
	w.until(func() bool { return w.check.pending == 0 || over() })
	if w.violation == nil {
		w.until(func() bool { return w.quiet() || over() })
		w.check.end()
	}
	for _, p := range w.processes {
		p.mortal = false
		w.kill(p)
	}
	w.counts.Idle = w.tables.queries
}

// until goes from event to event.
func (w *World) until(done func() bool) {
	for w.violation == nil && !done() {
		e, ok := w.calendar.next()
		if !ok {
			return
		}
		if e.task != nil && e.task.process.frozen > e.at && !e.task.process.dead {
			w.calendar.add(event{at: e.task.process.frozen, task: e.task})
			continue
		}
		w.now = e.at
		if e.task != nil {
			w.resume(e.task)
		} else {
			e.do()
		}
		if w.counts.Steps > stepsMost {
			w.violate(ruleEndless, "%d steps, %d deliveries pending", w.counts.Steps, w.check.pending)
		}
	}
}

// quiet says whether nobody is at work any more.
func (w *World) quiet() bool {
	return w.queue.busy == 0 && w.slow.busy == 0
}

// populate makes projects, destinations and people, before any fault.
func (w *World) populate() {
	c := w.choices
	w.choices.calm = true
	destinations := 1 + c.below(chooseSize, 3)
	setup := w.newPerson("setup")
	ready := false
	w.begin(setup.process, 0, func() {
		p, err := w.contents(setup.process).CreateProject(context.Background(), "Shop")
		if err != nil {
			panic(err)
		}
		w.project = p.ID
		for i := range destinations {
			added, err := w.destinations(setup.process).Add(context.Background(), p.ID,
				destination.Addition{Name: "site " + strconv.Itoa(i+1), URL: "https://receiver.example/hook"})
			if err != nil {
				panic(err)
			}
			w.known = append(w.known, delivery.Destination{Project: p.ID, ID: added.Destination.ID})
		}
		ready = true
	}, nil)
	w.until(func() bool { return ready })
	w.choices.calm = false
	c.swarm()
	w.queue.most, w.slow.most = 1+c.below(chooseSize, 6), 1+c.below(chooseSize, 2)
	for i := range 1 + c.below(chooseSize, 3) {
		p, n := w.newPerson("publisher "+strconv.Itoa(i+1)), 1+c.below(chooseSize, 6)
		w.employ(p, func() { p.publish(n) })
	}
	for i := range c.below(chooseSize, 3) {
		p, n := w.newPerson("operator "+strconv.Itoa(i+1)), 1+c.below(chooseSize, 8)
		w.employ(p, func() { p.operate(n) })
	}
	if c.rate[faultPoison] > 0 && c.below(chooseSize, 2) == 1 {
		w.queue.put(poison, 0)
	}
}

func (w *World) employ(p *person, work func()) {
	w.people++
	w.begin(p.process, 0, work, func() { w.people-- })
}
