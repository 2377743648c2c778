package outbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/sivchari/kumo"

	"colophon/internal/delivery"
	"colophon/internal/enginetest"
	"colophon/internal/outbox"
	"colophon/internal/store"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// Kumo's servers of one process share their queues, so there is one for all tests.
var queueServer = sync.OnceValue(func() string { return kumo.NewServer().URL })

func queueClient() *sqs.Client {
	return sqs.New(sqs.Options{
		Region: "eu-west-1", BaseEndpoint: aws.String(queueServer()),
		Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	})
}

// newQueue makes a queue under a random name and gives its address.
func newQueue(t testing.TB, attributes map[string]string) string {
	t.Helper()
	name := enginetest.RandomName("queue")
	out, err := queueClient().CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
	if err != nil {
		t.Fatal(err)
	}
	return *out.QueueUrl
}

func newSender(t testing.TB, url string, send outbox.SendBatch) *outbox.Sender {
	t.Helper()
	sender, err := outbox.NewSender(outbox.SenderConfig{QueueURL: url, SendBatch: send})
	if err != nil {
		t.Fatal(err)
	}
	return sender
}

// take receives and deletes everything that is visible in a queue.
func take(t testing.TB, url string) []types.Message {
	t.Helper()
	var all []types.Message
	for {
		out, err := queueClient().ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
			QueueUrl: &url, MaxNumberOfMessages: 10, MessageAttributeNames: []string{"All"},
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(out.Messages) == 0 {
			return all
		}
		for _, m := range out.Messages {
			all = append(all, m)
			if _, err := queueClient().DeleteMessage(t.Context(), &sqs.DeleteMessageInput{
				QueueUrl: &url, ReceiptHandle: m.ReceiptHandle,
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// takeMessages decodes everything that is visible in a queue, as "destination/release".
func takeMessages(t testing.TB, url string) []string {
	t.Helper()
	var names []string
	for _, m := range take(t, url) {
		names = append(names, nameOf(t, aws.ToString(m.Body)))
	}
	slices.Sort(names)
	return names
}

func nameOf(t testing.TB, body string) string {
	t.Helper()
	m, err := outbox.Decode(body)
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	if m.Test != "" {
		return m.Destination.ID + "/test " + m.Test
	}
	return fmt.Sprintf("%s/%d", m.Destination.ID, m.Release)
}

// faultySends wraps a way to send with faults: of single entries by their body,
// and of whole requests.
type faultySends struct {
	send outbox.SendBatch

	mu       sync.Mutex
	refuse   func(body string) bool // entries that come back as failed
	fail     error                  // of each request
	silent   bool                   // refused entries stand in neither list of the answer
	requests int
}

func (f *faultySends) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests++
	if f.fail != nil {
		return nil, f.fail
	}
	var passed []types.SendMessageBatchRequestEntry
	var failed []types.BatchResultErrorEntry
	for _, entry := range in.Entries {
		if f.refuse == nil || !f.refuse(*entry.MessageBody) {
			passed = append(passed, entry)
		} else if !f.silent {
			failed = append(failed, types.BatchResultErrorEntry{Id: entry.Id, Code: aws.String("InternalError"), SenderFault: false})
		}
	}
	out := &sqs.SendMessageBatchOutput{}
	if len(passed) > 0 {
		var err error
		if out, err = f.send(ctx, &sqs.SendMessageBatchInput{QueueUrl: in.QueueUrl, Entries: passed}); err != nil {
			return nil, err
		}
	}
	out.Failed = append(out.Failed, failed...)
	return out, nil
}

// ofRelease makes a fault of the messages about these releases.
func ofRelease(releases ...int64) func(string) bool {
	return func(body string) bool {
		m, err := outbox.Decode(body)
		return err == nil && slices.Contains(releases, m.Release)
	}
}

// zeros is a source of randomness that can be told apart.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// world is a delivery table on a real engine, and what is due in it.
type world struct {
	tables enginetest.Tables
	engine *store.Dynamo
	index  *store.Sweep

	mu   sync.Mutex
	used []store.Consumption
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{tables: enginetest.NewTables(t)}
	var err error
	w.engine, err = store.NewDynamo(store.DynamoConfig{Client: w.tables.Client, Observe: func(c store.Consumption) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.used = append(w.used, c)
	}})
	if err != nil {
		t.Fatal(err)
	}
	if w.index, err = store.NewSweep(store.SweepConfig{Engine: w.engine, Table: w.tables.Delivery}); err != nil {
		t.Fatal(err)
	}
	return w
}

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// deliveryItem is a delivery as publish writes it, with a ring, due at an instant.
func deliveryItem(due time.Time) store.Item {
	return store.Item{
		"v": store.Number(1), "status": store.Text("queued"), "round": store.Number(1), "rev": store.Number(1),
		"webhookId": store.Text("msg_x"), "body": store.Text("{}"), "tryAt": store.Number(due.UnixMilli()),
		"tries": store.Number(0), "numbered": store.Number(0), "createdAt": store.Number(due.UnixMilli()),
		"attempts": store.Map(store.Item{}), "ring": store.Number(due.UnixMilli()),
		"sweepShard": store.Number(7), "sweepAt": store.Number(due.Add(delivery.SweepDelay).UnixMilli()),
	}
}

func key(destination string, release int64) store.Key {
	return store.Key{PK: "P#p1#D#" + destination, SK: fmt.Sprintf("R#%012d", release)}
}

func (w *world) put(t testing.TB, k store.Key, item store.Item) {
	t.Helper()
	if _, err := w.engine.Write(t.Context(), store.Write{Table: w.tables.Delivery, Key: k, Put: item}); err != nil {
		t.Fatal(err)
	}
}

func (w *world) get(t testing.TB, k store.Key) store.Item {
	t.Helper()
	item, err := w.engine.Get(t.Context(), w.tables.Delivery, k)
	if err != nil {
		t.Fatal(err)
	}
	return item
}

func (w *world) change(t testing.TB, k store.Key, changes ...store.Change) {
	t.Helper()
	if _, err := w.engine.Write(t.Context(), store.Write{Table: w.tables.Delivery, Key: k, Changes: changes}); err != nil {
		t.Fatal(err)
	}
}

// stream reads all of the delivery table's stream in the wire's form, which is
// the form in which Lambda hands records over.
func (w *world) stream(t testing.TB) outbox.StreamEvent {
	t.Helper()
	table, err := w.tables.Client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &w.tables.Delivery})
	if err != nil {
		t.Fatal(err)
	}
	arn := *table.Table.LatestStreamArn
	var described struct {
		StreamDescription struct{ Shards []struct{ ShardId string } }
	}
	streams(t, "DescribeStream", map[string]any{"StreamArn": arn}, &described)
	var event outbox.StreamEvent
	for _, shard := range described.StreamDescription.Shards {
		var iterator struct{ ShardIterator string }
		streams(t, "GetShardIterator", map[string]any{
			"StreamArn": arn, "ShardId": shard.ShardId, "ShardIteratorType": "TRIM_HORIZON",
		}, &iterator)
		for {
			var page struct {
				Records           []json.RawMessage
				NextShardIterator string
			}
			streams(t, "GetRecords", map[string]any{"ShardIterator": iterator.ShardIterator}, &page)
			if len(page.Records) == 0 {
				break
			}
			event.Records = append(event.Records, page.Records...)
			if iterator.ShardIterator = page.NextShardIterator; iterator.ShardIterator == "" {
				break
			}
		}
	}
	return event
}

func streams(t testing.TB, operation string, in, out any) {
	t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+enginetest.Shared(t).Address+"/", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(request.Header, http.Header{
		"Content-Type":  {"application/x-amz-json-1.0"},
		"X-Amz-Target":  {"DynamoDBStreams_20120810." + operation},
		"Authorization": {"AWS4-HMAC-SHA256 Credential=local/20260301/eu-west-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0"},
		"X-Amz-Date":    {"20260301T120000Z"},
	})
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var said bytes.Buffer
	if _, err := said.ReadFrom(answer.Body); err != nil {
		t.Fatal(err)
	}
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %s", operation, answer.Status, strings.TrimSpace(said.String()))
	}
	if err := json.Unmarshal(said.Bytes(), out); err != nil {
		t.Fatal(err)
	}
}
