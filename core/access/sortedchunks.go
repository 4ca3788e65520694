package access

import (
	"iter"
	"slices"
	"sort"
	"strings"
)

// ordered has values by keys, in the order of the bytes of the keys. It never changes: what it is after
// changes is another one, which shares all chunks that they do not touch. The zero value is empty.
type ordered[V any] struct{ chunks [][]entry[V] }

// entry is a value with its key. In a list of changes, gone removes the key.
type entry[V any] struct {
	key   string
	value V
	gone  bool
}

// chunkSize is how many entries a chunk has that is made new, and maxChunk how many it has at most. A
// change of one entry copies a chunk, and a reference to each other one.
const (
	chunkSize = 128
	maxChunk  = 2 * chunkSize
)

// with returns the list after changes, which are ordered by keys and have each once.
func (o ordered[V]) with(changes []entry[V]) ordered[V] {
	if len(changes) == 0 {
		return o
	}
	rest, next := o.chunks, make([][]entry[V], 0, len(o.chunks)+1)
	for len(changes) > 0 {
		i := min(chunkOf(rest, changes[0].key), max(len(rest)-1, 0))
		next, rest = append(next, rest[:i]...), rest[i:]
		var before []entry[V]
		n := len(changes)
		if len(rest) > 0 {
			before, rest = rest[0], rest[1:]
		}
		if len(rest) > 0 { // otherwise the last chunk takes all that is left
			last := before[len(before)-1].key
			n = sort.Search(len(changes), func(i int) bool { return changes[i].key > last })
		}
		next, changes = appendChunks(next, merge(before, changes[:n])), changes[n:]
	}
	return ordered[V]{append(next, rest...)}
}

// chunkOf returns the first chunk whose last key is not before a key.
func chunkOf[V any](chunks [][]entry[V], key string) int {
	return sort.Search(len(chunks), func(i int) bool { return chunks[i][len(chunks[i])-1].key >= key })
}

// appendChunks appends entries as chunks of about one size. Each has its own memory, which ends with it.
func appendChunks[V any](chunks [][]entry[V], all []entry[V]) [][]entry[V] {
	if len(all) <= maxChunk {
		if len(all) > 0 {
			chunks = append(chunks, all)
		}
		return chunks
	}
	parts := (len(all) + chunkSize - 1) / chunkSize
	for part := range slices.Chunk(all, (len(all)+parts-1)/parts) {
		chunks = append(chunks, slices.Clone(part))
	}
	return chunks
}

// merge returns the entries of a chunk after changes.
func merge[V any](before, changes []entry[V]) []entry[V] {
	all := make([]entry[V], 0, len(before)+len(changes))
	for _, c := range changes {
		n, found := slices.BinarySearchFunc(before, c.key, compareKey)
		all, before = append(all, before[:n]...), before[n:]
		if found {
			before = before[1:]
		}
		if !c.gone {
			all = append(all, c)
		}
	}
	return append(all, before...)
}

func compareKey[V any](e entry[V], key string) int { return strings.Compare(e.key, key) }

func (o ordered[V]) get(key string) (value V, found bool) {
	if i := chunkOf(o.chunks, key); i < len(o.chunks) {
		if at, ok := slices.BinarySearchFunc(o.chunks[i], key, compareKey); ok {
			return o.chunks[i][at].value, true
		}
	}
	return value, false
}

// floor returns the last entry whose key is not after a key; nil without one.
func (o ordered[V]) floor(key string) *entry[V] {
	i := min(chunkOf(o.chunks, key), len(o.chunks)-1)
	for ; i >= 0; i-- {
		at, found := slices.BinarySearchFunc(o.chunks[i], key, compareKey)
		switch {
		case found:
			return &o.chunks[i][at]
		case at > 0:
			return &o.chunks[i][at-1]
		}
	}
	return nil
}

// from returns the entries whose keys are not before a key, in order.
func (o ordered[V]) from(key string) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for i := chunkOf(o.chunks, key); i < len(o.chunks); i++ {
			at, _ := slices.BinarySearchFunc(o.chunks[i], key, compareKey)
			for _, e := range o.chunks[i][at:] {
				if !yield(e.key, e.value) {
					return
				}
			}
		}
	}
}

// has reports whether a key begins with a text.
func (o ordered[V]) has(prefix string) bool {
	for key := range o.from(prefix) {
		return strings.HasPrefix(key, prefix)
	}
	return false
}
