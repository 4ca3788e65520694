package access

import (
	"iter"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/core/toolserver"
)

// Options are how decisions are made where no rule decides. The zero value of an effect denies.
type Options struct {
	Default  Effect // of a call that no rule matches
	Unlisted Effect // of a server that is not listed
	Mode     Mode   // Observe passes all rules over
	// OnChange is what happens to calls of tools that are not as they were approved: DenyCalls denies them.
	OnChange toolserver.OnChange
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
	// Tools are the tool lists of listed versions; nil for a server without an approved one.
	Tools []ToolList
}

// Snapshot has rules and servers in the form in which they are matched. It never changes, and is
// safe for concurrent use. What it is after a change of some servers, or of the rules, is another one
// that shares the rest.
type Snapshot struct {
	*ruleset

	servers ordered[*knownServer] // by name
	remotes remotes
}

// ruleset has the rules of a Snapshot.
type ruleset struct {
	options         Options
	rules           []Rule  // in the order in which they are tried
	ends            []int64 // when they end, in microseconds of Unix
	hints           bool    // some rule has hints
	decide, observe index   // of the rules that decide, and of those that are passed over
}

// knownServer is a server that is listed or in quarantine, or whose addresses stay known.
type knownServer struct {
	Name                 toolserver.Name
	Quarantined, Deleted bool // as Listing has them
	places               []placed
	addresses            []address
	tools                *knownTools // nil without an approved list
}

// placed is a key of remotes under which a server is found.
type placed struct {
	key       string
	path      string // in the case of the URL
	withdrawn bool   // as Listing.Withdrawn
}

// Compile returns the snapshot of rules and of the servers that are listed or in quarantine.
func Compile(o Options, rules []Rule, servers []Listing) *Snapshot {
	s := &Snapshot{ruleset: &ruleset{options: o}}
	return s.WithRules(rules).With(servers)
}

// Lists reports whether a server is listed, or in quarantine.
func (s *Snapshot) Lists(name string) bool {
	k, ok := s.servers.get(name)
	return ok && !k.Deleted
}

// WithRules returns the snapshot with other rules. It costs as much as there are rules.
func (s *Snapshot) WithRules(rules []Rule) *Snapshot {
	r := &ruleset{options: s.options, rules: slices.Clone(rules)}
	slices.SortFunc(r.rules, func(a, b Rule) int { return precedes(&a, &b) })
	r.ends = make([]int64, len(r.rules))
	for i := range r.rules {
		one := &r.rules[i]
		r.hints = r.hints || len(one.Hints) > 0
		if r.ends[i] = math.MaxInt64; !one.ExpiresAt.IsZero() {
			r.ends[i] = one.ExpiresAt.UnixMicro() // they have no nanoseconds
		}
		if r.passes(one) {
			r.observe.add(one, int32(i))
		} else {
			r.decide.add(one, int32(i))
		}
	}
	r.decide.sort()
	r.observe.sort()
	return &Snapshot{r, s.servers, s.remotes}
}

// With returns the snapshot after changes of servers. Each is as it is now; one that is deleted and has
// no addresses is forgotten. It costs as much as there are changes.
func (s *Snapshot) With(changed []Listing) *Snapshot {
	var servers []entry[*knownServer]
	var steps []step
	changed = slices.Clone(changed)
	slices.SortStableFunc(changed, func(a, b Listing) int { return strings.Compare(a.Name.String(), b.Name.String()) })
	for i, l := range changed {
		name := l.Name.String()
		if i+1 < len(changed) && changed[i+1].Name == l.Name { // the last one holds
			continue
		}
		before, _ := s.servers.get(name)
		next := newServer(l)
		if before.equals(next) {
			continue
		}
		servers = append(servers, entry[*knownServer]{name, next, next == nil})
		steps = appendSteps(appendSteps(steps, before, true), next, false)
	}
	if len(servers) == 0 {
		return s
	}
	return &Snapshot{s.ruleset, s.servers.with(servers), s.remotes.with(steps)}
}

// newServer returns the server of a listing; nil if nothing about it needs to be known.
func newServer(l Listing) *knownServer {
	k := &knownServer{Name: l.Name, Quarantined: l.Quarantined, Deleted: l.Deleted, addresses: addressesOf(&l), tools: newTools(l.Tools)}
	for i, urls := range [...][]string{l.Remotes, l.Withdrawn} {
		for _, url := range urls {
			at, ok := placeOf(url)
			at.withdrawn = i > 0
			if ok && !slices.ContainsFunc(k.places, func(p placed) bool { return p.key == at.key && p.path == at.path }) {
				k.places = append(k.places, at)
			}
		}
	}
	if k.Deleted && len(k.places) == 0 {
		return nil
	}
	return k
}

// equals reports whether two servers, of which each may be nil, are decided about alike.
func (k *knownServer) equals(other *knownServer) bool {
	if k == nil || other == nil {
		return k == other
	}
	return k.Quarantined == other.Quarantined && k.Deleted == other.Deleted && slices.Equal(k.places, other.places) &&
		slices.Equal(k.addresses, other.addresses) && reflect.DeepEqual(k.tools, other.tools)
}

// unlisted returns a server that is not listed, for the rules about the name that a proxy states. Without
// a name only those for all servers are about it.
func unlisted(stated string) *knownServer {
	name, _ := toolserver.ParseName(stated) // otherwise it is no name
	return &knownServer{Name: name}
}

// Rules returns the rules in the order in which they are tried.
func (s *ruleset) Rules() []Rule { return slices.Clone(s.rules) }

// find returns the first rule that decides a question about a server, and the first before it that
// only observes; both are len(s.rules) without one.
func (s *ruleset) find(q *Question, k *knownServer) (decides, observes int) {
	tool := noTool
	if s.hints {
		tool = k.tools.traitsOf(&q.Call)
	}
	decides = s.first(q, k.Name, tool, &s.decide, len(s.rules))
	if observes = s.first(q, k.Name, tool, &s.observe, decides); observes == decides {
		observes = len(s.rules)
	}
	return decides, observes
}

// first returns the first rule of an index that a question about a server matches, or before if that is
// not one of the rules before it.
func (s *ruleset) first(q *Question, of toolserver.Name, tool toolserver.Traits, in *index, before int) int {
	now := q.At.UnixMicro()
	try := func(i int32) bool {
		if int(i) < before && now < s.ends[i] && s.rules[i].failed(q, of, tool) == "" {
			before = int(i)
		}
		return int(i) < before
	}
	for b := range in.of(of.String()) {
		for _, key := range q.Subject.selectors() {
			if l := b[key]; l != nil {
				l.fitting(q, tool, try)
			}
		}
	}
	return before
}

// passes reports whether a rule is passed over (contract Z-14).
func (s *ruleset) passes(r *Rule) bool { return r.Mode == Observe || s.options.Mode == Observe }

// distinguishes reports whether a rule that matches the subject and the server names tools or
// methods, or has hints, so that a call that cannot be read must not be decided (contract Z-6). It could
// also be that of a tool which is not as it was approved.
func (s *Snapshot) distinguishes(q *Question, k *knownServer) bool {
	if s.deniesTools(k) {
		return true
	}
	for i := range s.about(q.Subject, k) {
		r := &s.rules[i]
		if r.isAboutSomeCalls() && !r.hasExpired(q.At) && r.isAbout(q.Subject, k.Name) {
			return true
		}
	}
	return false
}

// about returns the rules that decide and may be about a subject and a server, in any order and some
// more than once.
func (s *ruleset) about(subject *Subject, k *knownServer) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for b := range s.decide.of(k.Name.String()) {
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
