package enginetest

import (
	"os/exec"
	"syscall"
)

// endWithParent has the kernel end the engine where the test binary is killed.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
