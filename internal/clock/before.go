package clock

import (
	"context"
	"time"
)

// EndingBefore is a context that ends so long before its parent's deadline. A
// function works in it and keeps the rest to return what it did: Lambda kills one
// that returns nothing, and what it did not say is not known. A parent without a
// deadline is returned as it is, but for the cancel function.
func EndingBefore(parent context.Context, keep time.Duration) (context.Context, context.CancelFunc) {
	deadline, ok := parent.Deadline()
	if !ok {
		return context.WithCancel(parent)
	}
	return context.WithDeadline(parent, deadline.Add(-keep))
}
