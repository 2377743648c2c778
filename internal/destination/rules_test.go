package destination

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"colophon/internal/delivery"
)

var (
	noon  = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	where = delivery.Destination{Project: "p1", ID: "d1"}
)

// ended is release 5 as delivered in its first round.
func ended() *delivery.Delivery {
	return &delivery.Delivery{
		Key: delivery.Key{Destination: where, Release: 5}, Status: delivery.Delivered, Round: 1, Rev: 3,
		WebhookID: "msg_5", Body: []byte("{}"), FirstTryAt: noon.Add(-time.Hour), TryAt: noon.Add(-time.Hour),
		Tries: 1, Numbered: 1, Attempts: []delivery.Attempt{{Number: 1, Round: 1}},
		CreatedAt: noon.Add(-2 * time.Hour), EndedAt: noon.Add(-time.Hour),
	}
}

// waiting is release 5 between two tries.
func waiting() *delivery.Delivery {
	d := ended()
	d.Status, d.EndedAt = delivery.Retrying, time.Time{}
	d.TryAt, d.SweepAt, d.Sweeps = noon.Add(10*time.Minute), noon.Add(12*time.Minute), 3
	return d
}

// reading is an active destination whose newest delivery is rang.
func reading(rang *delivery.Delivery, change ...func(*delivery.Reading)) delivery.Reading {
	r := delivery.Reading{
		Slot:     delivery.Slot{State: delivery.SlotActive, Version: 7},
		Settings: delivery.Settings{Version: 1},
		Newest:   rang, Rang: rang,
	}
	if rang != nil {
		r.Key = rang.Key
	}
	for _, c := range change {
		c(&r)
	}
	return r
}

func newestIs(release int64) func(*delivery.Reading) {
	return func(r *delivery.Reading) {
		r.Newest = &delivery.Delivery{Key: delivery.Key{Destination: where, Release: release}, Status: delivery.Delivered}
	}
}

func slotIs(change func(*delivery.Slot)) func(*delivery.Reading) {
	return func(r *delivery.Reading) { change(&r.Slot) }
}

func heldFor(release int64, until time.Time) func(*delivery.Reading) {
	return slotIs(func(s *delivery.Slot) { s.Holder = &delivery.Holder{Token: "t", Release: release, Until: until} })
}

func state(state delivery.SlotState) func(*delivery.Reading) {
	return slotIs(func(s *delivery.Slot) { s.State = state })
}

func faulty(f delivery.Fault) func(*delivery.Reading) {
	return func(r *delivery.Reading) { r.Rang.Fault = f }
}

func codeOf(err error) Code {
	var refusal *Error
	if errors.As(err, &refusal) {
		return refusal.Code
	}
	return ""
}

func TestRedelivery(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		r      delivery.Reading
		ask    Redelivery
		code   Code  // of the refusal; empty: it is sent again
		over   int64 // where it is sent again
		newest int64 // that the refusal names
	}{
		{name: "the newest release needs nothing else", r: reading(ended())},
		{name: "force over itself does the newest no harm", r: reading(ended()), ask: Redelivery{Force: true, Over: 5}},
		{name: "an older release needs force", r: reading(ended(), newestIs(6)), code: CodeNotNewest, newest: 6},
		{name: "an older release is forced over the newest", r: reading(ended(), newestIs(6)), ask: Redelivery{Force: true, Over: 6}, over: 6},
		{name: "force names what it is over", r: reading(ended(), newestIs(6)), ask: Redelivery{Force: true}, code: CodeInvalid},
		{name: "a page that shows less than there is cannot force", r: reading(ended(), newestIs(7)), ask: Redelivery{Force: true, Over: 6}, code: CodeNewer, newest: 7},
		{name: "nobody can force over a release that is not there", r: reading(ended(), newestIs(6)), ask: Redelivery{Force: true, Over: 9}, code: CodeNewer, newest: 6},
		{name: "over alone is not force", r: reading(ended(), newestIs(6)), ask: Redelivery{Over: 6}, code: CodeNotNewest, newest: 6},
		{name: "a newer one that was sent counts even where it has expired", r: reading(ended(), slotIs(func(s *delivery.Slot) { s.SentThrough = 8 })), code: CodeNotNewest, newest: 8},
		{name: "what has not ended is not sent again", r: reading(waiting()), code: CodeNotEnded},
		{name: "another delivery on its way is no hindrance", r: reading(ended(), newestIs(6), heldFor(6, noon.Add(time.Second))), ask: Redelivery{Force: true, Over: 6}, over: 6},
		{name: "a paused destination is resumed first", r: reading(ended(), state(delivery.SlotPaused)), code: CodePaused},
		{name: "a removed destination gets nothing", r: reading(ended(), state(delivery.SlotRemoved)), code: CodeRemoved},
		{name: "there is nothing to send", r: reading(nil), code: CodeNotFound},
		{name: "a damaged record cannot be sent", r: reading(ended(), faulty(delivery.FaultUnreadable)), code: CodeUnreadable},
		{name: "a record of a newer build waits for it", r: reading(ended(), faulty(delivery.FaultUnknownVersion)), code: CodeUnreadable},
		{name: "a damaged slot takes nothing", r: reading(ended(), slotIs(func(s *delivery.Slot) { *s = delivery.Slot{Unreadable: true} })), code: CodeUnreadable},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			q, err := requeue(c.r, time.Time{}, c.ask, noon)
			if codeOf(err) != c.code || (err != nil) != (c.code != "") {
				t.Fatalf("got %v, want %q", err, c.code)
			}
			if err != nil {
				if newest := err.(*Error).Newest; newest != c.newest {
					t.Errorf("the refusal names release %d, want %d", newest, c.newest)
				}
				return
			}
			if q.Over != c.over || q.SlotVersion != 7 || !reflect.DeepEqual(q.Delivery, *c.r.Rang) {
				t.Errorf("got %+v", q)
			}
		})
	}
}

func TestRedeliveryKeepsIdBodyAndHistory(t *testing.T) {
	t.Parallel()
	d := ended()
	d.Status, d.Reason, d.Lost, d.Tries = delivery.Failed, "refused", 1, 4
	d.Ours = delivery.Ours{Count: 2, Since: noon}
	got := Requeueing{Delivery: *d, Over: 6, At: noon}.After()
	want := delivery.Delivery{
		Key: d.Key, Status: delivery.Queued, Round: 2, Rev: 4, WebhookID: "msg_5", Body: []byte("{}"), Over: 6,
		TryAt: noon, SweepAt: noon.Add(delivery.SweepDelay), Numbered: 1, Attempts: d.Attempts, CreatedAt: d.CreatedAt,
		Before: &delivery.Result{Status: delivery.Failed, Reason: "refused", Round: 1, At: d.EndedAt},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestASkippedRedeliveryLeavesTheEarlierResultInTheHeadline(t *testing.T) {
	t.Parallel()
	first := ended()
	delivered := first.Result()
	second := Requeueing{Delivery: *first, At: noon}.After()
	second.Status, second.Reason, second.EndedAt = delivery.Skipped, delivery.Paused, noon
	if got := second.Result(); got != delivered {
		t.Errorf("the headline is %+v, want %+v", got, delivered)
	}
	third := Requeueing{Delivery: second, At: noon.Add(time.Hour)}.After()
	third.Status, third.Reason, third.EndedAt = delivery.Skipped, delivery.Superseded, noon.Add(time.Hour)
	if got := third.Result(); got != delivered {
		t.Errorf("after a second one in vain the headline is %+v, want %+v", got, delivered)
	}
	third.Status, third.Reason = delivery.Failed, "gone"
	if got := third.Result(); got.Status != delivery.Failed || got.Round != 3 {
		t.Errorf("a redelivery that was tried is the headline, got %+v", got)
	}
}

func TestADeliveryWithoutAnEndIsQueuedWithOne(t *testing.T) {
	t.Parallel()
	d := ended()
	d.EndedAt = time.Time{}
	if at := (Requeueing{Delivery: *d, At: noon}).After().Before.At; !at.Equal(noon) {
		t.Errorf("the earlier result ended at %v", at)
	}
}

func TestTryNow(t *testing.T) {
	t.Parallel()
	forced := func() *delivery.Delivery {
		d := waiting()
		d.Over = 6
		return d
	}
	for _, c := range []struct {
		name   string
		r      delivery.Reading
		code   Code
		newest int64
	}{
		{name: "a try that waits is made now", r: reading(waiting())},
		{name: "one that is due already rings again", r: reading(waiting(), func(r *delivery.Reading) { r.Rang.TryAt = noon.Add(-time.Minute) })},
		{name: "another one on its way is no hindrance", r: reading(waiting(), heldFor(4, noon.Add(time.Second)))},
		{name: "what is being sent needs no push", r: reading(waiting(), heldFor(5, noon.Add(time.Second))), code: CodeBeingSent},
		{name: "an attempt that was cut off is noted first", r: reading(waiting(), heldFor(5, noon.Add(-time.Minute))), code: CodeBeingSent},
		{name: "what has ended is redelivered instead", r: reading(ended()), code: CodeEnded},
		{name: "what a newer release replaces is not sent", r: reading(waiting(), newestIs(6)), code: CodeNewer, newest: 6},
		{name: "what was forced over the newest is", r: reading(forced(), newestIs(6))},
		{name: "what was forced over less is not", r: reading(forced(), newestIs(7)), code: CodeNewer, newest: 7},
		{name: "a paused destination is resumed first", r: reading(waiting(), state(delivery.SlotPaused)), code: CodePaused},
		{name: "a removed destination gets nothing", r: reading(waiting(), state(delivery.SlotRemoved)), code: CodeRemoved},
		{name: "there is nothing to try", r: reading(nil), code: CodeNotFound},
		{name: "a damaged record cannot be tried", r: reading(waiting(), faulty(delivery.FaultUnreadable)), code: CodeUnreadable},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a, err := advance(c.r, time.Time{}, noon)
			if codeOf(err) != c.code || (err != nil) != (c.code != "") {
				t.Fatalf("got %v, want %q", err, c.code)
			}
			if err != nil {
				if newest := err.(*Error).Newest; newest != c.newest {
					t.Errorf("the refusal names release %d, want %d", newest, c.newest)
				}
				return
			}
			want := *c.r.Rang
			want.TryAt, want.SweepAt, want.Sweeps, want.Rev = noon, noon.Add(delivery.SweepDelay), 0, want.Rev+1
			if got := a.After(); !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestAllowance(t *testing.T) {
	t.Parallel()
	var until time.Time
	for i := range AllowanceAtOnce {
		s, err := spend(until, noon)
		if err != nil {
			t.Fatalf("send %d by hand: %v", i+1, err)
		}
		if !s.Was.Equal(until) || !s.Until.Equal(noon.Add(time.Duration(i+1)*AllowanceEach)) {
			t.Fatalf("send %d by hand: %+v", i+1, s)
		}
		until = s.Until
	}
	_, err := spend(until, noon)
	if codeOf(err) != CodeTooOften || err.(*Error).RetryAfter != AllowanceEach {
		t.Fatalf("one too many: %v", err)
	}
	_, err = spend(until, noon.Add(AllowanceEach-1500*time.Millisecond))
	if codeOf(err) != CodeTooOften || err.(*Error).RetryAfter != 2*time.Second {
		t.Fatalf("too early by one and a half seconds: %v, to wait %v", err, err.(*Error).RetryAfter)
	}
	s, err := spend(until, noon.Add(AllowanceEach))
	if err != nil {
		t.Fatalf("after a minute: %v", err)
	}
	if _, err := spend(s.Until, noon.Add(AllowanceEach)); codeOf(err) != CodeTooOften {
		t.Fatalf("two after a minute: %v", err)
	}
	rested := until.Add(time.Hour)
	if s, err := spend(until, rested); err != nil || !s.Until.Equal(rested.Add(AllowanceEach)) {
		t.Fatalf("after a rest it begins anew: %+v, %v", s, err)
	}
}

func holdingIn(state delivery.SlotState) Holding {
	return Holding{
		ID: "d1", Slot: delivery.Slot{State: state, Version: 4},
		Settings: delivery.Settings{Name: "n", URL: "https://a.example.org/", Secret: []byte("s1"), Version: 2},
	}
}

// unusable are the holdings that no change is made to.
var unusable = []struct {
	name string
	h    Holding
	code Code
}{
	{"one that never was", Holding{ID: "d1", Slot: delivery.Slot{State: delivery.SlotRemoved}}, CodeNotFound},
	{"one that was removed", holdingIn(delivery.SlotRemoved), CodeRemoved},
	{"a damaged slot", Holding{ID: "d1", Slot: delivery.Slot{Unreadable: true}}, CodeUnreadable},
	{"damaged settings", Holding{ID: "d1", Slot: delivery.Slot{State: delivery.SlotActive, Version: 1}}, CodeUnreadable},
}

func TestUnusableDestinationsAreNotChanged(t *testing.T) {
	t.Parallel()
	name := "new"
	for _, c := range unusable {
		for action, do := range map[string]func() error{
			"pause":  func() error { _, err := pause(c.h); return err },
			"resume": func() error { _, err := resume(c.h); return err },
			"change": func() error { _, err := reset(c.h, checked{name: &name}, nil, 0, noon); return err },
			"rotate": func() error { _, err := rotate(c.h, []byte("s2"), false, noon); return err },
			"revoke": func() error { _, err := revoke(c.h, noon); return err },
		} {
			t.Run(action+" "+c.name, func(t *testing.T) {
				t.Parallel()
				if err := do(); codeOf(err) != c.code {
					t.Errorf("got %v, want %q", err, c.code)
				}
			})
		}
	}
}

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	active, paused := holdingIn(delivery.SlotActive), holdingIn(delivery.SlotPaused)
	if s, err := pause(active); err != nil || *s != (Switching{From: delivery.SlotActive, To: delivery.SlotPaused, By: delivery.PausedByPerson}) {
		t.Errorf("pause an active one: %+v, %v", s, err)
	}
	if s, err := pause(paused); err != nil || s != nil {
		t.Errorf("pause a paused one: %+v, %v", s, err)
	}
	if s, err := resume(paused); err != nil || *s != (Switching{From: delivery.SlotPaused, To: delivery.SlotActive}) {
		t.Errorf("resume a paused one: %+v, %v", s, err)
	}
	if s, err := resume(active); err != nil || s != nil {
		t.Errorf("resume an active one: %+v, %v", s, err)
	}
}

func TestResumeOffersWhatEndedUndelivered(t *testing.T) {
	t.Parallel()
	in := func(s delivery.Status, before *delivery.Result) delivery.Delivery {
		return delivery.Delivery{Status: s, Before: before}
	}
	delivered := &delivery.Result{Status: delivery.Delivered}
	for _, c := range []struct {
		name  string
		d     delivery.Delivery
		offer bool
	}{
		{"skipped while paused", in(delivery.Skipped, nil), true},
		{"failed before", in(delivery.Failed, nil), true},
		{"delivered", in(delivery.Delivered, nil), false},
		{"on its way by itself", in(delivery.Queued, nil), false},
		{"waiting for its next try", in(delivery.Retrying, nil), false},
		{"delivered, and a redelivery was skipped", in(delivery.Skipped, delivered), false},
		{"not readable", delivery.Delivery{Status: delivery.Failed, Fault: delivery.FaultUnreadable}, false},
	} {
		if got := undelivered(c.d); got != c.offer {
			t.Errorf("%s: offered is %v", c.name, got)
		}
	}
}

func TestAddAndRemove(t *testing.T) {
	t.Parallel()
	p := &Project{ID: "p1", Version: 9, Destinations: []string{"d0", "d1"}}
	a, err := add(p, delivery.Destination{Project: "p1", ID: "d2"}, delivery.Settings{Name: "n"})
	if err != nil || a.ProjectVersion != 9 || !slices.Equal(a.IDs, []string{"d0", "d1", "d2"}) {
		t.Errorf("add: %+v, %v", a, err)
	}
	if _, err := add(nil, where, delivery.Settings{}); codeOf(err) != CodeNotFound {
		t.Errorf("add to no project: %v", err)
	}
	full := &Project{Destinations: make([]string, MostDestinations)}
	if _, err := add(full, where, delivery.Settings{}); codeOf(err) != CodeTooMany {
		t.Errorf("add one too many: %v", err)
	}

	r, err := remove(p, where, holdingIn(delivery.SlotPaused), noon)
	if err != nil || r.ProjectVersion != 9 || r.Damaged || !slices.Equal(r.IDs, []string{"d0"}) {
		t.Errorf("remove: %+v, %v", r, err)
	}
	if !slices.Equal(p.Destinations, []string{"d0", "d1"}) {
		t.Errorf("what was read has changed: %v", p.Destinations)
	}
	for _, h := range []Holding{{ID: "d1"}, {ID: "d1", Slot: delivery.Slot{Unreadable: true}}, unusable[3].h} {
		if r, err := remove(p, where, h, noon); err != nil || !r.Damaged {
			t.Errorf("remove a damaged one: %+v, %v", r, err)
		}
	}
	gone := &Project{ID: "p1", Version: 9}
	if r, err := remove(gone, where, holdingIn(delivery.SlotRemoved), noon); err != nil || r != nil {
		t.Errorf("remove again: %+v, %v", r, err)
	}
	if _, err := remove(gone, where, Holding{ID: "d1"}, noon); codeOf(err) != CodeNotFound {
		t.Errorf("remove what never was: %v", err)
	}
	if _, err := remove(nil, where, Holding{}, noon); codeOf(err) != CodeNotFound {
		t.Errorf("remove from no project: %v", err)
	}
}

func TestChange(t *testing.T) {
	t.Parallel()
	name, url, none, some := "new", "https://b.example.org/", []byte(nil), []byte(`{"A":"b"}`)
	h := holdingIn(delivery.SlotPaused)
	h.Settings.Headers, h.Settings.HeaderNames = []byte("sealed before"), []string{"X-Old"}

	if s, err := reset(h, checked{}, nil, 0, noon); err != nil || s != nil {
		t.Errorf("a change of nothing: %+v, %v", s, err)
	}
	if _, err := reset(h, checked{name: &name}, nil, 1, noon); codeOf(err) != CodeChanged {
		t.Errorf("a change of what somebody else changed: %v", err)
	}
	s, err := reset(h, checked{name: &name, url: &url}, nil, 2, noon)
	if err != nil || s.Name != name || s.URL != url || s.Version != 3 || !s.UpdatedAt.Equal(noon) || string(s.Headers) != "sealed before" {
		t.Errorf("a new name and address: %+v, %v", s, err)
	}
	s, err = reset(h, checked{headers: &some, headerNames: []string{"A"}}, []byte("sealed"), 0, noon)
	if err != nil || string(s.Headers) != "sealed" || !slices.Equal(s.HeaderNames, []string{"A"}) || s.Name != "n" {
		t.Errorf("new headers: %+v, %v", s, err)
	}
	s, err = reset(h, checked{headers: &none}, nil, 0, noon)
	if err != nil || s.Headers != nil || s.HeaderNames != nil {
		t.Errorf("no headers: %+v, %v", s, err)
	}
}

func TestRotateAndRevoke(t *testing.T) {
	t.Parallel()
	h := holdingIn(delivery.SlotActive)
	s, err := rotate(h, []byte("s2"), false, noon)
	if err != nil || string(s.Secret) != "s2" || string(s.Previous) != "s1" || !s.PreviousUntil.Equal(noon.Add(24*time.Hour)) {
		t.Fatalf("rotate: %+v, %v", s, err)
	}
	again, err := rotate(Holding{Slot: h.Slot, Settings: *s}, []byte("s3"), false, noon)
	if err != nil || string(again.Secret) != "s3" || string(again.Previous) != "s2" {
		t.Errorf("rotate again: %+v, %v", again, err)
	}
	revoked, err := revoke(Holding{Slot: h.Slot, Settings: *s}, noon)
	if err != nil || string(revoked.Secret) != "s2" || revoked.Previous != nil || !revoked.PreviousUntil.IsZero() || revoked.Version != s.Version+1 {
		t.Errorf("revoke: %+v, %v", revoked, err)
	}
	if none, err := revoke(h, noon); err != nil || none != nil {
		t.Errorf("revoke nothing: %+v, %v", none, err)
	}
	at, err := rotate(h, []byte("s2"), true, noon)
	if err != nil || string(at.Secret) != "s2" || at.Previous != nil || !at.PreviousUntil.IsZero() {
		t.Errorf("rotate and revoke: %+v, %v", at, err)
	}
}

func TestReplacedNamesWhatWasSkippedForARelease(t *testing.T) {
	t.Parallel()
	one := func(release int64, status delivery.Status, successor int64) delivery.Delivery {
		return delivery.Delivery{Key: delivery.Key{Destination: where, Release: release}, Status: status, Successor: successor}
	}
	older := []delivery.Delivery{
		one(8, delivery.Skipped, 9), one(7, delivery.Delivered, 0), one(6, delivery.Skipped, 9), one(5, delivery.Skipped, 7),
	}
	if got := replaced(9, older); !slices.Equal(got, []int64{8, 6}) {
		t.Errorf("got %v", got)
	}
	if got := replaced(5, nil); got != nil {
		t.Errorf("got %v", got)
	}
}
