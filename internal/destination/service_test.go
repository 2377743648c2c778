package destination_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"colophon/internal/content"
	"colophon/internal/delivery"
	"colophon/internal/destination"
	"colophon/internal/store"
	"colophon/internal/store/storetest"
	"colophon/internal/webhook"
)

var limits = destination.DefaultLimits()

func TestAnAddedDestinationShowsItsSecretOnceAndKeepsItSealed(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	added, err := d.Add(t.Context(), d.project, destination.Addition{
		Name: " Site ", URL: "https://Hooks.Colophon.dev:443/in?key=1",
		Headers: map[string]string{"authorization": "Bearer marked-header", "X-Team": "marked-team"},
	})
	must(t, err)
	got := added.Destination
	if got.Name != "Site" || got.URL != "https://hooks.colophon.dev/in?key=1" || got.State != delivery.SlotActive || got.Project != d.project ||
		!slices.Equal(got.HeaderNames, []string{"Authorization", "X-Team"}) {
		t.Errorf("added: %+v", got)
	}
	if _, err := webhook.ParseSecret(added.Secret); err != nil {
		t.Fatal(err)
	}
	kept := d.settings(got.ID)
	where := delivery.Destination{Project: d.project, ID: got.ID}
	if plain := d.sealer.openSecret(t, where, kept.Secret); plain != added.Secret {
		t.Error("what was sealed is not the secret")
	}
	var headers map[string]string
	must(t, json.Unmarshal([]byte(d.sealer.openHeaders(t, where, "https://hooks.colophon.dev", kept.Headers)), &headers))
	if headers["Authorization"] != "Bearer marked-header" || len(headers) != 2 {
		t.Errorf("what was sealed is not the headers: %v", headers)
	}
	for _, table := range []string{d.tables.Content, d.tables.Delivery} {
		scan, err := d.tables.Client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &table})
		must(t, err)
		for _, item := range scan.Items {
			dump := dumped(store.Map(item))
			for _, marked := range []string{added.Secret, strings.TrimPrefix(added.Secret, "whsec_"), "marked-header", "marked-team"} {
				if strings.Contains(dump, marked) {
					t.Errorf("a secret stands in %s", dump)
				}
			}
		}
	}
	list, err := d.List(t.Context(), d.project)
	must(t, err)
	if len(list) != 1 || list[0].ID != got.ID || list[0].URL != got.URL || list[0].Damaged {
		t.Errorf("list: %+v", list)
	}
}

// dumped shows a value with its texts and bytes as they are.
func dumped(v store.Value) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func TestBadInputIsRefusedWithAFieldAndWritesNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.add()
	before := dumpOf(t, d)
	long := strings.Repeat("x", destination.LongestName+1)
	for _, c := range []struct {
		name, field string
		a           destination.Addition
	}{
		{"no name", "name", destination.Addition{Name: " ", URL: "https://hooks.colophon.dev/"}},
		{"a long name", "name", destination.Addition{Name: long, URL: "https://hooks.colophon.dev/"}},
		{"a name of two lines", "name", destination.Addition{Name: "a\nb", URL: "https://hooks.colophon.dev/"}},
		{"a name that was spoilt on its way", "name", destination.Addition{Name: "Caf\ufffd", URL: "https://hooks.colophon.dev/"}},
		{"a name that reads backwards", "name", destination.Addition{Name: "a\u202eb", URL: "https://hooks.colophon.dev/"}},
		{"a name with a character that nobody sees", "name", destination.Addition{Name: "Site\u200b1", URL: "https://hooks.colophon.dev/"}},
		{"an address that was spoilt on its way", "url", destination.Addition{Name: "Site", URL: "https://hooks.colophon.dev/caf\ufffd"}},
		{"an address with a character that nobody sees", "url", destination.Addition{Name: "Site", URL: "https://hooks.colo\u00adphon.dev/"}},
		{"a header that was spoilt on its way", "headers", destination.Addition{Name: "Site", URL: "https://hooks.colophon.dev/", Headers: map[string]string{"X-A": "caf\ufffd"}}},
		{"no address", "url", destination.Addition{Name: "Site"}},
		{"plain http", "url", destination.Addition{Name: "Site", URL: "http://hooks.colophon.dev/"}},
		{"an address of ours", "url", destination.Addition{Name: "Site", URL: "https://169.254.169.254/marked"}},
		{"a reserved header", "headers", destination.Addition{Name: "Site", URL: "https://hooks.colophon.dev/", Headers: map[string]string{"Host": "marked"}}},
		{"a header twice", "headers", destination.Addition{Name: "Site", URL: "https://hooks.colophon.dev/", Headers: map[string]string{"X-A": "1", "x-a": "2"}}},
	} {
		_, err := d.Add(t.Context(), d.project, c.a)
		if e := want(t, err, destination.CodeInvalid); e.Field != c.field || e.Message == "" || strings.Contains(e.Message, "marked") {
			t.Errorf("%s: %+v", c.name, e)
		}
		change := destination.Change{Name: &c.a.Name, URL: &c.a.URL, Headers: &c.a.Headers}
		_, err = d.Change(t.Context(), d.project, id, change)
		if e := want(t, err, destination.CodeInvalid); e.Field != c.field {
			t.Errorf("change to %s: %+v", c.name, e)
		}
	}
	if after := dumpOf(t, d); after != before {
		t.Errorf("something was written:\n%s\n%s", before, after)
	}
}

// dumpOf is all that both tables hold.
func dumpOf(t *testing.T, d *desk) string {
	t.Helper()
	var all []string
	for _, table := range []string{d.tables.Content, d.tables.Delivery} {
		scan, err := d.tables.Client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &table})
		must(t, err)
		for _, item := range scan.Items {
			all = append(all, dumped(store.Map(item)))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

func TestAProjectHasFiftyDestinationsAtMost(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for range destination.MostDestinations {
		d.add()
	}
	one := destination.Addition{Name: "One too many", URL: "https://hooks.colophon.dev/"}
	_, err := d.Add(t.Context(), d.project, one)
	want(t, err, destination.CodeTooMany)
	list, err := d.List(t.Context(), d.project)
	must(t, err)
	if len(list) != destination.MostDestinations {
		t.Fatalf("%d destinations", len(list))
	}
	must(t, d.Remove(t.Context(), d.project, list[0].ID))
	_, err = d.Add(t.Context(), d.project, one)
	must(t, err)
}

func TestDestinationsAddedAtOnceAreAllThere(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	adds := make([]func() error, 4)
	for i := range adds {
		adds[i] = func() error {
			_, err := d.Add(t.Context(), d.project, destination.Addition{Name: fmt.Sprint(i), URL: "https://hooks.colophon.dev/"})
			return err
		}
	}
	for _, err := range together(adds...) {
		must(t, err)
	}
	list, err := d.List(t.Context(), d.project)
	must(t, err)
	var names []string
	for _, one := range list {
		names = append(names, one.Name)
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"0", "1", "2", "3"}) {
		t.Errorf("destinations: %v", names)
	}
}

func TestAChangeIsMadeFromWhatItsAuthorSaw(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.add()
	seen := d.get(id)
	rename := func(name string) func() error {
		return func() error {
			_, err := d.Change(t.Context(), d.project, id, destination.Change{Name: &name, Version: seen.Version})
			return err
		}
	}
	errs := together(rename("A"), rename("B"))
	if (errs[0] == nil) == (errs[1] == nil) {
		t.Fatalf("of two changes from one page: %v", errs)
	}
	winner, loser := "A", errs[1]
	if errs[0] != nil {
		winner, loser = "B", errs[0]
	}
	want(t, loser, destination.CodeChanged)
	if got := d.get(id); got.Name != winner || got.Version != seen.Version+1 || got.URL != seen.URL {
		t.Errorf("got %+v", got)
	}
	url, headers := "https://other.colophon.dev/", map[string]string{"X-Team": "web"}
	got, err := d.Change(t.Context(), d.project, id, destination.Change{URL: &url, Headers: &headers})
	must(t, err)
	if got.URL != url || !slices.Equal(got.HeaderNames, []string{"X-Team"}) || got.Name != winner {
		t.Errorf("got %+v", got)
	}
	none := map[string]string{}
	got, err = d.Change(t.Context(), d.project, id, destination.Change{Headers: &none})
	must(t, err)
	if len(got.HeaderNames) != 0 || !d.settings(id).Headers.IsZero() {
		t.Errorf("got %+v", got)
	}
}

func TestARotatedSecretSignsBesideTheNewOneUntilItIsRevoked(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	added, err := d.Add(t.Context(), d.project, destination.Addition{Name: "Site", URL: "https://hooks.colophon.dev/"})
	must(t, err)
	id := added.Destination.ID
	where := delivery.Destination{Project: d.project, ID: id}
	rotated, err := d.Rotate(t.Context(), d.project, id, destination.Rotation{})
	must(t, err)
	kept := d.settings(id)
	if len(kept.Previous) != 1 || d.sealer.openSecret(t, where, kept.Secret) != rotated.Secret ||
		d.sealer.openSecret(t, where, kept.Previous[0].Sealed) != added.Secret {
		t.Error("the secrets are not the new and the old one")
	}
	if day := rotated.PreviousUntil.Sub(d.now()); day < 23*time.Hour || day > 24*time.Hour {
		t.Errorf("the old one signs for %v", day)
	}
	if until := d.get(id).PreviousUntil; !until.Equal(rotated.PreviousUntil.Truncate(time.Millisecond)) {
		t.Errorf("people are shown %v, not %v", until, rotated.PreviousUntil)
	}
	for range 2 {
		must(t, d.RevokePrevious(t.Context(), d.project, id, destination.Revocation{}))
	}
	if kept = d.settings(id); kept.Previous != nil || !d.get(id).PreviousUntil.IsZero() {
		t.Errorf("after the revocation: %+v", kept)
	}
	leaked, err := d.Rotate(t.Context(), d.project, id, destination.Rotation{RevokeOld: true})
	must(t, err)
	if kept = d.settings(id); kept.Previous != nil || d.sealer.openSecret(t, where, kept.Secret) != leaked.Secret {
		t.Errorf("after a rotation that revokes: %+v", kept)
	}
}

func TestTwoPausesAtOnceAreOne(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.add()
	pause := func() error { _, err := d.Pause(t.Context(), d.project, id); return err }
	for _, err := range together(pause, pause) {
		must(t, err)
	}
	must(t, pause())
	if slot := d.slot(id); slot.State != delivery.SlotPaused || slot.PausedBy != delivery.PausedByPerson || slot.Version != 2 {
		t.Errorf("slot: %+v", slot)
	}
}

func TestWhatIsPublishedWhilePausedIsSkippedAndOfferedOnResume(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.add()
	d.ring(id, d.publish())
	_, err := d.Pause(t.Context(), d.project, id)
	must(t, err)
	d.publish()
	newest := d.publish()
	d.ring(id, newest)
	d.ring(id, newest-1)
	if got := d.delivery(id, newest); got.Status != delivery.Skipped || got.Reason != delivery.Paused {
		t.Fatalf("while paused: %+v", got)
	}
	_, err = d.Redeliver(t.Context(), d.key(id, newest), destination.Redelivery{})
	want(t, err, destination.CodePaused)

	resumed, err := d.Resume(t.Context(), d.project, id)
	must(t, err)
	if resumed.Newest != newest || !resumed.SendNewest || resumed.Destination.State != delivery.SlotActive {
		t.Fatalf("resumed: %+v", resumed)
	}
	again, err := d.Redeliver(t.Context(), d.key(id, newest), destination.Redelivery{})
	must(t, err)
	if again.Status != delivery.Queued || again.Round != 2 {
		t.Errorf("redelivered: %+v", again)
	}
	d.ring(id, newest)
	d.receiver.arrived(t, 1, newest)
	resumed, err = d.Resume(t.Context(), d.project, id)
	must(t, err)
	if resumed.SendNewest {
		t.Errorf("what was delivered is offered again: %+v", resumed)
	}
	if replaced := d.delivery(id, newest).Replaced; !slices.Equal(replaced, []int64{newest - 1}) {
		t.Errorf("it replaced %v", replaced)
	}
}

func TestAReceiverThatIsGoneIsResumedByAPerson(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.add()
	d.receiver.answers(gone)
	d.ring(id, d.publish())
	if got := d.get(id); got.State != delivery.SlotPaused || got.PausedBy != delivery.PausedByGone {
		t.Fatalf("after a 410: %+v", got)
	}
	resumed, err := d.Resume(t.Context(), d.project, id)
	must(t, err)
	if !resumed.SendNewest || resumed.Destination.PausedBy != "" || d.get(id).State != delivery.SlotActive {
		t.Errorf("resumed: %+v", resumed)
	}
}

func TestARemovalLetsTheAttemptInFlightEndAndSkipsTheRest(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.add()
	first := d.publish()
	sent, answer := make(chan struct{}), make(chan struct{})
	d.receiver.answers(func(s delivery.Sending) delivery.Outcome {
		close(sent)
		<-answer
		return arrives(s)
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.ring(id, first)
	}()
	<-sent
	if got := d.delivery(id, first); !got.Sending || got.Attempt != 1 || got.Destination.Sending != first {
		t.Errorf("on its way: %+v", got)
	}
	_, err := d.TryNow(t.Context(), d.key(id, first))
	want(t, err, destination.CodeBeingSent)
	second := d.publish()
	must(t, d.Remove(t.Context(), d.project, id))
	close(answer)
	<-ended
	if got := d.delivery(id, first); got.Status != delivery.Delivered || len(got.Attempts) != 1 || got.Sending {
		t.Errorf("in flight: %+v", got)
	}
	d.ring(id, second)
	if got := d.delivery(id, second); got.Status != delivery.Skipped || got.Reason != delivery.Removed || got.Destination.Name != "Site" {
		t.Errorf("the rest: %+v", got)
	}
	d.receiver.arrived(t, first)

	must(t, d.Remove(t.Context(), d.project, id)) // again is no fault
	if got := d.get(id); got.State != delivery.SlotRemoved || got.URL != "" || got.Name != "Site" {
		t.Errorf("tombstone: %+v", got)
	}
	all, err := d.Deliveries(t.Context(), d.project, second)
	must(t, err)
	if len(all) != 1 || all[0].Destination.State != delivery.SlotRemoved || all[0].Reason != delivery.Removed {
		t.Errorf("the release still shows: %+v", all)
	}
	for action, do := range map[string]func() error{
		"pause":  func() error { _, err := d.Pause(t.Context(), d.project, id); return err },
		"resume": func() error { _, err := d.Resume(t.Context(), d.project, id); return err },
		"change": func() error { _, err := d.Change(t.Context(), d.project, id, destination.Change{}); return err },
		"rotate": func() error { _, err := d.Rotate(t.Context(), d.project, id, destination.Rotation{}); return err },
		"revoke": func() error { return d.RevokePrevious(t.Context(), d.project, id, destination.Revocation{}) },
		"test":   func() error { _, err := d.SendTest(t.Context(), d.project, id); return err },
		"redeliver": func() error {
			_, err := d.Redeliver(t.Context(), d.key(id, second), destination.Redelivery{})
			return err
		},
		"try now": func() error { _, err := d.TryNow(t.Context(), d.key(id, second)); return err },
	} {
		t.Log(action)
		want(t, do(), destination.CodeRemoved)
	}
	if next := d.publish(); d.announced(next) != 0 {
		t.Error("a removed destination is announced to")
	}
}

func (d *desk) announced(release int64) int {
	d.t.Helper()
	all, err := d.Deliveries(d.t.Context(), d.project, release)
	must(d.t, err)
	return len(all)
}

func TestARemovalAgainstAPublishLeavesNothingPending(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	announced := 0
	for range 10 {
		id := d.add()
		var release int64
		errs := together(
			func() error { return d.Remove(t.Context(), d.project, id) },
			func() error {
				p, err := d.content.Publish(t.Context(), d.project, content.PublishRequest{Force: true, Who: "ann"})
				release = p.Number
				return err
			},
		)
		must(t, errors.Join(errs...))
		all, err := d.Deliveries(t.Context(), d.project, release)
		must(t, err)
		for _, one := range all {
			announced++
			d.ring(id, release)
			if got := d.delivery(one.Destination.ID, release); got.Status != delivery.Skipped || got.Reason != delivery.Removed {
				t.Fatalf("announced and removed: %+v", got)
			}
		}
	}
	d.receiver.arrived(t)
	t.Logf("the publish was first in %d of 10", announced)
}

func TestTwoRedeliveriesAtOnceAreOneRound(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.add()
	release := d.publish()
	d.ring(id, release)
	before := d.delivery(id, release)
	redeliver := func() error {
		_, err := d.Redeliver(t.Context(), d.key(id, release), destination.Redelivery{})
		return err
	}
	errs := together(redeliver, redeliver, redeliver)
	done := 0
	for _, err := range errs {
		if err == nil {
			done++
			continue
		}
		want(t, err, destination.CodeNotEnded)
	}
	got := d.delivery(id, release)
	if done != 1 || got.Round != 2 || got.Status != delivery.Queued {
		t.Fatalf("%d were done: %+v", done, got)
	}
	d.ring(id, release)
	got = d.delivery(id, release)
	if got.Status != delivery.Delivered || got.WebhookID != before.WebhookID || string(got.Body) != string(before.Body) || len(got.Attempts) != 2 {
		t.Errorf("after the round: %+v", got)
	}
	if first, second := d.receiver.got[0], d.receiver.got[1]; first.ID != second.ID || string(first.Body) != string(second.Body) {
		t.Error("the receiver saw another id or body")
	}
}

func TestARedeliveryAgainstAPublishNeverSendsTheOlderAfterTheNewer(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.add()
	release := d.publish()
	d.ring(id, release)
	for range 8 {
		var next int64
		errs := together(
			func() error {
				_, err := d.Redeliver(t.Context(), d.key(id, release), destination.Redelivery{})
				return err
			},
			func() error {
				p, err := d.content.Publish(t.Context(), d.project, content.PublishRequest{Force: true, Who: "ann"})
				next = p.Number
				return err
			},
		)
		must(t, errs[1])
		if errs[0] != nil {
			if e := want(t, errs[0], destination.CodeNotNewest); e.Newest != next {
				t.Errorf("the refusal names release %d, not %d", e.Newest, next)
			}
		}
		d.ring(id, next)
		d.ring(id, release)
		if got := d.delivery(id, release); !got.Status.Terminal() || got.Result().Status != delivery.Delivered {
			t.Fatalf("the older: %+v", got)
		}
		release = next
		d.pass(limits.Destination.Every)
	}
	if got := d.receiver.releases(); !slices.IsSorted(got) {
		t.Errorf("the receiver got %v", got)
	}
}

func TestAnOlderReleaseIsSentAgainByForceOverWhatThePersonSaw(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.add()
	older := d.publish()
	d.ring(id, older)
	newer := d.publish()
	d.ring(id, newer)
	_, err := d.Redeliver(t.Context(), d.key(id, older), destination.Redelivery{})
	if e := want(t, err, destination.CodeNotNewest); e.Newest != newer || !strings.Contains(e.Message, "force") {
		t.Errorf("refusal: %+v", e)
	}
	newest := d.publish()
	_, err = d.Redeliver(t.Context(), d.key(id, older), destination.Redelivery{Force: true, Over: newer})
	if e := want(t, err, destination.CodeNewer); e.Newest != newest {
		t.Errorf("refusal: %+v", e)
	}
	d.ring(id, newest)
	forced, err := d.Redeliver(t.Context(), d.key(id, older), destination.Redelivery{Force: true, Over: newest})
	must(t, err)
	if forced.Over != newest || forced.Newest != newest {
		t.Errorf("forced: %+v", forced)
	}
	d.ring(id, older)
	d.receiver.arrived(t, older, newer, newest, older)

	// Forced, and then a newer one comes before it was sent: it is not sent.
	_, err = d.Redeliver(t.Context(), d.key(id, older), destination.Redelivery{Force: true, Over: newest})
	must(t, err)
	next := d.publish()
	d.ring(id, older)
	got := d.delivery(id, older)
	if got.Status != delivery.Skipped || got.Successor != next || got.Result().Status != delivery.Delivered || got.Result().Round != 2 {
		t.Errorf("forced in vain: %+v, which came to %+v", got, got.Result())
	}
	d.receiver.arrived(t, older, newer, newest, older)
}

func TestATryNowSendsWithoutWaitingAndAddsNoTry(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.add()
	release := d.publish()
	d.receiver.answers(unavailable)
	d.ring(id, release)
	d.ring(id, release)
	if got := d.delivery(id, release); got.Status != delivery.Retrying || got.Tries != 1 {
		t.Fatalf("before: %+v", got)
	}
	now, err := d.TryNow(t.Context(), d.key(id, release))
	must(t, err)
	if now.TryAt.After(d.now()) || now.Tries != 1 {
		t.Errorf("after: %+v", now)
	}
	d.receiver.answers(arrives)
	d.ring(id, release)
	if got := d.delivery(id, release); got.Status != delivery.Delivered || got.Tries != 2 || got.Round != 1 {
		t.Errorf("in the end: %+v", got)
	}
	_, err = d.TryNow(t.Context(), d.key(id, release))
	want(t, err, destination.CodeEnded)
}

func TestAReleaseThatANewerOneReplacesIsNotTriedNow(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.add()
	older := d.publish()
	d.receiver.answers(unavailable)
	d.ring(id, older)
	newer := d.publish()
	_, err := d.TryNow(t.Context(), d.key(id, older))
	if e := want(t, err, destination.CodeNewer); e.Newest != newer {
		t.Errorf("refusal: %+v", e)
	}
}

func TestWhatIsSentByHandIsLimited(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id, other := d.add(), d.add()
	release := d.publish()
	d.ring(id, release)
	_, err := d.Redeliver(t.Context(), d.key(id, release), destination.Redelivery{})
	must(t, err)
	for range limits.Destination.Burst - 1 {
		_, err := d.SendTest(t.Context(), d.project, id)
		must(t, err)
	}
	before := d.delivery(id, release)
	d.ring(id, release)
	for action, do := range map[string]func() error{
		"test": func() error { _, err := d.SendTest(t.Context(), d.project, id); return err },
		"redeliver": func() error {
			_, err := d.Redeliver(t.Context(), d.key(id, release), destination.Redelivery{})
			return err
		},
	} {
		if e := want(t, do(), destination.CodeTooOften); e.RetryAfter <= 0 || e.RetryAfter > limits.Destination.Every {
			t.Errorf("%s: to wait %v", action, e.RetryAfter)
		}
	}
	if got := d.delivery(id, release); got.Round != before.Round {
		t.Errorf("a refused redelivery began a round: %+v", got)
	}
	if _, err := d.SendTest(t.Context(), d.project, other); err != nil {
		t.Errorf("another destination: %v", err)
	}
	d.pass(limits.Destination.Every)
	if _, err := d.SendTest(t.Context(), d.project, id); err != nil {
		t.Errorf("after a minute: %v", err)
	}
}

func TestTestSendsAtOnceAreLimitedToo(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.add()
	for range limits.Destination.Burst - 1 {
		_, err := d.SendTest(t.Context(), d.project, id)
		must(t, err)
	}
	send := func() error { _, err := d.SendTest(t.Context(), d.project, id); return err }
	done := 0
	for _, err := range together(send, send, send) {
		if err == nil {
			done++
			continue
		}
		want(t, err, destination.CodeTooOften)
	}
	if done != 1 {
		t.Errorf("%d were sent where one was left", done)
	}
}

func TestATestIsSentOnceAlsoWhilePaused(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.add()
	_, err := d.Pause(t.Context(), d.project, id)
	must(t, err)
	asked, err := d.SendTest(t.Context(), d.project, id)
	must(t, err)
	if asked.State(d.now()) != delivery.TestWaiting || !strings.Contains(string(asked.Body), `"webhook.test"`) {
		t.Errorf("asked for: %+v", asked)
	}
	for range 2 {
		d.worker.AnswerTest(t.Context(), delivery.TestRing{Destination: asked.Destination, ID: asked.ID, Receives: 1})
	}
	got, err := d.Test(t.Context(), d.project, id, asked.ID)
	must(t, err)
	if got.State(d.now()) != delivery.TestEnded || got.Result == nil || got.Result.Status != 200 {
		t.Errorf("sent: %+v", got)
	}
	if sent := d.receiver.got; len(sent) != 1 || sent[0].ID != asked.WebhookID || string(sent[0].Body) != string(asked.Body) {
		t.Errorf("the receiver got %+v", sent)
	}
	_, err = d.Test(t.Context(), d.project, id, "another")
	want(t, err, destination.CodeNotFound)

	late, err := d.SendTest(t.Context(), d.project, id)
	must(t, err)
	d.pass(delivery.TestWaits)
	d.worker.AnswerTest(t.Context(), delivery.TestRing{Destination: late.Destination, ID: late.ID, Receives: 1})
	got, err = d.Test(t.Context(), d.project, id, late.ID)
	must(t, err)
	if got.State(d.now()) != delivery.TestNotSent || len(d.receiver.got) != 1 {
		t.Errorf("after two minutes: %+v", got)
	}
}

func TestADestinationsDeliveriesAreListedInPages(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.add()
	for range 7 {
		d.publish()
	}
	d.ring(id, 7)
	for n := int64(1); n < 7; n++ {
		d.ring(id, n)
	}
	var releases []int64
	r := destination.Range{From: 2, Limit: 2}
	for pages := 0; ; pages++ {
		page, err := d.DestinationDeliveries(t.Context(), d.project, id, r)
		must(t, err)
		for _, one := range page.Deliveries {
			releases = append(releases, one.Release)
			if one.Newest != 7 || one.Destination.Name != "Site" {
				t.Errorf("release %d: %+v", one.Release, one)
			}
			if wanted := map[int64][]int64{7: {6, 5, 4, 3, 2, 1}}[one.Release]; !slices.Equal(one.Replaced, wanted) {
				t.Errorf("release %d replaced %v, want %v", one.Release, one.Replaced, wanted)
			}
		}
		if page.Next == 0 {
			break
		}
		if r.To = page.Next; pages > 5 {
			t.Fatal("the pages have no end")
		}
	}
	if !slices.Equal(releases, []int64{7, 6, 5, 4, 3, 2}) {
		t.Errorf("listed: %v", releases)
	}
	_, err := d.DestinationDeliveries(t.Context(), d.project, "dst_none", destination.Range{})
	want(t, err, destination.CodeNotFound)
	empty, err := d.DestinationDeliveries(t.Context(), d.project, d.add(), destination.Range{})
	must(t, err)
	if len(empty.Deliveries) != 0 || empty.Next != 0 {
		t.Errorf("a new destination's: %+v", empty)
	}
}

func TestAReleasesDeliveriesAreListedByDestination(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	first, second := d.add(), d.add()
	release := d.publish()
	later := d.add()
	d.publish()
	d.ring(first, release)
	all, err := d.Deliveries(t.Context(), d.project, release)
	must(t, err)
	if len(all) != 2 || all[0].Destination.ID != first || all[1].Destination.ID != second || all[1].Status != delivery.Queued || all[1].Newest != release+1 {
		t.Errorf("release %d: %+v", release, all)
	}
	if d.announced(release+1) != 3 || later == "" {
		t.Error("the later destination is not announced to")
	}
	_, err = d.Deliveries(t.Context(), d.project, release+9)
	want(t, err, destination.CodeNotFound)
	_, err = d.Deliveries(t.Context(), "none", release)
	want(t, err, destination.CodeNotFound)
	_, err = d.Delivery(t.Context(), d.key(later, release))
	want(t, err, destination.CodeNotFound)
}

func TestAnotherProjectsDestinationIsNotThere(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.add()
	release := d.publish()
	other, err := d.content.CreateProject(t.Context(), "Other")
	must(t, err)
	p := other.ID
	key := delivery.Key{Destination: delivery.Destination{Project: p, ID: id}, Release: release}
	for action, do := range map[string]func() error{
		"get":       func() error { _, err := d.Get(t.Context(), p, id); return err },
		"change":    func() error { _, err := d.Change(t.Context(), p, id, destination.Change{}); return err },
		"rotate":    func() error { _, err := d.Rotate(t.Context(), p, id, destination.Rotation{}); return err },
		"revoke":    func() error { return d.RevokePrevious(t.Context(), p, id, destination.Revocation{}) },
		"pause":     func() error { _, err := d.Pause(t.Context(), p, id); return err },
		"resume":    func() error { _, err := d.Resume(t.Context(), p, id); return err },
		"remove":    func() error { return d.Remove(t.Context(), p, id) },
		"test":      func() error { _, err := d.SendTest(t.Context(), p, id); return err },
		"redeliver": func() error { _, err := d.Redeliver(t.Context(), key, destination.Redelivery{}); return err },
		"try now":   func() error { _, err := d.TryNow(t.Context(), key); return err },
		"delivery":  func() error { _, err := d.Delivery(t.Context(), key); return err },
	} {
		t.Log(action)
		want(t, do(), destination.CodeNotFound)
	}
	_, err = d.Add(t.Context(), "none", destination.Addition{Name: "Site", URL: "https://hooks.colophon.dev/"})
	want(t, err, destination.CodeNotFound)
	_, err = d.List(t.Context(), "none")
	want(t, err, destination.CodeNotFound)
	if got := d.get(id); got.State != delivery.SlotActive {
		t.Errorf("it was touched: %+v", got)
	}
}

// tornHistory answers some reads of a delivery as it was before the last
// transaction, beside the slot as it is after it.
type tornHistory struct {
	destination.History
	before *delivery.Delivery
	reads  int // that are torn
}

func (h *tornHistory) Read(ctx context.Context, key delivery.Key) (delivery.Reading, error) {
	r, err := h.History.Read(ctx, key)
	if h.reads > 0 {
		r.Rang, r.Newest = h.before, h.before
		h.reads--
	}
	return r, err
}

func TestATornReadIsReadAgain(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.add()
	release := d.publish()
	before := d.delivery(id, release).Delivery
	d.ring(id, release)
	d.config.History = &tornHistory{History: d.config.History, before: &before, reads: 5}
	waited := time.Duration(0)
	d.config.Sleep = func(_ context.Context, wait time.Duration) error { waited += wait; return nil }
	people, err := destination.New(d.config)
	must(t, err)
	again, err := people.Redeliver(t.Context(), d.key(id, release), destination.Redelivery{})
	must(t, err) // and not: it has not ended
	if again.Round != 2 || waited > delivery.TornTime {
		t.Errorf("redelivered after %v: %+v", waited, again)
	}
}

func TestANewerReleaseThatHasExpiredStillNeedsForce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.add()
	older, newer := d.publish(), int64(0)
	d.ring(id, older)
	newer = d.publish()
	d.ring(id, newer)
	key := store.Key{PK: "P#" + d.project + "#D#" + id, SK: fmt.Sprintf("R#%012d", newer)}
	_, err := d.engine.Write(t.Context(), store.Write{Table: d.tables.Delivery, Key: key, Delete: true})
	must(t, err)
	_, err = d.Redeliver(t.Context(), d.key(id, older), destination.Redelivery{})
	if e := want(t, err, destination.CodeNotNewest); e.Newest != newer {
		t.Errorf("refusal: %+v", e)
	}
	_, err = d.Redeliver(t.Context(), d.key(id, older), destination.Redelivery{Force: true, Over: newer})
	must(t, err)
	d.ring(id, older)
	d.receiver.arrived(t, older, newer, older)
}

// faulted is a desk whose people meet the faults that choose gives, from when on is set.
func faulted(t *testing.T) (d *desk, set func(faults ...storetest.Fault)) {
	t.Helper()
	var queue []storetest.Fault
	d = newDesk(t, func(e store.Engine) store.Engine {
		return &storetest.Faulty{Engine: e, Choose: func([]store.Write) storetest.Fault {
			if len(queue) == 0 {
				return storetest.None
			}
			fault := queue[0]
			if len(queue) > 1 {
				queue = queue[1:]
			} // the last one stays
			return fault
		}}
	})
	d.config.Sleep = func(_ context.Context, wait time.Duration) error { d.pass(wait); return nil } // waiting takes no time
	var err error
	d.Service, err = destination.New(d.config)
	must(t, err)
	return d, func(faults ...storetest.Fault) { queue = faults }
}

func TestALostAnswerIsAskedForAgainAndDoneOnce(t *testing.T) {
	t.Parallel()
	for _, fault := range []storetest.Fault{storetest.AnswerLost, storetest.RequestLost} {
		d, set := faulted(t)
		id := d.add()
		release := d.publish()
		d.ring(id, release)
		set(fault, storetest.Conflict, storetest.Throttled, storetest.None)
		_, err := d.Redeliver(t.Context(), d.key(id, release), destination.Redelivery{})
		must(t, err)
		if got := d.delivery(id, release); got.Round != 2 || got.Status != delivery.Queued {
			t.Errorf("fault %d: %+v", fault, got)
		}
	}
}

func TestARedeliveryIsRetriedWhileTheTableIsShortOfUnits(t *testing.T) {
	t.Parallel()
	for name, short := range map[string]storetest.Fault{
		"the slot's write of it": storetest.ThrottledFirst, "the last write of it": storetest.ThrottledLast, "all of it": storetest.Throttled,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, set := faulted(t)
			id := d.add()
			release := d.publish()
			d.ring(id, release)
			set(short, short, short, short, storetest.None)
			_, err := d.Redeliver(t.Context(), d.key(id, release), destination.Redelivery{})
			must(t, err)
			if got := d.delivery(id, release); got.Round != 2 || got.Status != delivery.Queued {
				t.Errorf("stored: %+v", got)
			}
			set(short) // for ever
			_, err = d.TryNow(t.Context(), d.key(id, release))
			if e := want(t, err, destination.CodeUnavailable); !strings.Contains(e.Message, "takes no more just now") || e.RetryAfter < time.Second {
				t.Errorf("refusal: %+v", e)
			}
		})
	}
}

func TestFaultsOfTheTableAreToldInPlainWords(t *testing.T) {
	t.Parallel()
	d, set := faulted(t)
	id := d.add()
	for _, c := range []struct {
		faults []storetest.Fault
		code   destination.Code
	}{
		{[]storetest.Fault{storetest.RequestLost}, destination.CodeUnknown},
		{[]storetest.Fault{storetest.AnswerLost, storetest.Conflict}, destination.CodeUnknown},
		{[]storetest.Fault{storetest.Conflict}, destination.CodeBusy},
		{[]storetest.Fault{storetest.Throttled}, destination.CodeUnavailable},
		{[]storetest.Fault{storetest.ThrottledLast}, destination.CodeUnavailable},
		{[]storetest.Fault{storetest.AnswerLost, storetest.ThrottledLast}, destination.CodeUnknown},
	} {
		set(c.faults...)
		_, err := d.SendTest(t.Context(), d.project, id)
		e := want(t, err, c.code)
		for _, foreign := range []string{"injected", "Dynamo", "refused:", "outcome unknown"} {
			if strings.Contains(e.Message, foreign) {
				t.Errorf("%s says %q", c.code, e.Message)
			}
		}
	}
	set(storetest.None)
	d.sealer.refuse.Store(true)
	_, err := d.Rotate(t.Context(), d.project, id, destination.Rotation{})
	var refusal *destination.Error
	if err == nil || errors.As(err, &refusal) {
		t.Errorf("a fault of the key: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Get(ended, d.project, id); err == nil {
		t.Error("a read without time said something")
	}
}
