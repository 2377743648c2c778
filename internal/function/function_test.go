package function_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

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
	"colophon/internal/kmstest"
	"colophon/internal/outbox"
	"colophon/internal/store"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// cloud is a KMS and an SQS.
var (
	cloud   = sync.OnceValue(func() string { return kumo.NewServer().URL })
	keyring = sync.OnceValue(kmstest.NewServer)
)

// system is the functions on tables, queues and a key of their own.
type system struct {
	t        *testing.T
	tables   enginetest.Tables
	queues   *sqs.Client
	keys     *kms.Client
	key      string // of what is sealed
	queue    string // URL
	slow     string // URL
	dead     string // URL
	api      *client.Client
	forward  *outbox.Forwarder
	consumer *outbox.Consumer
}

func newSystem(t *testing.T) *system {
	t.Helper()
	s := &system{t: t, tables: enginetest.NewTables(t)}
	given := credentials.NewStaticCredentialsProvider("local", "local", "")
	s.queues = sqs.New(sqs.Options{Region: "eu-west-1", BaseEndpoint: aws.String(cloud()), Credentials: given})
	s.keys = kms.New(kms.Options{Region: "eu-west-1", BaseEndpoint: aws.String(keyring().URL), Credentials: given})
	key, err := s.keys.CreateKey(t.Context(), nil)
	must(t, err)
	s.key, s.queue, s.slow, s.dead = *key.KeyMetadata.KeyId, s.newQueue("queue"), s.newQueue("slow"), s.newQueue("dead")
	set := map[string]string{
		"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local",
		"AWS_ENDPOINT_URL": cloud(), "AWS_ENDPOINT_URL_KMS": keyring().URL, "AWS_ENDPOINT_URL_DYNAMODB": "http://" + enginetest.Shared(t).Address,
		"CONTENT_TABLE": s.tables.Content, "DELIVERY_TABLE": s.tables.Delivery, "SEALING_KEY_ID": s.key,
		"QUEUE_URL": s.queue, "SLOW_QUEUE_URL": s.slow, "DEAD_LETTER_QUEUE_URL": s.dead,
		"DELIVERY_STREAM_ARN":  "arn:aws:dynamodb:eu-west-1:000000000000:table/" + s.tables.Delivery + "/stream/1",
		"ON_FAILURE_QUEUE_URL": s.newQueue("failure"), "COLOPHON_ENVIRONMENT": "local", "ALLOW_LOOPBACK_RECEIVERS": "true",
		"PUBLIC_ADDRESS": "https://colophon.example", "AWS_LAMBDA_RUNTIME_API": "127.0.0.1:1",
	}
	getenv := func(name string) string { return set[name] }
	main, err := api.New(getenv, nil)
	must(t, err)
	server := httptest.NewServer(main.Handler)
	t.Cleanup(server.Close)
	s.forward, err = outboxstream.New(getenv, io.Discard)
	must(t, err)
	s.consumer, err = deliver.New(getenv, io.Discard, nil)
	must(t, err)

	engine, err := store.NewDynamo(store.DynamoConfig{Client: s.tables.Client})
	must(t, err)
	kept, err := store.NewTokens(store.TokensConfig{Engine: engine, Table: s.tables.Content})
	must(t, err)
	tokens, err := access.New(access.Config{Tokens: kept})
	must(t, err)
	_, token, err := tokens.CreateToken(t.Context(), access.NewToken{Name: "test", Role: access.Admin, AllProjects: true})
	must(t, err)
	s.api, err = client.New(client.Config{Address: server.URL, Token: token})
	must(t, err)
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s *system) newQueue(kind string) (url string) {
	s.t.Helper()
	out, err := s.queues.CreateQueue(s.t.Context(), &sqs.CreateQueueInput{
		QueueName: aws.String(enginetest.RandomName(kind)), Attributes: map[string]string{"VisibilityTimeout": "30"},
	})
	must(s.t, err)
	return *out.QueueUrl
}

// stream forwards what rings in the delivery table, as its stream would, in
// batches of a hundred.
func (s *system) stream() {
	s.t.Helper()
	var records []events.DynamoDBEventRecord
	pages := dynamodb.NewScanPaginator(s.tables.Client, &dynamodb.ScanInput{TableName: &s.tables.Delivery})
	for pages.HasMorePages() {
		page, err := pages.NextPage(s.t.Context())
		must(s.t, err)
		for _, item := range page.Items {
			if _, rings := item["ring"]; !rings {
				continue
			}
			image := map[string]events.DynamoDBAttributeValue{
				"pk": events.NewStringAttribute(text(item["pk"])), "sk": events.NewStringAttribute(text(item["sk"])),
				"ring": events.NewNumberAttribute(item["ring"].(*types.AttributeValueMemberN).Value),
			}
			records = append(records, events.DynamoDBEventRecord{
				EventName: "INSERT", EventSource: "aws:dynamodb", EventID: fmt.Sprint(len(records)),
				Change: events.DynamoDBStreamRecord{
					Keys:     map[string]events.DynamoDBAttributeValue{"pk": image["pk"], "sk": image["sk"]},
					NewImage: image, SequenceNumber: fmt.Sprintf("%021d", len(records)+1), StreamViewType: "NEW_IMAGE",
				},
			})
		}
	}
	for start := 0; start < len(records); start += 100 {
		event, err := json.Marshal(events.DynamoDBEvent{Records: records[start:min(start+100, len(records))]})
		must(s.t, err)
		var batch outbox.StreamEvent
		must(s.t, json.Unmarshal(event, &batch))
		response, err := s.forward.Handle(s.t.Context(), batch)
		must(s.t, err)
		if len(response.BatchItemFailures) > 0 {
			s.t.Fatalf("not forwarded: %v", response.BatchItemFailures)
		}
	}
}

func text(v types.AttributeValue) string { return v.(*types.AttributeValueMemberS).Value }

// work receives batches and gives them to the consumer until done says so.
func (s *system) work(ctx context.Context, done func() bool) {
	for !done() && ctx.Err() == nil {
		s.invoke(ctx, s.consumer, s.queue, s.receive(ctx, s.queue, 10))
	}
}

// receive takes up to size messages that are visible in a queue, and waits a
// second for the first of them.
func (s *system) receive(ctx context.Context, queue string, size int32) []sqstypes.Message {
	got, err := s.queues.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: &queue, MaxNumberOfMessages: size, WaitTimeSeconds: 1,
		MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{sqstypes.MessageSystemAttributeNameAll},
	})
	if err != nil {
		if ctx.Err() == nil {
			s.t.Error(err)
		}
		return nil
	}
	return got.Messages
}

// invoke gives a batch to a consumer, as the queue's mapping does, and deletes
// what was not reported as failed.
func (s *system) invoke(ctx context.Context, consumer *outbox.Consumer, queue string, messages []sqstypes.Message) {
	if len(messages) == 0 {
		return
	}
	event := events.SQSEvent{}
	for _, m := range messages {
		event.Records = append(event.Records, events.SQSMessage{
			MessageId: *m.MessageId, ReceiptHandle: *m.ReceiptHandle, Body: *m.Body, Attributes: m.Attributes,
			EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:eu-west-1:000000000000:" + queue[strings.LastIndex(queue, "/")+1:],
		})
	}
	response, err := consumer.Handle(ctx, event)
	if err != nil {
		s.t.Error(err)
		return
	}
	failed := map[string]bool{}
	for _, f := range response.BatchItemFailures {
		failed[f.ItemIdentifier] = true
	}
	for _, m := range messages {
		if failed[*m.MessageId] {
			continue
		}
		if _, err := s.queues.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &queue, ReceiptHandle: m.ReceiptHandle}); err != nil {
			s.t.Error(err)
		}
	}
}

func TestOfFiftyReleasesInASecondTheNewestIsSentAtOnceAndTheOthersAreSkipped(t *testing.T) {
	t.Parallel()
	const releases = 50
	s := newSystem(t)
	var mu sync.Mutex
	var arrived []int64
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Data struct{ Release int64 } }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		mu.Lock()
		arrived = append(arrived, body.Data.Release)
		mu.Unlock()
	}))
	t.Cleanup(receiver.Close)
	project, err := s.api.CreateProject(t.Context(), &client.NewProject{Name: "Burst"})
	must(t, err)
	hook, err := s.api.CreateDestination(t.Context(), &client.NewDestination{Name: "receiver", URL: receiver.URL}, client.CreateDestinationParams{Project: project.ID})
	must(t, err)

	var publishers sync.WaitGroup
	for range 5 {
		publishers.Add(1)
		go func() {
			defer publishers.Done()
			for range releases / 5 {
				_, err := s.api.PublishRelease(t.Context(), client.NewOptPublish(client.Publish{Force: client.NewOptBool(true)}),
					client.PublishReleaseParams{Project: project.ID})
				if err != nil {
					t.Error(err)
				}
			}
		}()
	}
	publishers.Wait()
	s.stream()

	ended := func() bool {
		page, err := s.api.ListDestinationDeliveries(t.Context(), client.ListDestinationDeliveriesParams{
			Project: project.ID, Destination: hook.Response.Destination.ID, Limit: client.NewOptInt(releases),
		})
		if err != nil {
			t.Error(err)
			return true
		}
		for _, d := range page.Deliveries {
			if d.State == client.DeliveryStateQueued || d.State == client.DeliveryStateRetrying {
				return false
			}
		}
		return len(page.Deliveries) == releases
	}
	var workers sync.WaitGroup
	for range 3 {
		workers.Add(1)
		go func() {
			defer workers.Done()
			s.work(t.Context(), ended)
		}()
	}
	workers.Wait()

	mu.Lock()
	defer mu.Unlock()
	if len(arrived) == 0 || arrived[0] != releases || len(arrived) > 3 {
		t.Errorf("arrived %v, want the newest first and few others", arrived)
	}
	for i := 1; i < len(arrived); i++ {
		if arrived[i] < arrived[i-1] {
			t.Errorf("an older release arrived after a newer one: %v", arrived)
		}
	}
	page, err := s.api.ListDestinationDeliveries(t.Context(), client.ListDestinationDeliveriesParams{
		Project: project.ID, Destination: hook.Response.Destination.ID, Limit: client.NewOptInt(releases),
	})
	must(t, err)
	for _, d := range page.Deliveries {
		switch {
		case d.Release == releases && d.State != client.DeliveryStateDelivered:
			t.Errorf("the newest is %s", d.State)
		case d.Release < releases && (d.State != client.DeliveryStateSkipped || d.Successor.Value != releases):
			t.Errorf("release %d is %s by %d", d.Release, d.State, d.Successor.Value)
		}
	}
}
