//go:build unix

package main

import (
	"os"
	"syscall"
)

// lock keeps a file for this process until it ends, however it ends.
func lock(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// unlock gives it back: closing alone would not, while a process that is just
// being started has a copy.
func unlock(file *os.File) { _ = syscall.Flock(int(file.Fd()), syscall.LOCK_UN) }
