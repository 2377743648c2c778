package delivery

import "time"

// Transition is what an attempt makes of its delivery. Store writes it together
// with the slot; nothing else moves a delivery forward.
type Transition struct {
	Status     Status
	Reason     Reason
	Successor  int64
	Tries      int64
	Lost       int64
	FirstTryAt time.Time
	TryAt      time.Time // while it is not terminal
	SweepAt    time.Time // while it is not terminal
	Asked      time.Duration
	Used       time.Duration
	Attempt    Attempt
	At         time.Time // when it is written
}

// Outcome is what a send told, in the protocol's words.
type Outcome struct {
	Class      Class
	Status     int
	Detail     string
	Received   Receipt
	RetryAfter string
	Elapsed    time.Duration
	Unsent     bool      // our own clock or time ran out before the first byte: nothing happened
	Findings   []Finding // with Sending.Examine
}

// AfterAttempt is the record's transition: the claim h of delivery d ended with
// the outcome. An outcome of our own making is no transition: see OursAfter.
func AfterAttempt(d Delivery, h Holder, o Outcome, now time.Time, jitter float64) Transition {
	t := Transition{
		Tries: d.Tries + 1, Lost: d.Lost, FirstTryAt: d.FirstTryAt, At: now,
		Attempt: Attempt{
			Number: h.Attempt, Round: h.Round, Token: h.Token, By: ByRecord, At: h.Since,
			Elapsed: o.Elapsed, Class: o.Class, Status: o.Status, Detail: o.Detail, Received: o.Received,
		},
	}
	if t.FirstTryAt.IsZero() {
		t.FirstTryAt = h.Since
	}
	switch o.Class.Effect() {
	case EffectDelivered:
		t.Status = Delivered
	case EffectFailed, EffectFailedAndPaused:
		t.Status, t.Reason = Failed, Reason(o.Class)
	default:
		t.next(o.RetryAfter, jitter)
		t.Attempt.Asked, t.Attempt.Used = t.Asked, t.Used
	}
	return t
}

// AfterLoss is the settler's transition: the lease of claim h of delivery d ran
// out, and nobody knows whether its request was received. The first lost try of
// a round is repeated at once, a later one by the schedule.
func AfterLoss(d Delivery, h Holder, newest int64, now time.Time, jitter float64) Transition {
	t := Transition{
		Tries: d.Tries + 1, Lost: d.Lost + 1, FirstTryAt: d.FirstTryAt, At: now,
		Attempt: Attempt{
			Number: h.Attempt, Round: h.Round, Token: h.Token, By: BySettle, At: h.Since,
			Class: ClassUnknown, Received: MayHave,
		},
	}
	if t.FirstTryAt.IsZero() {
		t.FirstTryAt = h.Since
	}
	switch {
	case !d.Forced() && newest > d.Release:
		t.Status, t.Reason, t.Successor = Skipped, Superseded, newest
	case t.Lost == 1 && t.Tries < Tries:
		t.Status, t.TryAt = Retrying, now
		t.SweepAt = sweepTime(now, now)
	default:
		t.next("", jitter)
	}
	return t
}

// next schedules the next try, or fails the delivery where none is left.
func (t *Transition) next(retryAfter string, jitter float64) {
	if t.Tries >= Tries {
		t.Status, t.Reason = Failed, Reason(t.Attempt.Class)
		t.Asked = ParseRetryAfter(retryAfter, t.At)
		return
	}
	wait := Schedule(t.Tries, t.FirstTryAt, t.At, retryAfter, jitter)
	t.Status, t.TryAt, t.Asked, t.Used = Retrying, wait.TryAt, wait.Asked, wait.Used
	t.SweepAt = sweepTime(wait.TryAt, t.At)
}

// OursAfter is what one more fault of our own makes of a delivery: it is
// counted, and the sweeper brings the delivery back.
func OursAfter(d Delivery, now time.Time) (ours Ours, sweepAt time.Time) {
	ours = Ours{Count: d.Ours.Count + 1, Since: d.Ours.Since}
	if ours.Since.IsZero() {
		ours.Since = now
	}
	return ours, now.Add(oursWait(ours.Count))
}
