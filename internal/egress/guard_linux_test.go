package egress

import (
	"context"
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

func TestTheKernelGivesUpOnBytesThatNobodyAcknowledges(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	d := &dialer{policy: newPolicy([]TargetOption{AllowLoopback()})}
	conn, err := d.netDialer().DialContext(context.Background(), "tcp4", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var timeout int
	if err := raw.Control(func(fd uintptr) {
		timeout, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
	}); err != nil {
		t.Fatal(err)
	}
	if err != nil || timeout != 8000 {
		t.Errorf("TCP_USER_TIMEOUT is %d ms (%v)", timeout, err)
	}
}
