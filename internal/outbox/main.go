package outbox

import (
	"crypto/rand"
	"io"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"colophon/internal/clock"
	"colophon/internal/runtime"
	"colophon/internal/store"
)

// NewStreamMain builds the outbox-stream function from its environment; figures
// go to stdout.
func NewStreamMain(getenv func(string) string, stdout io.Writer) (*Forwarder, error) {
	env, err := runtime.ReadOutboxStream(getenv)
	if err != nil {
		return nil, err
	}
	queues, err := runtime.AWS(getenv, "sqs")
	if err != nil {
		return nil, err
	}
	send := sqs.NewFromConfig(queues).SendMessageBatch
	queue, err := NewSender(SenderConfig{QueueURL: env.QueueURL, SendBatch: send})
	if err != nil {
		return nil, err
	}
	onFailure, err := NewSender(SenderConfig{QueueURL: env.OnFailureQueue, SendBatch: send})
	if err != nil {
		return nil, err
	}
	metrics, err := runtime.NewMetrics(runtime.MetricsConfig{Writer: stdout, Namespace: env.Namespace, Clock: clock.Now})
	if err != nil {
		return nil, err
	}
	return NewForwarder(ForwarderConfig{
		Queue: queue, OnFailure: onFailure, Clock: clock.Now, Random: rand.Reader,
		Observe: ReportForwarded(runtime.NewLog(), metrics),
	})
}

// NewSweepMain builds the sweep function from its environment; figures go to
// stdout.
func NewSweepMain(getenv func(string) string, stdout io.Writer) (*Sweeper, error) {
	env, err := runtime.ReadSweep(getenv)
	if err != nil {
		return nil, err
	}
	queues, err := runtime.AWS(getenv, "sqs")
	if err != nil {
		return nil, err
	}
	queue, err := NewSender(SenderConfig{QueueURL: env.QueueURL, SendBatch: sqs.NewFromConfig(queues).SendMessageBatch})
	if err != nil {
		return nil, err
	}
	tables, err := runtime.AWS(getenv, "dynamodb")
	if err != nil {
		return nil, err
	}
	engine, err := store.NewDynamo(store.DynamoConfig{Client: store.NewClient(tables)})
	if err != nil {
		return nil, err
	}
	index, err := store.NewSweep(store.SweepConfig{Engine: engine, Table: env.DeliveryTable})
	if err != nil {
		return nil, err
	}
	metrics, err := runtime.NewMetrics(runtime.MetricsConfig{Writer: stdout, Namespace: env.Namespace, Clock: clock.Now})
	if err != nil {
		return nil, err
	}
	return NewSweeper(SweeperConfig{
		Index: index, Queue: queue, Clock: clock.Now, Random: rand.Reader, Observe: ReportSwept(runtime.NewLog(), metrics),
	})
}
