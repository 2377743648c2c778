// Pair holds what sam built to one processor: go run ./deploy/pair FOLDER looks at
// the binaries in sam's build folder and lets the built template take their
// processor alone for its parameter Architecture. Where a deployment asks for the
// other, CloudFormation then refuses it; without this the functions would be
// deployed, and none would start.
package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: pair FOLDER, where FOLDER is sam's build folder (.aws-sam/build)")
		os.Exit(2)
	}
	architecture, err := hold(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "colophon:", err)
		os.Exit(1)
	}
	fmt.Printf("Built for %s: the deployment takes no other Architecture.\n", architecture)
}

// hold narrows the built template and returns the processor's name, as Lambda has it.
func hold(folder string) (string, error) {
	binaries, err := filepath.Glob(filepath.Join(folder, "*Function", "bootstrap"))
	if err != nil || len(binaries) == 0 {
		return "", fmt.Errorf("there is no function in %s: run sam build first", folder)
	}
	var architecture string
	for _, path := range binaries {
		of, err := architectureOf(path)
		if err != nil {
			return "", fmt.Errorf("%s: %w", path, err)
		}
		if architecture != "" && of != architecture {
			return "", fmt.Errorf("%s is built for %s, another function for %s: build them together", path, of, architecture)
		}
		architecture = of
	}
	path := filepath.Join(folder, "template.yaml")
	template, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	narrowed, err := narrow(template, architecture)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return architecture, os.WriteFile(path, narrowed, 0o644)
}

func architectureOf(path string) (string, error) {
	file, err := elf.Open(path)
	if err != nil {
		return "", fmt.Errorf("not a binary for Linux: %w", err)
	}
	defer file.Close()
	switch file.Machine {
	case elf.EM_AARCH64:
		return "arm64", nil
	case elf.EM_X86_64:
		return "x86_64", nil
	}
	return "", fmt.Errorf("built for %s, which Lambda does not run", file.Machine)
}

// parameter is the parameter as sam writes it out: its default, and the values that it takes one a line.
var parameter = regexp.MustCompile(`(?m)^(  Architecture:\n    Type: String\n    Default: )\S+\n(    AllowedValues:\n)((?:    - \S+\n)+)`)

var errForm = errors.New("the parameter Architecture is not written as sam writes it")

func narrow(template []byte, architecture string) ([]byte, error) {
	if len(parameter.FindAllIndex(template, -1)) != 1 {
		return nil, errForm
	}
	return parameter.ReplaceAll(template, []byte("${1}"+architecture+"\n${2}    - "+architecture+"\n")), nil
}
