package statistics

import (
	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

// RuleMetric returns the name of a statistic of rules for Prometheus.
func RuleMetric(s Stat) string { return "ratelimit_service_rate_limit_" + s.String() }

// Total is all that was counted under one name since the start. Its texts are
// valid UTF-8, and written as in the name with dots.
type Total struct {
	Domain string
	Rule   string // the levels, joined by dots
	Key1   string // the first level, as dashboards of the Envoy service have it
	Key2   string // the second level; empty for none
	Values Values
}

// Name returns the name with dots of a statistic.
func (t *Total) Name(s Stat) string {
	name := appendName(nil, ratelimit.Domain(t.Domain), t.Rule)
	return string(append(append(name, '.'), s.String()...))
}

// maxAtZero is up to how many rules those that were never hit are listed too.
// With more, each would cost every reader six lines that say nothing.
const maxAtZero = 10_000

// Totals returns the values of all rules and series, one for each name, in no
// order. Of more than 10,000 rules, those that were hit are listed.
func (s *Statistics) Totals() []Total {
	type name struct{ domain, rule string }
	size := s.size()
	onlyHit := size > maxAtZero
	list := make([]Total, 0, min(size, maxAtZero))
	where := make(map[name]int, min(size, maxAtZero))
	counted := make(map[*ratelimit.Hits]struct{}, size)
	for one := range s.subjects() {
		if _, again := counted[one.Hits]; again {
			continue
		}
		counted[one.Hits] = struct{}{}
		values := read(one.Hits)
		if onlyHit && values == (Values{}) {
			continue
		}
		n := name{clean(string(one.Domain)), clean(one.Path)}
		i, known := where[n]
		if !known {
			i = len(list)
			where[n] = i
			list = append(list, total(n.domain, n.rule, one.Levels))
		}
		list[i].Values.add(values)
	}
	return list
}

func (s *Statistics) size() int {
	set := s.rules.Current()
	if set == nil || s.options.WithoutRules {
		return 0
	}
	return set.Len()
}

func total(domain, rule string, levels []string) Total {
	t := Total{Domain: domain, Rule: rule}
	if len(levels) > 0 {
		t.Key1 = clean(levels[0])
	}
	if len(levels) > 1 {
		t.Key2 = clean(levels[1])
	}
	return t
}
