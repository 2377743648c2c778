package httpapi_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"colophon/internal/content"
	"colophon/internal/delivery"
	"colophon/internal/destination"
	"colophon/internal/httpapi"
	"colophon/internal/lambdahttp"
)

func TestEachAnswerIsNamedAndNeitherKeptNorRun(t *testing.T) {
	t.Parallel()
	h, _ := api(t, &world{})
	requests := []*http.Request{ask("GET", "/marked", "", ""), ask("OPTIONS", inProject, "", ""), ask("PATCH", inProject, "", "")}
	for _, o := range operations {
		requests = append(requests, ask(o.method, o.target, "admin", o.body), ask(o.method, o.target, "", o.body))
	}
	for _, r := range requests {
		answer := serve(h, r)
		for name, want := range map[string]string{
			"X-Request-Id": "request-1", "X-Content-Type-Options": "nosniff", "Strict-Transport-Security": "max-age=31536000", "Cache-Control": "no-store",
			"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox", "Referrer-Policy": "no-referrer",
		} {
			if got := answer.Header().Get(name); got != want {
				t.Errorf("%s %s: %s is %q", r.Method, r.URL, name, got)
			}
		}
		for name := range answer.Header() {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("%s %s: %s is there for pages of other origins", r.Method, r.URL, name)
			}
		}
	}
}

func TestOptionsSayWhatAnAddressTakesWithoutAToken(t *testing.T) {
	t.Parallel()
	h, _ := api(t, &world{})
	for target, want := range map[string]string{
		inProject + "/releases": "GET, HEAD, POST, OPTIONS",
		inProject + "/document": "DELETE, GET, HEAD, PUT, OPTIONS",
		inDelivery + "/try-now": "POST, OPTIONS",
		inDestination:           "DELETE, GET, HEAD, PATCH, OPTIONS",
	} {
		r := ask("OPTIONS", target, "", "", "Origin", "https://pages.example", "Access-Control-Request-Method", "POST")
		answer := serve(h, r)
		if answer.Code != http.StatusNoContent || answer.Header().Get("Allow") != want || answer.Body.Len() > 0 {
			t.Errorf("%s: got %d, %q", target, answer.Code, answer.Header().Get("Allow"))
		}
	}
	if answer := serve(h, ask("OPTIONS", "/marked", "", "")); answer.Code != http.StatusNotFound {
		t.Errorf("got %d", answer.Code)
	}
}

func TestARequestThroughTheGatewayHasItsIDAndAddress(t *testing.T) {
	t.Parallel()
	w := &publishing{}
	handler, err := httpapi.New(httpapi.Config{
		Tokens: w, Content: w, Announcing: w, Log: quiet(), Clock: time.Now, RequestID: func() string { return "made up" },
	})
	if err != nil {
		t.Fatal(err)
	}
	response, err := lambdahttp.Handle(handler)(t.Context(), events.APIGatewayProxyRequest{
		Resource: "/{proxy+}", HTTPMethod: "POST", Path: inProject + "/releases",
		PathParameters:    map[string]string{"proxy": strings.TrimPrefix(inProject+"/releases", "/")},
		MultiValueHeaders: map[string][]string{"Authorization": {"Bearer editor"}, "Host": {"attacker.example"}, "X-Forwarded-Host": {"attacker.example"}},
		RequestContext: events.APIGatewayProxyRequestContext{
			RequestID: "gateway-1", Stage: "v1", DomainName: "api.example.com", Path: "/v1" + inProject + "/releases",
		},
	})
	if err != nil || response.StatusCode != http.StatusCreated {
		t.Fatalf("got %+v, %v", response, err)
	}
	if got := http.Header(response.MultiValueHeaders).Get("X-Request-Id"); got != "gateway-1" {
		t.Errorf("the request is named %q", got)
	}
	if w.asked.BaseURL != "https://api.example.com/v1" || w.asked.Who != "somebody" || w.asked.WhoID != "tok_somebody" {
		t.Errorf("published as %+v", w.asked)
	}
}

func TestAPublishSaysWhatWasAskedAndAReplaySaysSo(t *testing.T) {
	t.Parallel()
	w := &publishing{published: content.Published{Release: release, Replayed: true}}
	h := handlerOf(t, w)
	first := serve(h, ask("POST", inProject+"/releases", "editor", `{"message":"Hours","force":true}`, "Idempotency-Key", "a-key"))
	if w.asked.Message != "Hours" || !w.asked.Force || w.asked.IdempotencyKey != "a-key" {
		t.Errorf("asked %+v", w.asked)
	}
	if first.Code != http.StatusCreated || first.Header().Get("Idempotent-Replayed") != "true" {
		t.Errorf("got %d %v", first.Code, first.Header())
	}
	w.published.Replayed = false
	again := serve(h, ask("POST", inProject+"/releases", "editor", "", "Idempotency-Key", "a-key"))
	if again.Body.String() != first.Body.String() || again.Header()["Idempotent-Replayed"] != nil {
		t.Errorf("got %s and %s", first.Body, again.Body)
	}
	if w.asked.Message != "" || w.asked.Force {
		t.Errorf("asked %+v", w.asked)
	}
	assertJSON(t, first, `{
		"project": "prj_abcdefghijklmnop2345", "number": 6, "message": "Hours", "documents": 1,
		"publishedAt": "2026-11-29T23:30:00.000Z", "publishedBy": "somebody", "publishedByTokenId": "tok_somebody",
		"deliveries": [{
			"destination": "dst_abcdef234567",
			"link": "/projects/prj_abcdefghijklmnop2345/destinations/dst_abcdef234567/deliveries/6"
		}]
	}`)
}

func TestADocumentComesAsItWasSaved(t *testing.T) {
	t.Parallel()
	h, _ := api(t, &world{})
	const target = inProject + "/document?path=guide/index.md"
	answer := serve(h, ask("GET", target, "viewer", ""))
	if answer.Code != 200 || answer.Body.String() != "# Guide\n" || answer.Header().Get("ETag") != `"7"` ||
		answer.Header().Get("Content-Type") != "text/markdown; charset=utf-8" || answer.Header().Get("Last-Modified") != "Sun, 29 Nov 2026 23:30:00 GMT" {
		t.Errorf("got %d %s %v", answer.Code, answer.Body, answer.Header())
	}
	for header, status := range map[string]int{
		`"7"`: 304, `W/"7"`: 304, `"6", "7"`: 304, "*": 304, `"6"`: 200, "7": 200,
	} {
		answer := serve(h, ask("GET", target, "viewer", "", "If-None-Match", header))
		if answer.Code != status || (status == 304) != (answer.Body.Len() == 0) || answer.Header().Get("ETag") != `"7"` {
			t.Errorf("%s: got %d %s", header, answer.Code, answer.Body)
		}
	}
	published := serve(h, ask("GET", inProject+"/releases/6/document?path=guide/index.md", "viewer", ""))
	if published.Body.String() != "# Guide\n" || published.Header().Get("ETag") != `"`+document.Hash.String()+`"` {
		t.Errorf("got %s %v", published.Body, published.Header())
	}
}

func TestASaveSaysWhatToSaveAndOverWhat(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, path string
		headers    []string
		want       content.Save
		status     int
	}{
		{"a type that is named", "a.md", []string{"Content-Type", "text/html; charset=iso-8859-1"}, content.Save{Type: "text/html; charset=iso-8859-1"}, 200},
		{"a type from the path", "a.MD", nil, content.Save{Type: "text/markdown; charset=utf-8"}, 200},
		{"curl's own type", "a/b.html", []string{"Content-Type", "application/x-www-form-urlencoded"}, content.Save{Type: "text/html; charset=utf-8"}, 200},
		{"no ending", "README", nil, content.Save{Type: "text/plain; charset=utf-8"}, 200},
		{"JSON", "a.json", nil, content.Save{Type: "application/json"}, 200},
		{"over a version", "a.txt", []string{"If-Match", `"7"`}, content.Save{Type: "text/plain; charset=utf-8", IfVersion: 7}, 200},
		{"where none is", "a.txt", []string{"If-None-Match", "*"}, content.Save{Type: "text/plain; charset=utf-8", IfAbsent: true}, 201},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := &world{}
			h, _ := api(t, w)
			body := "\x00{\"a\": 1, \"a\": über"
			answer := serve(h, ask("PUT", inProject+"/document?path="+test.path, "editor", body, test.headers...))
			test.want.Path, test.want.Content, test.want.Who = test.path, []byte(body), "somebody"
			test.want.WhoID = "tok_somebody"
			if answer.Code != test.status || !reflect.DeepEqual(w.saved, test.want) || answer.Header().Get("ETag") != `"7"` {
				t.Errorf("got %d %v, saved %+v", answer.Code, answer.Header(), w.saved)
			}
		})
	}
}

func TestADeletionSaysWhatToDeleteAndWhoAsks(t *testing.T) {
	t.Parallel()
	for header, version := range map[string]int64{"": 0, `"7"`: 7} {
		w := &world{}
		h, _ := api(t, w)
		var headers []string
		if header != "" {
			headers = []string{"If-Match", header}
		}
		answer := serve(h, ask("DELETE", inProject+"/document?path=a.md", "editor", "", headers...))
		want := content.Deletion{Path: "a.md", IfVersion: version, Who: "somebody", WhoID: "tok_somebody"}
		if answer.Code != http.StatusNoContent || w.deleted != want {
			t.Errorf("got %d, deleted %+v", answer.Code, w.deleted)
		}
	}
}

func TestADeliveryIsToldWithItsAttempts(t *testing.T) {
	t.Parallel()
	later := now.Add(-time.Hour)
	d := destination.Delivery{Destination: place, Newest: 7, Replaced: []int64{5, 4}, Delivery: delivery.Delivery{
		Key: duty.Key, Status: delivery.Skipped, Reason: delivery.Superseded, Successor: 7, Round: 2, WebhookID: "msg_a",
		Tries: 1, Numbered: 22, Over: 6, CreatedAt: later, EndedAt: now, TryAt: now,
		Before: &delivery.Result{Status: delivery.Failed, Reason: delivery.Reason(delivery.ClassRefused), Round: 1, At: later},
		Attempts: []delivery.Attempt{
			{Number: 21, Round: 1, At: later, Elapsed: 1500 * time.Millisecond, Class: delivery.ClassUnavailable, Status: 503,
				Received: delivery.Answered, Asked: 1500 * time.Millisecond, Used: time.Minute, Token: "marked", By: delivery.ByRecord},
			{Number: 22, Round: 2, At: now, Class: delivery.ClassTLS, Detail: "expired", Received: delivery.NotReceived, Late: "delivered"},
		},
	}}
	answer := serve(handlerOf(t, &delivering{delivery: d}), ask("GET", inDelivery, "viewer", ""))
	var got map[string]any
	decode(t, answer.Body.Bytes(), &got)
	story, ok := got["timeline"].([]any)
	if !ok || len(story) < 3 {
		t.Errorf("the story is %v", got["timeline"])
	}
	delete(got, "timeline")
	var want map[string]any
	decode(t, []byte(`{
		"project": "prj_abcdefghijklmnop2345", "destination": "dst_abcdef234567", "destinationName": "Website", "release": 6,
		"webhookId": "msg_a", "state": "skipped", "reason": "superseded", "successor": 7, "replaced": [5, 4], "sending": false,
		"round": 2, "tries": 1, "earlierAttempts": 20, "over": 6, "newest": 7,
		"queuedAt": "2026-11-29T22:30:00.000Z", "endedAt": "2026-11-29T23:30:00.000Z",
		"before": {"state": "failed", "reason": "refused", "round": 1, "at": "2026-11-29T22:30:00.000Z"},
		"attempts": [
			{"number": 21, "round": 1, "at": "2026-11-29T22:30:00.000Z", "milliseconds": 1500, "class": "unavailable", "status": 503,
				"received": "answered", "retryAfterAsked": 2, "retryAfterUsed": 60},
			{"number": 22, "round": 2, "at": "2026-11-29T23:30:00.000Z", "milliseconds": 0, "class": "tls", "detail": "expired",
				"received": "not-received", "late": "delivered"}
		],
		"link": "/projects/prj_abcdefghijklmnop2345/destinations/dst_abcdef234567/deliveries/6"
	}`), &want)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %s", answer.Body)
	}
}

func TestADamagedDeliveryIsStillToldInTheDescriptionsWords(t *testing.T) {
	t.Parallel()
	d := destination.Delivery{Destination: place, Delivery: delivery.Delivery{Key: duty.Key, Status: "???", Fault: delivery.FaultUnreadable}}
	answer := serve(handlerOf(t, &delivering{delivery: d}), ask("GET", inDelivery, "viewer", ""))
	var got struct{ State string }
	decode(t, answer.Body.Bytes(), &got)
	if answer.Code != 200 || got.State != "queued" {
		t.Errorf("got %d %s", answer.Code, answer.Body)
	}
}

func TestATestIsToldWithItsState(t *testing.T) {
	t.Parallel()
	base := delivery.TestSend{Destination: delivery.Destination{Project: ours, ID: website}, ID: "a", CreatedAt: now}
	tests := map[string]func(*delivery.TestSend){
		"waiting":  func(*delivery.TestSend) {},
		"not-sent": func(s *delivery.TestSend) { s.CreatedAt = now.Add(-3 * time.Minute) },
		"sending":  func(s *delivery.TestSend) { s.Token, s.Until = "a", now.Add(time.Second) },
		"unknown":  func(s *delivery.TestSend) { s.Token, s.Until = "a", now },
		"delivered": func(s *delivery.TestSend) {
			s.Result = &delivery.Attempt{Class: delivery.ClassDelivered, Status: 204, Received: delivery.Answered}
		},
		"failed": func(s *delivery.TestSend) {
			s.Result = &delivery.Attempt{Class: delivery.ClassDNS, Received: delivery.NotReceived}
		},
	}
	for state, change := range tests {
		s := base
		change(&s)
		answer := serve(handlerOf(t, &delivering{test: s}), ask("GET", inDestination+"/tests/a", "viewer", ""))
		var got struct {
			State, Link string
			Attempt     *struct{ Class string }
		}
		decode(t, answer.Body.Bytes(), &got)
		if got.State != state || got.Link != inDestination+"/tests/a" || (got.Attempt != nil) != (s.Result != nil) {
			t.Errorf("%s: got %s", state, answer.Body)
		}
	}
}

func TestAnExaminationIsToldWithItsFindings(t *testing.T) {
	t.Parallel()
	s := delivery.TestSend{
		Destination: delivery.Destination{Project: ours, ID: website}, ID: "a", CreatedAt: now, Kind: delivery.TestDoctor,
		Result: &delivery.Attempt{Class: delivery.ClassTLS, Received: delivery.NotReceived},
		Findings: []delivery.Finding{
			{Check: delivery.CheckName, Verdict: delivery.VerdictGood, Words: "It is known."},
			{Check: delivery.CheckConnection, Verdict: delivery.VerdictGood, Words: "It stood."},
			{Check: delivery.CheckCertificate, Verdict: delivery.VerdictBad, Words: "It ended."},
			{Check: delivery.CheckAnswer, Verdict: delivery.VerdictNotReached, Words: "It did not come to this."},
			{Check: delivery.CheckRedirect, Verdict: delivery.VerdictNotReached, Words: "It did not come to this."},
			{Check: delivery.CheckClock, Verdict: delivery.VerdictWarning, Words: "It is late."},
		},
	}
	answer := serve(handlerOf(t, &delivering{test: s}), ask("GET", inDestination+"/doctor/a", "viewer", ""))
	var got struct {
		State, Link string
		Attempt     struct{ Class string }
		Findings    []delivery.Finding
	}
	decode(t, answer.Body.Bytes(), &got)
	if got.State != "failed" || got.Attempt.Class != "tls" || !slices.Equal(got.Findings, s.Findings) || got.Link != inDestination+"/doctor/a" {
		t.Errorf("got %s", answer.Body)
	}
	s.Result, s.Findings = nil, nil
	answer = serve(handlerOf(t, &delivering{test: s}), ask("GET", inDestination+"/doctor/a", "viewer", ""))
	if !strings.Contains(answer.Body.String(), `"state":"waiting"`) || !strings.Contains(answer.Body.String(), `"findings":[]`) {
		t.Errorf("before it has ended: %s", answer.Body)
	}
}

// A receiver's signature can be made again from the answer and the secret alone.
func TestWhatWasSignedIsToldByteForByte(t *testing.T) {
	t.Parallel()
	d := destination.Delivery{Destination: place, Delivery: duty.Delivery}
	d.Body = []byte("{\"message\":\"<&> Küche \u2028 \\u0000 🦊\"}")
	d.Attempts = []delivery.Attempt{
		{Number: 7, Round: 1, At: now.Add(999 * time.Millisecond)}, {Number: 8, Round: 2, At: now.Add(time.Minute), By: delivery.BySettle},
	}
	answer := serve(handlerOf(t, &delivering{delivery: d}), ask("GET", inDelivery+"/signed", "viewer", ""))
	var got struct {
		WebhookID, Body, BodyDigest string
		BodyBytes                   int
		Attempts                    []struct{ Number, Timestamp int64 }
	}
	decode(t, answer.Body.Bytes(), &got)
	sum := sha256.Sum256(d.Body)
	if got.WebhookID != d.WebhookID || got.Body != string(d.Body) || got.BodyBytes != len(d.Body) || got.BodyDigest != hex.EncodeToString(sum[:]) {
		t.Errorf("got %s", answer.Body)
	}
	if len(got.Attempts) != 2 || got.Attempts[0].Number != 7 || got.Attempts[0].Timestamp != now.Unix() || got.Attempts[1].Timestamp != now.Unix()+60 {
		t.Errorf("got %s", answer.Body)
	}
}

func TestADestinationIsToldWithoutItsSecrets(t *testing.T) {
	t.Parallel()
	h, _ := api(t, &world{})
	read := serve(h, ask("GET", inDestination, "admin", ""))
	assertJSON(t, read, `{
		"id": "dst_abcdef234567", "project": "prj_abcdefghijklmnop2345", "name": "Website", "url": "https://www.example.com/",
		"state": "active", "slow": false, "damaged": false, "headers": ["Authorization"], "etag": "\"3\"",
		"createdAt": "2026-11-29T23:30:00.000Z", "updatedAt": "2026-11-29T23:30:00.000Z"
	}`)
	if read.Header().Get("ETag") != `"3"` {
		t.Errorf("the ETag is %q", read.Header().Get("ETag"))
	}
	var added struct {
		Secret      string
		Destination json.RawMessage
	}
	decode(t, serve(h, ask("POST", inProject+"/destinations", "admin", `{"name":"a","url":"https://a.example"}`)).Body.Bytes(), &added)
	if added.Secret != "whsec_a" || string(added.Destination) != read.Body.String() {
		t.Errorf("got %+v", added)
	}
	var resumed struct{ Offer int64 }
	decode(t, serve(h, ask("POST", inDestination+"/resume", "admin", "")).Body.Bytes(), &resumed)
	if resumed.Offer != 6 {
		t.Errorf("offered is %d", resumed.Offer)
	}
}

func TestOnlyAdminsSeeAWholeAddress(t *testing.T) {
	t.Parallel()
	h, _ := api(t, &world{place: func(d *destination.Destination) { d.URL = "https://hooks.example.com:8443/marked?key=marked" }})
	const shown = "https://hooks.example.com:8443/…"
	for _, role := range []string{"viewer", "editor", "admin", "viewer-of-ours", "editor-of-ours", "admin-of-ours"} {
		whole := strings.HasPrefix(role, "admin")
		for _, target := range []string{inProject + "/destinations", inDestination} {
			text := serve(h, ask("GET", target, role, "")).Body.String()
			if strings.Contains(text, "marked") != whole || strings.Contains(text, shown) == whole {
				t.Errorf("%s reads at %s: %s", role, target, text)
			}
		}
		for _, o := range operations { // whatever else there is to read, or to send
			if text := serve(h, ask(o.method, o.target, role, o.body)).Body.String(); !whole && strings.Contains(text, "marked") {
				t.Errorf("%s is shown the address by %s %s: %s", role, o.method, o.target, text)
			}
		}
	}
}

func TestReplacedSecretsAreListedByTheirPositions(t *testing.T) {
	t.Parallel()
	h, _ := api(t, &world{place: func(d *destination.Destination) {
		d.PreviousSecrets = []time.Time{now.Add(24 * time.Hour), now.Add(time.Hour)}
		d.PreviousUntil = d.PreviousSecrets[0]
	}})
	var got struct {
		PreviousSecretUntil time.Time
		PreviousSecrets     []struct {
			Position int
			Until    time.Time
		}
	}
	decode(t, serve(h, ask("GET", inDestination, "viewer", "")).Body.Bytes(), &got)
	if len(got.PreviousSecrets) != 2 || got.PreviousSecrets[0].Position != 1 || !got.PreviousSecrets[0].Until.Equal(now.Add(24*time.Hour)) ||
		got.PreviousSecrets[1].Position != 2 || !got.PreviousSecretUntil.Equal(now.Add(24*time.Hour)) {
		t.Errorf("got %+v", got)
	}
}

func TestListsAreCutIntoPages(t *testing.T) {
	t.Parallel()
	w := &publishing{}
	for _, path := range []string{"a", "b", "c", "d", "e"} {
		w.documents = append(w.documents, content.Document{Path: path})
	}
	h := handlerOf(t, w)
	var seen []string
	cursor := ""
	for range 4 {
		var page struct {
			Documents []struct{ Path string }
			Next      string
		}
		target := inProject + "/releases/6/documents?limit=2"
		if cursor != "" {
			target += "&cursor=" + cursor
		}
		decode(t, serve(h, ask("GET", target, "viewer", "")).Body.Bytes(), &page)
		for _, d := range page.Documents {
			seen = append(seen, d.Path)
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if got := strings.Join(seen, ""); got != "abcde" || cursor != "" {
		t.Errorf("got %q, and then %q", got, cursor)
	}

	d := &delivering{}
	first := serve(handlerOf(t, d), ask("GET", inDestination+"/deliveries?from=2&to=9&limit=3", "viewer", ""))
	if want := (destination.Range{From: 2, To: 9, Limit: 3}); d.asked != want {
		t.Errorf("asked for %+v", d.asked)
	}
	var page struct{ Next string }
	decode(t, first.Body.Bytes(), &page)
	serve(handlerOf(t, d), ask("GET", inDestination+"/deliveries?from=2&to=9&limit=3&cursor="+page.Next, "viewer", ""))
	if want := (destination.Range{From: 2, To: 5, Limit: 3}); d.asked != want {
		t.Errorf("asked for %+v", d.asked)
	}
}

func TestEmptyListsAreListsAndNotNull(t *testing.T) {
	t.Parallel()
	h, _ := api(t, &world{})
	assertJSON(t, serve(h, ask("GET", inProject+"/documents", "viewer", "")), `{"documents": []}`)
}

func TestAnAPIIsNotMadeOfHalfAConfiguration(t *testing.T) {
	t.Parallel()
	if _, err := httpapi.New(httpapi.Config{}); err == nil {
		t.Error("it was made")
	}
}

func assertJSON(t *testing.T, answer *httptest.ResponseRecorder, want string) {
	t.Helper()
	var got, wanted any
	decode(t, answer.Body.Bytes(), &got)
	decode(t, []byte(want), &wanted)
	if !reflect.DeepEqual(got, wanted) {
		t.Errorf("got %s", answer.Body)
	}
}
