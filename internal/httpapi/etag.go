package httpapi

import (
	"strconv"
	"strings"

	"colophon/internal/content"
	"colophon/internal/httpapi/openapi"
)

// etag is a version as a strong entity tag (RFC 9110, 8.8.3).
func etag(version int64) string { return strconv.Quote(strconv.FormatInt(version, 10)) }

// ifMatch is the version that an If-Match header names; 0: none is named. A tag
// that this API never gave is not the current one.
func ifMatch(header openapi.OptString) (int64, error) {
	value := strings.TrimSpace(header.Value)
	if !header.Set {
		return 0, nil
	}
	if value == "*" || strings.Contains(value, ",") {
		return 0, &content.Error{Code: content.CodeInvalid, Field: "If-Match", Message: "If-Match takes one ETag, the one that was read."}
	}
	version, err := strconv.ParseInt(strings.Trim(value, `"`), 10, 64)
	if err != nil || version < 1 || etag(version) != value {
		return 0, &content.Error{Code: content.CodePrecondition, Message: "That is not the ETag of what is there now. Read it again."}
	}
	return version, nil
}

// onlyNew says whether an If-None-Match header asks that nothing be there yet.
func onlyNew(header openapi.OptString) (bool, error) {
	switch strings.TrimSpace(header.Value) {
	case "*":
		return true, nil
	case "":
		if !header.Set {
			return false, nil
		}
	}
	return false, &content.Error{Code: content.CodeInvalid, Field: "If-None-Match", Message: "When saving, If-None-Match takes * alone: save only where there is nothing yet."}
}

// atHand says whether one of an If-None-Match header's tags is the current one;
// weak and strong ones count alike (RFC 9110, 13.1.2).
func atHand(header openapi.OptString, current string) bool {
	for tag := range strings.SplitSeq(header.Value, ",") {
		tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/")
		if tag == "*" || tag == current {
			return true
		}
	}
	return false
}
