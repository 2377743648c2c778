package clock

import (
	"context"
	"time"
)

// Sleep waits, or returns the context's error where that ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// System is Now and Sleep in one value.
type System struct{}

// Now is the time.
func (System) Now() time.Time { return Now() }

// Sleep waits, or returns the context's error where that ends first.
func (System) Sleep(ctx context.Context, d time.Duration) error { return Sleep(ctx, d) }
