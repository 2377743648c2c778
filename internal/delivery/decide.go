package delivery

import "time"

// Situation is a reading and the message that asked for it.
type Situation struct {
	Reading
	OnSlowQueue bool          // the message came over the slow queue
	Receives    int           // how often the message was received, this time included
	Left        time.Duration // of this invocation
}

// Decision is what to do; one of the types below.
type Decision interface{ decision() }

// The decisions.
type (
	// Acknowledge: there is nothing to do, now or later.
	Acknowledge struct{}
	// Park: the message goes, the sweeper brings the delivery back when it is due.
	Park struct{}
	// Settle takes a holder whose lease is over out of the slot.
	Settle struct{ Holder Holder }
	// SkipPlain ends the delivery that rang by a write to it alone.
	SkipPlain struct {
		Delivery  Delivery
		Successor int64
	}
	// EndChecked ends a delivery in one transaction with the slot as it was read.
	EndChecked struct {
		Delivery  Delivery
		Status    Status
		Reason    Reason
		Successor int64
	}
	// EndUnreadable ends a delivery whose item cannot be read.
	EndUnreadable struct{ Key Key }
	// Wait leaves the message on its queue for a while.
	Wait struct{ For time.Duration }
	// ToSlowQueue hands the message to the slow queue.
	ToSlowQueue struct{}
	// Leave lets the message come back in a moment: this invocation has no time for it.
	Leave struct{}
	// ClockOff leaves the message to a host whose clock is right.
	ClockOff struct{}
	// Claim takes the slot for a delivery and sends it.
	Claim struct{ Delivery Delivery }
)

func (Acknowledge) decision()   {}
func (Park) decision()          {}
func (Settle) decision()        {}
func (SkipPlain) decision()     {}
func (EndChecked) decision()    {}
func (EndUnreadable) decision() {}
func (Wait) decision()          {}
func (ToSlowQueue) decision()   {}
func (Leave) decision()         {}
func (ClockOff) decision()      {}
func (Claim) decision()         {}

// Decide says what to do about the delivery n that rang, where m is the newest.
// The first row that fits decides; their order is the protocol.
func Decide(s Situation, now time.Time) Decision {
	n, m, newest := s.Rang, s.Newest, s.NewestRelease()
	switch {
	// Leases rest on the clocks of all hosts, so nothing is judged by one that is off.
	case s.Clock.OutOfBounds():
		return ClockOff{}
	case s.Clock.Vague():
		return Leave{}

	// The holder was killed or froze: its attempt is written before anything else.
	case s.Slot.expired(now):
		return Settle{Holder: *s.Slot.Holder}

	case n == nil || n.Status.Terminal():
		return Acknowledge{}

	// A deploy is under way: neither ended nor parked.
	case n.Fault == FaultUnknownVersion || m.Fault == FaultUnknownVersion:
		return Wait{For: UnknownVersion}
	case s.Slot.Unreadable, n.Fault == FaultUnreadable:
		return EndUnreadable{Key: n.Key}

	// A newer one was claimed, which never unhappens, or has ended under the slot's
	// version. What is being sent is left to end.
	case !n.Forced() && !s.Slot.holds(n.Release) && (s.Slot.SentThrough > n.Release ||
		m.Release > n.Release && m.Status.Terminal() && m.Reason != Unreadable):
		return SkipPlain{Delivery: *n, Successor: newest}

	// Its successor waits.
	case s.Slot.Holder != nil:
		return Wait{For: s.heldWait(now)}

	// The person forced it over what the page showed, and that is not the newest now.
	case n.Forced() && newest > n.Over:
		return EndChecked{Delivery: *n, Status: Skipped, Reason: Superseded, Successor: newest}

	// The newer one was unreadable. Its end moved no version, so whoever read before
	// it may still claim n: the slot has to say that nobody has.
	case !n.Forced() && m.Release > n.Release && m.Status.Terminal():
		return EndChecked{Delivery: *n, Status: Skipped, Reason: Superseded, Successor: newest}
	}

	// Whoever answers the doorbell sends the newest, or the one that was forced.
	k := m
	if n.Forced() {
		k = n
	}
	switch {
	case k.Fault == FaultUnreadable:
		return EndUnreadable{Key: k.Key}
	case s.Slot.State == SlotRemoved:
		return EndChecked{Delivery: *k, Status: Skipped, Reason: Removed}
	case s.Slot.State == SlotPaused:
		return EndChecked{Delivery: *k, Status: Skipped, Reason: Paused}
	case k.Ours.Count > 0 && !now.Before(k.Ours.Since.Add(OursHorizon)):
		return EndChecked{Delivery: *k, Status: Failed, Reason: OurFault}

	case k.TryAt.Sub(now) > LongestVisibleWait:
		return Park{}
	case k.TryAt.After(now):
		return Wait{For: k.TryAt.Sub(now)}

	// Also what ends the workers that send it: nothing else is in its batch there.
	// How often a message was received says nothing of its destination: a shortage
	// of the table alone can bring it back a hundred times.
	case !s.OnSlowQueue && (s.Slot.Slow || k.Lost >= LostBeforeSlow):
		return ToSlowQueue{}
	case s.Left < InvocationFloor:
		return Leave{}
	}
	return Claim{Delivery: *k}
}

// NewestRelease is the highest release that is known of: one that was claimed may
// have expired from the table since.
func (r Reading) NewestRelease() int64 {
	newest := r.Slot.SentThrough
	if r.Newest != nil {
		newest = max(newest, r.Newest.Release)
	}
	return newest
}

// holds says whether the slot's holder sends this release.
func (s Slot) holds(release int64) bool { return s.Holder != nil && s.Holder.Release == release }

// expired says whether the slot is held under a lease that is over by any clock.
func (s Slot) expired(now time.Time) bool {
	return s.Holder != nil && now.After(s.Holder.Until.Add(ClockAllowance))
}

// heldWait is 1 s at first, then 2 s, and never past the end of the lease.
func (s Situation) heldWait(now time.Time) time.Duration {
	wait := 2 * time.Second
	if s.Receives <= 1 {
		wait = time.Second
	}
	return max(min(wait, s.Slot.Holder.Until.Add(ClockAllowance).Sub(now)), time.Second)
}
