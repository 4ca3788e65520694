package mirror

import (
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
)

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
