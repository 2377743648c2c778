package content

import (
	"errors"
	"fmt"
	"mime"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"colophon/internal/text"
)

const (
	projectIDPrefix = "prj_"
	projectIDRandom = 20 // characters of five random bits
)

// IsProjectID says whether an id has the shape of a project's: what has not
// names no project, and does not get as far as a key.
func IsProjectID(id string) bool {
	random, ok := strings.CutPrefix(id, projectIDPrefix)
	if !ok || len(random) != projectIDRandom {
		return false
	}
	for _, c := range random {
		if (c < 'a' || c > 'z') && (c < '2' || c > '7') {
			return false
		}
	}
	return true
}

// CheckPath says what is wrong with a document's path. A path is one to
// LongestPath bytes of UTF-8 in segments divided by "/", none of them empty, "."
// or "..", without "#" (keys are divided by it) and control characters. A new
// one is checked by checkNewPath too, which came later: documents and releases
// may have paths that it refuses, and they are read and deleted all the same.
func CheckPath(path string) error {
	switch {
	case path == "":
		return invalid("path", "A document needs a path, such as guides/start.md.")
	case len(path) > LongestPath:
		return invalid("path", "A path holds at most %d bytes; this one has %d. Shorten it.", LongestPath, len(path))
	case !utf8.ValidString(path):
		return invalid("path", "A path is text in UTF-8; this one is not.")
	case strings.Contains(path, "#"):
		return invalid("path", "A path holds no \"#\". Choose another character.")
	case strings.ContainsFunc(path, unicode.IsControl):
		return invalid("path", "A path holds no control characters, line ends among them. Take them out.")
	}
	for segment := range strings.SplitSeq(path, "/") {
		switch segment {
		case "":
			return invalid("path", "A path neither begins nor ends with \"/\", and holds no two in a row.")
		case ".", "..":
			return invalid("path", "No part of a path is \".\" or \"..\". Write the path out.")
		}
	}
	return nil
}

// checkNewPath says what is wrong with the path of a document that is saved.
func checkNewPath(path string) error {
	if err := CheckPath(path); err != nil {
		return err
	}
	if wrong := text.Check(path, text.Line); wrong != "" {
		return invalid("path", "The path %s.", wrong)
	}
	return nil
}

// checkType makes a media type that can stand in a header and in a manifest.
func checkType(given string) (string, error) {
	bad := invalid("contentType", "A content type is a media type of at most %d bytes, such as text/markdown; charset=utf-8.", LongestType)
	kind, parameters, err := mime.ParseMediaType(given)
	if err != nil || !strings.Contains(kind, "/") {
		return "", bad
	}
	for _, value := range parameters {
		if text.Check(value, text.Line) != "" {
			return "", bad
		}
	}
	formatted := mime.FormatMediaType(kind, parameters)
	notPlain := func(r rune) bool { return r < ' ' || r > '~' }
	if formatted == "" || len(formatted) > LongestType || strings.ContainsFunc(formatted, notPlain) {
		return "", bad
	}
	return formatted, nil
}

// checkText checks what people write in their own words.
func checkText(field, given string, longest int, kind text.Kind) error {
	if wrong := text.Check(given, kind); wrong != "" {
		return invalid(field, "The %s %s.", field, wrong)
	}
	if n := utf8.RuneCountInString(given); n > longest {
		return invalid(field, "The %s holds at most %d characters; this one has %d. Shorten it.", field, longest, n)
	}
	return nil
}

func checkKey(key string) error {
	notPlain := func(r rune) bool { return r < ' ' || r > '~' }
	if len(key) > LongestKey || strings.ContainsFunc(key, notPlain) {
		return invalid("Idempotency-Key", "An idempotency key is 1 to %d plain ASCII characters; a random one is best.", LongestKey)
	}
	return nil
}

// checkAddress makes the address that links begin with: no slash at its end.
func checkAddress(address string) (string, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return "", errors.New("not a URL") // the parser's text would repeat it
	case u.Scheme != "https" && u.Scheme != "http", u.Host == "":
		return "", errors.New("not an http or https URL with a host")
	case u.User != nil, u.RawQuery != "", u.ForceQuery, u.Fragment != "":
		return "", errors.New("a URL with more than host and path")
	case len(address) > LongestAddress:
		return "", fmt.Errorf("longer than %d bytes", LongestAddress)
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// checkLimit makes a page's size of what was asked for; 0 asks for the largest.
func checkLimit(limit int) (int, error) {
	if limit < 0 || limit > LargestPage {
		return 0, invalid("limit", "A page holds 1 to %d entries.", LargestPage)
	}
	if limit == 0 {
		return LargestPage, nil
	}
	return limit, nil
}
