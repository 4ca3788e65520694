// Package instance builds the service's binaries and runs them as processes, for tests and
// measurements from outside of the service.
package instance

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"
)

const (
	startTimeout = 30 * time.Second
	stopTimeout  = 40 * time.Second
	readyMessage = "tollgate is ready"
)

// BuildChanged builds one package of the module with additional files into dir. files holds the
// content by path from the root.
func BuildChanged(root, dir string, race bool, pkg string, files map[string]string) error {
	base, err := filepath.Abs(root)
	if err != nil {
		return fmt.Errorf("root of the module: %w", err)
	}
	overlay := struct{ Replace map[string]string }{map[string]string{}} // the format of go build -overlay
	for path, content := range files {
		file := filepath.Join(dir, fmt.Sprintf("overlay-%d", len(overlay.Replace)))
		overlay.Replace[filepath.Join(base, path)] = file
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			return fmt.Errorf("write a file of the module: %w", err)
		}
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		return fmt.Errorf("encode the overlay: %w", err)
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, text, 0o600); err != nil {
		return fmt.Errorf("write the overlay: %w", err)
	}
	return runBuild(root, race, "-overlay", list, "-o", filepath.Join(dir, filepath.Base(pkg)), "./"+pkg)
}

func runBuild(root string, race bool, args ...string) error {
	if race {
		args = append([]string{"-race"}, args...)
	}
	// without debug information it links in half the time
	cmd := exec.Command("go", append([]string{"build", "-buildvcs=false", "-ldflags=-s -w"}, args...)...)
	cmd.Dir = root
	endWithTest(cmd, syscall.SIGKILL)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", args[len(args)-1], err, out)
	}
	return nil
}

// Addresses are the listeners of an instance, each host:port; empty for parts that do not run.
type Addresses struct {
	API           string `json:"api"`
	RateLimitHTTP string `json:"ratelimit_http"`
	GRPC          string `json:"grpc"`
	Debug         string `json:"debug"`
	Prometheus    string `json:"prometheus"`
}

// Instance is one running service, in a process of its own or in this one.
type Instance struct {
	Addresses
	StartedIn time.Duration // from the start of the process until it logs that it is ready

	pid    int
	end    func() // asks the instance to end, as an operator would
	kill   func() // nil if it runs in this process
	log    *log
	output *output
	ended  chan struct{}
	result error // after ended is closed
}

// Start runs a binary with the given environment and arguments, which must make it log JSON, and
// waits until it logs that it is ready.
func Start(binary string, environ []string, args ...string) (*Instance, error) {
	// A process that is killed leaves its temporary files, among them the sockets of its plugins,
	// whose paths must be short.
	temporary, err := NewFolder("tgi")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(binary, args...)
	i := &Instance{log: newLog(), output: &output{}, ended: make(chan struct{})}
	cmd.Env = append(slices.Clone(environ), "TMPDIR="+temporary)
	cmd.Stderr = i.log
	cmd.Stdout = i.output
	endWithTest(cmd, syscall.SIGKILL)
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", binary, err), os.Remove(temporary))
	}
	i.pid = cmd.Process.Pid
	i.end = func() { _ = cmd.Process.Signal(syscall.SIGTERM) } // it may have ended meanwhile
	i.kill = func() { _ = cmd.Process.Kill() }                 // as above
	go func() {
		i.result = cmd.Wait()
		_ = os.RemoveAll(temporary) // a plugin of a process that was killed may be about to end
		close(i.ended)
	}()
	return i, i.awaitReady(binary, began)
}

// Run runs the service in this process and waits until it logs that it is ready. run must return
// soon after its context has ended, with the exit code. What the service logs and prints is read as
// from a process; only Kill needs one.
func Run(run func(ctx context.Context, stdout, stderr io.Writer) (code int)) (*Instance, error) {
	ctx, cancel := context.WithCancel(context.Background())
	i := &Instance{log: newLog(), output: &output{}, ended: make(chan struct{}), pid: os.Getpid(), end: cancel}
	began := time.Now()
	go func() {
		defer cancel()
		if code := run(ctx, i.output, i.log); code != 0 {
			i.result = fmt.Errorf("exit status %d", code)
		}
		close(i.ended)
	}()
	return i, i.awaitReady("the service", began)
}

// awaitReady waits until the instance logs that it is ready. If it returns an error, the instance has ended.
func (i *Instance) awaitReady(name string, began time.Time) error {
	select {
	case i.Addresses = <-i.log.ready:
		i.StartedIn = time.Since(began)
		return nil
	case <-i.ended:
		return fmt.Errorf("%s ended at start: %w\n%s", name, i.result, i.log)
	case <-time.After(startTimeout):
		i.end()
		if i.kill != nil {
			i.Kill()
		}
		return fmt.Errorf("%s was not ready in time\n%s", name, i.log)
	}
}

// PID returns the id of the process.
func (i *Instance) PID() int { return i.pid }

// Log returns what the process has logged so far.
func (i *Instance) Log() string { return i.log.String() }

// Output returns what the process has written to standard output so far.
func (i *Instance) Output() string { return i.output.String() }

// Stop ends the process as an operator would. It returns an error when the process does not end in
// time or ends with a failure; it returns nil if the process ended successfully before.
func (i *Instance) Stop() error {
	select {
	case <-i.ended:
		return nil
	default:
	}
	i.end()
	select {
	case <-i.ended:
		return i.result
	case <-time.After(stopTimeout):
		if i.kill != nil {
			i.Kill()
		}
		return errors.New("the process did not stop in time")
	}
}

// Kill ends the process at once, as a crash would, and waits for its end. It is for instances of Start only.
func (i *Instance) Kill() {
	i.kill()
	<-i.ended
}

// log stores what a process logs and finds the line that reports readiness.
type log struct {
	mu    sync.Mutex
	all   bytes.Buffer
	lines *io.PipeWriter
	ready chan Addresses
}

func newLog() *log {
	r, w := io.Pipe()
	l := &log{lines: w, ready: make(chan Addresses, 1)}
	go l.findReady(r)
	return l
}

func (l *log) findReady(r io.Reader) {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var line struct {
			Message string `json:"@message"`
			Addresses
		}
		if json.Unmarshal(scanner.Bytes(), &line) == nil && line.Message == readyMessage {
			l.ready <- line.Addresses
			break
		}
	}
	_, _ = io.Copy(io.Discard, r) // nothing else to find
}

// Write stores a part of the log.
func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	l.all.Write(p)
	l.mu.Unlock()
	return l.lines.Write(p)
}

// String returns all that was logged.
func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// output stores what a process writes.
type output struct {
	mu  sync.Mutex
	all bytes.Buffer
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.String()
}
