package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"colophon/internal/delivery"
	"colophon/internal/outbox"
)

// hangingWorker works until its context ends.
type hangingWorker struct {
	end  delivery.Disposition
	left func() // called when the context has ended
}

func (w hangingWorker) AnswerAll(ctx context.Context, rings []delivery.Ring) []delivery.Disposition {
	if len(rings) > 0 {
		<-ctx.Done()
		w.left()
	}
	return slices.Repeat([]delivery.Disposition{w.end}, len(rings))
}

func (w hangingWorker) AnswerTest(ctx context.Context, _ delivery.TestRing) delivery.Disposition {
	<-ctx.Done()
	w.left()
	return w.end
}

func TestABatchThatHangsIsAnsweredBeforeItsInvocationIsCutOff(t *testing.T) {
	t.Parallel()
	const whole = 20 * time.Second
	unreachable := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	for name, message := range map[string]outbox.Message{
		"a delivery":  {Destination: delivery.Destination{Project: "p1", ID: "d1"}, Release: 1},
		"a test send": {Destination: delivery.Destination{Project: "p1", ID: "d1"}, Test: "t1"},
	} {
		body, err := message.Encode()
		if err != nil {
			t.Fatal(err)
		}
		for _, queues := range []string{"reachable", "unreachable"} {
			t.Run(name+", its queue "+queues, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					began := time.Now()
					ctx, cancel := context.WithTimeout(t.Context(), whole)
					defer cancel()
					var stopped time.Duration
					hidden := 0
					send := func(ctx context.Context, _ *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
						return nil, unreachable(ctx)
					}
					c, err := outbox.NewConsumer(outbox.ConsumerConfig{
						QueueURL: "http://sqs/fast", SlowQueueURL: "http://sqs/slow",
						Worker: hangingWorker{end: delivery.Keep{For: time.Second}, left: func() { stopped = time.Since(began) }},
						Slow:   newSender(t, "http://sqs/slow", send), Dead: newSender(t, "http://sqs/dead", send),
						ChangeVisibility: func(ctx context.Context, _ *sqs.ChangeMessageVisibilityInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error) {
							if queues == "unreachable" {
								return nil, unreachable(ctx)
							}
							if ctx.Err() != nil {
								return nil, errors.New("there is no time left for it")
							}
							hidden++
							return &sqs.ChangeMessageVisibilityOutput{}, nil
						},
						Log: slog.New(slog.DiscardHandler),
					})
					if err != nil {
						t.Fatal(err)
					}
					var batch events.SQSEvent
					for i := range 3 {
						batch.Records = append(batch.Records, events.SQSMessage{MessageId: fmt.Sprint(i), Body: body, EventSourceARN: "arn:aws:sqs:eu-west-1:0:fast"})
					}
					out, err := c.Handle(ctx, batch)
					if err != nil || len(out.BatchItemFailures) != 3 {
						t.Errorf("answered %+v, %v", out, err)
					}
					if took := time.Since(began); took >= whole || whole-stopped < time.Second {
						t.Errorf("the work ended after %v and the invocation after %v, of %v", stopped, took, whole)
					}
					if want := map[string]int{"reachable": 3}[queues]; hidden != want {
						t.Errorf("%d messages come back when they were to, want %d", hidden, want)
					}
				})
			})
		}
	}
}
