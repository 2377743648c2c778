package sim

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"colophon/internal/outbox"
	"colophon/internal/store"
)

const (
	streamShards = 2
	streamBatch  = 100 // of the mapping
)

// streamRecord is a new image that rings.
type streamRecord struct {
	sequence string
	json     json.RawMessage
}

// stream is the delivery table's stream with its mapping: each shard in order,
// one batch at a time, again from where the function says that it failed.
type stream struct {
	w      *World
	shards [streamShards]struct {
		records []streamRecord
		busy    bool
		planned bool
	}
	sequence int
}

func (s *stream) append(k store.Key, inserted bool) {
	w := s.w
	if w.happens(faultStreamLoss) { // older than a day, or the mapping gave up on it
		w.tell("the stream loses its record of %s for %s", k.SK, w.check.called(k.PK))
		return
	}
	s.sequence++
	name := "MODIFY"
	if inserted {
		name = "INSERT"
	}
	r := streamRecord{sequence: strconv.Itoa(s.sequence)}
	r.json = fmt.Appendf(nil, `{"eventName":%q,"dynamodb":{"SequenceNumber":%q,"NewImage":{"pk":{"S":%q},"sk":{"S":%q},"ring":{"N":"1"}}}}`,
		name, r.sequence, k.PK, k.SK)
	h := fnv.New32a()
	h.Write([]byte(k.PK)) // the partition's place decides the shard
	shard := int(h.Sum32() % streamShards)
	s.shards[shard].records = append(s.shards[shard].records, r)
	s.plan(shard, w.latency())
}

func (s *stream) plan(shard int, after moment) {
	at := &s.shards[shard]
	if at.busy || at.planned || len(at.records) == 0 {
		return
	}
	at.planned = true
	s.w.calendar.add(event{at: s.w.now + after, do: func() {
		at.planned = false
		s.invoke(shard)
	}})
}

// invoke hands a batch to the function, and reads its answer.
func (s *stream) invoke(shard int) {
	w, at := s.w, &s.shards[shard]
	batch := at.records[:min(len(at.records), streamBatch)]
	p := w.newProcess("outbox-stream", roleCourier)
	p.mortal = true
	at.busy = true
	again := time.Second
	p.release = func() {
		at.busy = false
		s.plan(shard, again)
	}
	forwarder, err := outbox.NewForwarder(outbox.ForwarderConfig{
		Queue: w.sender(w.queue), OnFailure: w.sender(w.onFailure), Clock: p.clock, Random: w, Observe: ignoreForwarded,
	})
	if err != nil {
		panic(err)
	}
	var e outbox.StreamEvent
	for _, r := range batch {
		e.Records = append(e.Records, r.json)
	}
	w.begin(p, w.latency(), func() {
		w.step()
		answer, err := forwarder.Handle(w.invocation(p, time.Minute), e)
		w.mishap()
		if p.abandoned {
			return
		}
		if err == nil {
			done := len(batch)
			for _, failure := range answer.BatchItemFailures {
				for i, r := range batch[:done] {
					if r.sequence == failure.ItemIdentifier {
						done = i
					}
				}
			}
			at.records = at.records[done:]
			if done == len(batch) {
				again = w.latency()
			}
		}
		w.retire(p)
	}, nil)
}
