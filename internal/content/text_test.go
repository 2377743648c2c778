package content_test

import (
	"crypto/rand"
	"maps"
	"net/url"
	"strings"
	"testing"
	"time"

	"colophon/internal/content"
	"colophon/internal/store"
)

// contents are the tables without the rules.
func (w *world) contents() *store.Contents {
	w.t.Helper()
	contents, err := store.NewContents(store.ContentsConfig{Engine: w.engine, ContentTable: w.tables.Content, DeliveryTable: w.tables.Delivery})
	if err != nil {
		w.t.Fatal(err)
	}
	return contents
}

// plant writes a document as a build from before today's rules about paths did.
func (w *world) plant(path, text string, version int64) content.Draft {
	w.t.Helper()
	contents := w.contents()
	draft := content.Draft{
		Document: content.Document{Path: path, Hash: content.HashOf([]byte(text)), Size: int64(len(text)), Type: "text/markdown"},
		Version:  version, Who: "Ada", At: time.Now().UTC().Truncate(time.Millisecond),
	}
	if _, err := contents.PutBlob(w.t.Context(), w.project, draft.Hash, []byte(text)); err != nil {
		w.t.Fatal(err)
	}
	if err := contents.ChangeDraft(w.t.Context(), rand.Text(), content.DraftChange{Project: w.project, Draft: draft, Over: version - 1}); err != nil {
		w.t.Fatal(err)
	}
	return draft
}

// unfit are texts that no name, path or message may hold.
var unfit = map[string]string{
	"lost bytes": "caf\ufffd.md", "an override": "a\u202edm.exe", "an isolate": "a\u2067b", "a line separator": "a\u2028b",
	"an annotation": "a\ufff9b", "hidden tags": "a\U000E0041\U000E0042", "an unfinished flag": "\U0001F3F4\U000E0067\U000E0062\U000E0065",
}

// unfitInLines are those that a message may hold.
var unfitInLines = map[string]string{
	"a zero width space": "a\u200bb", "a word joiner": "a\u2060b", "a soft hyphen": "a\u00adb", "a byte order mark": "a\ufeffb",
}

func TestTextsThatHideSomethingOrWereSpoiltOnTheirWayAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.save("a.md", "A")
	inLines := maps.Clone(unfitInLines)
	maps.Copy(inLines, unfit)
	refused := func(what, name string, err error) {
		t.Helper()
		if got := code(t, err); got != content.CodeInvalid {
			t.Errorf("%s with %s: %v", what, name, err)
		}
	}
	calls := w.used.of(func() {
		for name, text := range unfit {
			_, err := w.Publish(t.Context(), w.project, content.PublishRequest{Message: text})
			refused("a message", name, err)
		}
		for name, text := range inLines {
			_, err := w.CreateProject(t.Context(), text)
			refused("a project", name, err)
			_, err = w.PutDocument(t.Context(), w.project, content.Save{Path: text, Content: []byte("x")})
			refused("a path", name, err)
			_, err = w.PutDocument(t.Context(), w.project, content.Save{
				Path: "b.md", Content: []byte("x"), Type: "text/plain; title*=utf-8''" + url.PathEscape(text),
			})
			refused("a type", name, err)
		}
	})
	if _, written := units(calls); written > 0 {
		t.Errorf("%g units were written", written)
	}
	arabic := "مرحبا\u200f (\u200eLRM\u061c) 👩\u200d🚀 می\u200cخواهم 🏴\U000E0067\U000E0062\U000E0065\U000E006E\U000E0067\U000E007F"
	if p := w.publish(content.PublishRequest{Message: arabic + "\u200b"}); p.Message != arabic+"\u200b" {
		t.Errorf("published as %q", p.Message)
	}
	w.save(arabic+".md", "A")
}

func TestAByteOrderMarkBeforeAMessageIsDroppedAndARepeatIsKnown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.save("a.md", "A")
	asked := content.PublishRequest{Message: "\ufeffHours\r\n", IdempotencyKey: "key"}
	if first := w.publish(asked); first.Message != "Hours\n" {
		t.Errorf("published as %q", first.Message)
	}
	if again := w.publish(asked); !again.Replayed || again.Message != "Hours\n" {
		t.Errorf("the same again is %+v", again)
	}
	// The request is what came, as builds before this one had it.
	asked.Message = "Hours\n"
	if _, err := w.Publish(t.Context(), w.project, asked); code(t, err) != content.CodeIdempotencyMismatch {
		t.Errorf("another text under the key: %v", err)
	}
}

// What is stored from before these rules stays: it is read, listed, published,
// read from releases, and deleted.
func TestADocumentWhosePathIsRefusedTodayIsStillReadPublishedAndDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, path := range map[string]string{"hidden": "guides/\u202eindex\u200b.md", "lost bytes": "caf\ufffd.md"} {
		w.plant(path, "Text", 1)
		if _, err := w.PutDocument(t.Context(), w.project, content.Save{Path: path, Content: []byte("New")}); code(t, err) != content.CodeInvalid {
			t.Errorf("%s: saved: %v", name, err)
		}
		if _, text, err := w.GetDocument(t.Context(), w.project, path); err != nil || string(text) != "Text" {
			t.Errorf("%s: read as %q (%v)", name, text, err)
		}
		p := w.publish(content.PublishRequest{Force: true})
		if paths := w.paths(p.Number); !strings.Contains(paths, path+" ") {
			t.Errorf("%s: release %d holds %q", name, p.Number, paths)
		}
		if _, text, err := w.ReleaseDocument(t.Context(), w.project, p.Number, path); err != nil || string(text) != "Text" {
			t.Errorf("%s: read from the release as %q (%v)", name, text, err)
		}
		page, err := w.ListDocuments(t.Context(), w.project, content.EncodeDraftCursor(path), 0)
		if err != nil {
			t.Errorf("%s: listed behind it: %+v, %v", name, page, err)
		}
		if err := w.DeleteDocument(t.Context(), w.project, content.Deletion{Path: path, Who: "Ada"}); err != nil {
			t.Errorf("%s: deleted: %v", name, err)
		}
	}
}

// An old manifest's bytes, as an earlier build wrote them.
func TestAManifestWithPathsThatAreRefusedTodayIsRead(t *testing.T) {
	t.Parallel()
	line := func(path string) string {
		return content.HashOf([]byte("Text")).String() + " 4\ttext/markdown\t" + path + "\n"
	}
	for name, path := range unfit {
		part := "colophon manifest 1\n" + line("a.md") + line(path)
		documents, err := content.ParsePart([]byte(part))
		if err != nil || len(documents) != 2 || documents[1].Path != path {
			t.Errorf("%s: %+v, %v", name, documents, err)
		}
	}
}
