package content_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"colophon/internal/content"
	"colophon/internal/failure"
	"colophon/internal/store"
	"colophon/internal/store/storetest"
)

// isPublish tells a publish's transaction from other writes.
func isPublish(writes []store.Write) bool {
	return len(writes) > 1 && writes[0].Key.SK == "META" && writes[0].Changes != nil
}

// inTurn gives each publish transaction the next fault, and then the last for ever.
func inTurn(faults ...storetest.Fault) func([]store.Write) storetest.Fault {
	var mutex sync.Mutex
	return func(writes []store.Write) storetest.Fault {
		if !isPublish(writes) {
			return storetest.None
		}
		mutex.Lock()
		defer mutex.Unlock()
		next := faults[0]
		if len(faults) > 1 {
			faults = faults[1:]
		}
		return next
	}
}

func TestFaultsOfTheTableMakeNoReleaseTwiceAndLoseNone(t *testing.T) {
	t.Parallel()
	const (
		none, requestLost, answerLost = storetest.None, storetest.RequestLost, storetest.AnswerLost
		late, conflict, throttled     = storetest.Late, storetest.Conflict, storetest.Throttled
	)
	for name, c := range map[string]struct {
		faults   []storetest.Fault
		code     content.Code
		releases int // that there are in the end
	}{
		"a request is lost":                                  {[]storetest.Fault{requestLost, none}, "", 1},
		"an answer is lost":                                  {[]storetest.Fault{answerLost, none}, "", 1},
		"a transaction is carried out after the repeat":      {[]storetest.Fault{late, none}, "", 1},
		"requests are lost in a row":                         {[]storetest.Fault{requestLost, requestLost, requestLost, none}, "", 1},
		"a lost answer, then another transaction is at work": {[]storetest.Fault{answerLost, conflict, conflict, none}, "", 1},
		"a lost answer, then the table is short of units":    {[]storetest.Fault{answerLost, throttled, throttled, none}, "", 1},
		"late, then another transaction is at work":          {[]storetest.Fault{late, conflict, none}, "", 1},
		"another transaction is at work":                     {[]storetest.Fault{conflict, conflict, conflict, none}, "", 1},
		"the table is short of units":                        {[]storetest.Fault{throttled, none}, "", 1},
		"another transaction is at work for ever":            {[]storetest.Fault{conflict}, content.CodeBusy, 0},
		"the table is short of units for ever":               {[]storetest.Fault{throttled}, content.CodeUnavailable, 0},
		"it is short for the project":                        {[]storetest.Fault{storetest.ThrottledFirst, storetest.ThrottledFirst, none}, "", 1},
		"it is short for a delivery":                         {[]storetest.Fault{storetest.ThrottledLast, storetest.ThrottledLast, none}, "", 1},
		"it is short for the project, for ever":              {[]storetest.Fault{storetest.ThrottledFirst}, content.CodeUnavailable, 0},
		"it is short for a delivery, for ever":               {[]storetest.Fault{storetest.ThrottledLast}, content.CodeUnavailable, 0},
		"a lost answer, then it is short for a delivery":     {[]storetest.Fault{answerLost, storetest.ThrottledLast, none}, "", 1},
		"a lost answer, then short for ever":                 {[]storetest.Fault{answerLost, storetest.ThrottledLast}, content.CodeUnknownOutcome, 1},
		"all requests are lost":                              {[]storetest.Fault{requestLost}, content.CodeUnknownOutcome, 0},
		"all answers are lost":                               {[]storetest.Fault{answerLost}, content.CodeUnknownOutcome, 1},
		"an answer is lost, then conflicts for ever":         {[]storetest.Fault{answerLost, conflict}, content.CodeUnknownOutcome, 1},
		"all are late":                                       {[]storetest.Fault{late}, content.CodeUnknownOutcome, 1},
	} {
		for _, key := range []string{"", "k1"} {
			t.Run(name+map[string]string{"": "", "k1": ", with a key"}[key], func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, func(c *content.Config) { c.Clock, c.Jitter = newPatient(), leisurely })
				destinations := w.addDestinations(2)
				w.save("start.md", "Hello")
				w.faulty.Choose = inTurn(c.faults...)
				r := content.PublishRequest{Message: "One", IdempotencyKey: key, Who: "Ada"}
				p, err := w.Publish(t.Context(), w.project, r)
				w.faulty.Settle()
				if got := code(t, err); got != c.code {
					t.Errorf("got %q (%v), want %q", got, err, c.code)
				}
				if err == nil && p.Number != 1 {
					t.Errorf("release %d", p.Number)
				}
				if n := len(w.releases(destinations)); n != c.releases {
					t.Errorf("%d releases, want %d", n, c.releases)
				}
				if key == "" {
					return
				}
				// What a person does next: ask again, with the same key.
				w.faulty.Choose = nil
				again := w.publish(r)
				if again.Number != 1 || again.Replayed != (c.releases == 1) {
					t.Errorf("asked again: %+v", again)
				}
				w.releases(destinations)
			})
		}
	}
}

func TestAPublishThatATableShortOfUnitsRefusesSaysSo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault storetest.Fault
		says  string
	}{
		"short of units for one write": {storetest.ThrottledLast, "The table takes no more just now."},
		"short of units for all":       {storetest.Throttled, "The table takes no more just now."},
		"others are at work on it":     {storetest.Conflict, "Others kept changing this"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(c *content.Config) { c.Clock, c.Jitter = newPatient(), leisurely })
			w.addDestinations(1)
			w.faulty.Choose = inTurn(c.fault)
			_, err := w.Publish(t.Context(), w.project, content.PublishRequest{Force: true})
			var refusal *failure.Error
			if !errors.As(err, &refusal) || !strings.HasPrefix(refusal.Message, c.says) {
				t.Errorf("says %v, want %q", err, c.says)
			}
		})
	}
}

func TestAnUnknownOutcomeSaysHowToAskAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *content.Config) { c.Clock, c.Jitter = newPatient(), leisurely })
	w.faulty.Choose = inTurn(storetest.RequestLost)
	_, with := w.Publish(t.Context(), w.project, content.PublishRequest{Force: true, IdempotencyKey: "k1"})
	_, without := w.Publish(t.Context(), w.project, content.PublishRequest{Force: true})
	var a, b *content.Error
	if !errors.As(with, &a) || !errors.As(without, &b) {
		t.Fatal(with, without)
	}
	if !strings.Contains(a.Message, "with the same idempotency key") || !strings.Contains(b.Message, "newest release") {
		t.Errorf("messages: %q, %q", a.Message, b.Message)
	}
}

// once runs an action before the first publish transaction, and faults are faults.
func once(act func(), faults func([]store.Write) storetest.Fault) func([]store.Write) storetest.Fault {
	var first sync.Once
	return func(writes []store.Write) storetest.Fault {
		if !isPublish(writes) {
			return storetest.None
		}
		fault := faults(writes)
		first.Do(act)
		return fault
	}
}

func TestAProjectThatMovedMeanwhileIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]storetest.Fault{
		"the transaction is refused":                             storetest.None,
		"its request is lost, and the repeat of it is refused":   storetest.RequestLost,
		"another transaction is at work on it, and then refused": storetest.Conflict,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.save("start.md", "Hello")
			// Another sandbox publishes what was saved since, while this one has read already.
			other := w.service(func(c *content.Config) {
				contents, err := store.NewContents(store.ContentsConfig{
					Engine: w.engine, ContentTable: w.tables.Content, DeliveryTable: w.tables.Delivery,
				})
				if err != nil {
					t.Fatal(err)
				}
				c.Store = contents
			})
			w.faulty.Choose = once(func() {
				w.save("between.md", "Between")
				p, err := other.Publish(t.Context(), w.project, content.PublishRequest{Message: "Other"})
				if err != nil || p.Number != 1 {
					t.Errorf("other: %+v, %v", p, err)
				}
				w.save("late.md", "Late")
			}, inTurn(fault, storetest.None))
			p := w.publish(content.PublishRequest{Message: "Mine"})
			if p.Number != 2 {
				t.Errorf("release %d", p.Number)
			}
			if got := w.paths(2); got != "between.md late.md start.md " {
				t.Errorf("release 2 holds %s", got)
			}
			if all := w.releases(nil); len(all) != 2 || all[0].Message != "Other" {
				t.Errorf("releases: %+v", all)
			}
		})
	}
}

func TestADestinationAddedMeanwhileHearsOfTheRelease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.save("start.md", "Hello")
	var destinations []string
	w.faulty.Choose = once(func() { destinations = w.addDestinations(1) }, inTurn(storetest.None))
	p := w.publish(content.PublishRequest{})
	if p.Number != 1 || len(p.Destinations) != 1 {
		t.Errorf("published: %+v", p)
	}
	w.releases(destinations)
}

// forgetful is a table that has forgotten each token: more than ten minutes have passed.
type forgetful struct{ store.Engine }

func (f forgetful) Transact(ctx context.Context, _ string, writes []store.Write) error {
	return f.Engine.Transact(ctx, "", writes)
}

func TestAReleaseUnderOurOwnTokenIsOurs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.faulty.Engine = forgetful{w.engine}
	w.faulty.Choose = inTurn(storetest.AnswerLost, storetest.None)
	if p := w.publish(content.PublishRequest{Force: true, Message: "One"}); p.Number != 1 || p.Replayed {
		t.Errorf("published: %+v", p)
	}
	w.releases(nil)
}

func TestATransactionRefusedInTheMiddleLeavesNeitherReleaseNorDelivery(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	destinations := w.addDestinations(3)
	w.save("start.md", "Hello")
	before, err := w.Project(t.Context(), w.project)
	if err != nil {
		t.Fatal(err)
	}
	// A delivery of release 1 that should not be there: left over from a restored table, say.
	stray := store.Key{PK: "P#" + w.project + "#D#" + destinations[1], SK: "R#000000000001"}
	write := store.Write{Table: w.tables.Delivery, Key: stray, Put: store.Item{"status": store.Text("stray")}}
	if _, err := w.engine.Write(t.Context(), write); err != nil {
		t.Fatal(err)
	}
	_, err = w.Publish(t.Context(), w.project, content.PublishRequest{IdempotencyKey: "k1", Message: "One"})
	var refusal *content.Error
	if err == nil || errors.As(err, &refusal) || !strings.Contains(err.Error(), "delivery of release 1 to "+destinations[1]) {
		t.Fatalf("got %v, want a fault of ours that names the stray delivery", err)
	}
	if _, err := w.Release(t.Context(), w.project, 1); code(t, err) != content.CodeNotFound {
		t.Errorf("release 1: %v", err)
	}
	for _, d := range []string{destinations[0], destinations[2]} {
		if w.delivery(d, 1) != nil {
			t.Errorf("there is a delivery to %s", d)
		}
	}
	after, err := w.Project(t.Context(), w.project)
	if err != nil || after.Version != before.Version || after.Seq != 0 {
		t.Errorf("the project is now %+v (%v)", after, err)
	}
	// And the key is free: with the stray gone the same request makes the release.
	if _, err := w.engine.Write(t.Context(), store.Write{Table: w.tables.Delivery, Key: stray, Delete: true}); err != nil {
		t.Fatal(err)
	}
	if p := w.publish(content.PublishRequest{IdempotencyKey: "k1", Message: "One"}); p.Number != 1 || p.Replayed {
		t.Errorf("published: %+v", p)
	}
	w.releases(destinations)
}

func TestWaitsAreDoubledAtFirstAndNoMoreForWhoHasWaitedForLong(t *testing.T) {
	t.Parallel()
	var most []time.Duration
	clock := newPatient()
	w := newWorld(t, func(c *content.Config) {
		c.Clock, c.Jitter = clock, func(d time.Duration) time.Duration {
			most = append(most, d)
			return 200 * time.Millisecond
		}
	})
	w.save("start.md", "Hello")
	turn := inTurn(storetest.Conflict)
	w.faulty.Choose = func(writes []store.Write) storetest.Fault {
		if isPublish(writes) {
			clock.advance(10 * time.Millisecond) // what a try takes
		}
		return turn(writes)
	}
	if _, err := w.Publish(t.Context(), w.project, content.PublishRequest{}); code(t, err) != content.CodeBusy {
		t.Fatal(err)
	}
	ms := time.Millisecond
	if want := []time.Duration{10 * ms, 20 * ms, 40 * ms, 80 * ms, 80 * ms, 80 * ms, 10 * ms, 10 * ms}; len(most) < len(want) || !slices.Equal(most[:len(want)], want) {
		t.Errorf("the longest waits are %v, want them to begin with %v", most, want)
	}
}
