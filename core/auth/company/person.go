package company

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fields"
)

// IdentityID identifies a linked identity; it is a UUID in lower case.
type IdentityID string

// Identity is a person at an issuer, linked to an account. It is never linked to another one.
type Identity struct {
	ID         IdentityID
	UserID     auth.UserID
	Issuer     string
	Subject    string
	Email      auth.Email // as the provider said it last
	LinkedAt   time.Time
	LastUsedAt time.Time
	// ConfirmedAt is when the provider last said that the person may sign in; zero after it has refused.
	ConfirmedAt time.Time
	Membership  Membership
}

// Membership is the groups in which a provider has put a person.
type Membership struct {
	Provider Name // that said so last; empty if none has
	Groups   []string
}

// CountedGroups returns the groups of memberships by how many people have each, as PROVIDER/GROUP: those that
// most have first, then by name.
func CountedGroups(memberships []Membership, people []int) []string {
	counts := map[string]int{}
	for i, m := range memberships {
		for _, group := range m.Groups {
			counts[m.Provider.Group(group)] += people[i]
		}
	}
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(counts[b]-counts[a], strings.Compare(a, b))
	})
}

// MembershipOf returns the groups of claims. Names that no rule can have are left out.
func (p *Provider) MembershipOf(c *Claims) Membership {
	m := Membership{Provider: p.Name}
	for _, name := range c.Groups.Names {
		if fields.IsText(name, fields.MaxText) {
			m.Groups = append(m.Groups, name)
		}
	}
	return m
}

// GroupsAt returns the groups of the identity with their provider, if that is still one of all, and
// has not refused the person since.
func (i *Identity) GroupsAt(all []Provider) (p *Provider, groups []string) {
	for k := range all {
		if p := &all[k]; p.Name == i.Membership.Provider && p.Issuer == i.Issuer && !i.ConfirmedAt.IsZero() {
			return p, i.Membership.Groups
		}
	}
	return nil, nil
}

// LoginID identifies a sign-in at a provider; it is a UUID in lower case.
type LoginID string

// Login is a sign-in at a provider from which a session came.
type Login struct {
	ID         LoginID
	SessionID  auth.SessionID // empty while the sign-in waits for a second factor
	IdentityID IdentityID
	Provider   Name
	SID        string            // the session at the provider
	Refresh    auth.SealedSecret // empty without a refresh token
	AnsweredAt time.Time         // when the provider last confirmed the person
	RecheckAt  time.Time         // zero without a refresh token
}

// Known is what is stored about the person of some claims.
type Known struct {
	Linked  bool          // the identity is linked to the account
	Account *auth.Account // of the identity, else of the e-mail address; nil without one
	// For an account of the e-mail address: it has another identity of the issuer, or it may operate.
	HasOther, Operates bool
}

// Verdict is what becomes of a sign-in.
type Verdict string

// The verdicts. Those other than SignIn, Link and Create are refusals, and the reasons in the audit
// log.
const (
	SignIn   Verdict = "sign_in"
	Link     Verdict = "link"
	Create   Verdict = "create"
	Operator Verdict = "operator_not_linked" // an operator links the identity on the account page
	Unknown  Verdict = "unknown_person"
	Disabled Verdict = "account_disabled"
	Locked   Verdict = "account_locked"
	NoGroup  Verdict = "not_in_required_group"
)

// Admits reports whether a session may begin.
func (v Verdict) Admits() bool { return v == SignIn || v == Link || v == Create }

// Decide returns what becomes of a sign-in with claims whose person is known so far.
func (p *Provider) Decide(c *Claims, k Known) Verdict {
	v := p.identify(c, k)
	switch {
	case !v.Admits():
		return v
	case k.Account != nil && k.Account.State == auth.AccountDisabled:
		return Disabled
	case k.Account != nil && k.Account.State == auth.AccountLocked:
		return Locked
	case !p.Admits(c.Groups.Names):
		return NoGroup
	}
	return v
}

// identify decides who it is. Only the domains of the provider, with an address that it has not
// called unverified, lead to an account that is not linked.
func (p *Provider) identify(c *Claims, k Known) Verdict {
	switch {
	case k.Linked:
		return SignIn
	case c.Email == "" || c.Unverified || !p.SpeaksFor(c.Email):
		return Unknown
	case k.Account == nil && p.Create:
		return Create
	case k.Account == nil || k.HasOther:
		return Unknown
	case k.Operates:
		return Operator
	}
	return Link
}

// Proof is where a person was signed in.
type Proof struct {
	Provider Name
	Subject  string
	Groups   GroupsProblem // why the groups of the person could not be read; empty if they could
}

// Describe adds the sign-in to the details of an audit event.
func (p Proof) Describe(d audit.Details) {
	if p.Provider != "" {
		d["method"], d["provider"], d["subject"] = audit.Text("company"), audit.Text(p.Provider), audit.Text(p.Subject)
		d.Set("problem", string(p.Groups))
	}
}
