// Package outboxstream puts the outbox-stream function together: the forwarder
// between the delivery table's stream and the queue.
//
// It promises that what tests and benches build is what is deployed:
// functions/outbox-stream only reads the environment. No invariant lives here;
// internal/outbox has I5's part of it.
package outboxstream
