package registryrecords

import (
	"context"
	"database/sql"
	"encoding/json"
	"math/bits"
	"slices"
	"sort"
	"strings"
	"sync/atomic"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// nameIndex finds the names of servers that contain a text, in order. It is in memory, and it never
// changes: with returns another index. The zero value has no names.
//
// Its blocks have consecutive names. A search looks only at blocks whose names have all parts of
// the text, and stops at the end of the page. So it takes about as long for a text that most names
// contain as for one that few contain.
type nameIndex struct {
	groups []*nameGroup
	last   int64 // the greatest id of its servers
}

// The sizes of blocks and groups.
const (
	maxBlocks     = 64         // blocks of a group, one for each bit of a word
	newBlockNames = 32         // names of a new block
	maxBlockNames = 64         // names of a block after others were added to it
	allParts      = 1 << 13    // numbers of parts; the names of a block have about 800 parts
	maxPart       = 3          // bytes of a part
	partSpread    = 0x9e3779b1 // spreads the numbers of parts
	partShift     = 32 - 13    // leaves the 13 bits of a number below allParts
)

// nameGroup has consecutive blocks.
type nameGroup struct {
	blocks []nameBlock
	parts  [allParts]uint64 // by part, a bit for each block that has a name with this part
}

// nameBlock has consecutive names, each with endOfName after it, and the same in lower case.
type nameBlock struct{ names, lower string }

// endOfName is after each name of a block. No name contains it.
const endOfName = "\n"

// with returns an index that has more names, in any order. last is the greatest id of their
// servers.
func (x *nameIndex) with(names []string, last int64) *nameIndex {
	slices.Sort(names)
	if len(x.groups) == 0 {
		return &nameIndex{newGroups(names), last}
	}
	next := &nameIndex{last: last}
	for i, g := range x.groups {
		n := len(names) // those of this group
		if i+1 < len(x.groups) {
			n, _ = slices.BinarySearch(names, x.groups[i+1].first())
		}
		next.groups = append(next.groups, g.with(names[:n])...)
		names = names[n:]
	}
	return next
}

// newGroups returns groups with sorted names.
func newGroups(names []string) []*nameGroup {
	const most = maxBlocks * newBlockNames
	groups := make([]*nameGroup, 0, len(names)/most+1)
	for all := range slices.Chunk(names, most) {
		g := new(nameGroup)
		for part := range slices.Chunk(all, newBlockNames) {
			g.blocks = append(g.blocks, nameBlock{})
			g.setBlock(len(g.blocks)-1, part)
		}
		groups = append(groups, g)
	}
	return groups
}

// setBlock stores names in a block, which had no other names before.
func (g *nameGroup) setBlock(i int, names []string) {
	b := nameBlock{names: strings.Join(names, endOfName) + endOfName}
	b.lower = lowerASCII(b.names)
	for part := range nameParts(b.lower, 1, maxPart) {
		g.parts[part] |= 1 << i
	}
	g.blocks[i] = b
}

// with returns groups with the names of the group and more sorted names: one group, or others if a
// block becomes too large.
func (g *nameGroup) with(names []string) []*nameGroup {
	if len(names) == 0 {
		return []*nameGroup{g}
	}
	next := &nameGroup{slices.Clone(g.blocks), g.parts}
	for _, name := range names {
		i := max(0, sort.Search(len(next.blocks), func(i int) bool { return next.blocks[i].first() > name })-1)
		all := append(next.blocks[i].all(), name)
		if len(all) > maxBlockNames {
			return newGroups(g.merge(names))
		}
		slices.Sort(all)
		next.setBlock(i, all)
	}
	return []*nameGroup{next}
}

// merge returns the names of the group and others, sorted.
func (g *nameGroup) merge(names []string) []string {
	all := slices.Clone(names)
	for _, b := range g.blocks {
		all = append(all, b.all()...)
	}
	slices.Sort(all)
	return all
}

func (b nameBlock) all() []string {
	return strings.Split(strings.TrimSuffix(b.names, endOfName), endOfName)
}

func (b nameBlock) first() string {
	name, _, _ := strings.Cut(b.names, endOfName)
	return name
}

func (g *nameGroup) first() string { return g.blocks[0].first() }

// nameParts yields the number of each part of a text that has from least to most bytes. Different
// parts may have the same number.
func nameParts(text string, least, most int) func(yield func(part uint32) bool) {
	return func(yield func(part uint32) bool) {
		for i := range len(text) {
			value := uint32(0)
			for size := 1; size <= most && i+size <= len(text); size++ {
				value = value<<8 | uint32(text[i+size-1])
				if size >= least && !yield(value*partSpread>>partShift) {
					return
				}
			}
		}
	}
}

// findInRanges returns the first names that contain the text of a search and are in its ranges of
// names, if it has any. It returns at most limit names.
func (x *nameIndex) findInRanges(q registrystore.Query, limit int) (found []string) {
	if q.Names == nil {
		return x.find(q.Search, registry.NameRange{From: q.AfterName, Below: registry.AllNames().Below}, limit)
	}
	for _, r := range rangesAfter(q) {
		if len(found) == limit {
			break
		}
		r.From = max(r.From, q.AfterName)
		found = append(found, x.find(q.Search, r, limit-len(found))...)
	}
	return found
}

// find returns the first names in a range that contain a text, in upper or lower case. It returns
// at most limit names.
func (x *nameIndex) find(text string, within registry.NameRange, limit int) (found []string) {
	if strings.Contains(text, endOfName) {
		return nil
	}
	text = lowerASCII(text)
	size := min(len(text), maxPart)
	parts := slices.Collect(nameParts(text, size, size))
	after := sort.Search(len(x.groups), func(i int) bool { return x.groups[i].first() > within.From })
	for _, g := range x.groups[max(0, after-1):] {
		if len(found) == limit || g.first() >= within.Below {
			break
		}
		for with := g.blocksWith(parts); with != 0 && len(found) < limit; with &= with - 1 {
			found = g.blocks[bits.TrailingZeros64(with)].find(found, text, within, limit)
		}
	}
	return found
}

// blocksWith returns a bit for each block whose names have all these parts, and for some others.
func (g *nameGroup) blocksWith(parts []uint32) uint64 {
	with := ^uint64(0)
	for _, part := range parts {
		if with &= g.parts[part]; with == 0 {
			break
		}
	}
	return with
}

// find appends the names of the block in a range that contain a text to found, up to limit names.
func (b nameBlock) find(found []string, text string, within registry.NameRange, limit int) []string {
	for from := 0; len(found) < limit; {
		at := strings.Index(b.lower[from:], text)
		if at < 0 {
			break
		}
		begin := strings.LastIndex(b.lower[:from+at], endOfName) + 1
		end := from + at + strings.Index(b.lower[from+at:], endOfName)
		if name := b.names[begin:end]; within.Contains(name) {
			found = append(found, name)
		}
		from = end
	}
	return found
}

// lowerASCII returns the text with its ASCII letters in lower case. The number of bytes is the
// same.
func lowerASCII(text string) string {
	lower := []byte(text)
	for i, c := range lower {
		if 'A' <= c && c <= 'Z' {
			lower[i] = c + 'a' - 'A'
		}
	}
	return string(lower)
}

// nameCache has the index of the names that were read from the database.
type nameCache struct {
	index   *atomic.Pointer[nameIndex]
	loading chan struct{} // has a value while a caller reads all names
}

func newNameCache() nameCache {
	c := nameCache{index: new(atomic.Pointer[nameIndex]), loading: make(chan struct{}, 1)}
	c.index.Store(new(nameIndex))
	return c
}

// pageFromMemory returns the page of the versions of the first names that contain the text, which
// it finds in memory (docs/adr/0015-what-makes-reads-fast.md). It returns false if these
// names, at most limit of them, do not fill the page and there are more.
func (s *Servers) pageFromMemory(
	ctx context.Context, q registrystore.Query, limit int,
) (registrystore.Page, bool, error) {
	index, err := s.currentNames(ctx)
	if err != nil {
		return registrystore.Page{}, false, err
	}
	names := index.findInRanges(q, limit+1)
	if len(names) == 0 {
		return registrystore.Page{}, true, nil
	}
	list, err := json.Marshal(names[:min(limit, len(names))])
	if err != nil {
		return registrystore.Page{}, false, err
	}
	p, err := s.pageOfNames(ctx, q, condition{s.sql.namesOf, []any{string(list)}})
	return p, p.More || len(names) <= limit, err
}

// currentNames returns an index that has the names of all servers. Servers are never removed and
// their ids grow, so it reads only the names that were stored since the last search. It does not
// keep names that a transaction may roll back.
func (s *Servers) currentNames(ctx context.Context) (*nameIndex, error) {
	if _, ok := s.db.Transaction(ctx); ok {
		return s.readNames(ctx, s.names.index.Load())
	}
	known := s.names.index.Load()
	if known.last == 0 {
		select {
		case s.names.loading <- struct{}{}:
			defer func() { <-s.names.loading }()
			known = s.names.index.Load()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	current, err := s.readNames(ctx, known)
	if err == nil && current != known {
		s.names.index.CompareAndSwap(known, current) // or another caller has stored as many names
	}
	return current, err
}

// namesPerQuery is how many names one query reads at most.
const namesPerQuery = 10_000

// readNames returns an index with the names that known does not have yet.
func (s *Servers) readNames(ctx context.Context, known *nameIndex) (*nameIndex, error) {
	var added []string
	last, count := known.last, namesPerQuery
	for count == namesPerQuery {
		find := database.Query{Text: s.sql.newNames, Args: []any{last, namesPerQuery}, Fixed: true}
		var greatest sql.NullInt64
		var names sql.NullString
		if err := s.db.ScanRow(ctx, find, &greatest, &count, &names); err != nil {
			return nil, err
		}
		if count > 0 {
			last = greatest.Int64
			added = append(added, strings.Split(names.String, endOfName)...)
		}
	}
	if len(added) == 0 {
		return known, nil
	}
	return known.with(added, last), nil
}
