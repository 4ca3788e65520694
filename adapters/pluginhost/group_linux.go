package pluginhost

import (
	"errors"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownGroup makes the process lead a group of its own: signals of the service's terminal do not reach it, and what it starts
// can be killed with it.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// awaitExit returns true when the process has ended and is still to be reaped: until then its id stays its own. It returns
// false when that cannot be known.
func awaitExit(cmd *exec.Cmd) bool {
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}

// killGroup kills the process and all that it has started. It must be called before the process is reaped.
func killGroup(cmd *exec.Cmd) {
	_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) // it fails when nobody is left
}
