package storetest

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"colophon/internal/access"
	"colophon/internal/content"
	"colophon/internal/delivery"
	"colophon/internal/store"
)

// Contents is the suite for projects, drafts, releases and tokens. fresh gives a
// place with empty tables that nobody else writes to.
func Contents(t *testing.T, fresh func(t *testing.T) Place) {
	for name, test := range map[string]func(*desk, *testing.T){
		"AProjectIsReadAsItWasWritten":                    (*desk).readsProjects,
		"AProjectsIDIsTakenOnce":                          (*desk).takesIDsOnce,
		"ADraftIsSavedOverTheVersionThatWasRead":          (*desk).savesOverVersions,
		"ASaveAskedTwiceIsOne":                            (*desk).savesOnce,
		"ADeletedDraftsVersionIsRemembered":               (*desk).remembersVersions,
		"APathThatBeginsWithAnothersHasItsOwnHistory":     (*desk).keepsHistoriesApart,
		"OnlyTheLastSavesAreKept":                         (*desk).keepsTheLastSaves,
		"ADraftMovesToAnotherPathWholeOrNotAtAll":         (*desk).movesDrafts,
		"ADocumentsContentIsCounted":                      (*desk).countsContent,
		"ACommitKeepsTheLimitOfPublishes":                 (*desk).keepsThePublishesLimit,
		"DraftsAreListedByTheirPathsBytes":                (*desk).listsDrafts,
		"ContentIsKeptByItsHash":                          (*desk).keepsContent,
		"ACommitWritesReleaseKeyAndDeliveries":            (*desk).commits,
		"ACommitAskedTwiceIsOne":                          (*desk).commitsOnce,
		"ACommitOverAProjectThatMovedShowsIt":             (*desk).showsTheProject,
		"ACommitUnderAUsedKeyShowsItsUse":                 (*desk).showsTheUse,
		"ACommitUnderAKeyThatIsOverReplacesItsUse":        (*desk).replacesUses,
		"ACommitWhoseDeliveryIsThereWritesNothing":        (*desk).writesAllOrNothing,
		"ACommitIsDoneWhereItsReleaseIsThereUnderItsName": (*desk).knowsItsOwn,
		"ReleasesAreListedNewestFirst":                    (*desk).listsReleases,
		"ATokenIsReadByItsHashUntilItIsRemoved":           (*desk).keepsTokens,
		"ATokenOfAMissingProjectIsNotWritten":             (*desk).wantsTheProject,
		"EachRecordOfANameHasTheIDToo":                    (*desk).recordsIDs,
		"WhatWasWrittenBeforeIDsWereRecordedIsRead":       (*desk).readsRecordsWithoutIDs,
		"ADamagedItemIsAnErrorAndNothingElse":             (*desk).readsDamage,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(newDesk(t, fresh(t)), t)
		})
	}
}

// desk is an empty project, prj, and what keeps it.
type desk struct {
	place    Place
	contents *store.Contents
	tokens   *store.Tokens
	worker   *store.Deliveries
	project  content.Project
}

const prj = "prj_aaaaaaaaaaaaaaaaaaaa"

func newDesk(t *testing.T, place Place) *desk {
	t.Helper()
	place.Engine = Judge(t, place.Engine)
	d := &desk{place: place, project: content.Project{
		ID: prj, Name: "Handbook", Destinations: []string{"dst_1", "dst_2"}, Version: 1, CreatedAt: noon,
	}}
	var err error
	if d.contents, err = store.NewContents(store.ContentsConfig{
		Engine: place.Engine, ContentTable: place.Content, DeliveryTable: place.Delivery,
	}); err != nil {
		t.Fatal(err)
	}
	if d.tokens, err = store.NewTokens(store.TokensConfig{Engine: place.Engine, Table: place.Content}); err != nil {
		t.Fatal(err)
	}
	if d.worker, err = store.NewDeliveries(store.DeliveriesConfig{
		Engine: place.Engine, Table: place.Delivery, Clock: func() time.Time { return noon },
	}); err != nil {
		t.Fatal(err)
	}
	must(t, d.contents.AddProject(t.Context(), rand.Text(), d.project))
	return d
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// same compares what was read with what was written.
func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s is read as\n%+v\nand was written as\n%+v", what, got, want)
	}
}

func wants(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", what, err, want)
	}
}

func (d *desk) readsProjects(t *testing.T) {
	p, err := d.contents.Project(t.Context(), prj)
	must(t, err)
	same(t, "a project", p, d.project)
	_, err = d.contents.Project(t.Context(), "prj_missing")
	wants(t, "a missing project", err, content.ErrMissing)
	for i := range 3 {
		other := content.Project{ID: fmt.Sprint("prj_b", i), Name: "Other", Version: 1, CreatedAt: noon, Destinations: []string{}}
		must(t, d.contents.AddProject(t.Context(), rand.Text(), other))
	}
	listed, err := d.contents.ListProjects(t.Context(), prj, 2)
	must(t, err)
	if len(listed) != 2 || listed[0].ID != "prj_b0" || listed[1].ID != "prj_b1" {
		t.Errorf("two projects behind the first: %+v", listed)
	}
}

func (d *desk) takesIDsOnce(t *testing.T) {
	again := d.project
	again.Name = "Another"
	wants(t, "a second project of the id", d.contents.AddProject(t.Context(), rand.Text(), again), content.ErrMoved)
	p, err := d.contents.Project(t.Context(), prj)
	must(t, err)
	same(t, "the first project", p, d.project)
}

func draft(path string, version int64) content.Draft {
	return content.Draft{
		Document: content.Document{Path: path, Hash: content.HashOf([]byte(path)), Size: version, Type: "text/markdown"},
		Version:  version, Who: "Ada", WhoID: "tok_ada", At: noon,
	}
}

func (d *desk) save(t *testing.T, path string, version, over int64) error {
	t.Helper()
	return d.contents.ChangeDraft(t.Context(), rand.Text(), content.DraftChange{Project: prj, Draft: draft(path, version), Over: over})
}

func (d *desk) remove(t *testing.T, path string, version, over int64) error {
	t.Helper()
	return d.contents.ChangeDraft(t.Context(), rand.Text(), content.DraftChange{Project: prj, Draft: draft(path, version), Deleted: true, Over: over})
}

// oneOf reads the first draft of some paths.
func (d *desk) oneOf(t *testing.T, project string, paths ...string) (content.Draft, error) {
	t.Helper()
	drafts, _, err := d.contents.Drafts(t.Context(), project, paths)
	if err == nil && len(drafts) == 0 {
		err = content.ErrMissing
	}
	if err != nil {
		return content.Draft{}, err
	}
	return drafts[0], nil
}

// keep puts content that is new, or not.
func (d *desk) keep(t *testing.T, data []byte, isNew bool) {
	t.Helper()
	made, err := d.contents.PutBlob(t.Context(), prj, content.HashOf(data), data)
	if err != nil || made != isNew {
		t.Errorf("content of %d bytes was made: %v (%v)", len(data), made, err)
	}
	if there, err := d.contents.HasBlob(t.Context(), prj, content.HashOf(data)); err != nil || !there {
		t.Errorf("content of %d bytes is there: %v (%v)", len(data), there, err)
	}
}

// movesDrafts: one path becomes another, with all that belongs to it, or nothing does.
func (d *desk) movesDrafts(t *testing.T) {
	const from, to = "cafe\u0301", "caf\u00e9"
	must(t, d.save(t, from, 1, 0))
	must(t, d.save(t, from, 2, 1))
	move := func(version, over int64) error {
		return d.contents.ChangeDraft(t.Context(), rand.Text(), content.DraftChange{Project: prj, Draft: draft(to, version), Over: over, From: from})
	}
	before, err := d.contents.Project(t.Context(), prj)
	must(t, err)
	wants(t, "a move of a version that is over", move(3, 1), content.ErrMoved)
	must(t, d.save(t, to, 1, 0))
	wants(t, "a move onto another draft", move(3, 2), content.ErrMoved)
	must(t, d.remove(t, to, 2, 1))
	if drafts, _, err := d.contents.Drafts(t.Context(), prj, []string{to, from}); err != nil || len(drafts) != 1 || drafts[0].Path != from {
		t.Errorf("before the move there are %+v (%v)", drafts, err)
	}
	must(t, move(3, 2))
	if drafts, _, err := d.contents.Drafts(t.Context(), prj, []string{from, to}); err != nil || !reflect.DeepEqual(drafts, []content.Draft{draft(to, 3)}) {
		t.Errorf("after the move there are %+v (%v)", drafts, err)
	}
	d.lastVersion(t, to, 3)
	d.lastVersion(t, from, 3) // that it left is its last
	wants(t, "a save over what moved", d.save(t, from, 3, 2), content.ErrMoved)
	wants(t, "a second move", move(4, 2), content.ErrMoved)
	// A publish that listed the drafts before the move does not go through.
	after, err := d.contents.Project(t.Context(), prj)
	if err != nil || after.Version != before.Version+1 {
		t.Errorf("the project is at version %d and was at %d (%v)", after.Version, before.Version, err)
	}
}

func (d *desk) countsContent(t *testing.T) {
	for _, want := range []int64{0, 5, 12} {
		_, used, err := d.contents.Drafts(t.Context(), prj, nil)
		if err != nil || used != want {
			t.Errorf("%d bytes are counted (%v), want %d", used, err, want)
		}
		must(t, d.contents.AddUsage(t.Context(), prj, 5+want/5*2))
	}
	if there, err := d.contents.HasBlob(t.Context(), prj, content.HashOf([]byte("missing"))); err != nil || there {
		t.Errorf("missing content is there: %v (%v)", there, err)
	}
}

func (d *desk) keepsThePublishesLimit(t *testing.T) {
	c := d.release(t, "")
	c.PublishesFull = noon.Add(time.Second)
	must(t, d.commit(t, c))
	p, err := d.contents.Project(t.Context(), prj)
	if err != nil || !p.PublishesFull.Equal(c.PublishesFull) {
		t.Errorf("the limit is read as %v (%v)", p.PublishesFull, err)
	}
}

func (d *desk) savesOverVersions(t *testing.T) {
	_, err := d.oneOf(t, "prj_missing", "a")
	wants(t, "a draft of a missing project", err, content.ErrNoProject)
	_, err = d.oneOf(t, prj, "a")
	wants(t, "a missing draft", err, content.ErrMissing)
	wants(t, "a save over a version that is not there", d.save(t, "a", 2, 1), content.ErrMoved)
	must(t, d.save(t, "a", 1, 0))
	wants(t, "a second save over none", d.save(t, "a", 1, 0), content.ErrMoved)
	must(t, d.save(t, "a", 2, 1))
	wants(t, "a save over an older version", d.save(t, "a", 2, 1), content.ErrMoved)
	got, err := d.oneOf(t, prj, "a")
	must(t, err)
	same(t, "a draft", got, draft("a", 2))
}

func (d *desk) savesOnce(t *testing.T) {
	change := content.DraftChange{Project: prj, Draft: draft("a", 1)}
	token := rand.Text()
	must(t, d.contents.ChangeDraft(t.Context(), token, change))
	must(t, d.contents.ChangeDraft(t.Context(), token, change))
	wants(t, "another save of the same version", d.contents.ChangeDraft(t.Context(), rand.Text(), change), content.ErrMoved)
}

func (d *desk) lastVersion(t *testing.T, path string, want int64) {
	t.Helper()
	got, err := d.contents.LastVersion(t.Context(), prj, path)
	if err != nil || got != want {
		t.Errorf("the last version of %s is %d (%v), want %d", path, got, err, want)
	}
}

func (d *desk) remembersVersions(t *testing.T) {
	d.lastVersion(t, "a", 0)
	must(t, d.save(t, "a", 1, 0))
	wants(t, "a deletion over another version", d.remove(t, "a", 3, 2), content.ErrMoved)
	must(t, d.remove(t, "a", 2, 1))
	_, err := d.oneOf(t, prj, "a")
	wants(t, "a deleted draft", err, content.ErrMissing)
	d.lastVersion(t, "a", 2)
	wants(t, "a save under a version that was used", d.save(t, "a", 2, 0), content.ErrMoved)
	must(t, d.save(t, "a", 3, 0))
	d.lastVersion(t, "a", 3)
}

func (d *desk) keepsHistoriesApart(t *testing.T) {
	for _, path := range []string{"a", "a/b", "a b", "a!", "ab"} {
		d.lastVersion(t, path, 0)
		must(t, d.save(t, path, 1, 0))
	}
	must(t, d.save(t, "a", 2, 1))
	d.lastVersion(t, "a", 2)
	d.lastVersion(t, "a/b", 1)
	d.lastVersion(t, "a b", 1)
}

// saves counts the history of a path behind the store's back.
func (d *desk) saves(t *testing.T, path string) (versions []string) {
	t.Helper()
	return read(t, d.place, store.Query{
		Table: d.place.Content, PK: store.Text("P#" + prj),
		From: store.Text("DOCV#" + path + "#"), To: store.Text("DOCV#" + path + "#~"),
	})
}

func (d *desk) keepsTheLastSaves(t *testing.T) {
	const over = 3
	for version := range int64(content.SavesKept + over) {
		must(t, d.save(t, "a", version+1, version))
	}
	got := d.saves(t, "a")
	if len(got) != content.SavesKept || got[0] != fmt.Sprintf("DOCV#a#%012d", over+1) {
		t.Errorf("%d saves are kept, from %v", len(got), got[0])
	}
}

func (d *desk) listsDrafts(t *testing.T) {
	// "DOCV#…" and other items of the project are no drafts.
	paths := []string{"A", "a", "a!", "a/b", "a/c", "b", "ö", "日本"}
	for _, path := range paths {
		must(t, d.save(t, path, 1, 0))
	}
	must(t, d.save(t, "gone", 1, 0))
	must(t, d.remove(t, "gone", 2, 1))
	for _, c := range []struct {
		after string
		limit int
		want  []string
	}{
		{"", 100, paths},
		{"", 3, paths[:3]},
		{"a!", 2, paths[3:5]},
		{"a/a", 2, paths[3:5]}, // not there, or not any more
		{"日本", 5, nil},
	} {
		drafts, err := d.contents.ListDrafts(t.Context(), prj, c.after, c.limit)
		must(t, err)
		var got []string
		for _, one := range drafts {
			got = append(got, one.Path)
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%d drafts behind %q: %q, want %q", c.limit, c.after, got, c.want)
		}
	}
}

func (d *desk) keepsContent(t *testing.T) {
	var hashes []content.Hash
	for i := range 120 {
		data := fmt.Appendf(nil, "content %d", i)
		if i == 0 {
			data = nil
		}
		hashes = append(hashes, content.HashOf(data))
		d.keep(t, data, true)
	}
	d.keep(t, []byte("content 1"), false)
	asked := append(hashes[5:], hashes[1], hashes[0], hashes[1])
	blobs, err := d.contents.Blobs(t.Context(), prj, asked)
	must(t, err)
	for i, data := range blobs {
		if content.HashOf(data) != asked[i] {
			t.Errorf("content %d is %q", i, data)
		}
	}
	_, err = d.contents.Blobs(t.Context(), prj, []content.Hash{content.HashOf([]byte("missing"))})
	wants(t, "missing content", err, content.ErrMissing)
	_, err = d.contents.Blobs(t.Context(), "prj_other", hashes[:1])
	wants(t, "content of another project", err, content.ErrMissing)
}

// release is the project's next release, with all that a commit writes.
func (d *desk) release(t *testing.T, key string) content.Commit {
	t.Helper()
	read, err := d.contents.Project(t.Context(), prj)
	must(t, err)
	c := content.Commit{Read: read, Release: content.Release{
		Project: prj, Number: read.Seq + 1, Message: "Spring", Who: "Ada", WhoID: "tok_ada", At: noon, Documents: 2, Bytes: 10,
		Manifest: []content.Hash{{1}, {2}}, Destinations: read.Destinations, Token: rand.Text(),
	}}
	if key != "" {
		c.Use = content.Use{Key: key, Request: content.Hash{7}, Release: c.Release.Number, ExpiresAt: noon.Add(content.KeyTime)}
	}
	for _, destination := range read.Destinations {
		c.Deliveries = append(c.Deliveries, content.NewDelivery{
			Destination: destination, WebhookID: "msg_" + rand.Text(), Body: fmt.Appendf(nil, `{"release":%d}`, c.Release.Number),
		})
	}
	return c
}

func (d *desk) commit(t *testing.T, c content.Commit) error {
	t.Helper()
	return d.contents.Commit(t.Context(), c.Release.Token, c)
}

// holds looks at everything that the commit wrote, or that it did not.
func (d *desk) holds(t *testing.T, c content.Commit, there bool) {
	t.Helper()
	r, err := d.contents.Release(t.Context(), prj, c.Release.Number)
	if there {
		must(t, err)
		same(t, "a release", r, c.Release)
	} else if !errors.Is(err, content.ErrMissing) && (err != nil || r.Token == c.Release.Token) {
		t.Errorf("release %d is %+v (%v)", c.Release.Number, r, err)
	}
	p, err := d.contents.Project(t.Context(), prj)
	must(t, err)
	if moved := p.Seq >= c.Release.Number && p.Version > c.Read.Version; there && !moved {
		t.Errorf("the project did not move: %+v", p)
	}
	if c.Use.Key != "" && there {
		u, err := d.contents.Use(t.Context(), prj, c.Use.Key)
		must(t, err)
		want := c.Use
		want.Key = ""
		same(t, "a key's use", u, want)
	}
	for _, n := range c.Deliveries {
		key := delivery.Key{Destination: delivery.Destination{Project: prj, ID: n.Destination}, Release: c.Release.Number}
		got, err := d.worker.ReadDelivery(t.Context(), key)
		must(t, err)
		switch mine := got != nil && got.WebhookID == n.WebhookID; {
		case mine != there:
			t.Errorf("the delivery to %s is there: %v", n.Destination, mine)
		case there:
			same(t, "a delivery", *got, delivery.Delivery{
				Key: key, Status: delivery.Queued, Round: 1, WebhookID: n.WebhookID, Body: n.Body, TryAt: c.Release.At,
				Attempts: []delivery.Attempt{}, SweepAt: c.Release.At.Add(delivery.SweepDelay), CreatedAt: c.Release.At,
			})
		}
	}
}

func (d *desk) commits(t *testing.T) {
	_, err := d.contents.Use(t.Context(), prj, "k1")
	wants(t, "a key that was not used", err, content.ErrMissing)
	first := d.release(t, "k1")
	must(t, d.commit(t, first))
	d.holds(t, first, true)
	p, err := d.contents.Project(t.Context(), prj)
	must(t, err)
	want := d.project
	want.Seq, want.Version, want.Manifest = 1, 2, first.Release.Manifest
	same(t, "the project after a release", p, want)
	second := d.release(t, "")
	must(t, d.commit(t, second))
	d.holds(t, second, true)
	d.holds(t, first, true)
}

func (d *desk) commitsOnce(t *testing.T) {
	c := d.release(t, "k1")
	must(t, d.commit(t, c))
	must(t, d.commit(t, c))
	d.holds(t, c, true)
	p, err := d.contents.Project(t.Context(), prj)
	if err != nil || p.Seq != 1 {
		t.Errorf("the project: %+v, %v", p, err)
	}
}

func refusalOf(t *testing.T, err error) *content.Refusal {
	t.Helper()
	var refusal *content.Refusal
	if !errors.As(err, &refusal) {
		t.Fatalf("not refused: %v", err)
	}
	return refusal
}

func (d *desk) showsTheProject(t *testing.T) {
	stale := d.release(t, "k2")
	must(t, d.commit(t, d.release(t, "k1")))
	err := d.commit(t, stale)
	wants(t, "a commit over a project that moved", err, content.ErrMoved)
	now, readErr := d.contents.Project(t.Context(), prj)
	must(t, readErr)
	same(t, "the project that a refusal shows", *refusalOf(t, err).Project, now)
	d.holds(t, stale, false)
}

func (d *desk) showsTheUse(t *testing.T) {
	first := d.release(t, "k1")
	must(t, d.commit(t, first))
	second := d.release(t, "k1")
	refusal := refusalOf(t, d.commit(t, second))
	want := first.Use
	want.Key = ""
	if refusal.Use == nil || refusal.Project != nil || refusal.Busy || len(refusal.Other) > 0 {
		t.Fatalf("refused: %+v", refusal)
	}
	same(t, "the use that a refusal shows", *refusal.Use, want)
	d.holds(t, second, false)
}

func (d *desk) replacesUses(t *testing.T) {
	first := d.release(t, "k1")
	must(t, d.commit(t, first))
	later := func(after time.Duration) content.Commit {
		c := d.release(t, "k1")
		c.Release.At, c.Use.ExpiresAt = noon.Add(after), noon.Add(after+content.KeyTime)
		return c
	}
	if refusal := refusalOf(t, d.commit(t, later(content.KeyTime))); refusal.Use == nil {
		t.Errorf("in its last second: %+v", refusal)
	}
	second := later(content.KeyTime + time.Second)
	must(t, d.commit(t, second))
	d.holds(t, second, true)
}

func (d *desk) writesAllOrNothing(t *testing.T) {
	c := d.release(t, "k1")
	stray := store.Write{
		Table: d.place.Delivery, Key: store.Key{PK: "P#" + prj + "#D#dst_2", SK: "R#000000000001"},
		Put: store.Item{"status": store.Text("stray")},
	}
	_, err := d.place.Engine.Write(t.Context(), stray)
	must(t, err)
	refusal := refusalOf(t, d.commit(t, c))
	if !reflect.DeepEqual(refusal.Other, []string{"delivery of release 1 to dst_2 exists"}) || refusal.Project != nil || refusal.Use != nil {
		t.Errorf("refused: %+v", refusal)
	}
	for _, known := range []error{content.ErrBusy, content.ErrMoved} {
		if errors.Is(refusal, known) {
			t.Errorf("a refusal that asking again cannot end is %v", known)
		}
	}
	d.holds(t, c, false)
	p, err := d.contents.Project(t.Context(), prj)
	must(t, err)
	same(t, "the project", p, d.project)
	_, err = d.contents.Use(t.Context(), prj, "k1")
	wants(t, "the key", err, content.ErrMissing)
}

func (d *desk) knowsItsOwn(t *testing.T) {
	c := d.release(t, "")
	must(t, d.contents.Commit(t.Context(), rand.Text(), c))
	// The same again, under a request token that the table does not know: the
	// release's own name for its transaction tells that it was this one.
	must(t, d.contents.Commit(t.Context(), c.Release.Token, c))
	d.holds(t, c, true)
}

func (d *desk) listsReleases(t *testing.T) {
	for range 12 {
		must(t, d.commit(t, d.release(t, "")))
	}
	for _, c := range []struct {
		below int64
		limit int
		want  string
	}{
		{0, 100, "[12 11 10 9 8 7 6 5 4 3 2 1]"}, {0, 2, "[12 11]"}, {11, 2, "[10 9]"}, {1, 5, "[]"}, {100, 1, "[12]"},
	} {
		releases, err := d.contents.ListReleases(t.Context(), prj, c.below, c.limit)
		must(t, err)
		numbers := []int64{}
		for _, r := range releases {
			numbers = append(numbers, r.Number)
		}
		if got := fmt.Sprint(numbers); got != c.want {
			t.Errorf("%d releases below %d: %s, want %s", c.limit, c.below, got, c.want)
		}
	}
}

func token(id, project string) access.Token {
	return access.Token{ID: id, Name: "Ada", Role: access.Editor, Project: project, Ending: "wxyz", CreatedAt: noon, ExpiresAt: noon.Add(time.Hour)}
}

func (d *desk) keepsTokens(t *testing.T) {
	hash := sha256.Sum256
	everywhere := token("tok_2", "")
	everywhere.ExpiresAt = time.Time{}
	must(t, d.tokens.AddToken(t.Context(), hash([]byte("one")), token("tok_1", prj)))
	must(t, d.tokens.AddToken(t.Context(), hash([]byte("two")), everywhere))
	got, err := d.tokens.Token(t.Context(), hash([]byte("one")))
	must(t, err)
	same(t, "a token", got, token("tok_1", prj))
	got, err = d.tokens.Token(t.Context(), hash([]byte("two")))
	must(t, err)
	same(t, "a token of all projects", got, everywhere)
	_, err = d.tokens.Token(t.Context(), hash([]byte("three")))
	wants(t, "a token that is not there", err, content.ErrMissing)
	for project, want := range map[string][]access.Token{prj: {token("tok_1", prj)}, "": {everywhere}, "prj_other": {}} {
		listed, err := d.tokens.ListTokens(t.Context(), project)
		must(t, err)
		same(t, "a list of tokens", listed, want)
	}
	wants(t, "a removal from another's list", d.tokens.RemoveToken(t.Context(), "", "tok_1"), content.ErrMissing)
	must(t, d.tokens.RemoveToken(t.Context(), prj, "tok_1"))
	_, err = d.tokens.Token(t.Context(), hash([]byte("one")))
	wants(t, "a removed token", err, content.ErrMissing)
	wants(t, "a second removal", d.tokens.RemoveToken(t.Context(), prj, "tok_1"), content.ErrMissing)
	listed, err := d.tokens.ListTokens(t.Context(), prj)
	if err != nil || len(listed) > 0 {
		t.Errorf("still listed: %+v, %v", listed, err)
	}
}

func (d *desk) wantsTheProject(t *testing.T) {
	hash := sha256.Sum256([]byte("one"))
	wants(t, "a token", d.tokens.AddToken(t.Context(), hash, token("tok_1", "prj_missing")), content.ErrNoProject)
	_, err := d.tokens.Token(t.Context(), hash)
	wants(t, "the token", err, content.ErrMissing)
}

// readsDamage takes each attribute of each item away and makes it absurd.
// records are the items of the project that name who wrote them, by sort key.
func (d *desk) records(t *testing.T) map[string]store.Item {
	t.Helper()
	records := map[string]store.Item{}
	q := store.Query{Table: d.place.Content, PK: store.Text("P#" + prj), From: store.Text(" "), To: store.Text("~")}
	for {
		page, err := d.place.Engine.Query(t.Context(), q)
		must(t, err)
		for _, item := range page.Items {
			if sk, ok := item["sk"].(*types.AttributeValueMemberS); ok && item["who"] != nil {
				records[sk.Value] = item
			}
		}
		if q.After = page.Last; q.After == nil {
			return records
		}
	}
}

// writesRecords leaves a record of each kind: saves, a deletion, a draft that moved, and a release.
func (d *desk) writesRecords(t *testing.T) {
	t.Helper()
	must(t, d.save(t, "a", 1, 0))
	must(t, d.save(t, "gone", 1, 0))
	must(t, d.remove(t, "gone", 2, 1))
	must(t, d.save(t, "cafe\u0301", 1, 0))
	must(t, d.contents.ChangeDraft(t.Context(), rand.Text(), content.DraftChange{
		Project: prj, Draft: draft("caf\u00e9", 2), Over: 1, From: "cafe\u0301",
	}))
	must(t, d.commit(t, d.release(t, "k1")))
}

func (d *desk) recordsIDs(t *testing.T) {
	d.writesRecords(t)
	records := d.records(t)
	// Heads of a and é; saves of a and gone; a deletion of gone; é's first save, its move from there and to here; the release.
	if len(records) != 9 {
		t.Errorf("there are %d records: %v", len(records), slices.Sorted(maps.Keys(records)))
	}
	for sk, item := range records {
		if !reflect.DeepEqual(item["whoId"], store.Text("tok_ada")) {
			t.Errorf("%s has %v", sk, item["whoId"])
		}
	}
}

func (d *desk) readsRecordsWithoutIDs(t *testing.T) {
	d.writesRecords(t)
	for sk, item := range d.records(t) {
		for _, attribute := range []string{"pk", "sk", "whoId"} {
			delete(item, attribute)
		}
		put(t, d.place, store.Key{PK: "P#" + prj, SK: sk}, item)
	}
	want := draft("a", 1)
	want.WhoID = ""
	got, err := d.oneOf(t, prj, "a")
	must(t, err)
	same(t, "a draft without an id", got, want)
	listed, err := d.contents.ListDrafts(t.Context(), prj, "", 1)
	must(t, err)
	same(t, "a list of it", listed, []content.Draft{want})
	d.lastVersion(t, "gone", 2)
	r, err := d.contents.Release(t.Context(), prj, 1)
	if err != nil || r.Who != "Ada" || r.WhoID != "" {
		t.Errorf("a release without an id is read as %+v (%v)", r, err)
	}

	// Where no id is known, there is no attribute for it.
	anonymous := draft("b", 1)
	anonymous.WhoID = ""
	must(t, d.contents.ChangeDraft(t.Context(), rand.Text(), content.DraftChange{Project: prj, Draft: anonymous}))
	if _, there := d.records(t)["DOC#b"]["whoId"]; there {
		t.Error("an empty id is written")
	}
}

func (d *desk) readsDamage(t *testing.T) {
	must(t, d.save(t, "a", 1, 0))
	must(t, d.commit(t, d.release(t, "k1")))
	hash := sha256.Sum256([]byte("one"))
	must(t, d.tokens.AddToken(t.Context(), hash, token("tok_1", prj)))
	d.keep(t, []byte("data"), true)
	blob := content.HashOf([]byte("data")).String()
	for name, c := range map[string]struct {
		key      store.Key
		read     func() error
		optional []string // attributes that may be missing
	}{
		"project": {store.Key{PK: "P#" + prj, SK: "META"}, func() error { _, err := d.contents.Project(t.Context(), prj); return err }, []string{"manifest", "destinations"}},
		"draft":   {store.Key{PK: "P#" + prj, SK: "DOC#a"}, func() error { _, err := d.oneOf(t, prj, "a"); return err }, []string{"whoId"}},
		"release": {store.Key{PK: "P#" + prj, SK: "REL#000000000001"}, func() error { _, err := d.contents.Release(t.Context(), prj, 1); return err }, []string{"manifest", "destinations", "whoId"}},
		"use": {
			store.Key{PK: "P#" + prj, SK: "IDEM#" + content.HashOf([]byte("k1")).String()},
			func() error { _, err := d.contents.Use(t.Context(), prj, "k1"); return err }, nil,
		},
		"token": {
			store.Key{PK: "TOKEN#" + fmt.Sprintf("%x", hash), SK: "TOKEN"},
			func() error { _, err := d.tokens.Token(t.Context(), hash); return err }, []string{"expiresAt", "epoch"},
		},
		"content": {
			store.Key{PK: "B#" + prj + "#" + blob[:2], SK: blob},
			func() error {
				_, err := d.contents.Blobs(t.Context(), prj, []content.Hash{content.HashOf([]byte("data"))})
				return err
			}, nil,
		},
	} {
		item, err := d.place.Engine.Get(t.Context(), d.place.Content, c.key)
		must(t, err)
		must(t, c.read())
		for attribute, value := range item {
			if attribute == "pk" || attribute == "sk" || name == "token" && attribute == "hash" {
				continue // keys, and what is not read here
			}
			for _, absurd := range absurdities(attribute, value, slices.Contains(c.optional, attribute)) {
				damaged := maps.Clone(item)
				delete(damaged, "pk")
				delete(damaged, "sk")
				delete(damaged, attribute)
				if absurd != nil {
					damaged[attribute] = absurd
				}
				_, err := d.place.Engine.Write(t.Context(), store.Write{Table: d.place.Content, Key: c.key, Put: damaged})
				must(t, err)
				if c.read() == nil {
					t.Errorf("%s with %s = %v is read", name, attribute, absurd)
				}
			}
		}
	}
}

// absurdities are values that the attribute cannot have; nil: it is missing.
func absurdities(attribute string, value store.Value, optional bool) []store.Value {
	list := []store.Value{store.Flag(true)} // no attribute is one
	if !optional {
		list = append(list, nil)
	}
	switch value.(type) {
	case *types.AttributeValueMemberN:
		list = append(list, store.Number(-1))
	case *types.AttributeValueMemberB:
		if attribute != "data" {
			list = append(list, store.Bytes([]byte{1})) // no hash, and no row of them
		}
	}
	return list
}
