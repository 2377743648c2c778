// Package access says who asks and what they may do.
//
// It promises that a token is shown once and kept as its SHA-256 only; that one
// which is missing, malformed, expired or revoked lets nobody in; and that a
// project which a token does not reach looks exactly like one that is not there.
//
// I6 in part: no secret of a person stands in any table, so none can be read
// from one.
//
// It leaves keeping tokens to internal/store, and carrying one in a request to
// internal/httpapi.
package access
