package instance

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Valkey is a Valkey server that belongs to one test, which may kill, freeze and start it again.
// Its methods are not safe for concurrent use.
type Valkey struct {
	Address string // host:port, the same for the server's whole life
	Args    []string

	cmd *exec.Cmd
}

// NewValkey returns a server that keeps its files in dir, with additional arguments. The server is
// not started yet.
func NewValkey(dir string, args ...string) *Valkey {
	port := FreePort()
	base := []string{"--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", dir}
	return &Valkey{Address: net.JoinHostPort("127.0.0.1", port), Args: append(base, args...)}
}

// ValkeyInstalled reports whether valkey-server is installed.
func ValkeyInstalled() bool {
	_, err := exec.LookPath("valkey-server")
	return err == nil
}

// reserved holds the sockets that reserve the ports of FreePort, by port.
var reserved sync.Map

// FreePort returns a free loopback port, which no other call returns until the process ends, also
// in other processes: the port of UDP at a loopback address that nothing else uses reserves it,
// where the system has that address. It is below the ports that the kernel assigns to clients, so
// that no client takes it while the server is down.
func FreePort() string {
	for {
		port := strconv.Itoa(10000 + rand.IntN(20000)) //nolint:gosec // any port will do
		reservation, err := net.ListenPacket("udp", net.JoinHostPort("127.9.9.9", port))
		if err != nil && !errors.Is(err, syscall.EADDRNOTAVAIL) {
			continue
		}
		reserved.Store(port, reservation) // also if another program has the port
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
		if err != nil {
			continue
		}
		if err := l.Close(); err == nil {
			return port
		}
	}
}

// Start starts the server and waits until it responds.
func (v *Valkey) Start() error {
	v.cmd = exec.Command("valkey-server", v.Args...)
	endWithTest(v.cmd, syscall.SIGKILL)
	if err := v.cmd.Start(); err != nil {
		return fmt.Errorf("start valkey-server: %w", err)
	}
	for end := time.Now().Add(startTimeout); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if answer := v.SendLine("PING"); strings.HasPrefix(answer, "+PONG") || strings.HasPrefix(answer, "-NOAUTH") {
			return nil
		}
	}
	v.Kill()
	return errors.New("valkey-server does not answer")
}

// Kill ends the server as a crash would. It does nothing if the server does not run.
func (v *Valkey) Kill() {
	if v.cmd == nil {
		return
	}
	_ = v.cmd.Process.Kill() // it may have ended by itself
	_ = v.cmd.Wait()         // it ends by a signal, which is an error
	v.cmd = nil
}

// Freeze suspends the server, and returns when it has stopped; its connections stay open.
func (v *Valkey) Freeze() error {
	if err := v.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("freeze valkey-server: %w", err)
	}
	var state syscall.WaitStatus
	switch _, err := syscall.Wait4(v.cmd.Process.Pid, &state, syscall.WUNTRACED, nil); {
	case err != nil:
		return fmt.Errorf("wait for a frozen valkey-server: %w", err)
	case !state.Stopped():
		return errors.New("valkey-server ended instead of stopping")
	}
	return nil
}

// Thaw resumes a frozen server.
func (v *Valkey) Thaw() error { return v.cmd.Process.Signal(syscall.SIGCONT) }

// SendLine sends one line and returns the first line of the response, or "".
func (v *Valkey) SendLine(line string) string {
	connection := v.openAndSend(line)
	if connection == nil {
		return ""
	}
	defer func() { _ = connection.Close() }()                 // an error changes nothing
	answer, _ := bufio.NewReader(connection).ReadString('\n') // the test shows what was read before an error
	return answer
}

// SendLines sends lines over one connection and returns all responses. It sends PING last, which
// sentinels support too, and reads until the response to it.
func (v *Valkey) SendLines(lines ...string) string {
	connection := v.openAndSend(append(lines, "PING")...)
	if connection == nil {
		return ""
	}
	defer func() { _ = connection.Close() }() // an error changes nothing
	var all strings.Builder
	for in := bufio.NewScanner(connection); in.Scan() && in.Text() != "+PONG"; {
		all.WriteString(in.Text() + "\n")
	}
	return all.String()
}

// openAndSend sends lines over a new connection and returns it, or nil.
func (v *Valkey) openAndSend(lines ...string) net.Conn {
	connection, err := net.DialTimeout("tcp", v.Address, time.Second)
	if err != nil {
		return nil
	}
	_ = connection.SetDeadline(time.Now().Add(5 * time.Second)) // without a deadline it only waits longer
	if _, err := io.WriteString(connection, strings.Join(lines, "\r\n")+"\r\n"); err != nil {
		_ = connection.Close() // the connection is unusable
		return nil
	}
	return connection
}

// MustSend sends a line and returns an error unless the server responds with OK.
func (v *Valkey) MustSend(line string) error {
	if answer := v.SendLine(line); !strings.HasPrefix(answer, "+OK") {
		return fmt.Errorf("%s: %q", line, answer)
	}
	return nil
}

// HostPort returns the host and the port of the address.
func (v *Valkey) HostPort() (host, port string) {
	host, port, _ = net.SplitHostPort(v.Address) // made by NewValkey
	return host, port
}

// Loopback returns the environment of a test instance: its own files below dir, all listeners on
// free loopback ports, JSON logs, no package registries, which tests cannot reach, and cheap
// password hashes, because the race detector makes hashes a hundred times slower.
func Loopback(dir string) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + dir,
		"TMPDIR=" + os.TempDir(),
		"DATA_DIR=" + dir + "/data",
		"RUNTIME_ROOT=" + dir + "/runtime",
		"RUNTIME_WATCH_ROOT=false",
		"HOST=127.0.0.1", "PORT=0",
		"RATELIMIT_HTTP_HOST=127.0.0.1", "RATELIMIT_HTTP_PORT=0",
		"GRPC_HOST=127.0.0.1", "GRPC_PORT=0",
		"DEBUG_HOST=127.0.0.1", "DEBUG_PORT=0",
		"LOG_FORMAT=json",
		"SHUTDOWN_DRAIN=0s",
		"PACKAGE_CHECKS=off",
		// By default, a program with the race detector waits one second before it exits.
		"GORACE=atexit_sleep_ms=0",
		"ARGON2_MEMORY_KIB=64", "ARGON2_ITERATIONS=1",
	}
}
