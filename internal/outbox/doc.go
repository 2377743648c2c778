// Package outbox carries deliveries from the table to the workers, and back to
// them what fell through.
//
// A message is a doorbell: keys and a trace id, so that nothing in a queue can be
// out of date or tell a secret. It may come late, twice, or not at all. What
// must hold here is I5, every committed delivery ends:
//
//   - [Forwarder] (outbox-stream) puts each record that rings on the queue. What
//     stands before the sequence number that it reports is on the queue or set
//     aside; everything from there on is repeated.
//   - [Sweeper] (sweep) finds, each minute, what is due and was not rung for:
//     what the stream lost after its day, a lost message, a wait that was too long
//     for the queue. It moves a delivery on in the index before it sends, so one
//     that is killed between the two, or whose queue refuses, leaves the delivery
//     to a later sweep: 2, 4, 8 … minutes, at most an hour, later.
//   - [Consumer] (deliver) deletes a message only when its answer is written.
//   - [Sender.SetAside] and [DeadLetters] keep what nobody can read, with the
//     reason, until a person has looked at it.
//
// An idle sweep costs 64 queries of an empty index, half a read unit each: 32
// units a minute, 1,382,400 in a month of 30 days. At 0.125 dollars for a million
// that is 0.17 dollars a month. A delivery of up to 1 KB that is swept costs
// 3 write units (itself, and out of and into its place in the index) and a
// message; one that was swept before costs one more, for the refusal that tells
// how often.
//
// It leaves what is done about a delivery to internal/delivery and the index's
// conditions to internal/store.
package outbox
