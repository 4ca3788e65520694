package docs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
)

// The shell writes these lines between what the commands print.
const (
	blockEnds     = "\x1eblock ends"
	commandFailed = "\x1efailed: "
)

// prelude makes the shell report each command that fails, and replaces three commands: curl and
// bin/tollgate connect to the ports of this run instead of the default ports, and read takes the last one-time code from
// the log instead of from a person.
const prelude = `set -E
trap 'echo; echo "` + commandFailed + `$BASH_COMMAND"' ERR
bin/tollgate() { TOLLGATE_SERVER="${TOLLGATE_SERVER/:3000/:API}" command bin/tollgate "$@"; }
curl() { command curl --connect-to "localhost:3000:localhost:API" --connect-to "localhost:8080:localhost:JSON" --connect-to "localhost:6070:localhost:DEBUG" "$@"; }
read() { CODE=$(sed -n 's/.*"code":"\([0-9]*\)".*/\1/p' otp.jsonl | tail -n 1); }
`

// shell runs the commands of one page, one after the other.
type shell struct {
	in   io.Writer
	out  *bufio.Scanner
	dir  string
	n    int
	kill func() // ends it, with the command that runs
}

func newShell(t testing.TB, dir string, environ []string, prelude string) *shell {
	t.Helper()
	cmd := exec.Command("bash")
	cmd.Dir, cmd.Env = dir, environ
	in, err := cmd.StdinPipe()
	must.Succeed(t, err)
	out, err := cmd.StdoutPipe()
	must.Succeed(t, err)
	cmd.Stderr = cmd.Stdout
	startGuarded(t, cmd)
	t.Cleanup(func() {
		killGroup(cmd)
		_ = cmd.Wait() // killGroup ended it
	})
	s := &shell{in: in, out: bufio.NewScanner(out), dir: dir, kill: func() { killGroup(cmd) }}
	s.out.Buffer(nil, 16<<20)
	if _, err := io.WriteString(in, prelude); err != nil {
		t.Fatal(err)
	}
	return s
}

// startGuarded starts a process in its own group, which ends with the test, also one that is
// killed.
func startGuarded(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must.Succeed(t, cmd.Start())
	stop, err := instance.Guard("-" + strconv.Itoa(cmd.Process.Pid))
	must.Succeed(t, err)
	t.Cleanup(stop)
}

// killGroup kills a process and the processes that it started.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // it may have ended already

// run runs a block and returns its output and the commands in it that failed.
func (s *shell) run(command string) (string, []string, error) {
	s.n++
	file := filepath.Join(s.dir, fmt.Sprintf(".block-%d", s.n))
	if err := os.WriteFile(file, []byte(command), 0o600); err != nil {
		return "", nil, err
	}
	if _, err := fmt.Fprintf(s.in, "source %s </dev/null; echo; echo '%s'\n", file, blockEnds); err != nil {
		return "", nil, err
	}
	var printed strings.Builder
	var failed []string
	for s.out.Scan() {
		line := s.out.Text()
		if line == blockEnds {
			return printed.String(), failed, nil
		}
		if c, ok := strings.CutPrefix(line, commandFailed); ok {
			failed = append(failed, c)
			continue
		}
		printed.WriteString(line + "\n")
	}
	return printed.String(), failed, errors.New("the shell ended")
}

// terminal is a command that runs in the background, and its output.
type terminal struct {
	cmd   *exec.Cmd
	ended chan struct{}
	mu    sync.Mutex
	log   strings.Builder
}

func openTerminal(t testing.TB, dir string, environ []string, command string) *terminal {
	t.Helper()
	term := &terminal{cmd: exec.Command("bash", "-c", command), ended: make(chan struct{})}
	term.cmd.Dir, term.cmd.Env = dir, environ
	term.cmd.Stdout, term.cmd.Stderr = term, term
	term.cmd.WaitDelay = time.Second
	startGuarded(t, term.cmd)
	go func() {
		_ = term.cmd.Wait() // close ends it by a signal
		close(term.ended)
	}()
	t.Cleanup(term.close)
	return term
}

// Write stores output of the command.
func (t *terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.log.Write(p)
}

// output returns what the command has printed so far.
func (t *terminal) output() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.log.String()
}

// hasEnded reports whether the command has ended.
func (t *terminal) hasEnded() bool {
	select {
	case <-t.ended:
		return true
	default:
		return false
	}
}

// close interrupts the command as Ctrl-C does, and kills it if it runs for another ten seconds.
func (t *terminal) close() {
	_ = syscall.Kill(-t.cmd.Process.Pid, syscall.SIGINT) // it may have ended already
	select {
	case <-t.ended:
	case <-time.After(10 * time.Second):
	}
	killGroup(t.cmd)
	<-t.ended
}
