package webhook

import (
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

// Secrets are those of a destination: the current one and, for RotationOverlap after a rotation, the one before it.
// Revoking at once is leaving Previous out.
type Secrets struct {
	Current       Secret
	Previous      Secret // zero if there is none
	PreviousUntil time.Time
}

// Signing returns the secrets that sign at the given time, the current one first.
func (s Secrets) Signing(now time.Time) []Secret {
	if s.Previous.IsZero() || !now.Before(s.PreviousUntil) {
		return []Secret{s.Current}
	}
	return []Secret{s.Current, s.Previous}
}
