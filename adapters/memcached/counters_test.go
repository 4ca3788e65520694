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
)

func TestCountersContract(t *testing.T) {
	address := given(t)
	for name, connections := range map[string]int{"two connections": 2, "one connection": 1, "many connections": 16} {
		t.Run(name, func(t *testing.T) {
			cfg := settings(address)
			cfg.MaxIdleConns = connections
			subject := countertest.Subject{Store: open(t, cfg), Key: keys(), TTL: remaining(address), Loose: true}
			countertest.Run(t, func(*testing.T) countertest.Subject { return subject })
		})
	}
}

// TestCountersContractOnManyNodes runs the suite over three nodes: the keys of a batch lie on all of them.
func TestCountersContractOnManyNodes(t *testing.T) {
	var addresses []string
	for range 3 {
		addresses = append(addresses, newServer(t).start().address)
	}
	subject := countertest.Subject{Store: open(t, settings(addresses...)), Key: keys(), TTL: remaining(addresses...), Loose: true}
	countertest.Run(t, func(*testing.T) countertest.Subject { return subject })
}

// TestInstancesAgreeOnNodes: two clients with the same nodes in another order and another spelling count together.
func TestInstancesAgreeOnNodes(t *testing.T) {
	a, b, c := newServer(t).start().address, newServer(t).start().address, newServer(t).start().address
	one := open(t, settings(a, b, c))
	other := open(t, settings(" "+c, a, b))
	for i := range 200 {
		key := fmt.Sprintf("agree|%d", i)
		for n, client := range []*memcached.Client{one, other} {
			if after, err := addHits(t, client, minutely(key)); err != nil || after[0] != uint64(n+1) {
				t.Fatalf("%s by client %d: %v, %v", key, n+1, after, err)
			}
		}
	}
}

// TestOneCommandPerHit: known and new counters cost one command each, and calls share the connections.
func TestOneCommandPerHit(t *testing.T) {
	s := newServer(t).start()
	c := open(t, settings(s.address))
	for range 20 {
		if _, err := addHits(t, c, minutely("a"), minutely("b")); err != nil {
			t.Fatal(err)
		}
	}
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			if _, err := addHits(t, c, minutely("a")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	stats := s.must("stats\r\n")
	for name, wanted := range map[string]string{"incr_hits": "238", "cmd_set": "0", "cmd_get": "0", "get_hits": "0", "cmd_touch": "0"} {
		if !strings.Contains(stats, "STAT "+name+" "+wanted+"\r\n") {
			t.Errorf("want %s %s in\n%s", name, wanted, stats)
		}
	}
	var connections int
	if _, rest, ok := strings.Cut(stats, "STAT total_connections "); ok {
		_, _ = fmt.Sscan(rest, &connections) // zero fails below
	}
	// Two of the client, one of this question, one of the start; the server counts its listener too.
	if connections == 0 || connections > 6 {
		t.Errorf("%d connections were made, want no more than a few", connections)
	}
}

// TestExpiry: memcached reads more than 30 days as a date, and its clock may be about to tick.
func TestExpiry(t *testing.T) {
	address := given(t)
	c, key := open(t, settings(address)), keys()
	for _, ttl := range []time.Duration{time.Nanosecond, time.Second, 1500 * time.Millisecond, 30 * 24 * time.Hour, 366 * 24 * time.Hour} {
		h := minutely(key(ttl.String()))
		h.TTL = ttl
		if after, err := addHits(t, c, h, h); err != nil || after[1] != 2 {
			t.Errorf("life of %v: %v, %v", ttl, after, err)
		}
		left, there := remaining(address)(t, h.Key)
		if !there || left > ttl+time.Second || left < ttl-30*time.Second {
			t.Errorf("life of %v: lives on for %v, there: %t", ttl, left, there)
		}
	}
}

func TestForeignValues(t *testing.T) {
	s := newServer(t).start()
	c := open(t, settings(s.address))
	s.must("set word 0 0 5\r\nhello\r\nset long 0 0 1000\r\n" + strings.Repeat("1", 1000) + "\r\n")
	for _, key := range []string{"word", "long"} {
		for _, addend := range []int64{1, 0, -1} {
			h := minutely(key)
			h.Addend = addend
			if _, err := addHits(t, c, h); !fault.Is(err, fault.Unavailable) {
				t.Errorf("%s, addend %d: %v, want fault.Unavailable", key, addend, err)
			}
		}
	}
	if after, err := addHits(t, c, minutely("own")); err != nil || after[0] != 1 {
		t.Errorf("afterwards: %v, %v", after, err)
	}
}

func TestKeysThatCannotStandInACommand(t *testing.T) {
	c := open(t, settings(given(t)))
	for _, key := range []string{"", "a b", "a\r\nflush_all", "a\x00", "a\x7f", "ä", strings.Repeat("k", counter.MaxKey+1)} {
		if _, err := addHits(t, c, minutely(key)); !fault.Is(err, fault.Internal) {
			t.Errorf("key %q: %v, want fault.Internal", key, err)
		}
	}
}

func TestGreatestGiveBack(t *testing.T) {
	c, h := open(t, settings(given(t))), minutely(keys()("least"))
	back := h
	back.Addend = math.MinInt64
	if after, err := addHits(t, c, h, back, h); err != nil || fmt.Sprint(after) != "[1 0 1]" {
		t.Errorf("%v, %v, want [1 0 1]", after, err)
	}
}

// TestUnlessOverAtRest: what parallel calls count beside a counter that another one fills is given back, on one node and
// on two.
func TestUnlessOverAtRest(t *testing.T) {
	for name, nodes := range map[string][]string{
		"one node":  {newServer(t).start().address},
		"two nodes": {newServer(t).start().address, newServer(t).start().address},
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, settings(nodes...))
			const callers, limit = 32, 100
			var admitted atomic.Int64
			var all sync.WaitGroup
			for range callers {
				all.Go(func() {
					after := make([]uint64, 4)
					for range 20 {
						hits := []counter.Hit{minutely("beside"), minutely("full"), minutely("beside"), minutely("other")}
						for i := range hits {
							hits[i].Limit = 1 << 40
						}
						hits[1].Limit = limit
						if err := c.AddUnlessOver(t.Context(), hits, after); err != nil {
							t.Error(err)
							return
						}
						if after[1] <= limit {
							admitted.Add(1)
						}
					}
				})
			}
			all.Wait()
			look := []counter.Hit{{Key: "beside", TTL: time.Minute}, {Key: "full", TTL: time.Minute}, {Key: "other", TTL: time.Minute}}
			after, err := addHits(t, c, look...)
			wanted := fmt.Sprint([]int{2 * limit, callers * 20, limit})
			if err != nil || fmt.Sprint(after) != wanted || admitted.Load() != limit {
				t.Errorf("counted %v, %v, want %s; %d admitted, want %d", after, err, wanted, admitted.Load(), limit)
			}
		})
	}
}

// TestDeadlineOfTheCaller: a caller with less time than the store's deadline waits no longer, and is no sign of a dead
// store.
func TestDeadlineOfTheCaller(t *testing.T) {
	s := newServer(t).start()
	c := open(t, settings(s.address))
	s.freeze()
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		if err := c.Add(ctx, []counter.Hit{minutely("k")}, make([]uint64, 1)); !fault.Is(err, fault.Unavailable) {
			t.Errorf("%v, want fault.Unavailable", err)
		}
		cancel()
	}
	if !c.Connected() {
		t.Error("impatient callers broke the connection")
	}
	s.thaw()
	if after, err := addHits(t, c, minutely("k")); err != nil || after[0] == 0 {
		t.Errorf("afterwards: %v, %v", after, err)
	}
}

func BenchmarkCountersAdd(b *testing.B) {
	countertest.BenchmarkAdd(b, open(b, settings(given(b))), keys())
}
