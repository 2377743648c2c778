package httpapi_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"colophon/internal/httpapi"
	"colophon/internal/lambdahttp"
)

// forged ends a member of a line of JSON, the line itself, and adds a metric as CloudWatch reads it out of logs.
const forged = `x","status":200,"_aws":{"Timestamp":1,"CloudWatchMetrics":[{"Namespace":"Colophon","Dimensions":[[]],"Metrics":[{"Name":"OldestDueSeconds"}]}]},"OldestDueSeconds":0}` +
	"\n" + `{"_aws":{"Timestamp":1},"level":"ERROR"}`

// logged sends one event of the gateway through the API and gives the lines that are logged.
func logged(t *testing.T, w *world, e events.APIGatewayProxyRequest) []map[string]any {
	t.Helper()
	var log bytes.Buffer
	h, err := httpapi.New(httpapi.Config{
		Tokens: w, Content: w, Announcing: w, Log: slog.New(slog.NewJSONHandler(&log, nil)),
		Clock: func() time.Time { return now }, RequestID: func() string { return "request-1" },
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lambdahttp.Handle(h)(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	var lines []map[string]any
	for line := range strings.Lines(log.String()) {
		var members map[string]any
		if err := json.Unmarshal([]byte(line), &members); err != nil {
			t.Fatalf("%q is no JSON: %v", line, err)
		}
		lines = append(lines, members)
	}
	return lines
}

func event(method, path string) events.APIGatewayProxyRequest {
	return events.APIGatewayProxyRequest{
		HTTPMethod: method, Path: path, Resource: "/{proxy+}", PathParameters: map[string]string{"proxy": strings.TrimPrefix(path, "/")},
		RequestContext: events.APIGatewayProxyRequestContext{RequestID: "chosen", ExtendedRequestID: "JXJ0CHhJDoEEPzA=", Stage: "v1", Path: "/v1" + path},
	}
}

func TestACraftedPathAndUserAgentStayTextsOfTheirOneLine(t *testing.T) {
	t.Parallel()
	e := event(http.MethodGet, "/"+forged)
	e.MultiValueHeaders = map[string][]string{"User-Agent": {forged}}
	lines := logged(t, &world{}, e)
	if len(lines) != 1 {
		t.Fatalf("%d lines: %v", len(lines), lines)
	}
	line := lines[0]
	for _, name := range []string{"_aws", "OldestDueSeconds"} {
		if _, has := line[name]; has {
			t.Errorf("the line holds %s of the caller's", name)
		}
	}
	if line["msg"] != "request" || line["level"] != "INFO" || line["status"] != 404.0 || line["request"] != "chosen" || line["extended"] != "JXJ0CHhJDoEEPzA=" {
		t.Errorf("got %v", line)
	}
	if agent, _ := line["userAgent"].(string); !strings.HasPrefix(agent, `x","status":200`) {
		t.Errorf("the user agent is logged as %q", agent)
	}
}

func TestARequestsLineIsShortAndHoldsNoQueryAndNoToken(t *testing.T) {
	t.Parallel()
	e := event(http.MethodGet, "/projects/"+strings.Repeat("ü", 4000))
	e.MultiValueQueryStringParameters = map[string][]string{"path": {"secret-plan.md"}}
	e.MultiValueHeaders = map[string][]string{"User-Agent": {strings.Repeat("é", 4000)}, "Authorization": {"Bearer clp_secret"}, "Cookie": {"secret"}}
	lines := logged(t, &world{}, e)
	text, err := json.Marshal(lines)
	if err != nil || len(lines) != 1 || len(text) > 1200 || strings.Contains(string(text), "secret") || strings.Contains(string(text), "\ufffd") {
		t.Errorf("%d lines of %d bytes: %.2000s", len(lines), len(text), text)
	}
}

func TestARequestThatPanicsIsLoggedWithTheStatusOfItsAnswer(t *testing.T) {
	t.Parallel()
	w := &world{}
	w.panic = "at once"
	e := event(http.MethodGet, "/projects")
	e.MultiValueHeaders = map[string][]string{"Authorization": {"Bearer admin"}}
	lines := logged(t, w, e)
	if last := lines[len(lines)-1]; len(lines) != 2 || last["msg"] != "request" || last["status"] != 500.0 {
		t.Errorf("got %v", lines)
	}
}
