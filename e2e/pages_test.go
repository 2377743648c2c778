//go:build stack

package e2e_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"colophon/client"
	"colophon/docs/checked"
)

// TestTheCommandsOfThePagesWorkOnTheStack types what the pages tell a reader to type,
// with this stack's address and a project's ids filled in. It does not run in parallel:
// some commands act on the whole stack.
func TestTheCommandsOfThePagesWorkOnTheStack(t *testing.T) {
	receiver := newReceiver(t)
	pages, err := checked.Pages("..")
	must(t, err)
	done := map[string]bool{}
	for _, page := range pages {
		commands, err := checked.ReadCommands("..", page)
		must(t, err)
		for _, c := range commands {
			if checked.Runs[c.Name].Where == checked.ByStack && !done[c.Name] {
				done[c.Name] = true
				t.Run(c.Name, func(t *testing.T) { typeCommand(t, c, receiver) })
			}
		}
	}
	if len(done) < 10 {
		t.Errorf("%d commands were typed", len(done))
	}
}

// filledIn matches a line that gives a variable a value which the reader fills in.
var filledIn = regexp.MustCompile(`(?m)^(export )?[A-Z_]+=\S*….*\n?`)

func typeCommand(t *testing.T, c checked.Command, r *receiver) {
	p := newProject(t, r)
	p.publish()
	p.becomes(1, client.DeliveryStateDelivered)
	p.save("guide.md", "# Guide, changed\n")
	text := c.Text
	if run := checked.Runs[c.Name]; run.As != "" {
		text = run.As
	}
	text = filledIn.ReplaceAllString(text, "")
	for _, fill := range []struct{ placeholder, value string }{
		{"https://www.example.com/hook", r.URL}, {"$PROJECT", p.id}, {"PROJECT", p.id}, {"$DESTINATION", p.hooks[0]}, {"DESTINATION", p.hooks[0]}, {"RELEASE", "1"},
	} {
		text = strings.ReplaceAll(text, fill.placeholder, fill.value)
	}
	path, err := binary()
	must(t, err)
	folder := t.TempDir()
	must(t, os.WriteFile(filepath.Join(folder, "index.md"), []byte("# Home\n"), 0o600))
	environment := append(withoutAWS(os.Environ()), "AWS_ENDPOINT_URL="+running.Endpoint, "AWS_REGION="+running.Region,
		"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "PATH="+filepath.Dir(path)+":"+os.Getenv("PATH"),
		"COLOPHON_API="+running.API, "COLOPHON_TOKEN="+running.token,
		"API="+running.API, "TOKEN="+running.token, "SECRET="+p.secret[0])
	text = regexp.MustCompile(`(?m)^colophon `).ReplaceAllString(text, "colophon --stack "+running.Stack+" ")
	// What listens until it is interrupted gets a process of its own.
	var rest []string
	for _, line := range strings.Split(text, "\n") {
		if strings.Contains(line, " receive ") {
			listen(t, line, environment)
			continue
		}
		rest = append(rest, line)
	}
	// curl reports a refusal by its text alone, so it is told to fail of one.
	run := exec.CommandContext(t.Context(), "bash", "-e", "-o", "pipefail", "-c",
		"curl() { command curl --fail-with-body \"$@\"; }\n"+strings.Join(rest, "\n"))
	run.Dir, run.Env = folder, environment
	out, err := run.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s\n%s", c, err, strings.Join(rest, "\n"), out)
	}
}

// listen starts a command that listens, waits until it says so, and interrupts it.
func listen(t *testing.T, command string, environment []string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	run := exec.CommandContext(ctx, "bash", "-c", "exec "+command)
	run.Env = environment
	run.Cancel = func() error { return run.Process.Signal(os.Interrupt) }
	out, err := run.StdoutPipe()
	must(t, err)
	must(t, run.Start())
	lines := bufio.NewScanner(out)
	var said []string
	for !slices.ContainsFunc(said, func(line string) bool { return strings.HasPrefix(line, "Receiving at http://") }) && lines.Scan() {
		said = append(said, lines.Text())
	}
	if lines.Err() != nil || len(said) == 0 || !strings.HasPrefix(said[len(said)-1], "Receiving at http://") {
		t.Errorf("%s says %q", command, said)
	}
	stop()
	_ = run.Wait() // interrupted
}
