package webhook

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"
)

const (
	secretPrefix = "whsec_"
	secretBytes  = 32 // of those that are made here
	hidden       = secretPrefix + "(hidden)"
)

// The bytes of a secret that Standard Webhooks allows.
const (
	MinSecretBytes = 24
	MaxSecretBytes = 64
)

// RotationOverlap is how long a replaced secret keeps signing in addition to the current one.
const RotationOverlap = 24 * time.Hour

// Secret is a destination's signing key. It cannot be printed, logged or encoded by accident.
type Secret struct {
	key string // its bytes: comparable, and empty where there is none
}

// NewSecret makes a secret from 32 bytes of random, which in production are the system's.
func NewSecret(random io.Reader) (Secret, error) {
	key := make([]byte, secretBytes)
	if _, err := io.ReadFull(random, key); err != nil {
		return Secret{}, fmt.Errorf("reading randomness for a secret: %w", err)
	}
	return Secret{key: string(key)}, nil
}

// ParseSecret reads "whsec_" and the base64 of 24 to 64 bytes. Its error does not repeat the text.
func ParseSecret(text string) (Secret, error) {
	encoded, ok := strings.CutPrefix(text, secretPrefix)
	key, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if !ok || err != nil || len(key) < MinSecretBytes || len(key) > MaxSecretBytes || strings.ContainsAny(encoded, "\r\n") {
		return Secret{}, errors.New("a secret is whsec_ and the base64 of 24 to 64 bytes")
	}
	return Secret{key: string(key)}, nil
}

// Reveal returns the secret's text, to be shown once and to be sealed.
func (s Secret) Reveal() string {
	return secretPrefix + base64.StdEncoding.EncodeToString([]byte(s.key))
}

// IsZero tells whether there is no secret.
func (s Secret) IsZero() bool { return s == Secret{} }

func (s Secret) String() string { return hidden }

// Format keeps the key from every verb, %d and %x included.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, hidden) }

// LogValue keeps the key from logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText keeps the key from JSON and its like.
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// Fingerprint recognizes a secret that is brought again, for one destination: it is the SHA-256 of the secret with a
// salt, which must be the destination's own, so that the same secret at two destinations is not recognized as the same.
func (s Secret) Fingerprint(salt string) []byte {
	h := sha256.New()
	fmt.Fprintf(h, "colophon signing secret\n%d\n%s\n%s", len(salt), salt, s.key)
	return h.Sum(nil)
}

// Secrets are those of a destination: the current one and those that it replaced, each for RotationOverlap. Revoking is
// leaving one out.
type Secrets struct {
	Current  Secret
	Previous []PreviousSecret // the newest first
}

// PreviousSecret signs in addition to the current secret until its end.
type PreviousSecret struct {
	Secret Secret
	Until  time.Time
}

// Signing returns the secrets that sign at the given time, the current one first.
func (s Secrets) Signing(now time.Time) []Secret {
	signing := []Secret{s.Current}
	for _, previous := range s.Previous {
		if !previous.Secret.IsZero() && now.Before(previous.Until) {
			signing = append(signing, previous.Secret)
		}
	}
	return signing
}
