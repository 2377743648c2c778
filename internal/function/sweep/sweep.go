package sweep

import (
	"crypto/rand"
	"io"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"colophon/internal/clock"
	"colophon/internal/outbox"
	"colophon/internal/runtime"
	"colophon/internal/store"
)

// New builds the function from its environment; figures go to stdout. Observe is
// told the units of each table call; nil: they are not asked for.
func New(getenv func(string) string, stdout io.Writer, observe func(store.Consumption)) (*outbox.Sweeper, error) {
	runtime.FitSandbox(getenv)
	e, err := runtime.ReadSweep(getenv)
	if err != nil {
		return nil, err
	}
	queues, err := runtime.AWS(getenv, "sqs")
	if err != nil {
		return nil, err
	}
	queue, err := outbox.NewSender(outbox.SenderConfig{
		QueueURL: e.QueueURL, SendBatch: sqs.NewFromConfig(queues).SendMessageBatch,
	})
	if err != nil {
		return nil, err
	}
	tables, err := runtime.AWS(getenv, "dynamodb")
	if err != nil {
		return nil, err
	}
	engine, err := store.NewDynamo(store.DynamoConfig{Client: store.NewClient(tables), Observe: observe})
	if err != nil {
		return nil, err
	}
	index, err := store.NewSweep(store.SweepConfig{Engine: engine, Table: e.DeliveryTable})
	if err != nil {
		return nil, err
	}
	metrics, err := runtime.NewMetrics(runtime.MetricsConfig{Writer: stdout, Namespace: e.Namespace, Clock: clock.Now})
	if err != nil {
		return nil, err
	}
	return outbox.NewSweeper(outbox.SweeperConfig{
		Index: index, Queue: queue, Clock: clock.Now, Random: rand.Reader,
		Observe: outbox.ReportSwept(runtime.NewLog(), metrics),
	})
}
