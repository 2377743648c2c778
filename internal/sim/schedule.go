package sim

import (
	"iter"
	"runtime/debug"
	"time"

	"colophon/internal/killpoint"
)

// moment is a time of the world: since it began.
type moment = time.Duration

// event is something that happens at a moment: a task goes on, or do is called.
type event struct {
	at   moment
	seq  uint64 // of events at one moment the one that was planned first
	task *task
	do   func()
}

func (e event) before(o event) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

// calendar is a heap of events.
type calendar struct {
	events []event
	seq    uint64
}

func (c *calendar) add(e event) {
	c.seq++
	e.seq = c.seq
	c.events = append(c.events, e)
	i := len(c.events) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !c.events[i].before(c.events[parent]) {
			break
		}
		c.events[i], c.events[parent] = c.events[parent], c.events[i]
		i = parent
	}
}

func (c *calendar) next() (event, bool) {
	if len(c.events) == 0 {
		return event{}, false
	}
	first, last := c.events[0], len(c.events)-1
	c.events[0] = c.events[last]
	c.events[last] = event{}
	c.events = c.events[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return first, true
		}
		if child+1 < last && c.events[child+1].before(c.events[child]) {
			child++
		}
		if !c.events[child].before(c.events[i]) {
			return first, true
		}
		c.events[i], c.events[child] = c.events[child], c.events[i]
		i = child
	}
}

// task is a thread of a process. It runs until it pauses; nothing else runs
// meanwhile, so the world needs no locks.
type task struct {
	process *process
	do      func()
	ended   bool
	then    func() // called when it has ended, and not when it was killed
	thread  *thread

	point killpoint.Name // that it passed last
	claim *claim         // what it sends under
	asked *asked         // what its person is about
	read  moment         // at which it began to read a destination, the last time
	turns bool           // its host's clock is set while it waits for an answer: it does not stand still besides
}

// thread is a coroutine that runs tasks, one after another: making one costs
// more than most tasks.
type thread struct {
	task  *task
	yield func(struct{}) bool
	next  func() (struct{}, bool)
	stop  func()
}

// killed unwinds a task whose process was killed.
type killed struct{}

// threads keeps coroutines for use again, also over worlds.
type threads struct{ free []*thread }

func (p *threads) get() *thread {
	if n := len(p.free); n > 0 {
		t := p.free[n-1]
		p.free = p.free[:n-1]
		return t
	}
	t := &thread{}
	t.next, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		for {
			t.task.run()
			if !yield(struct{}{}) {
				return
			}
		}
	})
	return t
}

func (p *threads) close() {
	for _, t := range p.free {
		t.stop()
	}
	p.free = nil
}

func (t *task) run() {
	defer func() {
		t.ended = true
		cause := recover()
		if _, wasKilled := cause.(killed); wasKilled || t.process.dead {
			return
		}
		w := t.process.world
		if cause != nil {
			w.violate("panic", "%s panics: %v\n%s", t.process.name, cause, debug.Stack())
			return
		}
		if t.then != nil {
			t.then()
		}
	}()
	t.do()
}

// process is a sandbox of a function, or whoever else does things in the world.
type process struct {
	world    *World
	name     string
	role     role
	skew     time.Duration // how far its clock is from the world's, within its bound
	off      time.Duration // and beyond it: 0 is a host whose clock is right
	dead     bool
	frozen   moment // it stands still until then
	stood    moment // so long in all
	tasks    []*task
	deadline moment // of its invocation; 0: none
	mortal   bool   // it can be killed and frozen
	release  func() // tells whoever invoked it that it is done, killed or given up
	// abandoned: its invocation's time was over while it stood still.
	abandoned bool
}

// free gives the process's invocation up, once.
func (p *process) free() {
	if release := p.release; release != nil {
		p.release = nil
		release()
	}
}

// wall is the process's wall clock.
func (p *process) wall() time.Time { return p.world.start.Add(p.world.now + p.skew + p.off) }

// alone says whether none of the process's tasks but the one that runs is at work.
func (p *process) alone() bool {
	for _, t := range p.tasks {
		if !t.ended && t != p.world.current {
			return false
		}
	}
	return true
}

// clock is what the process takes for its wall clock.
func (p *process) clock() time.Time {
	if p.world.mutant.Monotonic {
		return p.wall().Add(-p.stood)
	}
	return p.wall()
}

func (w *World) newProcess(name string, r role) *process {
	// Two clocks differ by a second at most, so each is within half of it.
	skew := time.Duration(w.choices.below(chooseSkew, 21)) * 50 * time.Millisecond
	if skew > 500*time.Millisecond {
		skew = 500*time.Millisecond - skew
	}
	p := &process{world: w, name: name, role: r, skew: skew}
	w.processes = append(w.processes, p)
	return p
}

// begin starts a task of a process after a while.
func (w *World) begin(p *process, after moment, do, then func()) *task {
	t := &task{process: p, do: do, then: then}
	p.tasks = append(p.tasks, t)
	w.calendar.add(event{at: w.now + after, task: t})
	return t
}

// resume runs a task until it pauses or ends.
func (w *World) resume(t *task) {
	if t.ended {
		return
	}
	if t.thread == nil {
		if t.process.dead {
			t.ended = true
			return
		}
		t.thread = w.threads.get()
		t.thread.task = t
	}
	before := w.current
	w.current, w.choices.role = t, t.process.role
	t.thread.next()
	w.current, w.choices.role = before, roleWorld
	if before != nil {
		w.choices.role = before.process.role
	}
	if t.ended {
		w.threads.free = append(w.threads.free, t.thread)
		t.thread = nil
	}
}

// pause gives the other tasks their turn until the moment after d.
func (w *World) pause(d moment) {
	t := w.current
	if t.thread == nil { // a test's engine, where nobody else has a turn
		w.now += d
		return
	}
	w.calendar.add(event{at: w.now + d, task: t})
	w.wait()
}

// wait gives the other tasks their turn until somebody resumes this one.
func (w *World) wait() {
	t := w.current
	t.thread.yield(struct{}{})
	if t.process.dead {
		panic(killed{})
	}
}

// kill ends a process at this very point: none of its tasks does anything more.
func (w *World) kill(p *process) {
	if p.dead {
		return
	}
	p.dead = true
	for _, t := range p.tasks {
		if t != w.current {
			w.resume(t)
		}
	}
	p.tasks = nil
	p.free()
	if w.current != nil && w.current.process == p {
		panic(killed{})
	}
}

// beside is the worker's Beside: one after the other, or truly side by side.
func (w *World) beside(a, b func()) {
	switch w.choices.below(chooseOrder, 3) {
	case 0:
		a()
		b()
		return
	case 1:
		b()
		a()
		return
	}
	parent := w.current
	var panicked any
	child := w.begin(parent.process, 0, func() {
		defer func() { panicked = recover() }()
		b()
	}, nil)
	child.claim, child.asked = parent.claim, parent.asked
	waiting := false
	child.then = func() {
		if waiting {
			w.calendar.add(event{at: w.now, task: parent})
		}
	}
	defer func() {
		if parent.process.dead {
			return
		}
		if !child.ended {
			waiting = true
			w.wait()
		}
		if panicked != nil {
			panic(panicked)
		}
	}()
	a()
}
