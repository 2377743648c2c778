// Package clock is the functions' wall clock, and how they wait.
//
// In a build with the tag killpoints it can be moved: COLOPHON_ORDERS names a
// folder, and the file clock in it holds a Go duration that is added to the time,
// so that a test can look at an hour of retries without waiting for it. Waits are
// not shortened by it. Any other build has no such thing.
//
// The slot's lease stands on this clock and not on a monotonic one, which stops
// in a frozen sandbox (I1).
package clock
