// Package recent keeps values in memory that were put there lately, within bounds. What a value is and
// how long it counts, its users know.
package recent

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// Memory keeps values by their keys. It has two generations, of which the old one is dropped as a whole
// when the young one is full or too old. Its zero value is ready to use. It is safe for concurrent use.
type Memory[K comparable, V any] struct {
	mu         sync.RWMutex
	young, old map[K]V
	size       int       // of the values in young
	since      time.Time // the beginning of the young generation
}

// Bounds limit a generation.
type Bounds struct {
	Size int           // of its values together
	Age  time.Duration // 0 for any
}

// Get returns the value of a key, if it is known.
func (m *Memory[K, V]) Get(key K) (V, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	value, ok := m.young[key]
	if !ok {
		value, ok = m.old[key]
	}
	return value, ok
}

// Values returns the values of both generations, in any order.
func (m *Memory[K, V]) Values() []V {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.AppendSeq(slices.Collect(maps.Values(m.young)), maps.Values(m.old))
}

// Put keeps a value that has a size and is of a time.
func (m *Memory[K, V]) Put(key K, value V, size int, at time.Time, b Bounds) {
	m.mu.Lock()
	defer m.mu.Unlock()
	age := at.Sub(m.since)
	if m.young == nil || m.size+size > b.Size || b.Age > 0 && (age < 0 || age > b.Age) {
		m.young, m.old, m.since, m.size = map[K]V{}, m.young, at, 0
	}
	m.young[key] = value
	m.size += size
}
