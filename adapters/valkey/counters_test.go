package valkey_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/adapters/system"
	"github.com/tollgate-dev/tollgate/adapters/valkey"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/ports/counter/countertest"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
)

func TestCountersContract(t *testing.T) {
	t.Parallel()
	address := sharedServer(t)
	for name, change := range map[string]func(*valkey.Config){
		"many connections": func(*valkey.Config) {},
		"one connection": func(c *valkey.Config) {
			c.PoolSize, c.PipelineLimit, c.PipelineWindow = 1, 3, 100*time.Microsecond
			c.URL = "redis://" + c.URL + "/0"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := newConfig(address)
			change(&cfg)
			subject := countertest.Subject{
				Store: open(t, cfg), Key: newKeys(), TTL: remainingTTL(newDirectClient(t, address)),
			}
			countertest.Run(t, func(*testing.T) countertest.Subject { return subject })
		})
	}
}

func TestCountsOverSocket(t *testing.T) {
	socket := t.TempDir() + "/s"
	newServer(t, "--unixsocket", socket).start()
	for n, url := range []string{socket, "unix://" + socket} {
		if after, err := add(t, open(t, newConfig(url)), newMinuteHit("k")); err != nil || after[0] != uint64(n+1) {
			t.Errorf("%s: %v, %v", url, after, err)
		}
	}
}

// TestCountersContractOnCluster runs the suite on two nodes, so that the keys of a batch are on
// both.
func TestCountersContractOnCluster(t *testing.T) {
	t.Parallel()
	a := newServer(t, "--cluster-enabled", "yes", "--cluster-port", instance.FreePort()).start()
	busB := instance.FreePort()
	b := newServer(t, "--cluster-enabled", "yes", "--cluster-port", busB).start()
	a.mustRun("CLUSTER SET-CONFIG-EPOCH 1")
	b.mustRun("CLUSTER SET-CONFIG-EPOCH 2")
	a.mustRun("CLUSTER ADDSLOTSRANGE 0 8191")
	b.mustRun("CLUSTER ADDSLOTSRANGE 8192 16383")
	host, port, _ := net.SplitHostPort(b.Address)
	a.mustRun("CLUSTER MEET " + host + " " + port + " " + busB)
	nodes := a.Address + "," + b.Address
	cfg := newConfig(nodes)
	cfg.Type = valkey.Cluster
	await.Until(t, "a cluster that takes writes on both nodes", func() bool {
		return strings.HasPrefix(a.SendLine("SET b 1"), "+OK") && strings.HasPrefix(b.SendLine("SET a 1"), "+OK")
	})
	subject := countertest.Subject{
		Store: open(t, cfg), Key: newKeys(), TTL: remainingTTL(newDirectClient(t, a.Address)), Loose: true,
	}
	countertest.Run(t, func(*testing.T) countertest.Subject { return subject })
}

func TestPairContract(t *testing.T) {
	t.Parallel()
	address := sharedServer(t)
	key := newKeys()
	other := open(t, newConfig(address))
	open := func(*testing.T) countertest.Subject {
		return countertest.Subject{
			Store: valkey.NewPair(memory.NewCounters(system.Clock{}, memory.Config{MaxCounters: 9}), other,
				time.Minute), Key: key,
		}
	}
	countertest.Run(t, open)
}

// TestPairAdmitsAllOrNothing: one store counts nothing when the other refuses.
func TestPairAdmitsAllOrNothing(t *testing.T) {
	stopped := clocktest.NewManual(time.Date(2030, time.May, 6, 7, 8, 9, 0, time.UTC))
	second, other := memory.NewCounters(stopped, memory.Config{MaxCounters: 9}),
		memory.NewCounters(stopped, memory.Config{MaxCounters: 9})
	pair := valkey.NewPair(second, other, time.Minute)
	hits := []counter.Hit{
		{
			Key: "s", Addend: 1, Limit: 1, Burst: 100, Window: time.Second, TTL: time.Minute,
			Algorithm: ratelimit.TokenBucket,
		},
		{
			Key: "d", Addend: 1, Limit: 1, Burst: 2, Window: 24 * time.Hour, TTL: time.Hour,
			Algorithm: ratelimit.TokenBucket,
		},
		{Key: "f", Addend: 1, Limit: 100, Window: 24 * time.Hour, TTL: time.Hour},
	}
	results := make([]counter.Result, 3)
	for i := range 5 {
		must.Succeed(t, pair.Count(t.Context(), hits, results, counter.AllOrNone))
		within := uint64(min(i+1, 2)) //nolint:gosec // small
		if results[0].Verdict.Remaining != 100-within || results[1].Verdict.Admitted != (i < 2) ||
			results[2].Count != within {
			t.Errorf("call %d: %+v", i+1, results)
		}
	}
}

func TestPairSplitsHitsByWindow(t *testing.T) {
	second, other := memory.NewCounters(system.Clock{}, memory.Config{MaxCounters: 9}),
		memory.NewCounters(system.Clock{}, memory.Config{MaxCounters: 9})
	pair := valkey.NewPair(second, other, time.Minute)
	hits := []counter.Hit{
		{Key: "m", Addend: 1, Limit: 2, Window: time.Minute, TTL: time.Minute},
		{Key: "s", Addend: 1, Limit: 1, Window: time.Second, TTL: time.Minute},
	}
	after := make([]counter.Result, 2)
	for _, wanted := range []string{"[1 1]", "[1 2]"} { // the second is over then, and the minute's is not counted
		if err := pair.Count(t.Context(), hits, after, counter.AllOrNone); err != nil ||
			fmt.Sprint(countertest.Counts(after)) != wanted {
			t.Errorf("all or none: %v, %v, want %s", after, err, wanted)
		}
	}
	if err := pair.Count(t.Context(), hits, after, counter.Each); err != nil ||
		fmt.Sprint(countertest.Counts(after)) != "[2 3]" {
		t.Errorf("Add: %v, %v, want [2 3]", after, err)
	}
	if second.Len() != 1 || other.Len() != 1 {
		t.Errorf("%d and %d counters, want one in each store", second.Len(), other.Len())
	}
}

func add(t testing.TB, c *valkey.Client, hits ...counter.Hit) ([]uint64, error) {
	t.Helper()
	after := make([]counter.Result, len(hits))
	err := c.Count(t.Context(), hits, after, counter.Each)
	return countertest.Counts(after), err
}

func newMinuteHit(key string) counter.Hit {
	return counter.Hit{Key: key, Addend: 1, Limit: 9, Window: time.Minute, TTL: time.Minute}
}

func TestCounterThatVanishedExpiresAgain(t *testing.T) {
	s := newServer(t).start()
	c := open(t, newConfig(s.Address))
	for _, round := range []string{"made", "made again"} {
		if after, err := add(t, c, newMinuteHit("k")); err != nil || after[0] != 1 {
			t.Fatalf("%s: %v, %v", round, after, err)
		}
		if left, there := remainingTTL(newDirectClient(t, s.Address))(t, "k"); !there || left <= 0 {
			t.Errorf("%s: the counter lives on for %v", round, left)
		}
		s.mustRun("FLUSHALL")
	}
}

func TestKnownCounterCostsOneCommand(t *testing.T) {
	s := newServer(t).start()
	c := open(t, newConfig(s.Address))
	for range 20 {
		if _, err := add(t, c, newMinuteHit("a"), newMinuteHit("b")); err != nil {
			t.Fatal(err)
		}
		if _, err := add(t, c, newMinuteHit("a")); err != nil {
			t.Fatal(err)
		}
	}
	d := newDirectClient(t, s.Address)
	stats, err := d.Do(t.Context(), d.B().Info().Section("commandstats").Build()).ToString()
	must.Succeed(t, err)
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

func TestUnreachableStore(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and never answers
	must.Succeed(t, err)
	t.Cleanup(func() { _ = silent.Close() }) // nothing is left to do about it
	for name, cfg := range map[string]valkey.Config{
		"silent":   newConfig(silent.Addr().String()),
		"refusing": newConfig("127.0.0.1:" + instance.FreePort()),
		"sentinel": {
			URL: "main,127.0.0.1:" + instance.FreePort(), SocketType: "tcp", Type: valkey.Sentinel, PoolSize: 1,
		},
		"cluster": {URL: "127.0.0.1:" + instance.FreePort(), SocketType: "tcp", Type: valkey.Cluster, PoolSize: 1},
	} {
		t.Run(name, func(t *testing.T) {
			cfg.Timeout = 50 * time.Millisecond
			c := open(t, cfg)
			countertest.Away(t, c)
			if c.Connected() {
				t.Error("Connected is true for an unreachable store")
			}
		})
	}
}

// TestIdleStoreIsProbed checks that Connected follows the state of the store while there are no
// calls.
func TestIdleStoreIsProbed(t *testing.T) {
	for name, away := range map[string]struct {
		begin func(*server) error
		end   func(*server) error
	}{
		"killed": {func(s *server) error { s.Kill(); return nil }, func(s *server) error { s.start(); return nil }},
		"frozen": {func(s *server) error { return s.Freeze() }, func(s *server) error { return s.Thaw() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t).start()
			cfg := newConfig(s.Address)
			cfg.Timeout, cfg.HealthNeedsConnection = 100*time.Millisecond, true
			c := open(t, cfg)
			await.Until(t, "the word that the store is there", c.Connected)
			must.Succeed(t, away.begin(s))
			await.Until(t, "the word that the store is away", func() bool { return !c.Connected() })
			must.Succeed(t, away.end(s))
			await.Until(t, "the word that the store is back", c.Connected)
		})
	}
}

// newFreezing returns a client of a server of its own.
func newFreezing(t *testing.T) countertest.Freezing {
	t.Helper()
	s := newServer(t).start()
	cfg := newConfig(s.Address)
	cfg.Timeout = 100 * time.Millisecond
	c := open(t, cfg)
	return countertest.Freezing{
		Store: c, Connected: c.Connected,
		Freeze: func() { must.Succeed(t, s.Freeze()) }, Thaw: func() { must.Succeed(t, s.Thaw()) },
	}
}

func TestStoreThatStopsAnswering(t *testing.T) {
	t.Parallel()
	countertest.StopsAnswering(t, newFreezing(t))
}

func TestManyCallsWithoutAnswer(t *testing.T) {
	t.Parallel()
	countertest.Overflows(t, newFreezing(t), 4000)
}

func TestRecoveryAfterRestart(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	countertest.Recovers(t, open(t, newConfig(s.Address)), func() { s.start() }, s.Kill)
}

func TestBrokenConnectionIsReplaced(t *testing.T) {
	s := newServer(t).start()
	c := open(t, newConfig(s.Address))
	for range 50 {
		if _, err := add(t, c, newMinuteHit("k")); err != nil {
			t.Fatalf("after the connections were broken: %v", err)
		}
		s.SendLine("CLIENT KILL TYPE normal")
	}
}

// TestSentinelFailover checks that the client follows the primary that the sentinel names.
func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	master := newServer(t).start()
	host, port, _ := net.SplitHostPort(master.Address)
	replica := newServer(t, "--replicaof", host+" "+port, "--repl-diskless-sync-delay", "0").start()
	watch := newServer(t)
	watch.Args = []string{sentinelFile(t, watch.Address, master.Address), "--sentinel"}
	watch.start()
	cfg := newConfig("main, " + watch.Address)
	cfg.Type = valkey.Sentinel
	c := open(t, cfg)
	await.Until(t, "counting on the first master", func() bool {
		_, err := add(t, c, newMinuteHit("k"))
		return err == nil
	})
	await.Until(t, "a replica that the sentinel knows", func() bool {
		return strings.HasPrefix(watch.SendLine("SENTINEL FAILOVER main"), "+OK")
	})
	await.Until(t, "counting on the second master", func() bool {
		_, err := add(t, c, newMinuteHit("after"))
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
	must.Succeed(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// TestServerThatBecameReplica checks that the client connects again if the address leads to a new
// server, but its connections lead to the old one, which is a replica.
func TestServerThatBecameReplica(t *testing.T) {
	t.Parallel()
	old, next := newServer(t).start(), newServer(t).start()
	r := newRelay(t, old.Address)
	c := open(t, newConfig(r.address))
	if _, err := add(t, c, newMinuteHit("k")); err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(next.Address)
	old.mustRun("REPLICAOF " + host + " " + port)
	r.target.Store(&next.Address)
	await.Until(t, "counting on the new master", func() bool {
		_, err := add(t, c, newMinuteHit("k"))
		return err == nil
	})
}

func TestWrongPassword(t *testing.T) {
	s := newServer(t, "--requirepass", "right").start()
	for auth, wanted := range map[string]bool{
		"right": true, "default:right": true, "wrong": false, "": false, "nobody:right": false,
	} {
		cfg := newConfig(s.Address)
		cfg.Auth = auth
		if _, err := add(t, open(t, cfg), newMinuteHit("k")); (err == nil) != wanted {
			t.Errorf("auth %q: %v", auth, err)
		}
	}
	if _, err := add(t, open(t, newConfig("valkey://:right@"+s.Address)), newMinuteHit("k")); err != nil {
		t.Errorf("password in the URL: %v", err)
	}
}

func BenchmarkCountersAdd(b *testing.B) {
	countertest.BenchmarkAdd(b, open(b, newConfig(sharedServer(b))), newKeys())
}

// TestCounterFoundWithoutExpiry uses a counter that exists with the value zero, as if it had
// expired between the two commands. It must get an expiry.
func TestCounterFoundWithoutExpiry(t *testing.T) {
	address := sharedServer(t)
	beside, h := newDirectClient(t, address), newMinuteHit(newKeys()("found"))
	must.Succeed(t, beside.Do(t.Context(), beside.B().Set().Key(h.Key).Value("0").Build()).Error())
	if n, err := add(t, open(t, newConfig(address)), h); err != nil || n[0] != 1 {
		t.Fatalf("counted %d, %v", n, err)
	}
	if left, _ := remainingTTL(beside)(t, h.Key); left <= 0 || left > h.TTL {
		t.Errorf("lives %v, want at most %v", left, h.TTL)
	}
}
