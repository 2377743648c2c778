package delivery

import "time"

// Destination names a destination of a project.
type Destination struct{ Project, ID string }

// Key names a delivery: one release to one destination.
type Key struct {
	Destination
	Release int64
}

// Status is where a delivery stands.
type Status string

// The states of a delivery. The last three are terminal.
const (
	Queued    Status = "queued"
	Retrying  Status = "retrying"
	Delivered Status = "delivered"
	Failed    Status = "failed"
	Skipped   Status = "skipped"
)

// Terminal says whether the delivery has ended.
func (s Status) Terminal() bool { return s == Delivered || s == Failed || s == Skipped }

// Reason says why a delivery was skipped, or failed without a try's class.
type Reason string

// The reasons that are not the class of an attempt.
const (
	Superseded Reason = "superseded" // a newer release made it pointless
	Paused     Reason = "paused"     // the destination was paused
	Removed    Reason = "removed"    // the destination was removed
	Unreadable Reason = "unreadable" // the item cannot be read
	OurFault   Reason = "ours"       // our own faults lasted for a day
)

// Delivery is the duty to announce one release to one destination.
type Delivery struct {
	Key
	Status     Status
	Reason     Reason // with skipped, and with failed: a Class or one of the reasons above
	Successor  int64  // the release that superseded it; 0: none
	Round      int64  // from 1; a redelivery starts the next
	Rev        int64  // rises with every transaction that writes slot and delivery
	WebhookID  string
	Body       []byte
	FirstTryAt time.Time // of this round; zero before it
	TryAt      time.Time // not to be tried earlier
	Tries      int64     // of this round, lost ones among them
	Lost       int64     // of this round: attempts whose outcome is unknown
	Ours       Ours
	Attempts   []Attempt     // the last AttemptsKept, by number
	Numbered   int64         // the number of the last attempt over all rounds
	Over       int64         // forced redelivery: the newest release that the person saw; 0: not forced
	Asked      time.Duration // the last Retry-After, as asked
	Used       time.Duration // the wait it led to
	SweepAt    time.Time
	Sweeps     int64
	CreatedAt  time.Time
	EndedAt    time.Time // zero while it is not terminal
	Before     *Result   // what the rounds before this one came to; nil in the first
	Fault      Fault     // what of the item could not be read
}

// Result is how a round ended.
type Result struct {
	Status    Status
	Reason    Reason
	Successor int64
	Round     int64
	At        time.Time
}

// Result is what the delivery came to. A redelivery that was skipped changes
// nothing about what the rounds before it came to, so theirs stands.
func (d Delivery) Result() Result {
	if d.Status == Skipped && d.Before != nil {
		return *d.Before
	}
	return Result{Status: d.Status, Reason: d.Reason, Successor: d.Successor, Round: d.Round, At: d.EndedAt}
}

// Fault says that an item is not what this build can read.
type Fault string

// An item of a newer version waits for a newer build; one with missing or absurd
// attributes ends.
const (
	FaultUnknownVersion Fault = "unknown-version"
	FaultUnreadable     Fault = "unreadable"
)

// Forced says whether a person asked for it over a newer release.
func (d Delivery) Forced() bool { return d.Over > 0 }

// Ours counts our own faults on a delivery since the first of them.
type Ours struct {
	Count int64
	Since time.Time
}

// Attempt is one HTTP request of a delivery.
type Attempt struct {
	Number   int64 // runs on over rounds, from 1
	Round    int64
	Token    string // the claim it was sent under
	By       Writer
	At       time.Time
	Elapsed  time.Duration
	Class    Class
	Status   int    // the HTTP status; 0: none
	Detail   string // a kind of the class in our own words: "expired 2026-01-02"
	Received Receipt
	Asked    time.Duration // Retry-After, as asked; 0: none
	Used     time.Duration // the wait that followed; 0: none
	Late     string        // a result that came after the lease: kept, changes nothing
}

// Writer says who wrote an attempt.
type Writer string

// An attempt is written by the worker that sent it, or by one that found its
// lease run out.
const (
	ByRecord Writer = "record"
	BySettle Writer = "settle"
)

// Receipt says whether a receiver may have got an attempt's request.
type Receipt string

// What is known of the receiver.
const (
	Answered    Receipt = "answered"     // it answered
	MayHave     Receipt = "may-have"     // the request, or a part of it, left
	NotReceived Receipt = "not-received" // the connection never stood
)

// SlotState says whether a destination takes deliveries.
type SlotState string

// A slot that does not exist counts as removed.
const (
	SlotActive  SlotState = "active"
	SlotPaused  SlotState = "paused"
	SlotRemoved SlotState = "removed"
)

// PausedBy says who paused a destination.
type PausedBy string

// A person pauses, and a receiver that answers 410.
const (
	PausedByPerson PausedBy = "person"
	PausedByGone   PausedBy = "gone"
)

// Slot is the one place per destination from which anything is sent.
type Slot struct {
	State            SlotState
	PausedBy         PausedBy // with paused
	Version          int64    // rises with every write
	Holder           *Holder  // nil: free
	LastRelease      int64    // the delivery that the last slot transaction wrote
	LastRev          int64    // and the Rev it gave it
	Waiting          int64    // a release that its last record left retrying; 0: none
	SentThrough      int64    // the highest release ever claimed
	DeliveredThrough int64    // the highest release ever delivered
	Slow             bool     // the last attempt took longer than SlowAttempt
	Unreadable       bool     // the item is not what it should be: nothing can be sent from it
}

// Holder is the claim in a slot.
type Holder struct {
	Token   string
	Release int64
	Round   int64
	Attempt int64 // its number on the delivery
	Since   time.Time
	Until   time.Time // the lease's end
}

// Settings say where a destination's deliveries go. Secrets are sealed here and
// opened for an attempt only.
type Settings struct {
	Name              string
	URL               string
	Secret            Sealed           // the current signing secret
	SecretFingerprint []byte           // recognizes it when it is brought again; nil: not known
	Previous          []PreviousSecret // those that it replaced, the newest first
	Headers           Sealed           // custom headers' values, sealed together
	HeaderNames       []string         // their names, for people
	Version           int64            // rises with every write
	CreatedAt         time.Time
	UpdatedAt         time.Time
}

// Reading is what one strong read of a destination showed: the slot first, then
// the deliveries, so nothing in the slot is newer than what stands beside it.
type Reading struct {
	Key                // the delivery that rang
	Slot     Slot      // State removed where there is none
	Settings Settings  // empty where removed
	Newest   *Delivery // m; nil: the destination has no deliveries
	Rang     *Delivery // n; nil: missing
	Clock    ClockOffset
}

// Torn says whether the reading mixes states from before and after a
// transaction: a delivery older than the slot's last word on it, or a release
// claimed that the query did not show.
func (r Reading) Torn() bool {
	for _, d := range []*Delivery{r.Newest, r.Rang} {
		if d != nil && d.Release == r.Slot.LastRelease && d.Rev < r.Slot.LastRev {
			return true
		}
	}
	newest := int64(0)
	if r.Newest != nil {
		newest = r.Newest.Release
	}
	return r.Slot.SentThrough > newest
}
