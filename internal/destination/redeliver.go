package destination

import (
	"time"

	"colophon/internal/delivery"
)

// requeue says how a delivery is sent again, given what was read; or why not.
func requeue(l Limits, r delivery.Reading, spent Spent, ask Redelivery, now time.Time) (Requeueing, error) {
	d, newest := r.Rang, r.NewestRelease()
	if err := sendable(r); err != nil {
		return Requeueing{}, err
	}
	switch {
	case !d.Status.Terminal():
		return Requeueing{}, refuse(CodeNotEnded, "This delivery has not ended: it is still to be sent. "+
			"Use “try now” to send it without waiting.")
	case ask.Force && ask.Over < 1:
		e := refuse(CodeInvalid, "Name the newest release that you see: it says over which one the older is forced.")
		e.Field = "over"
		return Requeueing{}, e
	case ask.Force && ask.Over != newest:
		return Requeueing{}, newer(newest, "Release %d is the newest now, not release %d. "+
			"Look at it, and force this one over it if you still want to.", newest, ask.Over)
	case !ask.Force && d.Release < newest:
		e := newer(newest, "Release %d is newer than release %d. Sending the older one again needs force, over release %d: "+
			"the receiver would hear of an older state after a newer one, and a careful receiver ignores it.", newest, d.Release, newest)
		e.Code = CodeNotNewest
		return Requeueing{}, e
	}
	spending, err := spend(l, spent, now)
	if err != nil {
		return Requeueing{}, err
	}
	q := Requeueing{Delivery: *d, SlotVersion: r.Slot.Version, At: now, Spending: spending}
	if d.Release < newest {
		q.Over = newest
	}
	return q, nil
}

// advance says how a pending delivery is made due now, given what was read; or why not.
func advance(l Limits, r delivery.Reading, spent Spent, now time.Time) (Advancing, error) {
	d, newest := r.Rang, r.NewestRelease()
	if err := sendable(r); err != nil {
		return Advancing{}, err
	}
	switch {
	case d.Status.Terminal():
		return Advancing{}, refuse(CodeEnded, "This delivery has ended. Redeliver it to send it again.")
	case sends(r.Slot, d.Release, now):
		return Advancing{}, refuse(CodeBeingSent, "This delivery is being sent right now. Its result will show in a few seconds.")
	// Past its lease too: until somebody settles it, its worker may come back and
	// record, and the delivery must stand as that worker read it.
	case r.Slot.Holder != nil && r.Slot.Holder.Release == d.Release:
		return Advancing{}, refuse(CodeBeingSent, "The last attempt of this delivery was cut off, and its end is not known. "+
			"Within three minutes it is noted and the delivery goes on by itself.")
	case d.Forced() && newest > d.Over, !d.Forced() && newest > d.Release:
		return Advancing{}, newer(newest, "Release %d is newer: this one will be skipped. Try release %d now instead.", newest, newest)
	}
	spending, err := spend(l, spent, now)
	if err != nil {
		return Advancing{}, err
	}
	return Advancing{Delivery: *d, SlotVersion: r.Slot.Version, At: now, Spending: spending}, nil
}

// sendable refuses what no person can have sent.
func sendable(r delivery.Reading) error {
	switch d := r.Rang; {
	case d == nil:
		return errNoDelivery()
	case r.Slot.Unreadable:
		return errDamaged()
	case r.Slot.State == delivery.SlotRemoved:
		return errRemoved()
	case d.Fault == delivery.FaultUnknownVersion:
		return refuse(CodeUnreadable, "This delivery was written by a newer version of Colophon. Try again after its deployment.")
	case d.Fault != "":
		return refuse(CodeUnreadable, "The record of this delivery is damaged, so it cannot be sent. Publish again instead.")
	case r.Slot.State == delivery.SlotPaused:
		return refuse(CodePaused, "This destination is paused: what is sent to it now would be skipped. Resume it first.")
	}
	return nil
}

// sends says whether an attempt of the release is under way.
func sends(s delivery.Slot, release int64, now time.Time) bool {
	return s.Holder != nil && s.Holder.Release == release && now.Before(s.Holder.Until)
}

func newer(newest int64, format string, args ...any) *Error {
	e := refuse(CodeNewer, format, args...)
	e.Newest = newest
	return e
}

func errNoDelivery() *Error { return refuse(CodeNotFound, "There is no such delivery.") }

func errRemoved() *Error {
	return refuse(CodeRemoved, "This destination was removed. Add it again to send to it.")
}

func errDamaged() *Error {
	return refuse(CodeUnreadable, "The record of this destination is damaged. Remove it and add it again.")
}
