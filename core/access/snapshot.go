package access

import (
	"maps"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/core/toolserver"
)

// Options are how decisions are made where no rule decides. The zero value of an effect denies.
type Options struct {
	Default  Effect // of a call that no rule matches
	Unlisted Effect // of a server that is not listed
	Mode     Mode   // Observe passes all rules over
}

// Listing is a server as the registry lists it.
type Listing struct {
	Name        toolserver.Name
	Remotes     []string // remote URLs of the listed versions
	Quarantined bool     // all versions are in quarantine
}

// Snapshot has rules and servers in the form in which they are matched. It never changes, and is
// safe for concurrent use.
type Snapshot struct {
	options Options
	rules   []Rule // in the order in which they are tried
	servers []knownServer
	byName  map[string]int32
	order   []int32 // the servers by their names
	remotes remotes
}

type knownServer struct {
	Listing

	rules []bucket // those of the patterns that select the server
}

// bucket has the rules with a pattern by the keys of their subjects, each list in the order of the
// rules.
type bucket map[string][]int32

// maxSpread is how many pairs of a subject and a server of one rule are in the buckets. A rule that
// has more is in those of its servers only, for anyone: all its conditions are checked anyway.
const maxSpread = 100

// Compile returns the snapshot of rules and of the servers that are listed or in quarantine.
func Compile(o Options, rules []Rule, servers []Listing) *Snapshot {
	s := &Snapshot{
		options: o, rules: slices.Clone(rules), servers: make([]knownServer, len(servers)),
		byName: make(map[string]int32, len(servers)), remotes: remotes{},
	}
	slices.SortFunc(s.rules, func(a, b Rule) int { return precedes(&a, &b) })
	patterns, lengths := s.buckets()
	for i, l := range servers {
		name := l.Name.String()
		known := knownServer{Listing: l}
		for _, n := range lengths {
			if n <= len(name) {
				known.add(patterns[name[:n]+"*"])
			}
		}
		known.add(patterns[name])
		s.servers[i], s.byName[name] = known, int32(i)
		for _, remote := range l.Remotes {
			s.remotes.add(remote, int32(i))
		}
	}
	s.order = slices.SortedFunc(maps.Values(s.byName), func(i, j int32) int {
		return strings.Compare(s.servers[i].Name.String(), s.servers[j].Name.String())
	})
	return s
}

func (k *knownServer) add(b bucket) {
	if b != nil {
		k.rules = append(k.rules, b)
	}
}

// buckets returns the rules by their patterns, and the lengths of the prefixes among those.
func (s *Snapshot) buckets() (patterns map[string]bucket, lengths []int) {
	patterns = map[string]bucket{}
	for i := range s.rules {
		r := &s.rules[i]
		subjects := r.Subjects
		if len(r.Subjects)*len(r.Servers) > maxSpread {
			subjects = []Selector{{Kind: SelectAnyone}}
		}
		for _, p := range r.Servers {
			pattern := p.String()
			b := patterns[pattern]
			if b == nil {
				b = bucket{}
				patterns[pattern] = b
				if prefix, wild := strings.CutSuffix(pattern, "*"); wild {
					lengths = append(lengths, len(prefix))
				}
			}
			for _, subject := range subjects {
				key := subject.String()
				b[key] = append(b[key], int32(i))
			}
		}
	}
	slices.Sort(lengths)
	return patterns, slices.Compact(lengths)
}

// Rules returns the rules in the order in which they are tried.
func (s *Snapshot) Rules() []Rule { return slices.Clone(s.rules) }

// find returns the first rule that decides a question about a server, and the first before it that
// only observes; both are len(s.rules) without one.
func (s *Snapshot) find(q *Question, k *knownServer) (decides, observes int) {
	decides, observes = len(s.rules), len(s.rules)
	for _, b := range k.rules {
		for _, key := range q.Subject.selectors() {
			for _, i := range b[key] {
				if int(i) >= decides {
					break
				}
				r := &s.rules[i]
				switch passed := s.passes(r); {
				case passed && int(i) >= observes || r.failed(q, k.Name) != "":
				case passed:
					observes = int(i)
				default:
					decides = int(i)
				}
			}
		}
	}
	if observes > decides {
		observes = len(s.rules)
	}
	return decides, observes
}

// passes reports whether a rule is passed over (contract Z-14).
func (s *Snapshot) passes(r *Rule) bool { return r.Mode == Observe || s.options.Mode == Observe }

// distinguishes reports whether a rule that matches the subject and the server names tools or
// methods, so that a call that cannot be read must not be decided (contract Z-6).
func (s *Snapshot) distinguishes(q *Question, k *knownServer) bool {
	for _, b := range k.rules {
		for _, key := range q.Subject.selectors() {
			for _, i := range b[key] {
				r := &s.rules[i]
				if len(r.Methods)+len(r.Tools) > 0 && !s.passes(r) && !r.hasExpired(q.At) &&
					r.selects(q.Subject, k.Name) != (Selector{}) && r.covers(k.Name) {
					return true
				}
			}
		}
	}
	return false
}
