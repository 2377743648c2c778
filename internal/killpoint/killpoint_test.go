package killpoint_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"colophon/internal/killpoint"
)

// walk builds the program that passes every point, with or without the tag.
func walk(t *testing.T, tags string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "walk")
	if out, err := exec.Command("go", "build", "-tags", tags, "-o", program, "./testdata/walk").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return program
}

// run gives the points that were passed, and whether the process was killed.
func run(t *testing.T, program string, env ...string) (passed []string, killed bool) {
	t.Helper()
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			t.Fatal(err)
		}
		status := exit.Sys().(syscall.WaitStatus)
		if !status.Signaled() || status.Signal() != syscall.SIGKILL {
			t.Fatalf("ended otherwise: %v\n%s", err, exit.Stderr)
		}
		killed = true
	}
	return strings.Fields(string(out)), killed
}

// order makes a folder with one order in it.
func order(t *testing.T, point string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "kill-"+point), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestATestBuildIsKilledAtTheNamedPointAndNowhereElse(t *testing.T) {
	t.Parallel()
	program := walk(t, "killpoints")
	for i, name := range killpoint.Names() {
		passed, killed := run(t, program, "COLOPHON_ORDERS="+order(t, string(name)))
		if !killed || len(passed) != i {
			t.Errorf("%s: killed %v after %d points, want after %d", name, killed, len(passed), i)
		}
	}
	for _, folder := range []string{order(t, "no-such-point"), ""} {
		if passed, killed := run(t, program, "COLOPHON_ORDERS="+folder); killed || len(passed) != len(killpoint.Names()) {
			t.Errorf("killed %v after %v without an order", killed, passed)
		}
	}
}

func TestAKillHappensOnceAcrossRestarts(t *testing.T) {
	t.Parallel()
	program := walk(t, "killpoints")
	orders := "COLOPHON_ORDERS=" + order(t, "after-send")
	if _, killed := run(t, program, orders); !killed {
		t.Fatal("the first run was not killed")
	}
	if _, killed := run(t, program, orders); killed {
		t.Fatal("the second run was killed too")
	}
}

func TestAnOrdinaryBuildCannotBeKilled(t *testing.T) {
	t.Parallel()
	program := walk(t, "")
	for _, name := range killpoint.Names() {
		if _, killed := run(t, program, "COLOPHON_ORDERS="+order(t, string(name))); killed {
			t.Errorf("killed at %s", name)
		}
	}
}
