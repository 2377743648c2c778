package checked_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const securityPage = "../security.md"

func readPage(t testing.TB, page string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	must(t, err)
	return string(text)
}

func goList(t testing.TB, arguments ...string) []byte {
	t.Helper()
	command := exec.Command("go", append([]string{"list"}, arguments...)...)
	command.Dir = "../.."
	var said bytes.Buffer
	command.Stderr = &said
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go list %v: %v\n%s", arguments, err, &said)
	}
	return out
}

// directDependencies are the modules whose packages are imported by any package or
// test of ours, under any build tag, by path.
func directDependencies(t testing.TB) map[string]string {
	t.Helper()
	imported := map[string]bool{}
	for _, tags := range []string{"", "stack,verifiers,netns,killpoints"} {
		for decoder := json.NewDecoder(bytes.NewReader(goList(t, "-tags", tags, "-json=Imports,TestImports,XTestImports", "./..."))); decoder.More(); {
			var p struct{ Imports, TestImports, XTestImports []string }
			must(t, decoder.Decode(&p))
			for _, path := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
				if first, _, _ := strings.Cut(path, "/"); strings.Contains(first, ".") {
					imported[path] = true
				}
			}
		}
	}
	direct := map[string]string{}
	paths := slices.Sorted(maps.Keys(imported))
	for decoder := json.NewDecoder(bytes.NewReader(goList(t, append([]string{"-json=Module"}, paths...)...))); decoder.More(); {
		var p struct {
			Module struct{ Path, Version string }
		}
		must(t, decoder.Decode(&p))
		direct[p.Module.Path] = p.Module.Version
	}
	return direct
}

func TestEachDirectDependencyIsListedWithItsVersion(t *testing.T) {
	t.Parallel()
	listed := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (v[^ ]+) \\| \\d{4}-\\d\\d-\\d\\d \\| .+ \\|$").FindAllStringSubmatch(readPage(t, securityPage), -1) {
		listed[row[1]] = row[2]
	}
	direct := directDependencies(t)
	if len(direct) < 10 {
		t.Fatalf("found %v only", direct)
	}
	for path, version := range direct {
		if listed[path] != version {
			t.Errorf("docs/security.md lists %s as %q, it is %s: look it up (docs/security.md says how) and write the row", path, listed[path], version)
		}
	}
	for path := range listed {
		if direct[path] == "" {
			t.Errorf("docs/security.md lists %s, which nothing imports", path)
		}
	}
}

func TestEachTestThatThePagesNameExists(t *testing.T) {
	t.Parallel()
	defined := definedTests(t, "../..")
	for page, least := range map[string]int{securityPage: 50, testingPage: 50, designPage: 10} {
		named := namedTests(readPage(t, page))
		if len(named) < least {
			t.Fatalf("%s names %d tests", page, len(named))
		}
		for _, name := range named {
			if !defined[name] {
				t.Errorf("%s: there is no test %s", page, name)
			}
		}
	}
}

// namedTests are the tests that a text names.
func namedTests(text string) (names []string) {
	for _, found := range regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9]+|test_[a-z0-9_]+)`").FindAllStringSubmatch(text, -1) {
		names = append(names, found[1])
	}
	return names
}

// definedTests are the tests in a folder and those below it, under any build tag.
func definedTests(t testing.TB, folder string) map[string]bool {
	t.Helper()
	defined := map[string]bool{}
	definition := regexp.MustCompile(`(?m)^(?:func|def) ((?:Test|Fuzz|test_)\w+)\(`)
	must(t, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() != ".." && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go") && !strings.HasPrefix(entry.Name(), "test_"):
			return nil
		}
		text, err := os.ReadFile(path)
		for _, found := range definition.FindAllSubmatch(text, -1) {
			defined[string(found[1])] = true
		}
		return err
	}))
	delete(defined, "TestMain")
	return defined
}

// An empty database would let govulncheck say that all is well.
func TestAnEmptyVulnerabilityDatabaseIsNoCheck(t *testing.T) {
	t.Parallel()
	script, err := filepath.Abs("../../.ci/vulncheck")
	must(t, err)
	empty, none := t.TempDir(), filepath.Join(t.TempDir(), "none")
	must(t, os.Mkdir(filepath.Join(empty, "index"), 0o700))
	must(t, os.WriteFile(filepath.Join(empty, "index", "modules.json"), []byte("[]"), 0o600))
	for _, database := range []string{empty, none} {
		command := exec.Command(script)
		command.Env = append(os.Environ(), "GOVULNDB=file://"+database)
		said, err := command.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 75 || !strings.Contains(string(said), "NOT CHECKED") {
			t.Errorf("%v:\n%s", err, said)
		}
	}
}
