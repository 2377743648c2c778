package webhook

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
)

// Sent is what an attempt was signed with.
type Sent struct {
	ID      string
	At      time.Time
	Body    []byte
	Secrets []Secret // empty where they cannot be opened: then the signature is not compared
}

// Signed shows what was signed, for a person to compare. It holds no secret.
type Signed struct {
	ID         string
	Timestamp  int64 // Unix seconds
	BodyBytes  int
	BodyDigest string // SHA-256 in hex
}

// Signed describes what was signed.
func (s Sent) Signed() Signed {
	return Signed{ID: s.ID, Timestamp: s.At.Unix(), BodyBytes: len(s.Body), BodyDigest: digest(s.Body)}
}

// Computed is what a receiver had and computed. What it does not tell stays empty.
type Computed struct {
	ID         string
	Timestamp  string // as in its header
	Body       []byte // as it came; nil if not told
	BodyDigest string // SHA-256 in hex, in place of the body
	Signature  string // what it computed
}

// Part is a part of a signature.
type Part string

const (
	PartNone      Part = "" // nothing that was compared differs
	PartID        Part = "id"
	PartTimestamp Part = "timestamp"
	PartBody      Part = "body"
	PartSecret    Part = "secret"
	PartForm      Part = "form"    // the parts are right, the way they are put together or written is not
	PartUnknown   Part = "unknown" // the signature differs and no known mistake makes it
)

// Difference is which part differs, and one plain sentence on what to do.
type Difference struct {
	Part Part
	Hint string
}

// Explain says which part of what the receiver computed differs from what was sent: first by comparing what it told,
// then by making the mistakes that receivers make and looking which of them gives its signature.
func Explain(sent Sent, got Computed) Difference {
	theirs := got.BodyDigest
	if got.Body != nil {
		theirs = digest(got.Body)
	}
	switch {
	case got.ID != "" && got.ID != sent.ID:
		return Difference{PartID, "Sign with the webhook-id header of the same request, unchanged."}
	case got.Timestamp != "" && got.Timestamp != strconv.FormatInt(sent.At.Unix(), 10):
		return Difference{PartTimestamp, "Sign with the webhook-timestamp header of the same request, in seconds; each attempt has its own."}
	case theirs != "" && !strings.EqualFold(theirs, digest(sent.Body)):
		return Difference{PartBody, "Sign the request's bytes as they came, before anything parses or rewrites them."}
	case got.Signature == "":
		return Difference{PartNone, "What was compared is the same."}
	case len(sent.Secrets) == 0:
		return Difference{PartUnknown, "The parts that were compared are the same. Give the secret to compare the signature."}
	}

	for _, value := range strings.Fields(got.Signature) {
		if slices.Contains(strings.Fields(Sign(sent.ID, sent.At, sent.Body, sent.Secrets...)), value) {
			return Difference{PartNone, "The signature is right."}
		}
	}
	their := signatureBytes(got.Signature)
	for _, secret := range sent.Secrets {
		for _, m := range mistakes(sent, secret) {
			if hmac.Equal(mac(m.key, m.content), their) {
				return m.Difference
			}
		}
	}
	return Difference{PartUnknown, "Check first that the secret is this destination's, then that the body is signed as it came."}
}

func digest(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// signatureBytes reads a signature in any of the ways it gets written; nil if it is none.
func signatureBytes(text string) []byte {
	text = strings.TrimSpace(text)
	text = strings.TrimPrefix(strings.TrimPrefix(text, "v1,"), "sha256=")
	if sum, err := hex.DecodeString(text); err == nil {
		return sum
	}
	text = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(text, "="))
	sum, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return nil
	}
	return sum
}

type mistake struct {
	Difference
	key, content []byte
}

// mistakes are what a receiver does wrong, one at a time. The first is none, but for how the result is written.
func mistakes(sent Sent, secret Secret) []mistake {
	key, text := []byte(secret.key), secret.Reveal()
	right := content(sent.ID, sent.At, sent.Body)
	seconds := sent.At.Unix()
	parts := func(format string, args ...any) []byte { return fmt.Appendf(nil, format, args...) }
	list := []mistake{
		{Difference{PartForm, "Write the signature as v1, a comma and standard base64 with its padding."}, key, right},
		{Difference{PartSecret, "Decode the secret: the key is the base64 after whsec_, as bytes."}, []byte(text), right},
		{Difference{PartSecret, "Decode the secret: the key is the base64 after whsec_, as bytes."}, []byte(strings.TrimPrefix(text, secretPrefix)), right},
		{Difference{PartTimestamp, "Sign the timestamp in seconds, as the header has it."}, key, parts("%s.%d.%s", sent.ID, seconds*1000, sent.Body)},
		{Difference{PartForm, "Sign id.timestamp.body: the id is missing."}, key, parts("%d.%s", seconds, sent.Body)},
		{Difference{PartForm, "Sign id.timestamp.body: the timestamp is missing."}, key, parts("%s.%s", sent.ID, sent.Body)},
		{Difference{PartForm, "Sign id.timestamp.body: id and timestamp are missing."}, key, sent.Body},
		{Difference{PartForm, "Sign id.timestamp.body: the id comes first."}, key, parts("%d.%s.%s", seconds, sent.ID, sent.Body)},
		{Difference{PartForm, "Sign id.timestamp.body, with a dot between the parts."}, key, parts("%s%d%s", sent.ID, seconds, sent.Body)},
		{Difference{PartBody, "Read the body before signing: an empty one was signed."}, key, content(sent.ID, sent.At, nil)},
		{Difference{PartBody, "Take the body as it came: a line end was added."}, key, content(sent.ID, sent.At, append(slices.Clone(sent.Body), '\n'))},
	}
	for _, body := range reencodings(sent.Body) {
		list = append(list, mistake{
			Difference{PartBody, "Take the body as it came: it was parsed as JSON and written again."}, key, content(sent.ID, sent.At, body),
		})
	}
	return list
}

// reencodings are what usual JSON libraries make of the body.
func reencodings(body []byte) [][]byte {
	var out [][]byte
	var buffer bytes.Buffer
	for _, indent := range []string{"  ", "    ", "\t"} {
		buffer.Reset()
		if json.Indent(&buffer, body, "", indent) == nil {
			out = append(out, bytes.Clone(buffer.Bytes()))
		}
	}
	buffer.Reset()
	json.HTMLEscape(&buffer, body)
	out = append(out, bytes.Clone(buffer.Bytes()), spaced(body, false), spaced(body, true))

	var value any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if decoder.Decode(&value) == nil {
		if sorted, err := json.Marshal(value); err == nil {
			out = append(out, sorted)
		}
	}
	return out
}

// spaced is compact JSON as Python's json.dumps writes it: a space after commas and colons and, if asked for, only ASCII.
func spaced(body []byte, ascii bool) []byte {
	var out []byte
	inString, escaped := false, false
	for _, r := range string(body) {
		switch {
		case ascii && r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		case ascii && r > 0x7F:
			out = fmt.Appendf(out, `\u%04x`, r)
		default:
			out = append(out, string(r)...)
		}
		if !inString && (r == ',' || r == ':') {
			out = append(out, ' ')
		}
		if r == '"' && !escaped {
			inString = !inString
		}
		escaped = r == '\\' && !escaped
	}
	return out
}
