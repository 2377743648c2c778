//go:build !linux

package egress

import "syscall"

// setUserTimeout does nothing: the option is Linux's. Functions run there; other systems run the command and tests.
func setUserTimeout(syscall.RawConn) error { return nil }
