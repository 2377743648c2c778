package deliver

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"colophon/internal/delivery"
	"colophon/internal/egress"
	"colophon/internal/outbox"
	"colophon/internal/runtime"
	"colophon/internal/runtime/sealing"
	"colophon/internal/store"
)

// Config is what a Main is built from.
type Config struct {
	Environment runtime.Deliver
	Getenv      func(string) string // of the AWS clients
	RuntimeAPI  string              // AWS_LAMBDA_RUNTIME_API: never to be called by a delivery
	Log         *slog.Logger
	Stdout      io.Writer // where metrics are written
	Clock       func() time.Time
	Observe     func(store.Consumption) // nil: units are not asked for
}

// Main is the deliver function.
type Main struct {
	consumer *outbox.Consumer
}

// New builds the function.
func New(c Config) (*Main, error) {
	e := c.Environment
	tables, err := runtime.AWS(c.Getenv, "dynamodb")
	if err != nil {
		return nil, err
	}
	queues, err := runtime.AWS(c.Getenv, "sqs")
	if err != nil {
		return nil, err
	}
	keys, err := runtime.AWS(c.Getenv, "kms")
	if err != nil {
		return nil, err
	}
	engine, err := store.NewDynamo(store.DynamoConfig{Client: dynamodb.NewFromConfig(tables), Observe: c.Observe})
	if err != nil {
		return nil, err
	}
	deliveries, err := store.NewDeliveries(store.DeliveriesConfig{Engine: engine, Table: e.DeliveryTable, Clock: c.Clock})
	if err != nil {
		return nil, err
	}
	opener, err := sealing.NewOpener(sealing.OpenerConfig{Decrypt: kms.NewFromConfig(keys).Decrypt, Key: e.SealingKey, Clock: c.Clock})
	if err != nil {
		return nil, err
	}
	egressConfig := egress.Config{Clock: c.Clock, RuntimeAPI: c.RuntimeAPI}
	if e.AllowsLoopback {
		egressConfig.Allow = append(egressConfig.Allow, egress.AllowLoopback())
	}
	client, err := egress.New(egressConfig)
	if err != nil {
		return nil, err
	}
	courier, err := delivery.NewCourier(delivery.CourierConfig{Opener: opener, Client: client, Clock: c.Clock})
	if err != nil {
		return nil, err
	}
	metrics, err := runtime.NewMetrics(runtime.MetricsConfig{Writer: c.Stdout, Namespace: e.Namespace, Clock: c.Clock})
	if err != nil {
		return nil, err
	}
	worker, err := delivery.NewWorker(delivery.Config{
		Reader: deliveries, Slots: deliveries, Endings: deliveries, Notes: deliveries, Tests: deliveries,
		Sender: courier, Observe: delivery.Report(c.Log, metrics), Clock: c.Clock,
		Jitter: mathrand.Float64, Token: rand.Text, Sleep: delivery.Sleep, Beside: delivery.Beside,
	})
	if err != nil {
		return nil, err
	}
	sqsClient := sqs.NewFromConfig(queues)
	slow, err := outbox.NewSender(outbox.SenderConfig{QueueURL: e.SlowQueue, SendBatch: sqsClient.SendMessageBatch})
	if err != nil {
		return nil, err
	}
	dead, err := outbox.NewSender(outbox.SenderConfig{QueueURL: e.DeadLetterQueue, SendBatch: sqsClient.SendMessageBatch})
	if err != nil {
		return nil, err
	}
	consumer, err := outbox.NewConsumer(outbox.ConsumerConfig{
		QueueURL: e.QueueURL, SlowQueueURL: e.SlowQueue, Worker: worker, Slow: slow, Dead: dead,
		ChangeVisibility: sqsClient.ChangeMessageVisibility, Log: c.Log,
	})
	if err != nil {
		return nil, fmt.Errorf("build deliver: %w", err)
	}
	return &Main{consumer: consumer}, nil
}

// Handle answers one batch of either queue.
func (m *Main) Handle(ctx context.Context, event events.SQSEvent) (events.SQSEventResponse, error) {
	return m.consumer.Handle(ctx, event)
}
