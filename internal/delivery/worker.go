package delivery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"colophon/internal/failure"
	"colophon/internal/killpoint"
	"colophon/internal/retry"
	"colophon/internal/webhook"
)

// Ring is a message that names a delivery: a doorbell.
type Ring struct {
	Key
	Receives    int  // how often the message was received, this time included
	OnSlowQueue bool // it came over the slow queue
	Trace       string
}

// Disposition is what becomes of a message; one of the types below.
type Disposition interface{ disposition() }

// The dispositions.
type (
	// Done: the message is deleted.
	Done struct{}
	// Keep: the message comes back after For, or after its visibility time where For is 0.
	Keep struct{ For time.Duration }
	// MoveToSlowQueue: the keys go to the slow queue, then the message is deleted.
	MoveToSlowQueue struct{}
	// MoveToDeadLetters: the message goes to the dead-letter queue with the reason, then it is deleted.
	MoveToDeadLetters struct{ Reason string }
)

func (Done) disposition()              {}
func (Keep) disposition()              {}
func (MoveToSlowQueue) disposition()   {}
func (MoveToDeadLetters) disposition() {}

// Sender sends one attempt.
type Sender interface {
	// Open opens what a destination's settings hold sealed.
	Open(ctx context.Context, d Destination, s Settings) (Opened, error)
	// Send makes one request and says what became of it. It returns only when
	// nothing of the request can leave any more.
	Send(ctx context.Context, s Sending) Outcome
}

// Opened are a destination's secrets in the clear, for one attempt.
type Opened struct {
	Secrets []webhook.Secret  // that sign: the current one first
	Headers map[string]string // custom headers
}

// Sending is one attempt's request.
type Sending struct {
	Delivery Key
	URL      string
	Opened   Opened
	ID       string
	Body     []byte
	Attempt  int64
	Previous int64     // the last release delivered before this one; 0: none
	At       time.Time // stands in webhook-timestamp; the recorded Attempt.At, so that what was signed can be told
	NotAfter time.Time // on the wall clock: no byte is written later
	Examine  bool      // say in Outcome.Findings what was found on the way
}

// Config is what a Worker needs. Sleep, Beside, Jitter, Token and Clock are given
// so that a simulated world can decide them.
type Config struct {
	Reader  Reader
	Slots   Slots
	Endings Endings
	Notes   Notes
	Tests   Tests
	Sender  Sender
	Observe func(context.Context, Event)
	Clock   func() time.Time                                 // the wall clock
	Jitter  func() float64                                   // from [0, 1)
	Token   func() string                                    // random, never the same again
	Sleep   func(ctx context.Context, d time.Duration) error // until then, or the context's end
	Beside  func(a, b func())                                // runs both, returns when both have ended
	Left    func(context.Context) time.Duration              // of the invocation
}

func (c Config) validate() error {
	if c.Reader == nil || c.Slots == nil || c.Endings == nil || c.Notes == nil || c.Tests == nil || c.Sender == nil ||
		c.Observe == nil || c.Clock == nil || c.Jitter == nil || c.Token == nil || c.Sleep == nil || c.Beside == nil || c.Left == nil {
		return errors.New("delivery: a worker's config is not complete")
	}
	return checkLimits()
}

// Worker answers rings: it reads, decides, claims, sends and records.
type Worker struct{ Config }

// NewWorker makes a Worker.
func NewWorker(c Config) (*Worker, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &Worker{c}, nil
}

// Answer does what there is to do about a ring and says what becomes of its
// message. The context's deadline is the invocation's. A panic ends this ring's
// work and no other's.
func (w *Worker) Answer(ctx context.Context, ring Ring) (end Disposition) {
	run := &answering{Worker: w, ring: ring}
	defer func() {
		if cause := recover(); cause != nil {
			end = run.afterPanic(ctx, cause)
		}
	}()
	return run.answer(ctx)
}

// answering is one ring being answered.
type answering struct {
	*Worker
	ring    Ring
	working *Delivery // what a fault is counted on
	claim   *Holder   // held, and nothing was sent yet
}

// decisionsMost bounds a run of decisions that each found something to do; a
// slot that moves so often is left to whoever moves it.
const decisionsMost = 8

func (a *answering) answer(ctx context.Context) Disposition {
	moved, attempts := 0, 0
	for range decisionsMost {
		reading, err := a.read(ctx)
		if err != nil {
			return a.after(ctx, "read", AfterFailedRead(err, a.ring.Receives))
		}
		a.working = reading.Rang
		now := a.Clock()
		decision := Decide(Situation{
			Reading: reading, OnSlowQueue: a.ring.OnSlowQueue, Receives: a.ring.Receives, Left: a.Left(ctx),
		}, now)
		switch d := decision.(type) {
		case Acknowledge, Park:
			return Done{}
		case Wait:
			return Keep(d)
		case ToSlowQueue:
			return MoveToSlowQueue{}
		case Leave:
			return Keep{For: time.Second}
		case ClockOff:
			return a.clockOff(ctx, reading.Clock)
		case Settle:
			err = a.settle(ctx, reading, d.Holder)
		case SkipPlain:
			err = a.skipPlain(ctx, d.Delivery, d.Successor)
		case EndChecked:
			a.working = &d.Delivery
			err = a.Endings.EndChecked(ctx, Ending{
				Slot: reading.Slot, Delivery: d.Delivery, Status: d.Status, Reason: d.Reason,
				Successor: d.Successor, Request: a.Token(),
			})
			a.ended(ctx, err, d.Delivery, d.Status, d.Reason, d.Successor)
		case EndUnreadable:
			err = a.Endings.EndUnreadable(ctx, d.Key)
			a.ended(ctx, err, Delivery{Key: d.Key}, Failed, Unreadable, 0)
		case Claim:
			if attempts++; attempts > DecisionsAMessage {
				return Keep{For: time.Second}
			}
			a.working = &d.Delivery
			var end Disposition
			if end, err = a.attempt(ctx, reading, d.Delivery); end != nil {
				return end
			}
		default:
			panic(fmt.Sprintf("delivery: no way to do %T", d))
		}
		if err == nil {
			if end := a.over(decision); end != nil {
				return end
			}
			continue
		}
		if errors.Is(err, failure.ErrMoved) {
			moved++
		}
		next := AfterFailedWrite(err, a.ring.Receives, moved)
		if next.End == nil && !next.Ours {
			continue // it moved: decide about it again
		}
		return a.after(ctx, fmt.Sprintf("%T", decision), next)
	}
	return Keep{For: time.Second}
}

// after does what follows from a call that failed.
func (a *answering) after(ctx context.Context, doing string, f Consequence) Disposition {
	if f.Report {
		a.tableFailed(ctx, doing, f.Err)
	}
	if f.Ours {
		return a.ours(ctx, doing, f.Err)
	}
	return f.End
}

// loop repeats what must be written while a lease lasts, or a torn read.
func (a *answering) loop(p retry.Policy) *retry.Loop {
	wall := func() time.Time { return a.Clock().Round(0) } // a frozen sandbox's monotonic clock stood still
	return retry.New(retry.Clock{Now: wall, Sleep: a.Sleep}, p)
}

// whileHeld is for how long something is written again under a lease: while the
// lease lasts, and the invocation. One that is cut off takes its whole batch along.
func (a *answering) whileHeld(ctx context.Context, h Holder) retry.Policy {
	waits := retry.Within(h.Until.Sub(a.Clock().Round(0)), retry.Doubling(50*time.Millisecond, LeaseTime))
	return func(t retry.Try) (time.Duration, bool) {
		wait, again := waits(t)
		return wait, again && a.Left(ctx) > wait+time.Second
	}
}

// over is the message's end where what was just done ended the very delivery that
// rang: there is no need to read that it did.
func (a *answering) over(done Decision) Disposition {
	var ended Key
	switch d := done.(type) {
	case SkipPlain:
		ended = d.Delivery.Key
	case EndChecked:
		ended = d.Delivery.Key
	case EndUnreadable:
		ended = d.Key
	}
	if ended == a.ring.Key {
		return Done{}
	}
	return nil
}

func (a *answering) skipPlain(ctx context.Context, d Delivery, successor int64) error {
	err := a.Endings.SkipPlain(ctx, d.Key, d.Round, successor)
	a.ended(ctx, err, d, Skipped, Superseded, successor)
	return err
}

// read reads once more where this host's clock seems to be off, or cannot be
// compared with the table's.
func (a *answering) read(ctx context.Context) (Reading, error) {
	reading, err := a.readWhole(ctx)
	if err != nil || reading.Clock.sound() {
		return reading, err
	}
	return a.readWhole(ctx)
}

// clockOff leaves a message alone for a while.
func (a *answering) clockOff(ctx context.Context, o ClockOffset) Disposition {
	d := Delivery{Key: a.ring.Key}
	if a.working != nil {
		d = *a.working
	}
	a.observe(ctx, Event{Kind: EventClock, Delivery: d, Clock: o})
	return Keep{For: ClockWait}
}

// readWhole reads until the reading is whole. No transaction is under way for longer
// than TornTime: what stays torn is a newest delivery that expired, or damage,
// and is decided about as it is.
func (a *answering) readWhole(ctx context.Context) (Reading, error) {
	loop := a.loop(WhileTorn)
	for {
		reading, err := a.Reader.Read(ctx, a.ring.Key)
		if err != nil || !reading.Torn() {
			return reading, err
		}
		if !loop.Again(ctx) {
			return reading, ctx.Err()
		}
	}
}

// settle takes a holder whose lease is over out of the slot and writes what is
// known of its attempt: nothing.
func (a *answering) settle(ctx context.Context, r Reading, h Holder) error {
	k := Key{Destination: r.Destination, Release: h.Release}
	held := r.held(k)
	if held == nil {
		var err error
		if held, err = a.Reader.ReadDelivery(ctx, k); err != nil {
			return err
		}
	}
	now := a.Clock()
	s := Settlement{Destination: r.Destination, Slot: r.Slot, Request: a.Token()}
	if held != nil && held.Fault == "" && !held.Status.Terminal() && held.Round == h.Round {
		s.Delivery, s.Transition = held, AfterLoss(*held, h, r.NewestRelease(), now, a.Jitter())
	}
	err := a.Slots.Settle(ctx, s)
	if err == nil && s.Delivery != nil {
		a.observe(ctx, Event{Kind: EventAttempt, Delivery: *held, Transition: s.Transition})
	}
	return err
}

func (r Reading) held(k Key) *Delivery {
	for _, d := range []*Delivery{r.Rang, r.Newest} {
		if d != nil && d.Key == k {
			return d
		}
	}
	return nil
}

// attempt claims the slot for k, sends and records. It returns a disposition
// where the message's end is clear, or none: then decide about it again.
func (a *answering) attempt(ctx context.Context, r Reading, k Delivery) (Disposition, error) {
	began := a.Clock().Round(0) // the lease is on the wall clock: a frozen sandbox's monotonic one stood still
	h := Holder{
		Token: a.Token(), Release: k.Release, Round: k.Round, Attempt: k.Numbered + 1,
		Since: began, Until: began.Add(LeaseTime),
	}
	a.claim = &h
	var slot Slot
	var opened Opened
	var claimErr, openErr error
	a.Beside(
		func() { slot, claimErr = a.Slots.Claim(ctx, k.Destination, r.Slot, h) },
		func() { opened, openErr = a.Sender.Open(ctx, k.Destination, r.Settings) },
	)
	if claimErr != nil {
		a.claim = nil
		if errors.Is(claimErr, failure.ErrUnknown) {
			// It may be ours all the same: nothing is sent, and the slot is free for the next.
			a.giveBack(ctx, k.Destination, h)
		}
		return nil, claimErr
	}
	killpoint.At(killpoint.AfterClaim)
	sealed := errors.Is(openErr, ErrSealedForAnother)
	if openErr != nil && !sealed {
		return a.notATry(ctx, h, k, "open secrets", openErr), nil
	}
	if sealed {
		a.fault(ctx, "open secrets", openErr, true) // for the operator: the record was changed by other hands than the api's
	}
	if h.Until.Sub(a.Clock().Round(0)) < ClaimMargin {
		a.giveBack(ctx, k.Destination, h)
		return Keep{For: time.Second}, nil
	}

	killpoint.At(killpoint.BeforeSend)
	a.claim = nil
	var outcome Outcome
	a.Beside(
		func() {
			if sealed {
				outcome = Outcome{Class: ClassSealed, Received: NotReceived}
				return
			}
			outcome = a.send(ctx, r, slot, h, k, opened)
		},
		func() { a.skipWaiting(ctx, r, k) },
	)
	killpoint.At(killpoint.AfterSend)

	if outcome.Unsent {
		a.giveBack(ctx, k.Destination, h)
		return Keep{For: time.Second}, nil
	}
	if outcome.Class.Effect() == EffectNotATry {
		return a.notATry(ctx, h, k, "send", errors.New(outcome.Detail)), nil
	}
	recording := Recording{
		Delivery: k, Slot: slot, Holder: h, Request: a.Token(),
		Transition: AfterAttempt(k, h, outcome, a.Clock(), a.Jitter()),
		Slow:       outcome.Elapsed > SlowAttempt,
		Pause:      outcome.Class.Effect() == EffectFailedAndPaused,
	}
	recorded, err := a.record(ctx, recording)
	killpoint.At(killpoint.AfterRecord)
	if !recorded || err != nil {
		return nil, err
	}
	return a.afterRecord(ctx, r, recording)
}

// afterRecord decides about the delivery that rang without reading it, where what
// was just written tells enough: it ended, or it was passed over by a newer one.
func (a *answering) afterRecord(ctx context.Context, r Reading, done Recording) (Disposition, error) {
	if done.Delivery.Key != a.ring.Key {
		if err := a.skipPlain(ctx, *r.Rang, done.Delivery.Release); err != nil {
			return nil, err
		}
		return Done{}, nil
	}
	if done.Transition.Status.Terminal() {
		return Done{}, nil
	}
	return nil, nil
}

func (a *answering) send(ctx context.Context, r Reading, slot Slot, h Holder, k Delivery, opened Opened) Outcome {
	previous := slot.DeliveredThrough
	if previous >= k.Release {
		previous = 0
	}
	return a.Sender.Send(ctx, Sending{
		Delivery: k.Key, URL: r.Settings.URL, Opened: opened, ID: k.WebhookID, Body: k.Body,
		Attempt: h.Attempt, Previous: previous, At: h.Since, NotAfter: h.Until.Add(-SilenceBeforeEnd),
	})
}

// skipWaiting ends the release that the last record left between two tries and
// that this claim passed over: it would show "retrying" until its next try.
func (a *answering) skipWaiting(ctx context.Context, r Reading, k Delivery) {
	waiting := r.Slot.Waiting
	if waiting == 0 || waiting >= k.Release {
		return
	}
	key := Key{Destination: k.Destination, Release: waiting}
	err := a.Endings.SkipPlain(ctx, key, 0, k.Release)
	a.ended(ctx, err, Delivery{Key: key}, Skipped, Superseded, k.Release)
}

// record writes the outcome, again and again while the lease lasts: a result
// that is not written is a try whose outcome nobody knows.
func (a *answering) record(ctx context.Context, r Recording) (recorded bool, err error) {
	loop := a.loop(a.whileHeld(ctx, r.Holder))
	for {
		err := a.Slots.Record(ctx, r)
		switch {
		case err == nil:
			a.observe(ctx, Event{Kind: EventAttempt, Delivery: r.Delivery, Transition: r.Transition})
			return true, nil
		case errors.Is(err, ErrLate), errors.Is(err, ErrEnded):
			a.observe(ctx, Event{Kind: EventLate, Delivery: r.Delivery, Transition: r.Transition})
			return false, a.Notes.NoteLate(ctx, r.Delivery.Key, r.Holder.Attempt, r.Holder.Token, string(r.Transition.Attempt.Class))
		}
		if !loop.Again(ctx) {
			return false, err
		}
	}
}

// giveBack frees the slot, again and again while the lease lasts: a lease that
// runs out counts as a try, and here nothing was sent. Where that fails the slot
// is free when the lease is over.
func (a *answering) giveBack(ctx context.Context, d Destination, h Holder) {
	a.claim = nil
	loop := a.loop(a.whileHeld(ctx, h))
	for {
		err := a.giveBackOnce(ctx, d, h)
		if err == nil {
			return
		}
		if again := failure.NotDone(err) || errors.Is(err, failure.ErrUnknown); !again || !loop.Again(ctx) {
			a.tableFailed(ctx, "give the slot back", err)
			return
		}
	}
}

// giveBackOnce asks once, also where the time for work has run out: what was
// claimed just before is given back in what is kept for the answer.
func (a *answering) giveBackOnce(ctx context.Context, d Destination, h Holder) error {
	if ctx.Err() != nil {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(context.WithoutCancel(ctx), LastCallTime)
		defer stop()
	}
	return a.Slots.GiveBack(ctx, d, h.Token)
}

// notATry frees the slot after a fault of our own before anything was received,
// and counts the fault, not a try. Where another delivery rang, it is decided
// about again: the claim passed it over.
func (a *answering) notATry(ctx context.Context, h Holder, k Delivery, doing string, cause error) Disposition {
	a.giveBack(ctx, k.Destination, h)
	end := a.ours(ctx, doing, cause)
	if k.Release != a.ring.Release {
		return nil
	}
	return end
}

// ours counts a fault of our own on the delivery that was worked on; the sweeper
// brings it back. Where not even that can be written, the message stays.
func (a *answering) ours(ctx context.Context, doing string, cause error) Disposition {
	counted := a.counted(ctx)
	a.fault(ctx, doing, cause, counted)
	if counted {
		return Done{}
	}
	return Keep{}
}

func (a *answering) counted(ctx context.Context) bool {
	if a.working == nil || a.working.Fault != "" {
		return false
	}
	err := a.Endings.CountOurs(ctx, *a.working)
	if err != nil && !errors.Is(err, failure.ErrMoved) {
		a.tableFailed(ctx, "count a fault", err)
	}
	return err == nil
}

// afterPanic makes a panic a fault of the delivery that was worked on. Its
// message comes back, and goes to the dead-letter queue at the third panic; from
// then on the sweeper alone brings the delivery back.
func (a *answering) afterPanic(ctx context.Context, cause any) (end Disposition) {
	end = Keep{}
	defer func() {
		if again := recover(); again != nil && a.ring.Receives >= PanicsBeforeDead {
			end = MoveToDeadLetters{Reason: reasonPanic}
		}
	}()
	if a.claim != nil { // nothing was sent: the slot need not wait for the lease's end
		a.giveBack(ctx, a.ring.Destination, *a.claim)
	}
	panics := int64(a.ring.Receives)
	counted := false
	defer func() { a.fault(ctx, "panic", fmt.Errorf("panic: %v", cause), counted) }()
	if counted = a.counted(ctx); counted {
		panics = a.working.Ours.Count + 1
	}
	switch {
	case panics < PanicsBeforeDead:
		return Keep{}
	case panics > PanicsBeforeDead && a.working != nil:
		return Done{}
	}
	return MoveToDeadLetters{Reason: reasonPanic}
}

// reasonPanic stands on a dead letter whose work panicked.
const reasonPanic = "panic"
