package content_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"colophon/internal/content"
)

func TestPaths(t *testing.T) {
	t.Parallel()
	for path, good := range map[string]bool{
		"start.md": true, "guides/start.md": true, "ö/日本.md": true, "a b": true, ".hidden": true, "a..b": true, "...": true, "a?b&c=%20": true,
		strings.Repeat("x", content.LongestPath): true,
		"":                                       false, "/start.md": false, "guides/": false, "a//b": false, "/": false,
		".": false, "..": false, "a/../b": false, "a/./b": false, "a/..": false,
		"a#b": false, "a\nb": false, "a\tb": false, "a\x00b": false, "a\x7fb": false, "a\u0085b": false, "\xff": false,
		strings.Repeat("x", content.LongestPath+1):       false,
		strings.Repeat("ö", content.LongestPath/2) + "x": false,
	} {
		err := content.CheckPath(path)
		if (err == nil) != good {
			t.Errorf("%q: %v", path, err)
		}
		if err != nil && code(t, err) != content.CodeInvalid {
			t.Errorf("%q: %v", path, err)
		}
	}
}

func FuzzAPathThatPassesIsSafeInKeysManifestsAndCursors(f *testing.F) {
	for _, path := range []string{"start.md", "a/b", "../x", "a#b", "a\tb", "\xff", "ö"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		if content.CheckPath(path) != nil {
			return
		}
		if !utf8.ValidString(path) || len(path) > content.LongestPath || strings.ContainsAny(path, "#\t\n\x00") {
			t.Errorf("%q passes", path)
		}
		for segment := range strings.SplitSeq(path, "/") {
			if segment == "" || segment == "." || segment == ".." {
				t.Errorf("%q passes", path)
			}
		}
		_, parts := content.Cut([]content.Document{{Path: path, Type: "a/b"}})
		if back, err := content.ParsePart(parts[0]); err != nil || len(back) != 1 || back[0].Path != path {
			t.Errorf("%q comes back from a manifest as %+v (%v)", path, back, err)
		}
		if back, err := content.DecodeDraftCursor(content.EncodeDraftCursor(path)); err != nil || back != path {
			t.Errorf("%q comes back from a cursor as %q (%v)", path, back, err)
		}
	})
}

func FuzzACursorIsReadOrRefused(f *testing.F) {
	for _, cursor := range []string{"", "ZGE", "cjE", "cjA", "r1", "ZA", "====", content.EncodeDraftCursor("a/b")} {
		f.Add(cursor)
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		if path, err := content.DecodeDraftCursor(cursor); err == nil && cursor != "" && content.CheckPath(path) != nil {
			t.Errorf("%q gives the path %q", cursor, path)
		}
		number, err := content.DecodeReleaseCursor(cursor)
		if err == nil && cursor != "" && strings.Trim(number, "0123456789") != "" {
			t.Errorf("%q gives the number %q", cursor, number)
		}
		if err != nil && code(t, err) != content.CodeInvalid {
			t.Errorf("%q: %v", cursor, err)
		}
	})
}

func TestProjectIDs(t *testing.T) {
	t.Parallel()
	for id, good := range map[string]bool{
		"prj_abcdefghij234567abcd": true,
		"":                         false, "prj_": false, "prj_abcdefghij234567abc": false, "prj_abcdefghij234567abcde": false,
		"prj_abcdefghij234567abc1": false, "prj_abcdefghij234567abcD": false, "prj_abcdefghij#34567abcd": false, "dst_abcdefghij234567abcd": false,
	} {
		if content.IsProjectID(id) != good {
			t.Errorf("%q: %v", id, !good)
		}
	}
}

func TestADocumentWithoutATypeHasThatOfItsPath(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for path, want := range map[string]string{
		"guide/start.md": "text/markdown; charset=utf-8", "GUIDE.MD": "text/markdown; charset=utf-8", "data.json": "application/json",
		"notes": "text/plain; charset=utf-8", "v1.2/notes": "text/plain; charset=utf-8", "song.flac": "text/plain; charset=utf-8",
	} {
		saved, err := w.PutDocument(t.Context(), w.project, content.Save{Path: path, Content: []byte("x"), Who: "Ada"})
		if err != nil || saved.Type != want {
			t.Errorf("%s is saved as %q, want %q (%v)", path, saved.Type, want, err)
		}
	}
}
