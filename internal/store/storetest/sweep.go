package storetest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"colophon/internal/delivery"
	"colophon/internal/destination"
	"colophon/internal/store"
)

// Sweep is the suite for what is due. fresh gives a place with empty tables that
// nobody else writes to.
func Sweep(t *testing.T, fresh func(t *testing.T) Place) {
	for name, test := range map[string]func(*testing.T, *sweeping){
		"ADeliveryIsInTheIndexExactlyWhileItHasNotEnded": sweptWhilePending,
		"ATestSendIsNeverSwept":                          sweptTest,
		"WhatIsDueIsReadOldestFirstAndInPages":           sweptInPages,
		"WhatIsDueAtTheInstantItselfIsNotRead":           sweptBefore,
		"AMoveCountsTheSweepsAndDoesNotRing":             sweptAndCounted,
		"AnAttemptStartsTheCountAfresh":                  sweptAfresh,
		"AMoveOfWhatHasEndedOrMovedChangesNothing":       sweptTooLate,
		"AMoveWhoseOutcomeIsNotKnownIsNotTakenForDone":   sweptUnknown,
		"AMoveThatMeetsAnotherTransactionIsLeftToIt":     sweptInConflict,
		"AnEntryThatNamesNoDeliveryCanBeMovedOn":         sweptStray,
		"ACountThatCannotBeReadIsNoReasonNotToMoveOn":    sweptAbsurdly,
		"OfTwoThatMoveTheSameEntryOneIsTold":             sweptTwice,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPeople(t, fresh(t))
			test(t, &sweeping{people: p, index: newSweep(t, p.place.Engine, p.place.Delivery)})
		})
	}
}

// sweeping is people, and what sweeps behind them.
type sweeping struct {
	*people
	index *store.Sweep
}

func newSweep(t *testing.T, engine store.Engine, table string) *store.Sweep {
	t.Helper()
	index, err := store.NewSweep(store.SweepConfig{Engine: engine, Table: table})
	if err != nil {
		t.Fatal(err)
	}
	return index
}

// due reads all that is due before an instant, over all shards.
func (s *sweeping) due(t *testing.T, before time.Time) []store.Due {
	t.Helper()
	var all []store.Due
	for shard := range store.SweepShards {
		page, err := s.index.DueDeliveries(t.Context(), shard, before, nil, 100)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page.Due...)
	}
	slices.SortFunc(all, func(a, b store.Due) int { return strings.Compare(a.Key.SK, b.Key.SK) })
	return all
}

func (s *sweeping) only(t *testing.T, before time.Time) store.Due {
	t.Helper()
	all := s.due(t, before)
	if len(all) != 1 {
		t.Fatalf("due: %+v", all)
	}
	return all[0]
}

// pending reads the releases of all that is in the index, due or not.
func (s *sweeping) pending(t *testing.T) []int64 {
	t.Helper()
	releases := []int64{}
	for _, d := range s.due(t, noon.Add(1000*time.Hour)) {
		if d.Delivery.Destination != in {
			t.Errorf("in the index: %+v", d)
		}
		releases = append(releases, d.Delivery.Release)
	}
	return releases
}

func (s *sweeping) moveOn(t *testing.T, d store.Due, to time.Time) (store.Swept, bool) {
	t.Helper()
	swept, moved, err := s.index.MoveOn(t.Context(), d, func(int64) time.Time { return to })
	if err != nil {
		t.Fatal(err)
	}
	return swept, moved
}

// overdue is after everything that is published at noon was to be sent.
var overdue = noon.Add(delivery.SweepDelay + time.Millisecond)

func sweptWhilePending(t *testing.T, s *sweeping) {
	want := func(when string, releases ...int64) {
		t.Helper()
		if got := s.pending(t); !slices.Equal(got, releases) {
			t.Errorf("%s: %v, want %v", when, got, releases)
		}
	}
	want("before anything")
	s.publish(t, 3)
	want("published", 1, 2, 3)
	s.attempt(t, 3, unavailable)
	want("between two tries", 1, 2, 3)
	s.attempt(t, 3, arrives)
	want("delivered", 1, 2)
	if err := s.worker.SkipPlain(t.Context(), delivery.Key{Destination: in, Release: 2}, 1, 3); err != nil {
		t.Fatal(err)
	}
	want("superseded", 1)
	if err := s.worker.EndUnreadable(t.Context(), delivery.Key{Destination: in, Release: 1}); err != nil {
		t.Fatal(err)
	}
	want("failed")
	s.commit(t, requeueing(s.read(t, 3), 0))
	want("redelivered", 3)
	s.attempt(t, 3, refuses)
	want("refused")
}

func sweptTest(t *testing.T, s *sweeping) {
	s.commit(t, destination.Testing{Test: test("t1"), Spending: destination.Spending{Until: noon.Add(time.Minute)}})
	if got := s.due(t, noon.Add(1000*time.Hour)); len(got) > 0 {
		t.Errorf("due: %+v", got)
	}
	// Nobody claimed it: it reads as not sent, and no worker may claim it any more.
	if got, err := s.destinations.Test(t.Context(), in, "t1"); err != nil || got.State(noon.Add(delivery.TestWaits)) != delivery.TestNotSent {
		t.Errorf("test: %+v, %v", got, err)
	}
}

func sweptInPages(t *testing.T, s *sweeping) {
	const shard = 5
	for i, age := range []int{3, 1, 5, 2, 4} {
		s.write(t, fmt.Sprintf("R#%012d", i+1), store.Item{
			"sweepShard": store.Number(shard), "sweepAt": store.Number(noon.Add(-time.Duration(age) * time.Second).UnixMilli()),
		})
	}
	var got []int64
	var after store.Item
	for pages := 1; ; pages++ {
		page, err := s.index.DueDeliveries(t.Context(), shard, noon, after, 2)
		if err != nil || len(page.Due) > 2 {
			t.Fatalf("page %d: %+v, %v", pages, page, err)
		}
		for _, d := range page.Due {
			got = append(got, d.Delivery.Release)
		}
		if after = page.Last; after == nil {
			break
		}
		if pages > 4 {
			t.Fatal("the pages do not end")
		}
	}
	if want := []int64{3, 5, 1, 4, 2}; !slices.Equal(got, want) {
		t.Errorf("read %v, want %v", got, want)
	}
}

func (s *sweeping) write(t *testing.T, sk string, item store.Item) {
	t.Helper()
	_, err := s.place.Engine.Write(t.Context(), store.Write{
		Table: s.place.Delivery, Key: store.Key{PK: "P#p1#D#dst_1", SK: sk}, Put: item,
	})
	if err != nil {
		t.Fatal(err)
	}
}

func sweptBefore(t *testing.T, s *sweeping) {
	s.publish(t, 1)
	if got := s.due(t, noon.Add(delivery.SweepDelay)); len(got) > 0 {
		t.Errorf("due: %+v", got)
	}
	if d := s.only(t, overdue); d.Delivery != (delivery.Key{Destination: in, Release: 1}) {
		t.Errorf("due: %+v", d)
	}
}

func sweptAndCounted(t *testing.T, s *sweeping) {
	s.publish(t, 1)
	at := overdue
	for sweeps := int64(0); sweeps < 4; sweeps++ {
		next := at.Add(time.Duration(sweeps+1) * time.Minute)
		swept, moved, err := s.index.MoveOn(t.Context(), s.only(t, at), func(n int64) time.Time {
			if n != sweeps && n != 0 { // it may be asked as for a first sweep
				t.Errorf("told of %d sweeps, want %d", n, sweeps)
			}
			return at.Add(time.Duration(n+1) * time.Minute)
		})
		if err != nil || !moved || !swept.TryAt.Equal(noon) || swept.Sweeps != sweeps+1 {
			t.Fatalf("after %d sweeps: %+v, %v, %v", sweeps, swept, moved, err)
		}
		if d := s.read(t, 1).Newest; !d.SweepAt.Equal(next) || d.Sweeps != sweeps+1 {
			t.Errorf("after %d sweeps: %+v", sweeps, d)
		}
		if s.item(t, "R#000000000001")["ring"] != nil {
			t.Error("a sweep rings in the stream")
		}
		at = next.Add(time.Millisecond)
	}
}

func sweptAfresh(t *testing.T, s *sweeping) {
	s.publish(t, 1)
	s.moveOn(t, s.only(t, overdue), overdue.Add(time.Minute))
	s.attempt(t, 1, unavailable)
	d := s.read(t, 1).Newest
	if d.Sweeps != 0 {
		t.Errorf("%d sweeps after an attempt", d.Sweeps)
	}
	if swept, moved := s.moveOn(t, s.only(t, d.SweepAt.Add(time.Millisecond)), overdue.Add(time.Hour)); !moved || swept.Sweeps != 1 {
		t.Errorf("%+v, %v", swept, moved)
	}
}

func sweptTooLate(t *testing.T, s *sweeping) {
	s.publish(t, 5)
	seen := s.due(t, overdue)
	if len(seen) != 5 {
		t.Fatalf("due: %+v", seen)
	}
	s.attempt(t, 1, arrives)
	s.attempt(t, 2, unavailable)
	s.moveOn(t, seen[2], overdue.Add(time.Minute))
	s.moveOn(t, seen[3], noon)
	s.moveOn(t, s.only(t, noon.Add(time.Millisecond)), overdue.Add(time.Minute)) // twice
	if _, err := s.place.Engine.Write(t.Context(), store.Write{Table: s.place.Delivery, Key: seen[4].Key, Delete: true}); err != nil {
		t.Fatal(err)
	}
	for _, d := range seen {
		before := s.item(t, d.Key.SK)
		if swept, moved := s.moveOn(t, d, overdue.Add(time.Hour)); moved || swept != (store.Swept{}) {
			t.Errorf("%s: moved, %+v", d.Key.SK, swept)
		}
		if after := s.item(t, d.Key.SK); !reflect.DeepEqual(after, before) {
			t.Errorf("%s: was %v, is %v", d.Key.SK, before, after)
		}
	}
}

func sweptUnknown(t *testing.T, s *sweeping) {
	s.publish(t, 1)
	for _, fault := range []Fault{RequestLost, Throttled, AnswerLost} {
		d := s.only(t, overdue)
		index := newSweep(t, &Faulty{Engine: s.place.Engine, Choose: func([]store.Write) Fault { return fault }}, s.place.Delivery)
		_, moved, err := index.MoveOn(t.Context(), d, func(int64) time.Time { return overdue.Add(time.Minute) })
		if moved || err == nil {
			t.Errorf("fault %v: moved %v, %v", fault, moved, err)
		}
	}
	// The lost answer's write was carried out: it is found again a minute later.
	if d := s.only(t, overdue.Add(time.Minute+time.Millisecond)); d.Delivery.Release != 1 {
		t.Errorf("due: %+v", d)
	}
}

func sweptInConflict(t *testing.T, s *sweeping) {
	s.publish(t, 1)
	index := newSweep(t, &Faulty{Engine: s.place.Engine, Choose: func([]store.Write) Fault { return Conflict }}, s.place.Delivery)
	_, moved, err := index.MoveOn(t.Context(), s.only(t, overdue), func(int64) time.Time { return overdue.Add(time.Minute) })
	if moved || err != nil {
		t.Errorf("moved %v, %v", moved, err)
	}
}

func sweptStray(t *testing.T, s *sweeping) {
	s.write(t, "SOMETHING", store.Item{"sweepShard": store.Number(63), "sweepAt": store.Number(1)})
	d := s.only(t, overdue)
	if d.Delivery != (delivery.Key{}) || d.Key != (store.Key{PK: "P#p1#D#dst_1", SK: "SOMETHING"}) {
		t.Errorf("due: %+v", d)
	}
	if swept, moved := s.moveOn(t, d, overdue.Add(time.Minute)); !moved || !swept.TryAt.IsZero() {
		t.Errorf("%+v, moved %v", swept, moved)
	}
	if got := s.due(t, overdue); len(got) > 0 {
		t.Errorf("still due: %+v", got)
	}
}

func sweptAbsurdly(t *testing.T, s *sweeping) {
	for i, sweeps := range []store.Value{store.Text("many"), store.Number(-4), store.Flag(true), store.Map(store.Item{})} {
		s.write(t, fmt.Sprintf("R#%012d", i+1), store.Item{
			"sweepShard": store.Number(0), "sweepAt": store.Number(noon.UnixMilli()), "sweeps": sweeps, "tryAt": store.Text("soon"),
		})
	}
	for _, d := range s.due(t, overdue) {
		if swept, moved := s.moveOn(t, d, overdue.Add(time.Minute)); !moved || swept.Sweeps != 1 || !swept.TryAt.IsZero() {
			t.Errorf("%s: %+v, moved %v", d.Key.SK, swept, moved)
		}
	}
	if got := s.due(t, overdue); len(got) > 0 {
		t.Errorf("still due: %+v", got)
	}
}

func sweptTwice(t *testing.T, s *sweeping) {
	s.publish(t, 1)
	d := s.only(t, overdue)
	other := noon // between the sight and the first write somebody else moves it
	index := newSweep(t, &Faulty{Engine: s.place.Engine, Choose: func([]store.Write) Fault {
		if other != overdue.Add(time.Minute) {
			other = overdue.Add(time.Minute)
			if _, moved := s.moveOn(t, d, other); !moved {
				t.Error("the first is not told")
			}
		}
		return None
	}}, s.place.Delivery)
	if _, moved, err := index.MoveOn(t.Context(), d, func(int64) time.Time { return overdue.Add(time.Hour) }); moved || err != nil {
		t.Errorf("the second is told: moved %v, %v", moved, err)
	}
	if got := s.read(t, 1).Newest; !got.SweepAt.Equal(other) || got.Sweeps != 1 {
		t.Errorf("%+v", got)
	}
}
