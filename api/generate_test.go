package api_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestGeneratedCodeIsWhatTheDescriptionSays(t *testing.T) {
	t.Parallel()
	halves := []struct{ name, config, committed string }{
		{"openapi", "../server.ogen.yml", "../internal/httpapi/openapi"},
		{"client", "../client.ogen.yml", "../client"},
	}
	for _, half := range halves {
		t.Run(half.name, func(t *testing.T) {
			t.Parallel()
			// Opened here, so that go test runs again where one of them changed.
			for _, input := range []string{"openapi.yaml", filepath.Base(half.config), "generator/go.mod"} {
				if _, err := os.ReadFile(input); err != nil {
					t.Fatal(err)
				}
			}
			fresh := t.TempDir()
			generate := exec.Command("go", "-C", "generator", "tool", "ogen",
				"--target", fresh, "--package", half.name, "--config", half.config, "../openapi.yaml")
			if out, err := generate.CombinedOutput(); err != nil {
				t.Fatalf("generate: %v\n%s", err, out)
			}
			want, got := generated(t, fresh), generated(t, half.committed)
			if len(want) == 0 {
				t.Fatal("nothing was generated")
			}
			for name, source := range want {
				if got[name] != source {
					t.Errorf("%s/%s is not what api/openapi.yaml says: run go generate ./api", half.committed, name)
				}
			}
			for name := range got {
				if _, ok := want[name]; !ok {
					t.Errorf("%s/%s is generated no more: run go generate ./api", half.committed, name)
				}
			}
		})
	}
}

// generated reads the generated files of a folder, by name.
func generated(t *testing.T, folder string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "oas_*_gen.go"))
	if err != nil {
		t.Fatal(err)
	}
	sources := make(map[string]string, len(files))
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sources[filepath.Base(file)] = string(source)
	}
	return sources
}
