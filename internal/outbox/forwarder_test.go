package outbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"pgregory.net/rapid"

	"colophon/internal/outbox"
	"colophon/internal/store"
)

// stage is a forwarder between faulty ways to send and two real queues.
type stage struct {
	*outbox.Forwarder
	queue, onFailure string
	sends, asides    *faultySends
	reports          []outbox.Forwarded
}

func newStage(t testing.TB) *stage {
	t.Helper()
	s := &stage{queue: newQueue(t, nil), onFailure: newQueue(t, nil)}
	s.sends = &faultySends{send: queueClient().SendMessageBatch}
	s.asides = &faultySends{send: queueClient().SendMessageBatch}
	s.Forwarder = newForwarder(t, newSender(t, s.queue, s.sends.SendMessageBatch), newSender(t, s.onFailure, s.asides.SendMessageBatch),
		func(_ context.Context, f outbox.Forwarded) { s.reports = append(s.reports, f) })
	return s
}

func newForwarder(t testing.TB, queue, onFailure *outbox.Sender, observe func(context.Context, outbox.Forwarded)) *outbox.Forwarder {
	t.Helper()
	f, err := outbox.NewForwarder(outbox.ForwarderConfig{
		Queue: queue, OnFailure: onFailure, Observe: observe, Random: zeros{}, Clock: func() time.Time { return start },
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// handle gives the sequence number that is reported; empty where none is.
func (s *stage) handle(t testing.TB, ctx context.Context, e outbox.StreamEvent) string {
	t.Helper()
	out, err := s.Handle(ctx, e)
	if err != nil {
		t.Fatal(err)
	}
	return reported(t, out)
}

func reported(t testing.TB, out events.DynamoDBEventResponse) string {
	t.Helper()
	switch len(out.BatchItemFailures) {
	case 0:
		return ""
	case 1:
		if id := out.BatchItemFailures[0].ItemIdentifier; id != "" {
			return id
		}
	}
	t.Fatalf("reported %+v", out.BatchItemFailures)
	return ""
}

// ringing is a record of a delivery that rings; its sequence number is 1000 + its release.
func ringing(release int64) string {
	return recordOf("INSERT", 1000+release, map[string]any{
		"pk": text("P#p1#D#d1"), "sk": text(fmt.Sprintf("R#%012d", release)), "ring": map[string]string{"N": "1772366400000"},
		"body": text("CONFIDENTIAL"), "status": text("queued"),
	})
}

func text(s string) map[string]string { return map[string]string{"S": s} }

func recordOf(name string, sequence int64, image map[string]any) string {
	record := map[string]any{
		"eventID": "e" + strconv.FormatInt(sequence, 10), "eventName": name, "eventVersion": "1.1",
		"eventSource": "aws:dynamodb", "awsRegion": "eu-west-1",
		"dynamodb": map[string]any{
			"SequenceNumber": strconv.FormatInt(sequence, 10), "NewImage": image, "StreamViewType": "NEW_IMAGE",
			"ApproximateCreationDateTime": 1772366400, "SizeBytes": 400,
		},
		"eventSourceARN": "arn:aws:dynamodb:eu-west-1:000000000000:table/colophon-delivery/stream/2026-03-01T00:00:00.000",
	}
	raw, err := json.Marshal(record)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func eventOf(records ...string) outbox.StreamEvent {
	var e outbox.StreamEvent
	for _, r := range records {
		e.Records = append(e.Records, json.RawMessage(r))
	}
	return e
}

func ringingThrough(n int64) []string {
	var records []string
	for release := int64(1); release <= n; release++ {
		records = append(records, ringing(release))
	}
	return records
}

func TestWhatRingsInTheTablesStreamIsPutOnTheQueueAndNothingElse(t *testing.T) {
	t.Parallel()
	w, s := newWorld(t), newStage(t)
	w.put(t, key("d1", 1), deliveryItem(start))                                                                       // a publish
	w.put(t, key("d2", 1), deliveryItem(start))                                                                       // to another destination
	w.put(t, store.Key{PK: "P#p1#D#d1", SK: "SLOT"}, store.Item{"state": store.Text("active")})                       // no ring
	w.change(t, key("d1", 1), store.Set(store.At("status"), store.Text("delivered")), store.Remove(store.At("ring"))) // a record
	w.change(t, key("d1", 1), store.Set(store.At("ring"), store.Number(1)))                                           // a redelivery
	w.put(t, store.Key{PK: "P#p1#D#d1", SK: "T#test1"}, store.Item{"ring": store.Number(1)})                          // a test send
	if _, err := w.engine.Write(t.Context(), store.Write{Table: w.tables.Delivery, Key: key("d2", 1), Delete: true}); err != nil {
		t.Fatal(err)
	}
	if failed := s.handle(t, t.Context(), w.stream(t)); failed != "" {
		t.Errorf("reported %s", failed)
	}
	want := []string{"d1/1", "d1/1", "d1/test test1", "d2/1"}
	if got := takeMessages(t, s.queue); !slices.Equal(got, want) {
		t.Errorf("on the queue: %v, want %v", got, want)
	}
	if got := take(t, s.onFailure); len(got) > 0 {
		t.Errorf("set aside: %v", got)
	}
	if r := s.reports[0]; r.Records != 7 || r.Sent != 4 || r.Silent != 3 || r.SetAside+r.Left > 0 {
		t.Errorf("reported as %+v", r)
	}
}

func TestTheFirstRecordThatFailedIsReportedAndEverythingBeforeItWasSent(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.sends.refuse = ofRelease(14, 17)
	if got := s.handle(t, t.Context(), eventOf(ringingThrough(35)...)); got != "1014" {
		t.Errorf("reported %s", got)
	}
	got := takeMessages(t, s.queue)
	for release := 1; release < 14; release++ {
		if !slices.Contains(got, fmt.Sprintf("d1/%d", release)) {
			t.Errorf("release %d was not sent", release)
		}
	}
	if slices.Contains(got, "d1/21") {
		t.Error("sent what comes again anyway")
	}
	if r := s.reports[0]; r.Left != 22 || r.Cause == nil {
		t.Errorf("reported as %+v", r)
	}

	s.sends.refuse = nil
	if got := s.handle(t, t.Context(), eventOf(ringingThrough(35)[13:]...)); got != "" {
		t.Errorf("the repetition reported %s", got)
	}
	if got := takeMessages(t, s.queue); len(got) != 22 {
		t.Errorf("the repetition sent %v", got)
	}
}

func TestARecordThatCannotBeReadGoesAloneToTheOnFailureQueueWithItsReason(t *testing.T) {
	t.Parallel()
	rings := map[string]string{"N": "1"}
	for name, c := range map[string]struct{ record, reason string }{
		"no object":     {`"hello"`, "not a stream record"},
		"wrong types":   {`{"eventName":7,"dynamodb":{"SequenceNumber":"1005"}}`, "not a stream record"},
		"no image":      {`{"eventName":"INSERT","dynamodb":{"SequenceNumber":"1005","NewImage":[1]}}`, "not a stream record"},
		"unknown event": {recordOf("RENAME", 1005, map[string]any{"ring": rings}), "neither an insertion nor a change"},
		"no key":        {recordOf("MODIFY", 1005, map[string]any{"ring": rings, "body": text("CONFIDENTIAL")}), "neither a delivery's key nor a test send's"},
		"another key": {
			recordOf("MODIFY", 1005, map[string]any{"ring": rings, "pk": text("P#p1"), "sk": text("META")}),
			"neither a delivery's key nor a test send's",
		},
		"a key of another type": {
			recordOf("MODIFY", 1005, map[string]any{"ring": rings, "pk": map[string]string{"N": "1"}, "sk": []int{1}}),
			"neither a delivery's key nor a test send's",
		},
		"release 0": {
			recordOf("INSERT", 1005, map[string]any{"ring": rings, "pk": text("P#p1#D#d1"), "sk": text("R#000000000000")}),
			"neither a delivery's key nor a test send's",
		},
		"an id that no message takes": {
			recordOf("INSERT", 1005, map[string]any{"ring": rings, "pk": text("P#p 1#D#d1"), "sk": text("R#000000000005")}),
			"no project's id",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			records := slices.Insert(ringingThrough(9), 4, c.record)
			if got := s.handle(t, t.Context(), eventOf(records...)); got != "" {
				t.Errorf("reported %s", got)
			}
			if got := takeMessages(t, s.queue); len(got) != 9 {
				t.Errorf("the nine others: %v", got)
			}
			letters := take(t, s.onFailure)
			if len(letters) != 1 {
				t.Fatalf("set aside: %v", letters)
			}
			attributes, body := letters[0].MessageAttributes, aws.ToString(letters[0].Body)
			if got := aws.ToString(attributes["reason"].StringValue); got != c.reason {
				t.Errorf("reason %q, want %q", got, c.reason)
			}
			if got := aws.ToString(attributes["source"].StringValue); got != "outbox-stream" {
				t.Errorf("source %q", got)
			}
			if name != "no object" && !strings.Contains(body, "1005") {
				t.Errorf("no sequence number in %s", body)
			}
			if strings.Contains(body, "CONFIDENTIAL") {
				t.Errorf("what the item holds is shown: %s", body)
			}
		})
	}
}

// Not parallel: it changes how all records of the process are read.
func TestAPanicIsTheFaultOfTheRecordThatWasRead(t *testing.T) {
	restore := outbox.PanicOnRecords(func(raw string) bool { return strings.Contains(raw, `"1005"`) })
	defer restore()
	s := newStage(t)
	if got := s.handle(t, t.Context(), eventOf(ringingThrough(10)...)); got != "" {
		t.Errorf("reported %s", got)
	}
	if got := takeMessages(t, s.queue); len(got) != 9 || slices.Contains(got, "d1/5") {
		t.Errorf("the nine others: %v", got)
	}
	letters := take(t, s.onFailure)
	if len(letters) != 1 || !strings.Contains(*letters[0].Body, `"sequenceNumber":"1005"`) ||
		*letters[0].MessageAttributes["reason"].StringValue != "panic while it was read" {
		t.Errorf("set aside: %+v", letters)
	}
}

func TestARecordThatCanNeitherBeReadNorSetAsideIsReported(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.asides.fail = errors.New("down")
	broken := recordOf("INSERT", 1500, map[string]any{"ring": true})
	if got := s.handle(t, t.Context(), eventOf(ringing(1), broken, ringing(2))); got != "1500" {
		t.Errorf("reported %s", got)
	}
}

func TestAnEmptyItemIdentifierIsNeverReported(t *testing.T) {
	t.Parallel()
	nameless := strings.Replace(ringing(3), `"SequenceNumber":"1003"`, `"SequenceNumber":""`, 1)
	s := newStage(t)
	s.sends.refuse = ofRelease(3)
	if got := s.handle(t, t.Context(), eventOf(ringing(1), ringing(2), nameless, ringing(4))); got != "1002" {
		t.Errorf("reported %s, want the record before", got)
	}
	if out, err := s.Handle(t.Context(), eventOf(nameless, ringing(4))); err == nil {
		t.Errorf("with nothing before it, the whole batch has to fail; answered %+v", out)
	}
}

func TestAnInvocationThatRunsOutOfTimeStillSaysHowFarItCame(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second+50*time.Millisecond)
	defer cancel()
	sent := 0
	queue := newSender(t, "http://queue", func(ctx context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
		if sent += len(in.Entries); sent > 10 {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return accepted(in), nil
	})
	f := newForwarder(t, queue, queue, func(context.Context, outbox.Forwarded) {})
	out, err := f.Handle(ctx, eventOf(ringingThrough(30)...))
	if ctx.Err() != nil {
		t.Error("nothing was left of the invocation")
	}
	if err != nil || reported(t, out) != "1011" {
		t.Errorf("answered %+v, %v", out, err)
	}
}

func accepted(in *sqs.SendMessageBatchInput) *sqs.SendMessageBatchOutput {
	out := &sqs.SendMessageBatchOutput{}
	for _, entry := range in.Entries {
		out.Successful = append(out.Successful, types.SendMessageBatchResultEntry{Id: entry.Id})
	}
	return out
}

func TestTheInvocationsTraceIsCarriedInEachMessageAndMadeWhereThereIsNone(t *testing.T) {
	t.Parallel()
	const root = "1-5759e988-bd862e3fe1be46a994272793"
	for header, want := range map[string]string{
		"Root=" + root + ";Parent=53995c3f42cd8ad8;Sampled=1": root,
		"Self=1-5; Root=" + root:                              root,
		"":                                                    fmt.Sprintf("1-%08x-%024x", start.Unix(), 0),
		"Root=a b;Sampled=1":                                  fmt.Sprintf("1-%08x-%024x", start.Unix(), 0),
	} {
		t.Run(header, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			//lint:ignore SA1029 the key is the runtime client's
			ctx := context.WithValue(t.Context(), "x-amzn-trace-id", header)
			s.handle(t, ctx, eventOf(ringing(1)))
			m, err := outbox.Decode(*take(t, s.queue)[0].Body)
			if err != nil || m.Trace != want || s.reports[0].Trace != want {
				t.Errorf("trace %q in the message, %q in the report, want %q (%v)", m.Trace, s.reports[0].Trace, want, err)
			}
		})
	}
}

// The mapping takes what stands before the reported sequence number for done: a
// handler that reports too high a number loses deliveries for good.
func TestWhateverFailsNothingBeforeTheReportedNumberIsLost(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var records []string
		kinds := make([]string, rapid.IntRange(1, 40).Draw(rt, "records"))
		for i := range kinds {
			kinds[i] = rapid.SampledFrom([]string{"rings", "rings", "rings", "silent", "broken", "nameless"}).Draw(rt, "kind")
			var record string
			switch kinds[i] {
			case "rings":
				record = ringing(int64(i) + 1)
			case "silent":
				record = recordOf("REMOVE", int64(1001+i), nil)
			case "nameless":
				record = `{"eventName":"INSERT","dynamodb":{"NewImage":{"ring":{"N":"1"}}}}`
			case "broken":
				record = recordOf("INSERT", int64(1001+i), map[string]any{"ring": text("x"), "sk": text(strconv.Itoa(i))})
			}
			records = append(records, record)
		}
		refuses := rapid.IntRange(0, 10).Draw(rt, "of ten entries refused")
		fails := rapid.IntRange(0, 10).Draw(rt, "of ten requests failed")
		sent, aside := map[string]bool{}, 0
		send := func(_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
			if rapid.IntRange(1, 10).Draw(rt, "request") <= fails {
				return nil, errors.New("down")
			}
			out := &sqs.SendMessageBatchOutput{}
			for _, entry := range in.Entries {
				if rapid.IntRange(1, 10).Draw(rt, "entry") <= refuses {
					out.Failed = append(out.Failed, types.BatchResultErrorEntry{Id: entry.Id})
					continue
				}
				out.Successful = append(out.Successful, types.SendMessageBatchResultEntry{Id: entry.Id})
				if *in.QueueUrl == "aside" {
					aside++
				} else {
					m, err := outbox.Decode(*entry.MessageBody)
					if err != nil {
						rt.Fatal(err)
					}
					sent[strconv.FormatInt(1000+m.Release, 10)] = true
				}
			}
			return out, nil
		}
		f := newForwarder(t, newSender(t, "queue", send), newSender(t, "aside", send), func(context.Context, outbox.Forwarded) {})
		out, err := f.Handle(t.Context(), eventOf(records...))
		done := len(records)
		if err != nil {
			done = 0
		} else if id := reported(t, out); id != "" {
			done = slices.IndexFunc(records, func(r string) bool { return strings.Contains(r, `"SequenceNumber":"`+id+`"`) })
			if done < 0 {
				rt.Fatalf("reported %s, which no record has", id)
			}
		}
		broken := 0
		for i, kind := range kinds[:done] {
			switch kind {
			case "rings":
				if !sent[strconv.Itoa(1001+i)] {
					rt.Fatalf("record %d of %d before the reported one was not sent", i, done)
				}
			case "broken", "nameless":
				broken++
			}
		}
		if aside < broken {
			rt.Fatalf("%d records set aside, %d before the reported one cannot be read", aside, broken)
		}
	})
}
