//go:build unix

package toollist

import (
	"os/exec"
	"syscall"
)

// setOwnGroup puts a program and what it starts into a group of processes: npx starts the server, for example.
func setOwnGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// signalGroup sends a signal to the group. It fails if no process of it is left.
func signalGroup(cmd *exec.Cmd, s syscall.Signal) error {
	return syscall.Kill(-cmd.Process.Pid, s) //nolint:wrapcheck // it is not read
}
