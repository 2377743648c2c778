// Command pack zips each function's binary as Lambda takes it, prints what it weighs, and fails where one is over
// the limit. The same binary gives the same zip.
//
//	go run ./localstack/pack -limit 5000000 build/api build/deliver …
package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func main() {
	limit := flag.Int("limit", 0, "the most bytes that a zip may have")
	flag.Parse()
	if err := run(os.Stdout, *limit, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

// run packs all folders, and says of all that are too heavy that they are.
func run(out io.Writer, limit int, folders []string) error {
	var heavy []error
	for _, folder := range folders {
		zipped, err := pack(filepath.Join(folder, "bootstrap"))
		if err == nil {
			err = os.WriteFile(folder+".zip", zipped, 0o644)
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%-14s %9d bytes zipped\n", filepath.Base(folder), len(zipped))
		if len(zipped) > limit {
			heavy = append(heavy, fmt.Errorf("%s.zip is over %d bytes", folder, limit))
		}
	}
	return errors.Join(heavy...)
}

// pack zips one binary as bootstrap, executable and without a date.
func pack(file string) ([]byte, error) {
	binary, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	w.RegisterCompressor(zip.Deflate, func(out io.Writer) (io.WriteCloser, error) { return flate.NewWriter(out, flate.BestCompression) })
	header := &zip.FileHeader{Name: "bootstrap", Method: zip.Deflate}
	header.SetMode(0o755)
	entry, err := w.CreateHeader(header)
	if err == nil {
		_, err = entry.Write(binary)
	}
	if err == nil {
		err = w.Close()
	}
	return out.Bytes(), err
}
