// Package httpapi is the JSON API of api/openapi.yaml: the generated server in
// its package openapi, the handlers behind it and the problems that it answers.
//
// It promises that whatever is asked gets an answer of the description: bad
// input is a problem that says what to do next, repeats nothing that was sent
// and has written nothing; a fault of ours is a neutral 500 with a request id,
// and a line in the log. Nothing is done before the token's role ([API.HandleBearer])
// and its reach ([API.authorize]) were judged, and both are in one place for all
// operations.
//
// I7 in part: a handler reads and writes tables and never calls a destination.
//
// It leaves the rules to internal/content, internal/destination and
// internal/access, whose refusals' codes it maps once (problems), and the events
// to internal/lambdahttp.
package httpapi
