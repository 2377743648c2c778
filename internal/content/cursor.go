package content

import (
	"encoding/base64"
	"strconv"
	"strings"
)

// A cursor is opaque to others: the list's name and the last entry, in base 64.
// Whoever makes one up reads the same list from somewhere else, and no other.
const (
	projectCursor = "p"
	draftCursor   = "d"
	releaseCursor = "r"
)

func encodeCursor(list, last string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(list + last))
}

// decodeCursor gives the last entry; an empty cursor gives none.
func decodeCursor(list, cursor string, valid func(string) bool) (string, error) {
	if cursor == "" {
		return "", nil
	}
	decoded, err := base64.RawURLEncoding.DecodeString(cursor)
	last, ok := strings.CutPrefix(string(decoded), list)
	if err != nil || !ok || !valid(last) {
		return "", invalid("cursor", "This cursor was not made by this list. Begin again without one.")
	}
	return last, nil
}

func isPath(s string) bool { return CheckPath(s) == nil }

func isNumber(s string) bool {
	n, err := strconv.ParseInt(s, 10, 64)
	return err == nil && n > 0 && strconv.FormatInt(n, 10) == s
}
