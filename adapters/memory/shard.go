package memory

import (
	"math"
	"sync"
	"time"

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
	state   uint64 // the count, and enforced
	expires int64  // nanoseconds since the epoch; from then on the counter is gone
}

// enforced is the bit of a cell's state that says that the counter is over its limit. Counts end below it.
const enforced = 1 << 63

func (c *cell) count() uint64 { return c.state &^ enforced }

// class holds the cells of counters whose windows are about as long. Each cell is in one of its heaps, which are ordered by
// expiry; that of a cell in use never changes.
type class struct {
	idle []int32 // within their limits when they were put there; those that are over meanwhile move when they are found
	over []int32 // over their limits when they were put there
}

func (c *class) size() int { return len(c.idle) + len(c.over) }

// classes is how many classes there are: up to a second, a minute, an hour, a day, a week, a month, and longer.
const classes = 7

func classOf(window time.Duration) int {
	const day = 24 * time.Hour
	for i, longest := range [classes - 1]time.Duration{time.Second, time.Minute, time.Hour, day, 7 * day, 31 * day} {
		if window <= longest {
			return i
		}
	}
	return classes - 1
}

// shard is a part of the counters under one lock. Its cells lie in a slab.
type shard struct {
	mu      sync.Mutex
	index   map[digest]int32 // to the cell in force
	cells   []cell
	free    []int32 // cells not in use
	classes [classes]class
	kept    int // cells in use
	turn    int // the class that is swept next besides that of a new counter
	limit   int
	evicted *evictions
	_       [64]byte // keeps the locks of neighbours off one cache line
}

// count returns a counter's count, zero when there is none.
func (s *shard) count(d digest, now int64) uint64 {
	if c := s.live(d, now); c != nil {
		return c.count()
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
		c = s.create(d, h, now)
	}
	n := sum(c.count(), h.Addend)
	if h.Addend == 0 {
		return n
	}
	c.state = n
	if n > h.Limit {
		c.state |= enforced
	}
	return n
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

// create returns a cell for a new counter, after taking out expired ones and, when the shard is full, a live one.
func (s *shard) create(d digest, h *counter.Hit, now int64) *cell {
	own := classOf(h.Window)
	for range reclaimed {
		if !s.removeExpired(own, now) {
			break
		}
	}
	s.removeExpired(s.turn, now)
	s.turn = (s.turn + 1) % classes
	if s.kept >= s.limit {
		s.makeRoom(own, now)
	}
	var i int32
	if n := len(s.free); n > 0 {
		i, s.free = s.free[n-1], s.free[:n-1]
	} else {
		i = int32(len(s.cells)) // memory ends far below 2^31 in a shard
		s.cells = append(s.cells, cell{})
	}
	s.cells[i] = cell{key: d, expires: expiry(now, h)}
	s.index[d] = i
	s.kept++
	s.push(&s.classes[own].idle, i)
	return &s.cells[i]
}

// removeExpired removes the counter of a class that expired first, and reports whether there was one.
func (s *shard) removeExpired(from int, now int64) bool {
	c := &s.classes[from]
	for _, heap := range [...]*[]int32{&c.idle, &c.over} {
		if len(*heap) > 0 && now >= s.cells[(*heap)[0]].expires {
			s.remove(s.pop(heap))
			return true
		}
	}
	return false
}

// makeRoom removes expired counters of any class or, where there are none, one live counter. The class of the new counter loses
// one if it has at least its share of the shard, and else the largest class does, so that nobody who brings many values of one
// unit takes the room of the others. Counters that are over their limits go only when there are no others.
func (s *shard) makeRoom(own int, now int64) {
	found := false
	for i := range s.classes {
		found = s.removeExpired(i, now) || found
	}
	if found {
		return
	}
	s.evicted.note(now)
	first := s.largest(func(c *class) int { return c.size() })
	if s.classes[own].size()*s.used() >= s.kept {
		first = own
	}
	for from := first; from >= 0; from = s.largest(func(c *class) int { return len(c.idle) }) {
		if s.removeIdle(from) {
			return
		}
	}
	s.remove(s.pop(&s.classes[first].over)) // a shard without idle counters has counters that are over
}

// largest returns the class of the greatest size that is not 0; -1 where there is none.
func (s *shard) largest(size func(*class) int) int {
	found, most := -1, 0
	for i := range s.classes {
		if n := size(&s.classes[i]); n > most {
			found, most = i, n
		}
	}
	return found
}

// used returns how many classes have counters.
func (s *shard) used() int {
	n := 0
	for i := range s.classes {
		if s.classes[i].size() > 0 {
			n++
		}
	}
	return n
}

// removeIdle removes the counter of a class that expires soonest of those within their limits, and reports whether there was
// one. Counters that are found to be over their limits move to the other heap, each of them once.
func (s *shard) removeIdle(from int) bool {
	c := &s.classes[from]
	for len(c.idle) > 0 {
		i := s.pop(&c.idle)
		if s.cells[i].state&enforced == 0 {
			s.remove(i)
			return true
		}
		s.push(&c.over, i)
	}
	return false
}

// remove takes a cell that is in no heap any more out of use.
func (s *shard) remove(i int32) {
	// A counter that expired and was made anew has another cell.
	if s.index[s.cells[i].key] == i {
		delete(s.index, s.cells[i].key)
	}
	s.free = append(s.free, i)
	s.kept--
}

// push puts a cell into a heap.
func (s *shard) push(heap *[]int32, i int32) {
	*heap = append(*heap, i)
	h := *heap
	for at := len(h) - 1; at > 0; {
		parent := (at - 1) / 2
		if s.cells[h[at]].expires >= s.cells[h[parent]].expires {
			return
		}
		h[at], h[parent] = h[parent], h[at]
		at = parent
	}
}

// pop takes the cell that expires soonest out of a heap.
func (s *shard) pop(heap *[]int32) int32 {
	h := *heap
	i, last := h[0], len(h)-1
	h[0] = h[last]
	h = h[:last]
	*heap = h
	for at := 0; ; {
		child := 2*at + 1
		if child >= last {
			return i
		}
		if child+1 < last && s.cells[h[child+1]].expires < s.cells[h[child]].expires {
			child++
		}
		if s.cells[h[child]].expires >= s.cells[h[at]].expires {
			return i
		}
		h[at], h[child] = h[child], h[at]
		at = child
	}
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
