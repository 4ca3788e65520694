package memcached_test

import (
	"context"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/ports/counter/countertest"
)

func (s *server) signal(signal syscall.Signal) {
	s.t.Helper()
	if err := s.process.Process.Signal(signal); err != nil {
		s.t.Fatal(err)
	}
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
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and never answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() }) // nothing is left to do about it
	for name, address := range map[string]string{
		"silent": silent.Addr().String(), "refusing": "127.0.0.1:" + freePort(t), "unknown": "no-such-host.invalid:1",
	} {
		t.Run(name, func(t *testing.T) {
			cfg := newConfig(address)
			cfg.Timeout = 50 * time.Millisecond
			c := open(t, cfg)
			countertest.Away(t, c)
			if c.Connected() {
				t.Error("Connected is true for an unreachable store")
			}
		})
	}
}

func TestServerThatSpeaksSomethingElse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // nothing is left to do about it
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("220 mail.example.org ESMTP\r\n")) // the test sees what follows
		}
	}()
	cfg := newConfig(l.Addr().String())
	cfg.Timeout = 200 * time.Millisecond
	countertest.Away(t, open(t, cfg))
}

func TestStoreThatStopsAnswering(t *testing.T) {
	s := newServer(t).start()
	cfg := newConfig(s.address)
	cfg.Timeout = 100 * time.Millisecond
	c := open(t, cfg)
	if _, err := addHits(t, c, newMinuteHit("k")); err != nil {
		t.Fatal(err)
	}
	s.freeze()
	for range 30 {
		if _, err := addHits(t, c, newMinuteHit("k")); !fault.Is(err, fault.Unavailable) {
			t.Fatalf("while it does not answer: %v, want fault.Unavailable", err)
		}
	}
	if c.Connected() {
		t.Error("Connected is true after 30 calls without an answer")
	}
	if err := c.Ping(t.Context()); !fault.Is(err, fault.Unavailable) {
		t.Errorf("Ping: %v, want fault.Unavailable", err)
	}
	s.thaw()
	eventually(t, "counting after it goes on", func() bool {
		_, err := addHits(t, c, newMinuteHit("k"))
		return err == nil && c.Connected()
	})
}

// TestPingDetectsDeadStore checks that Connected becomes false while there are no calls.
func TestPingDetectsDeadStore(t *testing.T) {
	s := newServer(t).start()
	cfg := newConfig(s.address)
	cfg.Timeout = 100 * time.Millisecond
	c := open(t, cfg)
	eventually(t, "a connection", c.Connected)
	s.freeze()
	eventually(t, "noticing", func() bool { return !c.Connected() })
	s.thaw()
	eventually(t, "noticing its return", c.Connected)
}

// TestManyCallsWithoutAnswer makes more calls than the client has room for. All must fail with
// fault.Unavailable.
func TestManyCallsWithoutAnswer(t *testing.T) {
	s := newServer(t).start()
	cfg := newConfig(s.address)
	cfg.Timeout, cfg.MaxIdleConns = time.Second, 1
	c := open(t, cfg)
	if _, err := addHits(t, c, newMinuteHit("k")); err != nil {
		t.Fatal(err)
	}
	s.freeze()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var all sync.WaitGroup
	for range 10000 {
		all.Go(func() {
			if err := c.Add(ctx, []counter.Hit{newMinuteHit("k")}, make([]uint64, 1)); !fault.Is(err, fault.Unavailable) {
				t.Errorf("%v, want fault.Unavailable", err)
			}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		t.Errorf("calls without an answer took longer than %v", patience)
	}
	s.thaw()
	eventually(t, "counting after it goes on", func() bool {
		_, err := addHits(t, c, newMinuteHit("k"))
		return err == nil
	})
}

func TestRecoveryAfterRestart(t *testing.T) {
	s := newServer(t)
	countertest.Recovers(t, open(t, newConfig(s.address)), func() { s.start() }, s.kill)
}

// TestOneUnreachableNode checks that only calls for keys of an unreachable node fail.
func TestOneUnreachableNode(t *testing.T) {
	stays, goes := newServer(t).start(), newServer(t).start()
	cfg := newConfig(stays.address, goes.address)
	cfg.Timeout = time.Second
	c := open(t, cfg)
	byNode := map[bool]string{} // a key of the node that stays, and one of the other
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
		if _, err := addHits(t, c, newMinuteHit(byNode[true]), newMinuteHit(byNode[false])); !fault.Is(err, fault.Unavailable) {
			t.Fatalf("both keys: %v, want fault.Unavailable", err)
		}
	}
	if err := c.Ping(t.Context()); err != nil || !c.Connected() {
		t.Errorf("with one node of two: Ping %v, connected %t", err, c.Connected())
	}
	stays.kill()
	eventually(t, "an unhealthy store without any node", func() bool {
		return !c.Connected() && fault.Is(c.Ping(t.Context()), fault.Unavailable)
	})
}

// TestRestartedServerIsFoundAtOnce checks that a call opens a new connection if its connection
// broke.
func TestRestartedServerIsFoundAtOnce(t *testing.T) {
	s := newServer(t).start()
	c := open(t, newConfig(s.address))
	for range 5 {
		if _, err := addHits(t, c, newMinuteHit("k")); err != nil {
			t.Fatalf("after the connections were broken: %v", err)
		}
		s.kill()
		eventually(t, "noticing", func() bool { return !c.Connected() })
		s.start()
		eventually(t, "noticing its return", c.Connected)
	}
}
