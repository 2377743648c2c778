package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// gateway turns requests into the REST API's proxy events, as API Gateway does,
// and invokes the api function with them.
type gateway struct {
	function invoker
	token    string
	number   atomic.Int64
}

func newGateway(address, token string) *gateway {
	return &gateway{function: invoker{keeping(0), address, timeouts["api"]}, token: token}
}

// request is a request of the API: its path below the stage.
type request struct {
	method, path string
	query        url.Values
	header       map[string]string
	body         string
}

// statusError is an answer that is no success.
type statusError struct {
	status int
	body   string
}

func (e *statusError) Error() string { return fmt.Sprintf("answered %d: %.300s", e.status, e.body) }

// mayAsk says whether a client should ask again: the function was out of reach,
// or says so itself.
func mayAsk(err error) bool {
	var answered *statusError
	if errors.As(err, &answered) {
		return answered.status >= 500 || answered.status == 429
	}
	return err != nil
}

func (g *gateway) ask(ctx context.Context, r request) (events.APIGatewayProxyResponse, error) {
	number := g.number.Add(1)
	headers := map[string]string{
		"Accept": "application/json", "Authorization": "Bearer " + g.token, "Host": "api.colophon.example",
		"User-Agent": "bench", "X-Forwarded-For": "192.0.2.1", "X-Forwarded-Port": "443", "X-Forwarded-Proto": "https",
	}
	for name, value := range r.header {
		headers[name] = value
	}
	event := events.APIGatewayProxyRequest{
		Resource: "/{proxy+}", Path: r.path, HTTPMethod: r.method, Headers: headers,
		MultiValueHeaders: make(map[string][]string, len(headers)),
		PathParameters:    map[string]string{"proxy": strings.TrimPrefix(r.path, "/")},
		Body:              r.body,
		RequestContext: events.APIGatewayProxyRequestContext{
			AccountID: "000000000000", APIID: "bench", Stage: "v1", HTTPMethod: r.method, ResourcePath: "/{proxy+}",
			Path: "/v1" + r.path, Protocol: "HTTP/1.1", DomainName: "api.colophon.example",
			RequestID: "bench-" + strconv.FormatInt(number, 10), RequestTimeEpoch: time.Now().UnixMilli(),
			Identity: events.APIGatewayRequestIdentity{SourceIP: "192.0.2.1", UserAgent: "bench"},
		},
	}
	for name, value := range headers {
		event.MultiValueHeaders[name] = []string{value}
	}
	if len(r.query) > 0 {
		event.MultiValueQueryStringParameters = r.query
		event.QueryStringParameters = make(map[string]string, len(r.query))
		for name := range r.query {
			event.QueryStringParameters[name] = r.query.Get(name)
		}
	}
	var answer events.APIGatewayProxyResponse
	body, err := json.Marshal(event)
	if err != nil {
		return answer, err
	}
	out, err := g.function.invoke(ctx, body)
	if err != nil {
		return answer, err
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		return answer, fmt.Errorf("the function's answer: %w", err)
	}
	if answer.StatusCode >= 300 {
		return answer, &statusError{answer.StatusCode, answer.Body}
	}
	return answer, nil
}

// askFor asks and reads the answer.
func askFor[T any](ctx context.Context, g *gateway, r request) (value T, err error) {
	answer, err := g.ask(ctx, r)
	if err != nil {
		return value, fmt.Errorf("%s %s: %w", r.method, r.path, err)
	}
	if err := json.Unmarshal([]byte(answer.Body), &value); err != nil {
		return value, fmt.Errorf("%s %s: %w", r.method, r.path, err)
	}
	return value, nil
}

func postJSON(path string, body any) request {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err) // bodies are ours
	}
	return request{method: "POST", path: path, header: map[string]string{"Content-Type": "application/json"}, body: string(text)}
}

func saveDocument(project, path, text string) request {
	return request{
		method: "PUT", path: "/projects/" + project + "/document", query: url.Values{"path": {path}},
		header: map[string]string{"Content-Type": "text/markdown"}, body: text,
	}
}

func publish(project, message, key string, force bool) request {
	r := postJSON("/projects/"+project+"/releases", map[string]any{"message": message, "force": force})
	if key != "" {
		r.header["Idempotency-Key"] = key
	}
	return r
}
