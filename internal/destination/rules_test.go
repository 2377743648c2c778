package destination

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"colophon/internal/delivery"
	"colophon/internal/ratelimit"
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
			q, err := requeue(DefaultLimits(), c.r, Spent{}, c.ask, noon)
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
			a, err := advance(DefaultLimits(), c.r, Spent{}, noon)
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

func TestWhatIsSentByHandIsTakenFromTheLimitsOfDestinationAndOrigin(t *testing.T) {
	t.Parallel()
	const origin = "https://hooks.example.org"
	limits := Limits{Destination: ratelimit.PerMinute(2, 1), Origin: ratelimit.PerMinute(3, 6)}
	one := noon.Add(time.Minute)
	used, originUsed := noon.Add(2*time.Minute), noon.Add(30*time.Second)
	for _, row := range []struct {
		name   string
		spent  Spent
		origin string
		want   Spending
		wait   time.Duration
	}{
		{"nothing was sent", Spent{}, origin,
			Spending{Until: one, Origin: origin, OriginUntil: noon.Add(10 * time.Second)}, 0},
		{"one was sent", Spent{Until: one, OriginUntil: noon.Add(10 * time.Second)}, origin,
			Spending{Was: one, Until: used, Origin: origin, OriginWas: noon.Add(10 * time.Second), OriginUntil: noon.Add(20 * time.Second)}, 0},
		{"the destination's limit is exhausted", Spent{Until: used}, origin, Spending{}, time.Minute},
		{"the origin's limit is exhausted by others", Spent{OriginUntil: originUsed}, origin, Spending{}, 10 * time.Second},
		{"the origin does not count", Spent{OriginUntil: originUsed}, "", Spending{Until: one, OriginWas: originUsed}, 0},
	} {
		row.spent.Origin = row.origin
		got, err := spend(limits, row.spent, noon)
		if row.wait > 0 {
			if codeOf(err) != CodeTooOften || err.(*Error).RetryAfter != row.wait {
				t.Errorf("%s: %v", row.name, err)
			}
			continue
		}
		if err != nil || got != row.want {
			t.Errorf("%s: got %+v, %v, want %+v", row.name, got, err, row.want)
		}
	}
}

func TestOriginsOfServicesThatManyShareCountPerDestinationOnly(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://hooks.example.org/a/b?c=d":               "https://hooks.example.org",
		"http://127.0.0.1:8098/":                          "http://127.0.0.1:8098",
		"https://hooks.slack.com/services/T/B/x":          "",
		"https://contoso.webhook.office.com/webhookb2/x":  "",
		"https://webhook.office.com.example.org/":         "https://webhook.office.com.example.org",
		"https://evilhooks.slack.com.example.org/":        "https://evilhooks.slack.com.example.org",
		"https://my-hooks.slack.com/":                     "https://my-hooks.slack.com",
		"https://api.github.com/repos/o/r/dispatches":     "",
		"https://api.netlify.com/build_hooks/x":           "",
		"http://hooks.slack.com.:80/services/not/ascii/x": "http://hooks.slack.com.:80",
	} {
		if got := countedOrigin(address); got != want {
			t.Errorf("%s counts for %q, want %q", address, got, want)
		}
	}
}

func sealedAs(text string) delivery.Sealed {
	return delivery.Sealed{Bytes: []byte(text), Context: delivery.SealedForPurpose}
}

func holdingIn(state delivery.SlotState) Holding {
	return Holding{
		ID: "d1", Slot: delivery.Slot{State: state, Version: 4},
		Settings: delivery.Settings{Name: "n", URL: "https://a.example.org/", Secret: sealedAs("s1"), SecretFingerprint: []byte("f1"), Version: 2},
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
			"change": func() error { _, err := reset(c.h, checked{name: &name}, 0, noon); return err },
			"rotate": func() error { _, err := rotate(c.h, []byte("f2"), false, Rotation{}, noon); return err },
			"revoke": func() error { _, err := revoke(c.h, Revocation{}, noon); return err },
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
	name, url, none, some := "new", "https://a.example.org/other", []byte(nil), []byte(`{"A":"b"}`)
	h := holdingIn(delivery.SlotPaused)
	h.Settings.Headers, h.Settings.HeaderNames = sealedAs("sealed before"), []string{"X-Old"}

	if s, err := reset(h, checked{}, 0, noon); err != nil || s != nil {
		t.Errorf("a change of nothing: %+v, %v", s, err)
	}
	if _, err := reset(h, checked{name: &name}, 1, noon); codeOf(err) != CodeChanged {
		t.Errorf("a change of what somebody else changed: %v", err)
	}
	s, err := reset(h, checked{name: &name, url: &url}, 2, noon)
	if err != nil || s.Name != name || s.URL != url || s.Version != 3 || !s.UpdatedAt.Equal(noon) || string(s.Headers.Bytes) != "sealed before" {
		t.Errorf("a new name and address: %+v, %v", s, err)
	}
	s, err = reset(h, checked{headers: &some, headerNames: []string{"A"}}, 0, noon)
	if err != nil || !s.Headers.IsZero() || !slices.Equal(s.HeaderNames, []string{"A"}) || s.Name != "n" {
		t.Errorf("new headers, still to be sealed: %+v, %v", s, err)
	}
	s, err = reset(h, checked{headers: &none}, 0, noon)
	if err != nil || !s.Headers.IsZero() || s.HeaderNames != nil {
		t.Errorf("no headers: %+v, %v", s, err)
	}
}

func TestAnAddressMovesToAnotherOriginOnlyWithHeadersGivenAnew(t *testing.T) {
	t.Parallel()
	h := holdingIn(delivery.SlotActive) // at https://a.example.org/
	h.Settings.Headers, h.Settings.HeaderNames = sealedAs("sealed before"), []string{"Authorization"}
	bare, none := holdingIn(delivery.SlotActive), []byte(nil)
	for _, row := range []struct {
		name    string
		h       Holding
		url     string
		headers *[]byte
		refused bool
	}{
		{"another path", h, "https://a.example.org/elsewhere?key=1", nil, false},
		{"another host", h, "https://b.example.org/", nil, true},
		{"a host below", h, "https://hooks.a.example.org/", nil, true},
		{"another port", h, "https://a.example.org:8443/", nil, true},
		{"another scheme", h, "http://a.example.org/", nil, true},
		{"another host, with the headers", h, "https://b.example.org/", &none, false},
		{"another host, where there are no headers", bare, "https://b.example.org/", nil, false},
	} {
		s, err := reset(row.h, checked{url: &row.url, headers: row.headers}, 0, noon)
		if row.refused {
			if codeOf(err) != CodeInvalid || err.(*Error).Field != "headers" {
				t.Errorf("%s: %+v, %v", row.name, s, err)
			}
			continue
		}
		if err != nil || s.URL != row.url || string(s.Secret.Bytes) != "s1" {
			t.Errorf("%s: %+v, %v", row.name, s, err)
		}
	}
}

// rotated is a destination after so many rotations, an hour apart.
func rotated(t *testing.T, rotations int) (Holding, time.Time) {
	t.Helper()
	h, now := holdingIn(delivery.SlotActive), noon
	for i := range rotations {
		s, err := rotate(h, []byte{byte('2' + i)}, false, Rotation{}, now)
		if err != nil {
			t.Fatalf("rotation %d: %v", i+1, err)
		}
		s.Secret = sealedAs(fmt.Sprintf("s%d", i+2))
		h.Settings, now = *s, now.Add(time.Hour)
	}
	return h, now
}

func TestEachReplacedSecretSignsForADayFromItsOwnRotation(t *testing.T) {
	t.Parallel()
	h, now := rotated(t, 3)
	var got []string
	for i, p := range h.Settings.Previous {
		got = append(got, string(p.Bytes))
		if want := now.Add(time.Duration(-1-i) * time.Hour).Add(24 * time.Hour); !p.Until.Equal(want) {
			t.Errorf("%s signs until %v, want %v", p.Bytes, p.Until, want)
		}
	}
	if !slices.Equal(got, []string{"s3", "s2", "s1"}) || string(h.Settings.Secret.Bytes) != "s4" {
		t.Errorf("previous: %v, current: %s", got, h.Settings.Secret.Bytes)
	}
}

func TestAFourthRotationWithinADayIsRefusedWithTheTimeFromWhichItIsPossible(t *testing.T) {
	t.Parallel()
	h, now := rotated(t, 3)
	_, err := rotate(h, []byte("f"), false, Rotation{}, now)
	if codeOf(err) != CodeTooManySecrets || err.(*Error).RetryAfter != 21*time.Hour ||
		!strings.Contains(err.Error(), noon.Add(24*time.Hour).Format(time.DateTime)) {
		t.Fatalf("got %v", err)
	}
	if s, err := rotate(h, []byte("f"), false, Rotation{}, now.Add(21*time.Hour)); err != nil || len(s.Previous) != 3 || string(s.Previous[2].Bytes) != "s2" {
		t.Errorf("when the first has ended: %+v, %v", s, err)
	}
	if s, err := rotate(h, []byte("f"), false, Rotation{RevokeOld: true}, now); err != nil || s.Previous != nil || !s.Secret.IsZero() {
		t.Errorf("with all of them revoked: %+v, %v", s, err)
	}
}

func TestARotationIsRefusedWhereSomebodyElseChangedTheDestination(t *testing.T) {
	t.Parallel()
	h := holdingIn(delivery.SlotActive)
	if _, err := rotate(h, []byte("f2"), false, Rotation{Version: 1}, noon); codeOf(err) != CodeChanged {
		t.Errorf("rotate: %v", err)
	}
	if s, err := rotate(h, []byte("f2"), false, Rotation{Version: 2}, noon); err != nil || s.Version != 3 {
		t.Errorf("rotate at the version: %+v, %v", s, err)
	}
	if _, err := revoke(h, Revocation{Version: 1}, noon); codeOf(err) != CodeChanged {
		t.Errorf("revoke: %v", err)
	}
}

func TestBringingTheCurrentSecretAgainChangesNothing(t *testing.T) {
	t.Parallel()
	h, now := rotated(t, 3)
	current := h.Settings.SecretFingerprint
	// It is the same request again: its version has passed, and so has the limit.
	if s, err := rotate(h, current, true, Rotation{Version: 1}, now); err != nil || s != nil {
		t.Errorf("brought again: %+v, %v", s, err)
	}
	s, err := rotate(h, current, true, Rotation{RevokeOld: true}, now)
	if err != nil || string(s.Secret.Bytes) != "s4" || s.Previous != nil || s.Version != h.Settings.Version+1 {
		t.Errorf("brought again to revoke the others: %+v, %v", s, err)
	}
	h.Settings.SecretFingerprint = nil // of before fingerprints
	if _, err := rotate(h, current, true, Rotation{RevokeOld: true}, now); err != nil {
		t.Errorf("where the current one is not known: %v", err)
	}
}

func TestAReplacedSecretIsRevokedByItsPosition(t *testing.T) {
	t.Parallel()
	h, now := rotated(t, 3)
	for _, row := range []struct {
		position int
		later    time.Duration
		left     []string
		code     Code
	}{
		{0, 0, nil, ""},
		{1, 0, []string{"s2", "s1"}, ""},
		{2, 0, []string{"s3", "s1"}, ""},
		{3, 0, []string{"s3", "s2"}, ""},
		{4, 0, nil, CodeNotFound},
		{-1, 0, nil, CodeNotFound},
		{3, 21*time.Hour + time.Minute, nil, CodeNotFound}, // it has ended, and is not shown any more
		{2, 21*time.Hour + time.Minute, []string{"s3"}, ""},
	} {
		s, err := revoke(h, Revocation{Position: row.position}, now.Add(row.later))
		if row.code != "" {
			if codeOf(err) != row.code {
				t.Errorf("position %d: %v", row.position, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("position %d: %v", row.position, err)
			continue
		}
		var left []string
		for _, p := range s.Previous {
			left = append(left, string(p.Bytes))
		}
		if !slices.Equal(left, row.left) || string(s.Secret.Bytes) != "s4" || s.Version != h.Settings.Version+1 {
			t.Errorf("position %d leaves %v: %+v", row.position, left, s)
		}
	}
	if len(h.Settings.Previous) != 3 || string(h.Settings.Previous[0].Bytes) != "s3" {
		t.Errorf("what was read was changed: %+v", h.Settings.Previous)
	}
	if none, err := revoke(holdingIn(delivery.SlotActive), Revocation{}, noon); err != nil || none != nil {
		t.Errorf("revoke nothing: %+v, %v", none, err)
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
