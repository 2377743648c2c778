package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// With CDPATH, cd looks elsewhere first and prints where it went. Each script
// begins with where it is itself.
func TestScriptsFindTheirFolderWhateverCDPATHSays(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	list := exec.CommandContext(t.Context(), "git", "ls-files")
	list.Dir = root
	files, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	scripts := 0
	for _, name := range strings.Fields(string(files)) {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil || !strings.HasPrefix(string(text), "#!") {
			continue
		}
		prologue, here, changes := strings.Cut(string(text), "$(cd \"$(dirname \"$0\")")
		if !changes {
			continue
		}
		scripts++
		line, _, _ := strings.Cut(here, "\n")
		statement := prologue[strings.LastIndex(prologue, "\n")+1:] + "$(cd \"$(dirname \"$0\")" + line
		variable, _, _ := strings.Cut(strings.TrimSpace(statement), "=")
		start := "unset CDPATH\n"
		if !strings.Contains(prologue, start) {
			start = ""
		}
		command := exec.CommandContext(t.Context(), "bash", "-c", start+strings.TrimSpace(statement)+"\nprintf %s \"$"+variable+"\"", name)
		command.Dir, command.Env = root, append(os.Environ(), "CDPATH=.")
		out, err := command.CombinedOutput()
		if err != nil || strings.Contains(string(out), "\n") {
			t.Errorf("%s is in %q, %v", name, out, err)
		}
	}
	if scripts < 3 {
		t.Errorf("only %d scripts were looked at", scripts)
	}
}
