package delivery

import (
	"fmt"
	"time"

	"colophon/internal/retry"
)

// The protocol's times, once. checkLimits holds their order.
const (
	AttemptTime     = 10 * time.Second // one deadline over connect, TLS, request and answer
	ClaimMargin     = 12 * time.Second // less of the lease than this: nothing is sent (attempt + 2 s for the last byte)
	InvocationFloor = 13 * time.Second // less of the invocation than this: nothing is claimed (margin + the record's 1 s)
	LeaseTime       = 15 * time.Second // attempt 10 s + 2 s for the last byte + 3 s to begin and record
	FunctionTime    = 20 * time.Second // the deliver function's timeout: a lease and a second round of reads
	VisibilityTime  = 30 * time.Second // both queues': a killed worker's message comes back after it

	LastCallTime = 500 * time.Millisecond // of the one call that gives a slot back when the time for work has run out; its caller keeps a second

	SilenceBeforeEnd = 2 * time.Second // no byte is written later than this before the lease's end
	ClockAllowance   = 1 * time.Second // two sandboxes' clocks differ by no more
	ClockBound       = 3 * time.Second // a host whose clock is further off neither reclaims nor claims; order held with hosts 4 s off either way, and broke at 8 s
	ClockWidth       = 4 * time.Second // an offset that is known less exactly says nothing: 1 s of the date + 2 s of the call + 1 s
	ClockWait        = VisibilityTime  // after it the message comes back, to another host if there is one
	TornTime         = 3 * time.Second // a transaction's items are seen in part for no longer

	SlowAttempt        = 2 * time.Second // a longer attempt marks the destination slow
	LostBeforeSlow     = 2               // a delivery with this many lost tries in its round is sent from the slow queue, where it is alone
	PanicsBeforeDead   = 3               // a message whose work panics this often goes to the dead-letter queue
	DecisionsAMessage  = 3               // a message's delivery is decided about at most this often after an attempt
	LongestVisibleWait = 2 * time.Minute // longer waits leave the queue; the sweeper brings them back

	LongestThrottledWait = 30 * time.Second // of a message, while the table is short of units
	ThrottledReport      = 3                // from this receive on such a wait makes an event: the table was short for seconds

	Tries          = 5
	JitterPercent  = 5 // added to a wait, never taken off
	RetryHorizon   = 60 * time.Minute
	OursHorizon    = 24 * time.Hour
	AttemptsKept   = 20
	SweepDelay     = 2 * time.Minute     // a delivery is swept this long after it was due
	LongestSweep   = 1 * time.Hour       // the sweeper's own back-off ends here
	UnknownVersion = 60 * time.Second    // a message or body of an unknown version waits
	RetentionTime  = 90 * 24 * time.Hour // a terminal delivery's item expires after it
)

// Waits before try 2, 3, 4 and 5, each from the end of the try before.
var waits = [Tries - 1]time.Duration{1 * time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute}

// checkLimits is run when a worker is built: a constant moved alone would open
// a hole (an attempt that outlives its lease, a lease that outlives its message).
func checkLimits() error {
	order := []time.Duration{AttemptTime, ClaimMargin, InvocationFloor, LeaseTime, FunctionTime}
	for i := 1; i < len(order); i++ {
		if order[i-1] >= order[i] {
			return fmt.Errorf("delivery: limits out of order: %v before %v", order[i-1], order[i])
		}
	}
	if FunctionTime > VisibilityTime {
		return fmt.Errorf("delivery: visibility %v is below the function's %v", VisibilityTime, FunctionTime)
	}
	if AttemptTime+SilenceBeforeEnd > ClaimMargin {
		return fmt.Errorf("delivery: an attempt of %v may write in the lease's last %v", AttemptTime, SilenceBeforeEnd)
	}
	if ClockBound < ClockAllowance {
		return fmt.Errorf("delivery: clocks may differ by %v, and are held to %v", ClockAllowance, ClockBound)
	}
	// A host may pass that is this much off, another as much the other way: to the
	// one, the other's lease must not be over when it begins.
	if unseen := ClockBound + ClockWidth; 2*unseen >= LeaseTime+ClockAllowance {
		return fmt.Errorf("delivery: clocks that are %v off pass, and a lease lasts %v", unseen, LeaseTime)
	}
	return nil
}

// WhileTorn is how a torn reading is read again: no transaction is under way for
// longer than TornTime, so what stays torn after it is no transaction.
func WhileTorn(t retry.Try) (time.Duration, bool) {
	const first = TornTime / 64
	return retry.Times(7, retry.Doubling(first, TornTime))(t)
}
