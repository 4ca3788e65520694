package allowlist

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/core/registry"
)

// Output takes what a Compiler does not keep.
type Output struct {
	// Define takes the definition of a server in a list that has definitions. Those of one format
	// come in the order of the names of the servers.
	Define func(Format, Definition) error
	// Skip takes what a format cannot express. nil if no one wants it.
	Skip func(Format, Skipped)
}

// Compiler makes the lists of several formats in one pass over the records. It is not safe for
// concurrent use.
type Compiler struct {
	formats []Format
	output  Output
	listed  []keyed   // entries of listed servers
	removed []removal // entries of deleted versions
	names   []listedName
	dropped []string // names of deleted servers without a slash
	skipped map[Format]int
}

// keyed is an entry, for the formats that have it.
type keyed struct {
	key     string // of the entry
	formats formats
}

// removal is an entry of a deleted version.
type removal struct {
	keyed

	name    registry.Name
	version registry.Version
}

// listedName is a listed server. Its version is that of Output.Skip, and zero if no one wants that.
type listedName struct {
	name    registry.Name
	version registry.Version
}

// formats is a set of formats that have entries.
type formats uint8

func setOf(f Format) formats {
	switch f {
	case Claude:
		return 1
	case VSCode:
		return 2
	}
	return 0
}

// NewCompiler returns a compiler for lists of the given formats.
func NewCompiler(o Output, formats ...Format) *Compiler {
	return &Compiler{formats: formats, output: o, skipped: map[Format]int{}}
}

func (c *Compiler) has(f Format) bool { return slices.Contains(c.formats, f) }

// Allow adds the latest version of a server. It must be called in the order of the names. It
// returns the errors of Output.Define.
func (c *Compiler) Allow(r registry.Record) error {
	s, err := c.parse(r)
	if err != nil {
		return nil //nolint:nilerr // parse has skipped it
	}
	c.allowEntries(s)
	return c.define(s)
}

// Deny adds a version that was deleted. What it has in common with an allowed version stays
// allowed.
func (c *Compiler) Deny(r registry.Record) {
	s, err := c.parse(r)
	if err != nil {
		return
	}
	c.denyEntries(s)
	if name := configName(s.release.Name); c.has(Gemini) &&
		(len(c.dropped) == 0 || c.dropped[len(c.dropped)-1] != name) {
		c.dropped = append(c.dropped, name)
	}
}

func (c *Compiler) parse(r registry.Record) (server, error) {
	s, err := parseServer(r)
	if err != nil {
		for _, f := range c.formats {
			c.skip(f, r.Release.Name, r.Release.Version, "its document cannot be read: "+err.Error())
		}
	}
	return s, err
}

func (c *Compiler) skip(f Format, n registry.Name, v registry.Version, reasons ...string) {
	for _, reason := range reasons {
		c.skipped[f]++
		if c.output.Skip != nil {
			c.output.Skip(f, Skipped{n, v, reason})
		}
	}
}

// Compile returns the lists of what was added. The compiler must not be used afterwards.
func (c *Compiler) Compile() *Lists {
	slices.SortFunc(c.listed, func(a, b keyed) int { return strings.Compare(a.key, b.key) })
	slices.SortFunc(c.removed, func(a, b removal) int {
		return cmp.Or(strings.Compare(a.key, b.key), strings.Compare(a.name.String(), b.name.String()),
			strings.Compare(a.version.String(), b.version.String()))
	})
	slices.SortFunc(c.names, func(a, b listedName) int { return compareConfigNames(a.name.String(), b.name.String()) })
	l := &Lists{allowed: mergeEqual(c.listed), shared: c.sharedNames(), skipped: c.skipped}
	l.denied = c.denied(l.allowed)
	if c.has(Gemini) {
		slices.Sort(c.dropped)
		l.Excluded = slices.DeleteFunc(slices.Compact(c.dropped), func(name string) bool {
			_, listed := slices.BinarySearchFunc(c.names, name, func(n listedName, name string) int {
				return compareConfigNames(n.name.String(), name)
			})
			return listed
		})
	}
	return l
}

// Lists are compiled lists. Definitions are not in them: see Output.
type Lists struct {
	Excluded        []string // names of deleted servers, in order; of Gemini only
	allowed, denied []keyed
	shared          map[string]bool
	skipped         map[Format]int
}

// Allowed returns the allowed entries of a format, in order and each once.
func (l *Lists) Allowed(f Format) iter.Seq[Entry] { return entriesOf(l.allowed, f) }

// Denied returns the denied entries of a format, in order and each once.
func (l *Lists) Denied(f Format) iter.Seq[Entry] { return entriesOf(l.denied, f) }

// ForgetEntries releases the memory of the allowed and denied entries.
func (l *Lists) ForgetEntries() { l.allowed, l.denied = nil, nil }

// Shared reports whether several servers have a name without a slash. Their definitions are not in
// a list: a client could take one for the other.
func (l *Lists) Shared(name string) bool { return l.shared[name] }

// Skipped returns how much a format cannot express.
func (l *Lists) Skipped(f Format) int { return l.skipped[f] }

func entriesOf(all []keyed, f Format) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for i := range all {
			if all[i].formats&setOf(f) != 0 && !yield(parseKey(all[i].key)) {
				return
			}
		}
	}
}

// mergeEqual makes one entry of equal ones that follow each other.
func mergeEqual(all []keyed) []keyed {
	merged := all[:0]
	for _, e := range all {
		if last := len(merged) - 1; last >= 0 && merged[last].key == e.key {
			merged[last].formats |= e.formats
			continue
		}
		merged = append(merged, e)
	}
	return merged
}
