package destination_test

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"colophon/internal/delivery"
	"colophon/internal/destination"
	"colophon/internal/store"
	"colophon/internal/webhook"
)

const elsewhere = "https://attacker.colophon.dev/"

// addSecretly adds a destination with a custom header, whose value its project's
// other admins never saw.
func (d *desk) addSecretly() (id, secret string) {
	d.t.Helper()
	added, err := d.Add(d.t.Context(), d.project, destination.Addition{
		Name: "Site", URL: "https://hooks.colophon.dev/in", Headers: map[string]string{"Authorization": "Bearer marked"},
	})
	must(d.t, err)
	return added.Destination.ID, added.Secret
}

// sent are the requests that were made to an address.
func (r *receiver) sent(address string) []delivery.Sending {
	r.mu.Lock()
	defer r.mu.Unlock()
	var sent []delivery.Sending
	for _, s := range r.got {
		if s.URL == address {
			sent = append(sent, s)
		}
	}
	return sent
}

// sendAll sends to a destination in each way that there is: a publish, a
// redelivery, a test and the doctor.
func (d *desk) sendAll(id string) (release int64, tests []string) {
	d.t.Helper()
	release = d.publish()
	d.ring(id, release)
	if _, err := d.Redeliver(d.t.Context(), d.key(id, release), destination.Redelivery{}); err == nil {
		d.ring(id, release)
	}
	for _, send := range []func(context.Context, string, string) (delivery.TestSend, error){d.SendTest, d.Examine} {
		test, err := send(d.t.Context(), d.project, id)
		must(d.t, err)
		tests = append(tests, test.ID)
		ring := delivery.TestRing{Destination: delivery.Destination{Project: d.project, ID: id}, ID: test.ID, Receives: 1}
		if end := d.worker.AnswerTest(d.t.Context(), ring); end != (delivery.Done{}) {
			d.t.Fatalf("the worker says %T", end)
		}
	}
	return release, tests
}

func TestWhoChangesTheAddressNeverGetsTheHeadersOfBefore(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id, secret := d.addSecretly()
	d.sendAll(id)
	for _, s := range d.receiver.sent("https://hooks.colophon.dev/in") {
		if s.Opened.Headers["Authorization"] != "Bearer marked" {
			t.Errorf("the right receiver got %v", s.Opened.Headers)
		}
	}
	address := elsewhere
	_, err := d.Change(t.Context(), d.project, id, destination.Change{URL: &address})
	if e := want(t, err, destination.CodeInvalid); e.Field != "headers" {
		t.Errorf("the refusal names %q", e.Field)
	}
	if got := d.get(id); got.URL != "https://hooks.colophon.dev/in" {
		t.Errorf("the address is %s", got.URL)
	}

	own := map[string]string{"X-Own": "1"}
	_, err = d.Change(t.Context(), d.project, id, destination.Change{URL: &address, Headers: &own})
	must(t, err)
	d.pass(time.Hour)
	d.sendAll(id)
	sent := d.receiver.sent(elsewhere)
	if len(sent) != 4 {
		t.Fatalf("%d requests were made to the new address, want 4", len(sent))
	}
	survived, err := webhook.ParseSecret(secret)
	must(t, err)
	for _, s := range sent {
		if len(s.Opened.Headers) != 1 || s.Opened.Headers["X-Own"] != "1" {
			t.Errorf("the new receiver got the headers %v", s.Opened.Headers)
		}
		if len(s.Opened.Secrets) != 1 || s.Opened.Secrets[0] != survived {
			t.Error("the signing secret did not survive the move")
		}
	}
}

// behind writes settings as somebody does who may write the table, and not seal.
func (d *desk) behind(id string, change func(*delivery.Settings)) {
	d.t.Helper()
	settings := d.settings(id)
	version := settings.Version
	change(&settings)
	destinations, err := store.NewDestinations(store.DestinationsConfig{
		Engine: d.engine, ContentTable: d.tables.Content, DeliveryTable: d.tables.Delivery,
	})
	must(d.t, err)
	must(d.t, destinations.Commit(d.t.Context(), rand.Text(), destination.Resetting{
		Destination: delivery.Destination{Project: d.project, ID: id}, Version: version, Settings: settings,
	}))
}

func TestWhatWasChangedBehindTheApisBackIsNotSentAndSaysWhy(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(d *desk, s *delivery.Settings){
		"another address": func(_ *desk, s *delivery.Settings) { s.URL = elsewhere },
		"another port":    func(_ *desk, s *delivery.Settings) { s.URL = "https://hooks.colophon.dev:8443/in" },
		"another destination's secret": func(d *desk, s *delivery.Settings) {
			other, _ := d.addSecretly()
			s.Secret = d.settings(other).Secret
		},
		"another destination's headers": func(d *desk, s *delivery.Settings) {
			other, _ := d.addSecretly()
			s.Headers = d.settings(other).Headers
		},
		"headers in place of the secret": func(_ *desk, s *delivery.Settings) { s.Secret = s.Headers },
		"the older context": func(_ *desk, s *delivery.Settings) {
			s.URL, s.Headers.Context = elsewhere, delivery.SealedForDestination
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			id, _ := d.addSecretly()
			d.behind(id, func(s *delivery.Settings) { change(d, s) })
			release, tests := d.sendAll(id)
			if got := d.receiver.releases(); len(got) != 0 {
				t.Errorf("%d requests were made", len(got))
			}
			got := d.delivery(id, release)
			if got.Status != delivery.Failed || got.Reason != delivery.Reason(delivery.ClassSealed) {
				t.Errorf("the delivery is %s, %s", got.Status, got.Reason)
			}
			if text := strings.Join(delivery.Timeline(got.Delivery, false, d.now()), "\n"); !strings.Contains(text, "sealed for another address") ||
				!strings.Contains(text, "sets the destination's address and headers again") {
				t.Errorf("people read:\n%s", text)
			}
			for _, test := range tests {
				ended, err := d.Test(t.Context(), d.project, id, test)
				must(t, err)
				if ended.Result == nil || ended.Result.Class != delivery.ClassSealed || ended.Result.Received != delivery.NotReceived {
					t.Errorf("the test ended with %+v", ended.Result)
				}
				if ended.Kind == delivery.TestDoctor && len(ended.Findings) != 6 {
					t.Errorf("the doctor found %+v", ended.Findings)
				}
			}
			if d.slot(id).Holder != nil {
				t.Error("the slot is held")
			}

			// An admin puts it right, and redelivers.
			address, headers := "https://hooks.colophon.dev/in", map[string]string{"X-New": "1"}
			_, err := d.Change(t.Context(), d.project, id, destination.Change{URL: &address, Headers: &headers})
			must(t, err)
			_, err = d.Rotate(t.Context(), d.project, id, destination.Rotation{RevokeOld: true})
			must(t, err)
			_, err = d.Redeliver(t.Context(), d.key(id, release), destination.Redelivery{})
			must(t, err)
			d.ring(id, release)
			if got := d.delivery(id, release); got.Status != delivery.Delivered {
				t.Errorf("after that it is %s, %s", got.Status, got.Reason)
			}
		})
	}
}

// sealBefore puts what an older version sealed into a destination's settings.
func (d *desk) sealBefore(id, secret, previous, headers string) {
	d.t.Helper()
	b := delivery.Binding{Destination: delivery.Destination{Project: d.project, ID: id}}
	under := func(text string) delivery.Sealed {
		return d.sealer.sealUnder(b, delivery.SealedForDestination, []byte(text))
	}
	d.behind(id, func(s *delivery.Settings) {
		s.Secret, s.SecretFingerprint, s.Headers = under(secret), nil, under(headers)
		s.Previous = []delivery.PreviousSecret{{Sealed: under(previous), Until: d.now().Add(time.Hour).Truncate(time.Millisecond)}}
	})
}

func newSecretText(t *testing.T, fill byte) string {
	t.Helper()
	return "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(string(rune(fill)), 24)))
}

func TestWhatAnOlderVersionSealedOpensAndIsResealedWithoutBeingOpened(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id, _ := d.addSecretly()
	untouched, _ := d.addSecretly()
	current, previous := newSecretText(t, 'c'), newSecretText(t, 'p')
	d.sealBefore(id, current, previous, `{"Authorization":"Bearer older"}`)
	sends := func() {
		t.Helper()
		d.pass(time.Minute)
		d.sendAll(id)
		sent := d.receiver.sent("https://hooks.colophon.dev/in")
		last := sent[len(sent)-1].Opened
		if len(last.Secrets) != 2 || last.Secrets[0].Reveal() != current || last.Secrets[1].Reveal() != previous || last.Headers["Authorization"] != "Bearer older" {
			t.Errorf("sent with %d secrets and %v", len(last.Secrets), last.Headers)
		}
	}
	sends()
	if c := d.settings(id).Secret.Context; c != delivery.SealedForDestination {
		t.Errorf("a secret that was not resealed is of context %d", c)
	}

	resealer, err := destination.NewResealer(destination.ResealerConfig{
		Store: d.config.Store, Reseal: d.sealer.Reseal, Clock: d.now, Random: d.config.Random,
	})
	must(t, err)
	var reports []destination.Resealed
	for range 2 { // the second time there is nothing left
		must(t, resealer.Project(t.Context(), d.project, func(r destination.Resealed) { reports = append(reports, r) }))
	}
	if len(reports) != 1 || reports[0].Destination != id || reports[0].Moved != 3 || reports[0].Origin != "https://hooks.colophon.dev" {
		t.Errorf("reported: %+v", reports)
	}
	kept := d.settings(id)
	for what, sealed := range map[string]delivery.Sealed{"secret": kept.Secret, "previous": kept.Previous[0].Sealed, "headers": kept.Headers} {
		if sealed.Context != delivery.SealedForPurpose {
			t.Errorf("the %s is of context %d", what, sealed.Context)
		}
	}
	sends()
	if got := d.settings(untouched); got.Version != 1 {
		t.Errorf("a destination with nothing to reseal was written: %+v", got)
	}
	// Now the address is bound, too.
	d.behind(id, func(s *delivery.Settings) { s.URL = elsewhere })
	d.pass(time.Hour)
	d.sendAll(id)
	if sent := d.receiver.sent(elsewhere); len(sent) != 0 {
		t.Errorf("%d requests were made to another address", len(sent))
	}
}

func TestResealingNamesWhatWasSealedForAnother(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id, _ := d.addSecretly()
	d.sealBefore(id, newSecretText(t, 'c'), newSecretText(t, 'p'), "{}")
	d.behind(id, func(s *delivery.Settings) {
		s.Secret = d.sealer.sealUnder(delivery.Binding{Destination: delivery.Destination{Project: d.project, ID: "dst_other"}},
			delivery.SealedForDestination, []byte("x"))
	})
	resealer, err := destination.NewResealer(destination.ResealerConfig{
		Store: d.config.Store, Reseal: d.sealer.Reseal, Clock: d.now, Random: d.config.Random,
	})
	must(t, err)
	var reports []destination.Resealed
	must(t, resealer.Project(t.Context(), d.project, func(r destination.Resealed) { reports = append(reports, r) }))
	if len(reports) != 1 || reports[0].Moved != 2 || len(reports[0].Failed) != 1 || reports[0].Failed[0] != "secret" {
		t.Errorf("reported: %+v", reports)
	}
	if err := resealer.Project(t.Context(), "prj_none", nil); err == nil {
		t.Error("a project that is not there was resealed")
	}
}

func TestASecretThatIsBroughtAgainIsTheSameSecret(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id, _ := d.addSecretly()
	where := delivery.Destination{Project: d.project, ID: id}
	brought := newSecretText(t, 'b')
	ask := destination.Rotation{Secret: brought, Version: 1}
	first, err := d.Rotate(t.Context(), d.project, id, ask)
	must(t, err)
	again, err := d.Rotate(t.Context(), d.project, id, ask) // as after a lost answer
	must(t, err)
	if first.Secret != brought || again.Secret != brought || !again.PreviousUntil.Equal(first.PreviousUntil.Truncate(time.Millisecond)) ||
		again.Destination.Version != first.Destination.Version {
		t.Errorf("first %+v, again %+v", first.Destination, again.Destination)
	}
	kept := d.settings(id)
	if len(kept.Previous) != 1 || d.sealer.openSecret(t, where, kept.Secret) != brought {
		t.Errorf("kept: %d previous", len(kept.Previous))
	}
	_, err = d.Rotate(t.Context(), d.project, id, destination.Rotation{Version: 1})
	want(t, err, destination.CodeChanged)
	for _, wrong := range []string{"whsec_", "marked-secret", "whsec_AAAA", newSecretText(t, 'x') + "\n"} {
		_, err := d.Rotate(t.Context(), d.project, id, destination.Rotation{Secret: wrong})
		if e := want(t, err, destination.CodeInvalid); e.Field != "secret" || strings.Contains(e.Message, "marked") {
			t.Errorf("%q: %+v", wrong, e)
		}
	}
}

func TestTheReceiversSecretSurvivesRotationsThatItDidNotFollow(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id, secret := d.addSecretly()
	for range 3 {
		_, err := d.Rotate(t.Context(), d.project, id, destination.Rotation{})
		must(t, err)
	}
	_, err := d.Rotate(t.Context(), d.project, id, destination.Rotation{})
	if e := want(t, err, destination.CodeTooManySecrets); e.RetryAfter < 23*time.Hour || e.RetryAfter > 24*time.Hour {
		t.Errorf("to wait %v", e.RetryAfter)
	}
	release := d.publish()
	d.ring(id, release)
	d.receiver.arrived(t, release)
	signing := d.receiver.sent("https://hooks.colophon.dev/in")[0].Opened.Secrets
	if len(signing) != 4 || signing[3].Reveal() != secret {
		t.Errorf("%d secrets sign, the receiver's among them: %v", len(signing), len(signing) == 4)
	}
	if got := d.get(id).PreviousSecrets; len(got) != 3 {
		t.Errorf("shown are %v", got)
	}
	must(t, d.RevokePrevious(t.Context(), d.project, id, destination.Revocation{Position: 3}))
	if got := d.get(id).PreviousSecrets; len(got) != 2 {
		t.Errorf("after revoking the third, shown are %v", got)
	}
}

func TestTheKeyIsNotAskedForWhatCannotBeDone(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id, _ := d.addSecretly()
	must(t, d.Remove(t.Context(), d.project, id))
	asked := d.sealer.asked.Load()
	headers := map[string]string{"X-A": "1"}
	for name, do := range map[string]func() error{
		"rotate one that was removed": func() error { _, err := d.Rotate(t.Context(), d.project, id, destination.Rotation{}); return err },
		"rotate one that never was": func() error {
			_, err := d.Rotate(t.Context(), d.project, "dst_none", destination.Rotation{})
			return err
		},
		"headers for one that never was": func() error {
			_, err := d.Change(t.Context(), d.project, "dst_none", destination.Change{Headers: &headers})
			return err
		},
		"add to a project that is not there": func() error {
			_, err := d.Add(t.Context(), "prj_none", destination.Addition{Name: "n", URL: "https://hooks.colophon.dev/"})
			return err
		},
	} {
		if do() == nil {
			t.Errorf("%s was done", name)
		}
	}
	if n := d.sealer.asked.Load() - asked; n != 0 {
		t.Errorf("the key was asked %d times", n)
	}
}

// at is the desk's service at one instant that a test moves: limits are given
// back by the minute, and a test may take long.
func (d *desk) at(limits destination.Limits) (*destination.Service, *time.Time) {
	d.t.Helper()
	now, config := d.now(), d.config
	config.Limits, config.Clock = limits, func() time.Time { return now }
	service, err := destination.New(config)
	must(d.t, err)
	return service, &now
}

// sendTests adds a destination at one host, sends tests to it until that is
// refused, and removes it.
func (d *desk) sendTests(service *destination.Service, most int) (sent int, refusal error) {
	d.t.Helper()
	added, err := service.Add(d.t.Context(), d.project, destination.Addition{Name: "Site", URL: "https://hooks.colophon.dev/"})
	must(d.t, err)
	for sent < most && refusal == nil {
		if _, refusal = service.SendTest(d.t.Context(), d.project, added.Destination.ID); refusal == nil {
			sent++
		}
	}
	must(d.t, service.Remove(d.t.Context(), d.project, added.Destination.ID))
	return sent, refusal
}

func TestAddingAndRemovingADestinationRestoresNoLimit(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	service, now := d.at(limits)
	for sent := 0; sent < limits.Origin.Burst; {
		n, err := d.sendTests(service, limits.Destination.Burst)
		must(t, err)
		sent += n
	}
	n, err := d.sendTests(service, 1)
	if e := want(t, err, destination.CodeTooOften); n != 0 || e.RetryAfter != limits.Origin.Every {
		t.Fatalf("%d more were sent, then to wait %v", n, e.RetryAfter)
	}
	added, err := service.Add(t.Context(), d.project, destination.Addition{Name: "Site", URL: "https://hooks.colophon.dev/other"})
	must(t, err)
	_, err = service.Examine(t.Context(), d.project, added.Destination.ID)
	want(t, err, destination.CodeTooOften)
	elsewhere, err := service.Add(t.Context(), d.project, destination.Addition{Name: "Other", URL: "https://other.colophon.dev/"})
	must(t, err)
	if _, err := service.SendTest(t.Context(), d.project, elsewhere.Destination.ID); err != nil {
		t.Errorf("another host: %v", err)
	}
	*now = now.Add(limits.Origin.Every)
	if _, err := service.SendTest(t.Context(), d.project, added.Destination.ID); err != nil {
		t.Errorf("after a while: %v", err)
	}
}

func TestFiftyTestSendsByAddingAndRemovingEndInARefusal(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	service, _ := d.at(destination.DefaultLimits())
	var sent []int
	for range 5 {
		n, err := d.sendTests(service, 10)
		if n < 10 {
			want(t, err, destination.CodeTooOften)
		}
		sent = append(sent, n)
	}
	if !slices.Equal(sent, []int{10, 10, 10, 10, 0}) {
		t.Errorf("sent were %v", sent)
	}
}

func TestChannelsOfAServiceThatManyShareDoNotUseUpEachOthersLimit(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	service, _ := d.at(limits)
	for i := range 8 {
		added, err := service.Add(t.Context(), d.project, destination.Addition{Name: fmt.Sprint(i), URL: fmt.Sprintf("https://hooks.slack.com/services/%d", i)})
		must(t, err)
		for range limits.Destination.Burst {
			_, err := service.SendTest(t.Context(), d.project, added.Destination.ID)
			must(t, err)
		}
		_, err = service.SendTest(t.Context(), d.project, added.Destination.ID)
		want(t, err, destination.CodeTooOften)
	}
}

func TestHeadersAreSealedAsTheyWereGiven(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id, _ := d.addSecretly()
	headers := map[string]string{"x-team": "web"}
	_, err := d.Change(t.Context(), d.project, id, destination.Change{Headers: &headers})
	must(t, err)
	var got map[string]string
	where := delivery.Destination{Project: d.project, ID: id}
	must(t, json.Unmarshal([]byte(d.sealer.openHeaders(t, where, "https://hooks.colophon.dev", d.settings(id).Headers)), &got))
	if len(got) != 1 || got["X-Team"] != "web" {
		t.Errorf("sealed are %v", got)
	}
}
