package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The headers that change from attempt to attempt, but for the id.
const (
	HeaderID        = "Webhook-Id"
	HeaderTimestamp = "Webhook-Timestamp" // Unix seconds
	HeaderSignature = "Webhook-Signature"
	HeaderAttempt   = "Colophon-Attempt"  // the attempt's number, from 1
	HeaderPrevious  = "Colophon-Previous" // the release that this destination received last before this one
)

const userAgent = "Colophon/1"

// Sign returns the value of webhook-signature: "v1," and the base64 of HMAC-SHA-256 over id.timestamp.body, for each
// secret, with spaces between. A zero Secret signs nothing: everybody knows that key.
func Sign(id string, at time.Time, body []byte, secrets ...Secret) string {
	var signatures []string
	for _, secret := range secrets {
		if !secret.IsZero() {
			sum := mac([]byte(secret.key), content(id, at, body))
			signatures = append(signatures, "v1,"+base64.StdEncoding.EncodeToString(sum))
		}
	}
	return strings.Join(signatures, " ")
}

// content is what is signed.
func content(id string, at time.Time, body []byte) []byte {
	return fmt.Appendf(nil, "%s.%d.%s", id, at.Unix(), body)
}

func mac(key, content []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(content)
	return h.Sum(nil)
}

// Attempt is what the headers of one request are made of.
type Attempt struct {
	ID       string
	Body     []byte
	At       time.Time // of this attempt
	Number   int64     // of this attempt, from 1
	Previous int64     // the last release delivered before this one; 0 if there is none
	Secrets  []Secret  // that sign now: Secrets.Signing
	Custom   map[string]string
}

// Headers are the headers of the attempt's request. A custom header never stands in for one of ours.
func (a Attempt) Headers() http.Header {
	headers := http.Header{}
	for name, value := range a.Custom {
		headers.Set(name, value)
	}
	headers.Del(HeaderPrevious)
	headers.Set("Content-Type", "application/json")
	headers.Set("User-Agent", userAgent)
	headers.Set(HeaderID, a.ID)
	headers.Set(HeaderTimestamp, strconv.FormatInt(a.At.Unix(), 10))
	headers.Set(HeaderSignature, Sign(a.ID, a.At, a.Body, a.Secrets...))
	headers.Set(HeaderAttempt, strconv.FormatInt(a.Number, 10))
	if a.Previous > 0 {
		headers.Set(HeaderPrevious, strconv.FormatInt(a.Previous, 10))
	}
	return headers
}
