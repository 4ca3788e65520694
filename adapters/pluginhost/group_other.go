//go:build !linux

package pluginhost

import "os/exec"

// ownGroup does nothing where groups are not known: only the process itself is killed.
func ownGroup(*exec.Cmd) {}

// awaitExit cannot tell.
func awaitExit(*exec.Cmd) bool { return false }

// killGroup does nothing; the process itself is killed beside it.
func killGroup(*exec.Cmd) {}
