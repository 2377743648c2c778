package outboxstream

import (
	"crypto/rand"
	"io"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"colophon/internal/clock"
	"colophon/internal/outbox"
	"colophon/internal/runtime"
)

// New builds the function from its environment; figures go to stdout.
func New(getenv func(string) string, stdout io.Writer) (*outbox.Forwarder, error) {
	runtime.FitSandbox(getenv)
	e, err := runtime.ReadOutboxStream(getenv)
	if err != nil {
		return nil, err
	}
	queues, err := runtime.AWS(getenv, "sqs")
	if err != nil {
		return nil, err
	}
	send := sqs.NewFromConfig(queues).SendMessageBatch
	queue, err := outbox.NewSender(outbox.SenderConfig{QueueURL: e.QueueURL, SendBatch: send})
	if err != nil {
		return nil, err
	}
	onFailure, err := outbox.NewSender(outbox.SenderConfig{QueueURL: e.OnFailureQueue, SendBatch: send})
	if err != nil {
		return nil, err
	}
	metrics, err := runtime.NewMetrics(runtime.MetricsConfig{Writer: stdout, Namespace: e.Namespace, Clock: clock.Now})
	if err != nil {
		return nil, err
	}
	return outbox.NewForwarder(outbox.ForwarderConfig{
		Queue: queue, OnFailure: onFailure, Clock: clock.Now, Random: rand.Reader,
		Observe: outbox.ReportForwarded(runtime.NewLog(), metrics),
	})
}
