package delivery

import (
	"errors"
	"time"
)

// ErrSealedForAnother says that a sealed value does not open under the context
// of the destination and address that it is stored with: it was sealed for
// others, or changed. No retry helps, so nothing is sent and the attempt fails.
var ErrSealedForAnother = errors.New("sealed for another destination or address")

// SealContext says what a sealed value is bound to. It is stored with the value:
// an opener uses that one context and never tries another.
type SealContext int64

// The contexts. Only the second is written.
const (
	SealedForDestination SealContext = 1 // project and destination
	SealedForPurpose     SealContext = 2 // also the purpose, and for headers the origin they are sent to
)

// Purpose says what a sealed value is.
type Purpose string

// The purposes. A signing secret is not bound to an origin: it proves nothing to
// a wrong host, and has to survive a change of address.
const (
	PurposeSecret  Purpose = "secret"
	PurposeHeaders Purpose = "headers"
)

// Binding is what a value is sealed for. Origin is the scheme, host and port of
// the destination's address, and counts for PurposeHeaders only.
type Binding struct {
	Destination
	Purpose Purpose
	Origin  string
}

// Sealed is a value that only the worker can open, and the context it was sealed
// under. The zero Sealed is no value.
type Sealed struct {
	Bytes   []byte
	Context SealContext
}

// IsZero says that there is no value.
func (s Sealed) IsZero() bool { return len(s.Bytes) == 0 }

// PreviousSecret is a signing secret that was replaced: it signs in addition to
// the current one until its end.
type PreviousSecret struct {
	Sealed
	Until time.Time
}

// MaxPreviousSecrets is how many replaced secrets sign in addition to the
// current one.
const MaxPreviousSecrets = 3
