// Package sweep puts the sweep function together: the sweeper between the sweep
// index and the queue.
//
// It promises that what tests and benches build is what is deployed:
// functions/sweep only reads the environment. No invariant lives here;
// internal/outbox has I5's part of it.
package sweep
