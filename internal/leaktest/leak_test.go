package leaktest_test

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"colophon/client"
)

// The marks. They are of letters and digits alone, so that no encoding changes
// them, and looked for in any case.
const (
	markHeader  = "leakedheader7c1"  // values of custom headers
	markQuery   = "leakedquery7c1"   // the queries of destinations' addresses
	markHost    = "leakedhost7c1"    // a host name that leads nowhere
	markAnswer  = "leakedanswer7c1"  // whatever a receiver sends: body, headers, reason, certificate
	markInput   = "leakedinput7c1"   // what refused requests hold
	markPath    = "leakedpath7c1"    // what refused requests hold in their method and path
	markMessage = "leakedmessage7c1" // a message that cannot be read
	markAWS     = "leakedaws7c1"     // an AWS service's error text
)

// texts of errors that only a library would write.
var libraryTexts = []string{
	"dial tcp", "connection refused", "connection reset", "broken pipe", ": no such host", "server misbehaving", "x509:", "tls:",
	"i/o timeout", "malformed http", "unexpected eof", "net/http", "context deadline", "127.0.0.53",
}

// place is where a mark belongs.
type place func(where, path string) bool

func nowhere(string, string) bool { return false }

var (
	destinationAnswers = regexp.MustCompile(`^answer (GET|POST|PATCH) /projects/[^/]+/destinations(/[^/]+(/pause|/resume)?)?$`)
	secretAnswers      = regexp.MustCompile(`^answer POST /projects/[^/]+/destinations(/[^/]+/rotate-secret)?$`)
)

// inSettings: an address stands in its destination's settings, with the images
// and the answers that hold them, and in what people ask about the destination.
func inSettings(where, path string) bool {
	return strings.HasSuffix(path, ".url.S") || destinationAnswers.MatchString(where)
}

func shownOnce(where, _ string) bool { return secretAnswers.MatchString(where) }

func inTheLog(where, _ string) bool { return where == "log" }

func inAQueue(where, _ string) bool { return strings.HasPrefix(where, "queue ") }

// leak is a mark that was found.
type leak struct{ mark, where, path, text string }

// search looks for marks in what was written. JSON is walked, so that a mark is
// found at its path, and binary values are opened.
func search(records []written, marks []string, found func(leak)) {
	for _, r := range records {
		report := func(path, text string) {
			lower := strings.ToLower(text)
			for _, mark := range marks {
				if i := strings.Index(lower, strings.ToLower(mark)); i >= 0 {
					found(leak{mark, r.place, path, text[max(0, i-60):min(len(text), i+len(mark)+60)]})
				}
			}
		}
		var value any
		if json.Unmarshal(r.text, &value) != nil {
			report("", string(r.text))
			continue
		}
		walk("", value, report)
	}
}

func walk(path string, value any, report func(path, text string)) {
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v {
			report(path+" (a name)", name)
			walk(path+"."+name, inner, report)
		}
	case []any:
		for _, inner := range v {
			walk(path+"[]", inner, report)
		}
	case string:
		report(path, v)
		var inner any
		if json.Unmarshal([]byte(v), &inner) == nil { // JSON within JSON: a body, a message
			walk(path, inner, report)
		}
		if strings.HasSuffix(path, ".B") {
			if binary, err := base64.StdEncoding.DecodeString(v); err == nil {
				report(path, string(binary))
				report(path, hex.EncodeToString(binary))
			}
		}
	}
}

// keyOf are the ways in which a signing secret could be written.
func keyOf(secret string) []string {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil || len(key) != 32 {
		panic("not a secret")
	}
	return []string{strings.TrimPrefix(secret, "whsec_"), hex.EncodeToString(key), base64.URLEncoding.EncodeToString(key)}
}

// hooks are the project's destinations by what their receivers do.
type hooks struct {
	s       *system
	project string
	id      map[string]string
	secrets []string // all that were ever shown
	ports   []string // addresses that names led to
}

func (h *hooks) add(kind, address string) {
	h.s.t.Helper()
	created, err := h.s.api.CreateDestination(h.s.t.Context(), &client.NewDestination{
		Name: kind, URL: address,
		Headers: client.NewOptNewDestinationHeaders(client.NewDestinationHeaders{
			"Authorization": "Bearer " + markHeader, "X-Api-Key": markHeader + "key",
		}),
	}, client.CreateDestinationParams{Project: h.project})
	must(h.s.t, err)
	h.id[kind] = created.Response.Destination.ID
	h.secrets = append(h.secrets, created.Response.Secret)
}

// listen adds a destination whose receiver does this with each connection, after
// it has read the request's first bytes.
func (h *hooks) listen(kind string, answer func(c net.Conn)) {
	t := h.s.t
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	var open sync.WaitGroup
	t.Cleanup(func() { l.Close(); open.Wait() })
	open.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			open.Go(func() {
				defer c.Close()
				if _, err := bufio.NewReader(c).Peek(1); err == nil {
					answer(c)
				}
			})
		}
	})
	h.at(kind, "http", l.Addr().String())
}

func (h *hooks) at(kind, scheme, address string) {
	h.s.t.Helper()
	_, port, err := net.SplitHostPort(address)
	must(h.s.t, err)
	h.ports = append(h.ports, "127.0.0.1:"+port, "[::1]:"+port)
	h.add(kind, fmt.Sprintf("%s://localhost:%s/hook?key=%s&kind=%s", scheme, port, markQuery, strings.ReplaceAll(kind, " ", "-")))
}

// says answers with bytes and closes.
func says(text string) func(net.Conn) {
	return func(c net.Conn) {
		_, _ = io.WriteString(c, text)
		_, _ = io.Copy(io.Discard, c) // the request, and the other side's close
	}
}

func answer(status int, headers string) func(net.Conn) {
	return says(fmt.Sprintf("HTTP/1.1 %d %s\r\nX-Answer: %s\r\nContent-Length: 15\r\nConnection: close\r\n%s\r\n%s",
		status, markAnswer, markAnswer, headers, markAnswer))
}

// secured serves with a certificate for these names, which nobody knows.
func (h *hooks) secured(kind string, names ...string) {
	t := h.s.t
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	certificate := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: markAnswer, Organization: []string{markAnswer}},
		DNSNames: names, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, certificate, certificate, &key.PublicKey, key)
	must(t, err)
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = quiet
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	server.StartTLS()
	t.Cleanup(server.Close)
	h.at(kind, "https", server.Listener.Addr().String())
}

func (h *hooks) publish(message string) int64 {
	h.s.t.Helper()
	release, err := h.s.api.PublishRelease(h.s.t.Context(), client.NewOptPublish(client.Publish{
		Message: client.NewOptString(message), Force: client.NewOptBool(true),
	}), client.PublishReleaseParams{Project: h.project, IdempotencyKey: client.NewOptString(message)})
	must(h.s.t, err)
	return release.Response.Number
}

// became says what a release's delivery came to.
func (h *hooks) became(kind string, release int64) *client.Delivery {
	h.s.t.Helper()
	d, err := h.s.api.GetDelivery(h.s.t.Context(), client.GetDeliveryParams{Project: h.project, Destination: h.id[kind], Release: release})
	must(h.s.t, err)
	return d
}

func TestNothingLeaks(t *testing.T) {
	read := captured(t)
	s := newSystem(t)
	ctx := t.Context()
	project, err := s.api.CreateProject(ctx, &client.NewProject{Name: "Handbook"})
	must(t, err)
	h := &hooks{s: s, project: project.ID, id: map[string]string{}}
	in := func(kind string) string { return h.id[kind] }
	_, err = s.api.PutDocument(ctx, &client.PutDocumentReqWithContentType{
		ContentType: "text/markdown", Content: client.PutDocumentReq{Data: strings.NewReader("# Guide\n")},
	}, client.PutDocumentParams{Project: h.project, Path: "guide.md"})
	must(t, err)

	// Receivers of every kind.
	var arrived sync.Map // the headers that the well-behaved one got
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived.Store(r.Header.Get("Authorization")+" "+r.Header.Get("X-Api-Key")+" "+r.URL.RawQuery, r.Header.Get("Webhook-Signature"))
		w.Header().Set("X-Answer", markAnswer)
		w.Header().Set("Set-Cookie", "session="+markAnswer)
		_, _ = io.WriteString(w, markAnswer)
	}))
	t.Cleanup(server.Close)
	h.at("fine", "http", server.Listener.Addr().String())
	classes := map[string]string{ // of the first attempt
		"fine": "delivered", "refuses": "refused", "redirects": "refused", "gone": "gone", "busy": "unavailable", "odd": "unavailable",
		"resets": "reset", "garbage": "not HTTP", "half": "bad answer", "giant": "headers too large", "hangs": "timeout",
		"closed": "connect", "unknown issuer": "tls", "another name": "tls", "no TLS": "tls", "no such name": "dns",
	}
	h.listen("refuses", answer(403, ""))
	h.listen("redirects", answer(302, "Location: https://"+markAnswer+".example/"+markAnswer+"\r\n"))
	h.listen("gone", answer(410, ""))
	h.listen("busy", answer(503, "Retry-After: "+markAnswer+"\r\nDate: "+markAnswer+"\r\n"))
	h.listen("odd", answer(999, "Retry-After: 5\r\n"))
	h.listen("resets", func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0) })
	h.listen("garbage", says(markAnswer+"\r\n\r\n"+markAnswer))
	h.listen("half", func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nX-Answer: "+markAnswer) })
	h.listen("giant", says("HTTP/1.1 200 OK\r\nX-Answer: "+strings.Repeat(markAnswer, 4000)+"\r\n\r\n"))
	h.listen("hangs", says("HTTP/1.1 200 OK\r\nX-Answer: "+markAnswer+"\r\n"))
	h.listen("no TLS", says(markAnswer+"\r\n"))
	none, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	none.Close()
	h.at("closed", "http", none.Addr().String())
	h.secured("unknown issuer", "localhost")
	h.secured("another name", markAnswer+".example")
	h.add("no such name", "https://"+markHost+".invalid-zone-7c1.com/hook?key="+markQuery)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(h.ports[0], "http://"))
	must(t, err)
	_, err = s.api.UpdateDestination(ctx, &client.DestinationChange{
		URL:     client.NewOptString("https://localhost:" + port + "/?key=" + markQuery), // https to one that speaks plain HTTP
		Headers: client.NewOptDestinationChangeHeaders(client.DestinationChangeHeaders{"Authorization": "Bearer " + markHeader}),
	}, client.UpdateDestinationParams{Project: h.project, Destination: in("no TLS")})
	must(t, err)

	// What is sent, and what becomes of it.
	h.publish("one")
	s.run()
	for kind, class := range classes {
		d := h.became(kind, 1)
		if len(d.Attempts) == 0 || d.Attempts[0].Class != class {
			t.Errorf("%s: attempts %+v, want %s", kind, d.Attempts, class)
		}
	}
	rotate := func(revoke bool) {
		rotated, err := s.api.RotateDestinationSecret(ctx, client.NewOptRotateSecret(client.RotateSecret{RevokeOld: client.NewOptBool(revoke)}),
			client.RotateDestinationSecretParams{Project: h.project, Destination: in("fine")})
		must(t, err)
		h.secrets = append(h.secrets, rotated.Response.Secret)
	}
	rotate(false)
	must(t, s.api.RemoveDestination(ctx, client.RemoveDestinationParams{Project: h.project, Destination: in("hangs")}))
	for kind := range classes {
		if kind == "hangs" {
			continue
		}
		_, err := s.api.CreateTest(ctx, client.CreateTestParams{Project: h.project, Destination: in(kind)})
		must(t, err)
		_, err = s.api.CreateExamination(ctx, client.CreateExaminationParams{Project: h.project, Destination: in(kind)})
		must(t, err)
	}
	h.publish("two")
	s.run()
	both := 0
	arrived.Range(func(got, signature any) bool {
		if want := fmt.Sprintf("Bearer %s %skey key=%s&kind=fine", markHeader, markHeader, markQuery); got != want {
			t.Errorf("the receiver got %q", got)
		}
		both = len(strings.Fields(signature.(string)))
		return true
	})
	if both != 2 {
		t.Errorf("%d signatures after the rotation", both)
	}

	// What people do about it.
	redeliver := func(kind string, release int64, ask client.Redeliver) {
		_, err := s.api.Redeliver(ctx, client.NewOptRedeliver(ask), client.RedeliverParams{Project: h.project, Destination: in(kind), Release: release})
		must(t, err)
	}
	redeliver("refuses", 2, client.Redeliver{})
	redeliver("fine", 1, client.Redeliver{Force: client.NewOptBool(true), Over: client.NewOptInt64(2)})
	_, err = s.api.TryNow(ctx, client.TryNowParams{Project: h.project, Destination: in("busy"), Release: 2})
	must(t, err)
	_, err = s.api.PauseDestination(ctx, client.PauseDestinationParams{Project: h.project, Destination: in("redirects")})
	must(t, err)
	s.run()
	rotate(true)
	rotate(false)
	must(t, s.api.RevokeOldDestinationSecret(ctx, client.OptRevokeSecret{}, client.RevokeOldDestinationSecretParams{Project: h.project, Destination: in("fine")}))
	_, err = s.api.UpdateDestination(ctx, &client.DestinationChange{
		URL:     client.NewOptString("http://localhost:" + port + "/hook?key=" + markQuery + "&kind=fine"),
		Headers: client.NewOptDestinationChangeHeaders(client.DestinationChangeHeaders{"Authorization": "Bearer " + markHeader, "X-Api-Key": markHeader + "key"}),
	}, client.UpdateDestinationParams{Project: h.project, Destination: in("fine")})
	must(t, err)
	h.publish("three")
	h.publish("three") // again, with the same key
	s.run()
	_, err = s.api.ResumeDestination(ctx, client.ResumeDestinationParams{Project: h.project, Destination: in("redirects")})
	must(t, err)

	// All that can be read.
	for _, path := range []string{"", "/documents", "/document?path=guide.md", "/releases", "/releases/3", "/releases/3/deliveries", "/releases/3/documents", "/feed?since=0", "/destinations"} {
		if status := s.ask("GET", "/projects/"+h.project+path, s.token, "", ""); status != http.StatusOK {
			t.Errorf("GET %s: %d", path, status)
		}
	}
	for kind := range classes {
		for _, path := range []string{"", "/deliveries", "/deliveries/1", "/deliveries/1/signed", "/deliveries/2"} {
			status := s.ask("GET", "/projects/"+h.project+"/destinations/"+in(kind)+path, s.token, "", "")
			if status != http.StatusOK && !(kind == "hangs" && path == "/deliveries/2") {
				t.Errorf("GET %s of %s: %d", path, kind, status)
			}
		}
	}
	examined := h.readTests()
	if examined != len(classes)-1 {
		t.Errorf("%d examinations have findings", examined)
	}

	h.askBadly()
	h.meetFaults()

	// A message and a stream record that nobody can read, and what waits for the sweeper.
	_, err = s.queues.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: aws.String(s.queue["queue"]), MessageBody: aws.String(`{"v":1,"project":"` + markMessage + `!"}`)})
	must(t, err)
	_, err = s.tables.Client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &s.tables.Delivery, Item: map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: "P#p#D#d"}, "sk": &types.AttributeValueMemberS{Value: "X#unreadable"},
		"ring": &types.AttributeValueMemberN{Value: "1"}, "url": &types.AttributeValueMemberS{Value: markQuery},
	}})
	must(t, err)
	s.overdue()
	must(t, s.sweeper.Handle(ctx))
	s.run()
	if dead, failure := s.look("dead"), s.look("failure"); dead != 1 || failure != 1 {
		t.Errorf("%d dead letters, %d records set aside; want one of each", dead, failure)
	}

	refused := s.refuseAll()
	s.record("log", read())
	judge(t, s, h, refused)
}

// readTests reads all test sends and examinations there are, and says how many
// have findings.
func (h *hooks) readTests() (examined int) {
	t := h.s.t
	t.Helper()
	for _, item := range h.s.items(h.s.tables.Delivery) {
		test, ok := strings.CutPrefix(text(item["sk"]), "T#")
		if !ok {
			continue
		}
		_, destination, _ := strings.Cut(text(item["pk"]), "#D#")
		at := "/projects/" + h.project + "/destinations/" + destination
		if status := h.s.ask("GET", at+"/tests/"+test, h.s.token, "", ""); status != http.StatusOK {
			t.Errorf("a test: %d", status)
		}
		if item["kind"] == nil {
			continue
		}
		e, err := h.s.api.GetExamination(t.Context(), client.GetExaminationParams{Project: h.project, Destination: destination, Examination: test})
		must(t, err)
		if len(e.Findings) > 0 {
			examined++
		}
	}
	return examined
}

// askBadly asks for what is refused, with marks in it.
func (h *hooks) askBadly() {
	t := h.s.t
	t.Helper()
	destinations := "/projects/" + h.project + "/destinations"
	one := destinations + "/" + h.id["fine"]
	body := func(url, name, value string) string {
		text, err := json.Marshal(map[string]any{"name": "n", "url": url, "headers": map[string]string{name: value}})
		must(t, err)
		return string(text)
	}
	const fine = "https://hooks.colophon.dev/in"
	for _, row := range []struct{ method, path, token, kind, body string }{
		{"GET", "/projects", "clp_" + markInput, "", ""},
		{"GET", "/projects", markInput, "", ""},
		{"GET", "/" + markPath, h.s.token, "", ""},
		{markPath, "/projects", h.s.token, "", ""},
		{"GET", "/projects/" + markPath, h.s.token, "", ""},
		{"GET", one + "/tests/" + markPath + "-", h.s.token, "", ""},
		{"GET", one + "/doctor/" + markPath + "-", h.s.token, "", ""},
		{"GET", one + "/deliveries/" + markPath, h.s.token, "", ""},
		{"GET", "/projects?cursor=" + markInput, h.s.token, "", ""},
		{"GET", "/projects?limit=" + markInput, h.s.token, "", ""},
		{"POST", destinations, h.s.token, "application/json", `{"name":"` + markInput},
		{"POST", destinations, h.s.token, "application/json", `{"name":"n","url":"` + fine + `","` + markInput + `":1}`},
		{"POST", destinations, h.s.token, "application/json", `{"name":"n","url":{"` + markInput + `":1}}`},
		{"POST", destinations, h.s.token, markInput + "/json", `{}`},
		{"POST", destinations, h.s.token, "application/json", body("https://"+markInput+":"+markInput+"@hooks.colophon.dev/", "X-A", "b")},
		{"POST", destinations, h.s.token, "application/json", body("http://hooks.colophon.dev/"+markInput, "X-A", "b")},
		{"POST", destinations, h.s.token, "application/json", body("https://10.0.0.1/"+markInput, "X-A", "b")},
		{"POST", destinations, h.s.token, "application/json", body("https://"+markInput+".internal/", "X-A", "b")},
		{"POST", destinations, h.s.token, "application/json", body("://"+markInput, "X-A", "b")},
		{"POST", destinations, h.s.token, "application/json", body(fine, "Host", markInput)},
		{"POST", destinations, h.s.token, "application/json", body(fine, "X-A", markInput+"\n")},
		{"POST", destinations, h.s.token, "application/json", body(fine, "X-A", markInput+strings.Repeat("a", 2040))},
		{"POST", destinations, h.s.token, "application/json", body(fine, markInput+" a", "b")},
		{"PATCH", one, h.s.token, "application/json", `{"url":"https://` + markInput + `@hooks.colophon.dev/"}`},
		{"PATCH", one, h.s.token, "application/json", `{"headers":{"Cookie":"` + markInput + `"}}`},
		{"POST", one + "/deliveries/1/redeliver", h.s.token, "application/json", `{"force":"` + markInput + `"}`},
		{"POST", "/projects/" + h.project + "/releases", h.s.token, "application/json", `{"message":1,"` + markInput + `":2}`},
	} {
		if status := h.s.ask(row.method, row.path, row.token, row.kind, row.body); status < 400 || status > 499 {
			t.Errorf("%s %s %s: answered %d", row.method, row.path, row.body, status)
		}
	}
}

// meetFaults lets AWS refuse calls of each function, with a marked text.
func (h *hooks) meetFaults() {
	t := h.s.t
	t.Helper()
	one := "/projects/" + h.project + "/destinations/" + h.id["fine"]
	for _, row := range []struct{ operation, method, path, body string }{
		{"GetItem", "GET", "/projects/" + h.project, ""},
		{"BatchGetItem", "GET", "/projects/" + h.project + "/releases/1/deliveries", ""},
		{"Query", "GET", one + "/deliveries", ""},
		{"TransactWriteItems", "POST", "/projects/" + h.project + "/releases", `{"force":true}`},
		{"TransactWriteItems", "POST", one + "/doctor", ""},
		{"Encrypt", "POST", one + "/rotate-secret", ""},
		{"Encrypt", "POST", "/projects/" + h.project + "/destinations", `{"name":"n","url":"https://hooks.colophon.dev/"}`},
	} {
		h.s.fail(row.operation, 100)
		kind := ""
		if row.body != "" {
			kind = "application/json"
		}
		if status := h.s.ask(row.method, row.path, h.s.token, kind, row.body); status < 500 {
			t.Errorf("%s fails: %s %s was answered %d", row.operation, row.method, row.path, status)
		}
		h.s.fail(row.operation, 0)
	}
	h.s.build() // with nothing opened yet
	h.publish("four")
	h.s.fail("Decrypt", 100)
	h.s.run()
	h.s.fail("Decrypt", 0)
	d := h.became("fine", 4)
	if story := strings.Join(d.Timeline, " "); !strings.Contains(story, "fault of our own") || len(d.Attempts) > 0 {
		t.Errorf("without its key: %s", story)
	}
}

// items are all of a table.
func (s *system) items(table string) (items []map[string]types.AttributeValue) {
	s.t.Helper()
	pages := dynamodb.NewScanPaginator(s.tables.Client, &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(s.t.Context())
		must(s.t, err)
		items = append(items, page.Items...)
	}
	return items
}

// overdue makes what waits due for the sweeper, and for its next try.
func (s *system) overdue() {
	s.t.Helper()
	for _, item := range s.items(s.tables.Delivery) {
		if item["sweepAt"] == nil {
			continue
		}
		_, err := s.tables.Client.UpdateItem(s.t.Context(), &dynamodb.UpdateItemInput{
			TableName: &s.tables.Delivery, Key: map[string]types.AttributeValue{"pk": item["pk"], "sk": item["sk"]},
			UpdateExpression:          aws.String("SET sweepAt = :then, tryAt = :then"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":then": &types.AttributeValueMemberN{Value: "1700000000000"}},
		})
		must(s.t, err)
	}
}

// refuseAll has a condition fail on every item, asks for what stood there, and
// says how many answers showed it.
func (s *system) refuseAll() (refused int) {
	s.t.Helper()
	for _, table := range []string{s.tables.Content, s.tables.Delivery} {
		for _, item := range s.items(table) {
			_, err := s.tables.Client.PutItem(s.t.Context(), &dynamodb.PutItemInput{
				TableName: &table, Item: map[string]types.AttributeValue{"pk": item["pk"], "sk": item["sk"]},
				ConditionExpression:                 aws.String("attribute_not_exists(pk)"),
				ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
			})
			if err == nil {
				s.t.Fatal("the condition held")
			}
			refused++
		}
	}
	return refused
}

// judge looks for each mark where it does not belong, and where it does.
func judge(t *testing.T, s *system, h *hooks, refused int) {
	t.Helper()
	belongs := map[string]place{
		markHeader: nowhere, markAnswer: nowhere, markInput: nowhere, s.token: nowhere,
		markQuery: inSettings, markHost: inSettings, markMessage: inAQueue, markAWS: inTheLog, markPath: inTheLog,
	}
	for _, secret := range h.secrets {
		for _, text := range keyOf(secret) {
			belongs[text] = shownOnce
		}
	}
	for _, text := range libraryTexts {
		belongs[text] = nowhere
	}
	for _, address := range h.ports {
		belongs[address] = nowhere
	}
	var marks []string
	for mark := range belongs {
		marks = append(marks, mark)
	}
	home := map[string]int{}
	leaks := 0
	search(s.records, marks, func(l leak) {
		if belongs[l.mark](l.where, l.path) {
			home[l.mark]++
			return
		}
		if leaks++; leaks <= 20 {
			t.Errorf("%q stands in: %s %s: …%s…", l.mark, l.where, l.path, l.text)
		}
	})

	// That the search looks, and at everything.
	for _, mark := range []string{markQuery, markHost, markMessage, markAWS, markPath} {
		if home[mark] == 0 {
			t.Errorf("%s was not found where it belongs", mark)
		}
	}
	for _, secret := range h.secrets {
		if n := home[strings.TrimPrefix(secret, "whsec_")]; n != 1 {
			t.Errorf("a secret was shown %d times", n)
		}
	}
	seen := map[string]int{}
	images, old, lines := 0, 0, 0
	for _, r := range s.records {
		words := strings.Fields(r.place)
		seen[words[0]+" "+words[min(1, len(words)-1)]]++
		switch r.place {
		case "stream GetRecords":
			images += bytes.Count(r.text, []byte(`"NewImage"`))
		case "log":
			lines = bytes.Count(r.text, []byte("\n"))
		default:
			if strings.HasPrefix(r.place, "table answer") && bytes.Contains(r.text, []byte("ConditionalCheckFailed")) && bytes.Contains(r.text, []byte(`"Item"`)) {
				old++
			}
		}
	}
	if images < 100 || old < refused || refused < 100 || lines < 50 {
		t.Errorf("looked at %d stream images, %d failed conditions with what stood there (of %d), %d log lines: too few", images, old, refused, lines)
	}
	for _, kind := range []string{"table request", "table answer", "queue request", "queue answer", "stream GetRecords", "answer GET", "answer POST", "answer PATCH", "log log"} {
		if seen[kind] == 0 {
			t.Errorf("nothing was recorded of: %s (recorded: %v)", kind, seen)
		}
	}
	t.Logf("looked at %d texts: %d stream images, %d failed conditions, %d log lines; %v", len(s.records), images, old, lines, seen)
}
