package instance

import (
	"os/exec"
	"syscall"
)

// endWithTest makes the system send a signal to a process when the process of the test ends, also
// one that was killed or took too long. Call it after the other attributes of the process are set.
func endWithTest(cmd *exec.Cmd, end syscall.Signal) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = end
}
