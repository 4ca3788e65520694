package ruleset

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

// leaf is a node together with its rule: a call that ends there fetches both at once from memory.
//
// Each garbage collection follows all pointers of all rules, so a rule has few objects: its texts
// are parts of two strings, the path and the last level as written.
type leaf struct {
	node    node
	rule    ratelimit.Rule
	written Text
}

// newNode returns the node of a descriptor, with a rule if the descriptor has a limit.
func (c *compiler) newNode(d *Descriptor, t levelPath) *node {
	level := t.written[len(t.written)-1]
	written := Text{Value: level[len(level)-len(d.Value.Value):], At: cmp.Or(d.Key.At, d.At)}
	if d.Limit == nil {
		return &node{written: &written}
	}
	l := &leaf{rule: c.newRule(d, t), written: written}
	l.node.rule, l.node.written = &l.rule, &l.written
	c.set.rules = append(c.set.rules, &l.rule)
	return &l.node
}

// newRule returns the rule of a descriptor with a limit.
func (c *compiler) newRule(d *Descriptor, t levelPath) ratelimit.Rule {
	if !utf8.ValidString(string(d.Limit.Name)) { // answers contain it, and the protocol allows nothing else
		c.addFault(d.Limit.At, "name must be valid UTF-8")
	}
	return ratelimit.Rule{
		Domain:    t.domain,
		Path:      t.path,
		Levels:    t.levels,
		Written:   t.written,
		File:      cmp.Or(d.Key.At, d.At).File,
		Line:      cmp.Or(d.Key.At, d.At).Line,
		Limit:     c.compileLimit(d.Limit),
		Unlimited: d.Limit.Unlimited,
		Shadow:    c.shadowMode(d),
		Quota:     d.QuotaMode || c.options.QuotaMode,
		Lease:     c.compileLease(d.Limit),
		Metadata:  d.Metadata,
		Name:      d.Limit.Name,
		Replaces:  c.compileReplaces(d.Limit),
		Shared:    t.sharedPatterns(),
		ShowValue: t.valuedLevels(d),
		Hits:      c.hitsOf(seriesKey{t.domain, t.path}),
	}
}

// hitsOf returns the statistics of a path. Two rules with the same path share them, because their
// statistics would have the same names.
func (c *compiler) hitsOf(s seriesKey) *ratelimit.Hits {
	h := c.hits[s]
	if h == nil {
		h = &ratelimit.Hits{}
		c.hits[s] = h
	}
	return h
}

// compileLimit returns the limit of a rate_limit block; the zero Limit for an unlimited one.
func (c *compiler) compileLimit(l *Limit) ratelimit.Limit {
	if l.Unlimited {
		if l.Unit != nil {
			c.addFault(l.Unit.At, "unit must not be given together with unlimited")
		}
		if l.Requests != nil {
			c.addFault(l.Requests.At, "requests_per_unit must not be given together with unlimited")
		}
		if l.Algorithm != nil {
			c.addFault(l.Algorithm.At, "algorithm must not be given together with unlimited")
		}
		if l.Burst != nil {
			c.addFault(l.Burst.At, "burst must not be given together with unlimited")
		}
		if l.Lease != nil {
			c.addFault(l.Lease.At, "lease must not be given together with unlimited")
		}
		return ratelimit.Limit{}
	}
	limit := ratelimit.Limit{Unit: c.compileUnit(l)}
	if l.Requests == nil {
		c.addFault(l.At, "requests_per_unit is missing")
	} else {
		limit.RequestsPerUnit = l.Requests.Count
	}
	c.compileAlgorithm(l, &limit)
	return limit
}

// compileAlgorithm sets the algorithm of a limit (contract L-53).
func (c *compiler) compileAlgorithm(l *Limit, limit *ratelimit.Limit) {
	if l.Algorithm != nil {
		a, ok := ratelimit.ParseAlgorithm(l.Algorithm.Value)
		if !ok {
			c.addFault(l.Algorithm.At,
				"algorithm "+quote(l.Algorithm.Value)+" is not one of "+strings.Join(ratelimit.AlgorithmNames(), ", "))
			return
		}
		limit.Algorithm = a
	}
	switch {
	case limit.Algorithm != ratelimit.TokenBucket:
		if l.Burst != nil {
			c.addFault(l.Burst.At, "burst needs the algorithm token_bucket")
		}
	case l.Burst == nil:
		limit.Burst = limit.RequestsPerUnit
	case l.Burst.Count == 0 && limit.RequestsPerUnit > 0:
		c.addFault(l.Burst.At, "burst must be at least 1")
	default:
		limit.Burst = l.Burst.Count
	}
}

// compileLease returns whether instances may hold shares of a limit (contract L-70).
func (c *compiler) compileLease(l *Limit) ratelimit.LeaseMode {
	if l.Lease == nil {
		return ratelimit.LeaseDefault
	}
	mode, ok := ratelimit.ParseLeaseMode(l.Lease.Value)
	if !ok {
		c.addFault(l.Lease.At, "lease "+quote(l.Lease.Value)+" is not one of auto, off")
	}
	return mode
}

// compileUnit returns the unit of a limit, or NoUnit after adding a fault.
func (c *compiler) compileUnit(l *Limit) ratelimit.Unit {
	if l.Unit == nil {
		c.addFault(l.At, "unit is missing")
		return ratelimit.NoUnit
	}
	unit, ok := ratelimit.ParseUnit(l.Unit.Value)
	if !ok {
		c.addFault(l.Unit.At, "unit "+quote(l.Unit.Value)+" is not one of "+strings.Join(ratelimit.UnitNames(), ", "))
	}
	return unit
}

// shadowMode returns shadow_mode from either of its two places (contract L-8).
func (c *compiler) shadowMode(d *Descriptor) bool {
	inside, outside := d.Limit.Shadow, d.Shadow
	if inside != nil && outside != nil && *inside != *outside {
		c.addFault(d.At, "shadow_mode is given twice and differs")
	}
	return inside != nil && *inside || outside != nil && *outside
}

func (c *compiler) compileReplaces(l *Limit) []ratelimit.Name {
	names := make([]ratelimit.Name, 0, len(l.Replaces))
	for _, r := range l.Replaces {
		name := ratelimit.Name(r.Value)
		switch name {
		case "":
			c.addFault(r.At, "a name in replaces must not be empty")
		case l.Name:
			c.addFault(r.At, "replaces must not name the limit itself")
		default:
			names = append(names, name)
		}
	}
	return names
}

// sharedPatterns returns the patterns whose values share a counter, or nil when there are no such
// patterns, so that counting can skip the check.
func (t levelPath) sharedPatterns() []string {
	if slices.ContainsFunc(t.shared, func(s string) bool { return s != "" }) {
		return t.shared
	}
	return nil
}

// valuedLevels returns at which levels statistics contain the value of the request: with
// detailed_metric at all levels that match several values, else at those with value_to_metric.
// Values that share a counter share their statistics. It returns nil when the level does not exist.
func (t levelPath) valuedLevels(d *Descriptor) []bool {
	valued := slices.Clone(t.valued)
	for i := range valued {
		valued[i] = valued[i] || d.DetailedMetric && t.open[i]
	}
	if slices.Contains(valued, true) {
		return valued
	}
	return nil
}
