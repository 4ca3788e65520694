package toollist

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tollgate-dev/tollgate/core/registry/tools"
)

// Program is a command that starts a package, which talks by its standard streams.
type Program struct {
	Name    string        // of the package, for errors
	Command []string      // the program, which is looked for in PATH, and its arguments
	Environ []string      // all that it gets
	Timeout time.Duration // PackageTimeout, unless a test cannot wait so long
}

// stopDelay is how long a package may take to end.
const stopDelay = 3 * time.Second

// ReadProgram starts a package in an empty folder, reads its list and ends it. What the package writes to standard
// error is not shown: it may have secrets. It returns fault.Unavailable, with a sentence that names the package, if its
// list cannot be read.
func ReadProgram(ctx context.Context, p Program) (tools.List, error) {
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	list, err := readProgram(ctx, p)
	return list, explain(ctx, p.Name, p.Timeout, err)
}

func readProgram(ctx context.Context, p Program) (tools.List, error) {
	dir, err := os.MkdirTemp("", "tollgate-tools-")
	if err != nil {
		return tools.List{}, fmt.Errorf("make a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // the system clears temporary files
	running, stop := context.WithCancel(ctx)
	cmd := exec.CommandContext(running, p.Command[0], p.Command[1:]...) // #nosec G204 -- the person wants it started
	cmd.Dir, cmd.Env = dir, append([]string{}, p.Environ...)
	setOwnGroup(cmd)
	cmd.Cancel = func() error { return signalGroup(cmd, syscall.SIGTERM) }
	cmd.WaitDelay = stopDelay
	defer stop()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return tools.List{}, fmt.Errorf("start it: %w", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return tools.List{}, fmt.Errorf("start it: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return tools.List{}, fmt.Errorf("start it: %w", err)
	}
	defer func() {
		_ = stdin.Close() // first of all: a server ends when its input does
		stop()
		_ = cmd.Wait()                        // it was ended
		_ = signalGroup(cmd, syscall.SIGKILL) // what it has started, and is left
	}()
	output := &boundedOutput{ReadCloser: stdout, left: maxBytes}
	return readList(ctx, &tap{Transport: &mcp.IOTransport{Reader: output, Writer: stdin, MaxLineLength: maxBytes}})
}

// boundedOutput is the output of a package.
type boundedOutput struct {
	io.ReadCloser

	left int
}

// Read implements [io.Reader].
func (o *boundedOutput) Read(p []byte) (int, error) {
	n, err := o.ReadCloser.Read(p)
	if o.left -= n; o.left < 0 {
		return 0, errTooMuch
	}
	return n, err
}
