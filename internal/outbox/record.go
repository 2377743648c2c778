package outbox

import (
	"encoding/json"

	"colophon/internal/store"
)

// StreamEvent is what a stream mapping hands over. Its records are read one by
// one, so that one that cannot be read takes no other with it.
type StreamEvent struct {
	Records []json.RawMessage `json:"Records"`
}

// record is what is needed of a stream record (DynamoDB Streams API reference,
// Record): nothing of the item but its key, and whether it rings.
type record struct {
	EventName string `json:"eventName"`
	Change    struct {
		SequenceNumber string                     `json:"SequenceNumber"`
		NewImage       map[string]json.RawMessage `json:"NewImage"`
	} `json:"dynamodb"`
}

// reading is what one record came to. At most one of fault and rings is set.
type reading struct {
	sequence string // empty where not even that could be read
	pk, sk   string
	message  Message
	rings    bool
	fault    string // why the record cannot be read
}

// readRecord reads a record. The mapping's filter passes only those that ring;
// a filter can be lost in a change of the template, so it is asked here again.
func readRecord(raw json.RawMessage) (r reading) {
	var position struct {
		Change struct {
			SequenceNumber string `json:"SequenceNumber"`
		} `json:"dynamodb"`
	}
	if json.Unmarshal(raw, &position) == nil {
		r.sequence = position.Change.SequenceNumber
	}
	defer func() {
		if recover() != nil {
			r = reading{sequence: r.sequence, pk: r.pk, sk: r.sk, fault: "panic while it was read"}
		}
	}()
	parseRecord(raw, &r)
	return r
}

// parseRecord is a variable for the test of its panics alone.
var parseRecord = func(raw json.RawMessage, r *reading) {
	var rec record
	if err := json.Unmarshal(raw, &rec); err != nil {
		r.fault = "not a stream record"
		return
	}
	image := rec.Change.NewImage
	if _, rings := image["ring"]; !rings { // a removal has no new image
		return
	}
	if rec.EventName != "INSERT" && rec.EventName != "MODIFY" {
		r.fault = "neither an insertion nor a change"
		return
	}
	r.pk, r.sk = textOf(image["pk"]), textOf(image["sk"])
	destination, release, test, ok := store.ParseRing(r.pk, r.sk)
	if !ok {
		r.fault = "neither a delivery's key nor a test send's"
		return
	}
	r.message = Message{Destination: destination, Release: release, Test: test}
	if r.fault = r.message.fault(); r.fault == "" {
		r.rings = true
	}
}

// textOf reads an attribute of type S; empty where it is none.
func textOf(raw json.RawMessage) string {
	var value struct {
		S string `json:"S"`
	}
	if json.Unmarshal(raw, &value) != nil {
		return ""
	}
	return value.S
}

// letter is a record that could not be read as it is set aside: its place in the
// stream and its key, nothing of what the item holds.
func (r reading) letter() Letter {
	body, err := json.Marshal(map[string]string{"sequenceNumber": r.sequence, "pk": r.pk, "sk": r.sk})
	if err != nil { // texts always marshal
		panic(err)
	}
	return Letter{Body: string(body), Reason: r.fault, Source: "outbox-stream"}
}
