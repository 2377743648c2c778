package content

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A manifest lists a release's documents, by path, in parts that are kept like
// content. Where a part ends is said by the paths themselves, so that a changed
// document changes its own part, and an inserted one the few around it: parts
// that the release before had are not written again.
const (
	largestPart  = 300_000 // bytes; an item of the table holds 400 KB
	smallestPart = 4_000   // bytes, but of the last part: bounds the number of parts for any paths
	cutOdds      = 32      // one path in so many ends a part
	manifestHead = "colophon manifest 1\n"
)

// part is a part of a manifest.
type part struct {
	hash Hash
	data []byte
}

// cut makes the manifest of documents that stand in the order of their paths.
// The same documents make the same parts.
func cut(documents []Document) []part {
	var parts []part
	current := []byte(manifestHead)
	end := func() {
		parts = append(parts, part{HashOf(current), current})
		current = []byte(manifestHead)
	}
	for _, d := range documents {
		line := fmt.Sprintf("%s %d\t%s\t%s\n", d.Hash, d.Size, d.Type, d.Path)
		if len(current)+len(line) > largestPart {
			end()
		}
		current = append(current, line...)
		if len(current) >= smallestPart && HashOf([]byte(d.Path))[0]%cutOdds == 0 {
			end()
		}
	}
	if len(current) > len(manifestHead) {
		end()
	}
	return parts
}

func hashes(parts []part) []Hash {
	var list []Hash
	for _, p := range parts {
		list = append(list, p.hash)
	}
	return list
}

// parsePart reads one part of a manifest.
func parsePart(data []byte) ([]Document, error) {
	body, ok := bytes.CutPrefix(data, []byte(manifestHead))
	if !ok {
		return nil, errors.New("not a part of a manifest")
	}
	var documents []Document
	for len(body) > 0 {
		line, rest, ok := bytes.Cut(body, []byte("\n"))
		if !ok {
			return nil, errors.New("a manifest's last line has no end")
		}
		d, err := parseLine(string(line))
		if err != nil {
			return nil, err
		}
		documents, body = append(documents, d), rest
	}
	return documents, nil
}

func parseLine(line string) (Document, error) {
	fields := strings.Split(line, "\t")
	if len(fields) != 3 {
		return Document{}, errors.New("a manifest's line without three fields")
	}
	digits, size, _ := strings.Cut(fields[0], " ")
	d := Document{Type: fields[1], Path: fields[2]}
	n, err := hex.Decode(d.Hash[:], []byte(digits[:min(len(digits), 2*len(d.Hash))]))
	if err != nil || n != len(d.Hash) || d.Hash.String() != digits {
		return Document{}, errors.New("a manifest's line without a hash")
	}
	if d.Size, err = strconv.ParseInt(size, 10, 64); err != nil || d.Size < 0 || strconv.FormatInt(d.Size, 10) != size {
		return Document{}, errors.New("a manifest's line without a size")
	}
	if CheckPath(d.Path) != nil {
		return Document{}, errors.New("a manifest's line without a path")
	}
	return d, nil
}
