package store_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"colophon/internal/store/storetest"
)

// Whatever the length of its pages, what is read of a table is all of it.
func TestPagesThatAreShortHideNothing(t *testing.T) {
	t.Parallel()
	short := func(t *testing.T) storetest.Place {
		t.Helper()
		place := newPlace(t)
		place.Engine = &storetest.Short{Engine: place.Engine}
		return place
	}
	for name, suite := range map[string]func(*testing.T, func(*testing.T) storetest.Place){
		"Engine": storetest.Engine, "Contents": storetest.Contents, "Destinations": storetest.Destinations, "Sweep": storetest.Sweep,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			suite(t, short)
		})
	}
}

// A query that does not go through collect takes a short page for the whole.
func TestEachQueryOfTheStoreIsReadUntilItsEnd(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	pages := 0
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			called, ok := n.(*ast.SelectorExpr)
			switch {
			case !ok || called.Sel.Name != "Query":
			case path == "query.go":
				pages++
			case path == "dynamo.go": // the client's own
			default:
				t.Errorf("%v asks for one page: read it by collect", files.Position(n.Pos()))
			}
			return true
		})
	}
	if pages != 1 {
		t.Errorf("collect asks for a page in %d places, want 1", pages)
	}
}
