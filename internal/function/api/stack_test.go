package api_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"colophon/client"
	"colophon/internal/access"
	"colophon/internal/enginetest"
	"colophon/internal/function/api"
	"colophon/internal/kmstest"
	"colophon/internal/store"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

var keyServer = sync.OnceValue(func() string { return kmstest.NewServer().URL })

// stack is the api function over tables and a key of its own.
type stack struct {
	tables enginetest.Tables
	main   *api.Main
	tokens *access.Service
	keys   *kms.Client
	key    string
}

func newStack(t *testing.T, environment ...string) *stack {
	t.Helper()
	s := &stack{tables: enginetest.NewTables(t)}
	s.keys = kms.New(kms.Options{
		Region: "eu-west-1", BaseEndpoint: aws.String(keyServer()),
		Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	})
	made, err := s.keys.CreateKey(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s.key = *made.KeyMetadata.KeyId
	set := map[string]string{
		"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local",
		"AWS_ENDPOINT_URL_DYNAMODB": "http://" + enginetest.Shared(t).Address, "AWS_ENDPOINT_URL_KMS": keyServer(),
		"CONTENT_TABLE": s.tables.Content, "DELIVERY_TABLE": s.tables.Delivery, "SEALING_KEY_ID": s.key,
		"COLOPHON_ENVIRONMENT": "local", "ALLOW_LOOPBACK_RECEIVERS": "true", "PUBLIC_ADDRESS": "https://colophon.example/base",
	}
	for i := 0; i < len(environment); i += 2 {
		set[environment[i]] = environment[i+1]
	}
	if s.main, err = api.New(func(name string) string { return set[name] }, nil); err != nil {
		t.Fatal(err)
	}
	engine, err := store.NewDynamo(store.DynamoConfig{Client: s.tables.Client})
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := store.NewTokens(store.TokensConfig{Engine: engine, Table: s.tables.Content})
	if err != nil {
		t.Fatal(err)
	}
	if s.tokens, err = access.New(access.Config{Tokens: tokens}); err != nil {
		t.Fatal(err)
	}
	return s
}

// token makes a token; the empty project stands for all.
func (s *stack) token(t *testing.T, role access.Role, project string) string {
	t.Helper()
	_, token, err := s.tokens.CreateToken(t.Context(), access.NewToken{Name: "the " + string(role), Role: role, Project: project, AllProjects: project == ""})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// items counts what stands in both tables.
func (s *stack) items(t *testing.T) int {
	t.Helper()
	n := 0
	for _, table := range []string{s.tables.Content, s.tables.Delivery} {
		pages := dynamodb.NewScanPaginator(s.tables.Client, &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
		for pages.HasMorePages() {
			page, err := pages.NextPage(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			n += len(page.Items)
		}
	}
	return n
}

// ways are the two on which requests reach the function: net/http, and the
// gateway's events.
func ways(t *testing.T, run func(t *testing.T, s *stack, over http.RoundTripper, address string)) {
	t.Run("over net/http", func(t *testing.T) {
		t.Parallel()
		s := newStack(t)
		server := httptest.NewServer(s.main.Handler)
		t.Cleanup(server.Close)
		run(t, s, http.DefaultTransport, server.URL)
	})
	t.Run("over events", func(t *testing.T) {
		t.Parallel()
		s := newStack(t)
		run(t, s, gateway{s.main}, "https://api.example.com/v1")
	})
}

func newClient(t *testing.T, over http.RoundTripper, address, token string) *client.Client {
	t.Helper()
	c, err := client.New(client.Config{Address: address, Token: token, HTTP: &http.Client{Transport: over}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// gateway makes an event of a request, as API Gateway does for the stage v1.
type gateway struct{ main *api.Main }

func (g gateway) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		r.Body.Close()
	}
	path := strings.TrimPrefix(r.URL.Path, "/v1")
	event := events.APIGatewayProxyRequest{
		Resource: "/{proxy+}", Path: path, HTTPMethod: r.Method, PathParameters: map[string]string{"proxy": path[1:]},
		MultiValueHeaders: r.Header, MultiValueQueryStringParameters: r.URL.Query(), Body: string(body),
		RequestContext: events.APIGatewayProxyRequestContext{
			RequestID: "gateway", Stage: "v1", DomainName: r.URL.Host, Path: r.URL.Path,
			Identity: events.APIGatewayRequestIdentity{SourceIP: "192.0.2.1"},
		},
	}
	if !utf8.Valid(body) {
		event.Body, event.IsBase64Encoded = base64.StdEncoding.EncodeToString(body), true
	}
	var in events.APIGatewayProxyRequest
	if err := throughJSON(event, &in); err != nil {
		return nil, err
	}
	answer, err := g.main.Handle(r.Context(), in)
	if err != nil {
		return nil, err
	}
	var out events.APIGatewayProxyResponse
	if err := throughJSON(answer, &out); err != nil {
		return nil, err
	}
	content := []byte(out.Body)
	if out.IsBase64Encoded {
		if content, err = base64.StdEncoding.DecodeString(out.Body); err != nil {
			return nil, err
		}
	}
	return &http.Response{
		StatusCode: out.StatusCode, Header: out.MultiValueHeaders, Request: r,
		Body: io.NopCloser(bytes.NewReader(content)), ContentLength: int64(len(content)),
	}, nil
}

func throughJSON(from, to any) error {
	text, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}

// send sends a request as it is and reads the whole answer.
func send(t *testing.T, over http.RoundTripper, method, address, token, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := over.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(text)
}

func fixed() time.Time { return time.Date(2026, 11, 29, 23, 30, 0, 0, time.UTC) }
