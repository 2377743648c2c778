package content_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"colophon/internal/content"
	"colophon/internal/ratelimit"
)

func TestPublishesOfAProjectAreLimitedForcedOrNot(t *testing.T) {
	t.Parallel()
	clock := newPatient()
	w := newWorld(t, func(c *content.Config) { c.Clock, c.Publishes = clock, ratelimit.PerMinute(3, 6) })
	destinations := w.addDestinations(2)
	for i := range 3 {
		w.save("a.md", fmt.Sprint(i))
		w.publish(content.PublishRequest{Force: i > 0, IdempotencyKey: fmt.Sprint("key", i)})
	}
	w.save("a.md", "more")
	for _, r := range []content.PublishRequest{{}, {Force: true}, {Force: true, IdempotencyKey: "another"}} {
		calls := w.used.of(func() {
			_, err := w.Publish(t.Context(), w.project, r)
			var refused *content.Error
			if code(t, err) != content.CodeTooOften || !errors.As(err, &refused) || refused.RetryAfter != 10*time.Second {
				t.Errorf("%+v: %v", r, err)
			}
		})
		if _, written := units(calls); written > 0 {
			t.Errorf("%+v: %g units were written", r, written)
		}
	}
	// A repeat has its answer, and another project its own limit.
	if p := w.publish(content.PublishRequest{IdempotencyKey: "key0"}); !p.Replayed || p.Number != 1 {
		t.Errorf("a repeat is %+v", p)
	}
	other := must(w.CreateProject(t.Context(), "Other"))
	if _, err := w.Publish(t.Context(), other.ID, content.PublishRequest{Force: true}); err != nil {
		t.Error(err)
	}
	clock.advance(10 * time.Second)
	w.publish(content.PublishRequest{Force: true})
	if _, err := w.Publish(t.Context(), w.project, content.PublishRequest{Force: true}); code(t, err) != content.CodeTooOften {
		t.Errorf("a second after the wait: %v", err)
	}
	if all := w.releases(destinations); len(all) != 4 {
		t.Errorf("%d releases", len(all))
	}
}

func TestNobodyPublishesFasterThanTheLimitSideBySide(t *testing.T) {
	t.Parallel()
	clock := newPatient()
	w := newWorld(t, func(c *content.Config) { c.Clock, c.Publishes = clock, ratelimit.Limit{Burst: 5, Every: time.Hour} })
	done := make(chan error)
	for range 12 {
		go func() {
			_, err := w.Publish(t.Context(), w.project, content.PublishRequest{Force: true})
			done <- err
		}()
	}
	published := 0
	for range 12 {
		if err := <-done; err == nil {
			published++
		} else if c := code(t, err); c != content.CodeTooOften && c != content.CodeBusy {
			t.Error(err)
		}
	}
	if published > 5 || published == 0 {
		t.Errorf("%d of 12 publishes side by side went through", published)
	}
}

func TestNewContentPastAProjectsLimitIsRefusedAndWhatIsThereStaysUsable(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *content.Config) { c.MostContent = 100 })
	first, second := strings.Repeat("a", 60), strings.Repeat("b", 40)
	w.save("a.md", first)
	w.save("b.md", first) // the same content is kept once
	w.save("c.md", second)
	w.save("empty.md", "")
	for _, path := range []string{"a.md", "d.md"} {
		_, err := w.PutDocument(t.Context(), w.project, content.Save{Path: path, Content: []byte("c")})
		var refused *content.Error
		if code(t, err) != content.CodeProjectFull || !errors.As(err, &refused) || !strings.Contains(refused.Message, "operator") {
			t.Errorf("%s: %v", path, err)
		}
	}
	// Content from before can be saved anywhere, published, read and deleted.
	w.save("a.md", second)
	w.save("d.md", first)
	p := w.publish(content.PublishRequest{})
	if _, text, err := w.ReleaseDocument(t.Context(), w.project, p.Number, "d.md"); err != nil || string(text) != first {
		t.Errorf("read %q, %v", text, err)
	}
	if err := w.DeleteDocument(t.Context(), w.project, content.Deletion{Path: "d.md", Who: "Ada"}); err != nil {
		t.Error(err)
	}
	w.project = must(w.CreateProject(t.Context(), "Other")).ID
	w.save("a.md", "c")
}

func TestNewContentIsCountedWithOneUnitAndKnownContentWithNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	adds := func(path, text string) (n float64) {
		for _, c := range w.used.of(func() { w.save(path, text) }) {
			if c.Call == "UpdateItem" {
				n += c.WriteUnits
			}
		}
		return n
	}
	if n := adds("a.md", "One"); n != 1 {
		t.Errorf("new content is counted with %g units", n)
	}
	if n := adds("b.md", "One"); n != 0 {
		t.Errorf("known content is counted with %g units", n)
	}
	for _, c := range w.used.of(func() { w.publish(content.PublishRequest{}) }) {
		if c.Call == "UpdateItem" {
			t.Error("a publish counts its manifest")
		}
	}
}

// A full release of typical paths, and one of the longest.
func TestAReleasedDocumentIsReadByAFewPartsOfItsManifest(t *testing.T) {
	t.Parallel()
	for name, padding := range map[string]int{"typical paths": 20, "the longest paths": content.LongestPath - 12} {
		w := newWorld(t)
		path := func(i int) string { return fmt.Sprintf("%08d", i) + "-" + strings.Repeat("x", padding) + ".md" }
		var documents []content.Document
		hash := content.HashOf([]byte("Text"))
		for i := range content.MostDocuments {
			documents = append(documents, content.Document{Path: path(2 * i), Hash: hash, Size: 4, Type: "text/markdown"})
		}
		contents := w.contents()
		if _, err := contents.PutBlob(t.Context(), w.project, hash, []byte("Text")); err != nil {
			t.Fatal(err)
		}
		hashes, parts := content.Cut(documents)
		whole := 0
		for i, data := range parts {
			whole += len(data)
			if _, err := contents.PutBlob(t.Context(), w.project, hashes[i], data); err != nil {
				t.Fatal(err)
			}
		}
		read := must(w.Project(t.Context(), w.project))
		err := contents.Commit(t.Context(), w.project, content.Commit{Read: read, Release: content.Release{
			Project: w.project, Number: 1, At: time.Now(), Documents: content.MostDocuments, Manifest: hashes, Token: w.project,
		}})
		if err != nil {
			t.Fatal(err)
		}
		most := 0.0
		for i := 0; i < content.MostDocuments; i += 37 {
			calls := w.used.of(func() {
				d, text, err := w.ReleaseDocument(t.Context(), w.project, 1, path(2*i))
				if err != nil || d != documents[i] || !bytes.Equal(text, []byte("Text")) {
					t.Errorf("%s: document %d is %+v, %q, %v", name, i, d, text, err)
				}
				if _, _, err := w.ReleaseDocument(t.Context(), w.project, 1, path(2*i+1)); code(t, err) != content.CodeNotFound {
					t.Errorf("%s: a document that is not there: %v", name, err)
				}
			})
			units, _ := units(calls)
			most = max(most, units/2)
		}
		t.Logf("%s: %d parts of %d bytes in all; a document costs at most %g read units, and all parts %d", name, len(parts), whole, most, whole/4096)
		if most > 60 || most < 3 {
			t.Errorf("%s: a document costs %g read units", name, most)
		}
	}
}
