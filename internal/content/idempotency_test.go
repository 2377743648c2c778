package content_test

import (
	"context"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"colophon/internal/content"
	"colophon/internal/store"
	"colophon/internal/store/storetest"
)

func TestTheSameKeyAndRequestGetTheSameAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	destinations := w.addDestinations(1)
	w.save("start.md", "Hello")
	first := w.publish(content.PublishRequest{Message: "One", IdempotencyKey: "k1", Who: "Ada", WhoID: "tok_1"})
	if first.Replayed || first.Number != 1 {
		t.Fatalf("first answer: %+v", first)
	}
	// What was saved since is no part of the request, nor is who repeats it.
	w.save("more.md", "More")
	second := w.publish(content.PublishRequest{Message: "One", IdempotencyKey: "k1", Who: "Grace", WhoID: "tok_2"})
	if !second.Replayed || !reflect.DeepEqual(second.Release, first.Release) {
		t.Errorf("second answer:\n%+v\nfirst:\n%+v", second, first)
	}
	if n := len(w.releases(destinations)); n != 1 {
		t.Errorf("%d releases", n)
	}
}

func TestTheSameKeyWithAnotherRequestIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.save("start.md", "Hello")
	w.publish(content.PublishRequest{Message: "One", IdempotencyKey: "k1"})
	for name, r := range map[string]content.PublishRequest{
		"another message": {Message: "Two", IdempotencyKey: "k1"},
		"force":           {Message: "One", IdempotencyKey: "k1", Force: true},
	} {
		if _, err := w.Publish(t.Context(), w.project, r); code(t, err) != content.CodeIdempotencyMismatch {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.releases(nil)
}

func TestARepeatIsAnsweredBeforeItIsFoundThatNothingHasChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.save("start.md", "Hello")
	w.publish(content.PublishRequest{IdempotencyKey: "k1"})
	if p := w.publish(content.PublishRequest{IdempotencyKey: "k1"}); !p.Replayed {
		t.Error("not replayed")
	}
	if _, err := w.Publish(t.Context(), w.project, content.PublishRequest{IdempotencyKey: "k2"}); code(t, err) != content.CodeNothingToPublish {
		t.Errorf("another key: %v", err)
	}
}

func TestAKeyCanBeUsedAgainAfterADay(t *testing.T) {
	t.Parallel()
	clock := newPatient()
	w := newWorld(t, func(c *content.Config) { c.Clock = clock })
	w.save("start.md", "Hello")
	w.publish(content.PublishRequest{IdempotencyKey: "k1", Force: true})
	clock.advance(content.KeyTime - time.Minute)
	if p := w.publish(content.PublishRequest{IdempotencyKey: "k1", Force: true}); !p.Replayed {
		t.Error("a minute before: not replayed")
	}
	clock.advance(2 * time.Minute)
	if p := w.publish(content.PublishRequest{IdempotencyKey: "k1", Force: true}); p.Replayed || p.Number != 2 {
		t.Errorf("a minute after: %+v", p)
	}
	clock.advance(content.KeyTime + time.Minute)
	if _, err := w.Publish(t.Context(), w.project, content.PublishRequest{IdempotencyKey: "k1"}); code(t, err) != content.CodeNothingToPublish {
		t.Errorf("another request, a day later: %v", err)
	}
}

func TestOneKeySideBySideMakesOneRelease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	destinations := w.addDestinations(2)
	w.save("start.md", "Hello")
	var made atomic.Int64
	var wait sync.WaitGroup
	for range 12 {
		s := w.service()
		wait.Go(func() {
			p, err := s.Publish(t.Context(), w.project, content.PublishRequest{Message: "One", IdempotencyKey: "k1", Force: true})
			if err != nil || p.Number != 1 || p.Message != "One" {
				t.Errorf("got %+v, %v", p, err)
			}
			if !p.Replayed {
				made.Add(1)
			}
		})
	}
	wait.Wait()
	if n := len(w.releases(destinations)); n != 1 || made.Load() != 1 {
		t.Errorf("%d releases, %d answers that say they made it", n, made.Load())
	}
}

func TestKeysOfTwoProjectsAreTwo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other, err := w.CreateProject(t.Context(), "Other")
	if err != nil {
		t.Fatal(err)
	}
	w.publish(content.PublishRequest{IdempotencyKey: "k1", Force: true, Message: "One"})
	p, err := w.Publish(t.Context(), other.ID, content.PublishRequest{IdempotencyKey: "k1", Force: true, Message: "Two"})
	if err != nil || p.Replayed || p.Number != 1 {
		t.Errorf("got %+v, %v", p, err)
	}
}

// lateKeys shows no key's use to a read: a transaction's items are seen one by
// one, and the project's can be seen before it.
type lateKeys struct{ store.Engine }

func (l lateKeys) Get(ctx context.Context, table string, k store.Key) (store.Item, error) {
	if strings.HasPrefix(k.SK, "IDEM#") {
		return nil, nil
	}
	return l.Engine.Get(ctx, table, k)
}

func TestARepeatIsReplayedWhoseKeyDoesNotReadAsUsedYet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.save("start.md", "Hello")
	first := w.publish(content.PublishRequest{IdempotencyKey: "k1"})
	w.faulty.Engine = lateKeys{w.engine}
	p, err := w.Publish(t.Context(), w.project, content.PublishRequest{IdempotencyKey: "k1"})
	if err != nil || !p.Replayed || p.Number != first.Number {
		t.Errorf("got %+v, %v; want release %d again", p, err, first.Number)
	}
}

func TestNothingToPublishIsAnsweredForTheProjectAsItIsWithTheKey(t *testing.T) {
	t.Parallel()
	for other, want := range map[string]content.Code{"k2": "", "k3": content.CodeNothingToPublish} {
		t.Run("while "+other+" is published", func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.save("start.md", "Hello")
			w.publish(content.PublishRequest{IdempotencyKey: "k1"})
			checks := 0
			w.faulty.Choose = func(writes []store.Write) storetest.Fault {
				if !writes[0].Check {
					return storetest.None
				}
				if checks++; checks == 1 { // the project was read; now it moves
					w.save("more.md", "More")
					w.publish(content.PublishRequest{IdempotencyKey: other})
				}
				return storetest.None
			}
			p, err := w.Publish(t.Context(), w.project, content.PublishRequest{IdempotencyKey: "k2"})
			if code(t, err) != want || err == nil && (!p.Replayed || p.Number != 2) {
				t.Errorf("got %+v, %v; want %q", p, err, want)
			}
			if want != "" && checks != 2 {
				t.Errorf("%d checks, want 2: the project had moved", checks)
			}
		})
	}
}
