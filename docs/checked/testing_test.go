package checked_test

import (
	"maps"
	"regexp"
	"slices"
	"testing"
)

const testingPage = "../testing.md"

// What becomes of releases that follow one another (P), and of what is killed, lost
// or repeated (K): each is shown on the deployed stack.
var stackCases = []string{"P01", "P02", "P05", "P09", "K03", "K05", "K09", "K10", "K13", "K17"}

func TestEachCaseHasATestOnTheStackAndEachTestOnTheStackIsNamed(t *testing.T) {
	t.Parallel()
	page := readPage(t, testingPage)
	onTheStack := definedTests(t, "../../e2e")
	if len(onTheStack) < 30 {
		t.Fatalf("found %d tests on the stack", len(onTheStack))
	}
	for _, id := range stackCases {
		rows := regexp.MustCompile(`(?m)^\| `+id+` \| .+ \| (.+) \|$`).FindAllStringSubmatch(page, -1)
		if len(rows) != 1 {
			t.Errorf("%s has %d rows, want one", id, len(rows))
			continue
		}
		tests := namedTests(rows[0][1])
		if len(tests) == 0 {
			t.Errorf("%s names no test", id)
		}
		for _, name := range tests {
			if !onTheStack[name] {
				t.Errorf("%s: %s is no test on the stack", id, name)
			}
		}
	}
	named := namedTests(page)
	for _, name := range slices.Sorted(maps.Keys(onTheStack)) {
		if !slices.Contains(named, name) {
			t.Errorf("docs/testing.md does not say what %s shows", name)
		}
	}
}
