// Bench puts load on the functions as they are deployed and says what became of
// every release: the books are balanced after each run, and a run whose books do
// not balance fails, whatever its speed.
//
// It starts processes of their own: the table engine, a queue and key engine, the
// four functions (the Mains that functions/ wires), what Lambda does around them
// (the mappings), a receiver, and the clients. A parent measures them from
// outside. All of them end with it.
//
// It promises that nothing is easier here than in production: requests are the
// gateway's proxy events through the Lambda runtime's own decoding; batches,
// filters, partial failures, visibility and concurrency are Lambda's. It keeps no
// invariant and changes none: books.go checks I3, I4 and I5 from outside. What it
// cannot show: API Gateway, AWS's own times, throttling.
//
//	go run ./bench steady -rate 40 -duration 5m
//	go run ./bench help
package main
