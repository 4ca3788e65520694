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
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin/runner"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/plugins/handshake"
)

// drain is how long output is read after a plugin has ended, in case that something it started still holds the other end.
const drain = time.Second

// process is a plugin's operating system process, for go-plugin to start. The host keeps it in its own hands: killing is
// possible at any time, also while go-plugin waits for the plugin, and reaches what the plugin has started itself.
type process struct {
	path string
	env  []string // what the host gives; what go-plugin needs is added behind it
	dir  string   // of the socket, made by go-plugin; empty before
	log  *logrus.Entry

	stdout   *os.File // read by go-plugin: the handshake, then nothing
	lifeline *os.File // its end tells the plugin that the host is gone

	mu     sync.Mutex
	cmd    *exec.Cmd
	killed bool
	reaped bool          // the group is gone: its id may be another's
	done   chan struct{} // closed when the process has ended; what follows is set before
	err    error
	words  string // its last ones on standard error
}

var _ runner.Runner = (*process)(nil)

func newProcess(path string, env []string, log *logrus.Entry) *process {
	return &process{path: path, env: env, log: log, done: make(chan struct{})}
}

// runner gives go-plugin the process for what it calls a runner. cmd holds go-plugin's part of the environment.
func (p *process) runner(_ hclog.Logger, cmd *exec.Cmd, dir string) (runner.Runner, error) {
	p.env = slices.Concat(p.env, cmd.Env, []string{handshake.LifelineKey + "=" + handshake.LifelineStdin})
	p.dir = dir
	return p, nil
}

// Start starts the process, unless it has been killed before.
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
	cmd := exec.CommandContext(context.Background(), p.path) // kill ends it; the given context ends with the handshake
	cmd.Env = p.env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = pipes.in.r, pipes.out.w, pipes.err.w
	ownGroup(cmd)
	err = cmd.Start()
	pipes.closeChildEnds()
	if err != nil {
		pipes.closeHostEnds()
		return fmt.Errorf("starting the process: %w", err)
	}
	p.cmd, p.stdout, p.lifeline = cmd, pipes.out.r, pipes.in.w
	go p.await(pipes.err.r)
	return nil
}

// await reads what the process prints, and reaps it when it ends.
func (p *process) await(stderr *os.File) {
	output := &lines{log: p.log, plain: logrus.WarnLevel}
	var reading sync.WaitGroup
	reading.Go(func() {
		_, _ = io.Copy(output, stderr) // it ends with the process, or drain after it
		output.flush()
	})
	if awaitExit(p.cmd) {
		p.release(true)
	}
	p.err = p.cmd.Wait()
	p.release(false)
	end := time.Now().Add(drain)
	_ = stderr.SetReadDeadline(end)   // pipes take deadlines, and a closed one needs none
	_ = p.stdout.SetReadDeadline(end) // as above
	reading.Wait()
	p.words = output.lastWords()
	_ = stderr.Close()     // read to its end
	_ = p.lifeline.Close() // nobody is there to hear it
	close(p.done)
}

// release lets go of the process's group, whose id may soon be another's; while it is held, what is left of it is killed.
func (p *process) release(held bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if held {
		killGroup(p.cmd)
	}
	p.reaped = true
}

// killGroupOnce ends the process and what it has started; also before it starts, and more than once.
func (p *process) killGroupOnce() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.killed = true
	if p.cmd == nil || p.reaped {
		return
	}
	killGroup(p.cmd)
	_ = p.cmd.Process.Kill() // it fails only when the process is gone
}

// pid returns 0 before the start.
func (p *process) pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

// exit tells how the process ended; only after done.
func (p *process) exit() error {
	if p.err == nil {
		return errors.New("it exited with status 0")
	}
	return fmt.Errorf("it exited: %w", p.err)
}

// ownExit is exit, but nil where the process never ran, runs, or was killed.
func (p *process) ownExit() error {
	select {
	case <-p.done:
	default:
		return nil
	}
	if p.cmd.ProcessState == nil || !p.cmd.ProcessState.Exited() {
		return nil
	}
	return p.exit()
}

// stillborn tells of a process that ended before it served, in its own words where it had any: of a wrong setting, say.
func (p *process) stillborn(exit error) error {
	if p.words == "" {
		return fmt.Errorf("%w, before it served", exit)
	}
	return fmt.Errorf("%w, before it served: %s", exit, p.words)
}

// Wait returns when the process has ended. go-plugin calls it after it has read standard output to its end.
func (p *process) Wait(context.Context) error {
	<-p.done
	_ = p.stdout.Close() // read to its end
	return p.err
}

// Kill is kill.
func (p *process) Kill(context.Context) error {
	p.killGroupOnce()
	return nil
}

// Stdout is where the plugin tells its address.
func (p *process) Stdout() io.ReadCloser { return p.stdout }

// Stderr is empty: the host reads standard error itself, see lines.
func (p *process) Stderr() io.ReadCloser { return io.NopCloser(empty{}) }

// Name is the path of the binary.
func (p *process) Name() string { return p.path }

// ID is the process id, empty before the start.
func (p *process) ID() string {
	if pid := p.pid(); pid != 0 {
		return strconv.Itoa(pid)
	}
	return ""
}

// Diagnose has nothing to add to go-plugin's own message.
func (p *process) Diagnose(context.Context) string { return "" }

// PluginToHost keeps addresses: host and plugin share one machine.
func (p *process) PluginToHost(network, address string) (string, string, error) {
	return network, address, nil
}

// HostToPlugin keeps addresses.
func (p *process) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}

type empty struct{}

func (empty) Read([]byte) (int, error) { return 0, io.EOF }

type pipe struct{ r, w *os.File }

// pipes are a child's standard streams.
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

// Closing fails only for files that are closed already, or were never opened.
func (p pipes) closeChildEnds() { _, _, _ = p.in.r.Close(), p.out.w.Close(), p.err.w.Close() }
func (p pipes) closeHostEnds()  { _, _, _ = p.in.w.Close(), p.out.r.Close(), p.err.r.Close() }
