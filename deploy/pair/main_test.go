package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// built is a folder as sam build leaves it, each function built for a processor.
func built(t *testing.T, processors map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	source := filepath.Join(t.TempDir(), "main.go")
	must(t, os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o600))
	for function, processor := range processors {
		build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(folder, function, "bootstrap"), source)
		build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+processor)
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	must(t, os.WriteFile(filepath.Join(folder, "template.yaml"), []byte(asSamWrites), 0o600))
	return folder
}

const asSamWrites = `Parameters:
  Environment:
    Type: String
    Default: production
    AllowedValues:
    - production
    - staging
  Architecture:
    Type: String
    Default: arm64
    AllowedValues:
    - arm64
    - x86_64
    Description: The functions' processor.
`

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestTheBuiltTemplateTakesTheProcessorThatWasBuiltForAlone(t *testing.T) {
	t.Parallel()
	for processor, name := range map[string]string{"amd64": "x86_64", "arm64": "arm64"} {
		folder := built(t, map[string]string{"ApiFunction": processor, "SweepFunction": processor})
		got, err := hold(folder)
		if err != nil || got != name {
			t.Fatalf("%s: got %q, %v", processor, got, err)
		}
		text, err := os.ReadFile(filepath.Join(folder, "template.yaml"))
		must(t, err)
		want := strings.Replace(asSamWrites, "    Default: arm64\n    AllowedValues:\n    - arm64\n    - x86_64\n",
			"    Default: "+name+"\n    AllowedValues:\n    - "+name+"\n", 1)
		if string(text) != want {
			t.Errorf("%s: the template is\n%s", processor, text)
		}
		if _, err := hold(folder); err != nil {
			t.Errorf("%s, held again: %v", processor, err)
		}
	}
}

func TestAFolderThatCannotBeHeldIsRefused(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		processors map[string]string
		spoil      func(folder string) error
		says       string
	}{
		"two processors": {map[string]string{"ApiFunction": "amd64", "SweepFunction": "arm64"}, nil, "build them together"},
		"nothing built":  {nil, nil, "run sam build first"},
		"no Linux binary": {map[string]string{"ApiFunction": "amd64"}, func(f string) error {
			return os.WriteFile(filepath.Join(f, "ApiFunction", "bootstrap"), []byte("#!/bin/sh"), 0o600)
		}, "not a binary for Linux"},
		"another template": {map[string]string{"ApiFunction": "amd64"}, func(f string) error {
			return os.WriteFile(filepath.Join(f, "template.yaml"), []byte("Parameters: {}"), 0o600)
		}, "as sam writes it"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := built(t, test.processors)
			if test.spoil != nil {
				must(t, test.spoil(folder))
			}
			if _, err := hold(folder); err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v", err)
			}
		})
	}
}
