package ruleset

import (
	"cmp"
	"strings"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

// Options are the settings of Compile.
type Options struct {
	// MergeDomains allows several sources to name one domain, whose descriptors then form one list
	// (contract L-11).
	MergeDomains bool
	// MergeName is the name of MergeDomains in errors.
	MergeName string
	// QuotaMode puts every rule in quota mode.
	QuotaMode bool
	// Previous is the set in force so far, or nil. A rule with the same domain and path as a rule
	// of Previous keeps its statistics.
	Previous *Set
}

// Compile validates the sources and compiles them. Its error is Faults, with all mistakes and not
// only the first (contract L-34). An empty list of sources is a valid configuration, in which every
// domain is unknown.
func Compile(sources []Source, o Options) (*Set, error) {
	c := compiler{
		options:  o,
		set:      &Set{domains: make(map[ratelimit.Domain]*node, len(sources))},
		declared: make(map[ratelimit.Domain]Position, len(sources)),
		hits:     map[seriesKey]*ratelimit.Hits{},
		roots:    map[ratelimit.Domain]nameCounts{},
	}
	c.inheritHits()
	for i := range sources {
		c.rootNames(ratelimit.Domain(sources[i].Domain.Value)).countNames(sources[i].Descriptors)
	}
	for i := range sources {
		c.compileSource(&sources[i])
	}
	if len(c.faults) > 0 {
		return nil, c.faults.sortedByPosition()
	}
	return c.set, nil
}

// compiler is the state of one call of Compile.
type compiler struct {
	options  Options
	set      *Set
	declared map[ratelimit.Domain]Position   // where each domain was named first
	hits     map[seriesKey]*ratelimit.Hits   // the statistics of rules, at first those of Previous
	roots    map[ratelimit.Domain]nameCounts // the first level of each domain, from all its sources
	faults   Faults
}

// nameCounts counts the descriptors of one level by their name in statistics.
type nameCounts map[string]int

func (n nameCounts) countNames(list []Descriptor) {
	for i := range list {
		n[list[i].statName()]++
	}
}

func (c *compiler) rootNames(d ratelimit.Domain) nameCounts {
	if c.roots[d] == nil {
		c.roots[d] = nameCounts{}
	}
	return c.roots[d]
}

// seriesKey identifies the statistics of a rule.
type seriesKey struct {
	domain ratelimit.Domain
	path   string
}

// levelPath is the path of levels from the domain to a descriptor. Each slice has one element for
// each level.
type levelPath struct {
	domain  ratelimit.Domain
	path    string   // the levels, joined by dots
	levels  []string // names in statistics; the last is a part of path
	written []string // as the configuration has them
	shared  []string // the pattern of share_threshold; empty without
	open    []bool   // the level matches several values, each with a counter of its own
	valued  []bool   // the level is open and has value_to_metric
}

// inheritHits takes over the statistics of the previous set.
func (c *compiler) inheritHits() {
	if c.options.Previous == nil {
		return
	}
	for r := range c.options.Previous.Rules() {
		c.hits[seriesKey{r.Domain, r.Path}] = r.Hits
	}
}

func (c *compiler) addFault(at Position, rule string) {
	c.faults = append(c.faults, Fault{At: at, Rule: rule})
}

// compileSource adds the rules of a source to the set.
func (c *compiler) compileSource(s *Source) {
	c.faults = append(c.faults, s.Faults...)
	domain := ratelimit.Domain(s.Domain.Value)
	switch first, twice := c.declared[domain]; {
	case domain == "" && s.Unread: // s.Faults has the reason
	case domain == "":
		c.addFault(cmp.Or(s.Domain.At, s.At), "domain must not be empty")
	case twice && !c.options.MergeDomains:
		c.addFault(s.Domain.At, "domain "+quote(s.Domain.Value)+" is in "+first.File+
			" already, and "+c.options.MergeName+" is not true")
	case !twice:
		c.declared[domain] = s.Domain.At
	}
	root := c.set.domains[domain]
	if root == nil {
		root = &node{}
		c.set.domains[domain] = root
	}
	c.compileChildren(root, s.Descriptors, levelPath{domain: domain}, c.rootNames(domain))
}

// compileChildren compiles the descriptors below a node. above is the path to that node; taken
// counts the names of the descriptors.
func (c *compiler) compileChildren(parent *node, list []Descriptor, above levelPath, taken nameCounts) {
	for i := range list {
		d := &list[i]
		c.compileDescriptor(parent, d, above.appendLevel(d, taken))
	}
}

func (c *compiler) compileDescriptor(parent *node, d *Descriptor, t levelPath) {
	n := c.newNode(d, t)
	if d.ShareThreshold && !strings.Contains(d.Value.Value, "*") {
		c.addFault(d.At, "share_threshold needs a value with a * in it")
	}
	if d.Key.Value == "" {
		c.addFault(d.At, "key must not be empty")
	} else if !parent.addChild(d, n) {
		c.addFault(d.At, "duplicate descriptor "+quote(d.keyAndValue()))
	}
	below := nameCounts{}
	below.countNames(d.Descriptors)
	c.compileChildren(n, d.Descriptors, t, below)
}

// addChild makes child the node of the descriptor. It returns false when there is an equal
// descriptor already.
func (n *node) addChild(d *Descriptor, child *node) bool {
	if n.keys == nil {
		n.keys = map[string]*level{}
	}
	l := n.keys[d.Key.Value]
	if l == nil {
		l = &level{}
		n.keys[d.Key.Value] = l
	}
	switch value := child.written.Value; {
	case value == "":
		if l.keyOnly != nil {
			return false
		}
		l.keyOnly = child
		return true
	case strings.Contains(value, "*"):
		if l.wild == nil {
			l.wild = newWildcards()
		}
		return l.wild.addPattern(value, child)
	default:
		if l.exact[value] != nil {
			return false
		}
		if l.exact == nil {
			l.exact = map[string]*node{}
		}
		l.exact[value] = child
		return true
	}
}

// appendLevel returns the path t extended by the level of a descriptor. The level is named by the
// statName of the descriptor. With share_threshold, it is named by the key and the whole pattern
// instead if another descriptor of the level has the same statName, so that their statistics have
// different names.
func (t levelPath) appendLevel(d *Descriptor, taken nameCounts) levelPath {
	name, shared := d.statName(), ""
	if d.ShareThreshold {
		shared = d.Value.Value
		if taken[name] > 1 {
			name = d.keyAndValue()
		}
	}
	n := len(t.levels)
	if n == 0 {
		t.path = name
	} else {
		t.path = t.path + "." + name
	}
	names := make([]string, 2*n+2) // one array for both lists
	copy(names, t.levels)
	copy(names[n+1:], t.written)
	t.levels, t.written = names[:n+1:n+1], names[n+1:]
	t.levels[n], t.written[n] = t.path[len(t.path)-len(name):], d.pathElement()
	t.shared = append(t.shared[:n:n], shared)
	open := shared == "" && (d.Value.Value == "" || strings.Contains(d.Value.Value, "*"))
	t.open = append(t.open[:n:n], open)
	t.valued = append(t.valued[:n:n], open && d.ValueToMetric)
	return t
}

// statName returns the name of the descriptor in statistics: key_value, or the key alone. With
// share_threshold, the value in it is the part of the pattern before the first *.
func (d *Descriptor) statName() string {
	if !d.ShareThreshold {
		return d.keyAndValue()
	}
	before, _, _ := strings.Cut(d.Value.Value, "*")
	return d.Key.Value + "_" + before
}

// keyAndValue returns key_value, or the key alone.
func (d *Descriptor) keyAndValue() string {
	if d.Value.Value == "" {
		return d.Key.Value
	}
	return d.Key.Value + "_" + d.Value.Value
}

// pathElement returns the level as it is written: key=value, or the key alone.
func (d *Descriptor) pathElement() string {
	if d.Value.Value == "" {
		return d.Key.Value
	}
	return d.Key.Value + "=" + d.Value.Value
}

func quote(s string) string { return "\"" + s + "\"" }
