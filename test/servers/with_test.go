// Package servers tests the script with.sh, which starts the servers of the tests. It has no code.
package servers

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/relational/postgres/postgrestest"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
)

// interrupted is the environment variable that makes this program the command that the test
// interrupts.
const interrupted = "TEST_INTERRUPTED"

// given is the address of a server that the script need not start, which nothing calls.
const given = "given"

func TestMain(m *testing.M) {
	if os.Getenv(interrupted) != "" {
		if err := waitForInterruption(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// waitForInterruption creates a database and files, starts children, one of which leaves the
// process group, and prints the children's ids and the folders.
func waitForInterruption() error {
	if os.Getenv("TEST_DATABASE_URL") != given {
		if _, err := postgrestest.Create(context.Background()); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp("", "files-")
	if err != nil {
		return err
	}
	child, stray := exec.Command("sleep", "1000"), exec.Command("sleep", "1000")
	stray.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := errors.Join(child.Start(), stray.Start()); err != nil {
		return err
	}
	fmt.Println(dir, os.Getenv("GOTMPDIR"))
	fmt.Printf("(process %d) (process %d)\n", child.Process.Pid, stray.Process.Pid)
	return child.Wait()
}

// TestInterruption interrupts the script while its command runs. No process, folder or database is
// left.
func TestInterruption(t *testing.T) {
	for _, program := range []string{"valkey-server", "memcached"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("needs " + program)
		}
	}
	if !instance.PostgresInstalled() {
		t.Skip("needs PostgreSQL")
	}
	for signal, c := range map[syscall.Signal]struct {
		status, processes int
		given             []string // for each signal the script does the same with its servers
	}{
		syscall.SIGINT:  {status: 130, processes: 5},
		syscall.SIGTERM: {143, 3, []string{"TEST_DATABASE_URL=" + given, "TEST_MEMCACHED_ADDR=" + given}},
		syscall.SIGHUP:  {129, 3, []string{"TEST_DATABASE_URL=" + given, "TEST_MEMCACHED_ADDR=" + given}},
	} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			folders, processes := interrupt(t, signal, c.status, c.given...)
			for _, folder := range folders {
				if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s is left: %v", folder, err)
				}
			}
			if len(processes) != c.processes {
				t.Errorf("the script and its command started the processes %v, want %d, the servers and two children",
					processes, c.processes)
			}
			for _, id := range processes {
				await.Until(t, "the end of process "+id, func() bool { return !isRunning(id) })
			}
		})
	}
}

// interrupt runs the script with its own servers, sends it a signal when its command waits, and
// returns the folders and processes of both.
func interrupt(
	t *testing.T, signal syscall.Signal, status int, environ ...string,
) (folders, processes []string) {
	t.Helper()
	// A shell cannot trap a signal that was ignored when it started, as nohup and a job in the
	// background do.
	cmd := exec.Command("env", "--default-signal", "./with.sh", os.Args[0]) //nolint:gosec // this program
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); !strings.HasPrefix(name, "TEST_") && name != "TMPDIR" &&
			name != "GOTMPDIR" {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(cmd.Env, "TEST_CHROMIUM=none", "TEST_AXE=none", "TEST_OIDC_PROVIDER=none", "TEST_MCP=none", interrupted+"=yes")
	cmd.Env = append(cmd.Env, environ...)
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	must.Succeed(t, err)
	must.Succeed(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for range 2 {
		lines.Scan()
		folders = append(folders, strings.Fields(lines.Text())...)
	}
	if err := cmd.Process.Signal(signal); err != nil {
		t.Error(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // its exit status is not 0
		close(ended)
	}()
	await.Closed(t, "the end of the script", ended)
	if len(folders) != 6 || cmd.ProcessState.ExitCode() != status {
		t.Fatalf("the command printed %v and the script ended with %v, want status %d\n%s", folders, cmd.ProcessState,
			status, &log)
	}
	text := log.String() + strings.Join(folders[2:], " ")
	for _, found := range regexp.MustCompile(`\(process (\d+)\)`).FindAllStringSubmatch(text, -1) {
		processes = append(processes, found[1])
	}
	run := filepath.Dir(filepath.Dir(folders[0])) // the folder of the run has t, which has the files
	return []string{run, folders[1]}, processes
}

// isRunning reports whether a process has not ended. One that has ended may wait for its parent.
func isRunning(id string) bool {
	text, err := os.ReadFile(filepath.Join("/proc", id, "stat"))
	if err != nil {
		return false
	}
	// The name of the program, in parentheses, may hold anything (proc_pid_stat(5)).
	return !bytes.HasPrefix(text[bytes.LastIndexByte(text, ')')+1:], []byte(" Z"))
}
