package memcached_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/memcached"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/ports/counter/countertest"
	"github.com/tollgate-dev/tollgate/test/await"
)

// TestCountersContract runs the suite with one connection to a node, and with many connections to
// three nodes, so that the keys of a batch are on all of them.
func TestCountersContract(t *testing.T) {
	t.Parallel()
	three := make([]string, 3)
	for i := range three {
		three[i] = newServer(t).start().address
	}
	for connections, nodes := range map[int][]string{1: {sharedServer(t)}, 16: three} {
		t.Run(fmt.Sprint(connections), func(t *testing.T) {
			t.Parallel()
			cfg := newConfig(nodes...)
			cfg.MaxIdleConns = connections
			subject := countertest.Subject{
				Store: openClient(t, cfg), Key: newKeys(), TTL: remainingTTL(nodes...), Loose: true,
			}
			countertest.Run(t, func(*testing.T) countertest.Subject { return subject })
		})
	}
}

// TestInstancesAgreeOnNodes checks that two clients share counters if their lists contain the same
// nodes in another order and spelling.
func TestInstancesAgreeOnNodes(t *testing.T) {
	a, b, c := newServer(t).start().address, newServer(t).start().address, newServer(t).start().address
	one := openClient(t, newConfig(a, b, c))
	other := openClient(t, newConfig(" "+c, a, b))
	for i := range 200 {
		key := fmt.Sprintf("agree|%d", i)
		for n, client := range []*memcached.Client{one, other} {
			if after, err := addHits(t, client, newMinuteHit(key)); err != nil || after[0] != uint64(n+1) {
				t.Fatalf("%s by client %d: %v, %v", key, n+1, after, err)
			}
		}
	}
}

// TestOneCommandPerHit checks that known and new counters cost one command each, that hits of one
// key in parallel cost no more, and that calls share connections.
func TestOneCommandPerHit(t *testing.T) {
	s := newServer(t).start()
	c := openClient(t, newConfig(s.address))
	for range 20 {
		if _, err := addHits(t, c, newMinuteHit("a"), newMinuteHit("b")); err != nil {
			t.Fatal(err)
		}
	}
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			if _, err := addHits(t, c, newMinuteHit("a")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	stats := s.mustRun("stats\r\n")
	var increments int
	if _, rest, ok := strings.Cut(stats, "STAT incr_hits "); ok {
		_, _ = fmt.Sscan(rest, &increments) // zero fails below
	}
	if increments < 39 || increments > 238 {
		t.Errorf("%d increments, want 38 and at most 200 more", increments)
	}
	if after, err := addHits(t, c, newMinuteHit("a")); err != nil || after[0] != 221 {
		t.Errorf("count %v, %v, want 221", after, err)
	}
	for name, wanted := range map[string]string{"cmd_set": "0", "cmd_get": "0", "get_hits": "0", "cmd_touch": "0"} {
		if !strings.Contains(stats, "STAT "+name+" "+wanted+"\r\n") {
			t.Errorf("want %s %s in\n%s", name, wanted, stats)
		}
	}
	var connections int
	if _, rest, ok := strings.Cut(stats, "STAT total_connections "); ok {
		_, _ = fmt.Sscan(rest, &connections) // zero fails below
	}
	// The client has two connections, this test and the start of the server one each, and the
	// server counts its listener.
	if connections == 0 || connections > 6 {
		t.Errorf("%d connections were opened, want only a few", connections)
	}
}

// TestExpiry checks times to live at the limits: memcached reads more than 30 days as a date, and
// its clock may tick immediately, and runs late on a machine that was paused.
func TestExpiry(t *testing.T) {
	address := sharedServer(t)
	c, key := openClient(t, newConfig(address)), newKeys()
	for _, ttl := range []time.Duration{
		time.Nanosecond, time.Second, 1500 * time.Millisecond, 30 * 24 * time.Hour, 366 * 24 * time.Hour,
	} {
		h := newMinuteHit(key(ttl.String()))
		h.TTL = ttl
		if after, err := addHits(t, c, h, h); err != nil || after[1] != 2 {
			t.Errorf("time to live %v: %v, %v", ttl, after, err)
		}
		left, there := remainingTTL(address)(t, h.Key)
		if !there || left > ttl+30*time.Second || left < ttl-30*time.Second {
			t.Errorf("time to live %v: the remaining time is %v, found: %t", ttl, left, there)
		}
	}
}

func TestValuesThatAreNotCounters(t *testing.T) {
	s := newServer(t).start()
	c := openClient(t, newConfig(s.address))
	s.mustRun("set word 0 0 5\r\nhello\r\nset long 0 0 1000\r\n" + strings.Repeat("1", 1000) + "\r\n")
	for _, key := range []string{"word", "long"} {
		for _, addend := range []int64{1, 0, -1} {
			h := newMinuteHit(key)
			h.Addend = addend
			if _, err := addHits(t, c, h); !fault.Is(err, fault.Unavailable) {
				t.Errorf("%s, addend %d: %v, want fault.Unavailable", key, addend, err)
			}
		}
	}
	if after, err := addHits(t, c, newMinuteHit("own")); err != nil || after[0] != 1 {
		t.Errorf("a later call: %v, %v", after, err)
	}
}

func TestInvalidKeys(t *testing.T) {
	c := openClient(t, newConfig(sharedServer(t)))
	for _, key := range []string{
		"", "a b", "a\r\nflush_all", "a\x00", "a\x7f", "ä", strings.Repeat("k", counter.MaxKey+1),
	} {
		if _, err := addHits(t, c, newMinuteHit(key)); !fault.Is(err, fault.Internal) {
			t.Errorf("key %q: %v, want fault.Internal", key, err)
		}
	}
}

func TestGreatestSubtraction(t *testing.T) {
	c, h := openClient(t, newConfig(sharedServer(t))), newMinuteHit(newKeys()("least"))
	back := h
	back.Addend = math.MinInt64
	if after, err := addHits(t, c, h, back, h); err != nil || fmt.Sprint(after) != "[1 0 1]" {
		t.Errorf("%v, %v, want [1 0 1]", after, err)
	}
}

// TestConcurrentAllOrNone checks that hits are subtracted again if a parallel call filled
// another counter of the same call, on one node and on two.
func TestConcurrentAllOrNone(t *testing.T) {
	for name, nodes := range map[string][]string{
		"one node":  {newServer(t).start().address},
		"two nodes": {newServer(t).start().address, newServer(t).start().address},
	} {
		t.Run(name, func(t *testing.T) {
			c := openClient(t, newConfig(nodes...))
			const callers, limit = 32, 100
			var admitted atomic.Int64
			var all sync.WaitGroup
			for range callers {
				all.Go(func() {
					after := make([]counter.Result, 4)
					for range 20 {
						hits := []counter.Hit{
							newMinuteHit("beside"), newMinuteHit("full"), newMinuteHit("beside"), newMinuteHit("other"),
						}
						for i := range hits {
							hits[i].Limit = 1 << 40
						}
						hits[1].Limit = limit
						if err := c.Count(t.Context(), hits, after, counter.AllOrNone); err != nil {
							t.Error(err)
							return
						}
						if after[1].Count <= limit {
							admitted.Add(1)
						}
					}
				})
			}
			all.Wait()
			look := []counter.Hit{
				{Key: "beside", TTL: time.Minute}, {Key: "full", TTL: time.Minute}, {Key: "other", TTL: time.Minute},
			}
			after, err := addHits(t, c, look...)
			wanted := fmt.Sprint([]int{2 * limit, callers * 20, limit})
			if err != nil || fmt.Sprint(after) != wanted || admitted.Load() != limit {
				t.Errorf("counted %v, %v, want %s; %d admitted, want %d", after, err, wanted, admitted.Load(), limit)
			}
		})
	}
}

// TestDeadlineOfTheCaller checks that a caller with a shorter deadline does not wait longer, and
// that its timeouts do not close the connection.
func TestDeadlineOfTheCaller(t *testing.T) {
	s := newServer(t).start()
	c := openClient(t, newConfig(s.address))
	await.Until(t, "a connection", c.Connected)
	s.freeze()
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		if err := c.Count(ctx, []counter.Hit{newMinuteHit("k")}, make([]counter.Result, 1),
			counter.Each); !fault.Is(err, fault.Unavailable) {
			t.Errorf("%v, want fault.Unavailable", err)
		}
		cancel()
	}
	if !c.Connected() {
		t.Error("callers with short deadlines closed the connection")
	}
	s.thaw()
	if after, err := addHits(t, c, newMinuteHit("k")); err != nil || after[0] == 0 {
		t.Errorf("a later call: %v, %v", after, err)
	}
}

func BenchmarkCountersAdd(b *testing.B) {
	countertest.BenchmarkAdd(b, openClient(b, newConfig(sharedServer(b))), newKeys())
}
