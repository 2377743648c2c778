package outbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"colophon/internal/clock"
)

// reportTime is kept of an invocation to say how far it came: one that is cut
// off has its whole batch repeated.
const reportTime = 2 * time.Second

// ForwarderConfig is what a Forwarder needs.
type ForwarderConfig struct {
	Queue     *Sender // of the deliveries
	OnFailure *Sender // of the records that cannot be read
	Clock     func() time.Time
	Random    io.Reader                        // of trace ids
	Observe   func(context.Context, Forwarded) // is told of each batch
}

func (c ForwarderConfig) validate() error {
	if c.Queue == nil || c.OnFailure == nil || c.Clock == nil || c.Random == nil || c.Observe == nil {
		return errors.New("outbox: a forwarder's config is not complete")
	}
	return nil
}

// Forwarder puts on the queue what rings in the stream.
type Forwarder struct{ ForwarderConfig }

// NewForwarder makes a Forwarder.
func NewForwarder(c ForwarderConfig) (*Forwarder, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &Forwarder{c}, nil
}

// Forwarded is what became of a batch of stream records.
type Forwarded struct {
	Trace    string
	Records  int
	Sent     int   // messages on the queue
	Silent   int   // records that do not ring
	SetAside int   // records that could not be read
	Left     int   // records from the first that failed on: they come again
	Cause    error // why they were left
}

// Handle forwards a batch. All that stands before the sequence number that it
// reports is on the queue, set aside, or of no interest; the mapping repeats
// everything from there on. What is sent twice so is harmless.
func (f *Forwarder) Handle(ctx context.Context, e StreamEvent) (events.DynamoDBEventResponse, error) {
	ctx, stop := clock.EndingBefore(ctx, reportTime)
	defer stop()
	trace, err := traceID(ctx, f.Clock(), f.Random)
	if err != nil {
		return events.DynamoDBEventResponse{}, err
	}
	report := Forwarded{Trace: trace, Records: len(e.Records)}
	readings := make([]reading, len(e.Records))
	for i, raw := range e.Records {
		readings[i] = readRecord(raw)
	}

	failed := f.send(ctx, readings, &report)
	failed = f.setAside(ctx, readings[:failed], &report)
	report.Left = len(readings) - failed
	f.Observe(ctx, report)
	return failures(readings, failed, report.Cause)
}

// send puts what rings on the queue, in the order of the stream, and returns how
// many records are seen to. It ends at the first request with a failure: what
// stands behind it comes again anyway.
func (f *Forwarder) send(ctx context.Context, readings []reading, report *Forwarded) int {
	var places []int
	for i, r := range readings {
		switch {
		case r.rings:
			places = append(places, i)
		case r.fault == "":
			report.Silent++
		}
	}
	for part := range slices.Chunk(places, sendMost) {
		messages := make([]Message, len(part))
		for i, place := range part {
			messages[i] = readings[place].message
			messages[i].Trace = report.Trace
		}
		unsent := f.Queue.Send(ctx, messages)
		report.Sent += len(part) - len(unsent)
		if len(unsent) > 0 {
			report.Cause = unsent[0].Err
			return part[unsent[0].Index]
		}
	}
	return len(readings)
}

// setAside sends each record that cannot be read alone to the on-failure queue,
// and returns how many records are seen to.
func (f *Forwarder) setAside(ctx context.Context, readings []reading, report *Forwarded) int {
	for i, r := range readings {
		if r.fault == "" {
			continue
		}
		if err := f.OnFailure.SetAside(ctx, r.letter()); err != nil {
			report.Cause = err
			return i
		}
		report.SetAside++
	}
	return len(readings)
}

// failures reports the first record that failed, by position: a batch is in the
// order of its sequence numbers. Lambda takes an empty identifier for a fault of
// the whole batch, so a record that has none is reported as the one before it.
func failures(readings []reading, failed int, cause error) (events.DynamoDBEventResponse, error) {
	if failed == len(readings) {
		return events.DynamoDBEventResponse{}, nil
	}
	for i := failed; i >= 0; i-- {
		if sequence := readings[i].sequence; sequence != "" {
			return events.DynamoDBEventResponse{
				BatchItemFailures: []events.DynamoDBBatchItemFailure{{ItemIdentifier: sequence}},
			}, nil
		}
	}
	return events.DynamoDBEventResponse{}, fmt.Errorf("forward records without a sequence number: %w", cause)
}
