package leaktest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/sivchari/kumo"

	"colophon/client"
	"colophon/internal/access"
	"colophon/internal/enginetest"
	"colophon/internal/function/api"
	"colophon/internal/function/deliver"
	"colophon/internal/function/outboxstream"
	"colophon/internal/function/sweep"
	"colophon/internal/kmstest"
	"colophon/internal/outbox"
	"colophon/internal/store"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

func must(t testing.TB, err error) {
	t.Helper()
	if problem := client.AsProblem(err); problem != nil {
		t.Fatalf("%d %s: %s", problem.StatusCode, problem.Response.Code.Value, problem.Response.Detail.Value)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// written is something that the system wrote, and where.
type written struct {
	place string
	text  []byte
}

// system is the functions as deployed, with a recorder on each way out of them.
type system struct {
	t        *testing.T
	tables   enginetest.Tables // through the recorder
	queues   *sqs.Client
	queue    map[string]string // URLs by kind
	api      *client.Client
	address  string // of the api function
	token    string
	forward  *outbox.Forwarder
	consumer *outbox.Consumer
	sweeper  *outbox.Sweeper
	build    func() // builds deliver anew: nothing is remembered of what was opened
	next     string // where the stream is read on

	mu      sync.Mutex
	records []written
	faults  map[string]int // by operation: so many of its calls fail from now on
}

func (s *system) record(place string, text []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = append(s.records, written{place, bytes.Clone(text)})
}

// fail makes the next calls of an AWS operation fail with a marked text.
func (s *system) fail(operation string, times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[operation] = times
}

func (s *system) failing(operation string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[operation]--
	return s.faults[operation] >= 0
}

// way is an AWS service behind a recorder. What KMS is asked to seal is not
// recorded: it is sent over TLS and written nowhere.
func (s *system) way(service, address string, record bool) (recorded string) {
	s.t.Helper()
	target, err := url.Parse(address)
	must(s.t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ErrorLog = quiet
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		if s.failing(operation) {
			w.Header().Set("Content-Type", "application/x-amz-json-1.0")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"__type":"com.amazon.coral.service#AccessDeniedException","message":"User %s is not authorized"}`, markAWS)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		answer := httptest.NewRecorder()
		proxy.ServeHTTP(answer, r)
		if record {
			s.record(service+" request "+operation, body)
			s.record(service+" answer "+operation, answer.Body.Bytes())
		}
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	}))
	server.Config.ErrorLog = quiet
	server.Start()
	s.t.Cleanup(server.Close)
	return server.URL
}

// quiet is for what stands for others: their logs are not the system's.
var quiet = log.New(io.Discard, "", 0)

// captured makes standard output and error a file, which is where functions log
// to, and returns what reads it.
func captured(t *testing.T) (read func() []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	must(t, err)
	stdout, stderr, writer := os.Stdout, os.Stderr, log.Writer()
	os.Stdout, os.Stderr = file, file
	log.SetOutput(file)
	t.Cleanup(func() {
		os.Stdout, os.Stderr = stdout, stderr
		log.SetOutput(writer)
		file.Close()
		if text, _ := os.ReadFile(path); t.Failed() {
			t.Logf("the functions' log ended:\n%s", text[max(0, len(text)-2000):])
		}
	})
	return func() []byte {
		text, err := os.ReadFile(path)
		must(t, err)
		return text
	}
}

func newSystem(t *testing.T) *system {
	t.Helper()
	s := &system{t: t, queue: map[string]string{}, faults: map[string]int{}}
	cloud, keys := kumo.NewServer().URL, kmstest.NewServer()
	t.Cleanup(keys.Close)
	tables := s.way("table", "http://"+enginetest.Shared(t).Address, true)
	s.tables = enginetest.NewTables(t, func(o *dynamodb.Options) { o.BaseEndpoint = &tables })
	given := credentials.NewStaticCredentialsProvider("local", "local", "")
	key, err := kms.New(kms.Options{Region: "eu-west-1", BaseEndpoint: &keys.URL, Credentials: given}).CreateKey(t.Context(), nil)
	must(t, err)
	queues := s.way("queue", cloud, true)
	s.queues = sqs.New(sqs.Options{Region: "eu-west-1", BaseEndpoint: &queues, Credentials: given})
	for _, kind := range []string{"queue", "slow", "dead", "failure"} {
		out, err := s.queues.CreateQueue(t.Context(), &sqs.CreateQueueInput{
			QueueName: aws.String(enginetest.RandomName(kind)), Attributes: map[string]string{"VisibilityTimeout": "30"},
		})
		must(t, err)
		s.queue[kind] = *out.QueueUrl
	}
	set := map[string]string{
		"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local",
		"AWS_ENDPOINT_URL_DYNAMODB": tables, "AWS_ENDPOINT_URL_SQS": queues, "AWS_ENDPOINT_URL_KMS": s.way("key", keys.URL, false),
		"CONTENT_TABLE": s.tables.Content, "DELIVERY_TABLE": s.tables.Delivery, "SEALING_KEY_ID": *key.KeyMetadata.KeyId,
		"QUEUE_URL": s.queue["queue"], "SLOW_QUEUE_URL": s.queue["slow"], "DEAD_LETTER_QUEUE_URL": s.queue["dead"],
		"DELIVERY_STREAM_ARN":  "arn:aws:dynamodb:eu-west-1:000000000000:table/" + s.tables.Delivery + "/stream/1",
		"ON_FAILURE_QUEUE_URL": s.queue["failure"], "COLOPHON_ENVIRONMENT": "local", "ALLOW_LOOPBACK_RECEIVERS": "true",
		"AWS_LAMBDA_RUNTIME_API": "127.0.0.1:1", "PUBLIC_ADDRESS": "https://colophon.example",
	}
	getenv := func(name string) string { return set[name] }
	main, err := api.New(getenv, nil)
	must(t, err)
	server := httptest.NewUnstartedServer(main.Handler)
	server.Config.ErrorLog = quiet
	server.Start()
	t.Cleanup(server.Close)
	s.address = server.URL
	s.forward, err = outboxstream.New(getenv, os.Stdout)
	must(t, err)
	s.sweeper, err = sweep.New(getenv, os.Stdout, nil)
	must(t, err)
	s.build = func() {
		s.consumer, err = deliver.New(getenv, os.Stdout, nil)
		must(t, err)
	}
	s.build()

	engine, err := store.NewDynamo(store.DynamoConfig{Client: s.tables.Client})
	must(t, err)
	kept, err := store.NewTokens(store.TokensConfig{Engine: engine, Table: s.tables.Content})
	must(t, err)
	tokens, err := access.New(access.Config{Tokens: kept})
	must(t, err)
	_, s.token, err = tokens.CreateToken(t.Context(), access.NewToken{Name: "admin", Role: access.Admin, AllProjects: true})
	must(t, err)
	s.api, err = client.New(client.Config{Address: s.address, Token: s.token, HTTP: &http.Client{Transport: answers{s}}})
	must(t, err)
	return s
}

// answers records the API's answers.
type answers struct{ s *system }

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	var head bytes.Buffer
	_ = answer.Header.Write(&head)
	place := "answer " + r.Method + " " + r.URL.Path
	a.s.record(place+" headers", head.Bytes())
	a.s.record(place, body)
	return answer, nil
}

// ask asks the API for something that the client would not.
func (s *system) ask(method, path, token, kind, body string) (status int) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.address+path, strings.NewReader(body))
	must(s.t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	answer, err := answers{s}.RoundTrip(r)
	must(s.t, err)
	return answer.StatusCode
}

// stream hands the delivery table's new stream records to the function, as the
// mapping does, and says how many there were.
func (s *system) stream() int {
	s.t.Helper()
	if s.next == "" {
		table, err := s.tables.Client.DescribeTable(s.t.Context(), &dynamodb.DescribeTableInput{TableName: &s.tables.Delivery})
		must(s.t, err)
		var described struct {
			StreamDescription struct{ Shards []struct{ ShardId string } }
		}
		s.streams("DescribeStream", map[string]any{"StreamArn": *table.Table.LatestStreamArn}, &described)
		if len(described.StreamDescription.Shards) != 1 {
			s.t.Fatalf("%d shards", len(described.StreamDescription.Shards))
		}
		var iterator struct{ ShardIterator string }
		s.streams("GetShardIterator", map[string]any{
			"StreamArn": *table.Table.LatestStreamArn, "ShardId": described.StreamDescription.Shards[0].ShardId,
			"ShardIteratorType": "TRIM_HORIZON",
		}, &iterator)
		s.next = iterator.ShardIterator
	}
	n := 0
	for {
		var page struct {
			Records           []json.RawMessage
			NextShardIterator string
		}
		s.streams("GetRecords", map[string]any{"ShardIterator": s.next}, &page)
		s.next = page.NextShardIterator
		if len(page.Records) == 0 {
			return n
		}
		n += len(page.Records)
		response, err := s.forward.Handle(s.t.Context(), outbox.StreamEvent{Records: page.Records})
		must(s.t, err)
		if len(response.BatchItemFailures) > 0 {
			s.t.Fatalf("not forwarded: %v", response.BatchItemFailures)
		}
	}
}

func (s *system) streams(operation string, in, out any) {
	s.t.Helper()
	body, err := json.Marshal(in)
	must(s.t, err)
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, "http://"+enginetest.Shared(s.t).Address+"/", bytes.NewReader(body))
	must(s.t, err)
	maps.Copy(r.Header, http.Header{
		"Content-Type":  {"application/x-amz-json-1.0"},
		"X-Amz-Target":  {"DynamoDBStreams_20120810." + operation},
		"Authorization": {"AWS4-HMAC-SHA256 Credential=local/20260301/eu-west-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0"},
		"X-Amz-Date":    {"20260301T120000Z"},
	})
	answer, err := http.DefaultClient.Do(r)
	must(s.t, err)
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	must(s.t, err)
	if answer.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %s %s", operation, answer.Status, said)
	}
	s.record("stream "+operation, said)
	must(s.t, json.Unmarshal(said, out))
}

// work hands a queue's visible messages to the function, as the mapping does, and
// says how many there were.
func (s *system) work(kind string) int {
	s.t.Helper()
	url := s.queue[kind]
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	got, err := s.queues.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: &url, MaxNumberOfMessages: 10,
		MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{sqstypes.MessageSystemAttributeNameAll},
	})
	must(s.t, err)
	if len(got.Messages) == 0 {
		return 0
	}
	event := events.SQSEvent{}
	for _, m := range got.Messages {
		event.Records = append(event.Records, events.SQSMessage{
			MessageId: *m.MessageId, ReceiptHandle: *m.ReceiptHandle, Body: *m.Body, Attributes: m.Attributes,
			EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:eu-west-1:000000000000:" + url[strings.LastIndex(url, "/")+1:],
		})
	}
	response, err := s.consumer.Handle(ctx, event)
	must(s.t, err)
	failed := map[string]bool{}
	for _, f := range response.BatchItemFailures {
		failed[f.ItemIdentifier] = true
	}
	for _, m := range got.Messages {
		if !failed[*m.MessageId] {
			_, err := s.queues.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: m.ReceiptHandle})
			must(s.t, err)
		}
	}
	return len(got.Messages)
}

// run lets the functions work until nothing waits to be sent for the first time.
// A message may be hidden for a second, so the table is asked.
func (s *system) run() {
	s.t.Helper()
	deadline := time.NewTimer(2 * time.Minute)
	defer deadline.Stop()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		for s.stream()+s.work("queue")+s.work("slow") > 0 {
		}
		waiting := s.waiting()
		if len(waiting) == 0 {
			return
		}
		select {
		case <-again.C:
		case <-deadline.C:
			s.t.Fatalf("still to be sent: %v", waiting)
		}
	}
}

// waiting are the deliveries and test sends that nobody has sent yet, without
// those that a fault of our own keeps back.
func (s *system) waiting() (keys []string) {
	s.t.Helper()
	for _, item := range s.items(s.tables.Delivery) {
		sk := text(item["sk"])
		queued := strings.HasPrefix(sk, "R#") && text(item["status"]) == "queued" && item["ours"] == nil
		if queued || strings.HasPrefix(sk, "T#") && item["result"] == nil {
			keys = append(keys, text(item["pk"])+" "+sk)
		}
	}
	return keys
}

func text(v types.AttributeValue) string { return v.(*types.AttributeValueMemberS).Value }

// look receives what a queue for people holds.
func (s *system) look(kind string) (n int) {
	s.t.Helper()
	for {
		got, err := s.queues.ReceiveMessage(s.t.Context(), &sqs.ReceiveMessageInput{
			QueueUrl: aws.String(s.queue[kind]), MaxNumberOfMessages: 10, MessageAttributeNames: []string{"All"},
		})
		must(s.t, err)
		if len(got.Messages) == 0 {
			return n
		}
		n += len(got.Messages)
	}
}
