package main

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func folder(t *testing.T, content string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "api")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "bootstrap"), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestTheSameBinaryGivesTheSameZipWithOneExecutableFile(t *testing.T) {
	t.Parallel()
	one, two := folder(t, "binary"), folder(t, "binary")
	if err := os.Chtimes(filepath.Join(two, "bootstrap"), time.Unix(0, 0), time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	if err := run(io.Discard, 1000, []string{one, two}); err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(one + ".zip")
	if err != nil {
		t.Fatal(err)
	}
	second, err := os.ReadFile(two + ".zip")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Error("the zips differ")
	}
	r, err := zip.NewReader(bytes.NewReader(first), int64(len(first)))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.File) != 1 || r.File[0].Name != "bootstrap" || r.File[0].Mode() != 0o755 {
		t.Errorf("the zip holds %+v", r.File)
	}
	f, err := r.File[0].Open()
	if err != nil {
		t.Fatal(err)
	}
	if content, err := io.ReadAll(f); err != nil || string(content) != "binary" {
		t.Errorf("bootstrap holds %q, %v", content, err)
	}
}

func TestAZipOverTheLimitIsNamedAndFails(t *testing.T) {
	t.Parallel()
	light, heavy := folder(t, ""), folder(t, "binary")
	var weight bytes.Buffer
	if err := run(&weight, 1000, []string{light}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(light + ".zip")
	if err != nil {
		t.Fatal(err)
	}
	err = run(io.Discard, int(info.Size()), []string{light, heavy})
	if want := heavy + ".zip is over "; err == nil || !bytes.HasPrefix([]byte(err.Error()), []byte(want)) {
		t.Errorf("%v, want %q …", err, want)
	}
}
