package storetest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"colophon/internal/failure"
	"colophon/internal/store"
)

// Fault is what happens to one write on its way.
type Fault int

// The faults that a real table has and a local engine has not.
const (
	None        Fault = iota
	RequestLost       // outcome unknown: it is not carried out
	AnswerLost        // outcome unknown: it is carried out
	Late              // outcome unknown: it is carried out a little later
	Conflict          // refused: another transaction is at work on the first item
	Throttled         // not carried out: more than the table takes; the whole request

	// A transaction that is cancelled because the table is short of units for one
	// of its writes; a single write is Throttled.
	ThrottledFirst
	ThrottledLast
)

// Faulty is an Engine whose writes meet faults.
type Faulty struct {
	store.Engine
	// Choose is asked before each write and may do anything else before it
	// answers; it is asked from many goroutines at once. nil: None.
	Choose func(writes []store.Write) Fault
	// Delay is how late a Late write is.
	Delay func() time.Duration

	late sync.WaitGroup
}

// Write meets a fault, or carries a write out.
func (f *Faulty) Write(ctx context.Context, w store.Write) (store.Item, error) {
	var item store.Item
	err := f.meet(ctx, []store.Write{w}, func(ctx context.Context) (err error) {
		item, err = f.Engine.Write(ctx, w)
		return err
	})
	return item, err
}

// Transact meets a fault, or carries all writes out or none.
func (f *Faulty) Transact(ctx context.Context, token string, writes []store.Write) error {
	return f.meet(ctx, writes, func(ctx context.Context) error { return f.Engine.Transact(ctx, token, writes) })
}

// Settle waits until all late writes were carried out.
func (f *Faulty) Settle() { f.late.Wait() }

func (f *Faulty) meet(ctx context.Context, writes []store.Write, do func(context.Context) error) error {
	fault := None
	if f.Choose != nil {
		fault = f.Choose(writes)
	}
	switch fault {
	case None:
		return do(ctx)
	case RequestLost:
	case AnswerLost:
		_ = do(ctx) // whatever came of it, nobody hears of it
	case Late:
		f.late.Go(func() {
			time.Sleep(f.Delay())
			_ = do(context.WithoutCancel(ctx))
		})
	case Conflict:
		refused := &store.Refused{Reasons: make([]store.Reason, len(writes))}
		refused.Reasons[0].Code = store.CodeConflict
		return refused
	case ThrottledFirst, ThrottledLast:
		if len(writes) > 1 {
			refused := &store.Refused{Reasons: make([]store.Reason, len(writes))}
			refused.Reasons[map[Fault]int{ThrottledLast: len(writes) - 1}[fault]].Code = store.CodeThrottled
			return refused
		}
		return fmt.Errorf("injected: %w", failure.ErrThrottled)
	case Throttled:
		return fmt.Errorf("injected: %w", failure.ErrThrottled)
	}
	return fmt.Errorf("injected: %w", failure.ErrUnknown)
}
