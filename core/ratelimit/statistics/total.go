package statistics

import (
	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

// RuleMetric returns the name of a statistic of rules for Prometheus.
func RuleMetric(s Stat) string { return "ratelimit_service_rate_limit_" + s.String() }

// Total are all counts under one name since the start. Its texts are valid UTF-8, and written as in
// the name with dots.
type Total struct {
	Domain string
	Rule   string // the levels, joined by dots
	Key1   string // the first level, as dashboards of the Envoy service have it
	Key2   string // the second level; empty without one
	Values Values
}

// Name returns the name with dots of a statistic.
func (t *Total) Name(s Stat) string {
	name := appendName(nil, ratelimit.Domain(t.Domain), t.Rule)
	return string(append(append(name, '.'), s.String()...))
}

// maxAtZero is the number of rules up to which rules without hits are listed too. With more, each
// of them would add six lines of zeros.
const maxAtZero = 10_000

// Totals returns the values of all rules and series, one Total for each name, in no order. With
// more than 10,000 rules, it returns only those with hits.
func (s *Statistics) Totals() []Total {
	type name struct{ domain, rule string }
	size := s.ruleCount()
	onlyHit := size > maxAtZero
	list := make([]Total, 0, min(size, maxAtZero))
	where := make(map[name]int, min(size, maxAtZero))
	counted := make(map[*ratelimit.Hits]struct{}, size)
	for subject := range s.allSubjects() {
		if _, again := counted[subject.Hits]; again {
			continue
		}
		counted[subject.Hits] = struct{}{}
		values := readValues(subject.Hits)
		if onlyHit && values == (Values{}) {
			continue
		}
		n := name{cleanName(string(subject.Domain)), cleanName(subject.Path)}
		i, known := where[n]
		if !known {
			i = len(list)
			where[n] = i
			list = append(list, newTotal(n.domain, n.rule, subject.Levels))
		}
		list[i].Values.addValues(values)
	}
	return list
}

func (s *Statistics) ruleCount() int {
	set := s.rules.Current()
	if set == nil || s.options.WithoutRules {
		return 0
	}
	return set.RuleCount()
}

func newTotal(domain, rule string, levels []string) Total {
	t := Total{Domain: domain, Rule: rule}
	if len(levels) > 0 {
		t.Key1 = cleanName(levels[0])
	}
	if len(levels) > 1 {
		t.Key2 = cleanName(levels[1])
	}
	return t
}
