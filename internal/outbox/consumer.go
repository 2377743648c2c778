package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"colophon/internal/clock"
	"colophon/internal/delivery"
	"colophon/internal/killpoint"
)

// What is kept of an invocation: one that is cut off returns nothing, so its
// whole batch comes back after the visibility time, and counts as received.
const (
	AnswerTime = time.Second            // from here on no work is done: slots are given back, messages hidden or moved
	returnTime = 200 * time.Millisecond // from here on the answer alone is left
)

// Answering answers rings, each for itself; the answer to rings[i] is the i-th.
type Answering interface {
	AnswerAll(ctx context.Context, rings []delivery.Ring) []delivery.Disposition
	AnswerTest(ctx context.Context, ring delivery.TestRing) delivery.Disposition
}

// ConsumerConfig is what a Consumer needs.
type ConsumerConfig struct {
	QueueURL         string
	SlowQueueURL     string
	Worker           Answering
	Slow             *Sender // to the slow queue
	Dead             *Sender // to the dead-letter queue
	ChangeVisibility func(context.Context, *sqs.ChangeMessageVisibilityInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error)
	Log              *slog.Logger
}

func (c ConsumerConfig) validate() error {
	if c.QueueURL == "" || c.SlowQueueURL == "" || c.Worker == nil || c.Slow == nil || c.Dead == nil ||
		c.ChangeVisibility == nil || c.Log == nil {
		return errors.New("outbox: a consumer's config is not complete")
	}
	return nil
}

// Consumer turns batches of both queues' messages into rings and does with each
// message what its answer says. What it reports as failed comes back; all else
// is deleted by Lambda.
type Consumer struct{ ConsumerConfig }

// NewConsumer makes a Consumer.
func NewConsumer(c ConsumerConfig) (*Consumer, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &Consumer{c}, nil
}

// Handle answers one batch. An error would bring the whole batch back; there is
// none, whatever becomes of single messages.
func (c *Consumer) Handle(ctx context.Context, event events.SQSEvent) (events.SQSEventResponse, error) {
	concluding, stop := clock.EndingBefore(ctx, returnTime)
	defer stop()
	working, stopWork := clock.EndingBefore(ctx, AnswerTime)
	defer stopWork()
	ends := make([]delivery.Disposition, len(event.Records))
	var rings []delivery.Ring
	var places []int
	var tests sync.WaitGroup
	for i, record := range event.Records {
		m, err := Decode(record.Body)
		var unknown *UnknownVersionError
		switch {
		case errors.As(err, &unknown):
			ends[i] = delivery.Keep{For: delivery.UnknownVersion} // a deploy is under way
		case err != nil:
			ends[i] = delivery.MoveToDeadLetters{Reason: err.Error()}
		case m.Test != "":
			tests.Go(func() {
				ends[i] = c.Worker.AnswerTest(working, delivery.TestRing{
					Destination: m.Destination, ID: m.Test, Receives: receives(record), OnSlowQueue: c.onSlowQueue(record), Trace: m.Trace,
				})
			})
		default:
			rings = append(rings, delivery.Ring{
				Key: m.Key(), Receives: receives(record), OnSlowQueue: c.onSlowQueue(record), Trace: m.Trace,
			})
			places = append(places, i)
		}
	}
	for i, end := range c.Worker.AnswerAll(working, rings) {
		ends[places[i]] = end
	}
	tests.Wait()
	response := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	for i, record := range event.Records {
		if c.conclude(concluding, record, ends[i]) {
			continue
		}
		response.BatchItemFailures = append(response.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: record.MessageId})
	}
	killpoint.At(killpoint.BeforeAck)
	return response, nil
}

// conclude does with a message what its answer says, and says whether it may be
// deleted. Whatever fails here leaves the message: it rings again.
func (c *Consumer) conclude(ctx context.Context, record events.SQSMessage, end delivery.Disposition) (done bool) {
	var err error
	switch end := end.(type) {
	case delivery.Done:
		return true
	case delivery.Keep:
		if end.For > 0 {
			err = c.hide(ctx, record, end.For)
		}
		done = false
	case delivery.MoveToSlowQueue:
		var m Message
		if m, err = Decode(record.Body); err == nil {
			if unsent := c.Slow.Send(ctx, []Message{m}); len(unsent) > 0 {
				err = unsent[0].Err
			}
		}
		done = err == nil
	case delivery.MoveToDeadLetters:
		err = c.Dead.SetAside(ctx, Letter{Body: record.Body, Reason: end.Reason, Source: "deliver"})
		done = err == nil
		c.Log.LogAttrs(ctx, slog.LevelError, "dead letter", slog.String("message", record.MessageId), slog.String("reason", end.Reason))
	default:
		err = fmt.Errorf("no way to conclude with %T", end)
	}
	if err != nil {
		c.Log.LogAttrs(ctx, slog.LevelError, "message not concluded",
			slog.String("message", record.MessageId), slog.String("doing", fmt.Sprintf("%T", end)), slog.Any("error", err))
	}
	return done
}

// hide keeps a message from view for a while; SQS counts in whole seconds.
func (c *Consumer) hide(ctx context.Context, record events.SQSMessage, wait time.Duration) error {
	url := c.QueueURL
	if c.onSlowQueue(record) {
		url = c.SlowQueueURL
	}
	_, err := c.ChangeVisibility(ctx, &sqs.ChangeMessageVisibilityInput{
		QueueUrl: &url, ReceiptHandle: &record.ReceiptHandle, VisibilityTimeout: int32((wait + time.Second - 1) / time.Second),
	})
	if err != nil {
		return fmt.Errorf("change visibility: %w", err)
	}
	return nil
}

// onSlowQueue compares names: a message says the ARN of its queue, we know URLs.
func (c *Consumer) onSlowQueue(record events.SQSMessage) bool {
	return lastPart(record.EventSourceARN, ":") == lastPart(c.SlowQueueURL, "/")
}

func lastPart(s, separator string) string { return s[strings.LastIndex(s, separator)+1:] }

// receives is SQS's approximate count; where it is missing this is the first time.
func receives(record events.SQSMessage) int {
	n, err := strconv.Atoi(record.Attributes["ApproximateReceiveCount"])
	if err != nil || n < 1 {
		return 1
	}
	return n
}
