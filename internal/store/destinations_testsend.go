package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"colophon/internal/delivery"
)

// What a destination's partition holds beside deliveries, slot and settings.
const (
	skAllowance  = "LIMIT" // sorts before every R#…: no reader of deliveries meets it
	attrResult   = "result"
	attrKind     = "kind"
	attrFindings = "findings"
	attrCheck    = "check"
	attrVerdict  = "verdict"
	attrWords    = "words"
)

// Test items are of the lowest version that knows what is in them: kinds came
// with the second. A worker of before leaves those to one of after.
const (
	testFormat     = 1
	testFormatKind = 2 // every version up to it is read
)

func allowanceKey(d delivery.Destination) Key {
	return Key{PK: destinationPK(d.Project, d.ID), SK: skAllowance}
}

// originKey is the limit's of all destinations of a project at one origin. It is
// in a partition of its own, so that it outlasts them. The origin is hashed: an
// address is stored in a destination's settings only, and keys are in streams.
func originKey(project, origin string) Key {
	hash := sha256.Sum256([]byte(origin))
	return Key{PK: prefixProject + project + infixOrigin + hex.EncodeToString(hash[:]), SK: skAllowance}
}

func testKey(d delivery.Destination, id string) Key {
	return Key{PK: destinationPK(d.Project, d.ID), SK: prefixTest + id}
}

// putTest writes a new test send, and rings for it.
func putTest(table string, t delivery.TestSend) Write {
	item := Item{
		attrFormat: Number(testFormat), attrWebhookID: Text(t.WebhookID), attrBody: Text(string(t.Body)),
		attrCreatedAt: millis(t.CreatedAt), attrExpiresAt: seconds(t.CreatedAt.Add(delivery.TestRetention)),
		attrRing: millis(t.CreatedAt),
	}
	if t.Kind != delivery.TestPlain {
		item[attrFormat], item[attrKind] = Number(testFormatKind), Text(string(t.Kind))
	}
	return Write{Table: table, Key: testKey(t.Destination, t.ID), If: Absent(At(attrPK)), Put: item}
}

func decodeTest(d delivery.Destination, id string, item Item) (delivery.TestSend, error) {
	a := &attributes{item: item}
	if format := a.positive(attrFormat); a.fault == nil && format > testFormatKind {
		return delivery.TestSend{}, fmt.Errorf("test send: %w: %d", delivery.ErrUnknownVersion, format)
	}
	t := delivery.TestSend{
		Destination: d, ID: id, WebhookID: a.text(attrWebhookID), Body: []byte(a.text(attrBody)),
		CreatedAt: a.time(attrCreatedAt), Token: a.optionalText(attrToken),
		Since: a.optionalTime(attrSince), Until: a.optionalTime(attrUntil),
		Kind: delivery.TestKind(a.optionalText(attrKind)), Findings: decodeFindings(a),
	}
	if a.has(attrResult) {
		a.within(attrResult, func(a *attributes) {
			result := decodeAttempt(1, a)
			t.Result = &result
		})
	}
	if a.fault != nil {
		return t, fmt.Errorf("test send: %w", a.fault)
	}
	return t, nil
}

func encodeFindings(findings []delivery.Finding) Value {
	list := make([]Value, len(findings))
	for i, f := range findings {
		list[i] = Map(Item{attrCheck: Text(string(f.Check)), attrVerdict: Text(string(f.Verdict)), attrWords: Text(f.Words)})
	}
	return List(list)
}

func decodeFindings(a *attributes) []delivery.Finding {
	var findings []delivery.Finding
	a.eachIn(attrFindings, func(a *attributes) {
		findings = append(findings, delivery.Finding{
			Check: delivery.Check(a.text(attrCheck)), Verdict: delivery.Verdict(a.text(attrVerdict)), Words: a.text(attrWords),
		})
	})
	return findings
}

// ReadTest reads a test send; nil where there is none. ErrUnknownVersion.
func (s *Deliveries) ReadTest(ctx context.Context, d delivery.Destination, id string) (*delivery.TestSend, error) {
	item, err := s.engine.Get(ctx, s.table, testKey(d, id))
	if err != nil {
		return nil, fmt.Errorf("read test send: %w", err)
	}
	if item == nil {
		return nil, nil
	}
	t, err := decodeTest(d, id, item)
	if err != nil {
		return nil, err
	}
	return &t, nil
}

// ReadTarget reads where a destination's requests go and whether it was removed:
// what a test send needs beside itself.
func (s *Deliveries) ReadTarget(ctx context.Context, d delivery.Destination) (delivery.Target, error) {
	t := delivery.Target{Slot: delivery.Slot{State: delivery.SlotRemoved}}
	page, err := collect(ctx, s.engine, Query{
		Table: s.table, PK: Text(destinationPK(d.Project, d.ID)), From: Text(skSettings), To: Text(skSlot),
	}, 2)
	if err != nil {
		return t, fmt.Errorf("read target: %w", err)
	}
	t.Clock = page.Clock
	for _, item := range page.Items {
		if textOf(item[attrSK]) == skSlot {
			t.Slot, err = decodeSlot(item)
		} else {
			t.Settings, err = decodeSettings(item)
		}
		if err != nil {
			return t, fmt.Errorf("read target: %w", err)
		}
	}
	return t, nil
}

// ClaimTest takes a test send for one request, if nobody has and people are not
// told yet that it was not sent (delivery.TestSend.Claimable). ErrMoved, ErrBusy,
// ErrUncertain.
func (s *Deliveries) ClaimTest(ctx context.Context, d delivery.Destination, id, token string, now, until time.Time) (delivery.TestSend, error) {
	oldest := now.Add(delivery.ClockAllowance - delivery.TestWaits)
	item, err := s.engine.Write(ctx, Write{
		Table: s.table, Key: testKey(d, id),
		Changes: []Change{
			Set(At(attrToken), Text(token)), Set(At(attrSince), millis(now)), Set(At(attrUntil), millis(until)),
			Remove(At(attrRing)),
		},
		If: All(Absent(At(attrToken)), AtLeast(At(attrCreatedAt), Number(oldest.UnixMilli()+1))),
	})
	if refused := AsRefused(err); refused != nil && Equal(At(attrToken), Text(token)).Holds(refused.Reasons[0].Old) {
		item, err = refused.Reasons[0].Old, nil // the SDK asked twice
	}
	if err != nil {
		return delivery.TestSend{}, fmt.Errorf("claim test send: %w", err)
	}
	return decodeTest(d, id, item)
}

// RecordTest writes a test send's result and findings under its token, also
// where that is late: nobody else can have sent it. ErrMoved, ErrBusy, ErrUncertain.
func (s *Deliveries) RecordTest(ctx context.Context, d delivery.Destination, id string, result delivery.Attempt, findings []delivery.Finding) error {
	changes := []Change{Set(At(attrResult), encodeAttempt(result)), Remove(At(attrRing))}
	if len(findings) > 0 {
		changes = append(changes, Set(At(attrFindings), encodeFindings(findings)))
	}
	_, err := s.engine.Write(ctx, Write{
		Table: s.table, Key: testKey(d, id), Changes: changes,
		If: All(Equal(At(attrToken), Text(result.Token)), Absent(At(attrResult))),
	})
	if refused := AsRefused(err); refused != nil && Equal(At(attrResult, attrToken), Text(result.Token)).Holds(refused.Reasons[0].Old) {
		return nil // the SDK asked twice
	}
	if err != nil {
		return fmt.Errorf("record test send: %w", err)
	}
	return nil
}
