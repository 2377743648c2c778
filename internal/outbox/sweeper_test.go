package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"colophon/internal/delivery"
	"colophon/internal/outbox"
	"colophon/internal/store"
)

// beat is a sweeper over a real table and a real queue, with a clock of its own.
type beat struct {
	*outbox.Sweeper
	*world
	queue   string
	sends   *faultySends
	now     time.Time
	reports []outbox.Swept
}

func newBeat(t testing.TB) *beat {
	t.Helper()
	b := &beat{world: newWorld(t), queue: newQueue(t, nil), now: start}
	b.sends = &faultySends{send: queueClient().SendMessageBatch}
	b.Sweeper = b.sweeper(t, b.index)
	return b
}

func (b *beat) sweeper(t testing.TB, index outbox.Index) *outbox.Sweeper {
	t.Helper()
	s, err := outbox.NewSweeper(outbox.SweeperConfig{
		Index: index, Queue: newSender(t, b.queue, b.sends.SendMessageBatch), Random: zeros{},
		Clock: func() time.Time { return b.now },
		Observe: func(_ context.Context, s outbox.Swept) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.reports = append(b.reports, s)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// sweep sweeps at an instant and gives what it reported.
func (b *beat) sweep(t testing.TB, at time.Time) outbox.Swept {
	t.Helper()
	b.now = at
	if err := b.Handle(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b.reports[len(b.reports)-1]
}

func numberOf(t testing.TB, item store.Item, name string) int64 {
	t.Helper()
	value, ok := item[name].(*types.AttributeValueMemberN)
	if !ok {
		t.Fatalf("%s is %v", name, item[name])
	}
	n, err := strconv.ParseInt(value.Value, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// late is when a delivery that was due at the start is first swept.
var late = start.Add(delivery.SweepDelay + time.Millisecond)

func TestADeliveryWhoseStreamRecordWasLostIsRungFor(t *testing.T) {
	t.Parallel()
	b := newBeat(t)
	b.put(t, key("d1", 6), deliveryItem(start)) // nobody reads the stream
	report := b.sweep(t, start.Add(30*time.Hour))
	if got := takeMessages(t, b.queue); !slices.Equal(got, []string{"d1/6"}) {
		t.Errorf("on the queue: %v", got)
	}
	if report.Sent != 1 || report.OldestDue != 30*time.Hour {
		t.Errorf("reported as %+v", report)
	}
	item := b.get(t, key("d1", 6))
	if got := numberOf(t, item, "sweepAt"); got != b.now.Add(delivery.SweepDelay).UnixMilli() {
		t.Errorf("swept next at %v", time.UnixMilli(got).UTC())
	}
	if _, rings := item["ring"]; rings {
		t.Error("the sweep's own write rings in the stream")
	}
}

func TestADeliveryWhoseMessageWasLostIsRungForAgain(t *testing.T) {
	t.Parallel()
	b := newBeat(t)
	b.put(t, key("d1", 6), deliveryItem(start))
	f := newForwarder(t, newSender(t, b.queue, queueClient().SendMessageBatch), newSender(t, newQueue(t, nil), queueClient().SendMessageBatch),
		func(context.Context, outbox.Forwarded) {})
	if _, err := f.Handle(t.Context(), b.stream(t)); err != nil {
		t.Fatal(err)
	}
	if got := takeMessages(t, b.queue); !slices.Equal(got, []string{"d1/6"}) {
		t.Fatalf("forwarded: %v", got)
	}
	// Nothing was done about the message that was just taken away.
	if b.sweep(t, late.Add(-2*time.Millisecond)); len(take(t, b.queue)) > 0 {
		t.Error("rung for before it was overdue")
	}
	b.sweep(t, late)
	if got := takeMessages(t, b.queue); !slices.Equal(got, []string{"d1/6"}) {
		t.Errorf("on the queue: %v", got)
	}
}

func TestTheFirstNotificationsThatTheSweeperMakesAreCounted(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		item store.Item
		want int
	}{
		"nobody worked on it":               {nil, 1},
		"a try was counted":                 {store.Item{"tries": store.Number(1)}, 0},
		"an outcome is unknown":             {store.Item{"lost": store.Number(1)}, 0},
		"a fault of our own was met":        {store.Item{"ours": store.Map(store.Item{"count": store.Number(1)})}, 0},
		"it was swept before":               {store.Item{"sweeps": store.Number(1)}, 0},
		"a redelivery nobody worked on":     {store.Item{"round": store.Number(2)}, 1},
		"no count of tries that is a count": {store.Item{"tries": store.Text("many")}, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBeat(t)
			item := deliveryItem(start)
			for attribute, value := range test.item {
				item[attribute] = value
			}
			b.put(t, key("d1", 6), item)
			if report := b.sweep(t, late); report.First != test.want || report.Sent != 1 {
				t.Errorf("reported as %+v", report)
			}
			if report := b.sweep(t, late.Add(time.Hour)); report.First != 0 || report.Sent != 1 {
				t.Errorf("reported a second time as %+v", report)
			}
		})
	}
}

func TestAWaitThatWasTakenOffTheQueueEndsWithTheSweepAfterItIsDue(t *testing.T) {
	t.Parallel()
	b := newBeat(t)
	due := start.Add(15 * time.Minute)
	item := deliveryItem(due)
	item["status"], item["sweepAt"] = store.Text("retrying"), item["tryAt"]
	b.put(t, key("d1", 6), item)
	if b.sweep(t, due); len(take(t, b.queue)) > 0 {
		t.Error("rung for too early")
	}
	if report := b.sweep(t, due.Add(time.Millisecond)); report.OldestDue != time.Millisecond {
		t.Errorf("reported as %+v", report)
	}
	if got := takeMessages(t, b.queue); !slices.Equal(got, []string{"d1/6"}) {
		t.Errorf("on the queue: %v", got)
	}
}

func TestADeliveryThatStaysIsSweptAfterTwoMinutesThenFourUpToAnHour(t *testing.T) {
	t.Parallel()
	b := newBeat(t)
	b.put(t, key("d1", 6), deliveryItem(start))
	at := late
	for sweeps, want := range []time.Duration{2, 4, 8, 16, 32, 60, 60, 60} {
		if report := b.sweep(t, at); report.Sent != 1 {
			t.Fatalf("sweep %d reported as %+v", sweeps, report)
		}
		item := b.get(t, key("d1", 6))
		next := time.UnixMilli(numberOf(t, item, "sweepAt")).UTC()
		if got := next.Sub(at); got != want*time.Minute {
			t.Errorf("after %d sweeps the next is %v later, want %v", sweeps, got, want*time.Minute)
		}
		if got := numberOf(t, item, "sweeps"); got != int64(sweeps)+1 {
			t.Errorf("%d sweeps are counted after %d", got, sweeps+1)
		}
		at = next.Add(time.Millisecond)
	}
}

func TestTwoSweepsAtOnceRingOnce(t *testing.T) {
	t.Parallel()
	b := newBeat(t)
	const deliveries = 120
	for release := range int64(deliveries) {
		item := deliveryItem(start)
		item["sweepShard"] = store.Number(release % 3) // more than a page each
		if release%2 == 0 {
			item["sweeps"] = store.Number(3)
		}
		b.put(t, key("d1", release+1), item)
	}
	b.now = late
	other := b.sweeper(t, b.index)
	var both sync.WaitGroup
	for _, s := range []*outbox.Sweeper{b.Sweeper, other} {
		both.Go(func() {
			if err := s.Handle(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	if got := takeMessages(t, b.queue); len(got) != deliveries || len(slices.Compact(got)) != deliveries {
		t.Errorf("%d messages about %d deliveries", len(got), len(slices.Compact(got)))
	}
	if sent := b.reports[0].Sent + b.reports[1].Sent; sent != deliveries {
		t.Errorf("reported as %+v", b.reports)
	}
}

// between does something after the index was read and before an entry is moved.
type between struct {
	outbox.Index
	do func(d store.Due)
}

func (b between) MoveOn(ctx context.Context, d store.Due, next func(int64) time.Time) (store.Swept, bool, error) {
	b.do(d)
	return b.Index.MoveOn(ctx, d, next)
}

func TestADeliveryThatEndedOrMovedSinceItWasSeenIsNotRungFor(t *testing.T) {
	t.Parallel()
	moved := late.Add(time.Hour).UnixMilli()
	for name, changes := range map[string][]store.Change{
		"ended":             {store.Set(store.At("status"), store.Text("delivered")), store.Remove(store.At("sweepShard")), store.Remove(store.At("sweepAt"))},
		"a try was planned": {store.Set(store.At("sweepAt"), store.Number(moved))},
		"swept by another":  {store.Set(store.At("sweepAt"), store.Number(moved)), store.Set(store.At("sweeps"), store.Number(1))},
		"ended, once swept": {
			store.Remove(store.At("sweepShard")), store.Remove(store.At("sweepAt")), store.Set(store.At("sweeps"), store.Number(2)),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBeat(t)
			b.put(t, key("d1", 6), deliveryItem(start))
			var after store.Item
			b.Sweeper = b.sweeper(t, between{b.index, func(store.Due) {
				b.change(t, key("d1", 6), changes...)
				after = b.get(t, key("d1", 6))
			}})
			if report := b.sweep(t, late); report.Passed != 1 || report.Sent != 0 || report.OldestDue != 0 {
				t.Errorf("reported as %+v", report)
			}
			if got := take(t, b.queue); len(got) > 0 {
				t.Errorf("on the queue: %v", got)
			}
			if now := b.get(t, key("d1", 6)); !reflect.DeepEqual(now, after) {
				t.Errorf("changed to %v", now)
			}
		})
	}
}

func TestADeliveryThatIsGoneSinceItWasSeenIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	b := newBeat(t)
	b.put(t, key("d1", 6), deliveryItem(start))
	b.Sweeper = b.sweeper(t, between{b.index, func(d store.Due) {
		if _, err := b.engine.Write(t.Context(), store.Write{Table: b.tables.Delivery, Key: d.Key, Delete: true}); err != nil {
			t.Error(err)
		}
	}})
	if report := b.sweep(t, late); report.Passed != 1 {
		t.Errorf("reported as %+v", report)
	}
	if item := b.get(t, key("d1", 6)); item != nil {
		t.Errorf("made again: %v", item)
	}
}

// A sweep that is killed between the two has moved the delivery and not rung: it
// is found again. The other way round, two sweeps would ring for it.
func TestADeliveryIsMovedOnBeforeItIsRungFor(t *testing.T) {
	t.Parallel()
	b := newBeat(t)
	b.put(t, key("d1", 6), deliveryItem(start))
	asked := false
	b.sends.refuse = func(string) bool {
		asked = true
		if got := numberOf(t, b.get(t, key("d1", 6)), "sweepAt"); got != late.Add(delivery.SweepDelay).UnixMilli() {
			t.Errorf("rung for while its next sweep is at %v", time.UnixMilli(got))
		}
		return false
	}
	if b.sweep(t, late); !asked {
		t.Error("not rung for")
	}
}

func TestADeliveryThatWasMovedOnButNotSentIsRungForByALaterSweep(t *testing.T) {
	t.Parallel()
	b := newBeat(t)
	b.put(t, key("d1", 6), deliveryItem(start))
	b.put(t, key("d1", 7), deliveryItem(start))
	b.sends.refuse = ofRelease(6)
	b.now = late
	if err := b.Handle(t.Context()); err == nil {
		t.Error("the sweep does not fail, so no alarm is raised")
	}
	if r := b.reports[0]; r.Sent != 1 || r.Unsent != 1 || r.Faults != 1 {
		t.Errorf("reported as %+v", r)
	}
	take(t, b.queue)
	b.sends.refuse = nil
	if report := b.sweep(t, late.Add(delivery.SweepDelay)); report.Sent != 0 {
		t.Errorf("found again too early: %+v", report)
	}
	b.sweep(t, late.Add(delivery.SweepDelay+time.Millisecond))
	if got := takeMessages(t, b.queue); !slices.Equal(got, []string{"d1/6", "d1/7"}) {
		t.Errorf("on the queue: %v", got)
	}
}

func TestASweepEndsWithAQueueThatTakesNothing(t *testing.T) {
	t.Parallel()
	b := newBeat(t)
	for shard := range int64(store.SweepShards) {
		item := deliveryItem(start)
		item["sweepShard"] = store.Number(shard)
		b.put(t, key("d1", shard+1), item)
	}
	b.sends.fail, b.now = errors.New("down"), late
	if err := b.Handle(t.Context()); err == nil {
		t.Error("the sweep does not fail, so no alarm is raised")
	}
	r := b.reports[0]
	if r.Complete || r.Sent > 0 || r.Unsent == 0 || r.Unsent > 8 { // one for each page that was worked on at that moment
		t.Errorf("reported as %+v", r)
	}
	b.sends.fail = nil
	if report := b.sweep(t, late.Add(time.Minute)); report.Sent != store.SweepShards-r.Unsent {
		t.Errorf("a minute later: %+v, after %d unsent", report, r.Unsent)
	}
}

func TestAbsurdEntriesAreMovedOnAndHideNoOther(t *testing.T) {
	t.Parallel()
	b := newBeat(t)
	entry := func(at time.Time, changes store.Item) store.Item {
		item := deliveryItem(at)
		for name, value := range changes {
			item[name] = value
		}
		return item
	}
	strays := []store.Key{
		{PK: "P#p1", SK: "META"}, {PK: "P#p1#D#d1", SK: "SLOT"}, {PK: "P#p 1#D#d1", SK: "R#000000000006"},
		{PK: "P#p1#D#d1", SK: "R#000000000000"}, {PK: "P#p1#D#d1", SK: "T#test1"},
	}
	for _, k := range strays {
		b.put(t, k, entry(start.Add(-time.Hour), nil))
	}
	absurd := []store.Item{
		entry(start, store.Item{"sweeps": store.Text("many")}),
		entry(start, store.Item{"sweeps": store.Number(-4)}),
		entry(start, store.Item{"sweeps": &types.AttributeValueMemberN{Value: "99999999999999999999"}}),
		entry(start, store.Item{"sweeps": store.Number(1<<63 - 1)}),
		entry(start, store.Item{"tryAt": store.Text("soon")}),
		entry(start, store.Item{"tryAt": store.Number(late.Add(time.Hour).UnixMilli())}),
		entry(start, store.Item{"sweepAt": &types.AttributeValueMemberN{Value: "-12.5"}}),
		entry(start, store.Item{"status": store.Number(7)}),
		{"sweepShard": store.Number(7), "sweepAt": store.Number(1)},
	}
	var want []string
	for i, item := range absurd {
		b.put(t, key("d1", int64(i)+1), item)
		want = append(want, fmt.Sprintf("d1/%d", i+1))
	}
	report := b.sweep(t, late)
	if got := takeMessages(t, b.queue); !slices.Equal(got, want) {
		t.Errorf("on the queue: %v, want %v", got, want)
	}
	if report.Unreadable != len(strays) || report.Faults > 0 || !strings.Contains(report.Stray, " ") {
		t.Errorf("reported as %+v", report)
	}
	if report.OldestDue != late.Sub(start) {
		t.Errorf("the oldest is due since %v: an entry that names no delivery does not count", report.OldestDue)
	}
	if again := b.sweep(t, late); again.Sent+again.Unreadable+again.Passed > 0 {
		t.Errorf("met again at once: %+v", again)
	}
}

func TestAnIdleSweepReads64TimesHalfAUnitAndNothingElse(t *testing.T) {
	t.Parallel()
	b := newBeat(t)
	parked := deliveryItem(start)
	parked["sweepAt"] = store.Number(start.Add(30 * time.Minute).UnixMilli())
	b.put(t, key("d1", 6), parked) // waiting, not due
	b.used = nil
	report := b.sweep(t, late)
	read, written := 0.0, 0.0
	for _, c := range b.used {
		if c.Call != "Query" {
			t.Errorf("call %s", c.Call)
		}
		read, written = read+c.ReadUnits, written+c.WriteUnits
	}
	if len(b.used) != 64 || read != 32 || written != 0 || report.Queries != 64 {
		t.Errorf("%d calls, %v read units, %v write units, %d queries reported", len(b.used), read, written, report.Queries)
	}
	if b.sends.requests > 0 {
		t.Errorf("%d requests to the queue", b.sends.requests)
	}
	if !report.Complete || report.OldestDue != 0 {
		t.Errorf("reported as %+v", report)
	}
	t.Logf("%v read units a minute, %v in 30 days", read, read*60*24*30)
}

// countedWrites is an engine that counts what is asked of it, refused or not.
type countedWrites struct {
	store.Engine
	asked int
}

func (c *countedWrites) Write(ctx context.Context, w store.Write) (store.Item, error) {
	c.asked++
	return c.Engine.Write(ctx, w)
}

func TestADeliveryThatIsSweptCostsThreeUnitsAndOneMoreForARefusalWhereItWasSweptBefore(t *testing.T) {
	t.Parallel()
	b := newBeat(t)
	b.put(t, key("d1", 6), deliveryItem(start))
	engine := &countedWrites{Engine: b.engine}
	index, err := store.NewSweep(store.SweepConfig{Engine: engine, Table: b.tables.Delivery})
	if err != nil {
		t.Fatal(err)
	}
	b.Sweeper = b.sweeper(t, index)
	for sweeps, want := range []int{1, 2, 2} {
		b.used, engine.asked = nil, 0
		b.sweep(t, late.Add(time.Duration(sweeps)*10*time.Minute))
		written := 0.0
		for _, c := range b.used {
			written += c.WriteUnits
		}
		if engine.asked != want || written != 3 {
			t.Errorf("after %d sweeps: %d writes asked, want %d; %v units used by the one that was done", sweeps, engine.asked, want, written)
		}
	}
}

// shards is an index in memory: entries by shard, each of which is moved once.
type shards struct {
	mu      sync.Mutex
	pages   [store.SweepShards]int // how many pages are left
	fail    func(shard int) error
	queries []int // the shards asked, in order
	moves   int
	moving  func() // before each move
}

func (x *shards) DueDeliveries(_ context.Context, shard int, _ time.Time, _ store.Item, limit int32) (store.DuePage, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.queries = append(x.queries, shard)
	if x.fail != nil {
		if err := x.fail(shard); err != nil {
			return store.DuePage{}, err
		}
	}
	if x.pages[shard] == 0 {
		return store.DuePage{}, nil
	}
	x.pages[shard]--
	page := store.DuePage{Last: store.Item{"sk": store.Text("more")}}
	for i := range limit {
		page.Due = append(page.Due, store.Due{Delivery: delivery.Key{Destination: destination("d1"), Release: int64(i) + 1}})
	}
	return page, nil
}

func (x *shards) MoveOn(context.Context, store.Due, func(int64) time.Time) (store.Swept, bool, error) {
	x.mu.Lock()
	x.moves++
	x.mu.Unlock()
	if x.moving != nil {
		x.moving()
	}
	return store.Swept{TryAt: start}, true, nil
}

// overMemory is a sweeper over an index in memory and a queue that takes all.
func overMemory(t testing.TB, x *shards) (*outbox.Sweeper, *outbox.Swept) {
	t.Helper()
	report := &outbox.Swept{}
	s, err := outbox.NewSweeper(outbox.SweeperConfig{
		Index: x, Random: zeros{}, Clock: func() time.Time { return late },
		Queue: newSender(t, "http://queue", func(_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
			return accepted(in), nil
		}),
		Observe: func(_ context.Context, s outbox.Swept) { *report = s },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, report
}

func TestAFullShardHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	x := &shards{}
	x.pages[0] = 20
	s, report := overMemory(t, x)
	if err := s.Handle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if report.Queries != store.SweepShards+20 || report.Sent != 20*50 {
		t.Errorf("reported as %+v", report)
	}
	// Of the 64 first pages those that are asked after the first shard's second one
	// are the few that were under way beside it.
	first := slices.Index(x.queries, 0) + 1
	if between := slices.Index(x.queries[first:], 0); first+between < store.SweepShards-8 {
		t.Errorf("the full shard's second page was asked after %d others", first+between)
	}
}

func TestASweepTakesUpNothingInItsLastThirtySeconds(t *testing.T) {
	t.Parallel()
	x := &shards{}
	for shard := range x.pages {
		x.pages[shard] = 1 << 30 // more than can be done
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second+100*time.Millisecond)
	defer cancel()
	s, report := overMemory(t, x)
	if err := s.Handle(ctx); err != nil {
		t.Fatal(err)
	}
	deadline, _ := ctx.Deadline()
	if left := time.Until(deadline); left > 30*time.Second || left < 20*time.Second {
		t.Errorf("%v were left", left)
	}
	if report.Complete || report.Sent == 0 || report.Sent != x.moves {
		t.Errorf("%d moves, reported as %+v", x.moves, report)
	}
}

// hangingIndex returns nothing until its context ends.
type hangingIndex struct{ *shards }

func (hangingIndex) DueDeliveries(ctx context.Context, _ int, _ time.Time, _ store.Item, _ int32) (store.DuePage, error) {
	<-ctx.Done()
	return store.DuePage{}, ctx.Err()
}

func TestASweepThatHangsIsReportedBeforeItsInvocationIsCutOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, reported := time.Now(), time.Duration(0)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s, err := outbox.NewSweeper(outbox.SweeperConfig{
			Index: hangingIndex{}, Random: zeros{}, Clock: time.Now,
			Queue: newSender(t, "http://queue", func(_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
				return accepted(in), nil
			}),
			Observe: func(context.Context, outbox.Swept) { reported = time.Since(began) },
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Handle(ctx); err == nil {
			t.Error("the sweep does not fail")
		}
		if reported == 0 || reported > time.Minute-time.Second {
			t.Errorf("it was reported after %v of a minute", reported)
		}
	})
}

func TestASweepWithoutTheTimeForOneFails(t *testing.T) {
	t.Parallel()
	x := &shards{}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if s, _ := overMemory(t, x); s.Handle(ctx) == nil || len(x.queries) > 0 {
		t.Error("a sweeper that never sweeps raises no alarm")
	}
}

func TestAShardThatCannotBeReadFailsTheSweepAfterTheOthersAreSwept(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	x := &shards{fail: func(shard int) error {
		if shard == 3 {
			return down
		}
		return nil
	}}
	x.pages[3], x.pages[63] = 1, 1
	s, report := overMemory(t, x)
	if err := s.Handle(t.Context()); !errors.Is(err, down) {
		t.Errorf("answered %v", err)
	}
	if report.Queries != store.SweepShards+1 || report.Sent != 50 || report.Faults != 1 {
		t.Errorf("reported as %+v", report)
	}
}

func TestAPanicOverOneEntryHidesNoOther(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]*shards{
		"while it is moved": {moving: sync.OnceFunc(func() { panic("a fault in an entry") })},
		"while it is read": {fail: func(shard int) error {
			if shard == 7 {
				panic("a fault in a page")
			}
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x.pages[1], x.pages[62] = 1, 1
			s, report := overMemory(t, x)
			if err := s.Handle(t.Context()); err == nil {
				t.Error("the sweep does not fail, so no alarm is raised")
			}
			if report.Faults < 1 || report.Sent+report.Faults < 100 || len(x.queries) < store.SweepShards {
				t.Errorf("reported as %+v", report)
			}
		})
	}
}
