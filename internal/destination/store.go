package destination

import (
	"context"
	"time"

	"colophon/internal/delivery"
	"colophon/internal/failure"
)

// What a Store's errors wrap where asking again can help, see package failure.
var (
	ErrMoved       = failure.ErrMoved
	ErrBusy        = failure.ErrBusy
	ErrUnknown     = failure.ErrUnknown
	ErrUnavailable = failure.ErrUnavailable
)

// Store keeps destinations. Its reads are strongly consistent.
type Store interface {
	// Project reads a project; nil where there is none.
	Project(ctx context.Context, project string) (*Project, error)
	// Holdings reads what is kept of destinations, in the order of their ids.
	Holdings(ctx context.Context, project string, ids []string) ([]Holding, error)
	// Commit writes all of an operation or nothing. The token makes it harmless
	// to ask for the very same operation again.
	Commit(ctx context.Context, token string, o Operation) error
}

// History reads what became of deliveries. Its reads are strongly consistent.
type History interface {
	// Read reads a destination and one of its deliveries for a decision.
	Read(ctx context.Context, key delivery.Key) (delivery.Reading, error)
	// Release reads a release's deliveries to those that it was announced to, in
	// their order; found is false where there is no such release. A Delivery is
	// nil where it has expired.
	Release(ctx context.Context, project string, release int64) (entries []Entry, found bool, err error)
	// Range reads deliveries of the releases from … to, newest first.
	Range(ctx context.Context, d delivery.Destination, from, to int64, limit int) ([]delivery.Delivery, error)
	// Test reads a test send; nil where there is none.
	Test(ctx context.Context, d delivery.Destination, id string) (*delivery.TestSend, error)
	// Spent reads what was taken from the limits of a destination and of an origin
	// in its project; empty: of no origin.
	Spent(ctx context.Context, d delivery.Destination, origin string) (Spent, error)
}

// Project is what a change of a project's destinations is decided from.
type Project struct {
	ID           string
	Name         string
	Newest       int64 // the newest release; 0: none
	Version      int64 // moves with every publish and every change of Destinations
	Destinations []string
}

// Holding is what is kept of a destination. Its slot's Version is 0 where the
// destination never was.
type Holding struct {
	ID       string
	Slot     delivery.Slot
	Settings delivery.Settings
}

// Entry is a delivery with its destination.
type Entry struct {
	Holding
	Delivery *delivery.Delivery
}

// Operation is what one transaction writes; one of the types below.
type Operation interface{ operation() }

// The operations. What was read stands in them as a condition.
type (
	// Adding makes a destination and names it in its project.
	Adding struct {
		delivery.Destination
		ProjectVersion int64 // as read
		IDs            []string
		Settings       delivery.Settings
	}
	// Removing takes a destination out of its project and leaves a tombstone
	// without address, secrets and headers. A holder of the slot stays: its
	// attempt ends and is recorded.
	Removing struct {
		delivery.Destination
		ProjectVersion int64 // as read
		IDs            []string
		At             time.Time
		Damaged        bool // slot or settings cannot be read: they are written anew
	}
	// Switching moves a slot between active and paused.
	Switching struct {
		delivery.Destination
		From, To delivery.SlotState
		By       delivery.PausedBy // with To paused
	}
	// Resetting replaces a destination's settings.
	Resetting struct {
		delivery.Destination
		Version  int64 // as read
		Settings delivery.Settings
	}
	// Requeueing starts the next round of a delivery that has ended.
	Requeueing struct {
		Delivery    delivery.Delivery // as read
		SlotVersion int64             // as read
		Over        int64             // forced over this release; 0: not forced
		At          time.Time
		Spending    Spending
	}
	// Advancing makes a pending delivery due now.
	Advancing struct {
		Delivery    delivery.Delivery // as read
		SlotVersion int64             // as read
		At          time.Time
		Spending    Spending
	}
	// Testing writes a test send.
	Testing struct {
		Test     delivery.TestSend
		Spending Spending
	}
)

func (Adding) operation()     {}
func (Removing) operation()   {}
func (Switching) operation()  {}
func (Resetting) operation()  {}
func (Requeueing) operation() {}
func (Advancing) operation()  {}
func (Testing) operation()    {}

// After is the delivery as the operation leaves it.
func (q Requeueing) After() delivery.Delivery {
	d, before := q.Delivery, q.Delivery.Result()
	if before.At.IsZero() { // ended by a write that touched the status alone
		before.At = q.At
	}
	return delivery.Delivery{
		Key: d.Key, Status: delivery.Queued, Round: d.Round + 1, Rev: d.Rev + 1, WebhookID: d.WebhookID, Body: d.Body,
		TryAt: q.At, Attempts: d.Attempts, Numbered: d.Numbered, Over: q.Over, SweepAt: q.At.Add(delivery.SweepDelay),
		CreatedAt: d.CreatedAt, Before: &before,
	}
}

// After is the delivery as the operation leaves it.
func (a Advancing) After() delivery.Delivery {
	d := a.Delivery
	d.Rev++
	d.TryAt, d.SweepAt, d.Sweeps = a.At, a.At.Add(delivery.SweepDelay), 0
	return d
}
