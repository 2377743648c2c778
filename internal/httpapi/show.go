package httpapi

import (
	"encoding/base64"
	"strings"
	"time"

	"colophon/internal/content"
	"colophon/internal/httpapi/openapi"
)

// What is empty or zero in the services is left out of answers.

func optional(text string) openapi.OptString {
	if text == "" {
		return openapi.OptString{}
	}
	return openapi.NewOptString(text)
}

func optionalNumber(n int64) openapi.OptInt64 {
	if n == 0 {
		return openapi.OptInt64{}
	}
	return openapi.NewOptInt64(n)
}

func optionalTime(t time.Time) openapi.OptDateTime {
	if t.IsZero() {
		return openapi.OptDateTime{}
	}
	return openapi.NewOptDateTime(t.UTC())
}

// each shows a list; none is an empty list, never null.
func each[From, To any](list []From, show func(From) To) []To {
	shown := make([]To, 0, len(list))
	for _, one := range list {
		shown = append(shown, show(one))
	}
	return shown
}

// Cursors of the lists that are cut into pages here: the list's letter and the
// last entry, in base 64. Whoever makes one up reads the same list from
// somewhere else, and no other.
const (
	documentCursor = "m"
	deliveryCursor = "e"
)

func cursorOf(list, last string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(list + last))
}

func cursorText(list, cursor string) (string, error) {
	if cursor == "" {
		return "", nil
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	last, ok := strings.CutPrefix(string(text), list)
	if err != nil || !ok {
		return "", errCursor()
	}
	return last, nil
}

func errCursor() error {
	return &content.Error{Code: content.CodeInvalid, Field: "cursor", Message: "This cursor was not made by this list. Begin again without one."}
}
