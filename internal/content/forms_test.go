package content_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"golang.org/x/text/unicode/norm"

	"colophon/internal/content"
)

const (
	composed   = "caf\u00e9.md"
	decomposed = "cafe\u0301.md"
)

func TestADocumentIsOneInWhicheverFormItsPathIsGiven(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.save(decomposed, "One")
	if first.Path != composed || !first.Created {
		t.Errorf("saved as %+v", first)
	}
	for _, path := range []string{composed, decomposed} {
		draft, text, err := w.GetDocument(t.Context(), w.project, path)
		if err != nil || draft.Path != composed || string(text) != "One" {
			t.Errorf("%+q: %+v, %q, %v", path, draft, text, err)
		}
		_, err = w.PutDocument(t.Context(), w.project, content.Save{Path: path, Content: []byte("x"), IfAbsent: true})
		if code(t, err) != content.CodePrecondition {
			t.Errorf("%+q, only where there is none: %v", path, err)
		}
	}
	if second := w.save(composed, "Two"); second.Created || second.Version != 2 {
		t.Errorf("saved again as %+v", second)
	}
	p := w.publish(content.PublishRequest{})
	if w.paths(p.Number) != composed+" " {
		t.Errorf("released as %q", w.paths(p.Number))
	}
	for _, path := range []string{composed, decomposed} {
		if d, text, err := w.ReleaseDocument(t.Context(), w.project, p.Number, path); err != nil || d.Path != composed || string(text) != "Two" {
			t.Errorf("%+q of the release: %+v, %q, %v", path, d, text, err)
		}
	}
	if err := w.DeleteDocument(t.Context(), w.project, content.Deletion{Path: decomposed, IfVersion: 2, Who: "Ada"}); err != nil {
		t.Error(err)
	}
	if _, _, err := w.GetDocument(t.Context(), w.project, composed); code(t, err) != content.CodeNotFound {
		t.Errorf("deleted, and read with %v", err)
	}
}

func TestADocumentFromBeforeIsFoundAndMovedByItsNextSave(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i, asked := range []string{composed, decomposed} {
		w.project = must(w.CreateProject(t.Context(), "Handbook")).ID
		old := w.plant(decomposed, "Old", 1)
		p := w.publish(content.PublishRequest{})
		if _, _, err := w.ReleaseDocument(t.Context(), w.project, p.Number, asked); err != nil {
			t.Errorf("%d: the release's: %v", i, err)
		}
		if draft, text, err := w.GetDocument(t.Context(), w.project, asked); err != nil || draft != old || string(text) != "Old" {
			t.Errorf("%d: %+v, %q, %v", i, draft, text, err)
		}
		save := content.Save{Path: asked, Content: []byte("New"), Type: "text/markdown", Who: "Ada", IfVersion: 1}
		saved, err := w.PutDocument(t.Context(), w.project, save)
		if err != nil || saved.Path != composed || saved.Version != 2 || saved.Created || !saved.Changed {
			t.Errorf("%d: saved as %+v, %v", i, saved, err)
		}
		if again, err := w.PutDocument(t.Context(), w.project, save); err != nil || again.Changed || again.Version != 2 {
			t.Errorf("%d: the same again: %+v, %v", i, again, err)
		}
		page, err := w.ListDocuments(t.Context(), w.project, "", 0)
		if err != nil || len(page.Drafts) != 1 || page.Drafts[0].Path != composed {
			t.Errorf("%d: listed are %+v, %v", i, page.Drafts, err)
		}
		if err := w.DeleteDocument(t.Context(), w.project, content.Deletion{Path: asked, IfVersion: 2, Who: "Ada"}); err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
}

func TestTwoDocumentsFromBeforeThatLookAlikeStayTwo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.plant(decomposed, "Decomposed", 1)
	w.plant(composed, "Composed", 1)
	for path, text := range map[string]string{decomposed: "Decomposed", composed: "Composed"} {
		if saved := w.save(path, text+" 2"); saved.Path != path || saved.Version != 2 {
			t.Errorf("%+q is saved as %+v", path, saved)
		}
	}
	if err := w.DeleteDocument(t.Context(), w.project, content.Deletion{Path: decomposed, Who: "Ada"}); err != nil {
		t.Fatal(err)
	}
	if draft, text, err := w.GetDocument(t.Context(), w.project, decomposed); err != nil || draft.Path != composed || string(text) != "Composed 2" {
		t.Errorf("what is left is %+v, %q, %v", draft, text, err)
	}
}

func TestAPathsLengthIsThatOfItsNormalForm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path := strings.Repeat("e\u0301", content.LongestPath/2) // 768 bytes, and 512 composed
	if saved := w.save(path, "x"); len(saved.Path) != content.LongestPath {
		t.Errorf("saved with %d bytes", len(saved.Path))
	}
	if _, text, err := w.GetDocument(t.Context(), w.project, path); err != nil || string(text) != "x" {
		t.Errorf("read with %v", err)
	}
	if _, err := w.PutDocument(t.Context(), w.project, content.Save{Path: path + "a"}); code(t, err) != content.CodeInvalid {
		t.Errorf("a byte longer: %v", err)
	}
}

// Whatever is saved, read and deleted in whatever form behaves as if there were
// one form alone, also where the document is there from before in another.
func TestFormsMakeNoDifference(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	letters := []string{"a", "e", "\u00e9", "e\u0301", "o\u0327\u0301", "\u1e69", "s\u0323\u0307", "s\u0307\u0323", "\u212a", "\u0958", "\uac01", "\u1100\u1161\u11a8"}
	seed := rand.Uint64()
	for round := range 30 {
		random := rand.New(rand.NewPCG(seed, uint64(round)))
		base := ""
		for range 1 + random.IntN(5) {
			base += letters[random.IntN(len(letters))]
		}
		form := func() string {
			return []string{norm.NFC.String(base), norm.NFD.String(base), base}[random.IntN(3)]
		}
		w.project = must(w.CreateProject(t.Context(), "Handbook")).ID
		text, version := "", int64(0)
		if random.IntN(2) == 0 {
			text, version = "before", 1
			w.plant([]string{norm.NFC.String(base), norm.NFD.String(base)}[random.IntN(2)], text, 1)
		}
		fail := func(format string, args ...any) {
			t.Helper()
			t.Fatalf("seed %d, round %d, path %+q: %s", seed, round, base, fmt.Sprintf(format, args...))
		}
		for step := range 4 {
			switch random.IntN(3) {
			case 0:
				want := fmt.Sprint("text ", step)
				saved, err := w.PutDocument(t.Context(), w.project, content.Save{Path: form(), Content: []byte(want), Type: "text/markdown"})
				if err != nil || saved.Created != (text == "") || saved.Version <= version || saved.Path != norm.NFC.String(base) {
					fail("saved over version %d (%q) as %+v, %v", version, text, saved, err)
				}
				text, version = want, saved.Version
			case 1:
				err := w.DeleteDocument(t.Context(), w.project, content.Deletion{Path: form(), Who: "Ada"})
				if (err == nil) != (text != "") {
					fail("deleted %q: %v", text, err)
				}
				text = ""
			}
			draft, got, err := w.GetDocument(t.Context(), w.project, form())
			if (err == nil) != (text != "") || string(got) != text || err == nil && draft.Version != version {
				fail("read %q at %+v, %v; want %q at %d", got, draft, err, text, version)
			}
			page, err := w.ListDocuments(t.Context(), w.project, "", 0)
			if err != nil || (len(page.Drafts) == 1) != (text != "") {
				fail("listed are %+v, %v", page.Drafts, err)
			}
		}
	}
}

// register is the sequential model of one document.
type register struct {
	there   bool
	text    string
	version int64
}

type formCall struct {
	kind string // save, read or delete
	text string
	over int64
}

type formAnswer struct {
	code    content.Code
	text    string
	version int64
}

func (s register) step(c formCall, a formAnswer) (bool, register) {
	switch {
	case a.code == content.CodeBusy:
		return true, s
	case a.code == content.CodePrecondition:
		return c.over > 0 && (!s.there || s.version != c.over), s
	case a.code == content.CodeNotFound:
		return c.kind != "save" && !s.there, s
	case a.code != "":
		return false, s
	case c.kind == "read":
		return s.there && s.text == a.text && s.version == a.version, s
	case c.kind == "delete":
		return s.there, register{version: s.version + 1}
	}
	if s.there && s.text == c.text {
		return a.version == s.version, s
	}
	if c.over > 0 && (!s.there || s.version != c.over) {
		return false, s
	}
	return a.version > s.version, register{true, c.text, a.version}
}

// Editors with different keyboards save, read and delete one document at once,
// which is there from before in a form that the first save leaves.
func TestSavesThatMoveADocumentAreLinearizable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	model := porcupine.Model{
		Init: func() any { return register{true, "before", 1} },
		Step: func(state, input, output any) (bool, any) {
			ok, next := state.(register).step(input.(formCall), output.(formAnswer))
			return ok, next
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v → %+v", input, output) },
	}
	forms := []string{composed, decomposed}
	for round := range 6 {
		w.project = must(w.CreateProject(t.Context(), "Handbook")).ID
		w.plant(decomposed, "before", 1)
		begun := time.Now()
		at := func() int64 { return time.Since(begun).Nanoseconds() }
		var mutex sync.Mutex
		var history []porcupine.Operation
		var wait sync.WaitGroup
		for editor := range 4 {
			random := rand.New(rand.NewPCG(uint64(round), uint64(editor)))
			wait.Go(func() {
				for n := range 6 {
					path := forms[random.IntN(2)]
					c := formCall{kind: []string{"save", "save", "read", "read", "delete"}[random.IntN(5)], text: fmt.Sprint(editor, " ", n)}
					if c.kind != "read" && random.IntN(3) == 0 {
						c.over = 1 + int64(random.IntN(4))
					}
					called := at()
					var a formAnswer
					var err error
					switch c.kind {
					case "save":
						var saved content.Saved
						saved, err = w.PutDocument(t.Context(), w.project, content.Save{Path: path, Content: []byte(c.text), Type: "text/markdown", IfVersion: c.over})
						a.version = saved.Version
					case "read":
						draft, text, fault := w.GetDocument(t.Context(), w.project, path)
						a.version, a.text, err = draft.Version, string(text), fault
					case "delete":
						err = w.DeleteDocument(t.Context(), w.project, content.Deletion{Path: path, IfVersion: c.over, Who: "Ada"})
					}
					returned := at()
					if a.code = code(t, err); a.code != "" {
						a.version, a.text = 0, ""
					}
					mutex.Lock()
					history = append(history, porcupine.Operation{ClientId: editor, Input: c, Call: called, Output: a, Return: returned})
					mutex.Unlock()
				}
			})
		}
		// Meanwhile it is published: no release has it twice.
		for range 5 {
			if p, err := w.Publish(t.Context(), w.project, content.PublishRequest{Force: true}); err == nil && p.Documents > 1 {
				t.Errorf("round %d: release %d holds %s", round, p.Number, w.paths(p.Number))
			}
		}
		wait.Wait()
		if result := porcupine.CheckOperationsTimeout(model, history, time.Minute); result != porcupine.Ok {
			for _, o := range history {
				t.Logf("%d–%d %s", o.Call, o.Return, model.DescribeOperation(o.Input, o.Output))
			}
			t.Fatalf("round %d: no order explains what was answered (%v)", round, result)
		}
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
