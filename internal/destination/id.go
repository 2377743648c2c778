package destination

import (
	"fmt"
	"io"
)

const (
	idPrefix    = "dst_"
	idLength    = 12 // characters of 5 random bits, of one project's destinations
	testLength  = 16
	tokenLength = 26
	alphabet    = "abcdefghijklmnopqrstuvwxyz234567"
)

// randomText makes a text of so many characters of 5 random bits.
func randomText(random io.Reader, length int) (string, error) {
	text := make([]byte, length)
	if _, err := io.ReadFull(random, text); err != nil {
		return "", fmt.Errorf("read randomness: %w", err)
	}
	for i, b := range text {
		text[i] = alphabet[int(b)%len(alphabet)]
	}
	return string(text), nil
}
