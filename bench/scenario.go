package main

import (
	"bytes"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// scenario is a way of putting load on.
type scenario struct {
	name  string
	world worldConfig
	plan  plan
	bare  time.Duration // how long the bare client runs before and after; 0: not
	// during runs beside the clients until the context ends.
	during func(ctx context.Context, r *run) error
	// after runs when the clients are done, before the books are closed.
	after func(ctx context.Context, r *run) error
	// drain is how long deliveries may take to end after that.
	drain time.Duration
	// judge adds the scenario's own figures.
	judge   func(r *run)
	first   bool   // the clients publish in the first project alone
	profile string // folder for profiles of api and deliver; empty: none
}

// run is a scenario being run, and what it came to.
type run struct {
	scenario
	w        *world
	began    time.Time
	clients  outcome
	receipts []receipt
	balance  balance
	samples  []sample
	before   mark
	done     mark // when the clients were done
	after_   mark // when all had ended
	barely   []barely
	mapped   mapped
	kills    []time.Time
	paces    []float64 // see pace
	figures  []figure
	faults   []string
	mu       sync.Mutex
}

// barely is what a run of the bare client came to and used.
type barely struct {
	rate
	client, engine time.Duration // of processor
}

// mark is a moment and all that was used until then.
type mark struct {
	at      time.Time
	usages  map[string]usage
	memory  map[string]memory
	counted map[string]counted
	logged  map[string]int64
}

// sample is what processes hold at a moment.
type sample struct {
	at     time.Time
	usages map[string]usage
}

// measuredMemory are the processes whose allocations are counted.
var measuredMemory = []string{"api", "deliver", "outbox-stream"}

func (r *run) mark() (mark, error) {
	m := mark{at: time.Now(), usages: r.w.usages(), memory: map[string]memory{}, counted: map[string]counted{}, logged: map[string]int64{}}
	for _, name := range functionNames {
		c, err := r.w.counted(name)
		if err != nil {
			return m, err
		}
		m.counted[name], m.logged[name] = c, r.w.logged(name)
	}
	for _, name := range measuredMemory {
		read, err := r.w.memory(name)
		if err != nil {
			return m, err
		}
		m.memory[name] = read
	}
	return m, nil
}

// perform runs a scenario. A run that fails has its faults, and is kept as well.
func perform(ctx context.Context, s scenario) *run {
	r := &run{scenario: s, began: time.Now()}
	if err := r.perform(ctx); err != nil {
		r.faults = append(r.faults, err.Error())
	}
	if r.w != nil {
		r.w.end()
	}
	r.faults = append(r.faults, r.balance.Faults...)
	return r
}

func (r *run) perform(ctx context.Context) (err error) {
	say("%s: starting", r.name)
	if r.w, err = newWorld(ctx, r.world); err != nil {
		return err
	}
	if err := r.bareClient(); err != nil {
		return err
	}
	r.paces = append(r.paces, pace())
	if r.before, err = r.mark(); err != nil {
		return err
	}
	say("%s: under load", r.name)
	loaded, cancel := context.WithCancel(ctx)
	defer cancel()
	beside := make(chan error, 1)
	go func() {
		if r.during == nil {
			beside <- nil
			return
		}
		beside <- r.during(loaded, r)
	}()
	stopSampling := r.sample()
	stopProfiles := r.profiles()
	err = r.load(ctx, r.plan, &r.clients)
	if err == nil {
		r.done, err = r.mark()
	}
	stopProfiles()
	cancel()
	err = errors.Join(err, <-beside)
	if err == nil && r.after != nil {
		err = r.after(ctx, r)
	}
	if err == nil {
		err = r.drained(ctx)
	}
	stopSampling()
	if err != nil {
		return err
	}
	if r.after_, err = r.mark(); err != nil {
		return err
	}
	r.paces = append(r.paces, pace())
	if err := r.bareClient(); err != nil {
		return err
	}
	return r.close(ctx)
}

// load has the clients carry a plan out.
func (r *run) load(ctx context.Context, p plan, out *outcome) error {
	switch {
	case p.Projects != nil:
	case r.first:
		p.Projects = r.w.projects[:1]
	default:
		p.Projects = r.w.projects
	}
	body, err := json.Marshal(p)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+r.w.address("clients")+"/run", bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("clients: %w", err)
	}
	answer, err := patient.Do(request)
	if err != nil {
		return fmt.Errorf("clients: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("clients: %s", answer.Status)
	}
	if err := gob.NewDecoder(answer.Body).Decode(out); err != nil {
		return fmt.Errorf("clients: %w", err)
	}
	return nil
}

// drained waits until all deliveries have ended and all queues are empty.
func (r *run) drained(ctx context.Context) error {
	say("%s: waiting for what is still under way", r.name)
	until := time.Now().Add(r.drain)
	for {
		if err := r.w.alive(); err != nil {
			return err
		}
		pending, err := r.w.pending(ctx)
		if err != nil {
			return err
		}
		queued := 0
		for _, name := range []string{nameQueue, nameSlow} {
			n, err := r.w.queued(ctx, name)
			if err != nil {
				return err
			}
			queued += n
		}
		if pending+queued == 0 {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if time.Now().After(until) {
			r.faults = append(r.faults, fmt.Sprintf("after %v, %d deliveries have not ended and %d messages are queued", r.drain, pending, queued))
			return nil
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// close balances the books.
func (r *run) close(ctx context.Context) error {
	say("%s: balancing the books", r.name)
	answer, err := patient.Get("http://" + r.w.address("receiver") + "/book")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if err := gob.NewDecoder(answer.Body).Decode(&r.receipts); err != nil {
		return fmt.Errorf("receiver's book: %w", err)
	}
	if err := ask(patient, r.w.address("mappings"), "/mapped", nil, &r.mapped); err != nil {
		return err
	}
	l, err := r.w.readLedger(ctx)
	if err != nil {
		return err
	}
	r.balance = balanceBooks(r.clients.Published, r.w.projects, l, r.receipts, true)
	for _, name := range []string{nameDead, nameOnFailure} {
		n, err := r.w.queued(ctx, name)
		if err != nil {
			return err
		}
		if n > 0 {
			r.balance.fault("%d messages in the queue %s", n, name)
		}
	}
	failed := 0
	for _, p := range r.clients.Published {
		if p.Failed {
			failed++
		}
	}
	if failed > 0 {
		r.balance.fault("%d publishes failed: %v", failed, r.clients.Faults)
	}
	r.measure()
	if r.judge != nil {
		r.judge(r)
	}
	return nil
}

// bareClient measures the engine alone: with the calls of the run, and without
// those that only the API's tokens need.
func (r *run) bareClient() error {
	if r.bare == 0 {
		return nil
	}
	for _, narrow := range []bool{false, true} {
		m := mix{
			Clients: max(1, r.plan.Clients), Saves: r.plan.Saves, Keyed: r.plan.Keyed, Narrow: narrow,
			Duration: r.bare, Projects: r.w.bareProjects,
		}
		var got rate
		before := r.w.usages()
		if err := ask(patient, r.w.address("bare"), "/run", m, &got); err != nil {
			return fmt.Errorf("bare client: %w", err)
		}
		if got.Faults > 0 {
			return fmt.Errorf("bare client: %d faults", got.Faults)
		}
		after := r.w.usages()
		r.barely = append(r.barely, barely{got, after["bare"].CPU - before["bare"].CPU, after["engine"].CPU - before["engine"].CPU})
	}
	return nil
}

// sample reads what processes hold once a second.
func (r *run) sample() (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		turn := time.NewTicker(time.Second)
		defer turn.Stop()
		for {
			select {
			case <-end:
				return
			case now := <-turn.C:
				r.mu.Lock()
				r.samples = append(r.samples, sample{now, r.w.usages()})
				r.mu.Unlock()
			}
		}
	}()
	return func() { close(end); <-ended }
}

// profiles takes CPU profiles of api and deliver beside the load.
func (r *run) profiles() (stop func()) {
	if r.profile == "" {
		return func() {}
	}
	var all sync.WaitGroup
	for _, name := range []string{"api", "deliver"} {
		all.Go(func() {
			for _, kind := range []string{"profile?seconds=10", "allocs"} {
				file, _, _ := strings.Cut(kind, "?")
				if err := fetch("http://"+r.w.address(name)+"/debug/pprof/"+kind, r.profile+"/"+name+"-"+file+".pprof"); err != nil {
					say("profile of %s: %v", name, err)
				}
			}
		})
	}
	return all.Wait
}

func fetch(from, to string) error {
	answer, err := patient.Get(from)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	file, err := os.Create(to)
	if err != nil {
		return err
	}
	if _, err := file.ReadFrom(answer.Body); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}

func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s %s\n", time.Now().Format("15:04:05"), fmt.Sprintf(format, args...))
}

// killer kills a function process every so often, each in turn.
func killer(every time.Duration, names ...string) func(context.Context, *run) error {
	return func(ctx context.Context, r *run) error {
		turn := time.NewTicker(every)
		defer turn.Stop()
		for n := 0; ; n++ {
			select {
			case <-ctx.Done():
				return nil
			case now := <-turn.C:
				name := names[n%len(names)]
				if err := r.w.processes[name].restart(); err != nil {
					return err
				}
				r.mu.Lock()
				r.kills = append(r.kills, now)
				r.mu.Unlock()
				say("%s: killed %s", r.name, name)
			}
		}
	}
}

// heal lets hanging receivers answer, and asks for what still waits to be tried
// now, as a person would who sees that they are back.
func heal(ctx context.Context, r *run) error {
	if err := ask(patient, r.w.address("receiver"), "/heal", nil, nil); err != nil {
		return err
	}
	g := newGateway(r.w.address("api"), r.w.token)
	until := time.Now().Add(r.drain)
	for time.Now().Before(until) {
		waiting := 0
		for _, p := range r.w.projects {
			read, err := r.w.readProject(ctx, p)
			if err != nil {
				return err
			}
			for _, d := range read.Destinations {
				for _, one := range d.Deliveries {
					if one.Status != "retrying" {
						continue
					}
					waiting++
					path := fmt.Sprintf("/projects/%s/destinations/%s/deliveries/%d/try-now", p.ID, d.ID, one.Release)
					_, _ = g.ask(ctx, request{method: "POST", path: path}) // refused while it is being sent, or too soon: asked again below
				}
			}
		}
		if waiting == 0 {
			return nil
		}
		time.Sleep(2 * time.Second)
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
