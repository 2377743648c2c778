//go:build stack

package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"colophon/client"
)

// binary builds the command once.
var binary = sync.OnceValues(func() (string, error) {
	folder, err := os.MkdirTemp("", "colophon-command-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, "colophon")
	out, err := exec.Command("go", "build", "-o", path, "../cmd/colophon").CombinedOutput()
	if err != nil {
		os.Stderr.Write(out)
	}
	return path, err
})

// command runs the command against the stack as an operator with a token, and
// returns what it wrote to standard output.
func command(t *testing.T, args ...string) string {
	t.Helper()
	out, code := tryCommand(t, args...)
	if code != 0 {
		t.Fatalf("colophon %s ended with %d: %s", strings.Join(args, " "), code, out)
	}
	return out
}

func tryCommand(t *testing.T, args ...string) (stdout string, code int) {
	t.Helper()
	path, err := binary()
	must(t, err)
	run := exec.CommandContext(t.Context(), path, append([]string{"--stack", running.Stack}, args...)...)
	run.Env = append(withoutAWS(os.Environ()), "AWS_ENDPOINT_URL="+running.Endpoint, "AWS_REGION="+running.Region,
		"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "COLOPHON_API="+running.API, "COLOPHON_TOKEN="+running.token)
	out, err := run.Output()
	if exit, ok := err.(*exec.ExitError); ok {
		t.Logf("colophon %s: %s", strings.Join(args, " "), exit.Stderr)
		return string(out), exit.ExitCode()
	}
	must(t, err)
	return string(out), 0
}

func withoutAWS(environment []string) []string {
	var kept []string
	for _, variable := range environment {
		if !strings.HasPrefix(variable, "AWS_") {
			kept = append(kept, variable)
		}
	}
	return kept
}

func TestTheDemoEndsWithDelivered(t *testing.T) {
	t.Parallel()
	out := command(t, "demo")
	if !strings.Contains(out, "\ndelivered\n") || !strings.Contains(out, "signature right") {
		t.Errorf("the demo says: %s", out)
	}
}

func TestTheCommandPublishesWatchesAndSaysWhatBecameOfIt(t *testing.T) {
	t.Parallel()
	token := strings.TrimSpace(command(t, "token", "create", "--name", "cli", "--role", "editor", "--all-projects"))
	if !strings.HasPrefix(token, "clp_") {
		t.Errorf("token create writes %q", token)
	}
	accepting, refusing := newReceiver(t), newReceiver(t, 400)
	good, bad := newProject(t, accepting), newProject(t, refusing)
	if out := command(t, "publish", good.id, "-m", "news", "--watch"); !strings.Contains(out, "delivered") {
		t.Errorf("publish --watch says: %s", out)
	}
	if out, code := tryCommand(t, "publish", bad.id, "--watch"); code != 4 || !strings.Contains(out, "refused (400)") {
		t.Errorf("publish to a refusing receiver ends with %d: %s", code, out)
	}
	if _, code := tryCommand(t, "publish", good.id); code != 3 {
		t.Errorf("publishing nothing new ends with %d, want 3", code)
	}
	if _, code := tryCommand(t, "publish"); code != 2 {
		t.Errorf("a missing argument ends with %d, want 2", code)
	}
	story := command(t, "delivery", "show", bad.id, bad.hooks[0], "1")
	if !strings.Contains(story, "answered 400") {
		t.Errorf("the story: %s", story)
	}
	command(t, "destination", "pause", good.id, good.hooks[0])
	command(t, "publish", good.id, "--force")
	good.becomes(2, client.DeliveryStateSkipped)
	if out := command(t, "destination", "resume", good.id, good.hooks[0]); !strings.Contains(out, "redeliver") {
		t.Errorf("resume says: %s", out)
	}
	command(t, "delivery", "redeliver", good.id, good.hooks[0], "2")
	good.becomes(2, client.DeliveryStateDelivered)
}
