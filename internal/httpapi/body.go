package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"unicode/utf8"
)

// largestBody is how many bytes of a request are read: a document's 256 KiB fit
// four times, which leaves the refusal of a larger one to the rule about documents.
const largestBody = 1 << 20

// body checks a request's body when it is first read, which the generated server
// does after it has looked at the token: first that it is the one that was sent.
type body struct {
	r      io.ReadCloser
	header http.Header
	json   bool // it says that it is

	checked  io.Reader // nil: not read yet
	digested bool      // it is the one that the caller's digest names
	err      error
}

// check reads the body to its end, once, and says what is wrong with it.
func (b *body) check() error {
	if b.checked == nil && b.err == nil {
		var all []byte
		if all, b.err = io.ReadAll(b.r); b.err == nil {
			b.digested, b.err = checkDigests(b.header, all)
		}
		if b.err == nil && b.json && len(all) > 0 {
			b.err = checkJSON(all)
		}
		b.checked = bytes.NewReader(all)
	}
	return b.err
}

// checkDigest checks a body that nobody may have read, because the operation
// takes none or can do without: it may have been lost on its way.
func (b *body) checkDigest() error {
	if !hasDigest(b.header) {
		return nil
	}
	if err := b.check(); err != nil {
		return readFault(err)
	}
	return nil
}

func (b *body) Read(p []byte) (int, error) {
	if err := b.check(); err != nil {
		return 0, err
	}
	return b.checked.Read(p)
}

func (b *body) Close() error { return b.r.Close() }

func isJSON(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && kind == "application/json"
}

// jsonError says what is wrong with a body's JSON, and where. It holds nothing
// of the body itself.
type jsonError struct {
	wrong        string
	line, column int // from 1; the column counts bytes; 0: the body as a whole
}

func (e *jsonError) Error() string {
	if e.line == 0 {
		return e.wrong
	}
	return fmt.Sprintf("%s, at line %d, column %d", e.wrong, e.line, e.column)
}

// deepest is how many arrays and objects may stand in each other.
const deepest = 32

// checkJSON refuses what the generated decoder would let pass or could not place:
// text that is not UTF-8 or not JSON, repeated keys, of which it would take the last, and
// anything behind the value's end.
func checkJSON(text []byte) error {
	if !utf8.Valid(text) {
		return &jsonError{wrong: "It is not text in UTF-8"}
	}
	d := json.NewDecoder(bytes.NewReader(text))
	wrong := walk(d, 0)
	if wrong == "" {
		if _, err := d.Token(); !errors.Is(err, io.EOF) {
			wrong = "Something follows the end of the JSON"
		}
	}
	if wrong == "" {
		return nil
	}
	before := text[:d.InputOffset()]
	return &jsonError{wrong, bytes.Count(before, []byte{'\n'}) + 1, len(before) - bytes.LastIndexByte(before, '\n')}
}

// walk reads one value and says what is wrong with it, behind what was read last.
func walk(d *json.Decoder, depth int) (wrong string) {
	const invalid = "It is not valid JSON"
	token, err := d.Token()
	if err != nil {
		return invalid
	}
	begin, nests := token.(json.Delim)
	if !nests {
		return ""
	}
	if depth == deepest {
		return fmt.Sprintf("More than %d arrays and objects stand in each other", deepest)
	}
	seen := make(map[json.Token]bool)
	for d.More() {
		if begin == '{' {
			key, err := d.Token()
			if err != nil {
				return invalid
			}
			if seen[key] {
				return "A key stands there twice"
			}
			seen[key] = true
		}
		if wrong := walk(d, depth+1); wrong != "" {
			return wrong
		}
	}
	if _, err := d.Token(); err != nil {
		return invalid
	}
	return ""
}
