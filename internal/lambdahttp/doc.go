// Package lambdahttp lets an http.Handler answer API Gateway's REST proxy events.
//
// It promises that a handler sees the request, and a caller the answer, that
// net/http would have brought: repeated headers and query values, bytes in both
// directions, sniffed content types, no body after HEAD, 204 and 304. Its test
// sends the same requests through both and compares.
//
// What it cannot promise is decided by the gateway. Before the event is made, the
// path has been decoded once, so that an escaped slash looks like a slash (the
// local stack's gateway leaves it as it came: addresses are best made of letters
// that need no escape), and the order of different query parameters is lost.
// After it, answers are never streamed, some headers are renamed
// (WWW-Authenticate to X-Amzn-Remapped-…), and bytes that are no text reach the
// caller only where the API's binary media types say so. [Gateway] tells a
// handler what only the gateway knows. It leaves panics to the handler.
package lambdahttp
