package inprocess

import (
	"context"
	"net/netip"
	"strings"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/access"
	"github.com/tollgate-dev/tollgate/core/auth/foreign"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

var _ authority.Authority = (*Authority)(nil)

// Authority identifies the callers of the registry by their tokens (contract R-34) or
// sessions. It is safe for concurrent use.
type Authority struct {
	checker *access.Checker
	foreign *foreign.Tokens
	write   auth.TrustLevel
}

// NewAuthority returns an Authority whose callers need a trust level for writes to the registry
// (REGISTRY_WRITE_TRUST).
func NewAuthority(c *access.Checker, f *foreign.Tokens, write auth.TrustLevel) *Authority {
	return &Authority{c, f, write}
}

// Identify implements [authority.Authority].
func (a *Authority) Identify(ctx context.Context, token string, from netip.Addr) (authority.Caller, error) {
	identity, err := a.checker.Identify(ctx, auth.AccessToken(token), from)
	if err != nil {
		return a.identifyForeign(ctx, token, from, err)
	}
	return a.callerOf(ctx, &identity, from, auth.FullTrust)
}

// IdentifyReader implements [authority.Authority].
func (a *Authority) IdentifyReader(ctx context.Context, token string, from netip.Addr) (authority.Caller, error) {
	return a.identifyRecent(ctx, token, from, false)
}

// IdentifyCall implements [authority.Authority].
func (a *Authority) IdentifyCall(ctx context.Context, token string, from netip.Addr) (authority.Caller, error) {
	return a.identifyRecent(ctx, token, from, true)
}

// identifyRecent returns the caller of a read, or of a call of a tool server.
func (a *Authority) identifyRecent(
	ctx context.Context, token string, from netip.Addr, calls bool,
) (authority.Caller, error) {
	if owner := a.foreign.Recent(token); owner != nil {
		return authority.NewForeign(owner, from), nil
	}
	identity, err := a.checker.IdentifyRecent(ctx, auth.AccessToken(token), from)
	if err != nil {
		return a.identifyForeign(ctx, token, from, err)
	}
	if calls && identity.Granted != nil && identity.Granted.Resource != nil {
		return a.visitorOf(ctx, &identity, from)
	}
	if calls && identity.Granted != nil {
		return authority.Caller{}, authority.ErrOtherResource
	}
	return a.callerOf(ctx, &identity, from, auth.Unverified)
}

// Commands is the authority of operator commands in this process: each call is one of an operator, and
// has no token. It has no other method.
type Commands struct{ authority.Authority }

// Identify implements [authority.Authority].
func (Commands) Identify(context.Context, string, netip.Addr) (authority.Caller, error) {
	return authority.Operator(), nil
}

// identifyForeign returns the owner of a token that the service has not made, as refused says.
func (a *Authority) identifyForeign(
	ctx context.Context, token string, from netip.Addr, refused error,
) (authority.Caller, error) {
	if f, ok := fault.As(refused); !ok || f.Code != auth.CodeInvalidToken || strings.Count(token, ".") != 2 {
		return authority.Caller{}, refused
	}
	owner, err := a.foreign.Identify(ctx, token)
	switch {
	case fault.Is(err, fault.NotFound):
		return authority.Caller{}, refused
	case err != nil:
		return authority.Caller{}, err
	}
	return authority.NewForeign(owner, from), nil
}

// IdentifyVerified implements [authority.Authority].
func (a *Authority) IdentifyVerified(ctx context.Context, payload []byte, from netip.Addr) (authority.Caller, error) {
	owner, err := a.foreign.IdentifyVerified(ctx, payload)
	switch {
	case fault.Is(err, fault.NotFound):
		return authority.Caller{}, fault.New(fault.Unauthenticated, "the token is of another issuer").
			WithCode(auth.CodeInvalidToken)
	case err != nil:
		return authority.Caller{}, err
	}
	return authority.NewForeign(owner, from), nil
}

// callerOf returns the caller of an identity. A session below the level is read again.
func (a *Authority) callerOf(
	ctx context.Context, identity *access.Identity, from netip.Addr, level auth.TrustLevel,
) (authority.Caller, error) {
	switch t := identity.Token; {
	case t != nil:
		return authority.NewToken(authority.Token{
			Owner: registry.Holder(t.Owner), Prefix: t.Prefix, Scopes: t.Scopes, Networks: t.Networks,
		}, from), nil
	case identity.Granted != nil:
		return a.applicationOf(ctx, identity, from, level)
	case identity.Publisher == nil:
		return a.confirm(ctx, identity.Session, from, level)
	}
	p, err := readPublisher(identity.Publisher)
	if err != nil {
		return authority.Caller{}, err
	}
	return authority.NewPublisher(p, from), nil
}

// IdentifySession implements [authority.Authority].
func (a *Authority) IdentifySession(ctx context.Context, id string, from netip.Addr) (authority.Caller, error) {
	s, err := a.checker.CheckSession(ctx, auth.SessionID(id))
	if err != nil {
		return authority.Caller{}, err
	}
	return a.confirm(ctx, s, from, auth.FullTrust)
}

// confirm returns the person of a session, which is read again if it is below the level.
func (a *Authority) confirm(
	ctx context.Context, s auth.Session, from netip.Addr, level auth.TrustLevel,
) (authority.Caller, error) {
	s, err := a.checker.Confirm(ctx, s, level)
	if err != nil {
		return authority.Caller{}, err
	}
	return authority.NewPerson(authority.Person{
		UserID: registry.Holder(s.UserID), SessionID: string(s.ID), Trust: a.trustAt(s.TrustLevel),
	}, from), nil
}

// trustAt returns what a trust level permits.
func (a *Authority) trustAt(l auth.TrustLevel) authority.Trust {
	return authority.Trust{
		Level: authority.TrustLevel(l.String()), Read: trust.Require(l, auth.Unverified),
		Write: trust.Require(l, a.write), Full: trust.Require(l, auth.FullTrust),
	}
}

type memberships struct{ people *access.Memberships }

// NewMemberships returns as whom operators know the people who call.
func NewMemberships(m *access.Memberships) authority.Memberships { return &memberships{m} }

// MembershipOf implements [authority.Memberships].
func (m *memberships) MembershipOf(ctx context.Context, who registry.Holder) (authority.Membership, error) {
	if _, ok := who.Service(); ok || who == "" {
		return authority.Membership{}, fault.New(fault.NotFound, "a service account is no person")
	}
	found, err := m.people.Of(ctx, auth.UserID(who))
	return authority.Membership{Email: string(found.Email), Groups: found.Groups}, err
}
