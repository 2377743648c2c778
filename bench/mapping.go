package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// mappingsConfig says what the mappings join.
type mappingsConfig struct {
	Streams, Queues               string // the engines' host and port
	StreamARN                     string
	OutboxStream, Deliver, Sweep  string // the functions' host and port
	Queue, SlowQueue, OnFailure   string // URLs
	QueueName, SlowQueueName      string
	Concurrency, SlowConcurrency  int
	StreamInterval, SweepInterval time.Duration
}

// mapped is what the mappings did since they began.
type mapped struct {
	StreamReads, StreamRecords, Filtered, StreamBatches, StreamFaults, GivenUp int64
	Receives, EmptyReceives, Messages, Batches, Returned, BatchFaults, Deletes int64
	Slow, Sweeps                                                               int64
	MostAtOnce                                                                 int64
}

type counters struct {
	streamReads, streamRecords, filtered, streamBatches, streamFaults, givenUp atomic.Int64
	receives, emptyReceives, messages, batches, returned, batchFaults, deletes atomic.Int64
	slow, sweeps, mostAtOnce                                                   atomic.Int64
}

// mappingsRole is what Lambda runs beside the functions: the stream's mapping,
// the queues' mappings and the schedule, as its documentation describes them.
func mappingsRole(config []byte, mux *http.ServeMux) error {
	var c mappingsConfig
	if err := json.Unmarshal(config, &c); err != nil {
		return err
	}
	n := &counters{}
	invoke := keeping(0)
	streams := &streamMapping{
		counters: n, streams: streamService(c.Streams), queues: queueService(c.Queues), arn: c.StreamARN,
		function: invoker{invoke, c.OutboxStream, timeouts["outbox-stream"]}, onFailure: c.OnFailure, interval: c.StreamInterval, wait: backOff,
	}
	deliver := invoker{invoke, c.Deliver, timeouts["deliver"]}
	fast := &queueMapping{counters: n, queues: queueService(c.Queues), url: c.Queue, name: c.QueueName, function: deliver, batch: 10, free: make(chan struct{}, c.Concurrency)}
	slow := &queueMapping{counters: n, queues: queueService(c.Queues), url: c.SlowQueue, name: c.SlowQueueName, function: deliver, batch: 1, free: make(chan struct{}, c.SlowConcurrency), isSlow: true}
	var once sync.Once
	mux.HandleFunc("/start", func(http.ResponseWriter, *http.Request) {
		once.Do(func() {
			ctx := context.Background()
			go streams.run(ctx)
			for range receivers {
				go fast.run(ctx)
			}
			go slow.run(ctx)
			go schedule(ctx, n, invoker{invoke, c.Sweep, timeouts["sweep"]}, c.SweepInterval)
		})
	})
	mux.HandleFunc("/mapped", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, mapped{
			StreamReads: n.streamReads.Load(), StreamRecords: n.streamRecords.Load(), Filtered: n.filtered.Load(),
			StreamBatches: n.streamBatches.Load(), StreamFaults: n.streamFaults.Load(), GivenUp: n.givenUp.Load(),
			Receives: n.receives.Load(), EmptyReceives: n.emptyReceives.Load(), Messages: n.messages.Load(),
			Batches: n.batches.Load(), Returned: n.returned.Load(), BatchFaults: n.batchFaults.Load(), Deletes: n.deletes.Load(),
			Slow: n.slow.Load(), Sweeps: n.sweeps.Load(), MostAtOnce: n.mostAtOnce.Load(),
		})
	})
	return nil
}

// receivers is how many long polls a mapping of a queue keeps up. Lambda begins
// with five; each engine here wakes all of them for one message.
const receivers = 2

// invoker invokes a function and waits for its answer.
type invoker struct {
	client  *http.Client
	address string
	timeout time.Duration
}

var errFunction = errors.New("the function failed")

func (f invoker) invoke(ctx context.Context, event []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+f.address+"/invoke", bytes.NewReader(event))
	if err != nil {
		return nil, err
	}
	answer, err := f.client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errFunction, err)
	}
	defer answer.Body.Close()
	out, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errFunction, err)
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w: %s: %.300s", errFunction, answer.Status, out)
	}
	return out, nil
}

// The template's settings of the stream's mapping.
const (
	streamBatch   = 100
	streamRetries = 20
	recordsMost   = 1000 // what GetRecords gives at most
)

// streamMapping hands the delivery table's stream to outbox-stream: each shard in
// order, one batch at a time.
type streamMapping struct {
	*counters
	streams, queues service
	arn             string
	function        invoker
	onFailure       string
	wait            func(tries int) // before a batch is tried again
	interval        time.Duration   // between two reads of a shard; Lambda reads four times a second, or is woken
}

func (m *streamMapping) run(ctx context.Context) {
	var described struct {
		StreamDescription struct{ Shards []struct{ ShardId string } }
	}
	for m.streams.call(ctx, "DescribeStream", map[string]any{"StreamArn": m.arn}, &described) != nil {
		time.Sleep(100 * time.Millisecond)
	}
	for _, shard := range described.StreamDescription.Shards {
		go m.follow(ctx, shard.ShardId)
	}
}

// follow reads a shard from its beginning.
func (m *streamMapping) follow(ctx context.Context, shard string) {
	var iterator struct{ ShardIterator string }
	for m.streams.call(ctx, "GetShardIterator", map[string]any{
		"StreamArn": m.arn, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON",
	}, &iterator) != nil {
		time.Sleep(100 * time.Millisecond)
	}
	turn := time.NewTicker(m.interval)
	defer turn.Stop()
	for iterator.ShardIterator != "" {
		<-turn.C
		var page struct {
			Records           []json.RawMessage
			NextShardIterator string
		}
		m.streamReads.Add(1)
		if err := m.streams.call(ctx, "GetRecords", map[string]any{"ShardIterator": iterator.ShardIterator, "Limit": recordsMost}, &page); err != nil {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		m.streamRecords.Add(int64(len(page.Records)))
		var passed []streamRecord
		for _, raw := range page.Records {
			if r := readStreamRecord(raw); r.rings {
				passed = append(passed, r)
			}
		}
		m.filtered.Add(int64(len(page.Records) - len(passed)))
		for len(passed) > 0 {
			n := min(len(passed), streamBatch)
			m.hand(ctx, passed[:n], 0)
			passed = passed[n:]
		}
		iterator.ShardIterator = page.NextShardIterator
	}
}

// streamRecord is a record and what the mapping looks at.
type streamRecord struct {
	raw      json.RawMessage
	sequence string
	rings    bool
}

// readStreamRecord applies the template's filter: a new image with a number
// named ring.
func readStreamRecord(raw json.RawMessage) streamRecord {
	var r struct {
		Change struct {
			SequenceNumber string
			NewImage       struct {
				Ring struct{ N *string } `json:"ring"`
			}
		} `json:"dynamodb"`
	}
	if json.Unmarshal(raw, &r) != nil {
		return streamRecord{raw: raw}
	}
	return streamRecord{raw: raw, sequence: r.Change.SequenceNumber, rings: r.Change.NewImage.Ring.N != nil}
}

// hand invokes the function with a batch until all of it is seen to: from the
// lowest sequence number that it reports on, in halves where it fails as a whole,
// and at last to the on-failure queue.
func (m *streamMapping) hand(ctx context.Context, batch []streamRecord, tries int) {
	for len(batch) > 0 {
		if tries > streamRetries {
			m.giveUp(ctx, batch)
			return
		}
		event := struct{ Records []json.RawMessage }{}
		for _, r := range batch {
			event.Records = append(event.Records, r.raw)
		}
		body, err := json.Marshal(event)
		if err != nil {
			m.giveUp(ctx, batch)
			return
		}
		m.streamBatches.Add(1)
		out, err := m.function.invoke(ctx, body)
		if err != nil {
			m.streamFaults.Add(1)
			m.wait(tries)
			if len(batch) > 1 {
				m.hand(ctx, batch[:len(batch)/2], tries+1)
				batch, tries = batch[len(batch)/2:], tries+1
				continue
			}
			tries++
			continue
		}
		from := lowestFailure(out, batch)
		if from < len(batch) {
			m.streamFaults.Add(1)
			m.wait(tries)
			tries++
		}
		if from > 0 {
			tries = 0
		}
		batch = batch[from:]
	}
}

func backOff(tries int) { time.Sleep(min(time.Second, 50*time.Millisecond<<min(tries, 10))) }

// lowestFailure gives the place from which a batch is repeated: its length where
// nothing failed, 0 where the answer names none of its records.
func lowestFailure(out []byte, batch []streamRecord) int {
	var answer struct {
		BatchItemFailures []struct {
			ItemIdentifier string `json:"itemIdentifier"`
		} `json:"batchItemFailures"`
	}
	if len(out) > 0 && json.Unmarshal(out, &answer) != nil {
		return 0
	}
	lowest := len(batch)
	for _, failure := range answer.BatchItemFailures {
		place := 0
		for i, r := range batch {
			if r.sequence == failure.ItemIdentifier && failure.ItemIdentifier != "" {
				place = i
				break
			}
		}
		lowest = min(lowest, place)
	}
	return lowest
}

// giveUp tells the on-failure queue of the batch's place in the stream, as Lambda does.
func (m *streamMapping) giveUp(ctx context.Context, batch []streamRecord) {
	m.givenUp.Add(int64(len(batch)))
	body, _ := json.Marshal(map[string]any{"startSequenceNumber": batch[0].sequence, "batchSize": len(batch)})
	_ = m.queues.call(ctx, "SendMessage", map[string]any{"QueueUrl": m.onFailure, "MessageBody": string(body)}, nil)
}

// queueMapping hands a queue's messages to deliver.
type queueMapping struct {
	*counters
	queues   service
	url      string
	name     string
	function invoker
	batch    int
	free     chan struct{} // a place for each invocation that may run: MaximumConcurrency
	isSlow   bool
}

type message struct {
	MessageId, ReceiptHandle, Body, MD5OfBody string
	Attributes                                map[string]string
}

func (m *queueMapping) run(ctx context.Context) {
	for {
		m.free <- struct{}{}
		var got struct{ Messages []message }
		m.receives.Add(1)
		err := m.queues.call(ctx, "ReceiveMessage", map[string]any{
			"QueueUrl": m.url, "MaxNumberOfMessages": m.batch, "WaitTimeSeconds": 1, "AttributeNames": []string{"All"},
		}, &got)
		if err != nil || len(got.Messages) == 0 {
			m.emptyReceives.Add(1)
			<-m.free
			if err != nil {
				time.Sleep(50 * time.Millisecond)
			}
			continue
		}
		m.messages.Add(int64(len(got.Messages)))
		if m.isSlow {
			m.slow.Add(int64(len(got.Messages)))
		}
		go func() {
			defer func() { <-m.free }()
			for busy := int64(len(m.free)); ; {
				most := m.mostAtOnce.Load()
				if busy <= most || m.mostAtOnce.CompareAndSwap(most, busy) {
					break
				}
			}
			m.hand(ctx, got.Messages)
		}()
	}
}

// hand invokes the function with a batch and deletes what it has not reported. A
// failure of the whole, and an answer that names what is not in the batch, delete
// nothing: the messages come back when their visibility time is over.
func (m *queueMapping) hand(ctx context.Context, messages []message) {
	type record struct {
		MessageId         string            `json:"messageId"`
		ReceiptHandle     string            `json:"receiptHandle"`
		Body              string            `json:"body"`
		Attributes        map[string]string `json:"attributes"`
		MessageAttributes map[string]any    `json:"messageAttributes"`
		MD5OfBody         string            `json:"md5OfBody"`
		EventSource       string            `json:"eventSource"`
		EventSourceARN    string            `json:"eventSourceARN"`
		AWSRegion         string            `json:"awsRegion"`
	}
	event := struct{ Records []record }{}
	for _, one := range messages {
		event.Records = append(event.Records, record{
			one.MessageId, one.ReceiptHandle, one.Body, one.Attributes, map[string]any{}, one.MD5OfBody,
			"aws:sqs", "arn:aws:sqs:" + region + ":000000000000:" + m.name, region,
		})
	}
	body, err := json.Marshal(event)
	if err != nil {
		return
	}
	m.batches.Add(1)
	out, err := m.function.invoke(ctx, body)
	if err != nil {
		m.batchFaults.Add(1)
		return
	}
	kept, ok := reported(out, messages)
	if !ok {
		m.batchFaults.Add(1)
		return
	}
	m.returned.Add(int64(len(kept)))
	type entry struct{ Id, ReceiptHandle string }
	var done []entry
	for _, one := range messages {
		if !kept[one.MessageId] {
			done = append(done, entry{one.MessageId, one.ReceiptHandle})
		}
	}
	if len(done) == 0 {
		return
	}
	m.deletes.Add(1)
	_ = m.queues.call(ctx, "DeleteMessageBatch", map[string]any{"QueueUrl": m.url, "Entries": done}, nil)
}

// reported gives the messages that an answer says failed; not ok where all did.
func reported(out []byte, messages []message) (kept map[string]bool, ok bool) {
	var answer struct {
		BatchItemFailures []struct {
			ItemIdentifier string `json:"itemIdentifier"`
		} `json:"batchItemFailures"`
	}
	if len(out) > 0 && json.Unmarshal(out, &answer) != nil {
		return nil, false
	}
	known := map[string]bool{}
	for _, one := range messages {
		known[one.MessageId] = true
	}
	kept = map[string]bool{}
	for _, failure := range answer.BatchItemFailures {
		if !known[failure.ItemIdentifier] {
			return nil, false
		}
		kept[failure.ItemIdentifier] = true
	}
	return kept, true
}

// schedule invokes the sweeper by the clock, whatever the last one came to.
func schedule(ctx context.Context, n *counters, function invoker, interval time.Duration) {
	turn := time.NewTicker(interval)
	defer turn.Stop()
	for range turn.C {
		n.sweeps.Add(1)
		go func() { _, _ = function.invoke(ctx, []byte(`{}`)) }() // the next one is due in a minute
	}
}
