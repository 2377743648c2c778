package deploy_test

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// tree is a template, or a part of one, as JSON has it.
type tree = map[string]any

// template is template.yaml twice.
type template struct {
	Written     tree // as its author wrote it, with CloudFormation's short tags in their long form
	Transformed tree // as AWS deploys it, parameters and functions still unsettled
}

// load gives the template, a copy of its own for each caller.
func load(t *testing.T) template {
	t.Helper()
	text, err := transformOnce()
	return parsed(t, text, err)
}

// loadFormer gives the template of testdata/named-tables.yaml.
func loadFormer(t *testing.T) template {
	t.Helper()
	text, err := transform(filepath.Join("testdata", "named-tables.yaml"))
	return parsed(t, text, err)
}

func parsed(t *testing.T, text []byte, err error) template {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var loaded template
	if err := json.Unmarshal(text, &loaded); err != nil {
		t.Fatal(err)
	}
	return loaded
}

//go:embed transform.py
var script string

var transformOnce = sync.OnceValues(func() ([]byte, error) { return transform(filepath.Join("..", "template.yaml")) })

func transform(path string) ([]byte, error) {
	// The translator comes with the local stack's Python packages.
	python := os.Getenv("COLOPHON_PYTHON")
	if python == "" {
		python = filepath.Join("..", ".tools", "venv-localstack", "bin", "python")
	}
	// Read here, not there, so that a changed template is tested anew and not taken from go test's cache.
	written, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var out, trouble bytes.Buffer
	command := exec.Command(python, "-c", script)
	command.Env = append(os.Environ(), "AWS_DEFAULT_REGION="+region)
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(written), &out, &trouble
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("transforming "+path+" (`localstack/install localstack` brings the translator): %w\n%s", err, &trouble)
	}
	return out.Bytes(), nil
}
