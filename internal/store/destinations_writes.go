package store

import (
	"fmt"
	"time"

	"colophon/internal/delivery"
	"colophon/internal/destination"
)

// writes renders an operation: one write for each item, each under its condition.
func (s *Destinations) writes(o destination.Operation) []Write {
	switch o := o.(type) {
	case destination.Adding:
		return s.adding(o)
	case destination.Removing:
		return s.removing(o)
	case destination.Switching:
		return []Write{s.switching(o)}
	case destination.Resetting:
		return []Write{{
			Table: s.table, Key: settingsKey(o.Destination), Put: encodeSettings(o.Settings),
			If: Equal(At(attrVersion), Number(o.Version)),
		}}
	case destination.Requeueing:
		return append(s.requeueing(o), s.spending(o.Delivery.Destination, o.Spending)...)
	case destination.Advancing:
		return append(s.advancing(o), s.spending(o.Delivery.Destination, o.Spending)...)
	case destination.Testing:
		d := o.Test.Destination
		return append([]Write{
			{Table: s.table, Key: slotKey(d), Check: true, If: inUse},
			putTest(s.table, o.Test),
		}, s.spending(d, o.Spending)...)
	}
	panic(fmt.Sprintf("store: operation %T", o))
}

// inUse holds for the slot of a destination that was not removed.
var inUse = Any(
	Equal(At(attrState), Text(string(delivery.SlotActive))),
	Equal(At(attrState), Text(string(delivery.SlotPaused))),
)

func (s *Destinations) adding(o destination.Adding) []Write {
	slot := delivery.Slot{State: delivery.SlotActive, Version: 1}
	return []Write{
		changeDestinations(s.content, o.Project, o.ProjectVersion, o.IDs),
		{Table: s.table, Key: slotKey(o.Destination), Put: encodeSlot(slot), If: Absent(At(attrPK))},
		{Table: s.table, Key: settingsKey(o.Destination), Put: encodeSettings(o.Settings), If: Absent(At(attrPK))},
	}
}

// removing keeps the slot's holder, so that an attempt in flight can be
// recorded, and moves its version, so that nobody claims who read it active.
func (s *Destinations) removing(o destination.Removing) []Write {
	slot := Write{
		Table: s.table, Key: slotKey(o.Destination), If: inUse,
		Changes: []Change{
			Set(At(attrState), Text(string(delivery.SlotRemoved))), Remove(At(attrPausedBy)), Add(At(attrVersion), 1),
		},
	}
	settings := Write{
		Table: s.table, Key: settingsKey(o.Destination), If: Exists(At(attrPK)),
		Changes: []Change{
			Remove(At(attrURL)), Remove(At(attrSecret)), Remove(At(attrPrevious)), Remove(At(attrPreviousUntil)),
			Remove(At(attrHeaders)), Remove(At(attrHeaderNames)),
			Remove(At(attrSeal)), Remove(At(attrOlder)), Remove(At(attrFingerprint)),
			Set(At(attrUpdatedAt), millis(o.At)), Add(At(attrVersion), 1),
		},
	}
	if o.Damaged {
		// What is there cannot be read, so nothing of it can be kept. The time
		// stands for a version that no reader saw before.
		version := o.At.UnixMilli()
		slot.Changes, slot.If = nil, Condition{}
		slot.Put = encodeSlot(delivery.Slot{State: delivery.SlotRemoved, Version: version})
		settings.Changes, settings.If = nil, Condition{}
		settings.Put = Item{attrCreatedAt: millis(o.At), attrUpdatedAt: millis(o.At), attrVersion: Number(version)}
	}
	return []Write{changeDestinations(s.content, o.Project, o.ProjectVersion, o.IDs), slot, settings}
}

func (s *Destinations) switching(o destination.Switching) Write {
	pausedBy := Remove(At(attrPausedBy))
	if o.By != "" {
		pausedBy = Set(At(attrPausedBy), Text(string(o.By)))
	}
	return Write{
		Table: s.table, Key: slotKey(o.Destination), If: Equal(At(attrState), Text(string(o.From))),
		Changes: []Change{Set(At(attrState), Text(string(o.To))), pausedBy, Add(At(attrVersion), 1)},
	}
}

// requeueing starts a round: what the last one left is taken away, but for the
// attempts, which run on.
func (s *Destinations) requeueing(o destination.Requeueing) []Write {
	d := o.After()
	force := Remove(At(attrForce))
	if d.Forced() {
		force = Set(At(attrForce), Map(Item{attrOver: Number(d.Over)}))
	}
	changes := []Change{
		Set(At(attrStatus), Text(string(d.Status))), Set(At(attrRound), Number(d.Round)), Set(At(attrRev), Number(d.Rev)),
		Set(At(attrTries), Number(0)), Set(At(attrTryAt), millis(d.TryAt)), force,
		Set(At(attrSweepShard), Number(sweepShard(d.Project, d.ID, d.Release))), Set(At(attrSweepAt), millis(d.SweepAt)),
		Set(At(attrBefore), encodeResult(*d.Before)), Set(At(attrRing), millis(o.At)),
	}
	for _, name := range []string{
		attrReason, attrSuccessor, attrFirstTryAt, attrLost, attrOurs, attrAsked, attrUsed, attrSweeps, attrEndedAt, attrExpiresAt,
	} {
		changes = append(changes, Remove(At(name)))
	}
	return []Write{s.slotMove(o.Delivery, o.SlotVersion), {
		Table: s.table, Key: deliveryKey(d.Key), Changes: changes, If: unchanged(o.Delivery),
	}}
}

func (s *Destinations) advancing(o destination.Advancing) []Write {
	d := o.After()
	return []Write{s.slotMove(o.Delivery, o.SlotVersion), {
		Table: s.table, Key: deliveryKey(d.Key), If: unchanged(o.Delivery),
		Changes: []Change{
			Set(At(attrRev), Number(d.Rev)), Set(At(attrTryAt), millis(d.TryAt)), Set(At(attrSweepAt), millis(d.SweepAt)),
			Remove(At(attrSweeps)), Set(At(attrRing), millis(o.At)),
		},
	}}
}

// slotMove is the slot's part in a transaction with a delivery: nobody writes the
// slot any more who read it before.
func (s *Destinations) slotMove(read delivery.Delivery, version int64) Write {
	return Write{
		Table: s.table, Key: slotKey(read.Destination), If: Equal(At(attrVersion), Number(version)),
		Changes: []Change{
			Set(At(attrVersion), Number(version+1)), Set(At(attrLast), encodeLast(read.Release, read.Rev+1)),
		},
	}
}

// unchanged holds while a delivery is as it was read. A plain skip moves its
// status alone, so the rev would not show it.
func unchanged(read delivery.Delivery) Condition {
	return All(
		Equal(At(attrStatus), Text(string(read.Status))),
		Equal(At(attrRound), Number(read.Round)),
		Equal(At(attrRev), Number(read.Rev)),
	)
}

// spending takes from the limits, if nobody else did since they were read.
func (s *Destinations) spending(d delivery.Destination, o destination.Spending) []Write {
	writes := []Write{s.take(allowanceKey(d), o.Was, o.Until)}
	if o.Origin != "" {
		writes = append(writes, s.take(originKey(d.Project, o.Origin), o.OriginWas, o.OriginUntil))
	}
	return writes
}

// take writes a limit's state, which expires when all of it is available again.
func (s *Destinations) take(key Key, was, until time.Time) Write {
	w := Write{
		Table: s.table, Key: key, If: Absent(At(attrUntil)),
		Put: Item{attrUntil: millis(until), attrExpiresAt: seconds(until)},
	}
	if !was.IsZero() {
		w.If = Equal(At(attrUntil), millis(was))
	}
	return w
}
