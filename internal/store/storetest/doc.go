// Package storetest holds the suites that every store.Engine must pass, and what
// tests put around an engine.
//
// A suite acts through the store's own types and looks at what they read back.
// [Judge] holds the engine at hand to store.Condition and store.Apply at every
// write, so that what the simulator evaluates is what a table does (I1, I2 and I3
// are such conditions). [Faulty] adds what a local engine never shows: lost
// answers, conflicts, throttling.
package storetest
