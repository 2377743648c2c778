package httpapi

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"net/http"

	"github.com/dunglas/httpsfv"

	"colophon/internal/content"
)

// digestHeaders carry digests of a request's body (RFC 9530). As no request has
// a range and no content coding is taken off, both are over the same bytes.
var digestHeaders = []string{"Content-Digest", "Repr-Digest"}

// digests are the algorithms that are checked. Others are left to those who know
// them, as RFC 9530 has it; among its own, all but these two are deprecated.
var digests = map[string]func([]byte) []byte{
	"sha-256": func(data []byte) []byte { sum := sha256.Sum256(data); return sum[:] },
	"sha-512": func(data []byte) []byte { sum := sha512.Sum512(data); return sum[:] },
}

// hasDigest says whether a request says what its body's digest is.
func hasDigest(h http.Header) bool {
	for _, name := range digestHeaders {
		if len(h.Values(name)) > 0 {
			return true
		}
	}
	return false
}

// checkDigests compares a body as it arrived with all digests that came with it.
// Checked says whether there was one, of an algorithm that is known here.
func checkDigests(h http.Header, body []byte) (checked bool, err error) {
	for _, name := range digestHeaders {
		given, err := httpsfv.UnmarshalDictionary(h.Values(name))
		if err != nil {
			return false, wrongDigest(name, name+" cannot be read. It is written as sha-256=:…: with the digest in base 64 between the colons.")
		}
		for algorithm, digest := range digests {
			member, ok := given.Get(algorithm)
			if !ok {
				continue
			}
			item, _ := member.(httpsfv.Item)
			want, ok := item.Value.([]byte)
			if !ok {
				return false, wrongDigest(name, name+" has a value that is no digest. It is written as sha-256=:…: with the digest in base 64 between the colons.")
			}
			if !bytes.Equal(digest(body), want) {
				return false, wrongDigest(name, "The body is not the one that "+name+" names: it was changed or lost on its way, or the digest is of something else. Nothing was done; send it again.")
			}
			checked = true
		}
	}
	return checked, nil
}

func wrongDigest(name, message string) error {
	return &content.Error{Code: content.CodeInvalid, Field: name, Message: message}
}

// reprDigest is a document's digest as the header Repr-Digest has it.
func reprDigest(hash content.Hash) string {
	return "sha-256=:" + base64.StdEncoding.EncodeToString(hash[:]) + ":"
}
