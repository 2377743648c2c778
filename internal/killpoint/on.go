//go:build killpoints

package killpoint

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// At kills the process by SIGKILL where COLOPHON_KILL_AT names this point and
// COLOPHON_KILL_ONCE does not say that it fired before.
func At(name Name) {
	if os.Getenv("COLOPHON_KILL_AT") != string(name) {
		return
	}
	if once := os.Getenv("COLOPHON_KILL_ONCE"); once != "" {
		file, err := os.OpenFile(once, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if errors.Is(err, fs.ErrExist) {
			return
		}
		if err != nil {
			panic("killpoint: " + err.Error()) // a test that never kills would pass
		}
		file.Close()
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
		panic("killpoint: " + err.Error())
	}
	select {} // nothing after the point runs while the signal is on its way
}
