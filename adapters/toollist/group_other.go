//go:build !unix

package toollist

import (
	"os/exec"
	"syscall"
)

// setOwnGroup does nothing: here a server ends with its input.
func setOwnGroup(*exec.Cmd) {}

// signalGroup sends a signal to the program.
func signalGroup(cmd *exec.Cmd, s syscall.Signal) error { return cmd.Process.Signal(s) }
