package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"colophon/internal/delivery"
	"colophon/internal/failure"
)

// Key is an item's key in either table: pk and sk.
type Key struct{ PK, SK string }

// The names of the key attributes in both tables.
const (
	attrPK = "pk"
	attrSK = "sk"
)

func (k Key) item() Item { return Item{attrPK: Text(k.PK), attrSK: Text(k.SK)} }

// Reader reads items. Every read is strongly consistent but those of an index,
// which DynamoDB cannot read so.
type Reader interface {
	// Get reads one item; nil where it does not exist.
	Get(ctx context.Context, table string, key Key) (Item, error)
	// BatchGet reads up to 100 items, in any order; missing ones are left out.
	BatchGet(ctx context.Context, table string, keys []Key) ([]Item, error)
	// Query reads a range of one partition.
	Query(ctx context.Context, q Query) (Page, error)
}

// Writer writes items.
type Writer interface {
	// Write carries one write out and returns the item as it is after it (nil
	// after a put or delete).
	Write(ctx context.Context, w Write) (Item, error)
	// Transact carries all writes out or none. A token makes a repeat of the
	// very same writes harmless for ten minutes.
	Transact(ctx context.Context, token string, writes []Write) error
}

// Engine is a table engine: DynamoDB, or the simulator's.
type Engine interface {
	Reader
	Writer
}

// Query asks for a range of one partition of a table or of an index.
type Query struct {
	Table string
	Index string // empty: the table itself
	// PK is the partition: a text in a table, Number in the sweep index.
	PK Value
	// From and To bound the sort key, both included; nil leaves a side open.
	From, To   Value
	Descending bool
	Limit      int32
	// After continues behind the page whose Last this is.
	After Item
}

// Page is a part of a query's answer.
type Page struct {
	Items []Item
	Last  Item // nil where there is no more
	Clock delivery.ClockOffset
}

// Write is one conditional write: exactly one of Put, Changes, Delete and Check.
type Write struct {
	Table   string
	Key     Key
	Put     Item     // the whole item but its key
	Changes []Change // an update, which creates a missing item
	Delete  bool
	Check   bool // nothing is written, the condition alone is asked
	If      Condition
}

// Code says why a write was refused.
type Code string

// The codes of a refusal.
const (
	CodeNone      Code = ""          // this write was not the reason
	CodeCondition Code = "condition" // its condition did not hold
	CodeConflict  Code = "conflict"  // another transaction is at work on the item
	CodeThrottled Code = "throttled" // more than the table can take just now
	CodeSize      Code = "size"      // the item or its collection is too large
	CodeOther     Code = "other"     // a fault of the request itself
)

// Reason is one write's part in a refusal. Old is the item as it stood, where
// the condition was the reason and the item exists.
type Reason struct {
	Code Code
	Old  Item
}

// Refused says that nothing was written, and why: one reason for each write.
type Refused struct{ Reasons []Reason }

func (r *Refused) Error() string {
	codes := make([]string, len(r.Reasons))
	for i, reason := range r.Reasons {
		codes[i] = string(reason.Code)
		if reason.Code == CodeNone {
			codes[i] = "-"
		}
	}
	return "refused: " + strings.Join(codes, ", ")
}

// Has says whether any write was refused with this code.
func (r *Refused) Has(code Code) bool {
	for _, reason := range r.Reasons {
		if reason.Code == code {
			return true
		}
	}
	return false
}

// Unwrap is the outcome that the reasons come to. A condition that did not hold
// decides, for waiting does not help there; a shortage lasts longer than another
// transaction. Reasons that are a fault of the request itself are no outcome.
func (r *Refused) Unwrap() error {
	switch {
	case r.Has(CodeCondition):
		return failure.ErrMoved
	case r.Has(CodeThrottled):
		return failure.ErrThrottled
	case r.Has(CodeConflict):
		return failure.ErrBusy
	}
	return nil
}

// AsRefused returns the refusal in an error, or nil.
func AsRefused(err error) *Refused {
	var refused *Refused
	if errors.As(err, &refused) {
		return refused
	}
	return nil
}

func (w Write) validate() error {
	kinds := 0
	for _, set := range []bool{w.Put != nil, w.Changes != nil, w.Delete, w.Check} {
		if set {
			kinds++
		}
	}
	if kinds != 1 || w.Table == "" || w.Key.PK == "" || w.Key.SK == "" {
		return fmt.Errorf("store: a write of %d kinds to table %q, key %q %q", kinds, w.Table, w.Key.PK, w.Key.SK)
	}
	return nil
}
