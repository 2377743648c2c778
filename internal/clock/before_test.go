package clock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"colophon/internal/clock"
)

func TestAContextEndsBeforeItsParentsDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		parent, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		ctx, stop := clock.EndingBefore(parent, time.Second)
		defer stop()
		<-ctx.Done()
		if after := time.Since(began); after != 19*time.Second || parent.Err() != nil || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Errorf("it ended after %v with %v, its parent with %v", after, ctx.Err(), parent.Err())
		}
	})
}

func TestAContextWithoutADeadlineEndsWhenItIsStopped(t *testing.T) {
	t.Parallel()
	ctx, stop := clock.EndingBefore(context.Background(), time.Second)
	if _, ok := ctx.Deadline(); ok || ctx.Err() != nil {
		t.Errorf("it has a deadline (%v), or has ended: %v", ok, ctx.Err())
	}
	stop()
	if ctx.Err() == nil {
		t.Error("it goes on")
	}
}
