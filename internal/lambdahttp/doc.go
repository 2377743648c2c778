// Package lambdahttp lets an http.Handler answer API Gateway's REST proxy events.
//
// It promises that a handler sees the request, and a caller the answer, that
// net/http would have brought: repeated headers and query values, bytes in both
// directions, sniffed content types, no body after HEAD, 204 and 304. Its test
// sends the same requests through both and compares.
//
// What it cannot promise is decided by the gateway before the event is made: the
// path has been decoded once (an escaped slash looks like a slash), the order of
// different query parameters is lost, and answers are never streamed. [Gateway]
// tells a handler what only the gateway knows. It leaves panics to the handler.
package lambdahttp
