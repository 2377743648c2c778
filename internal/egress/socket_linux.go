package egress

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// userTimeout is after how long the kernel gives up on bytes that nobody acknowledges. It is shorter than an attempt, so
// that it holds where the process can no longer close its socket.
const userTimeout = 8000 // milliseconds

func setUserTimeout(socket syscall.RawConn) error {
	var failed error
	if err := socket.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, userTimeout)
	}); err != nil {
		return err
	}
	return failed
}
