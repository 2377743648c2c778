package delivery_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"colophon/internal/delivery"
	"colophon/internal/destination"
	"colophon/internal/egress"
	"colophon/internal/store"
	"colophon/internal/webhook"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

var examinedAt = time.Date(2026, 3, 9, 12, 0, 0, 0, time.UTC)

// through are the steps up to one, each of 20 ms.
func through(last egress.StepName) (steps []egress.Step) {
	for _, name := range []egress.StepName{egress.StepLookup, egress.StepConnect, egress.StepHandshake, egress.StepRequest, egress.StepAnswer} {
		steps = append(steps, egress.Step{Name: name, Took: 20 * time.Millisecond})
		if name == last {
			break
		}
	}
	return steps
}

// answered is a request that was answered by a receiver with nothing to mend.
func answered(status int) egress.Result {
	return egress.Result{
		Status: status, MayHaveBeenReceived: true, Steps: through(egress.StepAnswer), Elapsed: 100 * time.Millisecond,
		ServerDate: examinedAt, CertificateNotAfter: examinedAt.Add(60 * 24 * time.Hour),
	}
}

func broke(last egress.StepName, failure egress.Failure, detail egress.Detail) egress.Result {
	r := egress.Result{Failure: failure, Detail: detail, Elapsed: 100 * time.Millisecond}
	if last != "" {
		r.Steps = through(last)
	}
	if len(r.Steps) > 2 { // the handshake was finished
		r.CertificateNotAfter = examinedAt.Add(60 * 24 * time.Hour)
	}
	return r
}

func with(r egress.Result, change func(*egress.Result)) egress.Result {
	change(&r)
	return r
}

// Verdicts in the order of the checks: name, connection, certificate, answer,
// redirect, clock; + good, ~ warning, ! bad, . not reached.
func TestAnExaminationSaysWhatItFound(t *testing.T) {
	t.Parallel()
	dated := func(by time.Duration) egress.Result {
		return with(answered(204), func(r *egress.Result) { r.ServerDate = examinedAt.Add(by) })
	}
	ending := func(in time.Duration) egress.Result {
		return with(answered(204), func(r *egress.Result) { r.CertificateNotAfter = examinedAt.Add(in) })
	}
	tls := func(detail egress.Detail) egress.Result {
		return with(broke(egress.StepConnect, egress.FailureTLS, detail), func(r *egress.Result) {
			r.CertificateNotAfter = examinedAt.Add(60 * 24 * time.Hour)
		})
	}
	for _, row := range []struct {
		name     string
		result   egress.Result
		verdicts string
		words    string // that some finding says
	}{
		{"nothing to mend", answered(204), "++++++", "good until 2026-05-08, for 60 days"},
		{"blocked before the lookup", broke("", egress.FailureBlocked, ""), "!.....", "not public"},
		{"blocked when it was dialled", broke(egress.StepLookup, egress.FailureBlocked, ""), "+!....", "not public"},
		{"our own API", broke("", egress.FailureBlocked, egress.DetailOwnAPI), "!.....", "own API. Give the destination the receiver's address"},
		{"a port that is not called", broke("", egress.FailureBlocked, egress.DetailNotAllowed), "!.....", "scheme, port or form"},
		{"no such name", broke("", egress.FailureDNS, egress.DetailNoSuchName), "!.....", "no such host name"},
		{"a name without addresses", broke("", egress.FailureDNS, egress.DetailNoAddress), "!.....", "leads to no address"},
		{"a slow lookup", broke("", egress.FailureDNS, egress.DetailTimeout), "!.....", "in time"},
		{"broken name servers", broke("", egress.FailureDNS, egress.DetailLookupFailed), "!.....", "as they should"},
		{"connection refused", broke(egress.StepLookup, egress.FailureConnect, egress.DetailConnectRefused), "+!....", "refused"},
		{"no way there", broke(egress.StepLookup, egress.FailureConnect, egress.DetailUnreachable), "+!....", "no way"},
		{"a firewall that swallows", broke(egress.StepLookup, egress.FailureConnect, egress.DetailTimeout), "+!....", "firewall"},
		{"closed before it stood", broke(egress.StepLookup, egress.FailureConnect, egress.DetailClosed), "+!....", "closed"},
		{"expired", with(tls(egress.DetailExpired), func(r *egress.Result) { r.CertificateNotAfter = examinedAt.Add(-48 * time.Hour) }), "++!...", "ended on 2026-03-07"},
		{"not yet valid", tls(egress.DetailNotYetValid), "++!...", "not good yet"},
		{"another name", tls(egress.DetailName), "++!...", "another host name. It is good until 2026-05-08, for 60 days"},
		{"self-signed", tls(egress.DetailUnknownIssuer), "++!...", "No authority"},
		{"an incomplete chain", tls(egress.DetailIncompleteChain), "++!...", "intermediate certificate"},
		{"an unusable certificate", tls(egress.DetailCertificate), "++!...", "cannot be used"},
		{"not TLS", tls(egress.DetailNotTLS), "++!...", "does not speak TLS"},
		{"an alert", tls(egress.DetailAlert), "++!...", "client's certificate"},
		{"closed in the handshake", tls(egress.DetailClosed), "++!...", "before TLS stood"},
		{"a slow handshake", tls(egress.DetailTimeout), "++!...", "in time"},
		{"no common version", tls(egress.DetailProtocol), "++!...", "1.2"},
		{"an alert after the handshake", broke(egress.StepRequest, egress.FailureTLS, egress.DetailAlert), "+++!..", "client's certificate"},
		{"a certificate about to end", ending(13 * 24 * time.Hour), "++~+++", "ends on 2026-03-22, in 13 days"},
		{"a certificate on its last day", ending(time.Hour), "++~+++", "in less than a day"},
		{"a certificate with a day more", ending(25 * time.Hour), "++~+++", "in 1 day."},
		{"refused", answered(401), "+++!++", "credentials"},
		{"gone", answered(410), "+++!++", "410"},
		{"unavailable", answered(503), "+++!++", "503"},
		{"redirected", with(answered(302), func(r *egress.Result) { r.Redirect = true }), "+++!!+", "redirects (302)"},
		{"a 3xx that leads nowhere", answered(304), "+++!++", "304"},
		{"no answer", broke(egress.StepRequest, egress.FailureTimeout, ""), "+++!..", "no complete answer within 10 s"},
		{"reset", broke(egress.StepRequest, egress.FailureReset, ""), "+++!..", "broke before an answer"},
		{"not HTTP", broke(egress.StepRequest, egress.FailureNotHTTP, ""), "+++!..", "does not speak HTTP"},
		{"half an answer", broke(egress.StepRequest, egress.FailureBadAnswer, ""), "+++!..", "broke off"},
		{"giant headers", broke(egress.StepRequest, egress.FailureHeadersTooLarge, ""), "+++!..", "too large"},
		{"our fault", broke("", egress.FailureOurs, ""), "......", "fault of our own"},
		{"no date", with(answered(204), func(r *egress.Result) { r.ServerDate = time.Time{} }), "+++++.", "what time it is"},
		{"a date from when the request began", dated(-1100 * time.Millisecond), "++++++", "agrees"},
		{"a clock 29 s ahead", dated(29 * time.Second), "++++++", "agrees"},
		{"a clock a minute ahead", dated(time.Minute), "+++++~", "60 s ahead of ours"},
		{"a clock a minute behind", dated(-61100 * time.Millisecond), "+++++~", "60 s behind ours"},
		{"a clock ten minutes behind", dated(-10 * time.Minute), "+++++!", "behind ours. Signatures are good for 5 minutes"},
	} {
		findings := delivery.Examine(row.result, true, examinedAt)
		verdicts, words := "", ""
		for _, f := range findings {
			verdicts += map[delivery.Verdict]string{
				delivery.VerdictGood: "+", delivery.VerdictWarning: "~", delivery.VerdictBad: "!", delivery.VerdictNotReached: ".",
			}[f.Verdict]
			words += f.Words + "\n"
			if !strings.HasSuffix(f.Words, ".") && !strings.HasSuffix(f.Words, ").") {
				t.Errorf("%s: %q is no sentence", row.name, f.Words)
			}
		}
		if verdicts != row.verdicts || !strings.Contains(words, row.words) {
			t.Errorf("%s: %s, want %s with %q:\n%s", row.name, verdicts, row.verdicts, row.words, words)
		}
	}
}

func TestPlainHTTPIsSaidToBe(t *testing.T) {
	t.Parallel()
	r := answered(204)
	r.CertificateNotAfter = time.Time{}
	r.Steps = slices.DeleteFunc(r.Steps, func(s egress.Step) bool { return s.Name == egress.StepHandshake })
	for _, f := range delivery.Examine(r, false, examinedAt) {
		if (f.Check == delivery.CheckCertificate) != (f.Verdict == delivery.VerdictWarning) {
			t.Errorf("%s: %s, %s", f.Check, f.Verdict, f.Words)
		}
	}
}

// sealedAsIs opens what plainSealer sealed.
type sealedAsIs struct{}

func (sealedAsIs) Open(_ context.Context, _ delivery.Binding, sealed delivery.Sealed) ([]byte, error) {
	return sealed.Bytes[len("sealed:"):], nil
}

// courier calls receivers on loopback as production calls public ones; it trusts
// the certificates of what is given.
func (w *world) courier(receiver *httptest.Server) *delivery.Courier {
	w.t.Helper()
	config := egress.Config{Allow: []egress.TargetOption{egress.AllowLoopback()}, Clock: w.clock}
	if receiver.TLS != nil {
		config.Roots = receiver.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	}
	client, err := egress.New(config)
	must(w.t, err)
	courier, err := delivery.NewCourier(delivery.CourierConfig{Opener: sealedAsIs{}, Client: client, Clock: w.clock})
	must(w.t, err)
	return courier
}

// The doctor's whole way but the queue: asked for, sent by the worker through
// courier and egress over TLS, recorded, and read by whoever asked.
func TestTheDoctorsFindingsAreRecordedInPlainWords(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	type request struct {
		header http.Header
		body   json.RawMessage
	}
	arrived := make(chan request, 1)
	receiver := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		got := request{header: r.Header}
		_ = json.NewDecoder(r.Body).Decode(&got.body)
		arrived <- got
		rw.Header().Set("Location", "https://marked.example/elsewhere")
		rw.Header().Set("Date", w.clock().Add(-time.Hour).UTC().Format(http.TimeFormat))
		rw.WriteHeader(http.StatusFound)
		_, _ = rw.Write([]byte("marked body"))
	}))
	t.Cleanup(receiver.Close)
	added, err := w.destinations.Add(ctx, w.project, destination.Addition{Name: "hook", URL: receiver.URL + "/in?marked=query"})
	must(t, err)
	id := added.Destination.ID

	asked, err := w.destinations.Examine(ctx, w.project, id)
	must(t, err)
	worker := w.worker(func(c *delivery.Config) { c.Sender = w.courier(receiver) })
	ring := delivery.TestRing{Destination: asked.Destination, ID: asked.ID, Receives: 1}
	if end := worker.AnswerTest(ctx, ring); end != (delivery.Done{}) {
		t.Fatalf("the message: %+v", end)
	}
	check, err := webhooks.NewWebhook(added.Secret)
	must(t, err)
	signed := <-arrived
	if err := check.VerifyIgnoringTimestamp(signed.body, signed.header); err != nil || signed.header.Get(webhook.HeaderID) != asked.WebhookID {
		t.Errorf("what arrived: %v, %v", err, signed.header)
	}

	got, err := w.destinations.Examination(ctx, w.project, id, asked.ID)
	must(t, err)
	if got.State(w.clock()) != delivery.TestEnded || got.Result.Class != delivery.ClassRefused || len(got.Findings) != 6 {
		t.Fatalf("recorded: %+v", got)
	}
	verdicts := map[delivery.Check]delivery.Verdict{}
	for _, f := range got.Findings {
		verdicts[f.Check] = f.Verdict
		for _, marked := range []string{"marked", "127.0.0.1", "http"} {
			if strings.Contains(f.Words, marked) {
				t.Errorf("%s holds %q: %s", f.Check, marked, f.Words)
			}
		}
	}
	for check, want := range map[delivery.Check]delivery.Verdict{
		delivery.CheckName: delivery.VerdictGood, delivery.CheckConnection: delivery.VerdictGood,
		delivery.CheckCertificate: delivery.VerdictGood, delivery.CheckAnswer: delivery.VerdictBad,
		delivery.CheckRedirect: delivery.VerdictBad, delivery.CheckClock: delivery.VerdictBad,
	} {
		if verdicts[check] != want {
			t.Errorf("%s is %s, want %s: %+v", check, verdicts[check], want, got.Findings)
		}
	}
	if w.slot().Holder != nil || len(w.events) != 1 || w.events[0].Kind != delivery.EventTest || w.events[0].Test != asked.ID {
		t.Errorf("slot %+v, events %+v", w.slot(), w.events)
	}
}

func TestAPlainTestHasNoFindingsAndIsNoExamination(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asked, err := w.destinations.SendTest(t.Context(), w.project, w.dest.ID)
	must(t, err)
	w.worker().AnswerTest(t.Context(), delivery.TestRing{Destination: w.dest, ID: asked.ID, Receives: 1})
	got, err := w.destinations.Test(t.Context(), w.project, w.dest.ID, asked.ID)
	must(t, err)
	if got.Result == nil || got.Findings != nil || w.sent[0].Examine {
		t.Errorf("recorded: %+v", got)
	}
	if _, err := w.destinations.Examination(t.Context(), w.project, w.dest.ID, asked.ID); err == nil {
		t.Error("it is read as an examination")
	}
}

func TestATestOfANewerBuildWaitsForOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asked, err := w.destinations.SendTest(t.Context(), w.project, w.dest.ID)
	must(t, err)
	_, err = w.engine.Write(t.Context(), store.Write{
		Table: w.tables.Delivery, Key: store.Key{PK: "P#" + w.project + "#D#" + w.dest.ID, SK: "T#" + asked.ID},
		Changes: []store.Change{store.Set(store.At("v"), store.Number(99))},
	})
	must(t, err)
	end := w.worker().AnswerTest(t.Context(), delivery.TestRing{Destination: w.dest, ID: asked.ID, Receives: 1})
	if end != (delivery.Keep{For: delivery.UnknownVersion}) || len(w.sent) > 0 || len(w.events) > 0 {
		t.Errorf("the message: %+v; sent %d, events %+v", end, len(w.sent), w.events)
	}
	_, err = w.destinations.Test(t.Context(), w.project, w.dest.ID, asked.ID)
	if e := new(destination.Error); !errors.As(err, &e) || e.Code != destination.CodeUnreadable {
		t.Errorf("people are told: %v", err)
	}
}

// What was signed can be told afterwards from the attempt alone.
func TestAnAttemptIsSignedAtTheInstantThatIsRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	release := w.publish()
	w.answering(func(delivery.Sending) delivery.Outcome { w.pass(2 * time.Second); return answers(204) })
	worker := w.worker(func(c *delivery.Config) {
		c.Slots = slowClaims{c.Slots, w}
	})
	worker.Answer(t.Context(), w.ring(release))
	d := w.stands(release, delivery.Delivered, "")
	if len(w.sent) != 1 || w.sent[0].At.UnixMilli() != d.Attempts[0].At.UnixMilli() {
		t.Errorf("signed at %v, recorded %v", w.sent[0].At, d.Attempts[0].At)
	}
}

// slowClaims takes a second and a half for a claim.
type slowClaims struct {
	delivery.Slots
	w *world
}

func (s slowClaims) Claim(ctx context.Context, d delivery.Destination, read delivery.Slot, h delivery.Holder) (delivery.Slot, error) {
	s.w.pass(1500 * time.Millisecond)
	return s.Slots.Claim(ctx, d, read, h)
}
