package storetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"colophon/internal/content"
	"colophon/internal/delivery"
	"colophon/internal/destination"
	"colophon/internal/store"
)

// Place is an engine with both tables.
type Place struct {
	Engine            store.Engine
	Content, Delivery string // the tables' names
}

// Destinations is the suite for what people do about destinations and their
// deliveries. fresh gives a place with empty tables that nobody else writes to.
func Destinations(t *testing.T, fresh func(t *testing.T) Place) {
	for name, test := range map[string]func(*testing.T, *people){
		"AnAddedDestinationIsInItsProject":                  added,
		"ADestinationIsNotAddedToAProjectThatMoved":         addedToWhatMoved,
		"AnAdditionAskedTwiceIsOne":                         addedTwice,
		"ARemovedDestinationIsATombstone":                   removed,
		"ARemovalKeepsTheAttemptInFlight":                   removedInFlight,
		"ADamagedDestinationCanBeRemoved":                   removedDamaged,
		"APauseMovesTheSlot":                                paused,
		"SettingsAreReplacedAsTheyWereRead":                 reset,
		"SealedValuesKeepTheContextTheyWereSealedUnder":     sealedValues,
		"ARedeliveryStartsARound":                           requeued,
		"ARedeliveryOfWhatHasMovedIsRefused":                requeuedMoved,
		"AResultOfAnOlderRoundIsRefusedAfterARedelivery":    requeuedInFlight,
		"ATryNowMakesADeliveryDue":                          advanced,
		"ATryNowOfWhatHasMovedIsRefused":                    advancedMoved,
		"AnAllowanceIsTakenFromOnce":                        spent,
		"ATestSendIsClaimedOnce":                            tested,
		"ATestSendThatWaitedTooLongIsNotClaimed":            testedLate,
		"ADoctorsFindingsAreKeptWithItsResult":              examined,
		"ATestSendOfANewerBuildIsLeftToIt":                  testedByNewer,
		"ARemovedDestinationIsNotTested":                    testedRemoved,
		"AReleasesDeliveriesAreReadForAllItsDestinations":   released,
		"ADestinationsDeliveriesAreReadInParts":             ranged,
		"ADamagedItemIsShownAsDamagedAndHidesNoOther":       damaged,
		"WhatIsNotThereIsNotFound":                          missing,
		"ADestinationOfAnotherProjectIsAnother":             foreign,
		"WhatPeopleWriteRingsAndWhatRestsDoesNot":           rings,
		"AWorkersSettlementOfWhatWasTriedNowStillHoldsGood": settled,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newPeople(t, fresh(t)))
		})
	}
}

var (
	noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	in   = delivery.Destination{Project: "p1", ID: "dst_1"}
)

// people is a project p1 with the destination dst_1, and what acts on it.
type people struct {
	place        Place
	destinations *store.Destinations
	worker       *store.Deliveries
	contents     *store.Contents
}

func newPeople(t *testing.T, place Place) *people {
	t.Helper()
	place.Engine = Judge(t, place.Engine)
	p := &people{place: place}
	var err error
	if p.destinations, err = store.NewDestinations(store.DestinationsConfig{
		Engine: place.Engine, ContentTable: place.Content, DeliveryTable: place.Delivery,
	}); err != nil {
		t.Fatal(err)
	}
	if p.worker, err = store.NewDeliveries(store.DeliveriesConfig{
		Engine: place.Engine, Table: place.Delivery, Clock: func() time.Time { return noon },
	}); err != nil {
		t.Fatal(err)
	}
	if p.contents, err = store.NewContents(store.ContentsConfig{
		Engine: place.Engine, ContentTable: place.Content, DeliveryTable: place.Delivery,
	}); err != nil {
		t.Fatal(err)
	}
	project := content.Project{ID: in.Project, Name: "One", Version: 1, CreatedAt: noon}
	if err := p.contents.AddProject(t.Context(), p.token(), project); err != nil {
		t.Fatal(err)
	}
	p.commit(t, adding(1, "dst_1"))
	return p
}

// token names a write; those of one account must differ.
func (p *people) token() string { return rand.Text() }

func sealed(text string) delivery.Sealed {
	return delivery.Sealed{Bytes: []byte(text), Context: delivery.SealedForPurpose}
}

// sealedBefore is what an older version sealed.
func sealedBefore(text string) delivery.Sealed {
	return delivery.Sealed{Bytes: []byte(text), Context: delivery.SealedForDestination}
}

// previous are replaced secrets, each an hour nearer to its end.
func previous(secrets ...delivery.Sealed) []delivery.PreviousSecret {
	var list []delivery.PreviousSecret
	for i, secret := range secrets {
		list = append(list, delivery.PreviousSecret{Sealed: secret, Until: noon.Add(time.Duration(24-i) * time.Hour)})
	}
	return list
}

func settings() delivery.Settings {
	return delivery.Settings{
		Name: "Site", URL: "https://a.example.org/hook?key=marked", Secret: sealed("sealed secret"), SecretFingerprint: []byte("fingerprint"),
		Headers: sealed("sealed headers"), HeaderNames: []string{"Authorization"}, Version: 1, CreatedAt: noon, UpdatedAt: noon,
	}
}

func adding(version int64, ids ...string) destination.Adding {
	return destination.Adding{
		Destination: delivery.Destination{Project: in.Project, ID: ids[len(ids)-1]}, ProjectVersion: version,
		IDs: ids, Settings: settings(),
	}
}

func (p *people) commit(t *testing.T, o destination.Operation) {
	t.Helper()
	if err := p.destinations.Commit(t.Context(), p.token(), o); err != nil {
		t.Fatalf("%T: %v", o, err)
	}
}

// refuse expects that nothing is written for what was read has moved.
func (p *people) refuse(t *testing.T, o destination.Operation) {
	t.Helper()
	if err := p.destinations.Commit(t.Context(), p.token(), o); !errors.Is(err, destination.ErrMoved) {
		t.Errorf("%T: got %v, want a refusal", o, err)
	}
}

func (p *people) project(t *testing.T) destination.Project {
	t.Helper()
	project, err := p.destinations.Project(t.Context(), in.Project)
	if err != nil || project == nil {
		t.Fatalf("project: %v, %v", project, err)
	}
	return *project
}

func (p *people) holding(t *testing.T, id string) destination.Holding {
	t.Helper()
	held, err := p.destinations.Holdings(t.Context(), in.Project, []string{id})
	if err != nil || len(held) != 1 {
		t.Fatalf("holding %s: %v, %v", id, held, err)
	}
	return held[0]
}

func (p *people) read(t *testing.T, release int64) delivery.Reading {
	t.Helper()
	r, err := p.destinations.Read(t.Context(), delivery.Key{Destination: in, Release: release})
	if err != nil || r.Torn() {
		t.Fatalf("read %d: torn %v, %v", release, r.Torn(), err)
	}
	return r
}

// publish writes releases up to this one, announced to all destinations.
func (p *people) publish(t *testing.T, release int64) {
	t.Helper()
	ctx := t.Context()
	read, err := p.contents.Project(ctx, in.Project)
	if err != nil {
		t.Fatal(err)
	}
	for n := read.Seq + 1; n <= release; n++ {
		r := content.Release{Project: in.Project, Number: n, Who: "ann", At: noon, Destinations: read.Destinations, Token: p.token()}
		c := content.Commit{Read: read, Release: r}
		for _, id := range read.Destinations {
			c.Deliveries = append(c.Deliveries, content.NewDelivery{
				Destination: id, WebhookID: fmt.Sprintf("msg_%s_%d", id, n), Body: []byte(`{"n":1}`),
			})
		}
		if err := p.contents.Commit(ctx, r.Token, c); err != nil {
			t.Fatalf("publish %d: %v", n, err)
		}
		read.Seq, read.Version = n, read.Version+1
	}
}

// attempt claims a release's delivery and records an outcome of it.
func (p *people) attempt(t *testing.T, release int64, o delivery.Outcome) {
	t.Helper()
	recording := p.claim(t, release, o)
	if err := p.worker.Record(t.Context(), recording); err != nil {
		t.Fatalf("record %d: %v", release, err)
	}
}

func (p *people) claim(t *testing.T, release int64, o delivery.Outcome) delivery.Recording {
	t.Helper()
	r := p.read(t, release)
	h := delivery.Holder{
		Token: p.token(), Release: release, Round: r.Rang.Round, Attempt: r.Rang.Numbered + 1,
		Since: noon, Until: noon.Add(delivery.LeaseTime),
	}
	slot, err := p.worker.Claim(t.Context(), in, r.Slot, h)
	if err != nil {
		t.Fatalf("claim %d: %v", release, err)
	}
	return delivery.Recording{
		Delivery: *r.Rang, Slot: slot, Holder: h, Request: p.token(),
		Transition: delivery.AfterAttempt(*r.Rang, h, o, noon, 0),
	}
}

var (
	arrives     = delivery.Outcome{Class: delivery.ClassDelivered, Status: 200, Received: delivery.Answered}
	refuses     = delivery.Outcome{Class: delivery.ClassRefused, Status: 400, Received: delivery.Answered}
	unavailable = delivery.Outcome{Class: delivery.ClassUnavailable, Status: 503, Received: delivery.Answered, RetryAfter: "90"}
)

func added(t *testing.T, p *people) {
	p.commit(t, adding(2, "dst_1", "dst_2"))
	project := p.project(t)
	want := destination.Project{ID: "p1", Name: "One", Version: 3, Destinations: []string{"dst_1", "dst_2"}}
	if !reflect.DeepEqual(project, want) {
		t.Errorf("project: %+v", project)
	}
	h := p.holding(t, "dst_2")
	if h.Slot != (delivery.Slot{State: delivery.SlotActive, Version: 1}) || !reflect.DeepEqual(h.Settings, settings()) {
		t.Errorf("destination: %+v", h)
	}
}

func addedToWhatMoved(t *testing.T, p *people) {
	p.publish(t, 1)
	p.refuse(t, adding(2, "dst_1", "dst_2"))
	if h := p.holding(t, "dst_2"); h.Slot.Version != 0 || h.Settings.Version != 0 {
		t.Errorf("something was written: %+v", h)
	}
	p.refuse(t, adding(p.project(t).Version, "dst_1")) // its id is taken
	if got := p.project(t).Version; got != 3 {
		t.Errorf("the project moved to version %d", got)
	}
}

func addedTwice(t *testing.T, p *people) {
	o := adding(2, "dst_1", "dst_2")
	token := p.token()
	for range 2 {
		if err := p.destinations.Commit(t.Context(), token, o); err != nil {
			t.Fatal(err)
		}
	}
	if got := p.project(t).Version; got != 3 {
		t.Errorf("the project moved to version %d", got)
	}
}

func removing(p destination.Project) destination.Removing {
	return destination.Removing{
		Destination: in, ProjectVersion: p.Version, At: noon.Add(time.Hour),
		IDs: slices.DeleteFunc(slices.Clone(p.Destinations), func(id string) bool { return id == in.ID }),
	}
}

func removed(t *testing.T, p *people) {
	p.commit(t, destination.Switching{Destination: in, From: delivery.SlotActive, To: delivery.SlotPaused, By: delivery.PausedByPerson})
	rotated := settings()
	rotated.Previous, rotated.Version = previous(sealed("newest"), sealedBefore("older"), sealed("oldest")), 2
	p.commit(t, destination.Resetting{Destination: in, Version: 1, Settings: rotated})

	o := removing(p.project(t))
	moved := o
	moved.ProjectVersion--
	p.refuse(t, moved)
	p.commit(t, o)
	if project := p.project(t); len(project.Destinations) != 0 || project.Version != 3 {
		t.Errorf("project: %+v", project)
	}
	h := p.holding(t, in.ID)
	if h.Slot != (delivery.Slot{State: delivery.SlotRemoved, Version: 3}) {
		t.Errorf("slot: %+v", h.Slot)
	}
	want := delivery.Settings{Name: "Site", Version: 3, CreatedAt: noon, UpdatedAt: noon.Add(time.Hour)}
	if !reflect.DeepEqual(h.Settings, want) {
		t.Errorf("tombstone: %+v", h.Settings)
	}
	o.ProjectVersion = p.project(t).Version
	p.refuse(t, o) // there is nothing in use any more
	p.refuse(t, destination.Resetting{Destination: in, Version: 2, Settings: rotated})
	p.refuse(t, destination.Switching{Destination: in, From: delivery.SlotPaused, To: delivery.SlotActive})
}

func removedInFlight(t *testing.T, p *people) {
	p.publish(t, 1)
	recording := p.claim(t, 1, arrives)
	before := p.read(t, 1).Slot
	p.commit(t, removing(p.project(t)))
	slot := p.read(t, 1).Slot
	if slot.State != delivery.SlotRemoved || slot.Holder == nil || slot.Holder.Token != recording.Holder.Token {
		t.Fatalf("slot: %+v", slot)
	}
	if _, err := p.worker.Claim(t.Context(), in, before, delivery.Holder{Token: "late", Release: 1, Round: 1, Attempt: 2, Since: noon, Until: noon.Add(time.Minute)}); !errors.Is(err, delivery.ErrMoved) {
		t.Errorf("a claim by a worker that read it active: %v", err)
	}
	if err := p.worker.Record(t.Context(), recording); err != nil {
		t.Fatalf("the attempt's record: %v", err)
	}
	if d := p.read(t, 1).Rang; d.Status != delivery.Delivered || len(d.Attempts) != 1 {
		t.Errorf("delivery: %+v", d)
	}
	if slot := p.read(t, 1).Slot; slot.State != delivery.SlotRemoved || slot.Holder != nil {
		t.Errorf("slot: %+v", slot)
	}
}

func removedDamaged(t *testing.T, p *people) {
	p.put(t, "SLOT", store.Item{"state": store.Text("active"), "version": store.Number(7), "holder": store.Map(store.Item{
		"token": store.Text("t"), "release": store.Number(1), "round": store.Number(1), "attempt": store.Number(1),
		"since": store.Number(noon.UnixMilli()), "until": store.Number(noon.AddDate(3, 0, 0).UnixMilli()),
	})})
	if h := p.holding(t, in.ID); !h.Slot.Unreadable {
		t.Errorf("a lease of three years is readable: %+v", h.Slot.Holder)
	}
	for sk, damage := range map[string]store.Item{
		"SLOT":     {"state": store.Text("active"), "version": store.Text("seven")},
		"SETTINGS": {"version": store.Flag(true), "secret": store.Text("?"), "url": store.Text("https://a.example.org/")},
	} {
		p.put(t, sk, damage)
	}
	if h := p.holding(t, in.ID); !h.Slot.Unreadable || h.Settings.Version != 0 {
		t.Fatalf("not damaged: %+v", h)
	}
	o := removing(p.project(t))
	o.Damaged = true
	p.commit(t, o)
	h := p.holding(t, in.ID)
	if h.Slot.State != delivery.SlotRemoved || h.Slot.Version < 2 || h.Settings.URL != "" || !h.Settings.Secret.IsZero() || h.Settings.Version == 0 {
		t.Errorf("destination: %+v", h)
	}
	if ids := p.project(t).Destinations; len(ids) != 0 {
		t.Errorf("the project still names %v", ids)
	}
}

// put writes an item of the destination as no code of ours does.
func (p *people) put(t *testing.T, sk string, item store.Item) {
	t.Helper()
	_, err := p.place.Engine.Write(t.Context(), store.Write{
		Table: p.place.Delivery, Key: store.Key{PK: "P#p1#D#dst_1", SK: sk}, Put: item,
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (p *people) item(t *testing.T, sk string) store.Item {
	t.Helper()
	item, err := p.place.Engine.Get(t.Context(), p.place.Delivery, store.Key{PK: "P#p1#D#dst_1", SK: sk})
	if err != nil {
		t.Fatal(err)
	}
	return item
}

func paused(t *testing.T, p *people) {
	p.publish(t, 1)
	before := p.read(t, 1).Slot
	pause := destination.Switching{Destination: in, From: delivery.SlotActive, To: delivery.SlotPaused, By: delivery.PausedByPerson}
	p.commit(t, pause)
	if slot := p.read(t, 1).Slot; slot.State != delivery.SlotPaused || slot.PausedBy != delivery.PausedByPerson || slot.Version != before.Version+1 {
		t.Errorf("paused: %+v", slot)
	}
	if _, err := p.worker.Claim(t.Context(), in, before, delivery.Holder{Token: "late", Release: 1, Round: 1, Attempt: 1, Since: noon, Until: noon.Add(time.Minute)}); !errors.Is(err, delivery.ErrMoved) {
		t.Errorf("a claim by a worker that read it active: %v", err)
	}
	p.refuse(t, pause)
	p.commit(t, destination.Switching{Destination: in, From: delivery.SlotPaused, To: delivery.SlotActive})
	if slot := p.read(t, 1).Slot; slot.State != delivery.SlotActive || slot.PausedBy != "" || slot.Version != before.Version+2 {
		t.Errorf("resumed: %+v", slot)
	}
}

func reset(t *testing.T, p *people) {
	s := settings()
	s.Name, s.Previous, s.Secret = "Renamed", previous(s.Secret), sealed("sealed anew")
	s.Headers, s.HeaderNames, s.Version, s.UpdatedAt = delivery.Sealed{}, nil, 2, noon.Add(time.Minute)
	o := destination.Resetting{Destination: in, Version: 1, Settings: s}
	p.commit(t, o)
	if got := p.holding(t, in.ID).Settings; !reflect.DeepEqual(got, s) {
		t.Errorf("got  %+v\nwant %+v", got, s)
	}
	p.refuse(t, o)
	o.Destination.ID = "dst_9"
	p.refuse(t, o)
}

// sealedValues are read with the context that each was sealed under; one that
// says none is of before there was more than one.
func sealedValues(t *testing.T, p *people) {
	s := settings()
	s.Headers, s.Previous, s.Version = sealedBefore("headers"), previous(sealedBefore("newest"), sealed("older"), sealedBefore("oldest")), 2
	p.commit(t, destination.Resetting{Destination: in, Version: 1, Settings: s})
	if got := p.holding(t, in.ID).Settings; !reflect.DeepEqual(got, s) {
		t.Errorf("got  %+v\nwant %+v", got, s)
	}
	item := p.item(t, "SETTINGS")
	delete(item, "seal")
	delete(item, "olderSecrets")
	delete(item, "secretFingerprint")
	p.put(t, "SETTINGS", item)
	s.Secret, s.Previous, s.SecretFingerprint = sealedBefore("sealed secret"), s.Previous[:1], nil
	if got := p.holding(t, in.ID).Settings; !reflect.DeepEqual(got, s) {
		t.Errorf("an item of before:\ngot  %+v\nwant %+v", got, s)
	}
}

func requeueing(r delivery.Reading, over int64) destination.Requeueing {
	return destination.Requeueing{
		Delivery: *r.Rang, SlotVersion: r.Slot.Version, Over: over, At: noon.Add(time.Hour),
		Spending: destination.Spending{Until: noon.Add(61 * time.Minute)},
	}
}

func requeued(t *testing.T, p *people) {
	p.publish(t, 1)
	p.attempt(t, 1, unavailable)
	p.attempt(t, 1, refuses)
	p.publish(t, 2)
	p.attempt(t, 2, arrives)

	o := requeueing(p.read(t, 1), 2)
	p.commit(t, o)
	r := p.read(t, 1)
	if want := o.After(); !reflect.DeepEqual(*r.Rang, want) {
		t.Errorf("delivery:\n got  %+v\n want %+v", *r.Rang, want)
	}
	if r.Slot.Version != o.SlotVersion+1 || r.Slot.LastRelease != 1 || r.Slot.LastRev != r.Rang.Rev || r.Slot.SentThrough != 2 {
		t.Errorf("slot: %+v", r.Slot)
	}
	item := p.item(t, "R#000000000001")
	for _, gone := range []string{"reason", "firstTryAt", "asked", "used", "endedAt", "expiresAt"} {
		if v, there := item[gone]; there {
			t.Errorf("%s is still there: %v", gone, v)
		}
	}
	if spent, err := p.destinations.Spent(t.Context(), in, ""); err != nil || spent != (destination.Spent{Until: spent.Until}) || !spent.Until.Equal(o.Spending.Until) {
		t.Errorf("allowance: %+v, %v", spent, err)
	}
	p.attempt(t, 1, arrives)
	d := p.read(t, 1).Rang
	if d.Status != delivery.Delivered || d.Round != 2 || len(d.Attempts) != 3 || d.Attempts[2].Number != 3 || d.WebhookID != "msg_dst_1_1" {
		t.Errorf("delivery after the second round: %+v", d)
	}

	// Plainly: the force of the round before is gone.
	plain := requeueing(p.read(t, 1), 0)
	plain.Spending = destination.Spending{Was: o.Spending.Until, Until: o.Spending.Until.Add(time.Minute)}
	p.commit(t, plain)
	if d := p.read(t, 1).Rang; d.Forced() || d.Round != 3 {
		t.Errorf("delivery after a plain redelivery: %+v", d)
	}
}

func requeuedMoved(t *testing.T, p *people) {
	p.publish(t, 1)
	p.attempt(t, 1, arrives)
	good := requeueing(p.read(t, 1), 0)
	for what, change := range map[string]func(*destination.Requeueing){
		"slot":      func(o *destination.Requeueing) { o.SlotVersion-- },
		"status":    func(o *destination.Requeueing) { o.Delivery.Status = delivery.Failed },
		"round":     func(o *destination.Requeueing) { o.Delivery.Round++ },
		"rev":       func(o *destination.Requeueing) { o.Delivery.Rev-- },
		"allowance": func(o *destination.Requeueing) { o.Spending.Was = noon },
		"delivery":  func(o *destination.Requeueing) { o.Delivery.Release = 2 },
	} {
		bad := good
		change(&bad)
		p.refuse(t, bad)
		if d := p.read(t, 1).Rang; d.Status != delivery.Delivered {
			t.Fatalf("with another %s it was sent again: %+v", what, d)
		}
	}
	p.commit(t, good)
	p.refuse(t, good)
}

func requeuedInFlight(t *testing.T, p *people) {
	p.publish(t, 1)
	recording := p.claim(t, 1, refuses)
	// The lease ran out: another worker settled, and ended it.
	r := p.read(t, 1)
	lost := delivery.AfterLoss(*r.Rang, *r.Slot.Holder, 2, noon, 0)
	if err := p.worker.Settle(t.Context(), delivery.Settlement{Destination: in, Slot: r.Slot, Delivery: r.Rang, Transition: lost, Request: p.token()}); err != nil {
		t.Fatal(err)
	}
	p.commit(t, requeueing(p.read(t, 1), 0))
	if err := p.worker.Record(t.Context(), recording); err == nil {
		t.Error("the older round's result was recorded")
	}
	if d := p.read(t, 1).Rang; d.Status != delivery.Queued || d.Round != 2 {
		t.Errorf("delivery: %+v", d)
	}
}

func advancing(r delivery.Reading) destination.Advancing {
	return destination.Advancing{
		Delivery: *r.Rang, SlotVersion: r.Slot.Version, At: noon.Add(30 * time.Second),
		Spending: destination.Spending{Until: noon.Add(90 * time.Second)},
	}
}

func advanced(t *testing.T, p *people) {
	p.publish(t, 1)
	p.attempt(t, 1, unavailable)
	o := advancing(p.read(t, 1))
	p.commit(t, o)
	r := p.read(t, 1)
	if want := o.After(); !reflect.DeepEqual(*r.Rang, want) {
		t.Errorf("delivery:\n got  %+v\n want %+v", *r.Rang, want)
	}
	if r.Rang.Tries != 1 || len(r.Rang.Attempts) != 1 {
		t.Errorf("a try was added: %+v", r.Rang)
	}
	if r.Slot.Version != o.SlotVersion+1 || r.Slot.LastRelease != 1 || r.Slot.LastRev != r.Rang.Rev {
		t.Errorf("slot: %+v", r.Slot)
	}
}

func advancedMoved(t *testing.T, p *people) {
	p.publish(t, 1)
	p.attempt(t, 1, unavailable)
	stale := advancing(p.read(t, 1))
	if err := p.worker.SkipPlain(t.Context(), delivery.Key{Destination: in, Release: 1}, 1, 2); err != nil {
		t.Fatal(err)
	}
	p.refuse(t, stale) // a plain skip moves neither rev nor slot
	if d := p.read(t, 1).Rang; d.Status != delivery.Skipped {
		t.Errorf("delivery: %+v", d)
	}
	p.publish(t, 2)
	stale = advancing(p.read(t, 2))
	p.claim(t, 2, arrives)
	p.refuse(t, stale) // it is being sent by now
}

func settled(t *testing.T, p *people) {
	p.publish(t, 1)
	p.claim(t, 1, arrives) // and the worker is killed
	o := advancing(p.read(t, 1))
	o.At = noon.Add(time.Minute) // the lease is over, and nobody has settled yet
	p.commit(t, o)
	r := p.read(t, 1)
	lost := delivery.AfterLoss(*r.Rang, *r.Slot.Holder, 1, noon.Add(time.Minute), 0)
	err := p.worker.Settle(t.Context(), delivery.Settlement{Destination: in, Slot: r.Slot, Delivery: r.Rang, Transition: lost, Request: p.token()})
	if err != nil {
		t.Fatal(err)
	}
	if r = p.read(t, 1); r.Slot.Holder != nil || r.Rang.Tries != 1 || r.Rang.Status != delivery.Retrying {
		t.Errorf("slot: %+v, delivery: %+v", r.Slot, r.Rang)
	}
}

func spent(t *testing.T, p *people) {
	const origin = "https://a.example.org"
	read := func() destination.Spent {
		t.Helper()
		spent, err := p.destinations.Spent(t.Context(), in, origin)
		if err != nil {
			t.Fatal(err)
		}
		return spent
	}
	if spent := read(); spent != (destination.Spent{Origin: origin}) {
		t.Fatalf("unused: %+v", spent)
	}
	first := destination.Testing{Test: test("t1"), Spending: destination.Spending{
		Until: noon.Add(time.Minute), Origin: origin, OriginUntil: noon.Add(6 * time.Second),
	}}
	p.commit(t, first)
	again := destination.Testing{Test: test("t2"), Spending: first.Spending}
	p.refuse(t, again)
	again.Spending.Was, again.Spending.Until = first.Spending.Until, noon.Add(2*time.Minute)
	p.refuse(t, again) // the origin's was taken from too
	again.Spending.OriginWas, again.Spending.OriginUntil = first.Spending.OriginUntil, noon.Add(12*time.Second)
	p.commit(t, again)
	if spent := read(); !spent.Until.Equal(noon.Add(2*time.Minute)) || !spent.OriginUntil.Equal(noon.Add(12*time.Second)) {
		t.Errorf("used twice: %+v", spent)
	}
	if v, want := p.item(t, "LIMIT")["expiresAt"], store.Number(noon.Add(2*time.Minute).Unix()); !reflect.DeepEqual(v, want) {
		t.Errorf("it expires at %v", v)
	}
	// It is the project's: it outlasts the destination, and holds for others of it.
	p.commit(t, removing(p.project(t)))
	if spent := read(); !spent.OriginUntil.Equal(noon.Add(12 * time.Second)) {
		t.Errorf("after the destination was removed: %+v", spent)
	}
	for _, other := range []struct{ project, origin string }{{"prj_other", origin}, {in.Project, "https://b.example.org"}} {
		spent, err := p.destinations.Spent(t.Context(), delivery.Destination{Project: other.project, ID: "dst_9"}, other.origin)
		if err != nil || spent != (destination.Spent{Origin: other.origin}) {
			t.Errorf("%+v: %+v, %v", other, spent, err)
		}
	}
}

func test(id string) delivery.TestSend {
	return delivery.TestSend{
		Destination: in, ID: id, WebhookID: "msg_" + id, Body: []byte(`{"type":"webhook.test"}`), CreatedAt: noon,
	}
}

func tested(t *testing.T, p *people) {
	ctx := t.Context()
	p.commit(t, destination.Switching{Destination: in, From: delivery.SlotActive, To: delivery.SlotPaused, By: delivery.PausedByPerson})
	p.commit(t, destination.Testing{Test: test("t1"), Spending: destination.Spending{Until: noon.Add(time.Minute)}})
	if got, err := p.destinations.Test(ctx, in, "t1"); err != nil || !reflect.DeepEqual(*got, test("t1")) {
		t.Fatalf("test: %+v, %v", got, err)
	}
	p.refuse(t, destination.Testing{Test: test("t1"), Spending: destination.Spending{Was: noon.Add(time.Minute), Until: noon.Add(2 * time.Minute)}})
	target, err := p.worker.ReadTarget(ctx, in)
	if err != nil || target.Slot.State != delivery.SlotPaused || !reflect.DeepEqual(target.Settings, settings()) {
		t.Errorf("target: %+v, %v", target, err)
	}

	at, until := noon.Add(time.Second), noon.Add(16*time.Second)
	want := test("t1")
	want.Token, want.Since, want.Until = "mine", at, until
	for range 2 { // the SDK may ask twice
		got, err := p.worker.ClaimTest(ctx, in, "t1", "mine", at, until)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("claim: %+v, %v", got, err)
		}
	}
	if _, err := p.worker.ClaimTest(ctx, in, "t1", "other", at, until); !errors.Is(err, delivery.ErrMoved) {
		t.Errorf("another's claim: %v", err)
	}
	if _, err := p.worker.ClaimTest(ctx, in, "t9", "mine", at, until); !errors.Is(err, delivery.ErrMoved) {
		t.Errorf("a claim of nothing: %v", err)
	}

	result := delivery.Attempt{
		Number: 1, Round: 1, Token: "other", By: delivery.ByRecord, At: at, Elapsed: time.Second,
		Class: delivery.ClassDelivered, Status: 204, Received: delivery.Answered,
	}
	if err := p.worker.RecordTest(ctx, in, "t1", result, nil); !errors.Is(err, delivery.ErrMoved) {
		t.Errorf("another's result: %v", err)
	}
	result.Token = "mine"
	for range 2 {
		if err := p.worker.RecordTest(ctx, in, "t1", result, nil); err != nil {
			t.Fatalf("record: %v", err)
		}
	}
	want.Result = &result
	if got, err := p.destinations.Test(ctx, in, "t1"); err != nil || !reflect.DeepEqual(*got, want) {
		t.Errorf("test: %+v, %v", got, err)
	}
}

func testedLate(t *testing.T, p *people) {
	p.commit(t, destination.Testing{Test: test("t1"), Spending: destination.Spending{Until: noon.Add(time.Minute)}})
	late := noon.Add(delivery.TestWaits - delivery.ClockAllowance)
	if test("t1").Claimable(late) {
		t.Fatal("the value says that it can be claimed")
	}
	if _, err := p.worker.ClaimTest(t.Context(), in, "t1", "mine", late, late.Add(15*time.Second)); !errors.Is(err, delivery.ErrMoved) {
		t.Errorf("a late claim: %v", err)
	}
	last := late.Add(-time.Millisecond)
	if !test("t1").Claimable(last) {
		t.Fatal("the value says that it cannot be claimed")
	}
	if _, err := p.worker.ClaimTest(t.Context(), in, "t1", "mine", last, last.Add(15*time.Second)); err != nil {
		t.Errorf("a claim in time: %v", err)
	}
}

func examined(t *testing.T, p *people) {
	want := test("t1")
	want.Kind = delivery.TestDoctor
	p.commit(t, destination.Testing{Test: want, Spending: destination.Spending{Until: noon.Add(time.Minute)}})
	if got, err := p.destinations.Test(t.Context(), in, "t1"); err != nil || !reflect.DeepEqual(*got, want) {
		t.Fatalf("asked for: %+v, %v", got, err)
	}
	want.Token, want.Since, want.Until = "mine", noon, noon.Add(15*time.Second)
	if got, err := p.worker.ClaimTest(t.Context(), in, "t1", "mine", want.Since, want.Until); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("claim: %+v, %v", got, err)
	}
	want.Result = &delivery.Attempt{
		Number: 1, Round: 1, Token: "mine", By: delivery.ByRecord, At: noon, Elapsed: time.Second,
		Class: delivery.ClassTLS, Detail: "expired 2026-01-02", Received: delivery.NotReceived,
	}
	want.Findings = []delivery.Finding{
		{Check: delivery.CheckName, Verdict: delivery.VerdictGood, Words: "It is known."},
		{Check: delivery.CheckCertificate, Verdict: delivery.VerdictBad, Words: "It ended."},
	}
	if err := p.worker.RecordTest(t.Context(), in, "t1", *want.Result, want.Findings); err != nil {
		t.Fatalf("record: %v", err)
	}
	if got, err := p.destinations.Test(t.Context(), in, "t1"); err != nil || !reflect.DeepEqual(*got, want) {
		t.Errorf("test: %+v, %v", got, err)
	}
}

func testedByNewer(t *testing.T, p *people) {
	p.commit(t, destination.Testing{Test: test("t1"), Spending: destination.Spending{Until: noon.Add(time.Minute)}})
	w := store.Write{
		Table: p.place.Delivery, Key: store.Key{PK: "P#" + in.Project + "#D#" + in.ID, SK: "T#t1"},
		Changes: []store.Change{store.Set(store.At("v"), store.Number(3))},
	}
	if _, err := p.place.Engine.Write(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	if _, err := p.worker.ReadTest(t.Context(), in, "t1"); !errors.Is(err, delivery.ErrUnknownVersion) {
		t.Errorf("the worker reads it: %v", err)
	}
	if _, err := p.destinations.Test(t.Context(), in, "t1"); !errors.Is(err, delivery.ErrUnknownVersion) {
		t.Errorf("people read it: %v", err)
	}
}

func testedRemoved(t *testing.T, p *people) {
	p.commit(t, removing(p.project(t)))
	p.refuse(t, destination.Testing{Test: test("t1"), Spending: destination.Spending{Until: noon.Add(time.Minute)}})
	if got, err := p.destinations.Test(t.Context(), in, "t1"); err != nil || got != nil {
		t.Errorf("test: %+v, %v", got, err)
	}
}

func released(t *testing.T, p *people) {
	ids := []string{"dst_1"}
	for i := int64(2); i <= destination.MostDestinations; i++ {
		ids = append(ids, fmt.Sprintf("dst_%d", i))
		p.commit(t, adding(i, slices.Clone(ids)...))
	}
	p.publish(t, 1)
	p.attempt(t, 1, arrives)
	p.commit(t, removing(p.project(t)))
	entries, found, err := p.destinations.Release(t.Context(), in.Project, 1)
	if err != nil || !found || len(entries) != destination.MostDestinations {
		t.Fatalf("%d entries, found %v, %v", len(entries), found, err)
	}
	for i, e := range entries {
		if e.ID != ids[i] || e.Settings.Name != "Site" || e.Delivery == nil || e.Delivery.WebhookID != "msg_"+e.ID+"_1" {
			t.Errorf("entry %d: %+v", i, e)
		}
	}
	if first := entries[0]; first.Slot.State != delivery.SlotRemoved || first.Delivery.Status != delivery.Delivered {
		t.Errorf("the removed one: %+v", first)
	}
	held, err := p.destinations.Holdings(t.Context(), in.Project, ids)
	if err != nil || len(held) != len(ids) || held[49].ID != ids[49] || held[49].Slot.State != delivery.SlotActive {
		t.Errorf("%d holdings, %v", len(held), err)
	}
}

func ranged(t *testing.T, p *people) {
	p.publish(t, 9)
	for _, c := range []struct {
		from, to int64
		limit    int
		want     []int64
	}{
		{0, 0, 3, []int64{9, 8, 7}},
		{0, 0, 1, []int64{9}},
		{0, 4, 100, []int64{4, 3, 2, 1}},
		{3, 5, 100, []int64{5, 4, 3}},
		{8, 0, 100, []int64{9, 8}},
		{6, 5, 100, nil},
		{10, 20, 100, nil},
	} {
		read, err := p.destinations.Range(t.Context(), in, c.from, c.to, c.limit)
		if err != nil {
			t.Fatal(err)
		}
		var got []int64
		for _, d := range read {
			got = append(got, d.Release)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%d to %d, at most %d: %v, want %v", c.from, c.to, c.limit, got, c.want)
		}
	}
}

func damaged(t *testing.T, p *people) {
	p.commit(t, adding(2, "dst_1", "dst_2"))
	p.publish(t, 2)
	p.put(t, "R#000000000001", store.Item{"status": store.Text("delivered"), "v": store.Number(1)})
	p.put(t, "SETTINGS", store.Item{"version": store.Text("?")})
	read, err := p.destinations.Range(t.Context(), in, 0, 0, 10)
	if err != nil || len(read) != 2 || read[0].Fault != "" || read[1].Fault != delivery.FaultUnreadable {
		t.Errorf("range: %+v, %v", read, err)
	}
	held, err := p.destinations.Holdings(t.Context(), in.Project, []string{"dst_1", "dst_2"})
	if err != nil || held[0].Settings.Version != 0 || held[1].Settings.Name != "Site" {
		t.Errorf("holdings: %+v, %v", held, err)
	}
}

func missing(t *testing.T, p *people) {
	ctx := t.Context()
	if project, err := p.destinations.Project(ctx, "p9"); err != nil || project != nil {
		t.Errorf("project: %+v, %v", project, err)
	}
	if held, err := p.destinations.Holdings(ctx, in.Project, nil); err != nil || len(held) != 0 {
		t.Errorf("no holdings: %+v, %v", held, err)
	}
	if h := p.holding(t, "dst_9"); h.Slot != (delivery.Slot{State: delivery.SlotRemoved}) || h.Settings.Version != 0 {
		t.Errorf("holding: %+v", h)
	}
	if entries, found, err := p.destinations.Release(ctx, in.Project, 9); err != nil || found || entries != nil {
		t.Errorf("release: %+v, %v, %v", entries, found, err)
	}
	if got, err := p.destinations.Test(ctx, in, "t9"); err != nil || got != nil {
		t.Errorf("test: %+v, %v", got, err)
	}
	if r := p.read(t, 9); r.Rang != nil || r.Newest != nil {
		t.Errorf("delivery: %+v", r)
	}
	target, err := p.worker.ReadTarget(ctx, delivery.Destination{Project: in.Project, ID: "dst_9"})
	if err != nil || target.Slot.State != delivery.SlotRemoved || target.Settings.URL != "" {
		t.Errorf("target: %+v, %v", target, err)
	}
}

func foreign(t *testing.T, p *people) {
	held, err := p.destinations.Holdings(t.Context(), "p2", []string{in.ID})
	if err != nil || held[0].Slot.Version != 0 || held[0].Settings.Version != 0 {
		t.Errorf("another project's: %+v, %v", held, err)
	}
}

func rings(t *testing.T, p *people) {
	rung := func(sk string) bool { return p.item(t, sk)["ring"] != nil }
	p.publish(t, 1)
	p.attempt(t, 1, unavailable)
	if rung("R#000000000001") {
		t.Error("a recorded attempt rings")
	}
	p.commit(t, advancing(p.read(t, 1)))
	if !rung("R#000000000001") {
		t.Error("a try now does not ring")
	}
	p.attempt(t, 1, refuses)
	o := requeueing(p.read(t, 1), 0)
	o.Spending.Was = noon.Add(90 * time.Second)
	p.commit(t, o)
	if !rung("R#000000000001") {
		t.Error("a redelivery does not ring")
	}
	o2 := destination.Testing{Test: test("t1"), Spending: destination.Spending{Was: o.Spending.Until, Until: o.Spending.Until.Add(time.Minute)}}
	p.commit(t, o2)
	if !rung("T#t1") {
		t.Error("a test send does not ring")
	}
	if _, err := p.worker.ClaimTest(context.WithoutCancel(t.Context()), in, "t1", "mine", noon, noon.Add(15*time.Second)); err != nil {
		t.Fatal(err)
	}
	if rung("T#t1") || rung("SLOT") || rung("SETTINGS") || rung("LIMIT") {
		t.Error("something rings that is not to be sent")
	}
}
