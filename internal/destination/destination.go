package destination

import (
	"time"

	"colophon/internal/delivery"
)

// Limits of what people can ask for. Those of addresses and headers are
// internal/egress's.
const (
	MostDestinations = 50  // in use, of a project: a publish writes a delivery for each, a transaction holds 100 items
	LongestName      = 100 // characters
	MostListed       = 100 // deliveries on a page
	MostReplaced     = 20  // older releases that a delivery names as replaced
)

// Destination is a webhook address of a project as people see it. Nothing
// secret is in it: not even this package can read a secret back.
type Destination struct {
	Project          string
	ID               string
	Name             string
	URL              string // empty where it was removed
	State            delivery.SlotState
	PausedBy         delivery.PausedBy // with paused
	HeaderNames      []string          // custom headers; their values are not shown again
	PreviousUntil    time.Time         // the newest replaced secret signs too until then; zero: there is none
	PreviousSecrets  []time.Time       // when the replaced secrets that still sign end, the newest first
	Slow             bool              // its last attempt took longer than delivery.SlowAttempt
	Damaged          bool              // its record cannot be read: all that can be done is to remove it
	Sending          int64             // the release that is being sent right now; 0: none
	SentThrough      int64             // the highest release that was ever sent; 0: none
	DeliveredThrough int64             // the highest release that was delivered; 0: none
	Version          int64             // of what Change can change, for an ETag
	CreatedAt        time.Time
	UpdatedAt        time.Time
}

// Addition is what a new destination is made of.
type Addition struct {
	Name    string
	URL     string
	Headers map[string]string
}

// Added is a new destination and its secret, which is never shown again.
type Added struct {
	Destination Destination
	Secret      string
}

// Change is what is new about a destination; nil leaves a field as it is.
type Change struct {
	Name    *string
	URL     *string
	Headers *map[string]string // replaces them all: the values that are there cannot be read
	// Version is the Destination's that the change was made from; 0 changes
	// whatever is there.
	Version int64
}

// Rotation says how a signing secret is replaced.
type Rotation struct {
	RevokeOld bool // ends the current secret and those that it replaced at once
	// Secret is the new one, which the caller brings, so that asking again is
	// harmless; empty: one is made.
	Secret  string
	Version int64 // as Change's
}

// Rotated is a destination's new secret, which is never shown again. The one
// before it signs as well until PreviousUntil.
type Rotated struct {
	Secret        string
	PreviousUntil time.Time
	Destination   Destination
}

// Revocation says which replaced secret ends before its time.
type Revocation struct {
	Position int   // in Destination.PreviousSecrets, from 1; 0: all of them
	Version  int64 // as Change's
}

// Resumed is a destination that takes deliveries again, and what it may have missed.
type Resumed struct {
	Destination Destination
	Newest      int64 // the newest release announced to it; 0: none
	// SendNewest says that the newest release ended undelivered, so that a
	// person may want to send it: a plain Redeliver.
	SendNewest bool
}

// Redelivery says how a person wants a delivery sent again.
type Redelivery struct {
	Force bool  // also where the release is not the newest
	Over  int64 // with Force: the newest release that the person saw
}

// Delivery is a delivery as people see it.
type Delivery struct {
	delivery.Delivery
	Destination Destination
	Sending     bool      // an attempt is under way
	Attempt     int64     // while Sending: its number
	Since       time.Time // while Sending
	Newest      int64     // the newest release: what a forced redelivery must name as Over
	// Replaced are older releases that were skipped for this one, newest first,
	// at most MostReplaced. Service.Deliveries leaves it out.
	Replaced []int64
}

// Range asks for a destination's deliveries of releases From … To, newest first.
type Range struct {
	From, To int64 // 0 leaves a side open
	Limit    int   // at most MostListed; 0: MostListed
}

// DeliveryPage is a part of a range.
type DeliveryPage struct {
	Deliveries []Delivery
	Next       int64 // the To of the page behind this one; 0: there is none
}
