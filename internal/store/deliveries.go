package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"colophon/internal/delivery"
	"colophon/internal/failure"
)

// DeliveriesConfig is what Deliveries needs.
type DeliveriesConfig struct {
	Engine Engine
	Table  string // the delivery table
	Clock  func() time.Time
}

func (c DeliveriesConfig) validate() error {
	if c.Engine == nil || c.Table == "" || c.Clock == nil {
		return errors.New("store: deliveries need an engine, a table and a clock")
	}
	return nil
}

// Deliveries keeps slots and deliveries for the worker. Its conditions are the
// protocol's: see each method.
type Deliveries struct {
	engine Engine
	table  string
	clock  func() time.Time
}

// NewDeliveries makes Deliveries.
func NewDeliveries(c DeliveriesConfig) (*Deliveries, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &Deliveries{engine: c.Engine, table: c.Table, clock: c.Clock}, nil
}

var _ interface {
	delivery.Reader
	delivery.Slots
	delivery.Endings
	delivery.Notes
	delivery.Tests
} = (*Deliveries)(nil)

// Read is one query from SLOT downwards: the slot, the settings and the newest
// delivery, one read unit. The slot comes first, so what stands beside it is no
// older; n is read after both.
func (s *Deliveries) Read(ctx context.Context, k delivery.Key) (delivery.Reading, error) {
	r := delivery.Reading{Key: k, Slot: delivery.Slot{State: delivery.SlotRemoved}}
	page, err := collect(ctx, s.engine, Query{
		Table: s.table, PK: Text(destinationPK(k.Project, k.ID)),
		From: Text(releaseSK(k.Release)), To: Text(skSlot), Descending: true,
	}, 3)
	if err != nil {
		return r, fmt.Errorf("read destination: %w", err)
	}
	r.Clock = page.Clock
	for _, item := range page.Items {
		switch sk := textOf(item[attrSK]); sk {
		case skSlot:
			if r.Slot, err = decodeSlot(item); err != nil {
				r.Slot = delivery.Slot{Unreadable: true}
			}
		case skSettings:
			if r.Settings, err = decodeSettings(item); err != nil {
				r.Settings = delivery.Settings{}
			}
		default:
			if _, _, release, ok := parseDeliveryKey(textOf(item[attrPK]), sk); ok && r.Newest == nil {
				r.Newest = decodeDelivery(delivery.Key{Destination: k.Destination, Release: release}, item)
			}
		}
	}
	if r.Newest != nil && r.Newest.Release == k.Release {
		r.Rang = r.Newest
		return r, nil
	}
	if r.Rang, err = s.ReadDelivery(ctx, k); err != nil {
		return r, err
	}
	if r.Newest == nil {
		r.Newest = r.Rang
	}
	return r, nil
}

// ReadDelivery reads one delivery.
func (s *Deliveries) ReadDelivery(ctx context.Context, k delivery.Key) (*delivery.Delivery, error) {
	item, err := s.engine.Get(ctx, s.table, deliveryKey(k))
	if err != nil {
		return nil, fmt.Errorf("read delivery: %w", err)
	}
	if item == nil {
		return nil, nil
	}
	return decodeDelivery(k, item), nil
}

// Claim: the version alone is the condition. That the slot is free and active
// and which delivery is to be sent was read under it (I1, I3).
func (s *Deliveries) Claim(ctx context.Context, d delivery.Destination, read delivery.Slot, h delivery.Holder) (delivery.Slot, error) {
	changes := []Change{
		Set(At(attrHolder), encodeHolder(h)),
		Set(At(attrVersion), Number(read.Version+1)),
		Set(At(attrSentThrough), Number(max(read.SentThrough, h.Release))),
	}
	if read.Waiting > 0 && read.Waiting <= h.Release {
		changes = append(changes, Remove(At(attrWaiting)))
	}
	item, err := s.engine.Write(ctx, Write{
		Table: s.table, Key: slotKey(d), Changes: changes, If: Equal(At(attrVersion), Number(read.Version)),
	})
	if refused := AsRefused(err); refused != nil && refused.Has(CodeCondition) {
		// The SDK may have asked twice: a refusal that shows our own token is a success.
		slot, decodeErr := decodeSlot(refused.Reasons[0].Old)
		if decodeErr != nil || slot.Holder == nil || slot.Holder.Token != h.Token {
			return delivery.Slot{}, fmt.Errorf("claim slot: %w", failure.ErrMoved)
		}
		return slot, nil
	}
	if err != nil {
		return delivery.Slot{}, fmt.Errorf("claim slot: %w", err)
	}
	return decodeSlot(item)
}

// GiveBack frees the slot by token alone: whatever else moved it meanwhile, the
// holder is ours or it is not.
func (s *Deliveries) GiveBack(ctx context.Context, d delivery.Destination, token string) error {
	_, err := s.engine.Write(ctx, Write{
		Table: s.table, Key: slotKey(d),
		Changes: []Change{Remove(At(attrHolder)), Add(At(attrVersion), 1)},
		If:      holds(token),
	})
	if refused := AsRefused(err); refused != nil && refused.Has(CodeCondition) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("give slot back: %w", err)
	}
	return nil
}

func holds(token string) Condition { return Equal(At(attrHolder, attrToken), Text(token)) }

// pending holds for a delivery that has not ended and is in this round.
func pending(round int64) Condition {
	return All(notEnded, Equal(At(attrRound), Number(round)))
}

var notEnded = Any(
	Equal(At(attrStatus), Text(string(delivery.Queued))),
	Equal(At(attrStatus), Text(string(delivery.Retrying))),
)

// Record: the token in the slot is the right to record, and the delivery must
// not have ended (I2). An attempt that is there already was written by an
// earlier request of this very recording, or by a settler.
func (s *Deliveries) Record(ctx context.Context, r delivery.Recording) error {
	pause := r.Pause && r.Slot.State == delivery.SlotActive
	err := s.engine.Transact(ctx, r.Request, s.recordWrites(r, pause))
	refused := AsRefused(err)
	if refused == nil || len(refused.Reasons) != 2 {
		if err != nil {
			return fmt.Errorf("record attempt: %w", err)
		}
		return nil
	}
	slot, item := refused.Reasons[0], refused.Reasons[1]
	if item.Code == CodeCondition && wroteAttempt(item.Old, r.Holder) {
		return nil
	}
	switch {
	case refused.Has(CodeThrottled):
		return fmt.Errorf("record attempt: %w", failure.ErrThrottled)
	case refused.Has(CodeConflict): // what else was refused may be the other transaction's doing
		return fmt.Errorf("record attempt: %w", failure.ErrBusy)
	case slot.Code == CodeCondition:
		now, decodeErr := decodeSlot(slot.Old)
		if decodeErr == nil && pause && now.Holder != nil && now.Holder.Token == r.Holder.Token {
			// A person paused or removed the destination meanwhile: nothing is left to pause.
			r.Slot.State = now.State
			r.Request += "-" + string(now.State)
			return s.Record(ctx, r)
		}
		return fmt.Errorf("record attempt: %w", delivery.ErrLate)
	case item.Code == CodeCondition:
		if err := s.GiveBack(ctx, r.Delivery.Destination, r.Holder.Token); err != nil {
			return err
		}
		return fmt.Errorf("record attempt: %w", delivery.ErrEnded)
	}
	return fmt.Errorf("record attempt: %w", err)
}

func (s *Deliveries) recordWrites(r delivery.Recording, pause bool) []Write {
	d, t := r.Delivery, r.Transition
	rev := d.Rev + 1
	slot := []Change{
		Remove(At(attrHolder)), Add(At(attrVersion), 1), Set(At(attrLast), encodeLast(d.Release, rev)),
	}
	condition := holds(r.Holder.Token)
	if t.Status == delivery.Retrying && !d.Forced() {
		slot = append(slot, Set(At(attrWaiting), Number(d.Release)))
	}
	if t.Status == delivery.Delivered && d.Release > r.Slot.DeliveredThrough {
		slot = append(slot, Set(At(attrDeliveredThrough), Number(d.Release)))
	}
	if r.Slow {
		slot = append(slot, Set(At(attrSlow), Flag(true)))
	} else {
		slot = append(slot, Remove(At(attrSlow)))
	}
	if pause {
		slot = append(slot, Set(At(attrState), Text(string(delivery.SlotPaused))),
			Set(At(attrPausedBy), Text(string(delivery.PausedByGone))))
		condition = All(condition, Equal(At(attrState), Text(string(delivery.SlotActive))))
	}
	return []Write{
		{Table: s.table, Key: slotKey(d.Destination), Changes: slot, If: condition},
		s.transitionWrite(d, t, rev),
	}
}

// transitionWrite moves a delivery on by an attempt.
func (s *Deliveries) transitionWrite(d delivery.Delivery, t delivery.Transition, rev int64) Write {
	number := strconv.FormatInt(t.Attempt.Number, 10)
	changes := append(statusChanges(d.Key, t.Status, t.Reason, t.Successor, t.At),
		Set(At(attrRev), Number(rev)),
		Set(At(attrTries), Number(t.Tries)),
		Set(At(attrNumbered), Number(t.Attempt.Number)),
		Set(At(attrFirstTryAt), millis(t.FirstTryAt)),
		Set(At(attrAttempts, number), encodeAttempt(t.Attempt)),
		Remove(At(attrOurs)), Remove(At(attrSweeps)),
	)
	if t.Lost > 0 {
		changes = append(changes, Set(At(attrLost), Number(t.Lost)))
	}
	if old := t.Attempt.Number - delivery.AttemptsKept; old > 0 {
		changes = append(changes, Remove(At(attrAttempts, strconv.FormatInt(old, 10))))
	}
	// In one order: a transaction that is asked for again must be the very same.
	for _, wait := range []struct {
		name string
		time time.Duration
	}{{attrAsked, t.Asked}, {attrUsed, t.Used}} {
		if wait.time > 0 {
			changes = append(changes, Set(At(wait.name), durationMillis(wait.time)))
		} else {
			changes = append(changes, Remove(At(wait.name)))
		}
	}
	if !t.Status.Terminal() {
		changes = append(changes, Set(At(attrTryAt), millis(t.TryAt)), Set(At(attrSweepAt), millis(t.SweepAt)),
			Set(At(attrSweepShard), Number(sweepShard(d.Project, d.ID, d.Release))))
	}
	return Write{
		Table: s.table, Key: deliveryKey(d.Key), Changes: changes,
		If: All(pending(d.Round), Absent(At(attrAttempts, number))),
	}
}

// statusChanges writes a status and what hangs on it: a terminal delivery leaves
// the sweep index and expires. No write but publish, redeliver and try-now rings.
func statusChanges(k delivery.Key, status delivery.Status, reason delivery.Reason, successor int64, at time.Time) []Change {
	changes := []Change{Set(At(attrStatus), Text(string(status))), Remove(At(attrRing))}
	if reason != "" {
		changes = append(changes, Set(At(attrReason), Text(string(reason))))
	} else {
		changes = append(changes, Remove(At(attrReason)))
	}
	if successor > 0 {
		changes = append(changes, Set(At(attrSuccessor), Number(successor)))
	}
	if status.Terminal() {
		changes = append(changes,
			Set(At(attrEndedAt), millis(at)), Set(At(attrExpiresAt), seconds(at.Add(delivery.RetentionTime))),
			Remove(At(attrSweepShard)), Remove(At(attrSweepAt)), Remove(At(attrForce)))
	}
	return changes
}

// wroteAttempt says whether the item holds the attempt as this claim recorded it.
func wroteAttempt(item Item, h delivery.Holder) bool {
	path := At(attrAttempts, strconv.FormatInt(h.Attempt, 10))
	return All(
		Equal(path.Then(attrToken), Text(h.Token)),
		Equal(path.Then(attrBy), Text(string(delivery.ByRecord))),
	).Holds(item)
}

// Settle: the slot as it was read, so a holder that came back in time keeps it.
func (s *Deliveries) Settle(ctx context.Context, x delivery.Settlement) error {
	slot := Write{
		Table: s.table, Key: slotKey(x.Destination),
		Changes: []Change{Remove(At(attrHolder)), Set(At(attrVersion), Number(x.Slot.Version+1))},
		If:      Equal(At(attrVersion), Number(x.Slot.Version)),
	}
	if x.Delivery == nil {
		_, err := s.engine.Write(ctx, slot)
		return settled(err)
	}
	alone := slot
	rev := x.Delivery.Rev + 1
	slot.Changes = append(slot.Changes, Set(At(attrLast), encodeLast(x.Delivery.Release, rev)))
	if x.Transition.Status == delivery.Retrying && !x.Delivery.Forced() {
		slot.Changes = append(slot.Changes, Set(At(attrWaiting), Number(x.Delivery.Release)))
	}
	err := s.engine.Transact(ctx, x.Request, []Write{slot, s.transitionWrite(*x.Delivery, x.Transition, rev)})
	if refused := AsRefused(err); refused != nil && len(refused.Reasons) == 2 &&
		refused.Reasons[0].Code == CodeNone && refused.Reasons[1].Code == CodeCondition {
		// The delivery ended or began another round: no slot is held for ever.
		_, err = s.engine.Write(ctx, alone)
	}
	return settled(err)
}

func settled(err error) error {
	if err != nil {
		return fmt.Errorf("settle slot: %w", err)
	}
	return nil
}

// SkipPlain: the delivery alone, and never a forced one.
func (s *Deliveries) SkipPlain(ctx context.Context, k delivery.Key, round, successor int64) error {
	condition := All(notEnded, Absent(At(attrForce)))
	if round > 0 {
		condition = All(pending(round), Absent(At(attrForce)))
	}
	_, err := s.engine.Write(ctx, Write{
		Table: s.table, Key: deliveryKey(k), If: condition,
		Changes: statusChanges(k, delivery.Skipped, delivery.Superseded, successor, s.clock()),
	})
	if err != nil {
		return fmt.Errorf("skip delivery: %w", err)
	}
	return nil
}

// EndChecked: the slot's version is the one read, and moves, so nothing was
// claimed, paused, resumed or redelivered since. A destination without a slot
// is checked to have none.
func (s *Deliveries) EndChecked(ctx context.Context, e delivery.Ending) error {
	d, rev := e.Delivery, e.Delivery.Rev+1
	slot := Write{
		Table: s.table, Key: slotKey(d.Destination), If: Equal(At(attrVersion), Number(e.Slot.Version)),
		Changes: []Change{Set(At(attrVersion), Number(e.Slot.Version+1)), Set(At(attrLast), encodeLast(d.Release, rev))},
	}
	if e.Slot.Version == 0 {
		slot = Write{Table: s.table, Key: slotKey(d.Destination), Check: true, If: Absent(At(attrPK))}
	}
	changes := append(statusChanges(d.Key, e.Status, e.Reason, e.Successor, s.clock()),
		Set(At(attrRev), Number(rev)), Remove(At(attrSweeps)))
	err := s.engine.Transact(ctx, e.Request, []Write{slot, {
		Table: s.table, Key: deliveryKey(d.Key), Changes: changes, If: pending(d.Round),
	}})
	if err != nil {
		return fmt.Errorf("end delivery: %w", err)
	}
	return nil
}

// EndUnreadable touches status and sweep keys only: nothing else of the item can
// be trusted, not even that its status is one.
func (s *Deliveries) EndUnreadable(ctx context.Context, k delivery.Key) error {
	_, err := s.engine.Write(ctx, Write{
		Table: s.table, Key: deliveryKey(k),
		Changes: statusChanges(k, delivery.Failed, delivery.Unreadable, 0, s.clock()),
		If: All(Exists(At(attrPK)),
			Not(Equal(At(attrStatus), Text(string(delivery.Delivered)))),
			Not(Equal(At(attrStatus), Text(string(delivery.Failed)))),
			Not(Equal(At(attrStatus), Text(string(delivery.Skipped))))),
	})
	if err != nil {
		return fmt.Errorf("end unreadable delivery: %w", err)
	}
	return nil
}

// CountOurs touches ours and the sweep key only.
func (s *Deliveries) CountOurs(ctx context.Context, d delivery.Delivery) error {
	ours, sweepAt := delivery.OursAfter(d, s.clock())
	_, err := s.engine.Write(ctx, Write{
		Table: s.table, Key: deliveryKey(d.Key),
		Changes: []Change{Set(At(attrOurs), encodeOurs(ours)), Set(At(attrSweepAt), millis(sweepAt)), Remove(At(attrRing))},
		If:      pending(d.Round),
	})
	if err != nil {
		return fmt.Errorf("count fault of our own: %w", err)
	}
	return nil
}

// NoteLate changes no state: the attempt is the token's own, and somebody else
// wrote it.
func (s *Deliveries) NoteLate(ctx context.Context, k delivery.Key, attempt int64, token, note string) error {
	path := At(attrAttempts, strconv.FormatInt(attempt, 10))
	_, err := s.engine.Write(ctx, Write{
		Table: s.table, Key: deliveryKey(k),
		Changes: []Change{Set(path.Then(attrLate), Text(note)), Remove(At(attrRing))},
		If:      All(Equal(path.Then(attrToken), Text(token)), Equal(path.Then(attrBy), Text(string(delivery.BySettle)))),
	})
	if refused := AsRefused(err); refused != nil && refused.Has(CodeCondition) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("note late result: %w", err)
	}
	return nil
}

func textOf(v Value) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}
