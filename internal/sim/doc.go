// Package sim runs the real code in a simulated world, over and over, and looks
// for one in which a rule of the protocol is broken.
//
// What runs unchanged: internal/delivery's worker and all it decides, internal/
// outbox's forwarder, consumer and sweeper, internal/content's publish,
// internal/destination's actions, and internal/store's conditional writes. What is
// simulated: the tables (their conditions are evaluated by store.Condition itself,
// which storetest holds to the real engine), the stream, the queues, the
// receivers and the wire, the people, the processes, and time. Processes are
// killed and stand still at every call, writes are lost, late or done twice,
// transactions become visible item by item, messages are lost, late and doubled.
//
// It promises that a seed is a world: all that is not determined comes from one
// source of choices, and nothing runs side by side. I1 to I5 are held at each
// committed write, each request that leaves and each that arrives, and at the end:
// see the rules in check.go, which know nothing of how the code comes to what it
// does. A run that breaks one is made as small as can be and told as a story.
//
// What it takes for granted is said where it is simulated: wire.go, what
// internal/egress sees to; table.go, how long a transaction can be seen in part.
// It leaves to others I6 and I7, test sends, damaged items, and AWS itself.
package sim
