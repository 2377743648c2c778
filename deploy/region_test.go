package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestADeploymentGoesToTheUsersRegion(t *testing.T) {
	t.Parallel()
	python, err := filepath.Abs(filepath.Join("..", ".tools", "venv-localstack", "bin", "python"))
	if err != nil {
		t.Fatal(err)
	}
	if given := os.Getenv("COLOPHON_PYTHON"); given != "" {
		python = given
	}
	config := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(config, []byte("[default]\nregion = us-west-2\n[profile team]\nregion = ap-southeast-2\n[profile bare]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		does, want  string
		environment []string
	}{
		{"AWS_REGION", "eu-north-1", []string{"AWS_REGION=eu-north-1", "AWS_DEFAULT_REGION=us-east-2", "AWS_PROFILE=team"}},
		{"AWS_DEFAULT_REGION", "us-east-2", []string{"AWS_DEFAULT_REGION=us-east-2", "AWS_PROFILE=team"}},
		{"the profile's", "ap-southeast-2", []string{"AWS_PROFILE=team"}},
		{"the default profile's", "us-west-2", nil},
		{"none is known", "eu-west-1", []string{"AWS_PROFILE=bare"}},
		{"no settings at all", "eu-west-1", []string{"AWS_CONFIG_FILE=/nowhere"}},
	} {
		command := exec.CommandContext(t.Context(), "./region")
		command.Env = append([]string{"PATH=" + os.Getenv("PATH"), "COLOPHON_PYTHON=" + python, "AWS_CONFIG_FILE=" + config, "AWS_SHARED_CREDENTIALS_FILE=/nowhere"}, row.environment...)
		out, err := command.CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != row.want {
			t.Errorf("%s: got %q, %v, want %s", row.does, got, err, row.want)
		}
	}
}
