package sim

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"colophon/internal/content"
	"colophon/internal/delivery"
	"colophon/internal/outbox"
	"colophon/internal/store"
)

// Each mutant is a mistake somebody could make in the code, put in around it. The
// world must find it, under the name of a rule that it breaks.

// ports are the store as a worker sees it. What is set is done instead of, or to
// what is read; doing tells the engine below for what it is asked.
type ports struct {
	*store.Deliveries
	w     *World
	doing map[*task]string

	read    func(r *delivery.Reading)
	record  func(ctx context.Context, r delivery.Recording) error
	settle  func(s *delivery.Settlement)
	reclaim func(read *delivery.Slot)
	claimed func(s *delivery.Slot)
	then    func(ctx context.Context, d delivery.Destination)
	skip    func() error
	freed   func(err error) error
}

func (p *ports) during(doing string) func() {
	t := p.w.current
	p.doing[t] = doing
	return func() { delete(p.doing, t) }
}

func (p *ports) Read(ctx context.Context, k delivery.Key) (delivery.Reading, error) {
	defer p.during("read")()
	r, err := p.Deliveries.Read(ctx, k)
	if err == nil && p.read != nil {
		p.read(&r)
	}
	return r, err
}

func (p *ports) Claim(ctx context.Context, d delivery.Destination, read delivery.Slot, h delivery.Holder) (delivery.Slot, error) {
	defer p.during("claim")()
	if p.reclaim != nil {
		p.reclaim(&read)
	}
	s, err := p.Deliveries.Claim(ctx, d, read, h)
	if err == nil && p.claimed != nil {
		p.claimed(&s)
	}
	if err == nil && p.then != nil {
		p.then(ctx, d)
	}
	return s, err
}

func (p *ports) GiveBack(ctx context.Context, d delivery.Destination, token string) error {
	defer p.during("give back")()
	err := p.Deliveries.GiveBack(ctx, d, token)
	if err != nil && p.freed != nil {
		return p.freed(err)
	}
	return err
}

func (p *ports) Record(ctx context.Context, r delivery.Recording) error {
	defer p.during("record")()
	if p.record != nil {
		return p.record(ctx, r)
	}
	return p.Deliveries.Record(ctx, r)
}

func (p *ports) Settle(ctx context.Context, s delivery.Settlement) error {
	defer p.during("settle")()
	if p.settle != nil {
		p.settle(&s)
	}
	return p.Deliveries.Settle(ctx, s)
}

func (p *ports) SkipPlain(ctx context.Context, k delivery.Key, round, successor int64) error {
	defer p.during("skip plainly")()
	if p.skip != nil {
		return p.skip()
	}
	return p.Deliveries.SkipPlain(ctx, k, round, successor)
}

func (p *ports) EndChecked(ctx context.Context, e delivery.Ending) error {
	defer p.during("end")()
	return p.Deliveries.EndChecked(ctx, e)
}

// rewriting is an engine that is asked for something else.
type rewriting struct {
	store.Engine
	change func(writes []store.Write)
}

func (r rewriting) Write(ctx context.Context, write store.Write) (store.Item, error) {
	writes := []store.Write{write}
	r.change(writes)
	return r.Engine.Write(ctx, writes[0])
}

func (r rewriting) Transact(ctx context.Context, token string, writes []store.Write) error {
	writes = slices.Clone(writes)
	r.change(writes)
	return r.Engine.Transact(ctx, token, writes)
}

// worker makes a mutant of a worker's ports.
func worker(change func(p *ports)) mutant {
	return writer(nil, change)
}

// writer makes a mutant of what a worker writes while it is doing something.
func writer(rewrite func(doing string, writes []store.Write), change func(p *ports)) mutant {
	var m mutant
	m.Worker = func(w *World, process *process, c *delivery.Config) {
		p := &ports{w: w, doing: map[*task]string{}}
		var engine store.Engine = w.tables
		if rewrite != nil {
			engine = rewriting{Engine: w.tables, change: func(writes []store.Write) { rewrite(p.doing[w.current], writes) }}
		}
		var err error
		p.Deliveries, err = store.NewDeliveries(store.DeliveriesConfig{Engine: engine, Table: deliveryTable, Clock: process.clock})
		if err != nil {
			panic(err)
		}
		if change != nil {
			change(p)
		}
		c.Reader, c.Slots, c.Endings, c.Notes = p, p, p, p
	}
	return m
}

// unchecked drops the condition of what is written to an item while doing something.
func unchecked(doing, sk string, instead store.Condition) mutant {
	return writer(func(now string, writes []store.Write) {
		for i := range writes {
			if now == doing && (sk == "" || writes[i].Key.SK == sk) {
				writes[i].If = instead
			}
		}
	}, nil)
}

// after writes more to an item that was written while doing something.
func after(doing string, change store.Change) mutant {
	m := writer(nil, nil)
	build := m.Worker
	m.Worker = func(w *World, process *process, c *delivery.Config) {
		build(w, process, c)
		p := c.Slots.(*ports)
		then := func(ctx context.Context, d delivery.Destination, sk string) {
			_, _ = w.tables.Write(ctx, store.Write{
				Table: deliveryTable, Key: store.Key{PK: "P#" + d.Project + "#D#" + d.ID, SK: sk}, Changes: []store.Change{change},
			})
		}
		switch doing {
		case "record":
			p.record = func(ctx context.Context, r delivery.Recording) error {
				err := p.Deliveries.Record(ctx, r)
				if err == nil {
					then(ctx, r.Delivery.Destination, sk(r.Delivery.Release))
				}
				return err
			}
		case "claim":
			p.then = func(ctx context.Context, d delivery.Destination) { then(ctx, d, "SLOT") }
		}
	}
	return m
}

// publisher drops the condition of what a publish writes to an item.
func publisher(prefixes ...string) mutant {
	return mutant{Engine: func(w *World, e store.Engine) store.Engine {
		return rewriting{Engine: e, change: func(writes []store.Write) {
			for i := range writes {
				for _, prefix := range prefixes {
					if len(writes[i].Key.SK) >= len(prefix) && writes[i].Key.SK[:len(prefix)] == prefix {
						writes[i].If = store.Condition{}
					}
				}
			}
		}}
	}}
}

// hasty takes the first page of a query for the whole.
type hasty struct{ store.Engine }

func (h hasty) Query(ctx context.Context, q store.Query) (store.Page, error) {
	page, err := h.Engine.Query(ctx, q)
	page.Last = nil
	return page, err
}

// sending changes what is sent.
type sending struct {
	delivery.Sender
	change func(s *delivery.Sending)
}

func (s sending) Send(ctx context.Context, what delivery.Sending) delivery.Outcome {
	s.change(&what)
	return s.Sender.Send(ctx, what)
}

// lost is an index whose entries are moved on and never rung for.
type lost struct{ outbox.Index }

func (l lost) MoveOn(ctx context.Context, d store.Due, next func(int64) time.Time) (store.Swept, bool, error) {
	swept, _, err := l.Index.MoveOn(ctx, d, next)
	return swept, false, err
}

type named struct {
	name  string
	rules []string // one of them is broken
	mutant
}

var mutants = []named{
	{"the token is not checked at the record", []string{ruleToken, ruleOneLease}, unchecked("record", "SLOT", store.Condition{})},
	{"the lease belongs to a delivery and not to the destination", []string{ruleOneLease, ruleVersion}, writer(func(doing string, writes []store.Write) {
		if doing == "claim" {
			writes[0].If = store.Condition{}
		}
	}, func(p *ports) {
		p.read = func(r *delivery.Reading) {
			if h := r.Slot.Holder; h != nil && r.Newest != nil && h.Release != r.Newest.Release {
				r.Slot.Holder = nil
			}
		}
	})},
	{"the clock is not asked before the first byte", []string{ruleInLease}, mutant{Unguarded: true}},
	{"the clock stands still with its sandbox", []string{ruleInLease}, mutant{Monotonic: true}},
	{"bytes arrive after their attempt", []string{ruleOrder, ruleOver}, mutant{LateBytes: true}},
	{"nobody looks whether there is a newer release", []string{ruleShown, ruleOrder}, worker(func(p *ports) {
		through := map[int64]int64{} // by the slot's version
		p.read = func(r *delivery.Reading) {
			through[r.Slot.Version] = r.Slot.SentThrough
			if r.Rang != nil {
				r.Newest, r.Slot.SentThrough, r.Slot.LastRelease = r.Rang, 0, 0
			}
		}
		p.reclaim = func(read *delivery.Slot) { read.SentThrough = through[read.Version] }
	})},
	{"a short page is taken for the whole", []string{ruleShown}, mutant{Engine: func(_ *World, e store.Engine) store.Engine { return hasty{e} }}},
	{"two releases share an id", []string{ruleOwnID}, mutant{Contents: func(w *World, c *content.Config) {
		announce := c.Announce
		c.Announce = func(a content.Announcement) (string, []byte, error) {
			_, body, err := announce(a)
			return "msg_" + a.Project, body, err
		}
	}}},
	{"each attempt has an id of its own", []string{ruleSameBytes}, mutant{Worker: func(w *World, _ *process, c *delivery.Config) {
		c.Sender = sending{c.Sender, func(s *delivery.Sending) { s.ID += c.Token() }}
	}}},
	{"each attempt has a body of its own", []string{ruleSameBytes}, mutant{Worker: func(w *World, _ *process, c *delivery.Config) {
		c.Sender = sending{c.Sender, func(s *delivery.Sending) { s.Body = append(slices.Clone(s.Body), ' ') }}
	}}},
	{"the slot's version is not checked at the claim", []string{ruleOver, ruleOneLease, ruleVersion, ruleOrder, ruleActive},
		unchecked("claim", "SLOT", store.Absent(store.At("holder")))},
	{"the slot's version is not checked by who settles", []string{ruleOneLease, ruleVersion, ruleToken}, unchecked("settle", "SLOT", store.Condition{})},
	{"the slot's version is not checked by a checked skip", []string{ruleReason, ruleBeingSent, ruleVersion, ruleToken},
		unchecked("end", "SLOT", store.Condition{})},
	{"a checked skip leaves the slot's version", []string{ruleVersion}, writer(func(doing string, writes []store.Write) {
		if doing == "end" && writes[0].Changes != nil {
			writes[0].Changes, writes[0].Check = nil, true
		}
	}, nil)},
	{"a forced redelivery goes over anything", []string{ruleForce}, worker(func(p *ports) {
		p.read = func(r *delivery.Reading) {
			if r.Rang != nil && r.Rang.Forced() {
				r.Rang.Over = 1e9
			}
		}
	})},
	{"a torn read is good enough", []string{ruleOver, ruleNumber, ruleEarly}, worker(func(p *ports) {
		p.read = func(r *delivery.Reading) { r.Slot.LastRelease = 0 }
	})},
	{"a late result is recorded", []string{ruleToken, ruleEnd, ruleReason}, worker(func(p *ports) {
		p.record = func(ctx context.Context, r delivery.Recording) error {
			err := p.Deliveries.Record(ctx, r)
			if errors.Is(err, delivery.ErrLate) {
				_, err = p.w.tables.Write(ctx, store.Write{
					Table: deliveryTable, Key: store.Key{PK: "P#" + r.Delivery.Project + "#D#" + r.Delivery.ID, SK: sk(r.Delivery.Release)},
					Changes: lateChanges(r),
				})
			}
			return err
		}
	})},
	{"a plain skip is left to others", []string{ruleEnds, ruleEndless}, worker(func(p *ports) { p.skip = func() error { return delivery.ErrBusy } })},
	{"attempts have no number of their own", []string{ruleNumber, ruleTries, ruleEnds}, worker(func(p *ports) {
		p.read = func(r *delivery.Reading) {
			for _, d := range []*delivery.Delivery{r.Rang, r.Newest} {
				if d != nil {
					d.Numbered = 0
				}
			}
		}
	})},
	{"a lost attempt is not counted", []string{ruleNumber, ruleTries}, worker(func(p *ports) {
		p.settle = func(s *delivery.Settlement) { s.Delivery = nil }
	})},
	{"a slot is given back whoever holds it", []string{ruleOneLease}, unchecked("give back", "SLOT", store.Condition{})},
	{"a slot is given back once and then left to its lease", []string{ruleGivenBack}, worker(func(p *ports) {
		p.freed = func(error) error { return nil }
	})},
	{"a transaction that is cancelled for throttling is a fault of our own", []string{ruleUsable}, mutant{
		Engine: func(_ *World, e store.Engine) store.Engine { return unfamiliar{e} },
	}},
	{"nobody looks whether the destination is paused", []string{ruleActive}, worker(func(p *ports) {
		p.read = func(r *delivery.Reading) { r.Slot.State = delivery.SlotActive }
	})},
	{"what is recorded goes on ringing", []string{ruleRing}, after("record", store.Set(store.At("ring"), store.Number(1)))},
	{"what is retried leaves the sweep index", []string{ruleSwept}, after("record", store.Remove(store.At("sweepShard")))},
	{"tries are not counted", []string{ruleCounted}, worker(func(p *ports) {
		p.record = func(ctx context.Context, r delivery.Recording) error {
			r.Transition.Tries = r.Delivery.Tries
			return p.Deliveries.Record(ctx, r)
		}
	})},
	{"a try does not wait for its time", []string{ruleEarly}, worker(func(p *ports) {
		p.read = func(r *delivery.Reading) {
			if r.Newest != nil {
				r.Newest.TryAt = time.Time{}
			}
		}
	})},
	{"no answer counts as delivered", []string{ruleHeard}, worker(func(p *ports) {
		p.record = func(ctx context.Context, r delivery.Recording) error {
			r.Transition.Status, r.Transition.Reason = delivery.Delivered, ""
			return p.Deliveries.Record(ctx, r)
		}
	})},
	{"another class is recorded than was told", []string{ruleTrue}, worker(func(p *ports) {
		p.record = func(ctx context.Context, r delivery.Recording) error {
			r.Transition.Attempt.Class = delivery.ClassReset
			return p.Deliveries.Record(ctx, r)
		}
	})},
	{"the newest is taken for superseded", []string{ruleNewest}, worker(func(p *ports) {
		p.read = func(r *delivery.Reading) {
			if r.Rang != nil && r.Slot.Holder == nil {
				r.Slot.SentThrough = r.Rang.Release + 1
			}
		}
	})},
	{"a lease is taken for over before it is", []string{ruleOneLease}, worker(func(p *ports) {
		p.read = func(r *delivery.Reading) {
			if r.Slot.Holder != nil {
				h := *r.Slot.Holder
				h.Until = h.Until.Add(-5 * time.Second)
				r.Slot.Holder = &h
			}
		}
	})},
	{"no second is allowed for clocks that differ", []string{ruleOneLease}, worker(func(p *ports) {
		p.read = func(r *delivery.Reading) {
			if r.Slot.Holder != nil {
				h := *r.Slot.Holder
				h.Until = h.Until.Add(-delivery.ClockAllowance)
				r.Slot.Holder = &h
			}
		}
	})},
	{"nobody compares the host's clock with the table's", []string{ruleOneLease, ruleEarly}, worker(func(p *ports) {
		p.read = func(r *delivery.Reading) { r.Clock = delivery.ClockOffset{} }
	})},
	{"a host whose clock is off claims and does not reclaim", []string{ruleOneLease, ruleEarly}, worker(func(p *ports) {
		p.read = func(r *delivery.Reading) {
			if r.Slot.Holder == nil {
				r.Clock = delivery.ClockOffset{}
			}
		}
	})},
	{"a host whose clock is off reclaims and does not claim", []string{ruleOneLease}, worker(func(p *ports) {
		p.read = func(r *delivery.Reading) {
			if r.Slot.Holder != nil {
				r.Clock = delivery.ClockOffset{}
			}
		}
	})},
	{"clocks are held to a minute and not to seconds", []string{ruleOneLease, ruleEarly}, worker(func(p *ports) {
		p.read = func(r *delivery.Reading) {
			if r.Clock.Least <= time.Minute && r.Clock.Most >= -time.Minute {
				r.Clock = delivery.ClockOffset{}
			}
		}
	})},
	{"an offset that is too vague to tell is good enough", []string{ruleOneLease, ruleEarly}, worker(func(p *ports) {
		p.read = func(r *delivery.Reading) {
			if r.Clock.Vague() {
				r.Clock = delivery.ClockOffset{}
			}
		}
	})},
	{"the table's date is compared with the answer's instant alone", []string{ruleHeldBack}, worker(func(p *ports) {
		p.read = func(r *delivery.Reading) { r.Clock.Most = r.Clock.Least }
	})},
	{"a lease is made longer by whoever claims", []string{ruleLeaseTime, ruleVersion}, after("claim",
		store.Set(store.At("holder", "until"), store.Number(4102531200000+int64(24*time.Hour/time.Millisecond))))},
	{"colophon-previous names another release", []string{rulePrevious}, worker(func(p *ports) {
		p.claimed = func(s *delivery.Slot) { s.DeliveredThrough++ }
	})},
	{"a settled slot keeps its holder", []string{ruleEnds, ruleEndless, ruleToken, ruleSlotFree, ruleCounted, ruleNumber, ruleTries}, writer(func(doing string, writes []store.Write) {
		if doing == "settle" {
			for i := range writes {
				if writes[i].Key.SK == "SLOT" {
					writes[i].Changes = writes[i].Changes[1:]
				}
			}
		}
	}, nil)},
	{"the sweeper moves on and does not ring", []string{ruleEnds}, mutant{Sweeper: func(w *World, c *outbox.SweeperConfig) {
		c.Index = lost{c.Index}
	}}},
	{"a publish does not look whether the project has moved", []string{ruleNumbers}, publisher("META", "REL#", "R#")},
	{"a key is not looked up", []string{ruleToldOnce, ruleReplayed}, publisher("IDEM#")},
	{"a key is not looked up where there is nothing to publish", []string{ruleReplayed}, mutant{Contents: func(_ *World, c *content.Config) {
		c.Store = keyUnchecked{c.Store}
	}}},
}

// keyUnchecked takes each key for unused.
type keyUnchecked struct{ content.Store }

func (keyUnchecked) CheckUnused(context.Context, content.Project, string, time.Time) error {
	return nil
}

// unfamiliar does not know what a throttled item of a transaction is.
type unfamiliar struct{ store.Engine }

func (u unfamiliar) Transact(ctx context.Context, token string, writes []store.Write) error {
	err := u.Engine.Transact(ctx, token, writes)
	if refused := store.AsRefused(err); refused != nil && refused.Has(store.CodeThrottled) {
		return errors.New("the transaction was cancelled")
	}
	return err
}

func sk(release int64) string {
	digits := []byte("000000000000")
	for i := len(digits) - 1; release > 0; i-- {
		digits[i] = byte('0' + release%10)
		release /= 10
	}
	return "R#" + string(digits)
}

// lateChanges is what a worker would write that does not care for its lease.
func lateChanges(r delivery.Recording) []store.Change {
	t := r.Transition
	return []store.Change{
		store.Set(store.At("status"), store.Text(string(t.Status))),
		store.Set(store.At("numbered"), store.Number(t.Attempt.Number)),
		store.Remove(store.At("ring")),
		store.Set(store.At("attempts", strconv.FormatInt(t.Attempt.Number, 10)), store.Map(store.Item{})),
	}
}

// soon are seeds from which on mistakes that need a rare mishap are met sooner.
var soon = map[string]uint64{
	"the token is not checked at the record":                       1300,
	"a torn read is good enough":                                   4400,
	"the table's date is compared with the answer's instant alone": 1600,
	"a slot is given back whoever holds it":                        95,
	"a late result is recorded":                                    100,
	"the slot's version is not checked by a checked skip":          300,
}

func TestEachMutantIsFound(t *testing.T) {
	t.Parallel()
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			const most = 1_000_000 // steps
			r := Runner{mutant: m.mutant}
			defer r.Close()
			steps := 0
			for seed := soon[m.name]; steps < most; seed++ {
				got := r.Run(seed)
				steps += got.Counts.Steps
				if got.Violation == nil {
					continue
				}
				if !slices.Contains(m.rules, got.Violation.Name) {
					t.Fatalf("seed %d breaks another rule than is meant: %v", seed, got.Violation)
				}
				t.Logf("found after %d steps, at seed %d: %v", steps, seed, got.Violation)
				return
			}
			t.Fatalf("not found in %d steps", steps)
		})
	}
}

// What the mistakes are put in with is no mistake itself.
func TestTheMutantsFrameBreaksNothing(t *testing.T) {
	t.Parallel()
	m := worker(func(*ports) {})
	m.Engine = publisher().Engine
	m.Sweeper = func(*World, *outbox.SweeperConfig) {}
	m.Contents = func(*World, *content.Config) {}
	r := Runner{mutant: m}
	defer r.Close()
	for seed := range uint64(200) {
		if got := r.Run(seed); got.Violation != nil {
			t.Fatalf("seed %d: %v", seed, got.Violation)
		}
	}
}

// A run that failed is told as a story: short, and to the point.
func TestAMistakeIsToldAsAStory(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		mutant string
		lines  int
		words  []string
	}{
		{"the lease belongs to a delivery and not to the destination", 30, []string{
			"announces release 1", "announces release 2", "claims release 1", "VIOLATION of “I1",
		}},
		{"the clock is not asked before the first byte", 40, []string{"claims release", "stands still for", "VIOLATION of “nothing leaves"}},
		{"a lost attempt is not counted", 30, []string{"claims release", "frees the slot", "VIOLATION of “an attempt's number"}},
	} {
		t.Run(row.mutant, func(t *testing.T) {
			t.Parallel()
			i := slices.IndexFunc(mutants, func(m named) bool { return m.name == row.mutant })
			r := Runner{mutant: mutants[i].mutant}
			defer r.Close()
			meant := func(r Result) bool {
				return r.Violation != nil && strings.HasPrefix("VIOLATION of “"+r.Violation.Name, row.words[len(row.words)-1])
			}
			got := r.Run(0)
			for seed := uint64(1); !meant(got); seed++ {
				got = r.Run(seed)
			}
			small := r.Shrink(got, 4_000)
			if small.Violation.Name != got.Violation.Name {
				t.Fatalf("%q became %q", got.Violation.Name, small.Violation.Name)
			}
			story := r.Story(small)
			all := strings.Join(story, "\n")
			for _, words := range row.words {
				if !strings.Contains(all, words) {
					t.Errorf("nothing says %q", words)
				}
			}
			if len(story) > row.lines {
				t.Errorf("%d lines, want %d at most", len(story), row.lines)
			}
			if t.Failed() || testing.Verbose() {
				t.Log("\n" + all)
			}
		})
	}
}
