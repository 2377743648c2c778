package egress

import (
	"errors"
	"net"
	"time"
)

var errPastInstant = errors.New("the wall clock has passed the last instant for writing")

// conn is an open connection whose every write asks the wall clock first. A sandbox can be frozen for minutes between
// two instructions, and a timer that counts running time does not see it: a lease, and the right to send, would be over.
type conn struct {
	net.Conn
	clock    func() time.Time
	notAfter time.Time
	written  int64 // bytes that the kernel took
	refused  bool  // a write came too late
}

func (c *conn) Write(b []byte) (int, error) {
	if past(c.clock(), c.notAfter) {
		c.refused = true
		return 0, errPastInstant
	}
	n, err := c.Conn.Write(b)
	c.written += int64(n)
	return n, err
}

// past compares by the wall clock: Round(0) drops the monotonic reading, which a freeze may stop.
func past(now, notAfter time.Time) bool {
	return !now.Round(0).Before(notAfter.Round(0))
}

// reset makes the next close throw away what the kernel has not sent and tell the receiver so (linger 0); with false a
// close is an ordinary one again. A connection that is not TCP (tests) has no such switch.
func (c *conn) reset(on bool) error {
	tcp, ok := c.Conn.(interface{ SetLinger(seconds int) error })
	if !ok {
		return nil
	}
	if on {
		return tcp.SetLinger(0)
	}
	return tcp.SetLinger(-1)
}
