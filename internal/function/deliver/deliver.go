package deliver

import (
	"crypto/rand"
	"io"
	mathrand "math/rand/v2"
	"net/url"

	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"colophon/internal/clock"
	"colophon/internal/delivery"
	"colophon/internal/egress"
	"colophon/internal/outbox"
	"colophon/internal/runtime"
	"colophon/internal/runtime/sealing"
	"colophon/internal/store"
)

// New builds the function from its environment; figures go to stdout. Observe is
// told the units of each table call; nil: they are not asked for.
func New(getenv func(string) string, stdout io.Writer, observe func(store.Consumption)) (*outbox.Consumer, error) {
	runtime.FitSandbox(getenv)
	e, err := runtime.ReadDeliver(getenv)
	if err != nil {
		return nil, err
	}
	tables, err := runtime.AWS(getenv, "dynamodb")
	if err != nil {
		return nil, err
	}
	queues, err := runtime.AWS(getenv, "sqs")
	if err != nil {
		return nil, err
	}
	keys, err := runtime.AWS(getenv, "kms")
	if err != nil {
		return nil, err
	}
	engine, err := store.NewDynamo(store.DynamoConfig{Client: store.NewClient(tables), Observe: observe})
	if err != nil {
		return nil, err
	}
	deliveries, err := store.NewDeliveries(store.DeliveriesConfig{Engine: engine, Table: e.DeliveryTable, Clock: clock.Now})
	if err != nil {
		return nil, err
	}
	metrics, err := runtime.NewMetrics(runtime.MetricsConfig{Writer: stdout, Namespace: e.Namespace, Clock: clock.Now})
	if err != nil {
		return nil, err
	}
	opener, err := sealing.NewOpener(sealing.OpenerConfig{
		Decrypt: kms.NewFromConfig(keys).Decrypt, Key: e.SealingKey, Clock: clock.Now,
		OldContext: func() { metrics.Emit(map[string]float64{delivery.MetricOldSeals: 1}) },
	})
	if err != nil {
		return nil, err
	}
	egressConfig := egress.Config{
		Clock: clock.Now, RuntimeAPI: getenv("AWS_LAMBDA_RUNTIME_API"),
		Allow: []egress.TargetOption{egress.RefuseOwnAPI(egress.OwnAPI{ID: e.APIID, Hosts: []string{hostOf(e.PublicAddress)}})},
	}
	if e.AllowsLoopback {
		egressConfig.Allow = append(egressConfig.Allow, egress.AllowLoopback())
	}
	client, err := egress.New(egressConfig)
	if err != nil {
		return nil, err
	}
	courier, err := delivery.NewCourier(delivery.CourierConfig{Opener: opener, Client: client, Clock: clock.Now})
	if err != nil {
		return nil, err
	}
	log := runtime.NewLog()
	worker, err := delivery.NewWorker(delivery.Config{
		Reader: deliveries, Slots: deliveries, Endings: deliveries, Notes: deliveries, Tests: deliveries,
		Sender: courier, Observe: delivery.Report(log, metrics), Clock: clock.Now,
		Jitter: mathrand.Float64, Token: rand.Text, Sleep: clock.Sleep, Beside: delivery.Beside, Left: delivery.Left,
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
	return outbox.NewConsumer(outbox.ConsumerConfig{
		QueueURL: e.QueueURL, SlowQueueURL: e.SlowQueue, Worker: worker, Slow: slow, Dead: dead,
		ChangeVisibility: sqsClient.ChangeMessageVisibility, Log: log,
	})
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Hostname()
}
