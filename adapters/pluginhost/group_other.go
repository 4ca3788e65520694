//go:build !linux

package pluginhost

import "os/exec"

// setOwnGroup does nothing on systems other than Linux, where only the plugin's own process is
// killed.
func setOwnGroup(*exec.Cmd) {}

// awaitExit returns false: it cannot wait on this system.
func awaitExit(*exec.Cmd) bool { return false }

// killGroup does nothing. The caller also kills the process itself.
func killGroup(*exec.Cmd) {}
