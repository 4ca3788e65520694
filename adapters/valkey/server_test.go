package valkey_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	client "github.com/valkey-io/valkey-go"

	"github.com/tollgate-dev/tollgate/adapters/valkey"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
)

// sharedServer returns the address of TEST_VALKEY_URL, or skips the test.
func sharedServer(t testing.TB) string {
	t.Helper()
	address := os.Getenv("TEST_VALKEY_URL")
	if address == "" {
		t.Skip("TEST_VALKEY_URL is not set")
	}
	return address
}

func newConfig(url string) valkey.Config {
	return valkey.Config{URL: url, SocketType: "tcp", Type: valkey.Single, Timeout: 5 * time.Second, PoolSize: 10}
}

func discardLog() *logrus.Entry {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return logrus.NewEntry(log)
}

func open(t testing.TB, cfg valkey.Config) *valkey.Client {
	t.Helper()
	c, end, err := valkey.Open(t.Context(), cfg, discardLog())
	must.Succeed(t, err)
	t.Cleanup(end)
	return c
}

// server is a server of one test.
type server struct {
	*instance.Valkey
	t testing.TB
}

// newServer returns a server that is not started yet. It skips the test if Valkey is not installed.
func newServer(t testing.TB, args ...string) *server {
	t.Helper()
	if !instance.ValkeyInstalled() {
		t.Skip("valkey-server is not installed")
	}
	s := &server{instance.NewValkey(t.TempDir(), args...), t}
	t.Cleanup(s.Kill)
	return s
}

// start starts the server and waits until it answers.
func (s *server) start() *server {
	s.t.Helper()
	must.Succeed(s.t, s.Start())
	return s
}

// mustRun sends a command and fails the test unless the response is OK.
func (s *server) mustRun(line string) {
	s.t.Helper()
	must.Succeed(s.t, s.MustSend(line))
}

// newDirectClient returns a client that does not use the adapter.
func newDirectClient(t testing.TB, address string) client.Client {
	t.Helper()
	c, err := client.NewClient(client.ClientOption{InitAddress: []string{address}, DisableCache: true})
	must.Succeed(t, err)
	t.Cleanup(c.Close)
	return c
}

// remainingTTL returns a function for countertest.Subject that reads the time to live of a counter.
func remainingTTL(c client.Client) func(*testing.T, string) (time.Duration, bool) {
	return func(t *testing.T, key string) (time.Duration, bool) {
		t.Helper()
		left, err := c.Do(t.Context(), c.B().Pttl().Key(key).Build()).AsInt64()
		must.Succeed(t, err)
		return time.Duration(left) * time.Millisecond, left != -2
	}
}

// newKeys returns a function that returns keys that no other test uses.
func newKeys() func(string) string {
	run := fmt.Sprintf("test|%d|%d|", os.Getpid(), time.Now().UnixNano())
	return func(name string) string { return run + name }
}

// relay forwards each new connection to the current target.
type relay struct {
	address string
	target  atomic.Pointer[string]
}

func newRelay(t testing.TB, target string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	r := &relay{address: l.Addr().String()}
	r.target.Store(&target)
	t.Cleanup(func() { _ = l.Close() }) // nothing is left to do about it
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", *r.target.Load())
			if err != nil {
				_ = from.Close()
				continue
			}
			go pass(from, to)
			go pass(to, from)
		}
	}()
	return r
}

func pass(to, from net.Conn) {
	_, _ = io.Copy(to, from) // either side ends both
	_ = to.Close()
	_ = from.Close()
}
