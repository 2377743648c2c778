//go:build stack

package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamodbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"colophon/client"
	"colophon/internal/killpoint"
)

func TestAWorkerKilledBetweenRecordAndAcknowledgementSendsNothingAgain(t *testing.T) {
	for _, point := range []killpoint.Name{killpoint.AfterRecord, killpoint.BeforeAck} {
		t.Run(string(point), func(t *testing.T) {
			running.quiet(t)
			died := running.kill(t, point)
			r := newReceiver(t)
			p := newProject(t, r)
			release := p.publish()
			r.next(t)
			p.becomes(release, client.DeliveryStateDelivered)
			eventually(t, "the process is killed", died, func() string { return "" })
			if got := running.standing(t, running.Outputs["QueueUrl"], p.id); len(got) != 1 {
				t.Fatalf("of the killed worker's message there are %d, want that it comes again", len(got))
			}
			running.gone(t, p.id)
			d := p.becomes(release, client.DeliveryStateDelivered)
			if len(d.Attempts) != 1 || d.Tries != 1 || len(r.requests()) != 1 {
				t.Errorf("%d attempts, %d tries, %d requests", len(d.Attempts), d.Tries, len(r.requests()))
			}
		})
	}
}

func TestAPanicInOneRecordOfABatchBringsThatRecordBackAlone(t *testing.T) {
	queue := running.Outputs["QueueUrl"]
	running.quiet(t)
	mapping := running.mapping(t, "DeliverFunction", queueName(queue))
	running.enable(t, mapping, false)
	t.Cleanup(func() { running.enable(t, mapping, true) })
	r := newReceiver(t)
	p := newProject(t)
	for i := range 10 {
		p.add(fmt.Sprintf("receiver %d", i), r.URL)
	}
	release := p.publish()
	eventually(t, "ten messages are on the queue", func() bool { return len(running.standing(t, queue, p.id)) == 10 }, func() string { return "" })
	panicked := running.panicAt(t, killpoint.AfterClaim)
	running.enable(t, mapping, true)

	var left []client.Delivery
	eventually(t, "nine are delivered", func() bool {
		left = slices.DeleteFunc(p.deliveries(release), func(d client.Delivery) bool { return d.State == client.DeliveryStateDelivered })
		return len(left) <= 1
	}, func() string { return fmt.Sprintf("%d are left", len(left)) })
	if !panicked() || len(left) != 1 {
		t.Fatalf("%d deliveries are left; the order was carried out: %v", len(left), panicked())
	}
	var messages []string
	eventually(t, "one message is left, and it is the one whose work panicked", func() bool {
		messages = running.standing(t, queue, p.id)
		return len(messages) == 1 && strings.Contains(messages[0], left[0].Destination)
	}, func() string { return strings.Join(messages, " ") })

	running.gone(t, p.id)
	for _, d := range p.deliveries(release) {
		if d.State != client.DeliveryStateDelivered || d.Tries != 1 || len(d.Attempts) != 1 {
			t.Errorf("%s is %s with %d tries, %d attempts", d.DestinationName, d.State, d.Tries, len(d.Attempts))
		}
	}
	ids := map[string]bool{}
	for _, q := range r.requests() {
		ids[q.id()] = true
	}
	if len(ids) != 10 || len(r.requests()) != 10 {
		t.Errorf("%d requests with %d ids, want one for each destination", len(r.requests()), len(ids))
	}

	// The panic and the innocents were one invocation's.
	type line struct{ Message, RequestID, Destination, Doing string }
	var faults, attempts []line
	eventually(t, "the log tells of all", func() bool {
		faults, attempts = nil, nil
		for _, text := range running.lines(t, "DeliverLogs") {
			var l line
			if !strings.Contains(text, p.id) || json.Unmarshal([]byte(text), &l) != nil {
				continue
			}
			switch l.Message {
			case "fault":
				faults = append(faults, l)
			case "attempt":
				attempts = append(attempts, l)
			}
		}
		return len(faults) > 0 && len(attempts) >= 10
	}, func() string { return fmt.Sprintf("%d faults, %d attempts", len(faults), len(attempts)) })
	if len(faults) != 1 || faults[0].Doing != "panic" || faults[0].Destination != left[0].Destination || faults[0].RequestID == "" {
		t.Fatalf("faults: %+v", faults)
	}
	beside := 0
	for _, a := range attempts {
		same := a.RequestID == faults[0].RequestID
		if a.Destination == faults[0].Destination && same {
			t.Error("the one that panicked was sent by the same invocation")
		}
		if same {
			beside++
		}
	}
	if beside == 0 {
		t.Error("there was nobody beside the one that panicked")
	}
	t.Logf("%d innocents in the batch of the one that panicked", beside)
}

func TestAStreamBatchThatIsReplayedMakesNoDeliveryAndNoSecondRequest(t *testing.T) {
	running.quiet(t)
	mapping := running.mapping(t, "OutboxStreamFunction", "")
	running.enable(t, mapping, false)
	enabled := false
	t.Cleanup(func() {
		if !enabled {
			running.enable(t, mapping, true)
		}
	})
	died := running.kill(t, killpoint.AfterEnqueue)
	r := newReceiver(t)
	p := newProject(t, r, r)
	const newest = 3
	for range newest {
		p.publish()
	}
	forwarded := func() (sum float64) {
		for _, n := range running.figures(t, "OutboxStreamLogs", "Forwarded") {
			sum += n
		}
		return sum
	}
	before := forwarded()
	running.enable(t, mapping, true)
	enabled = true
	judge := func(when string) (items []map[string]dynamodbtypes.AttributeValue) {
		t.Helper()
		for release := int64(1); release <= newest; release++ {
			var list []client.Delivery
			eventually(t, fmt.Sprintf("both deliveries of release %d have ended", release), func() bool {
				list = p.deliveries(release)
				return !slices.ContainsFunc(list, func(d client.Delivery) bool {
					return d.State == client.DeliveryStateQueued || d.State == client.DeliveryStateRetrying
				})
			}, func() string { return "" })
			for _, d := range list {
				if sent := d.State == client.DeliveryStateDelivered && len(d.Attempts) == 1; len(list) != 2 || sent != (release == newest) {
					t.Errorf("%s: release %d has %d deliveries; one is %s with %d attempts", when, release, len(list), d.State, len(d.Attempts))
				}
			}
		}
		running.gone(t, p.id)
		if got := r.requests(); !slices.Equal(releases(r), []int64{newest, newest}) || got[0].id() == got[1].id() {
			t.Errorf("%s: releases arrived as %v, want the newest once for each destination", when, releases(r))
		}
		for _, hook := range p.hooks {
			items = append(items, running.deliveryItems(t, p.id, hook)...)
		}
		return items
	}

	// Its function is killed after it put the batch on the queue: all of it comes again.
	eventually(t, "the function is killed, which it does not report, and the batch is forwarded again", func() bool {
		return died() && forwarded()-before >= 2*newest
	}, func() string { return fmt.Sprintf("killed: %v, forwarded: %v", died(), forwarded()-before) })
	ended := judge("replayed by the mapping")
	if len(ended) != 2*newest {
		t.Errorf("%d deliveries stand in the table, want %d", len(ended), 2*newest)
	}

	// And once more when everything has ended.
	records := running.streamRecords(t, p.id)
	if len(records) != 2*newest {
		t.Fatalf("the stream has %d records that ring, want %d", len(records), 2*newest)
	}
	batch, err := json.Marshal(map[string]any{"Records": records})
	must(t, err)
	out, err := running.lambda.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String(running.Resources["OutboxStreamFunction"]), Payload: batch})
	must(t, err)
	var answer events.DynamoDBEventResponse
	if err := json.Unmarshal(out.Payload, &answer); out.FunctionError != nil || err != nil || len(answer.BatchItemFailures) > 0 {
		t.Fatalf("the replay is answered: %s (%v)", out.Payload, err)
	}
	if after := judge("replayed after the end"); !reflect.DeepEqual(after, ended) {
		t.Error("the replay changed the deliveries")
	}
}

func TestAPublishThatIsRefusedInTheMiddleLeavesNeitherReleaseNorDelivery(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	p := newProject(t, r, r, r)
	// A delivery that should not be there refuses the transaction at its second delivery.
	item := map[string]dynamodbtypes.AttributeValue{
		"pk":     &dynamodbtypes.AttributeValueMemberS{Value: "P#" + p.id + "#D#" + p.hooks[1]},
		"sk":     &dynamodbtypes.AttributeValueMemberS{Value: "R#000000000001"},
		"status": &dynamodbtypes.AttributeValueMemberS{Value: "stray"},
	}
	table := running.Outputs["DeliveryTableName"]
	_, err := running.tables.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: item})
	must(t, err)
	publish := func() (*client.ReleaseHeaders, error) {
		return p.api.PublishRelease(t.Context(), client.OptPublish{},
			client.PublishReleaseParams{Project: p.id, IdempotencyKey: client.NewOptString("the-same")})
	}
	_, err = publish()
	if problem := client.AsProblem(err); problem == nil || problem.StatusCode != http.StatusInternalServerError || strings.Contains(problem.Response.Detail.Value, "stray") {
		t.Fatalf("the publish is answered: %v, want a fault of ours", err)
	}
	_, err = p.api.GetRelease(t.Context(), client.GetReleaseParams{Project: p.id, Release: 1})
	if problem := client.AsProblem(err); problem == nil || problem.StatusCode != http.StatusNotFound {
		t.Errorf("release 1: %v, want that there is none", err)
	}
	project, err := p.api.GetProject(t.Context(), client.GetProjectParams{Project: p.id})
	must(t, err)
	if project.NewestRelease.Set {
		t.Errorf("the project has a release: %d", project.NewestRelease.Value)
	}
	for _, hook := range []string{p.hooks[0], p.hooks[2]} {
		if got := running.deliveryItems(t, p.id, hook); len(got) != 0 {
			t.Errorf("%d deliveries to %s", len(got), hook)
		}
	}

	// The number and the key are free.
	_, err = running.tables.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
		TableName: &table, Key: map[string]dynamodbtypes.AttributeValue{"pk": item["pk"], "sk": item["sk"]},
	})
	must(t, err)
	release, err := publish()
	must(t, err)
	if release.Response.Number != 1 || release.IdempotentReplayed.Or(false) {
		t.Errorf("asked again: release %d, a replay: %v", release.Response.Number, release.IdempotentReplayed.Or(false))
	}
	eventually(t, "release 1 is delivered to all three", func() bool {
		return !slices.ContainsFunc(p.deliveries(1), func(d client.Delivery) bool { return d.State != client.DeliveryStateDelivered })
	}, func() string { return "" })
	if got := releases(r); !slices.Equal(got, []int64{1, 1, 1}) {
		t.Errorf("releases arrived as %v", got)
	}
}

// What an idle sweep costs.
func TestAnIdleSweepAsksEachShardOnceAndFindsNothing(t *testing.T) {
	t.Parallel()
	idle := 0
	eventually(t, "a sweep finds nothing", func() bool {
		running.sweep(t)
		idle = 0
		for _, text := range running.lines(t, "SweepLogs") {
			var line struct {
				Message                                           string
				Queries, Sent, Unsent, Passed, Unreadable, Faults int
				Complete                                          bool
			}
			if json.Unmarshal([]byte(text), &line) != nil || line.Message != "swept" || !line.Complete ||
				line.Sent+line.Unsent+line.Passed+line.Unreadable+line.Faults > 0 {
				continue
			}
			idle++
			if line.Queries != 64 {
				t.Errorf("an idle sweep asked %d times, want once for each of 64 shards", line.Queries)
			}
		}
		return idle > 0
	}, func() string { return "" })
}

// deliveries are a release's, one for each destination.
func (p *project) deliveries(release int64) []client.Delivery {
	p.t.Helper()
	list, err := p.api.ListReleaseDeliveries(p.t.Context(), client.ListReleaseDeliveriesParams{Project: p.id, Release: release})
	must(p.t, err)
	return list.Deliveries
}

// deliveryItems are a destination's deliveries as they stand in the table.
func (s *stack) deliveryItems(t testing.TB, project, destination string) []map[string]dynamodbtypes.AttributeValue {
	t.Helper()
	out, err := s.tables.Query(t.Context(), &dynamodb.QueryInput{
		TableName: aws.String(s.Outputs["DeliveryTableName"]), ConsistentRead: aws.Bool(true),
		KeyConditionExpression: aws.String("pk = :pk AND begins_with(sk, :sk)"),
		ExpressionAttributeValues: map[string]dynamodbtypes.AttributeValue{
			":pk": &dynamodbtypes.AttributeValueMemberS{Value: "P#" + project + "#D#" + destination},
			":sk": &dynamodbtypes.AttributeValueMemberS{Value: "R#"},
		},
	})
	must(t, err)
	return out.Items
}

// streamRecords are the records of the deliveries' stream that ring for a project,
// in the form in which Lambda hands them over.
func (s *stack) streamRecords(t testing.TB, project string) (ringing []json.RawMessage) {
	t.Helper()
	table, err := s.tables.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(s.Outputs["DeliveryTableName"])})
	must(t, err)
	arn := table.Table.LatestStreamArn
	var described struct {
		StreamDescription struct{ Shards []struct{ ShardId string } }
	}
	s.streams(t, "DescribeStream", map[string]any{"StreamArn": arn}, &described)
	for _, shard := range described.StreamDescription.Shards {
		var at struct{ ShardIterator string }
		s.streams(t, "GetShardIterator", map[string]any{"StreamArn": arn, "ShardId": shard.ShardId, "ShardIteratorType": "TRIM_HORIZON"}, &at)
		for at.ShardIterator != "" {
			var page struct {
				Records           []json.RawMessage
				NextShardIterator string
			}
			s.streams(t, "GetRecords", map[string]any{"ShardIterator": at.ShardIterator}, &page)
			if len(page.Records) == 0 {
				break
			}
			at.ShardIterator = page.NextShardIterator
			for _, record := range page.Records {
				var r struct {
					DynamoDB struct{ NewImage map[string]any }
				}
				must(t, json.Unmarshal(record, &r))
				if r.DynamoDB.NewImage["ring"] != nil && bytes.Contains(record, []byte(project)) {
					ringing = append(ringing, record)
				}
			}
		}
	}
	return ringing
}

func (s *stack) streams(t testing.TB, operation string, in, out any) {
	t.Helper()
	body, err := json.Marshal(in)
	must(t, err)
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.Endpoint+"/", bytes.NewReader(body))
	must(t, err)
	q.Header.Set("Content-Type", "application/x-amz-json-1.0")
	q.Header.Set("X-Amz-Target", "DynamoDBStreams_20120810."+operation)
	q.Header.Set("X-Amz-Date", "20260301T120000Z")
	q.Header.Set("Authorization", fmt.Sprintf("AWS4-HMAC-SHA256 Credential=test/20260301/%s/dynamodb/aws4_request, SignedHeaders=host, Signature=0", s.Region))
	answer, err := http.DefaultClient.Do(q)
	must(t, err)
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", operation, answer.Status)
	}
	must(t, json.NewDecoder(answer.Body).Decode(out))
}
