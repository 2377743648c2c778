// Package checked holds the pages of docs to what they say: its tests take the
// receivers out of receiving.md and run them against requests that internal/webhook
// signed, compare security.md with the module's dependencies, and security.md and
// testing.md with the tests that there are. Another makes names.golden, the list of
// every stored and spoken name, from the sources and compares. Links of all pages are
// followed, and design.md is held to the code's rows, limits and items.
//
// Each command on a page is run: [Runs] says for each where. What the local stack has
// to run is typed by e2e, what takes longer by "make pages", and a short list needs AWS.
//
// What needs no more than Go runs with all tests. The receivers in JavaScript and
// Python have the build tag verifiers and fail where Node or Python is missing;
// "make verifiers" installs what they need, locked, and runs them.
package checked
