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

// freeze stops the server, and returns once all of it stands still.
func (s *server) freeze() {
	s.t.Helper()
	s.signal(syscall.SIGSTOP)
	var state syscall.WaitStatus
	if _, err := syscall.Wait4(s.process.Process.Pid, &state, syscall.WUNTRACED, nil); err != nil || !state.Stopped() {
		s.t.Fatalf("the server does not stand still: %v, %v", state, err)
	}
}

func (s *server) thaw() { s.t.Helper(); s.signal(syscall.SIGCONT) }

func TestAwayStore(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and never answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() }) // nothing is left to do about it
	for name, address := range map[string]string{
		"silent": silent.Addr().String(), "refusing": "127.0.0.1:" + freePort(t), "unknown": "no-such-host.invalid:1",
	} {
		t.Run(name, func(t *testing.T) {
			cfg := settings(address)
			cfg.Timeout = 50 * time.Millisecond
			c := open(t, cfg)
			countertest.Away(t, c)
			if c.Connected() {
				t.Error("connected to a store that is away")
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
	cfg := settings(l.Addr().String())
	cfg.Timeout = 200 * time.Millisecond
	countertest.Away(t, open(t, cfg))
}

func TestStoreThatStopsAnswering(t *testing.T) {
	s := newServer(t).start()
	cfg := settings(s.address)
	cfg.Timeout = 100 * time.Millisecond
	c := open(t, cfg)
	if _, err := addHits(t, c, minutely("k")); err != nil {
		t.Fatal(err)
	}
	s.freeze()
	for range 30 {
		if _, err := addHits(t, c, minutely("k")); !fault.Is(err, fault.Unavailable) {
			t.Fatalf("while it does not answer: %v, want fault.Unavailable", err)
		}
	}
	if c.Connected() {
		t.Error("still connected after 30 calls without an answer")
	}
	if err := c.Ping(t.Context()); !fault.Is(err, fault.Unavailable) {
		t.Errorf("Ping: %v, want fault.Unavailable", err)
	}
	s.thaw()
	eventually(t, "counting after it goes on", func() bool {
		_, err := addHits(t, c, minutely("k"))
		return err == nil && c.Connected()
	})
}

// TestSilentStoreIsNoticedWithoutCalls: health tells also while nobody calls.
func TestSilentStoreIsNoticedWithoutCalls(t *testing.T) {
	s := newServer(t).start()
	cfg := settings(s.address)
	cfg.Timeout = 100 * time.Millisecond
	c := open(t, cfg)
	eventually(t, "a connection", c.Connected)
	s.freeze()
	eventually(t, "noticing", func() bool { return !c.Connected() })
	s.thaw()
	eventually(t, "noticing its return", c.Connected)
}

// TestManyCallsOfASilentStore: more calls than there is room for all end, with the fault that callers act on.
func TestManyCallsOfASilentStore(t *testing.T) {
	s := newServer(t).start()
	cfg := settings(s.address)
	cfg.Timeout, cfg.MaxIdleConns = time.Second, 1
	c := open(t, cfg)
	if _, err := addHits(t, c, minutely("k")); err != nil {
		t.Fatal(err)
	}
	s.freeze()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var all sync.WaitGroup
	for range 10000 {
		all.Go(func() {
			if err := c.Add(ctx, []counter.Hit{minutely("k")}, make([]uint64, 1)); !fault.Is(err, fault.Unavailable) {
				t.Errorf("%v, want fault.Unavailable", err)
			}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		t.Errorf("calls of a silent store took longer than %v", patience)
	}
	s.thaw()
	eventually(t, "counting after it goes on", func() bool {
		_, err := addHits(t, c, minutely("k"))
		return err == nil
	})
}

func TestRecoveryAfterRestart(t *testing.T) {
	s := newServer(t)
	countertest.Recovers(t, open(t, settings(s.address)), func() { s.start() }, s.kill)
}

// TestOneNodeAway: its keys fail, the others' do not, and the store as a whole is there.
func TestOneNodeAway(t *testing.T) {
	stays, goes := newServer(t).start(), newServer(t).start()
	cfg := settings(stays.address, goes.address)
	cfg.Timeout = time.Second
	c := open(t, cfg)
	byNode := map[bool]string{} // a key of the node that stays, and one of the other
	for i := 0; len(byNode) < 2; i++ {
		key := keys()(string(rune('a' + i)))
		if _, err := addHits(t, c, minutely(key)); err != nil {
			t.Fatal(err)
		}
		_, there := remaining(stays.address)(t, key)
		byNode[there] = key
	}
	goes.kill()
	for range 50 {
		if _, err := addHits(t, c, minutely(byNode[true])); err != nil {
			t.Fatalf("a key of the node that stays: %v", err)
		}
		if _, err := addHits(t, c, minutely(byNode[false])); !fault.Is(err, fault.Unavailable) {
			t.Fatalf("a key of the node that went: %v, want fault.Unavailable", err)
		}
		if _, err := addHits(t, c, minutely(byNode[true]), minutely(byNode[false])); !fault.Is(err, fault.Unavailable) {
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

// TestRestartedServerIsFoundAtOnce: a connection that broke is made anew under the call.
func TestRestartedServerIsFoundAtOnce(t *testing.T) {
	s := newServer(t).start()
	c := open(t, settings(s.address))
	for range 5 {
		if _, err := addHits(t, c, minutely("k")); err != nil {
			t.Fatalf("after the connections were broken: %v", err)
		}
		s.kill()
		eventually(t, "noticing", func() bool { return !c.Connected() })
		s.start()
		eventually(t, "noticing its return", c.Connected)
	}
}
