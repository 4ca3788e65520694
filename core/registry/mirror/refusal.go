package mirror

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// Rule is why a mirror refuses a version, or all versions of a server (contract C-65).
type Rule string

// The rules.
const (
	RuleRecord     Rule = "record"     // the record cannot be read, or what it says besides the document is wrong
	RuleDocument   Rule = "document"   // the document breaks a rule of documents
	RuleReserved   Rule = "reserved"   // no one may publish the name
	RuleGranted    Rule = "granted"    // people here may publish the name
	RuleQuarantine Rule = "quarantine" // it is in quarantine here
	RuleStore      Rule = "store"      // the registry cannot hold it: the server has too many versions
)

// RuleOf returns the rule by which an error refuses a version. The errors of names have their own
// rules (CheckName).
func RuleOf(err error) Rule {
	f, ok := fault.As(err)
	switch {
	case ok && f.Code == registry.CodeRules:
		return RuleDocument
	case fault.Is(err, fault.Forbidden):
		return RuleQuarantine
	case fault.Is(err, fault.Conflict):
		return RuleStore
	}
	return RuleRecord
}

// Refusals is how many versions were refused by each rule, or servers by the rules of names.
type Refusals map[Rule]int

// String returns the numbers as "rule number, rule number", ordered by rule; empty without any.
func (r Refusals) String() string {
	var words []string
	for rule, n := range r {
		if n > 0 {
			words = append(words, fmt.Sprintf("%s %d", rule, n))
		}
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

// ParseRefusals returns the numbers in a text that String returned; nil without any. It returns
// fault.Invalid for another text.
func ParseRefusals(s string) (Refusals, error) {
	if s == "" {
		return nil, nil
	}
	r := Refusals{}
	for part := range strings.SplitSeq(s, ", ") {
		rule, number, _ := strings.Cut(part, " ")
		n, err := strconv.Atoi(number)
		if rule == "" || err != nil || n < 1 {
			return nil, fault.Newf(fault.Invalid, "%.60q is not a number of refusals", part)
		}
		r[Rule(rule)] = n
	}
	return r, nil
}

// Protection says which names belong to this registry. NewProtection makes one; the zero value
// protects none.
type Protection struct {
	reserved []registry.Pattern
	granted  []registry.Pattern
}

// NewProtection returns the protection of names that no one may publish, and of those that people
// may publish or edit by their grants. A grant over everything protects nothing.
func NewProtection(reserved []registry.Pattern, grants []registry.Grant) Protection {
	p := Protection{reserved: reserved}
	known := map[registry.Pattern]bool{}
	for _, g := range grants {
		publishes := g.Action == registry.ActionPublish || g.Action == registry.ActionEdit
		if publishes && !g.Pattern.IsEverything() && !known[g.Pattern] {
			known[g.Pattern] = true
			p.granted = append(p.granted, g.Pattern)
		}
	}
	return p
}

// CheckName returns fault.Forbidden, and the rule, if the mirror may not take a server because of
// its name: it is reserved, or people may publish it here and no pattern of the mirror names its
// namespace (contract C-71). Letters in either case are the same, since namespaces are domains.
func (m *Mirror) CheckName(name registry.Name, p Protection) (Rule, error) {
	for _, reserved := range p.reserved {
		if reserved.MatchesFold(name) {
			return RuleReserved, fault.Newf(fault.Forbidden, "%s is in the reserved namespace %s", name, reserved)
		}
	}
	for _, granted := range p.granted {
		if granted.MatchesFold(name) && !m.names(name, granted) {
			return RuleGranted, fault.Newf(fault.Forbidden,
				"people may publish %s here, by a grant over %s: a mirror takes it only with an --include that names its namespace", name, granted)
		}
	}
	return "", nil
}

// names reports whether a pattern of the mirror that selects a server names its namespace, or is
// within a grant over it.
func (m *Mirror) names(name registry.Name, granted registry.Pattern) bool {
	return slices.ContainsFunc(m.Selection.Include, func(p registry.Pattern) bool {
		text := strings.TrimSuffix(p.String(), "*")
		return p.Matches(name) && (len(text) >= len(name.Namespace()) || granted.Covers(p))
	})
}
