//go:build pages

package checked_test

import (
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"colophon/docs/checked"
)

// TestTheCommandsOfThePagesWork runs each command that "make pages" has to run, in
// the order of the pages, on a port and in folders of their own. The order matters:
// one command reads what the one before it wrote.
func TestTheCommandsOfThePagesWork(t *testing.T) {
	environment := append(os.Environ(),
		"COLOPHON_PORT="+strconv.Itoa(freePort(t)), "GOBIN="+t.TempDir(), "FOLDER="+t.TempDir(), "MAKEFLAGS=")
	t.Cleanup(func() { _, _ = shell(environment, "make down") })
	done := map[string]bool{}
	for _, c := range allCommands(t) {
		run := checked.Runs[c.Name]
		if run.Where != checked.ByPages || done[c.Name] {
			continue
		}
		done[c.Name] = true
		command := run.As
		if command == "" {
			command = c.Text
		}
		t.Run(c.Name, func(t *testing.T) {
			if said, err := shell(environment, command); err != nil {
				t.Errorf("%s: %s: %v\n%s", c, command, err, said)
			}
		})
	}
	if len(done) < 20 {
		t.Errorf("%d commands were run", len(done))
	}
}

// shell runs a command from the repository's root, as a reader would.
func shell(environment []string, command string) (said string, err error) {
	run := exec.Command("bash", "-c", command)
	run.Dir, run.Env = root, environment
	out, err := run.CombinedOutput()
	lines := strings.Split(string(out), "\n")
	return strings.Join(lines[max(0, len(lines)-60):], "\n"), err
}

func freePort(t testing.TB) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}
