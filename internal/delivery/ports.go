package delivery

import (
	"context"
	"errors"

	"colophon/internal/failure"
)

// The outcomes of a write that every store has, see package failure.
var (
	ErrMoved     = failure.ErrMoved
	ErrBusy      = failure.ErrBusy
	ErrUncertain = failure.ErrUnknown
)

// What a write to the table can answer besides them. A store wraps these.
var (
	// ErrUnknownVersion: the item was written by a newer build; wait for one here.
	ErrUnknownVersion = errors.New("item of a version that is not known")
	// ErrLate: the token is not in the slot any more; the result changes nothing.
	ErrLate = errors.New("lease is over")
	// ErrEnded: the slot was ours and is free again, but the delivery had ended.
	ErrEnded = errors.New("delivery has ended")
)

// Reader reads what a decision needs.
type Reader interface {
	// Read reads slot, settings and newest delivery in one strong read, and the
	// delivery that rang after it where it is not the newest. Newest is never
	// older than Rang.
	Read(ctx context.Context, k Key) (Reading, error)
	// ReadDelivery reads one delivery, strongly; nil where there is none.
	ReadDelivery(ctx context.Context, k Key) (*Delivery, error)
}

// Slots writes the slot: every one of its writes moves the slot's version.
type Slots interface {
	// Claim puts the holder into the slot if its version is the one read, and
	// returns the slot as claimed. ErrMoved, ErrBusy, ErrUncertain.
	Claim(ctx context.Context, d Destination, read Slot, h Holder) (Slot, error)
	// GiveBack takes the holder with this token out of the slot; no error where
	// it is not there.
	GiveBack(ctx context.Context, d Destination, token string) error
	// Record writes an attempt's transition under its token, slot and delivery in
	// one transaction. ErrLate, ErrEnded, ErrBusy, ErrUncertain.
	Record(ctx context.Context, r Recording) error
	// Settle takes a holder out of the slot as it was read, and writes the
	// transition where there is one. ErrMoved, ErrBusy, ErrUncertain.
	Settle(ctx context.Context, s Settlement) error
}

// Endings writes deliveries that end without being sent, and what is noted on
// them beside the slot.
type Endings interface {
	// SkipPlain ends a delivery that is superseded for good: a write to it alone.
	// ErrMoved where it has ended, is forced or is in another round.
	SkipPlain(ctx context.Context, k Key, round, successor int64) error
	// EndChecked ends a delivery in one transaction with the slot as it was read.
	EndChecked(ctx context.Context, e Ending) error
	// EndUnreadable ends a delivery by touching its status and sweep keys only.
	EndUnreadable(ctx context.Context, k Key) error
	// CountOurs notes one more fault of our own and when to come back.
	CountOurs(ctx context.Context, d Delivery) error
}

// Notes keeps results that came too late.
type Notes interface {
	// NoteLate writes the note on the attempt that the token made; no error
	// where that attempt was never written.
	NoteLate(ctx context.Context, k Key, attempt int64, token, note string) error
}

// Recording is an attempt's end: what to write to slot and delivery.
type Recording struct {
	Delivery   Delivery // as read under the claimed version
	Slot       Slot     // as claimed
	Holder     Holder
	Transition Transition
	Slow       bool   // the attempt took longer than SlowAttempt
	Pause      bool   // the receiver is gone: pause the destination
	Request    string // names this write: the same Recording asked again is one write
}

// Settlement takes a holder whose lease is over out of the slot.
type Settlement struct {
	Destination Destination
	Slot        Slot      // as read
	Delivery    *Delivery // the holder's; nil where it is missing, ended or in another round
	Transition  Transition
	Request     string
}

// Ending ends a delivery under the slot's version.
type Ending struct {
	Slot      Slot // as read
	Delivery  Delivery
	Status    Status
	Reason    Reason
	Successor int64
	Request   string
}
