package memcached_test

import (
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/counter/countertest"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
)

func (s *server) signal(signal syscall.Signal) {
	s.t.Helper()
	must.Succeed(s.t, s.process.Process.Signal(signal))
}

// freeze stops the process of the server with SIGSTOP, and returns when it has stopped.
func (s *server) freeze() {
	s.t.Helper()
	s.signal(syscall.SIGSTOP)
	var state syscall.WaitStatus
	if _, err := syscall.Wait4(s.process.Process.Pid, &state, syscall.WUNTRACED, nil); err != nil || !state.Stopped() {
		s.t.Fatalf("the server did not stop: %v, %v", state, err)
	}
}

func (s *server) thaw() { s.t.Helper(); s.signal(syscall.SIGCONT) }

func TestUnreachableStore(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections and never answers
	must.Succeed(t, err)
	t.Cleanup(func() { _ = silent.Close() }) // an error has no effect on the test
	for name, address := range map[string]string{
		"a server that never answers": silent.Addr().String(), "a closed port": "127.0.0.1:" + instance.FreePort(),
		"an unknown host": "no-such-host.invalid:1",
	} {
		t.Run(name, func(t *testing.T) {
			cfg := newConfig(address)
			cfg.Timeout = 50 * time.Millisecond
			c := openClient(t, cfg)
			countertest.Away(t, c)
			if c.Connected() {
				t.Error("Connected is true for an unreachable store")
			}
		})
	}
}

func TestServerOfAnotherProtocol(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	t.Cleanup(func() { _ = l.Close() }) // an error has no effect on the test
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("220 mail.example.org ESMTP\r\n")) // the test checks the result of this response
		}
	}()
	cfg := newConfig(l.Addr().String())
	cfg.Timeout = 200 * time.Millisecond
	countertest.Away(t, openClient(t, cfg))
}

// newFreezing returns a client, with a number of connections, of a server of its own.
func newFreezing(t *testing.T, connections int) countertest.Freezing {
	t.Helper()
	s := newServer(t).start()
	cfg := newConfig(s.address)
	cfg.Timeout, cfg.MaxIdleConns = 100*time.Millisecond, connections
	c := openClient(t, cfg)
	return countertest.Freezing{Store: c, Connected: c.Connected, Freeze: s.freeze, Thaw: s.thaw}
}

func TestStoreThatStopsAnswering(t *testing.T) {
	t.Parallel()
	countertest.StopsAnswering(t, newFreezing(t, 2))
}

// TestPingDetectsDeadStore checks that Connected becomes false while there are no calls.
func TestPingDetectsDeadStore(t *testing.T) {
	t.Parallel()
	s := newFreezing(t, 2)
	await.Until(t, "a connection", s.Connected)
	s.Freeze()
	await.Until(t, "the client lost its connection", func() bool { return !s.Connected() })
	s.Thaw()
	await.Until(t, "the client connected again", s.Connected)
}

func TestManyCallsWithoutAnswer(t *testing.T) {
	t.Parallel()
	countertest.Overflows(t, newFreezing(t, 1), 10_000)
}

func TestRecoveryAfterRestart(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	countertest.Recovers(t, openClient(t, newConfig(s.address)), func() { s.start() }, s.kill)
}

// TestOneUnreachableNode checks that only calls for keys of an unreachable node fail.
func TestOneUnreachableNode(t *testing.T) {
	t.Parallel()
	stays, goes := newServer(t).start(), newServer(t).start()
	cfg := newConfig(stays.address, goes.address)
	cfg.Timeout = time.Second
	c := openClient(t, cfg)
	byNode := map[bool]string{} // one key of the running node, and one key of the stopped node
	for i := 0; len(byNode) < 2; i++ {
		key := newKeys()(string(rune('a' + i)))
		if _, err := addHits(t, c, newMinuteHit(key)); err != nil {
			t.Fatal(err)
		}
		_, there := remainingTTL(stays.address)(t, key)
		byNode[there] = key
	}
	goes.kill()
	for range 50 {
		if _, err := addHits(t, c, newMinuteHit(byNode[true])); err != nil {
			t.Fatalf("a key of the running node: %v", err)
		}
		if _, err := addHits(t, c, newMinuteHit(byNode[false])); !fault.Is(err, fault.Unavailable) {
			t.Fatalf("a key of the stopped node: %v, want fault.Unavailable", err)
		}
		if _, err := addHits(t, c, newMinuteHit(byNode[true]), newMinuteHit(byNode[false])); !fault.Is(err,
			fault.Unavailable) {
			t.Fatalf("both keys: %v, want fault.Unavailable", err)
		}
	}
	if err := c.Ping(t.Context()); err != nil || !c.Connected() {
		t.Errorf("with one node of two: Ping %v, connected %t", err, c.Connected())
	}
	stays.kill()
	await.Until(t, "an error of Ping while all nodes are stopped", func() bool {
		return !c.Connected() && fault.Is(c.Ping(t.Context()), fault.Unavailable)
	})
}

// TestRestartedServerIsFoundAtOnce checks that a call opens a new connection if its connection
// broke.
func TestRestartedServerIsFoundAtOnce(t *testing.T) {
	t.Parallel()
	s := newServer(t).start()
	c := openClient(t, newConfig(s.address))
	for range 5 {
		if _, err := addHits(t, c, newMinuteHit("k")); err != nil {
			t.Fatalf("after the connections were broken: %v", err)
		}
		s.kill()
		await.Until(t, "the client lost its connection", func() bool { return !c.Connected() })
		s.start()
		await.Until(t, "the client connected again", c.Connected)
	}
}
