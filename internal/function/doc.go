// Package function holds the four functions, each put together in a package of
// its own from its environment: what tests and benches build is what is deployed.
//
// Its own tests run them together, on a real table engine and a real queue.
package function
