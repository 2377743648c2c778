// Package delivery decides what is done about a delivery, and does it.
//
// The decision is pure: [Decide] takes what one strong read showed and the time
// and returns a value that says what to do; its rows stand in the order of the
// protocol (docs/model maps them to the model's steps). [Schedule] and
// [Classify] are pure too. The [Worker] around them reads, decides, claims,
// sends and records, in that order, and holds the kill points.
//
// What must hold, and where (docs/design.md has the rules in full):
//
//	I1  one live lease per destination: Worker.claim writes the slot as it was read
//	I2  an outcome is recorded by the token in the slot only: Worker.record
//	I3  nothing after a newer one but a forced redelivery over what a person saw:
//	    Decide's rows on sentThrough, newest and over
//	I4  id and body come from the item as published; nothing here makes either
//	I5  every delivery ends: each row of Decide ends, waits or sends, and what
//	    waits has a sweepAt
//	I7  a hanging destination moves to the slow queue after its first hang: Decide
//
// A test send ([Worker.AnswerTest]) is one request outside all this; [Examine]
// says of a doctor's what it showed.
//
// It leaves the bytes to internal/webhook, the connection to internal/egress,
// the conditional writes to internal/store, and the queue to internal/outbox.
package delivery
