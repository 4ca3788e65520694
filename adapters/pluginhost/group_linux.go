package pluginhost

import (
	"errors"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// setOwnGroup puts the process into its own process group, so that signals from the service's
// terminal do not reach it, and the processes that it starts can be killed with it.
func setOwnGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// awaitExit returns true when the process has ended and has not been reaped, so that no other
// process has its id yet. It returns false if it cannot wait for the process.
func awaitExit(cmd *exec.Cmd) bool {
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}

// killGroup kills the process and all processes that it has started. Call it before the process is
// reaped.
func killGroup(cmd *exec.Cmd) {
	_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) // fails if no process of the group is left
}
