package content_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"colophon/internal/content"
	"colophon/internal/store"
)

func TestTwentyForcedPublishesSideBySideMakeTwentyReleases(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	destinations := w.addDestinations(1)
	w.save("start.md", "Hello")
	numbers := make([]int64, 20)
	var wait sync.WaitGroup
	for i := range numbers {
		s := w.service()
		wait.Go(func() {
			p, err := s.Publish(t.Context(), w.project, content.PublishRequest{Message: fmt.Sprint(i), Force: true, Who: "Ada"})
			if err != nil {
				t.Errorf("publish %d: %v", i, err)
			}
			numbers[i] = p.Number
		})
	}
	wait.Wait()
	all := w.releases(destinations)
	if len(all) != len(numbers) {
		t.Fatalf("%d releases of %d publishes", len(all), len(numbers))
	}
	for i, number := range numbers {
		if message := all[number-1].Message; message != fmt.Sprint(i) {
			t.Errorf("publish %d was answered with release %d, which is that of publish %s", i, number, message)
		}
	}
}

func TestADocumentSavedBeforeAPublishIsInItAndInEveryLaterOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const writers, rounds = 6, 5
	var first sync.Map // path to the release that was asked for after its save
	var published atomic.Int64
	var wait sync.WaitGroup
	for i := range writers {
		s := w.service()
		wait.Go(func() {
			for round := range rounds {
				path := fmt.Sprintf("writer-%d/round-%d.md", i, round)
				_, err := s.PutDocument(t.Context(), w.project, content.Save{Path: path, Content: []byte(path), Who: "Ada"})
				if err != nil {
					t.Errorf("save %s: %v", path, err)
					return
				}
				p, err := s.Publish(t.Context(), w.project, content.PublishRequest{Force: true, Who: "Ada"})
				if err != nil {
					t.Errorf("publish after %s: %v", path, err)
					return
				}
				first.Store(path, p.Number)
				published.Add(1)
			}
		})
	}
	wait.Wait()
	all := w.releases(nil)
	if int64(len(all)) != published.Load() || len(all) != writers*rounds {
		t.Fatalf("%d releases of %d publishes", len(all), published.Load())
	}
	for _, r := range all {
		documents, err := w.ReleaseDocuments(t.Context(), w.project, r.Number)
		if err != nil {
			t.Fatal(err)
		}
		held := map[string]bool{}
		for _, d := range documents {
			held[d.Path] = true
		}
		first.Range(func(path, number any) bool {
			if number.(int64) <= r.Number && !held[path.(string)] {
				t.Errorf("%s was saved before release %d was asked for and is not in release %d", path, number, r.Number)
			}
			return true
		})
	}
}

// between runs an action after the first read of a project or of its drafts,
// whichever comes first.
type between struct {
	store.Engine
	act   func()
	first sync.Once
}

func (b *between) Get(ctx context.Context, table string, key store.Key) (store.Item, error) {
	item, err := b.Engine.Get(ctx, table, key)
	b.first.Do(b.act)
	return item, err
}

func (b *between) Query(ctx context.Context, q store.Query) (store.Page, error) {
	page, err := b.Engine.Query(ctx, q)
	b.first.Do(b.act)
	return page, err
}

// The order of the two reads is what makes every later release hold what an
// earlier one held.
func TestAReleaseBetweenTheTwoReadsIsInTheNext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.save("start.md", "Hello")
	contents, err := store.NewContents(store.ContentsConfig{
		Engine: &between{Engine: w.engine, act: func() {
			w.save("between.md", "Between")
			w.publish(content.PublishRequest{Message: "Other"})
		}},
		ContentTable: w.tables.Content, DeliveryTable: w.tables.Delivery,
	})
	if err != nil {
		t.Fatal(err)
	}
	s := w.service(func(c *content.Config) { c.Store = contents })
	p, err := s.Publish(t.Context(), w.project, content.PublishRequest{Message: "Mine", Force: true})
	if err != nil || p.Number != 2 {
		t.Fatalf("published %+v, %v", p, err)
	}
	if got := w.paths(2); got != "between.md start.md " {
		t.Errorf("release 2 holds %s", got)
	}
}
