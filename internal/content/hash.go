package content

import (
	"crypto/sha256"
	"encoding/hex"
)

// Hash is a SHA-256: what content and parts of manifests are kept by.
type Hash [sha256.Size]byte

// HashOf hashes content.
func HashOf(data []byte) Hash { return sha256.Sum256(data) }

// String is the hash in hexadecimal.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }
