package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"colophon/internal/delivery"
	"colophon/internal/killpoint"
	"colophon/internal/outbox"
)

// receivesMost is the queues' maxReceiveCount.
const receivesMost = 100

// message is a message on a queue.
type message struct {
	id       int
	body     string
	receives int
	visible  moment // from then on
	receipt  int    // of the last receive; an older one can do nothing
}

// queue is a standard queue: it delivers in any order, now and then twice, and
// it loses what the faults make it lose.
type queue struct {
	w        *World
	name     string
	messages []*message
	batch    int // a mapping's batch size; 0: nobody polls it
	most     int // and its MaximumConcurrency
	busy     int // invocations under way
	planned  moment
	pending  bool // a poll is planned
}

func (q *queue) put(body string, after moment) {
	w := q.w
	if w.happens(faultQueueLoss) {
		w.tell("the queue %s loses the message for %s", q.name, w.named(body))
		return
	}
	if w.happens(faultQueueDelay) {
		delays := [...]moment{time.Second, 10 * time.Second, 29 * time.Second, time.Minute, 5 * time.Minute, 20 * time.Minute}
		after += delays[w.choices.below(faultQueueDelay, len(delays))]
	}
	w.messages++
	q.messages = append(q.messages, &message{id: w.messages, body: body, visible: w.now + after})
	q.plan()
}

// sendBatch is SQS's SendMessageBatch as a process calls it.
func (q *queue) sendBatch(_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	w := q.w
	w.step()
	w.passes(killpoint.BeforeEnqueue)
	w.travel()
	out := &sqs.SendMessageBatchOutput{}
	fault := 0
	if w.happens(faultQueueSend) {
		fault = 1 + w.choices.below(faultQueueSend, 3)
	}
	if fault == 1 {
		w.back()
		return nil, errors.New("the queue takes nothing")
	}
	for _, entry := range in.Entries {
		if fault == 2 && w.choices.below(faultQueueSend, 2) == 1 {
			out.Failed = append(out.Failed, types.BatchResultErrorEntry{Id: entry.Id, Code: aws.String("InternalError")})
			continue
		}
		q.put(*entry.MessageBody, w.latency())
		out.Successful = append(out.Successful, types.SendMessageBatchResultEntry{Id: entry.Id})
	}
	w.tell("%s puts %d on the queue %s", w.current.process.name, len(out.Successful), q.name)
	w.passes(killpoint.AfterEnqueue)
	w.back()
	if fault == 3 {
		return nil, errors.New("no answer of the queue")
	}
	return out, nil
}

// changeVisibility is SQS's ChangeMessageVisibility. An older receipt is refused.
func (w *World) changeVisibility(_ context.Context, in *sqs.ChangeMessageVisibilityInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error) {
	w.step()
	w.travel()
	q := w.queueOf(*in.QueueUrl)
	m := q.held(*in.ReceiptHandle)
	if m == nil {
		w.back()
		return nil, errors.New("receipt is not valid")
	}
	if in.VisibilityTimeout < 1 || in.VisibilityTimeout > 43200 {
		w.violate("a visibility that SQS refuses", "%d s", in.VisibilityTimeout)
	}
	m.visible = w.now + moment(in.VisibilityTimeout)*time.Second
	q.plan()
	w.back()
	return &sqs.ChangeMessageVisibilityOutput{}, nil
}

func (q *queue) held(receipt string) *message {
	n, _ := strconv.Atoi(receipt)
	for _, m := range q.messages {
		if m.receipt == n {
			return m
		}
	}
	return nil
}

// remove deletes a message as the mapping does after an invocation.
func (q *queue) remove(receipt string) {
	w := q.w
	w.step()
	if w.happens(faultAck) {
		w.tell("the queue %s forgets a deletion", q.name)
		return
	}
	if m := q.held(receipt); m != nil {
		q.drop(m)
	}
}

func (q *queue) drop(m *message) {
	q.messages = slices.DeleteFunc(q.messages, func(o *message) bool { return o == m })
}

// plan makes sure that somebody polls when the next message can be seen.
func (q *queue) plan() {
	if q.batch == 0 || q.busy >= q.most || len(q.messages) == 0 {
		return
	}
	at := q.messages[0].visible
	for _, m := range q.messages {
		at = min(at, m.visible)
	}
	at = max(at, q.w.now)
	if q.pending && q.planned <= at {
		return
	}
	q.pending, q.planned = true, at
	q.w.calendar.add(event{at: at, do: func() {
		if q.pending && q.planned == at {
			q.pending = false
			q.poll()
		}
	}})
}

// poll starts an invocation for what can be seen.
func (q *queue) poll() {
	w := q.w
	var seen []*message
	for _, m := range q.messages {
		if m.visible <= w.now {
			seen = append(seen, m)
		}
	}
	if len(seen) > 0 && q.busy < q.most {
		for i := len(seen) - 1; i > 0; i-- { // a standard queue has no order
			j := i - w.choices.below(chooseOrder, i+1)
			seen[i], seen[j] = seen[j], seen[i]
		}
		seen = seen[:min(len(seen), q.batch, 1+w.choices.below(chooseOrder, q.batch))]
		var batch []*message
		for _, m := range seen {
			if m.receives == receivesMost {
				q.drop(m)
				w.dead.put(m.body, 0)
				continue
			}
			w.receipts++
			m.receives++
			m.receipt, m.visible = w.receipts, w.now+delivery.VisibilityTime
			if w.happens(faultQueueTwice) { // one of the queue's servers does not know of this receive
				m.visible = w.now + 10*w.latency()
				w.tell("the queue %s delivers the message for %s twice", q.name, w.named(m.body))
			}
			batch = append(batch, m)
		}
		if len(batch) > 0 {
			w.deliver(q, batch)
		}
	}
	q.plan()
}

// event is a batch as Lambda hands it over.
func (q *queue) event(batch []*message) events.SQSEvent {
	var e events.SQSEvent
	for _, m := range batch {
		e.Records = append(e.Records, events.SQSMessage{
			MessageId: strconv.Itoa(m.receipt), ReceiptHandle: strconv.Itoa(m.receipt), Body: m.body,
			Attributes:     map[string]string{"ApproximateReceiveCount": strconv.Itoa(m.receives)},
			EventSourceARN: "arn:aws:sqs:eu-west-1:000000000000:" + q.name,
		})
	}
	return e
}

// named says in the story what a message is for.
func (w *World) named(body string) string {
	if w.story == nil {
		return ""
	}
	m, err := outbox.Decode(body)
	if err != nil {
		return "nobody can say what"
	}
	return fmt.Sprintf("release %d to %s", m.Release, w.check.at(m.Destination).name)
}

func (w *World) queueOf(url string) *queue {
	for _, q := range []*queue{w.queue, w.slow, w.dead, w.onFailure} {
		if url == q.url() {
			return q
		}
	}
	panic(fmt.Sprintf("sim: no queue %s", url))
}

func (q *queue) url() string { return "https://sqs.example/000000000000/" + q.name }
