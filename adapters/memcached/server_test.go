package memcached_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/memcached"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/ports/counter/countertest"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
)

// sharedServer returns the address of TEST_MEMCACHED_ADDR, or skips the test.
func sharedServer(t testing.TB) string {
	t.Helper()
	address := os.Getenv("TEST_MEMCACHED_ADDR")
	if address == "" {
		t.Skip("TEST_MEMCACHED_ADDR is not set")
	}
	return address
}

func newConfig(nodes ...string) memcached.Config {
	return memcached.Config{HostPort: nodes, MaxIdleConns: 2, Timeout: 5 * time.Second}
}

func discardLog() *logrus.Entry {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return logrus.NewEntry(log)
}

func openClient(t testing.TB, cfg memcached.Config) *memcached.Client {
	t.Helper()
	c, end, err := memcached.Open(t.Context(), cfg, discardLog())
	must.Succeed(t, err)
	t.Cleanup(end)
	return c
}

// server is a memcached of one test.
type server struct {
	t       testing.TB
	address string
	args    []string
	secure  *tls.Config // the configuration of connections of the test; nil without TLS
	process *exec.Cmd
}

// newServer returns a server that is not started yet. It skips the test if memcached is not
// installed.
func newServer(t testing.TB, args ...string) *server {
	t.Helper()
	if _, err := exec.LookPath("memcached"); err != nil {
		t.Skip("memcached is not installed")
	}
	port := instance.FreePort()
	base := []string{"-l", "127.0.0.1", "-p", port, "-U", "0", "-m", "16", "-t", "1"}
	if os.Geteuid() == 0 {
		base = append(base, "-u", "root") // other users cannot read the files of the test
	}
	return &server{t: t, address: "127.0.0.1:" + port, args: append(base, args...)}
}

// start starts the server and waits until it answers.
func (s *server) start() *server {
	s.t.Helper()
	s.process = exec.Command("memcached", s.args...)
	must.Succeed(s.t, s.process.Start())
	s.t.Cleanup(s.kill)
	await.Until(s.t, "a server that answers", func() bool {
		answer, err := s.runCommands("version\r\n")
		return err == nil && strings.HasPrefix(answer, "VERSION")
	})
	return s
}

func (s *server) kill() {
	if s.process == nil {
		return
	}
	_ = s.process.Process.Kill() // it may have ended already
	_ = s.process.Wait()         // it ends by a signal, which is an error
	s.process = nil
}

// runCommands sends commands over a new connection and returns everything that the server sends
// until the end.
func (s *server) runCommands(commands string) (string, error) {
	return runCommandsAt(s.address, s.secure, commands)
}

func runCommandsAt(address string, secure *tls.Config, commands string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var d interface {
		DialContext(ctx context.Context, network, address string) (net.Conn, error)
	} = &net.Dialer{}
	if secure != nil {
		d = &tls.Dialer{Config: secure}
	}
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }() // an error has no effect on the test
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.WriteString(c, commands+"quit\r\n"); err != nil {
		return "", err
	}
	response, err := io.ReadAll(c)
	if len(response) > 0 {
		err = nil // a server with TLS may close the connection without a message
	}
	return string(response), err
}

// mustRun sends commands and fails the test if there is no response.
func (s *server) mustRun(commands string) string {
	s.t.Helper()
	response, err := s.runCommands(commands)
	if err != nil {
		s.t.Fatalf("%q: %v", commands, err)
	}
	return response
}

// remainingTTL returns a function for countertest.Subject that reads the time to live of a counter,
// minus the second that the clock of memcached may lag.
func remainingTTL(addresses ...string) func(*testing.T, string) (time.Duration, bool) {
	return func(t *testing.T, key string) (time.Duration, bool) {
		t.Helper()
		for _, address := range addresses {
			response, err := runCommandsAt(address, nil, "mg "+key+" t\r\n")
			must.Succeed(t, err)
			var left int64
			if _, err := fmt.Sscanf(response, "HD t%d", &left); err == nil {
				return time.Duration(left-1) * time.Second, true
			}
		}
		return 0, false
	}
}

// newKeys returns a function that returns keys that no other test uses.
func newKeys() func(string) string {
	run := fmt.Sprintf("test|%d|%d|", os.Getpid(), time.Now().UnixNano())
	return func(name string) string { return run + name }
}

func addHits(t testing.TB, c *memcached.Client, hits ...counter.Hit) ([]uint64, error) {
	t.Helper()
	after := make([]counter.Result, len(hits))
	err := c.Count(t.Context(), hits, after, counter.Each)
	return countertest.Counts(after), err
}

func newMinuteHit(key string) counter.Hit {
	return counter.Hit{Key: key, Addend: 1, Limit: 9, Window: time.Minute, TTL: time.Minute}
}

// supportsTLS reports whether memcached was built with TLS.
func supportsTLS(t testing.TB) bool {
	t.Helper()
	help, err := exec.Command("memcached", "-h").Output()
	must.Succeed(t, err)
	return strings.Contains(string(help), "--enable-ssl")
}
