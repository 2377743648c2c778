package delivery_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"colophon/internal/delivery"
	"colophon/internal/destination"
	"colophon/internal/failure"
)

func TestTheNewestIsSentAndTheOlderOnesAreSkippedWithTheirSuccessor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 3 {
		w.publish()
	}
	if end := w.answer(1); end != (delivery.Done{}) {
		t.Errorf("release 1's message ends as %#v", end)
	}
	w.answer(2)
	w.answer(3)
	if got := w.sendings(); !reflect.DeepEqual(got, []string{"3/1"}) {
		t.Errorf("sent %v, want the newest alone", got)
	}
	w.stands(3, delivery.Delivered, "")
	for release := int64(1); release <= 2; release++ {
		if d := w.stands(release, delivery.Skipped, delivery.Superseded); d.Successor != 3 || d.Tries != 0 {
			t.Errorf("release %d: successor %d, tries %d", release, d.Successor, d.Tries)
		}
	}
	if s := w.slot(); s.Holder != nil || s.DeliveredThrough != 3 || s.SentThrough != 3 {
		t.Errorf("slot afterwards: %+v", s)
	}
}

func TestDeliveryCostsAtMostSixWriteUnitsAndOneReadUnitInThreeRoundTrips(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.publish()
	w.consumed()
	w.answer(first)
	calls, read, write := w.consumed()
	t.Logf("a delivery: %v, %.1f read units, %.1f write units", calls, read, write)
	if want := []string{"Query", "UpdateItem", "TransactWriteItems"}; !reflect.DeepEqual(calls, want) {
		t.Errorf("calls %v, want %v", calls, want)
	}
	if write > 6 || read > 1 {
		t.Errorf("%.1f write units, want at most 6; %.1f read units, want at most 1", write, read)
	}

	w.publish()
	w.publish()
	w.answer(3)
	w.consumed()
	w.answer(2)
	calls, read, write = w.consumed()
	t.Logf("a plain skip: %v, %.1f read units, %.1f write units", calls, read, write)
	if write > 2 {
		t.Errorf("a skip costs %.1f write units, want at most 2", write)
	}
}

func TestARetryKeepsIDAndBodyAndSucceeds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish()
	w.status(503)
	if end := w.answer(1); end != (delivery.Keep{For: time.Minute}) {
		t.Errorf("after a failed try the message ends as %#v, want kept for a minute", end)
	}
	w.stands(1, delivery.Retrying, "")
	w.status(204)
	w.pass(time.Minute)
	w.answer(1)
	d := w.stands(1, delivery.Delivered, "")
	if len(d.Attempts) != 2 || d.Attempts[0].Class != delivery.ClassUnavailable || d.Attempts[1].Class != delivery.ClassDelivered {
		t.Errorf("attempts %+v", d.Attempts)
	}
	if w.sent[0].ID == "" || !sameRequest(w.sent[0], w.sent[1]) {
		t.Errorf("the two tries differ in id or body")
	}
}

func TestFiveTriesWithTheirTimes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish()
	w.status(500)
	for try, wait := range []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute} {
		began := w.clock()
		end := w.answer(1)
		d := w.stands(1, delivery.Retrying, "")
		if got := d.TryAt.Sub(began); got != wait {
			t.Errorf("after try %d the next waits %v, want %v", try+1, got, wait)
		}
		if wait > delivery.LongestVisibleWait && end != (delivery.Done{}) {
			t.Errorf("a wait of %v keeps the message: %#v", wait, end)
		}
		w.pass(wait)
	}
	w.answer(1)
	if d := w.stands(1, delivery.Failed, "unavailable"); d.Tries != 5 || len(d.Attempts) != 5 {
		t.Errorf("%d tries, %d attempts", d.Tries, len(d.Attempts))
	}
	if got := len(w.sendings()); got != 5 {
		t.Errorf("%d requests", got)
	}
}

func TestARefusalIsOneTry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish()
	w.status(400)
	w.answer(1)
	w.stands(1, delivery.Failed, "refused")
	w.answer(1)
	if got := w.sendings(); len(got) != 1 {
		t.Errorf("sent %v", got)
	}
}

func TestAReleaseThatWaitsBetweenTriesIsSkippedByANewerOneAndKeepsItsTries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish()
	w.status(503)
	w.answer(1)
	w.status(204)
	w.publish()
	w.answer(2)
	if got := w.sendings(); !reflect.DeepEqual(got, []string{"1/1", "2/1"}) {
		t.Errorf("sent %v", got)
	}
	// Release 1 is skipped right with the claim of 2, not when its own message comes back.
	if d := w.stands(1, delivery.Skipped, delivery.Superseded); d.Successor != 2 || d.Tries != 1 || len(d.Attempts) != 1 {
		t.Errorf("release 1: successor %d, tries %d, attempts %d", d.Successor, d.Tries, len(d.Attempts))
	}
}

func TestAReleaseThatIsBeingSentIsLeftToEndAndSkippedIfItFailed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish()
	w.answering(func(s delivery.Sending) delivery.Outcome {
		if s.Delivery.Release != 1 {
			return answers(204)
		}
		w.publish()
		if end := w.answer(2); end != (delivery.Keep{For: time.Second}) {
			t.Errorf("release 2's message meanwhile: %#v, want to wait", end)
		}
		return answers(503)
	})
	w.answer(1)
	d := w.stands(1, delivery.Skipped, delivery.Superseded)
	if len(d.Attempts) != 1 || d.Attempts[0].Class != delivery.ClassUnavailable {
		t.Errorf("release 1's attempt: %+v", d.Attempts)
	}
	w.stands(2, delivery.Delivered, "")
	if got := w.sendings(); !reflect.DeepEqual(got, []string{"1/1", "2/1"}) {
		t.Errorf("sent %v", got)
	}
}

func TestWhatFailedIsNotTheLastDelivered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish()
	w.answer(1)
	w.publish()
	w.publish()
	w.status(500)
	for range delivery.Tries {
		w.answer(3)
		w.pass(31 * time.Minute)
	}
	w.answer(2)
	w.stands(3, delivery.Failed, "unavailable")
	w.stands(2, delivery.Skipped, delivery.Superseded)
	if s := w.slot(); s.DeliveredThrough != 1 {
		t.Errorf("delivered through %d, want 1", s.DeliveredThrough)
	}
	w.status(204)
	w.publish()
	w.answer(4)
	if last := w.sent[len(w.sent)-1]; last.Previous != 1 {
		t.Errorf("colophon-previous is %d, want 1", last.Previous)
	}
}

// S08
func TestGonePausesTheDestinationAndLaterReleasesAreSkippedVisibly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish()
	w.status(410)
	w.answer(1)
	w.stands(1, delivery.Failed, "gone")
	if s := w.slot(); s.State != delivery.SlotPaused || s.PausedBy != delivery.PausedByGone {
		t.Errorf("slot is %s by %s", s.State, s.PausedBy)
	}
	w.publish()
	w.answer(2)
	w.stands(2, delivery.Skipped, delivery.Paused)
	if got := w.sendings(); len(got) != 1 {
		t.Errorf("sent %v", got)
	}
}

func TestGoneDoesNotBringARemovedDestinationBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish()
	w.answering(func(delivery.Sending) delivery.Outcome {
		must(t, w.destinations.Remove(context.Background(), w.project, w.dest.ID))
		return answers(410)
	})
	w.answer(1)
	w.stands(1, delivery.Failed, "gone")
	if s := w.slot(); s.State != delivery.SlotRemoved || s.Holder != nil {
		t.Errorf("slot is %s, held by %v", s.State, s.Holder)
	}
}

func TestRemovingLetsAnAttemptEndAndSkipsTheRest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish()
	w.answering(func(delivery.Sending) delivery.Outcome {
		w.publish()
		must(t, w.destinations.Remove(context.Background(), w.project, w.dest.ID))
		return answers(204)
	})
	w.answer(1)
	w.stands(1, delivery.Delivered, "")
	w.answer(2)
	w.stands(2, delivery.Skipped, delivery.Removed)
	if got := len(w.sendings()); got != 1 {
		t.Errorf("%d requests", got)
	}
}

func TestManyPendingOfAPausedDestinationCostOneContendedWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 5 {
		w.publish()
	}
	_, err := w.destinations.Pause(context.Background(), w.project, w.dest.ID)
	must(t, err)
	w.consumed()
	for release := int64(1); release <= 5; release++ {
		w.answer(release)
	}
	calls, _, _ := w.consumed()
	transactions := 0
	for _, call := range calls {
		if call == "TransactWriteItems" {
			transactions++
		}
	}
	if transactions != 1 {
		t.Errorf("%d transactions for five pending deliveries, want 1", transactions)
	}
	w.stands(5, delivery.Skipped, delivery.Paused)
	w.stands(1, delivery.Skipped, delivery.Superseded)
}

func TestTwoWorkersNeverGetTheSameJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := context.Background()
	rounds := 1000
	for round := range rounds {
		w.publish()
		key := delivery.Key{Destination: w.dest, Release: int64(round + 1)}
		reading, err := w.store.Read(ctx, key)
		must(t, err)
		var won atomic.Int64
		var wait sync.WaitGroup
		start := make(chan struct{})
		for _, token := range []string{"a", "b"} {
			wait.Add(1)
			go func() {
				defer wait.Done()
				<-start
				now := w.clock()
				_, err := w.store.Claim(ctx, w.dest, reading.Slot, delivery.Holder{
					Token: token, Release: key.Release, Round: 1, Attempt: 1, Since: now, Until: now.Add(delivery.LeaseTime),
				})
				switch {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, delivery.ErrMoved):
					t.Error(err)
				}
			}()
		}
		close(start)
		wait.Wait()
		if won.Load() != 1 {
			t.Fatalf("round %d: %d workers hold the slot", round, won.Load())
		}
		holder := w.slot().Holder
		must(t, w.store.GiveBack(ctx, w.dest, holder.Token))
	}
}

func TestAHeldJobIsInvisibleUntilItsLeaseEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish()
	w.hold(1)
	for range 14 {
		if end := w.answer(1); end != (delivery.Keep{For: time.Second}) {
			t.Fatalf("while the lease runs: %#v", end)
		}
		w.pass(time.Second)
	}
	w.pass(delivery.ClockAllowance + 2*time.Second)
	w.answer(1)
	d := w.stands(1, delivery.Delivered, "")
	if len(d.Attempts) != 2 || d.Attempts[0].Class != delivery.ClassUnknown || d.Attempts[0].Received != delivery.MayHave {
		t.Errorf("attempts %+v", d.Attempts)
	}
	if got := w.sendings(); !reflect.DeepEqual(got, []string{"1/2"}) {
		t.Errorf("sent %v", got)
	}
}

// hold claims the slot for a release as a worker does that then dies.
func (w *world) hold(release int64) delivery.Holder {
	w.t.Helper()
	ctx := context.Background()
	reading, err := w.store.Read(ctx, delivery.Key{Destination: w.dest, Release: release})
	must(w.t, err)
	now := w.clock()
	h := delivery.Holder{
		Token: "dead", Release: release, Round: reading.Rang.Round, Attempt: reading.Rang.Numbered + 1,
		Since: now, Until: now.Add(delivery.LeaseTime),
	}
	_, err = w.store.Claim(ctx, w.dest, reading.Slot, h)
	must(w.t, err)
	return h
}

func TestALateResultChangesNothingAndIsKeptOnItsOwnAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish()
	w.answering(func(s delivery.Sending) delivery.Outcome {
		if s.Attempt == 1 {
			w.pass(delivery.LeaseTime + 2*time.Second) // frozen: another worker settles and sends
			w.answer(1)
			return answers(400)
		}
		return answers(204)
	})
	w.answer(1)
	d := w.stands(1, delivery.Delivered, "")
	if len(d.Attempts) != 2 || d.Attempts[0].Late != "refused" || d.Attempts[0].Class != delivery.ClassUnknown {
		t.Errorf("attempts %+v", d.Attempts)
	}
	if !slices.ContainsFunc(w.events, func(e delivery.Event) bool { return e.Kind == delivery.EventLate }) {
		t.Error("no event tells of the late result")
	}
}

func TestAMessageThatComesAgainAfterTheRecordSendsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish()
	w.answer(1)
	if end := w.answer(1); end != (delivery.Done{}) {
		t.Errorf("ends as %#v", end)
	}
	if got := len(w.sendings()); got != 1 {
		t.Errorf("%d requests", got)
	}
}

func TestAFrozenWorkerDoesNotSend(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish()
	frozen := w.worker(func(c *delivery.Config) {
		c.Slots = frozenAfterClaim{Slots: w.store, freeze: func() { w.pass(4 * time.Second) }}
	})
	if end := frozen.Answer(context.Background(), w.ring(1)); end != (delivery.Keep{For: time.Second}) {
		t.Errorf("ends as %#v", end)
	}
	if got := w.sendings(); len(got) != 0 {
		t.Errorf("sent %v with less than 12 s of its lease left", got)
	}
	if d := w.stands(1, delivery.Queued, ""); d.Tries != 0 || w.slot().Holder != nil {
		t.Errorf("tries %d, holder %v", d.Tries, w.slot().Holder)
	}
}

type frozenAfterClaim struct {
	delivery.Slots
	freeze func()
}

func (f frozenAfterClaim) Claim(ctx context.Context, d delivery.Destination, read delivery.Slot, h delivery.Holder) (delivery.Slot, error) {
	slot, err := f.Slots.Claim(ctx, d, read, h)
	f.freeze()
	return slot, err
}

func TestASlotThatCouldNotBeGivenBackIsReportedAndFreeAfterItsLease(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*world, *delivery.Config){
		"frozen before the first byte": func(w *world, c *delivery.Config) {
			c.Slots = frozenAfterClaim{Slots: c.Slots, freeze: func() { w.pass(4 * time.Second) }}
		},
		"no time left for a byte": func(w *world, _ *delivery.Config) {
			w.answering(func(delivery.Sending) delivery.Outcome { return delivery.Outcome{Unsent: true} })
		},
		"claim of unknown outcome": func(w *world, c *delivery.Config) { c.Slots = uncertainClaim{c.Slots} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.publish()
			worker := w.worker(func(c *delivery.Config) {
				c.Slots = neverGivenBack{c.Slots}
				change(w, c)
			})
			if end := worker.Answer(context.Background(), w.ring(1)); end != (delivery.Keep{For: time.Second}) {
				t.Errorf("ends as %#v", end)
			}
			if len(w.events) != 1 || w.events[0].Kind != delivery.EventTable || w.events[0].Doing != "give the slot back" {
				t.Errorf("events %+v", w.events)
			}
			w.pass(delivery.LeaseTime + 2*time.Second)
			w.answering(nil)
			w.answer(1)
			w.stands(1, delivery.Delivered, "")
		})
	}
}

type neverGivenBack struct{ delivery.Slots }

func (neverGivenBack) GiveBack(context.Context, delivery.Destination, string) error {
	return failure.ErrBusy
}

func TestAClaimOfUnknownOutcomeSendsNothingAndIsGivenBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish()
	uncertain := w.worker(func(c *delivery.Config) { c.Slots = uncertainClaim{w.store} })
	if end := uncertain.Answer(context.Background(), w.ring(1)); end != (delivery.Keep{For: time.Second}) {
		t.Errorf("ends as %#v", end)
	}
	if w.slot().Holder != nil || len(w.sendings()) != 0 {
		t.Errorf("holder %v, sent %v", w.slot().Holder, w.sendings())
	}
	w.answer(1)
	w.stands(1, delivery.Delivered, "")
}

// uncertainClaim carries the claim out and loses the answer.
type uncertainClaim struct{ delivery.Slots }

func (u uncertainClaim) Claim(ctx context.Context, d delivery.Destination, read delivery.Slot, h delivery.Holder) (delivery.Slot, error) {
	if _, err := u.Slots.Claim(ctx, d, read, h); err != nil {
		return delivery.Slot{}, err
	}
	return delivery.Slot{}, delivery.ErrUncertain
}

func TestOurFaultIsNoTryAndTheSweeperBringsItBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish()
	w.open = errors.New("key not available")
	if end := w.answer(1); end != (delivery.Done{}) {
		t.Errorf("ends as %#v", end)
	}
	d := w.stands(1, delivery.Queued, "")
	if d.Tries != 0 || d.Ours.Count != 1 || !d.SweepAt.Equal(w.clock().Add(time.Minute)) || w.slot().Holder != nil {
		t.Errorf("tries %d, ours %+v, swept %v, holder %v", d.Tries, d.Ours, d.SweepAt, w.slot().Holder)
	}
	w.pass(25 * time.Hour)
	w.answer(1)
	w.stands(1, delivery.Failed, delivery.OurFault)
}

func TestAPanicIsCountedOnItsDeliveryAloneAndTheThirdGoesToTheDeadLetters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	innocent := w.addDestination("second")
	w.publish()
	poisoned := w.worker(func(c *delivery.Config) { c.Sender = panicking{Sender: w, on: w.dest} })
	rings := []delivery.Ring{w.ring(1), {Key: delivery.Key{Destination: innocent, Release: 1}, Receives: 1}}
	want := []delivery.Disposition{delivery.Keep{}, delivery.Keep{}, delivery.MoveToDeadLetters{Reason: "panic"}, delivery.Done{}}
	for i, end := range want {
		rings[0].Receives = i + 1
		ends := poisoned.AnswerAll(context.Background(), rings)
		if ends[0] != end || ends[1] != (delivery.Done{}) {
			t.Errorf("panic %d ends as %#v, the innocent as %#v", i+1, ends[0], ends[1])
		}
	}
	d := w.stands(1, delivery.Queued, "")
	if d.Tries != 0 || d.Ours.Count != 4 || w.slot().Holder != nil {
		t.Errorf("tries %d, ours %+v, holder %v", d.Tries, d.Ours, w.slot().Holder)
	}
	w.dest = innocent
	if d := w.stands(1, delivery.Delivered, ""); d.Tries != 1 {
		t.Errorf("the innocent used %d tries", d.Tries)
	}
}

// panicking panics while it opens one destination's secrets.
type panicking struct {
	delivery.Sender
	on delivery.Destination
}

func (p panicking) Open(ctx context.Context, d delivery.Destination, s delivery.Settings) (delivery.Opened, error) {
	if d == p.on {
		panic("a bug")
	}
	return p.Sender.Open(ctx, d, s)
}

func TestSlowDestinationsMoveToTheSlowQueueAndBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish()
	w.answering(func(delivery.Sending) delivery.Outcome {
		return delivery.Outcome{Class: delivery.ClassTimeout, Received: delivery.MayHave, Elapsed: delivery.AttemptTime}
	})
	w.answer(1)
	w.pass(time.Minute)
	if end := w.answer(1); end != (delivery.MoveToSlowQueue{}) {
		t.Errorf("after a hang the next try ends as %#v", end)
	}
	w.status(204)
	slow := w.ring(1)
	slow.OnSlowQueue = true
	w.worker().Answer(context.Background(), slow)
	w.stands(1, delivery.Delivered, "")
	if w.slot().Slow {
		t.Error("still slow after a quick answer")
	}
	w.publish()
	if end := w.answer(2); end != (delivery.Done{}) {
		t.Errorf("the next release ends as %#v", end)
	}
}

func TestAForcedRedeliveryIsSentOverWhatThePersonSawOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := context.Background()
	w.publish()
	w.answer(1)
	w.publish()
	w.answer(2)
	key := delivery.Key{Destination: w.dest, Release: 1}
	_, err := w.destinations.Redeliver(ctx, key, destination.Redelivery{})
	var refused *destination.Error
	if !errors.As(err, &refused) {
		t.Fatalf("an older release without force: %v", err)
	}
	_, err = w.destinations.Redeliver(ctx, key, destination.Redelivery{Force: true, Over: 2})
	must(t, err)
	w.answer(1)
	d := w.stands(1, delivery.Delivered, "")
	if d.Round != 2 || !sameRequest(w.sent[0], w.sent[2]) || w.sent[2].Attempt != 2 {
		t.Errorf("round %d, attempt %d, same request %v", d.Round, w.sent[2].Attempt, sameRequest(w.sent[0], w.sent[2]))
	}

	_, err = w.destinations.Redeliver(ctx, key, destination.Redelivery{Force: true, Over: 2})
	must(t, err)
	w.publish()
	w.answer(1)
	d = w.delivery(1)
	if d.Status != delivery.Skipped || d.Successor != 3 || d.Result().Status != delivery.Delivered {
		t.Errorf("forced over 2 with 3 published: %s by %d, headline %s", d.Status, d.Successor, d.Result().Status)
	}
}

func TestTryNowBringsTheTryForwardAndAddsNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish()
	w.status(503)
	w.answer(1)
	w.status(204)
	_, err := w.destinations.TryNow(context.Background(), delivery.Key{Destination: w.dest, Release: 1})
	must(t, err)
	w.answer(1)
	if d := w.stands(1, delivery.Delivered, ""); d.Tries != 2 {
		t.Errorf("%d tries", d.Tries)
	}
}

func TestATestSendToASlowDestinationGoesOverTheSlowQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish()
	w.answering(func(delivery.Sending) delivery.Outcome {
		return delivery.Outcome{Class: delivery.ClassTimeout, Received: delivery.MayHave, Elapsed: delivery.AttemptTime}
	})
	w.answer(1)
	w.status(204)
	test, err := w.destinations.SendTest(context.Background(), w.project, w.dest.ID)
	must(t, err)
	ring := delivery.TestRing{Destination: w.dest, ID: test.ID, Receives: 1}
	if end := w.worker().AnswerTest(context.Background(), ring); end != (delivery.MoveToSlowQueue{}) {
		t.Errorf("on the fast queue it ends as %#v", end)
	}
	ring.OnSlowQueue = true
	if end := w.worker().AnswerTest(context.Background(), ring); end != (delivery.Done{}) {
		t.Errorf("on the slow queue it ends as %#v", end)
	}
	sent, err := w.destinations.Test(context.Background(), w.project, w.dest.ID, test.ID)
	must(t, err)
	if sent.State(w.clock()) != delivery.TestEnded || sent.Result.Class != delivery.ClassDelivered {
		t.Errorf("the test send is %s: %+v", sent.State(w.clock()), sent.Result)
	}
}

func TestAClaimThatTakesUntilTheTimeForWorkIsOverIsGivenBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	worker := w.worker(func(c *delivery.Config) {
		c.Slots = claimAtTheEnd{Slots: w.store, end: cancel}
		c.Left = func(ctx context.Context) time.Duration {
			if ctx.Err() != nil {
				return 0
			}
			return delivery.FunctionTime
		}
	})
	worker.Answer(ctx, w.ring(1))
	if w.slot().Holder != nil || len(w.sendings()) != 0 {
		t.Errorf("holder %v, sent %v", w.slot().Holder, w.sendings())
	}
	w.answer(1)
	w.stands(1, delivery.Delivered, "")
}

// claimAtTheEnd carries the claim out, and then the time for work is over.
type claimAtTheEnd struct {
	delivery.Slots
	end func()
}

func (c claimAtTheEnd) Claim(ctx context.Context, d delivery.Destination, read delivery.Slot, h delivery.Holder) (delivery.Slot, error) {
	defer c.end()
	return uncertainClaim{c.Slots}.Claim(ctx, d, read, h)
}
