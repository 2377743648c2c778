package content_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"colophon/internal/content"
	"colophon/internal/store"
	"colophon/internal/store/storetest"
)

func TestADocumentIsReadAsItWasSaved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	largest := bytes.Repeat([]byte{0, 1, 2, 255}, content.LargestDocument/4)
	for path, data := range map[string][]byte{"empty": {}, "text.md": []byte("Grüße"), "largest.bin": largest} {
		saved, err := w.PutDocument(t.Context(), w.project, content.Save{Path: path, Content: data, Type: "text/markdown; charset=UTF-8", Who: "Ada"})
		if err != nil || !saved.Created || !saved.Changed || saved.Version != 1 {
			t.Fatalf("save %s: %+v, %v", path, saved, err)
		}
		draft, got, err := w.GetDocument(t.Context(), w.project, path)
		if err != nil || !bytes.Equal(got, data) || draft != saved.Draft {
			t.Errorf("%s: %d bytes, %+v, %v", path, len(got), draft, err)
		}
		if draft.Who != "Ada" || draft.Type != "text/markdown; charset=UTF-8" || draft.Size != int64(len(data)) {
			t.Errorf("%s: %+v", path, draft)
		}
	}
}

func TestWhatCannotBeSavedIsRefusedAndNothingIsWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const missing = "prj_aaaaaaaaaaaaaaaaaaaa"
	for name, c := range map[string]struct {
		project string
		save    content.Save
		code    content.Code
	}{
		"content over the limit": {w.project, content.Save{Path: "a", Content: make([]byte, content.LargestDocument+1)}, content.CodeTooLarge},
		"a bad path":             {w.project, content.Save{Path: "../a"}, content.CodeInvalid},
		"a bad type":             {w.project, content.Save{Path: "a", Type: "markdown"}, content.CodeInvalid},
		"a type with a tab":      {w.project, content.Save{Path: "a", Type: "a/b; c=\"\td\""}, content.CodeInvalid},
		"a type over the limit":  {w.project, content.Save{Path: "a", Type: "a/" + strings.Repeat("b", content.LongestType)}, content.CodeInvalid},
		"two preconditions":      {w.project, content.Save{Path: "a", IfVersion: 1, IfAbsent: true}, content.CodeInvalid},
		"a missing project":      {missing, content.Save{Path: "a"}, content.CodeNotFound},
		"no project at all":      {"P#x", content.Save{Path: "a"}, content.CodeNotFound},
		"a deleted version":      {w.project, content.Save{Path: "a", IfVersion: 3}, content.CodePrecondition},
	} {
		calls := w.used.of(func() {
			if _, err := w.PutDocument(t.Context(), c.project, c.save); code(t, err) != c.code {
				t.Errorf("%s: %v", name, err)
			}
		})
		if _, written := units(calls); written > 0 {
			t.Errorf("%s: %g units were written", name, written)
		}
	}
	page, err := w.ListDocuments(t.Context(), w.project, "", 0)
	if err != nil || len(page.Drafts) > 0 {
		t.Errorf("%+v, %v", page, err)
	}
}

func TestASaveOverAnotherVersionIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.save("a.md", "One")
	second := w.save("a.md", "Two")
	if first.Version != 1 || second.Version != 2 || second.Created {
		t.Fatalf("%+v, %+v", first, second)
	}
	put := func(s content.Save) (content.Saved, error) {
		s.Path, s.Type = "a.md", "text/markdown"
		return w.PutDocument(t.Context(), w.project, s)
	}
	if _, err := put(content.Save{Content: []byte("Three"), IfVersion: 1}); code(t, err) != content.CodePrecondition {
		t.Errorf("over version 1: %v", err)
	}
	if _, err := put(content.Save{Content: []byte("Three"), IfAbsent: true}); code(t, err) != content.CodePrecondition {
		t.Errorf("over none: %v", err)
	}
	third, err := put(content.Save{Content: []byte("Three"), IfVersion: 2})
	if err != nil || third.Version != 3 {
		t.Errorf("over version 2: %+v, %v", third, err)
	}
	// The answer to that save was lost, and it is asked for again.
	again, err := put(content.Save{Content: []byte("Three"), IfVersion: 2})
	if err != nil || again.Changed || again.Version != 3 {
		t.Errorf("asked again: %+v, %v", again, err)
	}
	typed, err := w.PutDocument(t.Context(), w.project, content.Save{Path: "a.md", Content: []byte("Three"), Type: "text/plain"})
	if err != nil || !typed.Changed || typed.Version != 4 {
		t.Errorf("another type: %+v, %v", typed, err)
	}
}

func TestVersionsGoOnAfterADeletion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.save("a.md", "One")
	w.save("a.md", "Two")
	if err := w.DeleteDocument(t.Context(), w.project, content.Deletion{Path: "a.md", IfVersion: 1, Who: "Ada"}); code(t, err) != content.CodePrecondition {
		t.Errorf("delete version 1: %v", err)
	}
	if err := w.DeleteDocument(t.Context(), w.project, content.Deletion{Path: "a.md", IfVersion: 2, Who: "Ada"}); err != nil {
		t.Errorf("delete version 2: %v", err)
	}
	if _, _, err := w.GetDocument(t.Context(), w.project, "a.md"); code(t, err) != content.CodeNotFound {
		t.Errorf("read: %v", err)
	}
	if err := w.DeleteDocument(t.Context(), w.project, content.Deletion{Path: "a.md", Who: "Ada"}); code(t, err) != content.CodeNotFound {
		t.Errorf("delete again: %v", err)
	}
	if saved := w.save("a.md", "Two"); saved.Version != 4 || !saved.Created {
		t.Errorf("saved again: %+v", saved)
	}
	// Who still has version 2 open does not write over this one.
	_, err := w.PutDocument(t.Context(), w.project, content.Save{Path: "a.md", Content: []byte("Old"), IfVersion: 2})
	if code(t, err) != content.CodePrecondition {
		t.Errorf("over version 2: %v", err)
	}
}

func TestADeletedDocumentIsInNoLaterRelease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.save("a.md", "One")
	w.save("b.md", "Two")
	w.publish(content.PublishRequest{})
	if err := w.DeleteDocument(t.Context(), w.project, content.Deletion{Path: "a.md", Who: "Ada"}); err != nil {
		t.Fatal(err)
	}
	w.save("b.md", "Three")
	w.publish(content.PublishRequest{})
	if w.paths(1) != "a.md b.md " || w.paths(2) != "b.md " {
		t.Errorf("release 1 holds %s, release 2 holds %s", w.paths(1), w.paths(2))
	}
	for release, want := range map[int64]string{1: "Two", 2: "Three"} {
		if _, text, err := w.ReleaseDocument(t.Context(), w.project, release, "b.md"); err != nil || string(text) != want {
			t.Errorf("b.md in release %d: %q, %v", release, text, err)
		}
	}
	if _, _, err := w.ReleaseDocument(t.Context(), w.project, 2, "a.md"); code(t, err) != content.CodeNotFound {
		t.Errorf("a.md in release 2: %v", err)
	}
}

func TestTheLastSavesAreKeptAndNoMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const saves = content.SavesKept + 5
	for i := range saves {
		w.save("a.md", fmt.Sprint("Text ", i))
	}
	w.save("a.md2", "another's history is another's")
	page, err := w.engine.Query(t.Context(), store.Query{
		Table: w.tables.Content, PK: store.Text("P#" + w.project),
		From: store.Text("DOCV#a.md#"), To: store.Text("DOCV#a.md#~"),
	})
	if err != nil || len(page.Items) != content.SavesKept {
		t.Fatalf("%d saves are kept (%v)", len(page.Items), err)
	}
	if first := page.Items[0]["sk"]; !equal(first, store.Text(fmt.Sprintf("DOCV#a.md#%012d", saves-content.SavesKept+1))) {
		t.Errorf("the oldest is %v", first)
	}
}

func equal(a, b store.Value) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

func TestOfSavesSideBySideOverOneVersionOneSucceeds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.save("a.md", "One")
	var saved, refused atomic.Int64
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			_, err := w.PutDocument(t.Context(), w.project, content.Save{Path: "a.md", Content: fmt.Append(nil, i), IfVersion: 1})
			switch code(t, err) {
			case "":
				saved.Add(1)
			case content.CodePrecondition:
				refused.Add(1)
			default:
				t.Errorf("save %d: %v", i, err)
			}
		})
	}
	wait.Wait()
	if saved.Load() != 1 || refused.Load() != 7 {
		t.Errorf("%d saved, %d refused", saved.Load(), refused.Load())
	}
}

func TestSavesSideBySideOverAnyVersionAllCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			_, err := w.PutDocument(t.Context(), w.project, content.Save{Path: "a.md", Content: fmt.Append(nil, i)})
			if err != nil {
				t.Errorf("save %d: %v", i, err)
			}
		})
	}
	wait.Wait()
	if draft, _, err := w.GetDocument(t.Context(), w.project, "a.md"); err != nil || draft.Version != 8 {
		t.Errorf("%+v, %v", draft, err)
	}
}

func TestASaveSurvivesFaultsOfTheTable(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		faults []storetest.Fault
		code   content.Code
	}{
		"a request is lost":                           {[]storetest.Fault{storetest.RequestLost, storetest.None}, ""},
		"an answer is lost":                           {[]storetest.Fault{storetest.AnswerLost, storetest.None}, ""},
		"it comes late":                               {[]storetest.Fault{storetest.Late, storetest.None}, ""},
		"another transaction is at work":              {[]storetest.Fault{storetest.Conflict, storetest.Conflict, storetest.None}, ""},
		"another transaction is at work for ever":     {[]storetest.Fault{storetest.Conflict}, content.CodeBusy},
		"the table is short of units for the history": {[]storetest.Fault{storetest.ThrottledLast, storetest.ThrottledLast, storetest.None}, ""},
		"it is so for ever":                           {[]storetest.Fault{storetest.ThrottledLast}, content.CodeUnavailable},
		"all answers are lost":                        {[]storetest.Fault{storetest.AnswerLost}, content.CodeUnknownOutcome},
		"the table is short of units for the content": {[]storetest.Fault{storetest.Throttled}, content.CodeUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(c *content.Config) { c.Clock, c.Jitter = newPatient(), leisurely })
			turn := c.faults
			w.faulty.Choose = func(writes []store.Write) storetest.Fault {
				if len(writes) == 1 && turn[0] != storetest.Throttled {
					return storetest.None // content, by its hash
				}
				next := turn[0]
				if len(turn) > 1 {
					turn = turn[1:]
				}
				return next
			}
			saved, err := w.PutDocument(t.Context(), w.project, content.Save{Path: "a.md", Content: []byte("One")})
			w.faulty.Settle()
			if got := code(t, err); got != c.code {
				t.Fatalf("got %q (%v), want %q", got, err, c.code)
			}
			if err == nil && (saved.Version != 1 || !saved.Created) {
				t.Errorf("saved: %+v", saved)
			}
			w.faulty.Choose = nil
			if saved := w.save("a.md", "Two"); err == nil && saved.Version != 2 {
				t.Errorf("the next save: %+v", saved)
			}
		})
	}
}

func TestListsGoOnWhereTheirCursorSays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const documents = 7
	for i := range documents {
		w.save(fmt.Sprintf("%d.md", i), "Text")
		w.publish(content.PublishRequest{Message: fmt.Sprint(i)})
	}
	for size := 1; size <= documents+1; size++ {
		var paths, numbers []string
		for cursor := ""; ; {
			page, err := w.ListDocuments(t.Context(), w.project, cursor, size)
			if err != nil || len(page.Drafts) > size {
				t.Fatalf("%d drafts, %v", len(page.Drafts), err)
			}
			for _, d := range page.Drafts {
				paths = append(paths, d.Path)
			}
			if cursor = page.Next; cursor == "" {
				break
			}
		}
		for cursor := ""; ; {
			page, err := w.ListReleases(t.Context(), w.project, cursor, size)
			if err != nil || len(page.Releases) > size {
				t.Fatalf("%d releases, %v", len(page.Releases), err)
			}
			for _, r := range page.Releases {
				numbers = append(numbers, fmt.Sprint(r.Number))
			}
			if cursor = page.Next; cursor == "" {
				break
			}
		}
		if got := strings.Join(paths, " "); got != "0.md 1.md 2.md 3.md 4.md 5.md 6.md" {
			t.Errorf("pages of %d: %s", size, got)
		}
		if got := strings.Join(numbers, " "); got != "7 6 5 4 3 2 1" {
			t.Errorf("pages of %d: %s", size, got)
		}
	}
	page, err := w.ListReleases(t.Context(), w.project, "", 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.ListDocuments(t.Context(), w.project, page.Next, 1); code(t, err) != content.CodeInvalid {
		t.Errorf("another list's cursor: %v", err)
	}
	for _, limit := range []int{-1, content.LargestPage + 1} {
		if _, err := w.ListDocuments(t.Context(), w.project, "", limit); code(t, err) != content.CodeInvalid {
			t.Errorf("a page of %d: %v", limit, err)
		}
	}
}

func TestProjectsAreListedAndFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	names := map[string]string{w.project: "Handbook"}
	for i := range 4 {
		p, err := w.CreateProject(t.Context(), fmt.Sprintf("  Project %d ", i))
		if err != nil {
			t.Fatal(err)
		}
		names[p.ID] = fmt.Sprintf("Project %d", i)
	}
	found := 0
	for cursor := ""; ; {
		page, err := w.ListProjects(t.Context(), cursor, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range page.Projects {
			found++
			if names[p.ID] != p.Name {
				t.Errorf("%s is named %q", p.ID, p.Name)
			}
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if found != len(names) {
		t.Errorf("%d of %d projects are listed", found, len(names))
	}
	for _, name := range []string{"", "   ", strings.Repeat("x", content.LongestName+1), "a\nb", "\xff"} {
		if _, err := w.CreateProject(t.Context(), name); code(t, err) != content.CodeInvalid {
			t.Errorf("a project named %q: %v", name, err)
		}
	}
}

func TestWhatIsNotThereIsNotFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.save("a.md", "One")
	const missing = "prj_aaaaaaaaaaaaaaaaaaaa"
	for _, project := range []string{missing, "", "META", "prj_#", strings.Repeat("x", 5000)} {
		_, err := w.Project(t.Context(), project)
		want := code(t, err)
		if want != content.CodeNotFound {
			t.Errorf("%q: %v", project, err)
		}
		for name, ask := range map[string]func() error{
			"list documents": func() error { _, err := w.ListDocuments(t.Context(), project, "", 0); return err },
			"read":           func() error { _, _, err := w.GetDocument(t.Context(), project, "a.md"); return err },
			"delete":         func() error { return w.DeleteDocument(t.Context(), project, content.Deletion{Path: "a.md"}) },
			"publish": func() error {
				_, err := w.Publish(t.Context(), project, content.PublishRequest{IdempotencyKey: "k"})
				return err
			},
			"list releases": func() error { _, err := w.ListReleases(t.Context(), project, "", 0); return err },
			"release":       func() error { _, err := w.Release(t.Context(), project, 1); return err },
			"manifest":      func() error { _, err := w.ReleaseDocuments(t.Context(), project, 1); return err },
		} {
			if got := ask(); fmt.Sprint(got) != fmt.Sprint(err) {
				t.Errorf("%s of project %q: %v", name, project, got)
			}
		}
	}
	if _, err := w.Release(t.Context(), w.project, 1); code(t, err) != content.CodeNotFound {
		t.Errorf("release 1: %v", err)
	}
	if _, err := w.Release(t.Context(), w.project, 0); code(t, err) != content.CodeInvalid {
		t.Errorf("release 0: %v", err)
	}
}

func TestWhatCannotBePublishedIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, c := range map[string]struct {
		request content.PublishRequest
		code    content.Code
	}{
		"nothing saved yet":     {content.PublishRequest{}, content.CodeNothingToPublish},
		"a message too long":    {content.PublishRequest{Message: strings.Repeat("ö", content.LongestMessage+1)}, content.CodeInvalid},
		"a message not in text": {content.PublishRequest{Message: "\xff"}, content.CodeInvalid},
		"a control character":   {content.PublishRequest{Message: "a\x00"}, content.CodeInvalid},
		"a key too long":        {content.PublishRequest{IdempotencyKey: strings.Repeat("k", content.LongestKey+1)}, content.CodeInvalid},
		"a key not in ASCII":    {content.PublishRequest{IdempotencyKey: "schlüssel"}, content.CodeInvalid},
	} {
		if _, err := w.Publish(t.Context(), w.project, c.request); code(t, err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	if p := w.publish(content.PublishRequest{Force: true, Message: strings.Repeat("ö", content.LongestMessage)}); p.Documents != 0 {
		t.Errorf("an empty release: %+v", p)
	}
	w.releases(nil)
}

func TestLinksBeginWithThePublicAddressOrTheRequests(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ public, base, want string }{
		"the public address":                  {"https://docs.example/c/", "https://other.example", "https://docs.example/c/projects/%s/releases/1"},
		"the request's, where none is public": {"", "https://abc.example/v1/", "https://abc.example/v1/projects/%s/releases/1"},
	} {
		var url string
		w := newWorld(t, func(config *content.Config) {
			config.PublicAddress = c.public
			config.Announce = func(a content.Announcement) (string, []byte, error) {
				url = a.URL
				return announce(a)
			}
		})
		w.addDestinations(1)
		w.publish(content.PublishRequest{Force: true, BaseURL: c.base})
		if want := fmt.Sprintf(c.want, w.project); url != want {
			t.Errorf("%s: %s, want %s", name, url, want)
		}
	}
	for _, address := range []string{"docs.example", "ftp://docs.example", "https://", "https://a@docs.example", "https://docs.example?x", "https://docs.example/#a", "https://docs.example/" + strings.Repeat("a", content.LongestAddress)} {
		if _, err := content.New(content.Config{Store: &store.Contents{}, Announce: announce, PublicAddress: address}); err == nil {
			t.Errorf("%q is taken for an address", address)
		}
	}
}
