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
func order(t *testing.T, name string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, name), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestATestBuildIsKilledAtTheNamedPointAndNowhereElse(t *testing.T) {
	t.Parallel()
	program := walk(t, "killpoints")
	for i, name := range killpoint.Names() {
		passed, killed := run(t, program, "COLOPHON_ORDERS="+order(t, "kill-"+string(name)))
		if !killed || len(passed) != i {
			t.Errorf("%s: killed %v after %d points, want after %d", name, killed, len(passed), i)
		}
	}
	for _, folder := range []string{order(t, "kill-no-such-point"), ""} {
		if passed, killed := run(t, program, "COLOPHON_ORDERS="+folder); killed || len(passed) != len(killpoint.Names()) {
			t.Errorf("killed %v after %v without an order", killed, passed)
		}
	}
}

func TestAKillHappensOnceAcrossRestarts(t *testing.T) {
	t.Parallel()
	program := walk(t, "killpoints")
	orders := "COLOPHON_ORDERS=" + order(t, "kill-after-send")
	if _, killed := run(t, program, orders); !killed {
		t.Fatal("the first run was not killed")
	}
	if _, killed := run(t, program, orders); killed {
		t.Fatal("the second run was killed too")
	}
}

func TestAnOrderToPanicIsCarriedOutOnceAtTheNamedPoint(t *testing.T) {
	t.Parallel()
	program := walk(t, "killpoints")
	for i, name := range killpoint.Names() {
		cmd := exec.Command(program)
		cmd.Env = append(os.Environ(), "COLOPHON_ORDERS="+order(t, "panic-"+string(name)))
		out, err := cmd.Output()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || !strings.Contains(string(exit.Stderr), "panic: killpoint: ordered at "+string(name)) {
			t.Errorf("%s: ended with %v, want a panic there", name, err)
		}
		if passed := strings.Fields(string(out)); len(passed) != i {
			t.Errorf("%s: panicked after %d points, want after %d", name, len(passed), i)
		}
		again := exec.Command(program)
		again.Env = cmd.Env
		if said, err := again.CombinedOutput(); err != nil {
			t.Errorf("%s: the second run ended with %v: %s", name, err, said)
		}
	}
}

func TestAnOrdinaryBuildCannotBeKilled(t *testing.T) {
	t.Parallel()
	program := walk(t, "")
	for _, name := range killpoint.Names() {
		for _, kind := range []string{"kill-", "panic-"} {
			if passed, killed := run(t, program, "COLOPHON_ORDERS="+order(t, kind+string(name))); killed || len(passed) != len(killpoint.Names()) {
				t.Errorf("%s%s: killed %v after %v", kind, name, killed, passed)
			}
		}
	}
}
