package valkey_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/adapters/system"
	"github.com/tollgate-dev/tollgate/adapters/valkey"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/ports/counter/countertest"
	"github.com/tollgate-dev/tollgate/test/instance"
)

func TestCountersContract(t *testing.T) {
	address := given(t)
	for name, change := range map[string]func(*valkey.Config){
		"plain":           func(*valkey.Config) {},
		"small pipelines": func(c *valkey.Config) { c.PipelineLimit = 3 },
		"one connection":  func(c *valkey.Config) { c.PoolSize = 1; c.PipelineWindow = 100 * time.Microsecond },
		"as a URL":        func(c *valkey.Config) { c.URL = "redis://" + c.URL + "/0" },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := settings(address)
			change(&cfg)
			subject := countertest.Subject{Store: open(t, cfg), Key: keys(), TTL: remaining(direct(t, address))}
			countertest.Run(t, func(*testing.T) countertest.Subject { return subject })
		})
	}
}

func TestCountersContractOverSocket(t *testing.T) {
	socket := t.TempDir() + "/s"
	s := newServer(t, "--unixsocket", socket).start()
	for _, url := range []string{socket, "unix://" + socket} {
		subject := countertest.Subject{Store: open(t, settings(url)), Key: keys(), TTL: remaining(direct(t, s.Address))}
		countertest.Run(t, func(*testing.T) countertest.Subject { return subject })
	}
}

// TestCountersContractOnCluster runs the suite over two nodes: the keys of a batch lie on both.
func TestCountersContractOnCluster(t *testing.T) {
	a := newServer(t, "--cluster-enabled", "yes", "--cluster-port", instance.FreePort()).start()
	busB := instance.FreePort()
	b := newServer(t, "--cluster-enabled", "yes", "--cluster-port", busB).start()
	a.must("CLUSTER SET-CONFIG-EPOCH 1")
	b.must("CLUSTER SET-CONFIG-EPOCH 2")
	a.must("CLUSTER ADDSLOTSRANGE 0 8191")
	b.must("CLUSTER ADDSLOTSRANGE 8192 16383")
	host, port, _ := net.SplitHostPort(b.Address)
	a.must("CLUSTER MEET " + host + " " + port + " " + busB)
	nodes := a.Address + "," + b.Address
	cfg := settings(nodes)
	cfg.Type = valkey.Cluster
	eventually(t, "a cluster that takes writes on both nodes", func() bool {
		return strings.HasPrefix(a.SendLine("SET b 1"), "+OK") && strings.HasPrefix(b.SendLine("SET a 1"), "+OK")
	})
	subject := countertest.Subject{Store: open(t, cfg), Key: keys(), TTL: remaining(direct(t, a.Address)), Loose: true}
	countertest.Run(t, func(*testing.T) countertest.Subject { return subject })
}

func TestPairContract(t *testing.T) {
	address := given(t)
	key := keys()
	other := open(t, settings(address))
	countertest.Run(t, func(*testing.T) countertest.Subject {
		return countertest.Subject{Store: valkey.NewPair(memory.NewCounters(system.Clock{}, memory.Config{MaxCounters: 9}), other), Key: key}
	})
}

func TestPairPartsByWindow(t *testing.T) {
	second, other := memory.NewCounters(system.Clock{}, memory.Config{MaxCounters: 9}), memory.NewCounters(system.Clock{}, memory.Config{MaxCounters: 9})
	pair := valkey.NewPair(second, other)
	hits := []counter.Hit{
		{Key: "m", Addend: 1, Limit: 2, Window: time.Minute, TTL: time.Minute},
		{Key: "s", Addend: 1, Limit: 1, Window: time.Second, TTL: time.Minute},
	}
	after := make([]uint64, 2)
	for _, wanted := range []string{"[1 1]", "[1 2]"} { // the second is over then, and the minute's is not counted
		if err := pair.AddUnlessOver(t.Context(), hits, after); err != nil || fmt.Sprint(after) != wanted {
			t.Errorf("AddUnlessOver: %v, %v, want %s", after, err, wanted)
		}
	}
	if err := pair.Add(t.Context(), hits, after); err != nil || fmt.Sprint(after) != "[2 3]" {
		t.Errorf("Add: %v, %v, want [2 3]", after, err)
	}
	if second.Len() != 1 || other.Len() != 1 {
		t.Errorf("%d and %d counters, want one in each store", second.Len(), other.Len())
	}
}

func add(t testing.TB, c *valkey.Client, hits ...counter.Hit) ([]uint64, error) {
	t.Helper()
	after := make([]uint64, len(hits))
	err := c.Add(t.Context(), hits, after)
	return after, err
}

func minutely(key string) counter.Hit {
	return counter.Hit{Key: key, Addend: 1, Limit: 9, Window: time.Minute, TTL: time.Minute}
}

func TestCounterThatVanishedExpiresAgain(t *testing.T) {
	s := newServer(t).start()
	c := open(t, settings(s.Address))
	for _, round := range []string{"made", "made again"} {
		if after, err := add(t, c, minutely("k")); err != nil || after[0] != 1 {
			t.Fatalf("%s: %v, %v", round, after, err)
		}
		if left, there := remaining(direct(t, s.Address))(t, "k"); !there || left <= 0 {
			t.Errorf("%s: the counter lives on for %v", round, left)
		}
		s.must("FLUSHALL")
	}
}

func TestKnownCounterCostsOneCommand(t *testing.T) {
	s := newServer(t).start()
	c := open(t, settings(s.Address))
	for range 20 {
		if _, err := add(t, c, minutely("a"), minutely("b")); err != nil {
			t.Fatal(err)
		}
		if _, err := add(t, c, minutely("a")); err != nil {
			t.Fatal(err)
		}
	}
	d := direct(t, s.Address)
	stats, err := d.Do(t.Context(), d.B().Info().Section("commandstats").Build()).ToString()
	if err != nil {
		t.Fatal(err)
	}
	for command, wanted := range map[string]string{"incrby": "60", "set": "2"} {
		if !strings.Contains(stats, "cmdstat_"+command+":calls="+wanted+",") {
			t.Errorf("want %s calls of %s in\n%s", wanted, command, stats)
		}
	}
	for _, command := range []string{"pexpire", "expire", "eval", "evalsha", "get"} {
		if strings.Contains(stats, "cmdstat_"+command+":") {
			t.Errorf("%s was called:\n%s", command, stats)
		}
	}
}

func TestAwayStore(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and never answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() }) // nothing is left to do about it
	for name, cfg := range map[string]valkey.Config{
		"silent":   settings(silent.Addr().String()),
		"refusing": settings("127.0.0.1:" + instance.FreePort()),
		"sentinel": {URL: "main,127.0.0.1:" + instance.FreePort(), SocketType: "tcp", Type: valkey.Sentinel, PoolSize: 1},
		"cluster":  {URL: "127.0.0.1:" + instance.FreePort(), SocketType: "tcp", Type: valkey.Cluster, PoolSize: 1},
	} {
		t.Run(name, func(t *testing.T) {
			cfg.Timeout = 50 * time.Millisecond
			c := open(t, cfg)
			countertest.Away(t, c)
			if c.Connected() {
				t.Error("connected to a store that is away")
			}
		})
	}
}

// TestWatchedStore: health is told of a store that is away, and of its return, while nobody calls it.
func TestWatchedStore(t *testing.T) {
	for name, away := range map[string]struct {
		begin func(*server) error
		end   func(*server) error
	}{
		"killed": {func(s *server) error { s.Kill(); return nil }, func(s *server) error { s.start(); return nil }},
		"frozen": {func(s *server) error { return s.Freeze() }, func(s *server) error { return s.Thaw() }},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t).start()
			cfg := settings(s.Address)
			cfg.Timeout, cfg.HealthNeedsConnection = 100*time.Millisecond, true
			c := open(t, cfg)
			if !c.Connected() {
				t.Fatal("not connected to a store that is there")
			}
			if err := away.begin(s); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the word that the store is away", func() bool { return !c.Connected() })
			if err := away.end(s); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the word that the store is back", c.Connected)
		})
	}
}

func TestStoreThatStopsAnswering(t *testing.T) {
	s := newServer(t).start()
	cfg := settings(s.Address)
	cfg.Timeout = 100 * time.Millisecond
	c := open(t, cfg)
	if _, err := add(t, c, minutely("k")); err != nil {
		t.Fatal(err)
	}
	s.must("CLIENT PAUSE 3000 ALL")
	for range 30 {
		if _, err := add(t, c, minutely("k")); !fault.Is(err, fault.Unavailable) {
			t.Fatalf("while it does not answer: %v, want fault.Unavailable", err)
		}
	}
	if c.Connected() {
		t.Error("still connected after 30 calls without an answer")
	}
	eventually(t, "counting after the pause", func() bool {
		_, err := add(t, c, minutely("k"))
		return err == nil && c.Connected()
	})
}

// TestManyCallsOfASilentStore: more calls than the client has room for all end, with the fault that callers act on.
func TestManyCallsOfASilentStore(t *testing.T) {
	s := newServer(t).start()
	cfg := settings(s.Address)
	cfg.Timeout = time.Second
	c := open(t, cfg)
	if _, err := add(t, c, minutely("k")); err != nil {
		t.Fatal(err)
	}
	if err := s.Freeze(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var all sync.WaitGroup
	for range 4000 {
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
	if c.Connected() {
		t.Error("still connected")
	}
}

func TestRecoveryAfterRestart(t *testing.T) {
	s := newServer(t)
	countertest.Recovers(t, open(t, settings(s.Address)), func() { s.start() }, s.Kill)
}

func TestBrokenConnectionIsMadeAnew(t *testing.T) {
	s := newServer(t).start()
	c := open(t, settings(s.Address))
	for range 50 {
		if _, err := add(t, c, minutely("k")); err != nil {
			t.Fatalf("after the connections were broken: %v", err)
		}
		s.SendLine("CLIENT KILL TYPE normal")
	}
}

// TestSentinelFailover: the client follows the master that the sentinel names.
func TestSentinelFailover(t *testing.T) {
	master := newServer(t).start()
	host, port, _ := net.SplitHostPort(master.Address)
	replica := newServer(t, "--replicaof", host+" "+port, "--repl-diskless-sync-delay", "0").start()
	watch := newServer(t)
	watch.Args = []string{sentinelFile(t, watch.Address, master.Address), "--sentinel"}
	watch.start()
	cfg := settings("main, " + watch.Address)
	cfg.Type = valkey.Sentinel
	c := open(t, cfg)
	eventually(t, "counting on the first master", func() bool {
		_, err := add(t, c, minutely("k"))
		return err == nil
	})
	eventually(t, "a replica that the sentinel knows", func() bool {
		return strings.HasPrefix(watch.SendLine("SENTINEL FAILOVER main"), "+OK")
	})
	eventually(t, "counting on the second master", func() bool {
		_, err := add(t, c, minutely("after"))
		return err == nil && strings.HasPrefix(replica.SendLine("EXISTS after"), ":1")
	})
}

func sentinelFile(t *testing.T, address, master string) string {
	t.Helper()
	_, port, _ := net.SplitHostPort(address)
	host, masterPort, _ := net.SplitHostPort(master)
	path := filepath.Join(t.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("port %s\nbind 127.0.0.1\ndir %s\nsentinel monitor main %s %s 1\nsentinel down-after-milliseconds main 1000\n",
		port, t.TempDir(), host, masterPort)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestServerThatBecameReplica: the address leads elsewhere after a failover, but the connections are still to the old one.
func TestServerThatBecameReplica(t *testing.T) {
	old, next := newServer(t).start(), newServer(t).start()
	r := newRelay(t, old.Address)
	c := open(t, settings(r.address))
	if _, err := add(t, c, minutely("k")); err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(next.Address)
	old.must("REPLICAOF " + host + " " + port)
	r.target.Store(&next.Address)
	eventually(t, "counting on the new master", func() bool {
		_, err := add(t, c, minutely("k"))
		return err == nil
	})
}

func TestWrongPassword(t *testing.T) {
	s := newServer(t, "--requirepass", "right").start()
	for auth, wanted := range map[string]bool{"right": true, "default:right": true, "wrong": false, "": false, "nobody:right": false} {
		cfg := settings(s.Address)
		cfg.Auth = auth
		if _, err := add(t, open(t, cfg), minutely("k")); (err == nil) != wanted {
			t.Errorf("auth %q: %v", auth, err)
		}
	}
	if _, err := add(t, open(t, settings("valkey://:right@"+s.Address)), minutely("k")); err != nil {
		t.Errorf("password in the URL: %v", err)
	}
}

func BenchmarkCountersAdd(b *testing.B) {
	countertest.BenchmarkAdd(b, open(b, settings(given(b))), keys())
}

// TestCounterFoundWithoutExpiry: one that is there when it should be made, and counts from zero all the same, as it does
// when it ends between the two commands, does not live for ever.
func TestCounterFoundWithoutExpiry(t *testing.T) {
	address := given(t)
	beside, h := direct(t, address), minutely(keys()("found"))
	if err := beside.Do(t.Context(), beside.B().Set().Key(h.Key).Value("0").Build()).Error(); err != nil {
		t.Fatal(err)
	}
	if n, err := add(t, open(t, settings(address)), h); err != nil || n[0] != 1 {
		t.Fatalf("counted %d, %v", n, err)
	}
	if left, _ := remaining(beside)(t, h.Key); left <= 0 || left > h.TTL {
		t.Errorf("lives %v, want at most %v", left, h.TTL)
	}
}
