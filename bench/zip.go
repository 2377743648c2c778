package main

import (
	"archive/zip"
	"compress/flate"
	"io"
	"os"
)

// zipped is the size of a function's package: its binary, as bootstrap, at the
// highest compression.
func zipped(binary string) (int64, error) {
	in, err := os.Open(binary)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	size := &countingWriter{}
	out := zip.NewWriter(size)
	out.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
	entry, err := out.Create("bootstrap")
	if err != nil {
		return 0, err
	}
	if _, err := io.Copy(entry, in); err != nil {
		return 0, err
	}
	if err := out.Close(); err != nil {
		return 0, err
	}
	return size.n, nil
}

type countingWriter struct{ n int64 }

func (w *countingWriter) Write(b []byte) (int, error) {
	w.n += int64(len(b))
	return len(b), nil
}
