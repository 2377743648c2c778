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

// At kills the process by SIGKILL, or panics, where there is an order to.
func At(name Name) {
	orders := os.Getenv("COLOPHON_ORDERS")
	if orders == "" {
		return
	}
	if taken(filepath.Join(orders, "panic-"+string(name))) {
		panic("killpoint: ordered at " + string(name))
	}
	if !taken(filepath.Join(orders, "kill-"+string(name))) {
		return
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
		panic("killpoint: " + err.Error())
	}
	select {} // nothing after the point runs while the signal is on its way
}

// taken takes an order away, which is what carries it out once: of two that pass
// the point one succeeds.
func taken(order string) bool {
	err := os.Remove(order)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		panic("killpoint: " + err.Error()) // a test that never kills would pass
	}
	return err == nil
}
