// Package scope has the scopes of tokens, for all of the core: what a token may be used for, within
// what its owner may do. Each hexagon checks the scopes of its use cases.
package scope

import (
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
)

// Scope is what a token may be used for.
type Scope string

// The scopes.
const (
	Read      Scope = "registry:read"    // reads of the registry that are not public
	Publish   Scope = "registry:publish" // what a grant to publish allows
	Edit      Scope = "registry:edit"    // what a grant to edit allows
	Review    Scope = "registry:review"  // what a grant to review allows
	AdminRead Scope = "admin:read"       // reads of operators
	Admin     Scope = "admin:write"      // what operators do, with AdminRead
	Audit     Scope = "audit:read"       // reads of the audit log of everybody
	Decide    Scope = "decide"           // rate limit decisions
)

// All returns all scopes.
func All() Set { return Set{Read, Publish, Edit, Review, AdminRead, Admin, Audit, Decide} }

// Set is a list of scopes. Parse makes one, ordered and without duplicates.
type Set []Scope

// Parse returns the scopes with the given names. It returns fault.Invalid, with a message that
// continues the name of a field, for an empty list, an unknown name and one that is there twice.
func Parse(names []string) (Set, error) {
	if len(names) == 0 {
		return nil, fault.New(fault.Invalid, "must have at least one scope")
	}
	s := make(Set, 0, len(names))
	for _, name := range names {
		one := Scope(name)
		switch {
		case !slices.Contains(All(), one):
			return nil, fault.Newf(fault.Invalid, "must not have %.60q: the scopes are %s", name, All())
		case slices.Contains(s, one):
			return nil, fault.Newf(fault.Invalid, "must not have %s twice", name)
		}
		s = append(s, one)
	}
	slices.Sort(s)
	return s, nil
}

// Has reports whether the set includes a scope.
func (s Set) Has(one Scope) bool {
	return slices.Contains(s, one) || one == AdminRead && slices.Contains(s, Admin)
}

// String returns the scopes separated by spaces (RFC 6749, 3.3).
func (s Set) String() string {
	names := each.Strings(s)
	return strings.Join(names, " ")
}

// CodeInsufficient is the code of Insufficient.
const CodeInsufficient fault.Code = "insufficient_scope"

// Insufficient returns the refusal of a token that has none of the scopes, one of which is needed.
// Its detail "challenge" is that of RFC 6750, 3.1.
func Insufficient(needed ...Scope) error {
	set := Set(needed)
	return fault.Newf(fault.Forbidden, "the token does not have the scope that this needs: %s",
		strings.ReplaceAll(set.String(), " ", " or ")).WithCode(CodeInsufficient).
		WithDetail("challenge", jsonvalue.Text(`Bearer error="insufficient_scope", scope="`+set.String()+`"`))
}
