package checked_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"colophon/docs/checked"
)

const root = "../.."

// allCommands are the commands of all pages.
func allCommands(t testing.TB) []checked.Command {
	t.Helper()
	pages, err := checked.Pages(root)
	must(t, err)
	var all []checked.Command
	for _, page := range pages {
		commands, err := checked.ReadCommands(root, page)
		must(t, err)
		all = append(all, commands...)
	}
	if len(all) < 50 {
		t.Fatalf("found %d commands on %d pages", len(all), len(pages))
	}
	return all
}

func TestEachCommandOnAPageIsRunOrNeedsAWS(t *testing.T) {
	t.Parallel()
	onAPage := map[string]bool{}
	for _, c := range allCommands(t) {
		onAPage[c.Name] = true
		if checked.Runs[c.Name].Where == "" {
			t.Errorf("%s: runs.go does not say what runs it", c)
		}
	}
	ci := read(t, ".ci/run") + read(t, "Makefile")
	for name, run := range checked.Runs {
		if !onAPage[name] {
			t.Errorf("runs.go has a row for a command that is on no page: %s", name)
		}
		if run.Where == checked.ByCI && (run.As == "" || !strings.Contains(ci, run.As)) {
			t.Errorf("%s: neither .ci/run nor the Makefile has %q", name, run.As)
		}
	}
}

func read(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	must(t, err)
	return string(text)
}

func TestCommandsAreFoundOnAPage(t *testing.T) {
	t.Parallel()
	page := "Type `make up`, or `make`.\n\n```sh\nmake demo  # shows it\n\ncurl -d '{\"#\": 1}' \\\n  $API\n```\n\n```go\n`sam x`\n```\nThen `aws sqs\n  purge-queue` or `internal/x` or `A=b sam build`.\n"
	folder := t.TempDir()
	must(t, os.WriteFile(filepath.Join(folder, "page.md"), []byte(page), 0o600))
	got, err := checked.ReadCommands(folder, "page.md")
	must(t, err)
	want := []checked.Command{
		{Page: "page.md", Line: 3, Name: "page.md, block 1", Text: "make demo\ncurl -d '{\"#\": 1}' \\\n  $API"},
		{Page: "page.md", Line: 1, Name: "make up", Text: "make up"},
		{Page: "page.md", Line: 13, Name: "aws sqs purge-queue", Text: "aws sqs purge-queue"},
		{Page: "page.md", Line: 14, Name: "A=b sam build", Text: "A=b sam build"},
	}
	if len(got) != len(want) {
		t.Fatalf("found %q", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("found %+v, want %+v", got[i], want[i])
		}
	}
}
