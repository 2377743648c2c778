package content_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"colophon/internal/content"
	"colophon/internal/store"
	"colophon/internal/store/storetest"
)

// bill sorts the calls of one publish.
type bill struct {
	project, drafts, parts, commit []store.Consumption
}

func billOf(t *testing.T, calls []store.Consumption) (b bill) {
	t.Helper()
	for _, c := range calls {
		switch c.Call {
		case "GetItem":
			b.project = append(b.project, c)
		case "Query":
			b.drafts = append(b.drafts, c)
		case "PutItem":
			b.parts = append(b.parts, c)
		case "TransactWriteItems":
			b.commit = append(b.commit, c)
		default:
			t.Errorf("a publish calls %s", c.Call)
		}
	}
	return b
}

func units(calls []store.Consumption) (read, write float64) {
	for _, c := range calls {
		read += c.ReadUnits
		write += c.WriteUnits
	}
	return read, write
}

// roundTrips counts what waits for what: the parts are written side by side.
func (b bill) roundTrips() int {
	n := len(b.project) + len(b.drafts) + len(b.commit)
	if len(b.parts) > 0 {
		n++
	}
	return n
}

func (b bill) log(t *testing.T, what string) {
	t.Helper()
	projectRead, _ := units(b.project)
	draftsRead, _ := units(b.drafts)
	_, parts := units(b.parts)
	_, commit := units(b.commit)
	t.Logf("%s: %g write units and %g read unit(s); beside them %g read units for drafts and %g write units for %d parts of the manifest; %d round trips in sequence",
		what, commit, projectRead, draftsRead, parts, len(b.parts), b.roundTrips())
}

func TestAPublishToOneDestinationKeepsToItsBudget(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addDestinations(1)
	for i := range 12 {
		w.save(fmt.Sprintf("guides/chapter-%02d.md", i), "Text")
	}
	for n := range 3 {
		w.save("guides/chapter-00.md", fmt.Sprint("Changed ", n))
		b := billOf(t, w.used.of(func() {
			w.publish(content.PublishRequest{Message: "The spring edition", IdempotencyKey: fmt.Sprint("key-", n), Who: "Ada Lovelace", WhoID: "tok_abcdefghijklmnop"})
		}))
		b.log(t, "publish, one destination, idempotency key")
		read, _ := units(b.project)
		_, write := units(b.commit)
		if write > 9 || read > 1 {
			t.Errorf("%g write units and %g read units: the budget is 9 and 1", write, read)
		}
		if b.roundTrips() > 4 {
			t.Errorf("%d round trips: the budget is 4", b.roundTrips())
		}
		if write == 0 || read == 0 {
			t.Error("nothing was measured")
		}
	}
}

func TestTwoThousandDocumentsWithTheLongestPathsPublishToFiftyDestinations(t *testing.T) {
	t.Parallel()
	address := "https://colophon.example/" + strings.Repeat("a", content.LongestAddress-len("https://colophon.example/"))
	w := newWorld(t, func(c *content.Config) { c.PublicAddress = address })
	destinations := w.addDestinations(50)
	path := func(i int) string {
		return fmt.Sprintf("%04d/%s", i, strings.Repeat("ö", (content.LongestPath-6)/2)) + "z"
	}
	save := func(i int, text string) {
		_, err := w.PutDocument(t.Context(), w.project, content.Save{Path: path(i), Content: []byte(text), Type: "text/markdown; charset=utf-8", Who: "Ada"})
		if err != nil {
			t.Errorf("save %d: %v", i, err)
		}
	}
	if len(path(0)) != content.LongestPath {
		t.Fatalf("a path of %d bytes", len(path(0)))
	}
	var wait sync.WaitGroup
	for worker := range 8 {
		wait.Go(func() {
			for i := worker; i < content.MostDocuments; i += 8 {
				save(i, "Text")
			}
		})
	}
	wait.Wait()
	longest := strings.Repeat("𝄞", content.LongestMessage) // four bytes each
	first := billOf(t, w.used.of(func() {
		w.publish(content.PublishRequest{Message: longest, IdempotencyKey: strings.Repeat("k", content.LongestKey), Who: "Ada"})
	}))
	first.log(t, "first publish at the limits (2,000 documents, 50 destinations, longest message and address)")
	documents, err := w.ReleaseDocuments(t.Context(), w.project, 1)
	if err != nil || len(documents) != content.MostDocuments {
		t.Fatalf("release 1 lists %d documents (%v)", len(documents), err)
	}
	for i, d := range documents {
		if d.Path != path(i) {
			t.Fatalf("document %d of the release is at %s", i, d.Path)
		}
	}
	if _, text, err := w.ReleaseDocument(t.Context(), w.project, 1, path(1234)); err != nil || string(text) != "Text" {
		t.Errorf("a document of the release: %q, %v", text, err)
	}

	save(1000, "Changed")
	// A put that finds its content there is paid for too, so all that are asked for count.
	var puts atomic.Int64
	w.faulty.Choose = func(writes []store.Write) storetest.Fault {
		if !isPublish(writes) {
			puts.Add(1)
		}
		return storetest.None
	}
	second := billOf(t, w.used.of(func() { w.publish(content.PublishRequest{Message: longest, Who: "Ada"}) }))
	second.log(t, "second publish, with one document changed")
	if len(second.parts) != 1 || puts.Load() != 1 {
		t.Errorf("one document changed, and of %d parts of the manifest that were put %d were new", puts.Load(), len(second.parts))
	}
	w.releases(destinations)

	// One more is more than a release holds; the one before it stays the newest.
	if _, err := w.PutDocument(t.Context(), w.project, content.Save{Path: "one-more.md", Content: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Publish(t.Context(), w.project, content.PublishRequest{Force: true}); code(t, err) != content.CodeTooManyDocuments {
		t.Errorf("publish of 2,001 documents: %v", err)
	}
	if p := w.publish(content.PublishRequest{Message: longest, IdempotencyKey: strings.Repeat("k", content.LongestKey)}); p.Number != 1 || !p.Replayed {
		t.Errorf("a repeat of the first is answered with release %d", p.Number)
	}
}
