//go:build killpoints

package killpoint

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Enabled says whether this build can be killed.
const Enabled = true

// At kills the process by SIGKILL where there is an order to. Taking the order
// away is what carries it out once: of two processes one succeeds.
func At(name Name) {
	orders := os.Getenv("COLOPHON_ORDERS")
	if orders == "" {
		return
	}
	err := os.Remove(filepath.Join(orders, "kill-"+string(name)))
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		panic("killpoint: " + err.Error()) // a test that never kills would pass
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
		panic("killpoint: " + err.Error())
	}
	select {} // nothing after the point runs while the signal is on its way
}
