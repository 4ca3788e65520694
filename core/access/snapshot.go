package access

import (
	"iter"
	"maps"
	"math"
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
	Name    toolserver.Name
	Remotes []string // remote URLs of the listed versions
	// Withdrawn are remote URLs that only versions in quarantine and deleted ones have. They stay known, since
	// their address would otherwise be that of another server, or of no server.
	Withdrawn   []string
	Quarantined bool // all versions are in quarantine or deleted, and some are in quarantine
	Deleted     bool // all versions are deleted: the server is not listed
}

// Snapshot has rules and servers in the form in which they are matched. It never changes, and is
// safe for concurrent use.
type Snapshot struct {
	options         Options
	rules           []Rule  // in the order in which they are tried
	ends            []int64 // when they end, in microseconds of Unix
	servers         []knownServer
	decide, observe index            // of the rules that decide, and of those that are passed over
	byName          map[string]int32 // without deleted ones
	order           []int32          // the servers by their names
	remotes         remotes
}

type knownServer struct {
	Listing

	rules    []bucket // of the patterns that select the server: those that decide
	observed []bucket // likewise: those that are passed over
}

// Compile returns the snapshot of rules and of the servers that are listed or in quarantine.
func Compile(o Options, rules []Rule, servers []Listing) *Snapshot {
	s := &Snapshot{
		options: o, rules: slices.Clone(rules), servers: make([]knownServer, len(servers)),
		byName: make(map[string]int32, len(servers)), remotes: remotes{map[place]*origin{}, map[string]bool{}},
	}
	slices.SortFunc(s.rules, func(a, b Rule) int { return precedes(&a, &b) })
	s.ends = make([]int64, len(s.rules))
	for i := range s.rules {
		r := &s.rules[i]
		if s.ends[i] = math.MaxInt64; !r.ExpiresAt.IsZero() {
			s.ends[i] = r.ExpiresAt.UnixMicro() // they have no nanoseconds
		}
		if s.passes(r) {
			s.observe.add(r, int32(i))
		} else {
			s.decide.add(r, int32(i))
		}
	}
	for i, l := range servers {
		name := l.Name.String()
		s.servers[i] = s.newServer(l)
		if !l.Deleted {
			s.byName[name] = int32(i)
		}
		for _, url := range l.Remotes {
			s.remotes.add(url, remote{of: int32(i)})
		}
		for _, url := range l.Withdrawn {
			s.remotes.add(url, remote{int32(i), true})
		}
	}
	s.order = slices.SortedFunc(maps.Values(s.byName), func(i, j int32) int {
		return strings.Compare(s.servers[i].Name.String(), s.servers[j].Name.String())
	})
	return s
}

func (s *Snapshot) newServer(l Listing) knownServer {
	name := l.Name.String()
	return knownServer{Listing: l, rules: s.decide.of(name), observed: s.observe.of(name)}
}

// unlisted returns a server that is not listed, for the rules about the name that a proxy states. Without
// a name only those for all servers are about it.
func (s *Snapshot) unlisted(stated string) *knownServer {
	name, _ := toolserver.ParseName(stated) // otherwise it is no name
	k := s.newServer(Listing{Name: name})
	return &k
}

// Rules returns the rules in the order in which they are tried.
func (s *Snapshot) Rules() []Rule { return slices.Clone(s.rules) }

// find returns the first rule that decides a question about a server, and the first before it that
// only observes; both are len(s.rules) without one.
func (s *Snapshot) find(q *Question, k *knownServer) (decides, observes int) {
	decides = s.first(q, k.Name, k.rules, len(s.rules))
	if observes = s.first(q, k.Name, k.observed, decides); observes == decides {
		observes = len(s.rules)
	}
	return decides, observes
}

// first returns the first rule of some buckets that a question about a server matches, or before if
// that is not one of the rules before it.
func (s *Snapshot) first(q *Question, of toolserver.Name, in []bucket, before int) int {
	now := q.At.UnixMicro()
	try := func(list []int32) {
		for _, i := range list {
			if int(i) >= before {
				break
			}
			if now < s.ends[i] && s.rules[i].failed(q, of) == "" {
				before = int(i)
			}
		}
	}
	for _, b := range in {
		for _, key := range q.Subject.selectors() {
			if l := b[key]; l != nil {
				l.fitting(q, try)
			}
		}
	}
	return before
}

// passes reports whether a rule is passed over (contract Z-14).
func (s *Snapshot) passes(r *Rule) bool { return r.Mode == Observe || s.options.Mode == Observe }

// distinguishes reports whether a rule that matches the subject and the server names tools or
// methods, so that a call that cannot be read must not be decided (contract Z-6).
func (s *Snapshot) distinguishes(q *Question, k *knownServer) bool {
	for i := range k.about(q.Subject) {
		r := &s.rules[i]
		if len(r.Methods)+len(r.Tools) > 0 && !r.hasExpired(q.At) && r.selects(q.Subject, k.Name) != (Selector{}) && r.covers(k.Name) {
			return true
		}
	}
	return false
}

// about returns the rules that decide and may be about a subject and the server, in any order and some
// more than once.
func (k *knownServer) about(subject *Subject) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for _, b := range k.rules {
			for _, key := range subject.selectors() {
				if l := b[key]; l != nil {
					for i := range l.all() {
						if !yield(i) {
							return
						}
					}
				}
			}
		}
	}
}
