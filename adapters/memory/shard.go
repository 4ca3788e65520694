package memory

import (
	"math"
	"sync"

	"github.com/tollgate-dev/tollgate/ports/counter"
)

// reclaimed is how many expired counters go, at most, for each one that is made. More than one, so that the expired ones
// run out; few, so that no call pays for the end of a window.
const reclaimed = 2

// digest is what stands for a key.
type digest struct{ lo, hi uint64 }

// cell is one counter.
type cell struct {
	key     digest
	count   uint64
	expires int64 // nanoseconds since the epoch; from then on the counter is gone
}

// shard is a part of the counters under one lock. Its cells lie in a slab; the heap orders them by expiry, which never
// changes while a cell is in use.
type shard struct {
	mu      sync.Mutex
	index   map[digest]int32 // to the cell in force
	cells   []cell
	heap    []int32 // cells in use, the soonest to expire on top
	free    []int32 // cells not in use
	limit   int
	evicted interface{ Add(delta uint64) uint64 }
	_       [64]byte // keeps the locks of neighbours off one cache line
}

// count returns a counter's count, zero when there is none.
func (s *shard) count(d digest, now int64) uint64 {
	if c := s.live(d, now); c != nil {
		return c.count
	}
	return 0
}

// add counts one hit and returns the count after it.
func (s *shard) add(d digest, h *counter.Hit, now int64) uint64 {
	c := s.live(d, now)
	if c == nil {
		if h.Addend <= 0 {
			return 0
		}
		c = s.create(d, now)
		c.expires = expiry(now, h.TTL)
		s.push(s.index[d])
	}
	c.count = sum(c.count, h.Addend)
	return c.count
}

// live returns the counter in force, if there is one. An expired one loses its place in the index; its cell is
// reclaimed in its turn.
func (s *shard) live(d digest, now int64) *cell {
	i, ok := s.index[d]
	if !ok {
		return nil
	}
	if c := &s.cells[i]; now < c.expires {
		return c
	}
	delete(s.index, d)
	return nil
}

// create returns a cell for a new counter, after taking out expired ones and, when the shard is full, the one that
// expires soonest.
func (s *shard) create(d digest, now int64) *cell {
	for range reclaimed {
		if len(s.heap) == 0 || now < s.cells[s.heap[0]].expires {
			break
		}
		s.pop()
	}
	if len(s.heap) >= s.limit {
		s.pop()
		s.evicted.Add(1)
	}
	var i int32
	if n := len(s.free); n > 0 {
		i, s.free = s.free[n-1], s.free[:n-1]
	} else {
		i = int32(len(s.cells)) // memory ends far below 2^31 in a shard
		s.cells = append(s.cells, cell{})
	}
	s.cells[i] = cell{key: d}
	s.index[d] = i
	return &s.cells[i]
}

// push puts a cell into the heap.
func (s *shard) push(i int32) {
	s.heap = append(s.heap, i)
	for at := len(s.heap) - 1; at > 0; {
		parent := (at - 1) / 2
		if !s.sooner(at, parent) {
			return
		}
		s.heap[at], s.heap[parent] = s.heap[parent], s.heap[at]
		at = parent
	}
}

// pop takes the cell out that expires soonest.
func (s *shard) pop() {
	i, last := s.heap[0], len(s.heap)-1
	s.heap[0] = s.heap[last]
	s.heap = s.heap[:last]
	for at := 0; ; {
		child := 2*at + 1
		if child >= last {
			break
		}
		if child+1 < last && s.sooner(child+1, child) {
			child++
		}
		if !s.sooner(child, at) {
			break
		}
		s.heap[at], s.heap[child] = s.heap[child], s.heap[at]
		at = child
	}
	// A counter that expired and was made anew stands in another cell.
	if s.index[s.cells[i].key] == i {
		delete(s.index, s.cells[i].key)
	}
	s.free = append(s.free, i)
}

func (s *shard) sooner(a, b int) bool {
	return s.cells[s.heap[a]].expires < s.cells[s.heap[b]].expires
}

// sum adds an addend to a count. It never goes below zero nor above the greatest signed number, where Valkey ends too.
func sum(count uint64, addend int64) uint64 {
	if addend >= 0 {
		return min(count+uint64(addend), math.MaxInt64)
	}
	back := uint64(-(addend + 1)) + 1 // the smallest number has no positive twin
	if back >= count {
		return 0
	}
	return count - back
}
