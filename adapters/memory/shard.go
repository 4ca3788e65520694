package memory

import (
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/ports/counter"
)

// reclaimPerInsert is the maximum number of expired counters that are removed when one is created.
// It is more than one, so that the number of expired counters falls, and small, so that no call is
// slow at the end of a window.
const reclaimPerInsert = 2

// digest is the hash of a key.
type digest struct{ lo, hi uint64 }

// cell is one counter.
type cell struct {
	key   digest
	state uint64 // the count and overLimitBit; for a token bucket the time at which it is full
	// of a sliding window, the earlier count and the number of the window, 32 bits each; of a
	// bucket its mark
	more    uint64
	expires int64 // nanoseconds since the epoch
}

// overLimitBit is set in the state of a cell that is over its limit. Counts are smaller.
const overLimitBit = 1 << 63

func (c *cell) countOf() uint64 { return c.state &^ overLimitBit }

// windowClass contains the cells of counters with windows of about the same length. Each cell is in
// one of two heaps, which are ordered by expiry. The expiry of a cell in use never changes.
type windowClass struct {
	withinLimit []int32 // within their limits when added; cells that are over by now move when they are found
	overLimit   []int32 // over their limits when added
}

func (c *windowClass) cellCount() int { return len(c.withinLimit) + len(c.overLimit) }

// classes is the number of classes: up to a second, a minute, an hour, a day, a week, a month, and
// longer.
const classes = 7

func findClass(window time.Duration) int {
	const day = 24 * time.Hour
	for i, longest := range [classes - 1]time.Duration{time.Second, time.Minute, time.Hour, day, 7 * day, 31 * day} {
		if window <= longest {
			return i
		}
	}
	return classes - 1
}

// shard is a part of the counters, protected by one lock. Its cells are elements of one slice.
type shard struct {
	mu        sync.Mutex
	index     map[digest]int32 // position of the current cell of a key
	cells     []cell
	freeCells []int32 // cells not in use
	classes   [classes]windowClass
	usedCells int // cells in use
	nextClass int // the class from which the next insert also removes an expired counter
	limit     int
	evicted   *evictions
	_         [64]byte // keeps the locks of two shards in different cache lines
}

// readCount returns the count of a counter, or zero if it does not exist.
func (s *shard) readCount(d digest, now int64) uint64 {
	if c := s.findLiveCell(d, now); c != nil {
		return c.countOf()
	}
	return 0
}

// addHit counts a hit and returns the new count.
func (s *shard) addHit(d digest, h *counter.Hit, now int64) uint64 {
	c := s.findLiveCell(d, now)
	if c == nil {
		if h.Addend <= 0 {
			return 0
		}
		c = s.createCell(d, h, now, expiryTime(now, h))
	}
	n := counter.AddTo(c.countOf(), h.Addend)
	if h.Addend == 0 {
		return n
	}
	c.state = n
	if n > h.Limit {
		c.state |= overLimitBit
	}
	return n
}

// findLiveCell returns the cell of a counter, or nil. It removes an expired counter from the index;
// its cell is reclaimed later.
func (s *shard) findLiveCell(d digest, now int64) *cell {
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

// createCell returns a cell for a new counter, or in place of another one of its key. It first
// removes expired counters and, if the shard is full, a live one.
func (s *shard) createCell(d digest, h *counter.Hit, now, expires int64) *cell {
	own := findClass(h.Window)
	for range reclaimPerInsert {
		if !s.removeExpired(own, now) {
			break
		}
	}
	s.removeExpired(s.nextClass, now)
	s.nextClass = (s.nextClass + 1) % classes
	if s.usedCells >= s.limit {
		s.makeRoom(own, now)
	}
	var i int32
	if n := len(s.freeCells); n > 0 {
		i, s.freeCells = s.freeCells[n-1], s.freeCells[:n-1]
	} else {
		i = int32(len(s.cells)) // a shard never has 2^31 cells
		s.cells = append(s.cells, cell{})
	}
	s.cells[i] = cell{key: d, expires: expires}
	s.index[d] = i
	s.usedCells++
	s.pushCell(&s.classes[own].withinLimit, i)
	return &s.cells[i]
}

// removeExpired removes the counter of a class that expired first, and reports whether there was
// one.
func (s *shard) removeExpired(from int, now int64) bool {
	c := &s.classes[from]
	for _, heap := range [...]*[]int32{&c.withinLimit, &c.overLimit} {
		if len(*heap) > 0 && now >= s.cells[(*heap)[0]].expires {
			s.releaseCell(s.popCell(heap))
			return true
		}
	}
	return false
}

// makeRoom removes expired counters of all classes or, if there are none, one live counter. It
// takes the counter from the class of the new counter if that class has at least its share of the
// shard, otherwise from the largest class. So a client with many values of one unit does not
// displace the counters of other units. Counters over their limits are removed only if there are no
// others.
func (s *shard) makeRoom(own int, now int64) {
	found := false
	for i := range s.classes {
		found = s.removeExpired(i, now) || found
	}
	if found {
		return
	}
	s.evicted.recordEviction(now)
	first := s.findLargestClass(func(c *windowClass) int { return c.cellCount() })
	if s.classes[own].cellCount()*s.countUsedClasses() >= s.usedCells {
		first = own
	}
	for from := first; from >= 0; from = s.findLargestClass(func(c *windowClass) int { return len(c.withinLimit) }) {
		if s.removeWithinLimit(from) {
			return
		}
	}
	s.releaseCell(s.popCell(&s.classes[first].overLimit)) // not empty, because the shard has no other counters
}

// findLargestClass returns the class with the greatest size, or -1 if all sizes are 0.
func (s *shard) findLargestClass(size func(*windowClass) int) int {
	found, most := -1, 0
	for i := range s.classes {
		if n := size(&s.classes[i]); n > most {
			found, most = i, n
		}
	}
	return found
}

// countUsedClasses returns the number of classes that have counters.
func (s *shard) countUsedClasses() int {
	n := 0
	for i := range s.classes {
		if s.classes[i].cellCount() > 0 {
			n++
		}
	}
	return n
}

// removeWithinLimit removes the counter of a class that expires first among those within their
// limits, and reports whether there was one. Counters that are over their limits by now move to the
// other heap.
func (s *shard) removeWithinLimit(from int) bool {
	c := &s.classes[from]
	for len(c.withinLimit) > 0 {
		i := s.popCell(&c.withinLimit)
		if s.cells[i].state&overLimitBit == 0 {
			s.releaseCell(i)
			return true
		}
		s.pushCell(&c.overLimit, i)
	}
	return false
}

// releaseCell frees a cell that is in no heap any more.
func (s *shard) releaseCell(i int32) {
	// If the counter expired and was created again, the index contains its new cell.
	if s.index[s.cells[i].key] == i {
		delete(s.index, s.cells[i].key)
	}
	s.freeCells = append(s.freeCells, i)
	s.usedCells--
}

// pushCell adds a cell to a heap.
func (s *shard) pushCell(heap *[]int32, i int32) {
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

// popCell removes the cell that expires first from a heap and returns it.
func (s *shard) popCell(heap *[]int32) int32 {
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
