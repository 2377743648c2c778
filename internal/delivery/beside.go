package delivery

import (
	"context"
	"time"
)

// Beside runs b on a goroutine of its own beside a and returns when both have
// ended. A panic of either is the caller's: on a goroutine it would end the process.
func Beside(a, b func()) {
	panicked := make(chan any, 1)
	go func() {
		defer func() { panicked <- recover() }()
		b()
	}()
	defer func() {
		if cause := <-panicked; cause != nil {
			panic(cause)
		}
	}()
	a()
}

// Left is what is left of an invocation; its deadline is the context's.
func Left(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return FunctionTime
	}
	return time.Until(deadline)
}
