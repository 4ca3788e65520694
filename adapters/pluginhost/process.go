package pluginhost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin/runner"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/plugins/sdk/handshake"
)

// drainTimeout is how long the host reads output after a plugin has ended, because a process that
// the plugin started may still have the pipe open.
const drainTimeout = time.Second

// process is the operating system process of a plugin. It implements go-plugin's runner, so that
// the host can kill the process at any time, also while go-plugin waits for it, together with the
// processes that the plugin has started.
type process struct {
	path string
	env  []string // the variables of the host, followed by those of go-plugin
	dir  string   // folder of the socket, which go-plugin creates; empty before the start
	log  *logrus.Entry

	stdout   *os.File // read by go-plugin: the handshake, then nothing
	lifeline *os.File // its end shows the plugin that the host is gone

	mu       sync.Mutex
	cmd      *exec.Cmd
	killed   bool
	reaped   bool          // the process is reaped: another group may have its id
	done     chan struct{} // closed when the process has ended and err and lastLine are set
	err      error
	lastLine string // on standard error
}

var _ runner.Runner = (*process)(nil)

// newRunner returns p as go-plugin's runner. cmd contains go-plugin's variables.
func (p *process) newRunner(_ hclog.Logger, cmd *exec.Cmd, dir string) (runner.Runner, error) {
	p.env = slices.Concat(p.env, cmd.Env, []string{handshake.LifelineKey + "=" + handshake.LifelineStdin})
	p.dir = dir
	return p, nil
}

// Start starts the process. It returns [context.Canceled] if killGroupOnce was called before.
func (p *process) Start(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.killed {
		return context.Canceled
	}
	pipes, err := openPipes()
	if err != nil {
		return err
	}
	// killGroupOnce ends the process; the given context ends with the handshake
	cmd := exec.CommandContext(context.Background(), p.path)
	cmd.Env = p.env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = pipes.in.r, pipes.out.w, pipes.err.w
	setOwnGroup(cmd)
	err = cmd.Start()
	pipes.closeChildEnds()
	if err != nil {
		pipes.closeHostEnds()
		return fmt.Errorf("start the process: %w", err)
	}
	p.cmd, p.stdout, p.lifeline = cmd, pipes.out.r, pipes.in.w
	go p.awaitEnd(pipes.err.r)
	return nil
}

// awaitEnd copies the output of the process to the log, and reaps the process when it ends.
func (p *process) awaitEnd(stderr *os.File) {
	output := &logWriter{log: p.log, defaultLevel: logrus.WarnLevel}
	var reading sync.WaitGroup
	reading.Go(func() {
		_, _ = io.Copy(output, stderr) // ends with the process, or drainTimeout after it
		output.flushLine()
	})
	if awaitExit(p.cmd) {
		p.releaseGroup(true)
	}
	p.err = p.cmd.Wait()
	p.releaseGroup(false)
	end := time.Now().Add(drainTimeout)
	_ = stderr.SetReadDeadline(end)   // fails only for a closed pipe
	_ = p.stdout.SetReadDeadline(end) // fails only for a closed pipe
	reading.Wait()
	p.lastLine = output.lastLine()
	_ = stderr.Close()     // read to its end
	_ = p.lifeline.Close() // the plugin has ended
	close(p.done)
}

// releaseGroup marks the process as reaped, because another process may get its id. If held is
// true, it first kills the remaining processes of the group.
func (p *process) releaseGroup(held bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if held {
		killGroup(p.cmd)
	}
	p.reaped = true
}

// killGroupOnce kills the process and all processes that it has started. It may be called before
// the start, which then fails, and more than once.
func (p *process) killGroupOnce() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.killed = true
	if p.cmd == nil || p.reaped {
		return
	}
	killGroup(p.cmd)
	_ = p.cmd.Process.Kill() // fails only if the process has ended
}

// processID returns the id of the process, or 0 before the start.
func (p *process) processID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

// exitError returns the error that says how the process ended. Call it only after done is closed.
func (p *process) exitError() error {
	if p.err == nil {
		return errors.New("the process exited with status 0")
	}
	return fmt.Errorf("the process exited: %w", p.err)
}

// ownExitError returns exitError if the process ended by itself, and nil if it never ran, still
// runs, or was killed.
func (p *process) ownExitError() error {
	select {
	case <-p.done:
	default:
		return nil
	}
	if p.cmd.ProcessState == nil || !p.cmd.ProcessState.Exited() {
		return nil
	}
	return p.exitError()
}

// startError returns the error for a process that ended before it served, with the last line that
// it printed, for example about a wrong setting.
func (p *process) startError(exit error) error {
	if p.lastLine == "" {
		return fmt.Errorf("%w before it served", exit)
	}
	return fmt.Errorf("%w before it served: %s", exit, p.lastLine)
}

// Wait returns when the process has ended. go-plugin calls it after it has read standard output to
// its end.
func (p *process) Wait(context.Context) error {
	<-p.done
	_ = p.stdout.Close() // read to its end
	return p.err
}

// Kill implements [runner.Runner].
func (p *process) Kill(context.Context) error {
	p.killGroupOnce()
	return nil
}

// Stdout returns standard output, where the plugin prints its address.
func (p *process) Stdout() io.ReadCloser { return p.stdout }

// Stderr returns an empty reader, because the host reads standard error itself.
func (p *process) Stderr() io.ReadCloser { return io.NopCloser(strings.NewReader("")) }

// Name returns the path of the binary.
func (p *process) Name() string { return p.path }

// ID returns the process id, or "" before the start.
func (p *process) ID() string {
	if pid := p.processID(); pid != 0 {
		return strconv.Itoa(pid)
	}
	return ""
}

// Diagnose returns "": it has no information to add to go-plugin's message.
func (p *process) Diagnose(context.Context) string { return "" }

// PluginToHost returns the address unchanged: host and plugin run on the same machine.
func (p *process) PluginToHost(network, address string) (string, string, error) {
	return network, address, nil
}

// HostToPlugin returns the address unchanged.
func (p *process) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}

type pipe struct{ r, w *os.File }

// pipes holds the standard streams of a child process.
type pipes struct{ in, out, err pipe }

func openPipes() (pipes, error) {
	var (
		p     pipes
		wrong error
	)
	for _, one := range []*pipe{&p.in, &p.out, &p.err} {
		if wrong == nil {
			one.r, one.w, wrong = os.Pipe()
		}
	}
	if wrong != nil {
		p.closeChildEnds()
		p.closeHostEnds()
	}
	return p, wrong
}

// The two close methods ignore errors: closing fails only for a file that is closed or was never
// opened.
func (p pipes) closeChildEnds() { _, _, _ = p.in.r.Close(), p.out.w.Close(), p.err.w.Close() }
func (p pipes) closeHostEnds()  { _, _, _ = p.in.w.Close(), p.out.r.Close(), p.err.r.Close() }
