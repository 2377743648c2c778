package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// The types of payload.
const (
	TypeReleasePublished = "release.published"
	TypeTest             = "webhook.test"
)

// Project names a project in a payload.
type Project struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Release is what is announced of a release. URL leads to it.
type Release struct {
	Project   Project `json:"project"`
	Number    int64   `json:"release"`
	Documents int     `json:"documents"`
	Message   string  `json:"message"`
	URL       string  `json:"url"`
}

// Test is what a test send carries. ID is the test's random id.
type Test struct {
	Project Project `json:"project"`
	ID      string  `json:"test"`
}

// payload is the envelope; its fields are written in this order.
type payload struct {
	Type      string `json:"type"`
	Timestamp string `json:"timestamp"` // when it happened, UTC, to the millisecond
	Data      any    `json:"data"`
}

// Body is the body that announces a release published at the given time. It is made once and stored.
func (r Release) Body(at time.Time) ([]byte, error) { return encode(TypeReleasePublished, at, r) }

// Body is the body of a test send.
func (t Test) Body(at time.Time) ([]byte, error) { return encode(TypeTest, at, t) }

func encode(kind string, at time.Time, data any) ([]byte, error) {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false) // a URL keeps its & as it is
	if err := encoder.Encode(payload{kind, at.UTC().Format("2006-01-02T15:04:05.000Z"), data}); err != nil {
		return nil, fmt.Errorf("encoding a %s payload: %w", kind, err)
	}
	return bytes.TrimSuffix(body.Bytes(), []byte("\n")), nil
}

const (
	idPrefix   = "msg_"
	idRandom   = 26 // characters of 5 random bits: 130 bits
	idAlphabet = "abcdefghijklmnopqrstuvwxyz234567"
)

// NewID makes a webhook-id from 26 bytes of random. It is made once and stored.
func NewID(random io.Reader) (string, error) {
	id := make([]byte, idRandom)
	if _, err := io.ReadFull(random, id); err != nil {
		return "", fmt.Errorf("reading randomness for a webhook id: %w", err)
	}
	for i, b := range id {
		id[i] = idAlphabet[int(b)%len(idAlphabet)] // 256 is a multiple of 32: no character is likelier
	}
	return idPrefix + string(id), nil
}
