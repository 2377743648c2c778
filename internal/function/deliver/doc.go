// Package deliver puts the deliver function together: both queues' consumer, the
// worker behind it, the store below it and the one way out.
//
// It promises that what tests and benches build is what is deployed: functions/deliver
// only reads the environment. No invariant lives here; internal/delivery has them.
package deliver
