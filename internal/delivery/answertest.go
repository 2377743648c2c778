package delivery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"colophon/internal/failure"
	"colophon/internal/killpoint"
)

// TestRing is a message that names a test send.
type TestRing struct {
	Destination
	ID          string
	Receives    int  // how often the message was received, this time included
	OnSlowQueue bool // it came over the slow queue
	Trace       string
}

// Target is where a destination's requests go.
type Target struct {
	Slot     Slot
	Settings Settings
	Clock    ClockOffset
}

// Tests keeps test sends. A test send takes no slot: it is claimed by a
// conditional write on itself, so it has one try whatever happens.
type Tests interface {
	// ReadTest reads a test send; nil where there is none.
	ReadTest(ctx context.Context, d Destination, id string) (*TestSend, error)
	// ReadTarget reads where a destination's requests go.
	ReadTarget(ctx context.Context, d Destination) (Target, error)
	// ClaimTest takes it if nobody has. ErrMoved, ErrBusy, ErrUncertain.
	ClaimTest(ctx context.Context, d Destination, id, token string, now, until time.Time) (TestSend, error)
	// RecordTest writes the result, and a doctor's findings, under the result's
	// token. ErrMoved, ErrBusy, ErrUncertain.
	RecordTest(ctx context.Context, d Destination, id string, result Attempt, findings []Finding) error
}

// AnswerTest sends a test send that nobody has sent yet. A panic ends this
// ring's work and no other's.
func (w *Worker) AnswerTest(ctx context.Context, ring TestRing) (end Disposition) {
	run := &answering{Worker: w, ring: Ring{Key: Key{Destination: ring.Destination}, Receives: ring.Receives, Trace: ring.Trace}}
	defer func() {
		if cause := recover(); cause != nil {
			run.fault(ctx, "panic in a test send", fmt.Errorf("panic: %v", cause), false)
			end = Keep{}
			if ring.Receives >= PanicsBeforeDead {
				end = MoveToDeadLetters{Reason: reasonPanic}
			}
		}
	}()
	return run.answerTest(ctx, ring)
}

func (a *answering) answerTest(ctx context.Context, ring TestRing) Disposition {
	test, err := a.Tests.ReadTest(ctx, ring.Destination, ring.ID)
	if errors.Is(err, ErrUnknownVersion) {
		return Keep{For: UnknownVersion} // a deployment is under way
	}
	if err != nil {
		return a.after(ctx, "read a test send", AfterFailedRead(err, ring.Receives))
	}
	if test == nil || test.Token != "" || test.Result != nil {
		return Done{}
	}
	target, err := a.readTarget(ctx, ring.Destination)
	if err != nil {
		return a.after(ctx, "read a test send's target", AfterFailedRead(err, ring.Receives))
	}
	switch {
	case target.Clock.OutOfBounds():
		return a.clockOff(ctx, target.Clock)
	case target.Clock.Vague(), a.Left(ctx) < InvocationFloor:
		return Keep{For: time.Second}
	}
	began := a.Clock().Round(0)
	if !test.Claimable(began) {
		return Done{}
	}
	if target.Slot.State == SlotRemoved || target.Slot.Unreadable {
		return Done{} // nobody is to be called: it reads as not sent
	}
	if target.Slot.Slow && !ring.OnSlowQueue {
		return MoveToSlowQueue{} // a test is no way for a hanging destination into the fast lane (I7)
	}
	opened, err := a.Sender.Open(ctx, ring.Destination, target.Settings)
	sealed := errors.Is(err, ErrSealedForAnother)
	if err != nil {
		a.fault(ctx, "open secrets for a test send", err, false)
		if !sealed {
			return Keep{}
		}
	}
	until := began.Add(LeaseTime)
	token := a.Token()
	claimed, err := a.Tests.ClaimTest(ctx, ring.Destination, ring.ID, token, began, until)
	switch {
	case errors.Is(err, failure.ErrMoved):
		return Done{}
	case errors.Is(err, failure.ErrThrottled):
		return a.after(ctx, "claim a test send", AfterFailedRead(err, ring.Receives))
	case err != nil:
		return Keep{For: time.Second} // a claim that was carried out all the same reads as unknown
	}
	if until.Sub(a.Clock().Round(0)) < ClaimMargin {
		return Done{} // it was frozen; its one try is spent
	}
	killpoint.At(killpoint.BeforeSend)
	outcome := Outcome{Class: ClassSealed, Received: NotReceived}
	if !sealed {
		outcome = a.Sender.Send(ctx, Sending{
			Delivery: Key{Destination: ring.Destination}, URL: target.Settings.URL, Opened: opened, ID: claimed.WebhookID,
			Body: claimed.Body, Attempt: 1, At: began, NotAfter: until.Add(-SilenceBeforeEnd),
			Examine: claimed.Kind == TestDoctor,
		})
	} else if claimed.Kind == TestDoctor {
		outcome.Findings = sealedFindings()
	}
	killpoint.At(killpoint.AfterSend)
	if outcome.Unsent {
		outcome.Class = ClassOurs
	}
	result := Attempt{
		Number: 1, Round: 1, Token: token, By: ByRecord, At: began, Elapsed: outcome.Elapsed,
		Class: outcome.Class, Status: outcome.Status, Detail: outcome.Detail, Received: outcome.Received,
	}
	loop := a.loop(a.whileHeld(ctx, Holder{Until: until}))
	for {
		err = a.Tests.RecordTest(ctx, ring.Destination, ring.ID, result, outcome.Findings)
		if err == nil || errors.Is(err, failure.ErrMoved) {
			a.observe(ctx, Event{Kind: EventTest, Delivery: Delivery{Key: a.ring.Key}, Test: ring.ID, Transition: Transition{Attempt: result}})
			return Done{}
		}
		if !loop.Again(ctx) {
			a.tableFailed(ctx, "record a test send", err)
			return Done{} // sending it again is not an answer to that
		}
	}
}

// readTarget reads as [answering.read] does.
func (a *answering) readTarget(ctx context.Context, d Destination) (Target, error) {
	target, err := a.Tests.ReadTarget(ctx, d)
	if err != nil || target.Clock.sound() {
		return target, err
	}
	return a.Tests.ReadTarget(ctx, d)
}
