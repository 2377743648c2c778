// Package killpoint kills the process at a named point of the protocol, so that
// tests can show that a crash there loses nothing (I5) and sends nothing twice
// under another id (I4).
//
// Only a build with the tag killpoints can be killed: COLOPHON_ORDERS names a
// folder, and a file kill-<point> in it is an order that is carried out once, by
// whichever process passes the point first. A file panic-<point> makes whoever
// passes it first panic, and its process goes on if that is recovered from. In any
// other build [At] does nothing and is inlined away.
package killpoint

// Name is a point of the protocol.
type Name string

// The points, in the order in which a release passes them.
const (
	AfterCommit   Name = "after-commit"   // api: the publish is committed, nobody was told
	BeforeEnqueue Name = "before-enqueue" // outbox-stream, sweep: keys read, not on the queue
	AfterEnqueue  Name = "after-enqueue"  // outbox-stream, sweep: on the queue, not reported
	AfterClaim    Name = "after-claim"    // deliver: the slot is held
	BeforeSend    Name = "before-send"    // deliver: before the first byte
	MidSend       Name = "mid-send"       // deliver: between two bytes of the request
	AfterSend     Name = "after-send"     // deliver: answered, not recorded
	AfterRecord   Name = "after-record"   // deliver: recorded, the rest of the message not seen to
	BeforeAck     Name = "before-ack"     // deliver: all done, the message not acknowledged
)

// Names lists the points in their order.
func Names() []Name {
	return []Name{
		AfterCommit, BeforeEnqueue, AfterEnqueue, AfterClaim, BeforeSend, MidSend, AfterSend, AfterRecord, BeforeAck,
	}
}
