package registry

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// Action is what a grant allows (contract R-34).
type Action string

// The actions of grants.
const (
	ActionPublish Action = "publish"
	ActionEdit    Action = "edit"
	ActionReview  Action = "review"
	// ActionOperate allows what operator commands do, in the console. It is over everything, and
	// does not include the others (contract C-80).
	ActionOperate Action = "operate"
)

// ParseAction returns the action with the given name. It returns fault.Invalid for any other text.
func ParseAction(s string) (Action, error) {
	return fault.OneOf("action", s, ActionPublish, ActionEdit, ActionReview, ActionOperate)
}

// Holder is the holder of a grant: a user id, or service: and the name of a service account.
type Holder string

const serviceHolder = "service:"

// ServiceHolder returns a service account as the holder of grants.
func ServiceHolder(name string) Holder { return Holder(serviceHolder + name) }

// Service returns the name of a service account; ok is false for a person.
func (h Holder) Service() (name string, ok bool) { return strings.CutPrefix(string(h), serviceHolder) }

// Pattern selects server names: "*", a prefix that ends in "*", or one exact name; case-sensitive.
// ParsePattern makes one; the zero value selects no name.
type Pattern struct{ value string }

// ParsePattern returns the pattern that s contains: 1 to 200 characters that names can have,
// optionally with a "*" at the end (contract R-35). It returns fault.Invalid for anything else.
func ParsePattern(s string) (Pattern, error) {
	prefix, wild := strings.CutSuffix(s, "*")
	switch {
	case s == "":
		return Pattern{}, fault.New(fault.Invalid, "resource pattern must not be empty")
	case len(s) > MaxName:
		return Pattern{}, fault.Newf(fault.Invalid, "resource pattern must have at most %d characters, and has %d",
			MaxName, len(s))
	case strings.Contains(prefix, "*"):
		return Pattern{}, fault.Newf(fault.Invalid, "resource pattern %s has a \"*\" that is not at the end", quote(s))
	case strings.ContainsFunc(prefix, notInFullName):
		return Pattern{}, fault.Newf(fault.Invalid,
			"resource pattern %s has a character that no server name has", quote(s))
	case !wild && !isNamespaced(s):
		return Pattern{}, fault.Newf(fault.Invalid,
			"resource pattern %s is neither a server name nor ends in \"*\"; a whole namespace is written \"com.example/*\"", quote(s))
	}
	return Pattern{s}, nil
}

// String returns the pattern as it was given.
func (p Pattern) String() string { return p.value }

// Matches reports whether the pattern selects the name.
func (p Pattern) Matches(name Name) bool {
	if prefix, wild := strings.CutSuffix(p.value, "*"); wild {
		return strings.HasPrefix(name.value, prefix)
	}
	return p.value != "" && p.value == name.value
}

// MatchesFold reports whether the pattern selects the name if letters in either case are the same.
func (p Pattern) MatchesFold(name Name) bool {
	prefix, wild := strings.CutSuffix(p.value, "*")
	if wild {
		return len(name.value) >= len(prefix) && strings.EqualFold(name.value[:len(prefix)], prefix)
	}
	return p.value != "" && strings.EqualFold(p.value, name.value)
}

// IsEverything reports whether the pattern selects every name.
func (p Pattern) IsEverything() bool { return p.value == everything }

// Covers reports whether p selects every name that q can select.
func (p Pattern) Covers(q Pattern) bool {
	prefix, wild := strings.CutSuffix(p.value, "*")
	if !wild {
		return p.value != "" && p.value == q.value
	}
	return q.value != "" && strings.HasPrefix(strings.TrimSuffix(q.value, "*"), prefix)
}

// PatternTexts returns patterns as they were given.
func PatternTexts(list []Pattern) []string {
	texts := make([]string, len(list))
	for i, p := range list {
		texts[i] = p.value
	}
	return texts
}

// Overlaps reports whether there is a name that both patterns select.
func (p Pattern) Overlaps(q Pattern) bool { return p.Covers(q) || q.Covers(p) }

// DisjointPatterns returns patterns that select the same names, of which no two select the same
// name, in the order of the names that they select. It does not change the slice.
func DisjointPatterns(patterns []Pattern) []Pattern {
	sorted := slices.SortedFunc(slices.Values(patterns), func(a, b Pattern) int {
		return cmp.Or(cmp.Compare(strings.TrimSuffix(a.value, "*"), strings.TrimSuffix(b.value, "*")),
			-cmp.Compare(a.value, b.value))
	})
	var disjoint []Pattern
	for _, p := range sorted {
		if n := len(disjoint); n == 0 || !disjoint[n-1].Covers(p) {
			disjoint = append(disjoint, p)
		}
	}
	return disjoint
}

// Grant allows its holder one action on the servers that the pattern selects.
type Grant struct {
	Holder  Holder
	Action  Action
	Pattern Pattern
}

// GrantID identifies a stored grant; it is a UUID in lower case.
type GrantID string

// GrantRecord is a grant as it is stored.
type GrantRecord struct {
	Grant
	ID        GrantID
	ManagedBy string // the owner of the file, or the provider, that manages the grant; empty for none
}

// ProviderOrigin is what ManagedBy begins with in a grant that a provider of company sign-in gives.
// It is no name of an owner of a file.
const ProviderOrigin = "provider:"

// ByProvider reports whether a provider of company sign-in gives the grant.
func (r *GrantRecord) ByProvider() bool { return strings.HasPrefix(r.ManagedBy, ProviderOrigin) }

// Origin returns who gives the grant: hand, provider: and a name, or apply: and the owner of a file.
func (r *GrantRecord) Origin() string {
	switch {
	case r.ManagedBy == "":
		return "hand"
	case r.ByProvider():
		return r.ManagedBy
	}
	return "apply:" + r.ManagedBy
}

// CheckByHand returns fault.Conflict for a grant that a provider gives, which only the groups of the
// person there can end.
func (r *GrantRecord) CheckByHand() error {
	if r.ByProvider() {
		return fault.Newf(fault.Conflict, "the grant comes from the groups of the person at %s: change them there",
			strings.TrimPrefix(r.ManagedBy, ProviderOrigin))
	}
	return nil
}

// everything is the pattern of all servers.
const everything = "*"

// ParseGrant returns the grant of an action and a resource pattern to a holder. Without a pattern,
// the action operate is over everything. It returns fault.Invalid for another action or pattern,
// and for the action operate over a part.
func ParseGrant(holder Holder, action, resource string) (Grant, error) {
	a, err := ParseAction(action)
	if err != nil {
		return Grant{}, fault.In("action", err)
	}
	if a == ActionOperate {
		if resource != "" && resource != everything {
			return Grant{}, fault.In("resource", fault.Newf(fault.Invalid,
				"the action operate is over everything: leave the resource out, instead of %s", quote(resource)))
		}
		resource = everything
	}
	p, err := ParsePattern(resource)
	return Grant{holder, a, p}, fault.In("resource", err)
}
