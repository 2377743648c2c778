package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"colophon/internal/delivery"
)

// SweepConfig is what a Sweep needs.
type SweepConfig struct {
	Engine Engine
	Table  string // the delivery table
}

func (c SweepConfig) validate() error {
	if c.Engine == nil || c.Table == "" {
		return errors.New("store: a sweep needs an engine and a table")
	}
	return nil
}

// Sweep finds deliveries in the sweep index and moves them on in it.
type Sweep struct {
	engine Engine
	table  string
}

// NewSweep makes a Sweep.
func NewSweep(c SweepConfig) (*Sweep, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &Sweep{engine: c.Engine, table: c.Table}, nil
}

// Due is an entry of the sweep index.
type Due struct {
	// Delivery is zero where the entry's key is not a delivery's: it can be moved
	// on, but nobody can be told of it.
	Delivery delivery.Key
	Key      Key

	sweepAt Value // as the index showed it
}

// DuePage is a part of what is due in a shard.
type DuePage struct {
	Due  []Due
	Last Item // continues behind this page; nil where there is no more
}

// Swept is a delivery as it is after it was moved on.
type Swept struct {
	TryAt  time.Time // zero where the item has none that can be read
	Sweeps int64     // how often it was swept since it last moved by itself
	// Untouched says that nothing was done about it before this sweep: no attempt
	// was counted, and no fault of our own. Its first notification never came.
	Untouched bool
}

// DueDeliveries reads a shard's entries whose sweepAt lies before an instant,
// the oldest first, at most limit of them. The index is eventually consistent:
// an entry can be missing or out of date for a moment, so MoveOn has the say.
func (s *Sweep) DueDeliveries(ctx context.Context, shard int, before time.Time, after Item, limit int32) (DuePage, error) {
	page, err := collect(ctx, s.engine, Query{
		Table: s.table, Index: SweepIndex, PK: Number(int64(shard)),
		To: Number(before.UnixMilli() - 1), After: after,
	}, int(limit))
	if err != nil {
		return DuePage{}, fmt.Errorf("read what is due: %w", err)
	}
	due := DuePage{Due: make([]Due, 0, len(page.Items)), Last: page.Last}
	for _, item := range page.Items {
		d := Due{Key: Key{PK: textOf(item[attrPK]), SK: textOf(item[attrSK])}, sweepAt: item[attrSweepAt]}
		if project, destination, release, ok := parseDeliveryKey(d.Key.PK, d.Key.SK); ok {
			d.Delivery = delivery.Key{
				Destination: delivery.Destination{Project: project, ID: destination}, Release: release,
			}
		}
		due.Due = append(due.Due, d)
	}
	return due, nil
}

// MoveOn moves an entry to next, which is told how often it was swept before.
// It is false where the delivery has ended, or was moved by somebody else since
// it was seen: then it is theirs to see to.
func (s *Sweep) MoveOn(ctx context.Context, d Due, next func(sweeps int64) time.Time) (Swept, bool, error) {
	// Only keys are in the index. Most entries were never swept before, so that is
	// tried first; a refusal shows the item, and with it how often.
	swept, err := s.moveOn(ctx, d, 0, next, Absent(At(attrSweeps)))
	refused := AsRefused(err)
	if refused != nil && refused.Has(CodeCondition) && Equal(At(attrSweepAt), d.sweepAt).Holds(refused.Reasons[0].Old) {
		a := &attributes{item: refused.Reasons[0].Old}
		swept, err = s.moveOn(ctx, d, a.optionalCount(attrSweeps), next, Condition{})
		refused = AsRefused(err)
	}
	switch {
	case refused != nil && (refused.Has(CodeCondition) || refused.Has(CodeConflict)):
		return Swept{}, false, nil
	case err != nil:
		return Swept{}, false, fmt.Errorf("move a sweep on: %w", err)
	}
	return swept, true, nil
}

func (s *Sweep) moveOn(ctx context.Context, d Due, sweeps int64, next func(int64) time.Time, also Condition) (Swept, error) {
	item, err := s.engine.Write(ctx, Write{
		Table: s.table, Key: d.Key,
		Changes: []Change{
			Set(At(attrSweepAt), millis(next(sweeps))), Set(At(attrSweeps), Number(sweeps+1)), Remove(At(attrRing)),
		},
		If: All(Equal(At(attrSweepAt), d.sweepAt), also),
	})
	if err != nil {
		return Swept{}, err
	}
	a := &attributes{item: item}
	swept := Swept{
		Sweeps:    sweeps + 1,
		Untouched: sweeps == 0 && a.optionalCount(attrTries) == 0 && a.optionalCount(attrLost) == 0 && !a.has(attrOurs),
	}
	if tryAt := a.optionalTime(attrTryAt); a.fault == nil {
		swept.TryAt = tryAt
	}
	return swept, nil
}
