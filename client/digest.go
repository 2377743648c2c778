package client

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"

	ht "github.com/ogen-go/ogen/http"
)

// digesting sends each body with its digest (RFC 9530), so that a body that was
// changed or lost on its way is refused and not taken for what was meant.
type digesting struct{ next ht.Client }

const contentDigest = "Content-Digest"

// Do sends a request.
func (d digesting) Do(r *http.Request) (*http.Response, error) {
	switch r.Method {
	case http.MethodPut, http.MethodPost, http.MethodPatch: // also without a body: that is said too
	default:
		return d.next.Do(r)
	}
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, fmt.Errorf("read the body to send: %w", err)
		}
		if err := r.Body.Close(); err != nil {
			return nil, fmt.Errorf("read the body to send: %w", err)
		}
	}
	if r.Header.Get(contentDigest) == "" {
		sum := sha256.Sum256(body)
		r.Header.Set(contentDigest, "sha-256=:"+base64.StdEncoding.EncodeToString(sum[:])+":")
	}
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	r.Body, r.ContentLength = http.NoBody, int64(len(body))
	if len(body) > 0 {
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return d.next.Do(r)
}
