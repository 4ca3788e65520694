package ruleset

import (
	"cmp"
	"strings"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

// Options change what a configuration may hold.
type Options struct {
	// MergeDomains allows several sources to name one domain, whose descriptors then form one list
	// (contract L-11).
	MergeDomains bool
	// QuotaMode makes every rule one of quota mode.
	QuotaMode bool
	// Previous is the set that was in force before: rules whose path stays keep
	// their statistics. Nil for none.
	Previous *Set
}

// Compile checks the sources and compiles them. Its error is Faults, with everything that is wrong
// and not only the first (contract L-34). No source at all is a configuration, in which every
// domain is unknown.
func Compile(sources []Source, o Options) (*Set, error) {
	c := compiler{
		options:  o,
		set:      &Set{domains: make(map[ratelimit.Domain]*node, len(sources))},
		declared: make(map[ratelimit.Domain]Position, len(sources)),
		hits:     map[series]*ratelimit.Hits{},
		roots:    map[ratelimit.Domain]names{},
	}
	c.inherit()
	for i := range sources {
		c.rootNames(ratelimit.Domain(sources[i].Domain.Value)).add(sources[i].Descriptors)
	}
	for i := range sources {
		c.source(&sources[i])
	}
	if len(c.faults) > 0 {
		return nil, c.faults.sorted()
	}
	return c.set, nil
}

type compiler struct {
	options  Options
	set      *Set
	declared map[ratelimit.Domain]Position
	hits     map[series]*ratelimit.Hits
	roots    map[ratelimit.Domain]names // of the first level, which several sources may make up
	faults   Faults
}

// names counts how often each name in statistics is taken by the descriptors of one level.
type names map[string]int

func (n names) add(list []Descriptor) {
	for i := range list {
		n[list[i].statName()]++
	}
}

func (c *compiler) rootNames(d ratelimit.Domain) names {
	if c.roots[d] == nil {
		c.roots[d] = names{}
	}
	return c.roots[d]
}

// series is what statistics are kept by.
type series struct {
	domain ratelimit.Domain
	path   string
}

// trail is the way from the domain to a descriptor.
type trail struct {
	domain ratelimit.Domain
	levels []string
	shared []string
	open   []bool // the level takes several values, and they share nothing
	valued []bool // value_to_metric
}

func (c *compiler) inherit() {
	if c.options.Previous == nil {
		return
	}
	for r := range c.options.Previous.Rules() {
		c.hits[series{r.Domain, r.Path}] = r.Hits
	}
}

func (c *compiler) fault(at Position, rule string) {
	c.faults = append(c.faults, Fault{At: at, Rule: rule})
}

func (c *compiler) source(s *Source) {
	c.faults = append(c.faults, s.Faults...)
	domain := ratelimit.Domain(s.Domain.Value)
	switch first, twice := c.declared[domain]; {
	case domain == "" && s.Unread:
	case domain == "":
		c.fault(cmp.Or(s.Domain.At, s.At), "domain must not be empty")
	case twice && !c.options.MergeDomains:
		c.fault(s.Domain.At, "domain "+quote(s.Domain.Value)+" is in "+first.File+
			" already, and MERGE_DOMAIN_CONFIG is not true")
	case !twice:
		c.declared[domain] = s.Domain.At
	}
	root := c.set.domains[domain]
	if root == nil {
		root = &node{}
		c.set.domains[domain] = root
	}
	c.children(root, s.Descriptors, trail{domain: domain}, c.rootNames(domain))
}

// children compiles the descriptors below a node; taken are the names of that level.
func (c *compiler) children(parent *node, list []Descriptor, above trail, taken names) {
	for i := range list {
		d := &list[i]
		c.descriptor(parent, d, above.down(d, taken))
	}
}

func (c *compiler) descriptor(parent *node, d *Descriptor, t trail) {
	n := c.node(d, t)
	if d.ShareThreshold && !strings.Contains(d.Value.Value, "*") {
		c.fault(d.At, "share_threshold needs a value with a * in it")
	}
	if d.Key.Value == "" {
		c.fault(d.At, "key must not be empty")
	} else if !parent.add(d, n) {
		c.fault(d.At, "duplicate descriptor "+quote(d.composite()))
	}
	below := names{}
	below.add(d.Descriptors)
	c.children(n, d.Descriptors, t, below)
}

// add makes the descriptor's node a child; false when there is one already.
func (n *node) add(d *Descriptor, child *node) bool {
	if n.keys == nil {
		n.keys = map[string]*level{}
	}
	l := n.keys[d.Key.Value]
	if l == nil {
		l = &level{}
		n.keys[d.Key.Value] = l
	}
	switch value := d.Value.Value; {
	case value == "":
		if l.any != nil {
			return false
		}
		l.any = child
		return true
	case strings.Contains(value, "*"):
		if l.wild == nil {
			l.wild = newWildcards()
		}
		return l.wild.add(value, child)
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

// down returns the trail to a descriptor. It is named by its statName, unless another one of the level
// has that name too: then the whole pattern of share_threshold keeps their series apart.
func (t trail) down(d *Descriptor, taken names) trail {
	name, shared := d.statName(), ""
	if d.ShareThreshold {
		shared = d.Value.Value
		if taken[name] > 1 {
			name = d.composite()
		}
	}
	n := len(t.levels)
	t.levels = append(t.levels[:n:n], name)
	t.shared = append(t.shared[:n:n], shared)
	open := shared == "" && (d.Value.Value == "" || strings.Contains(d.Value.Value, "*"))
	t.open = append(t.open[:n:n], open)
	t.valued = append(t.valued[:n:n], open && d.ValueToMetric)
	return t
}

// statName returns the descriptor's name in statistics: with share_threshold, the part of the pattern
// before its first * is the value.
func (d *Descriptor) statName() string {
	if !d.ShareThreshold {
		return d.composite()
	}
	before, _, _ := strings.Cut(d.Value.Value, "*")
	return d.Key.Value + "_" + before
}

// composite returns key_value, or the key alone.
func (d *Descriptor) composite() string {
	if d.Value.Value == "" {
		return d.Key.Value
	}
	return d.Key.Value + "_" + d.Value.Value
}

func quote(s string) string { return "\"" + s + "\"" }
