// Package client speaks to a Colophon API. All but client.go is generated from
// api/openapi.yaml: a method for each operation, a type for each schema.
//
// It promises no more than the description does: requests are checked before
// they are sent, answers before they are returned. An operation that was refused
// returns an error in which [AsProblem] finds the API's own words. It does not
// retry; a publish with an Idempotency-Key may be asked again after any error.
package client
