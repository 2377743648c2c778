// Package webhook makes the bytes of an announcement: its body, its id, its signature and its headers, as the
// Standard Webhooks specification has them (https://www.standardwebhooks.com, version 1).
//
// Of invariant I4 (all attempts of a delivery carry the same id and the same body, byte for byte) it holds the making:
// Body and NewID are called once, when a release is published, and the results are stored. What differs from attempt to
// attempt stands in headers only (Attempt.Headers).
//
// A Secret prints as "whsec_(hidden)" in every format; Reveal is the one way to its text. Everything here is pure but
// for the randomness it is given. Sending is left to the egress package, sealing secrets to the store.
package webhook
