package instance

import (
	"fmt"
	"os/exec"
	"syscall"
)

// Guard kills processes, or process groups by their ids after "-", when the process of the test
// ends before stop is called, also if it is killed: for those that endWithTest does not reach.
func Guard(ids ...string) (stop func(), err error) {
	cmd := exec.Command("/bin/sh", append([]string{"-c", `read -r _; kill -KILL "$@"`, "sh"}, ids...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if _, err := cmd.StdinPipe(); err != nil { // the pipe ends with this process
		return nil, fmt.Errorf("guard of processes: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("guard of processes: %w", err)
	}
	return func() {
		_ = cmd.Process.Kill() // it waits
		_ = cmd.Wait()         // it ends by a signal, which is an error
	}, nil
}
