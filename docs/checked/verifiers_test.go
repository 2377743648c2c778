//go:build verifiers

package checked_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// verifiers is where "make verifiers" installs the standard's libraries.
func verifiers(t testing.TB, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../../.tools/verifiers", name))
	must(t, err)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("not installed (run `make verifiers`): %v", err)
	}
	return path
}

func TestTheJavaScriptReceiver(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	must(t, err)
	source := write(t, "receiver.mjs", snippet(t, receivingPage, "js"))
	must(t, os.Symlink(verifiers(t, "node_modules"), filepath.Join(filepath.Dir(source), "node_modules")))
	holdReceiver(t, node, source)
}

func TestThePythonReceiver(t *testing.T) {
	t.Parallel()
	source := write(t, "receiver.py", snippet(t, receivingPage, "python"))
	holdReceiver(t, verifiers(t, "python/bin/python"), source)
}
