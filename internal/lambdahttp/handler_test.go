package lambdahttp_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
	"pgregory.net/rapid"

	"colophon/internal/lambdahttp"
)

// asked is what a handler sees of a request.
type asked struct {
	Method, Path, Host, Body string
	Query                    url.Values
	Header                   http.Header
	Length                   int64
}

// answer is what a handler does and a caller sees. Writes are the body's parts.
type answer struct {
	Status int // 0: the handler does not say
	Header http.Header
	Late   http.Header // set after the status, so without effect
	Writes []string
}

// play makes a handler that notes what it was asked and answers as told.
func play(seen *asked, a answer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(err)
		}
		*seen = asked{
			Method: r.Method, Path: r.URL.Path, Host: r.Host, Body: string(body),
			Query: r.URL.Query(), Header: r.Header.Clone(), Length: r.ContentLength,
		}
		for name, values := range a.Header {
			w.Header()[name] = values
		}
		if a.Status != 0 {
			w.WriteHeader(a.Status)
			for name, values := range a.Late {
				w.Header()[name] = values
			}
			w.WriteHeader(http.StatusTeapot) // a second status counts no more than late headers do
		}
		for _, part := range a.Writes {
			_, _ = io.WriteString(w, part)
		}
	})
}

var token = rapid.StringMatching(`[a-z]{1,8}`)

func drawRequest(t *rapid.T) (*http.Request, []byte) {
	method := rapid.SampledFrom([]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}).Draw(t, "method")
	segments := rapid.SliceOfN(rapid.StringMatching(`[a-zA-Z0-9 %+;,@:$&=~äß€-]{1,6}`), 0, 4).Draw(t, "segments")
	target := url.URL{Scheme: "http", Path: "/" + strings.Join(segments, "/")}
	query := make(url.Values)
	for range rapid.IntRange(0, 4).Draw(t, "parameters") {
		query.Add(rapid.String().Draw(t, "parameter"), rapid.String().Draw(t, "value"))
	}
	target.RawQuery = query.Encode()
	var body []byte
	if method != "GET" && method != "HEAD" {
		body = rapid.SliceOfN(rapid.Byte(), 0, 64).Draw(t, "body")
		if rapid.Bool().Draw(t, "text") {
			body = []byte(rapid.String().Draw(t, "body text"))
		}
	}
	r := newRequest(method, target)
	for range rapid.IntRange(0, 4).Draw(t, "headers") {
		name := "X-" + token.Draw(t, "header")
		r.Header.Add(name, rapid.StringMatching(`[!-~]([ -~]{0,10}[!-~])?`).Draw(t, "header value"))
	}
	return r, body
}

func drawAnswer(t *rapid.T) answer {
	a := answer{Header: make(http.Header), Late: http.Header{"X-Late": {"1"}}}
	if rapid.Bool().Draw(t, "says a status") {
		a.Status = rapid.SampledFrom([]int{200, 201, 202, 204, 303, 304, 400, 404, 409, 500, 503}).Draw(t, "status")
	}
	for range rapid.IntRange(0, 4).Draw(t, "answer headers") {
		a.Header.Add("X-"+token.Draw(t, "answer header"), rapid.StringMatching(`[!-~]([ -~]{0,10}[!-~])?`).Draw(t, "answer value"))
	}
	for range rapid.IntRange(0, 2).Draw(t, "cookies") {
		a.Header.Add("Set-Cookie", token.Draw(t, "cookie")+"=1")
	}
	switch rapid.IntRange(0, 3).Draw(t, "content type") {
	case 0:
		a.Header.Set("Content-Type", "application/json")
	case 1:
		a.Header["Content-Type"] = nil // asks for none
	}
	for range rapid.IntRange(0, 3).Draw(t, "writes") {
		part := rapid.OneOf(
			rapid.String(),
			rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 32), func(b []byte) string { return string(b) }),
			rapid.SampledFrom([]string{"<ht", "ml>", "\x89PNG\r\n\x1a\n", "{}", strings.Repeat("x", 600), strings.Repeat("ä", 2000)}),
		).Draw(t, "part")
		a.Writes = append(a.Writes, part)
	}
	return a
}

// event is the event that the gateway makes of a request: the path decoded
// once, headers and query values as lists beside the last of each.
func event(r *http.Request, body []byte, encoded bool) events.APIGatewayProxyRequest {
	e := events.APIGatewayProxyRequest{
		Resource: "/{proxy+}", Path: r.URL.Path, HTTPMethod: r.Method,
		PathParameters:    map[string]string{"proxy": strings.TrimPrefix(r.URL.Path, "/")},
		MultiValueHeaders: r.Header.Clone(), Headers: make(map[string]string),
		MultiValueQueryStringParameters: r.URL.Query(), QueryStringParameters: make(map[string]string),
		Body: string(body),
		RequestContext: events.APIGatewayProxyRequestContext{
			Stage: "v1", DomainName: r.Host, RequestID: "request", Path: "/v1" + r.URL.Path,
			Identity: events.APIGatewayRequestIdentity{SourceIP: "192.0.2.1"},
		},
	}
	e.MultiValueHeaders["Host"] = []string{"in-header.example"}
	if r.URL.Path == "/" {
		e.Resource, e.PathParameters = "/", nil
	}
	for name, values := range e.MultiValueHeaders {
		e.Headers[name] = values[len(values)-1]
	}
	for name, values := range e.MultiValueQueryStringParameters {
		e.QueryStringParameters[name] = values[len(values)-1]
	}
	if encoded {
		e.Body, e.IsBase64Encoded = base64.StdEncoding.EncodeToString(body), true
	}
	return e
}

func TestHandlerSeesAndAnswersWhatItDoesUnderNetHTTP(t *testing.T) {
	t.Parallel()
	compare := newComparison(t)
	rapid.Check(t, func(t *rapid.T) {
		r, body := drawRequest(t)
		a := drawAnswer(t)
		compare(t, r, body, !utf8.Valid(body) || rapid.Bool().Draw(t, "base64"), a)
	})
}

// What generated requests and answers once found.
func TestAnswersThatHaveNoBodyOrNoTextAreThoseOfNetHTTP(t *testing.T) {
	t.Parallel()
	compare := newComparison(t)
	for name, row := range map[string]struct {
		method, body string
		answer       answer
	}{
		"a type in a 304":              {method: "POST", body: "\x80", answer: answer{Status: http.StatusNotModified}},
		"a body in the answer to HEAD": {method: "HEAD", answer: answer{Writes: []string{"A"}}},
		"bytes that are no text":       {method: "GET", answer: answer{Writes: []string{"\x80"}}},
	} {
		t.Run(name, func(t *testing.T) {
			row.answer.Header = http.Header{"Content-Type": {"application/json"}}
			r := newRequest(row.method, url.URL{Scheme: "http", Path: "/"})
			compare(t, r, []byte(row.body), !utf8.ValidString(row.body), row.answer)
		})
	}
}

func newRequest(method string, target url.URL) *http.Request {
	header := http.Header{"User-Agent": {"test"}, "Accept-Encoding": {"identity"}}
	return &http.Request{Method: method, URL: &target, Header: header}
}

// newComparison makes a check that a handler sees and its caller gets the same
// over the wire and through an event. One check at a time.
func newComparison(t *testing.T) func(t rapid.TB, r *http.Request, body []byte, encoded bool, a answer) {
	var current http.Handler
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { current.ServeHTTP(w, r) }))
	t.Cleanup(server.Close)
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return func(t rapid.TB, r *http.Request, body []byte, encoded bool, a answer) {
		t.Helper()
		r.Host = "colophon.example"
		var wantAsked, gotAsked asked
		current = play(&wantAsked, a)
		want := overTheWire(t, r, body, address)
		fn := lambdahttp.Handle(play(&gotAsked, a))
		got := overTheEvent(t, fn, event(r, body, encoded))

		// The connection's own headers, and the length that the wire adds.
		for _, name := range []string{"Content-Length", "Connection"} {
			wantAsked.Header.Del(name)
		}
		if !reflect.DeepEqual(wantAsked, gotAsked) {
			t.Fatalf("the handler saw\n%+v\nand through the event\n%+v", wantAsked, gotAsked)
		}
		if !reflect.DeepEqual(want, got) {
			t.Fatalf("the caller saw\n%+v\nand through the event\n%+v", want, got)
		}
	}
}

// told is what a caller sees of an answer.
type told struct {
	Status int
	Header http.Header
	Body   string
}

func overTheWire(t rapid.TB, r *http.Request, body []byte, server *url.URL) told {
	sent := r.Clone(context.Background())
	sent.URL.Host = server.Host
	if len(body) > 0 {
		sent.Body, sent.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	answer, err := http.DefaultTransport.RoundTrip(sent)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	// The server's clock, and what the gateway counts for itself.
	answer.Header.Del("Date")
	answer.Header.Del("Content-Length")
	return told{answer.StatusCode, answer.Header, string(content)}
}

func overTheEvent(t rapid.TB, fn func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error), e events.APIGatewayProxyRequest) told {
	// Both ways through JSON, as the runtime does.
	var in events.APIGatewayProxyRequest
	roundTrip(t, e, &in)
	response, err := fn(context.Background(), in)
	if err != nil {
		t.Fatal(err)
	}
	var out events.APIGatewayProxyResponse
	roundTrip(t, response, &out)
	body := []byte(out.Body)
	if out.IsBase64Encoded {
		if body, err = base64.StdEncoding.DecodeString(out.Body); err != nil {
			t.Fatal(err)
		}
	}
	header := http.Header(out.MultiValueHeaders)
	for name, values := range header {
		if len(values) == 0 {
			delete(header, name)
		}
	}
	return told{out.StatusCode, header, string(body)}
}

func roundTrip(t rapid.TB, from, to any) {
	text, err := json.Marshal(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, to); err != nil {
		t.Fatal(err)
	}
}

func TestEventsAreReadAsTheGatewayMeansThem(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		method, target, host, body string
		header                     http.Header
		gateway                    lambdahttp.Gateway
	}{
		"stage.json": {
			method: "GET", target: "/projects/prj_7f3kq4x2m5wd4c6bhn2a/document?path=guide%2Findex.md", host: "a1b2c3d4e5.execute-api.eu-west-1.amazonaws.com",
			header:  http.Header{"Authorization": {"Bearer clp_0"}, "Accept": {"*/*"}, "X-Forwarded-For": {"198.51.100.7, 192.0.2.60"}},
			gateway: lambdahttp.Gateway{RequestID: "request-1", Stage: "v1", Address: "https://a1b2c3d4e5.execute-api.eu-west-1.amazonaws.com/v1"},
		},
		"root.json": {
			method: "GET", target: "/", host: "a1b2c3d4e5.execute-api.eu-west-1.amazonaws.com", header: http.Header{},
			gateway: lambdahttp.Gateway{RequestID: "request-2", Stage: "v1", Address: "https://a1b2c3d4e5.execute-api.eu-west-1.amazonaws.com/v1"},
		},
		"custom-domain-base-path.json": {
			method: "POST", target: "/projects?tag=a&tag=b+c", host: "docs.example.com", body: `{"name":"Straße"}`,
			header:  http.Header{"Content-Type": {"application/json"}, "X-Twice": {"1", "2"}},
			gateway: lambdahttp.Gateway{RequestID: "request-3", Stage: "v1", Address: "https://docs.example.com/colophon"},
		},
		"custom-domain.json": {
			method: "GET", target: "/projects/", host: "docs.example.com", header: http.Header{},
			gateway: lambdahttp.Gateway{RequestID: "request-4", Stage: "v1", Address: "https://docs.example.com"},
		},
		"base64.json": {
			method: "PUT", target: "/projects/prj_7f3kq4x2m5wd4c6bhn2a/document?path=logo.bin", host: "a1b2c3d4e5.execute-api.eu-west-1.amazonaws.com", body: "\x00\xff\xfe",
			header:  http.Header{"Content-Type": {"application/octet-stream"}},
			gateway: lambdahttp.Gateway{RequestID: "request-5", Stage: "v1", Address: "https://a1b2c3d4e5.execute-api.eu-west-1.amazonaws.com/v1"},
		},
		"console-test.json": {
			method: "GET", target: "/health?verbose=1", host: "testPrefix.testDomainName", header: http.Header{"Accept": {"application/json"}},
			gateway: lambdahttp.Gateway{RequestID: "request-6", Stage: "test-invoke-stage", Address: "https://testPrefix.testDomainName/test-invoke-stage"},
		},
	}
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(tests) {
		t.Errorf("%d events in testdata, %d of them tested", len(files), len(tests))
	}
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join("testdata", name))
			if err != nil {
				t.Fatal(err)
			}
			var e events.APIGatewayProxyRequest
			if err := json.Unmarshal(text, &e); err != nil {
				t.Fatal(err)
			}
			handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if r.Method != want.method || r.RequestURI != want.target || r.Host != want.host || string(body) != want.body {
					t.Errorf("got %s %s at %s with %q", r.Method, r.RequestURI, r.Host, body)
				}
				if !reflect.DeepEqual(r.Header, want.header) {
					t.Errorf("got header %v, want %v", r.Header, want.header)
				}
				want.gateway.APIID, want.gateway.Domain = e.RequestContext.APIID, e.RequestContext.DomainName
				if gateway, ok := lambdahttp.GatewayOf(r.Context()); !ok || gateway != want.gateway {
					t.Errorf("got gateway %+v, want %+v", gateway, want.gateway)
				}
				if r.RemoteAddr != "198.51.100.7:0" {
					t.Errorf("got remote address %s", r.RemoteAddr)
				}
			})
			response, err := lambdahttp.Handle(handler)(t.Context(), e)
			if err != nil || response.StatusCode != http.StatusOK {
				t.Errorf("got %+v, %v", response, err)
			}
		})
	}
}

func TestAnswerOfBytesThatAreNoTextTravelsAsBase64(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", "text", "Straße", "\xff", "text\xc3"} {
		fn := lambdahttp.Handle(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }))
		response, err := fn(t.Context(), events.APIGatewayProxyRequest{HTTPMethod: "GET", Path: "/"})
		if err != nil {
			t.Fatal(err)
		}
		if response.IsBase64Encoded == utf8.ValidString(body) {
			t.Errorf("%q: base64 is %v", body, response.IsBase64Encoded)
		}
	}
}

func TestEventWithABrokenBodyIsAFaultAndReachesNoHandler(t *testing.T) {
	t.Parallel()
	fn := lambdahttp.Handle(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler was called") }))
	_, err := fn(t.Context(), events.APIGatewayProxyRequest{HTTPMethod: "PUT", Path: "/", Body: "%", IsBase64Encoded: true})
	if err == nil {
		t.Error("no error")
	}
}

func TestOutsideAGatewayThereIsNothingToSay(t *testing.T) {
	t.Parallel()
	if _, ok := lambdahttp.GatewayOf(t.Context()); ok {
		t.Error("a gateway out of nowhere")
	}
}

func TestTrailersAreDroppedForTheGatewayHasNone(t *testing.T) {
	t.Parallel()
	fn := lambdahttp.Handle(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(http.TrailerPrefix+"X-Sum", "1")
		fmt.Fprint(w, "x")
	}))
	response, err := fn(t.Context(), events.APIGatewayProxyRequest{HTTPMethod: "GET", Path: "/"})
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, 0, 1)
	for name := range response.MultiValueHeaders {
		names = append(names, name)
	}
	if !slices.Equal(names, []string{"Content-Type"}) {
		t.Errorf("got headers %v", names)
	}
}

func TestTheCallersAddressParsesWhateverItsFamily(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"198.51.100.7", "2001:db8::1", "::ffff:198.51.100.7"} {
		handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if got, err := netip.ParseAddrPort(r.RemoteAddr); err != nil || got.Addr().String() != address {
				t.Errorf("%s: got remote address %q, %v", address, r.RemoteAddr, err)
			}
		})
		e := events.APIGatewayProxyRequest{HTTPMethod: http.MethodGet, Path: "/", Resource: "/"}
		e.RequestContext.Identity.SourceIP = address
		e.RequestContext.ExtendedRequestID = "JXJ0CHhJDoEEPzA="
		if _, err := lambdahttp.Handle(handler)(t.Context(), e); err != nil {
			t.Error(err)
		}
	}
}

func TestARequestThatHangsIsAnsweredBeforeItsInvocationIsCutOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 28*time.Second)
		defer cancel()
		hanging := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			w.WriteHeader(http.StatusServiceUnavailable)
		})
		out, err := lambdahttp.Handle(hanging)(ctx, events.APIGatewayProxyRequest{HTTPMethod: "GET", Path: "/projects"})
		if err != nil || out.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("answered %+v, %v", out, err)
		}
		if took := time.Since(began); took > 27*time.Second {
			t.Errorf("it was answered after %v of 28 s", took)
		}
	})
}
