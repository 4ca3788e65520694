package memcached

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cespare/xxhash/v2"
	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/test/must"
)

func newTestRing(names []string) *ring {
	r := newRing(0, nil, nil)
	nodes := make([]*node, len(names))
	for i, name := range names {
		nodes[i] = &node{name: name, hash: xxhash.Sum64String(name)}
	}
	r.nodes.Store(&nodes)
	return r
}

func (r *ring) nameOf(t must.T, key string) string {
	n, err := r.findNode(key)
	must.Succeed(t, err)
	return n.name
}

// TestNodeOfAKey checks that the node of a key does not depend on the order of the list, and that
// removing a node moves only its own keys.
func TestNodeOfAKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{1,5}:[1-9]`), 1, 20, rapid.ID[string]).
			Draw(t, "names")
		gone := rapid.IntRange(0, len(names)-1).Draw(t, "gone")
		key := rapid.String().Draw(t, "key")
		before := newTestRing(names).nameOf(t, key)
		shuffled := append([]string(nil), names...)
		rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if got := newTestRing(shuffled).nameOf(t, key); got != before {
			t.Fatalf("%q is on %s, and in another order on %s", key, before, got)
		}
		left := append(append([]string(nil), names[:gone]...), names[gone+1:]...)
		if len(left) == 0 || names[gone] == before {
			return
		}
		if got := newTestRing(left).nameOf(t, key); got != before {
			t.Fatalf("%q moved from %s to %s when %s was removed", key, before, got, names[gone])
		}
	})
}

// TestNodesShareEvenly checks that no node has more than a fifth above its share of the keys.
func TestNodesShareEvenly(t *testing.T) {
	var names []string
	for i := range 5 {
		names = append(names, fmt.Sprintf("10.0.0.%d:11211", i))
	}
	r, share := newTestRing(names), map[string]int{}
	const keys = 50000
	for i := range keys {
		share[r.nameOf(t, fmt.Sprintf("shop|tenant:%d|86400|%d", i, 1_700_000_000))]++
	}
	for name, n := range share {
		if n < keys/5*4/5 || n > keys/5*6/5 {
			t.Errorf("%s has %d of %d keys", name, n, keys)
		}
	}
	if len(share) != 5 {
		t.Errorf("keys are on %d of 5 nodes", len(share))
	}
}

// TestMappingStays fixes the mapping of keys to nodes, because a release with another mapping would
// reset all counters during a rolling update.
func TestMappingStays(t *testing.T) {
	r := newTestRing([]string{"a:11211", "b:11211", "c:11211"})
	got := ""
	for i := range 16 {
		got += r.nameOf(t, fmt.Sprint("key", i))[:1]
	}
	if want := "cbbaaacaaacbcaab"; got != want {
		t.Errorf("keys are on %s, want %s", got, want)
	}
}
