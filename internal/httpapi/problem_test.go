package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"colophon/internal/content"
	"colophon/internal/destination"
	"colophon/internal/egress"
	"colophon/internal/failure"
)

func noProject() error { return content.NoSuchProject() }

// codes are the constants of the type Code in a package's error.go.
func codes(t *testing.T, file string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); ok && kind.Name == "Code" {
			code, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, code)
		}
		return true
	})
	if len(found) < 5 {
		t.Fatalf("only %v in %s", found, file)
	}
	return found
}

// statuses are what the API answers for each code. Adding one is an addition to
// the API: it gets a row here and a line in docs/api.md.
var statuses = map[string]int{
	"invalid": 400, "unauthenticated": 401, "forbidden": 403, "not-found": 404, "method-not-allowed": 405,
	"nothing-to-publish": 409, "project-full": 409, "too-many-documents": 409, "too-many-destinations": 409, "too-many-secrets": 409, "destination-removed": 409,
	"destination-paused": 409, "not-ended": 409, "ended": 409, "being-sent": 409, "not-newest": 409,
	"newer-release": 409, "unreadable": 409, "precondition-failed": 412, "changed": 412, "precondition-required": 428, "too-large": 413,
	"unsupported-media-type": 415, "idempotency-mismatch": 422, "too-often": 429, "internal": 500, "busy": 503,
	"unavailable": 503, "unknown-outcome": 503,
}

func TestEachRefusalOfTheServicesHasItsStatus(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"../failure/error.go", "../content/error.go", "../destination/error.go"} {
		for _, code := range codes(t, file) {
			t.Run(file+" "+code, func(t *testing.T) {
				t.Parallel()
				refusal := &failure.Error{Code: failure.Code(code), Message: "Do this.", Field: "path"}
				if strings.Contains(file, "destination") {
					refusal.Newest, refusal.RetryAfter = 9, 90*time.Second
				}
				h, log := api(t, &world{fail: fmt.Errorf("publish: %w", refusal)})
				answer := serve(h, ask("POST", inProject+"/releases", "admin", ""))
				p := problemOf(t, answer)
				if statuses[code] == 0 || answer.Code != statuses[code] || p.Code != code || p.Detail != "Do this." || p.Field != "path" {
					t.Errorf("got %d %+v, want %d", answer.Code, p, statuses[code])
				}
				wait := map[bool]string{true: "90"}[strings.Contains(file, "destination")]
				if answer.Code == http.StatusServiceUnavailable && wait == "" {
					wait = "1"
				}
				if got := answer.Header().Get("Retry-After"); got != wait {
					t.Errorf("Retry-After is %q, want %q", got, wait)
				}
				if strings.Contains(file, "destination") != (p.Newest == 9) {
					t.Errorf("the newest release is told as %d", p.Newest)
				}
				if logged := log.Len() > 0; logged != (answer.Code >= 500) {
					t.Errorf("%d is logged: %v", answer.Code, log)
				}
			})
		}
	}
}

func TestAFaultOfOursIsNeutralAndLoggedOnce(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]error{
		"a fault without a code":    errors.New("ResourceNotFoundException: marked"),
		"a refusal of unknown code": &content.Error{Code: "marked", Message: "marked"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, log := api(t, &world{fail: fault})
			answer := serve(h, ask("GET", inProject, "viewer", ""))
			if p := problemOf(t, answer); answer.Code != 500 || p.Code != "internal" || strings.Contains(answer.Body.String(), "marked") {
				t.Errorf("got %d %s", answer.Code, answer.Body)
			}
			if lines := strings.Count(log.String(), "\n"); lines != 1 || !strings.Contains(log.String(), "marked") || !strings.Contains(log.String(), "request-1") {
				t.Errorf("the log says %q", log)
			}
		})
	}
}

func TestWhatTookTooLongIsOfUnknownOutcome(t *testing.T) {
	t.Parallel()
	h, _ := api(t, &world{fail: fmt.Errorf("publish: %w", context.DeadlineExceeded)})
	answer := serve(h, ask("POST", inProject+"/releases", "editor", ""))
	if p := problemOf(t, answer); answer.Code != 503 || p.Code != "unknown-outcome" {
		t.Errorf("got %d %+v", answer.Code, p)
	}
}

func TestAPanicIsAFaultOfOursAndTheNextRequestIsAnswered(t *testing.T) {
	t.Parallel()
	w := &world{panic: "marked"}
	h, log := api(t, w)
	answer := serve(h, ask("GET", inProject, "viewer", ""))
	if p := problemOf(t, answer); answer.Code != 500 || p.Code != "internal" || strings.Contains(answer.Body.String(), "marked") {
		t.Errorf("got %d %s", answer.Code, answer.Body)
	}
	if !strings.Contains(log.String(), "marked") || !strings.Contains(log.String(), "world_test.go") {
		t.Errorf("the log says %q", log)
	}
	w.panic = nil
	if answer := serve(h, ask("GET", inProject, "viewer", "")); answer.Code != 200 {
		t.Errorf("got %d %s", answer.Code, answer.Body)
	}
}

func TestBadInputIsAProblemThatRepeatsNothingAndDoesNothing(t *testing.T) {
	t.Parallel()
	const (
		projects = "/projects"
		releases = inProject + "/releases"
		places   = inProject + "/destinations"
		document = inProject + "/document?path=a.md"
		again    = inDelivery + "/redeliver"
	)
	large := strings.Repeat("marked ", 200_000)
	tests := []struct {
		name                 string
		method, target, body string
		headers              []string
		code                 string
		says                 string // a part of the detail
		field                string
	}{
		{"wrong JSON", "POST", releases, `{"message": marked}`, nil, "invalid", "not valid JSON, at line 1, column 13", ""},
		{"wrong JSON further down", "POST", releases, "{\n  \"message\": \"a\"\n  \"marked\": 1}", nil, "invalid", "at line 3, column 3", ""},
		{"JSON that breaks off", "POST", releases, `{"message": "marked`, nil, "invalid", "not valid JSON", ""},
		{"a comma too many", "POST", releases, `{"message": "marked",}`, nil, "invalid", "not valid JSON", ""},
		{"something behind the JSON", "POST", releases, `{"message": "marked"} {}`, nil, "invalid", "Something follows", ""},
		{"a word behind the JSON", "POST", releases, `{"message": "marked"} marked`, nil, "invalid", "Something follows", ""},
		{"a key twice", "POST", releases, `{"message": "marked", "message": "b"}`, nil, "invalid", "twice, at line 1, column 32", ""},
		{"a key twice, written in two ways", "POST", releases, `{"message": "marked", "m\u0065ssage": "b"}`, nil, "invalid", "twice", ""},
		{"a header twice", "POST", places, `{"name":"a","url":"https://a.example","headers":{"marked":"1","marked":"2"}}`, nil, "invalid", "twice", ""},
		{"deep JSON", "POST", releases, strings.Repeat("[", 100_000), nil, "invalid", "More than 32", ""},
		{"an unknown field", "POST", releases, `{"marked": 1}`, nil, "invalid", "unknown or of the wrong kind. The body takes message (text of up to 1,000 characters), force", ""},
		{"a field of another case", "POST", projects, `{"Name": "marked"}`, nil, "invalid", "The body takes name", ""},
		{"a number for a text", "POST", releases, `{"message": 5}`, nil, "invalid", "wrong kind", ""},
		{"null for a text", "POST", projects, `{"name": null}`, nil, "invalid", "wrong kind", ""},
		{"a text for a truth", "POST", releases, `{"force": "marked"}`, nil, "invalid", "wrong kind", ""},
		{"a list for an object", "POST", releases, `["marked"]`, nil, "invalid", "The body takes", ""},
		{"a text alone", "POST", releases, `"marked"`, nil, "invalid", "The body takes", ""},
		{"bytes that are no text", "POST", releases, "{\"message\": \"\xff\xfe\"}", nil, "invalid", "not text in UTF-8", ""},
		{"a long message", "POST", releases, `{"message": "` + strings.Repeat("ä", 1001) + `"}`, nil, "invalid", "message is text of up to 1,000 characters", "message"},
		{"no name", "POST", projects, `{}`, nil, "invalid", "name is missing", "name"},
		{"an empty name", "POST", projects, `{"name": ""}`, nil, "invalid", "name is text of 1 to 100", "name"},
		{"a long name", "POST", projects, `{"name": "` + strings.Repeat("x", 101) + `"}`, nil, "invalid", "name is text of 1 to 100", "name"},
		{"no address", "POST", places, `{"name": "marked"}`, nil, "invalid", "url is missing", "url"},
		{"a long header", "POST", places, `{"name":"a","url":"https://a.example","headers":{"marked":"` + strings.Repeat("x", 2049) + `"}}`, nil, "invalid", "headers is an object", "headers"},
		{"a text for headers", "POST", places, `{"name":"a","url":"https://a.example","headers":"marked"}`, nil, "invalid", "wrong kind", ""},
		{"no body", "POST", projects, "", nil, "invalid", "This needs a body. The body takes name", ""},
		{"no body of a change", "PATCH", inDestination, "", nil, "invalid", "This needs a body", ""},
		{"release nought", "POST", again, `{"force": true, "over": 0}`, nil, "invalid", "over is a release's number", "over"},
		{"half a release", "POST", again, `{"force": true, "over": 1.5}`, nil, "invalid", "wrong kind", ""},
		{"a release past all numbers", "POST", again, `{"force": true, "over": 99999999999999999999999}`, nil, "invalid", "wrong kind", ""},
		{"a form", "POST", projects, `name=marked`, []string{"Content-Type", "application/x-www-form-urlencoded"}, "unsupported-media-type", "Content-Type: application/json", ""},
		{"text", "POST", projects, `{"name":"marked"}`, []string{"Content-Type", "text/plain"}, "unsupported-media-type", "Content-Type: application/json", ""},
		{"no type", "POST", projects, `{"name":"marked"}`, []string{"Content-Type", ""}, "unsupported-media-type", "Content-Type: application/json", ""},
		{"a type that is none", "POST", projects, `{"name":"marked"}`, []string{"Content-Type", ";;marked"}, "unsupported-media-type", "Content-Type: application/json", ""},
		{"a body over the limit", "POST", releases, `{"message": "` + large + `"}`, nil, "too-large", "at most 1048576 bytes", ""},
		{"a document over the limit", "PUT", document, large, nil, "too-large", "at most 1048576 bytes", ""},
		{"a type of a document that is none", "PUT", document, "x", []string{"Content-Type", "marked;;"}, "unsupported-media-type", "its own type, such as text/markdown", ""},
		{"a type of a document without a kind", "PUT", document, "x", []string{"Content-Type", "marked"}, "unsupported-media-type", "its own type, such as text/markdown", ""},
		{"a document that is no text", "PUT", document, "marked \xff", nil, "invalid", "A document is text in UTF-8", "content"},
		{"a document that was none before a gateway", "PUT", document, "marked \ufffd", nil, "invalid", "U+FFFD", "content"},
		{"no path", "PUT", inProject + "/document", "x", nil, "invalid", "path is missing", "path"},
		{"an empty path", "GET", inProject + "/document?path=", "", nil, "invalid", "path is a document's path", "path"},
		{"a long path", "GET", inProject + "/document?path=" + strings.Repeat("x", 2049), "", nil, "invalid", "path is a document's path", "path"},
		{"a path twice", "GET", inProject + "/document?path=a&path=marked", "", nil, "invalid", "", "path"},
		{"a limit of nought", "GET", releases + "?limit=0", "", nil, "invalid", "limit is a whole number from 1 to 100", "limit"},
		{"a limit past the limit", "GET", releases + "?limit=101", "", nil, "invalid", "limit is a whole number from 1 to 100", "limit"},
		{"a limit in words", "GET", releases + "?limit=marked", "", nil, "invalid", "limit is a whole number from 1 to 100", "limit"},
		{"a long cursor", "GET", releases + "?cursor=" + strings.Repeat("x", 1025), "", nil, "invalid", "cursor is the “next”", "cursor"},
		{"a made-up cursor", "GET", inDestination + "/deliveries?cursor=marked", "", nil, "invalid", "not made by this list", "cursor"},
		{"a cursor of another list", "GET", inDestination + "/deliveries?cursor=bWE", "", nil, "invalid", "not made by this list", "cursor"},
		{"a cursor without a number", "GET", inDestination + "/deliveries?cursor=ZW1hcmtlZA", "", nil, "invalid", "not made by this list", "cursor"},
		{"a cursor of documents, made up", "GET", releases + "/6/documents?cursor=%21", "", nil, "invalid", "not made by this list", "cursor"},
		{"since below nought", "GET", inProject + "/feed?since=-1", "", nil, "invalid", "since is a release's number, or 0", "since"},
		{"from nought", "GET", inDestination + "/deliveries?from=0", "", nil, "invalid", "from is a release's number", "from"},
		{"an empty idempotency key", "POST", releases, "", []string{"Idempotency-Key", ""}, "invalid", "Idempotency-Key is 1 to 255", "Idempotency-Key"},
		{"an idempotency key with a space", "POST", releases, "", []string{"Idempotency-Key", "marked key"}, "invalid", "Idempotency-Key is 1 to 255", "Idempotency-Key"},
		{"a long idempotency key", "POST", releases, "", []string{"Idempotency-Key", strings.Repeat("x", 256)}, "invalid", "Idempotency-Key is 1 to 255", "Idempotency-Key"},
		{"any version", "PUT", document, "x", []string{"If-Match", "*"}, "invalid", "one ETag", "If-Match"},
		{"two versions", "PUT", document, "x", []string{"If-Match", `"1", "2"`}, "invalid", "one ETag", "If-Match"},
		{"a version of something else", "PUT", document, "x", []string{"If-Match", `"marked"`}, "precondition-failed", "Read it again", ""},
		{"a weak version", "DELETE", document, "", []string{"If-Match", `W/"7"`}, "precondition-failed", "Read it again", ""},
		{"a version without quotes", "PATCH", inDestination, `{"name":"marked"}`, []string{"If-Match", "7"}, "precondition-failed", "Read it again", ""},
		{"a version with noughts", "PATCH", inDestination, `{"name":"marked"}`, []string{"If-Match", `"07"`}, "precondition-failed", "Read it again", ""},
		{"a position without a version", "POST", inDestination + "/revoke-old-secret", `{"position":1}`, nil, "precondition-required", "send its ETag as If-Match", "If-Match"},
		{"unless that version", "PUT", document, "x", []string{"If-None-Match", `"7"`}, "invalid", "* alone", "If-None-Match"},
		{"an unknown route", "GET", "/marked", "", nil, "not-found", "api/openapi.yaml", ""},
		{"the root", "GET", "/", "", nil, "not-found", "api/openapi.yaml", ""},
		{"a slash too many", "GET", releases + "/", "", nil, "not-found", "nothing at this address", ""},
		{"a slash before", "GET", "//projects", "", nil, "not-found", "nothing at this address", ""},
		{"the stage twice", "GET", "/v1/projects", "", nil, "not-found", "nothing at this address", ""},
		{"a release in words", "GET", releases + "/marked", "", nil, "not-found", "nothing at this address", ""},
		{"release nought of a project", "GET", releases + "/0", "", nil, "not-found", "nothing at this address", ""},
		{"a release of another sign", "GET", releases + "/-6", "", nil, "not-found", "nothing at this address", ""},
		{"a destination of another shape", "GET", places + "/marked%23SLOT", "", nil, "not-found", "no such destination", ""},
		{"a destination with a slash", "GET", places + "/a%2Fmarked", "", nil, "not-found", "no such destination", ""},
		{"a test of another shape", "GET", inDestination + "/tests/marked%20", "", nil, "not-found", "no such test", ""},
		{"a wrong method", "DELETE", releases, "", nil, "method-not-allowed", "takes GET, HEAD, POST", ""},
		{"a made-up method", "MARKED", inProject, "", nil, "method-not-allowed", "takes GET, HEAD", ""},
		{"a method in small letters", "get", inProject, "", nil, "method-not-allowed", "takes GET, HEAD", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := &world{}
			h, log := api(t, w)
			r := ask(test.method, test.target, "admin", test.body, test.headers...)
			if ct, said := r.Header["Content-Type"]; said && ct[0] == "" {
				r.Header.Del("Content-Type")
			}
			answer := serve(h, r)
			p := problemOf(t, answer)
			if p.Code != test.code || answer.Code != statuses[test.code] || !strings.Contains(p.Detail, test.says) || p.Field != test.field {
				t.Errorf("got %d %+v", answer.Code, p)
			}
			if strings.Contains(answer.Body.String(), "marked") || strings.Contains(fmt.Sprint(answer.Header()), "marked") {
				t.Errorf("the answer repeats what was sent: %s", answer.Body)
			}
			if w.calls() != 0 {
				t.Error("a service was asked")
			}
			if log.Len() > 0 {
				t.Errorf("the log says %s", log)
			}
		})
	}
}

func TestWhatIsExpectedIsSaidAsTheDescriptionHasIt(t *testing.T) {
	t.Parallel()
	components := description(t)["components"].(map[string]any)
	schemas := components["schemas"].(map[string]any)
	property := func(schema, name string) map[string]any {
		return schemas[schema].(map[string]any)["properties"].(map[string]any)[name].(map[string]any)
	}
	parameter := func(name string) map[string]any {
		return components["parameters"].(map[string]any)[name].(map[string]any)["schema"].(map[string]any)
	}
	for _, limit := range []struct {
		what      string
		described any
		rule      int
	}{
		{"a project's name", property("NewProject", "name")["maxLength"], content.LongestName},
		{"a destination's name", property("NewDestination", "name")["maxLength"], destination.LongestName},
		{"a changed name", property("DestinationChange", "name")["maxLength"], destination.LongestName},
		{"a message", property("Publish", "message")["maxLength"], content.LongestMessage},
		{"a path, decomposed", parameter("path")["maxLength"], 4 * content.LongestPath},
		{"a page", parameter("limit")["maximum"], content.LargestPage},
		{"a page of deliveries", parameter("limit")["maximum"], destination.MostListed},
	} {
		if limit.described != limit.rule {
			t.Errorf("%s: %v is described, %d is the rule", limit.what, limit.described, limit.rule)
		}
	}

	for _, schema := range []string{"NewDestination", "DestinationChange"} {
		headers := property(schema, "headers")
		most, longest := headers["maxProperties"].(int), headers["additionalProperties"].(map[string]any)["maxLength"].(int)
		given := make(map[string]string)
		for i := range most + 1 {
			if err := egress.CheckHeaders(given); err != nil {
				t.Errorf("%s: %d headers are refused: %v", schema, len(given), err)
			}
			given[fmt.Sprintf("X-%d", i)] = "1"
		}
		if egress.CheckHeaders(given) == nil {
			t.Errorf("%s: %d headers are described, and more are taken", schema, most)
		}
		if egress.CheckHeader("X-A", strings.Repeat("x", longest)) != nil || egress.CheckHeader("X-A", strings.Repeat("x", longest+1)) == nil {
			t.Errorf("%s: values of %d bytes are described, the rule is another", schema, longest)
		}
	}

	// Each body's fields, as a refusal lists them.
	bodies := map[string][2]string{ // schema: method and target
		"NewProject":        {"POST", "/projects"},
		"Publish":           {"POST", inProject + "/releases"},
		"NewDestination":    {"POST", inProject + "/destinations"},
		"DestinationChange": {"PATCH", inDestination},
		"RotateSecret":      {"POST", inDestination + "/rotate-secret"},
		"Redeliver":         {"POST", inDelivery + "/redeliver"},
	}
	for schema, at := range bodies {
		h, _ := api(t, &world{})
		p := problemOf(t, serve(h, ask(at[0], at[1], "admin", `{"somethingElse": 1}`)))
		fields := slices.Sorted(maps.Keys(schemas[schema].(map[string]any)["properties"].(map[string]any)))
		if n := strings.Count(p.Detail, " ("); n != len(fields) {
			t.Errorf("%s has %d fields, and %q names %d", schema, len(fields), p.Detail, n)
		}
		for _, field := range fields {
			if !strings.Contains(p.Detail, field+" (") || strings.Contains(p.Detail, "()") {
				t.Errorf("%s: %q does not say what %s is", schema, p.Detail, field)
			}
		}
	}
}

func TestEachCodeIsExplainedInTheDocumentation(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	for code, status := range statuses {
		if line := fmt.Sprintf("| `%s` | %d |", code, status); !strings.Contains(string(text), line) {
			t.Errorf("docs/api.md has no line that begins with %s", line)
		}
	}
}

// serveOver puts a handler behind a real server.
func serveOver(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server
}

func fetch(t *testing.T, server *httptest.Server, method, target string) (*http.Response, []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, server.URL+target, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer admin")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, body
}

func decode(t *testing.T, text []byte, to any) {
	t.Helper()
	if err := json.Unmarshal(text, to); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}
