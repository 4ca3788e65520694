package ruleset

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

// leaf is a node with its rule: a call that lands there fetches both at once from
// memory.
type leaf struct {
	node node
	rule ratelimit.Rule
}

// node returns the descriptor's node, with a rule if it has a limit.
func (c *compiler) node(d *Descriptor, t trail) *node {
	if d.Limit == nil {
		return &node{}
	}
	l := &leaf{rule: c.rule(d, t)}
	l.node.rule = &l.rule
	c.set.rules = append(c.set.rules, &l.rule)
	return &l.node
}

// rule returns what a descriptor with a limit says of requests that land on it.
func (c *compiler) rule(d *Descriptor, t trail) ratelimit.Rule {
	path := strings.Join(t.levels, ".")
	if !utf8.ValidString(string(d.Limit.Name)) { // answers bear it, and the protocol takes nothing else
		c.fault(d.Limit.At, "name must be valid UTF-8")
	}
	return ratelimit.Rule{
		Domain:    t.domain,
		Path:      path,
		Levels:    t.levels,
		Limit:     c.limit(d.Limit),
		Unlimited: d.Limit.Unlimited,
		Shadow:    c.shadow(d),
		Quota:     d.QuotaMode || c.options.QuotaMode,
		Metadata:  d.Metadata,
		Name:      d.Limit.Name,
		Replaces:  c.replaces(d.Limit),
		Shared:    t.sharing(),
		Valued:    t.naming(d),
		Hits:      c.hitsOf(series{t.domain, path}),
	}
}

// hitsOf gives two rules whose paths read the same one count: their statistics
// could not be told apart by name.
func (c *compiler) hitsOf(s series) *ratelimit.Hits {
	h := c.hits[s]
	if h == nil {
		h = &ratelimit.Hits{}
		c.hits[s] = h
	}
	return h
}

func (c *compiler) limit(l *Limit) ratelimit.Limit {
	if l.Unlimited {
		if l.Unit != nil {
			c.fault(l.Unit.At, "unit must not stand beside unlimited")
		}
		if l.Requests != nil {
			c.fault(l.Requests.At, "requests_per_unit must not stand beside unlimited")
		}
		return ratelimit.Limit{}
	}
	limit := ratelimit.Limit{Unit: c.unit(l)}
	if l.Requests == nil {
		c.fault(l.At, "requests_per_unit is missing")
	} else {
		limit.RequestsPerUnit = l.Requests.Count
	}
	return limit
}

func (c *compiler) unit(l *Limit) ratelimit.Unit {
	if l.Unit == nil {
		c.fault(l.At, "unit is missing")
		return ratelimit.NoUnit
	}
	unit, ok := ratelimit.ParseUnit(l.Unit.Value)
	if !ok {
		c.fault(l.Unit.At, "unit "+quote(l.Unit.Value)+" is none of "+strings.Join(ratelimit.UnitNames(), ", "))
	}
	return unit
}

// shadow reads shadow_mode in either of its places (contract L-8).
func (c *compiler) shadow(d *Descriptor) bool {
	inside, beside := d.Limit.Shadow, d.Shadow
	if inside != nil && beside != nil && *inside != *beside {
		c.fault(d.At, "shadow_mode is given twice and differs")
	}
	return inside != nil && *inside || beside != nil && *beside
}

func (c *compiler) replaces(l *Limit) []ratelimit.Name {
	names := make([]ratelimit.Name, 0, len(l.Replaces))
	for _, r := range l.Replaces {
		name := ratelimit.Name(r.Value)
		switch name {
		case "":
			c.fault(r.At, "a name in replaces must not be empty")
		case l.Name:
			c.fault(r.At, "replaces must not name the limit itself")
		default:
			names = append(names, name)
		}
	}
	return names
}

// sharing returns the patterns whose values share a counter; nil for none, so
// that counting need not look.
func (t trail) sharing() []string {
	if slices.ContainsFunc(t.shared, func(s string) bool { return s != "" }) {
		return t.shared
	}
	return nil
}

// naming tells at which levels statistics name the value asked for, where the
// rule leaves it open: at all of them with detailed_metric, else where
// value_to_metric stands. Values that share a counter share their statistics.
func (t trail) naming(d *Descriptor) []bool {
	valued := slices.Clone(t.valued)
	for i := range valued {
		valued[i] = valued[i] || d.DetailedMetric && t.open[i]
	}
	if slices.Contains(valued, true) {
		return valued
	}
	return nil
}
