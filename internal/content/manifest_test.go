package content_test

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"colophon/internal/content"
)

// someDocuments are up to 400 documents in the order of their paths. Short and
// long paths are mixed, so that parts end for either reason.
func someDocuments() *rapid.Generator[[]content.Document] {
	document := rapid.Custom(func(t *rapid.T) content.Document {
		path := fmt.Sprintf("%06d", rapid.IntRange(0, 999_999).Draw(t, "path"))
		length := rapid.SampledFrom([]int{6, 40, content.LongestPath}).Draw(t, "length")
		return content.Document{
			Path: path + strings.Repeat("x", length-len(path)),
			Hash: content.HashOf([]byte{byte(rapid.IntRange(0, 3).Draw(t, "content"))}),
			Size: rapid.Int64Range(0, content.LargestDocument).Draw(t, "size"),
			Type: rapid.SampledFrom([]string{"text/markdown", "application/x; " + strings.Repeat("a", 100) + "=1"}).Draw(t, "type"),
		}
	})
	return rapid.Custom(func(t *rapid.T) []content.Document {
		byPath := func(d content.Document) string { return d.Path }
		documents := rapid.SliceOfNDistinct(document, 0, 400, byPath).Draw(t, "documents")
		slices.SortFunc(documents, func(a, b content.Document) int { return strings.Compare(a.Path, b.Path) })
		return documents
	})
}

func join(t *rapid.T, parts [][]byte) []content.Document {
	var all []content.Document
	for _, p := range parts {
		documents, err := content.ParsePart(p)
		if err != nil {
			t.Fatal(err)
		}
		if len(documents) == 0 {
			t.Fatal("an empty part")
		}
		all = append(all, documents...)
	}
	return all
}

func TestAManifestIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		documents := someDocuments().Draw(t, "documents")
		hashes, parts := content.Cut(documents)
		if got := join(t, parts); len(got) != len(documents) || len(got) > 0 && !reflect.DeepEqual(got, documents) {
			t.Fatalf("read %d documents, wrote %d", len(got), len(documents))
		}
		for i, p := range parts {
			if len(p) > content.LargestPart {
				t.Fatalf("part %d has %d bytes", i, len(p))
			}
			if len(p) < content.SmallestPart && i < len(parts)-1 {
				t.Fatalf("part %d of %d has %d bytes", i, len(parts), len(p))
			}
			if content.HashOf(p) != hashes[i] {
				t.Fatalf("part %d is not what its hash says", i)
			}
		}
	})
}

func TestAChangedDocumentChangesItsOwnPartAlone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		documents := someDocuments().Filter(func(d []content.Document) bool { return len(d) > 0 }).Draw(t, "documents")
		before, _ := content.Cut(documents)
		changed := slices.Clone(documents)
		i := rapid.IntRange(0, len(changed)-1).Draw(t, "which")
		changed[i].Hash = content.HashOf([]byte("changed"))
		after, _ := content.Cut(changed)
		if len(before) != len(after) {
			t.Fatalf("%d parts became %d", len(before), len(after))
		}
		differ := 0
		for i := range before {
			if before[i] != after[i] {
				differ++
			}
		}
		if differ != 1 {
			t.Fatalf("%d parts differ", differ)
		}
	})
}

// Two manifests with the same documents behind an insertion come to the same
// cuts soon: over many insertions only few parts change.
func TestAnInsertedDocumentMovesFewCuts(t *testing.T) {
	t.Parallel()
	var documents []content.Document
	for i := range content.MostDocuments {
		documents = append(documents, content.Document{Path: fmt.Sprintf("guides/%06d.md", i*10), Type: "text/markdown"})
	}
	before, _ := content.Cut(documents)
	if len(before) < 10 {
		t.Fatalf("only %d parts", len(before))
	}
	total := 0
	const insertions = 100
	for n := range insertions {
		at := n * len(documents) / insertions
		inserted := content.Document{Path: documents[at].Path + "-more", Type: "text/markdown"}
		after, _ := content.Cut(slices.Insert(slices.Clone(documents), at+1, inserted))
		for _, hash := range after {
			if !slices.Contains(before, hash) {
				total++
			}
		}
	}
	if mean := float64(total) / insertions; mean > 3 {
		t.Errorf("an insertion changes %.1f of %d parts", mean, len(before))
	}
}

// Whoever chooses paths so that each ends a part still gets parts of a decent size.
func TestPathsThatAllEndAPartMakeFewParts(t *testing.T) {
	t.Parallel()
	var documents []content.Document
	for i := 0; len(documents) < content.MostDocuments; i++ {
		if path := fmt.Sprintf("%08d", i); content.HashOf([]byte(path))[0]%32 == 0 {
			documents = append(documents, content.Document{Path: path, Type: "text/markdown"})
		}
	}
	hashes, parts := content.Cut(documents)
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	if most := size/content.SmallestPart + 1; len(hashes) > most {
		t.Errorf("%d parts of %d bytes in all", len(hashes), size)
	}
}

// Paths of which none ends a part are cut where a part is full.
func TestPathsThatNeverEndAPartAreCutAtTheLargestSize(t *testing.T) {
	t.Parallel()
	var documents []content.Document
	for i := 0; len(documents) < content.MostDocuments; i++ {
		path := fmt.Sprintf("%08d%s", i, strings.Repeat("x", content.LongestPath-8))
		if content.HashOf([]byte(path))[0]%32 != 0 {
			documents = append(documents, content.Document{Path: path, Type: "text/markdown"})
		}
	}
	_, parts := content.Cut(documents)
	if len(parts) < 4 {
		t.Errorf("%d parts", len(parts))
	}
	for _, p := range parts {
		if len(p) > content.LargestPart {
			t.Errorf("a part of %d bytes", len(p))
		}
	}
}

func FuzzAPartIsReadWholeOrNotAtAll(f *testing.F) {
	_, parts := content.Cut([]content.Document{{Path: "a/b.md", Size: 3, Type: "text/markdown"}, {Path: "ö", Type: "a/b"}})
	f.Add(parts[0])
	f.Add([]byte("colophon manifest 1\n"))
	f.Add([]byte("colophon manifest 1\nabc 1\ttext/plain\tpath\n"))
	f.Add(bytes.TrimSuffix(parts[0], []byte("\n")))
	f.Fuzz(func(t *testing.T, data []byte) {
		documents, err := content.ParsePart(data)
		if err != nil {
			return
		}
		// What is read can be written: nothing was lost or guessed.
		var written [][]byte
		for _, d := range documents {
			_, one := content.Cut([]content.Document{d})
			written = append(written, one...)
		}
		joined := []byte("colophon manifest 1\n")
		for _, one := range written {
			joined = append(joined, bytes.TrimPrefix(one, []byte("colophon manifest 1\n"))...)
		}
		if !bytes.Equal(joined, data) {
			t.Errorf("read %q, which is written as %q", data, joined)
		}
	})
}
