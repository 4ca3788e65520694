package inprocess

import (
	"context"
	"net/netip"
	"slices"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/access/deciding"
	"github.com/tollgate-dev/tollgate/core/auth"
	authaccess "github.com/tollgate-dev/tollgate/core/auth/access"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/scope"
	"github.com/tollgate-dev/tollgate/core/toolserver"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// applicationOf returns the application that calls this registry, at the level that the token carries, or
// the session if that is lower now (contract T-3).
func (a *Authority) applicationOf(
	ctx context.Context, identity *authaccess.Identity, from netip.Addr, level auth.TrustLevel,
) (authority.Caller, error) {
	if identity.Granted.Resource != nil {
		return authority.Caller{}, authority.ErrOtherResource
	}
	g, live, err := a.grantedOf(ctx, identity, level)
	if err != nil {
		return authority.Caller{}, err
	}
	g.Trust = a.trustAt(min(live, identity.Granted.Level))
	if slices.Contains(identity.Granted.Scopes, oauth.ScopeRead) {
		g.Scopes = append(g.Scopes, scope.Read)
	}
	if slices.Contains(identity.Granted.Scopes, oauth.ScopeWrite) {
		g.Scopes = append(g.Scopes, scope.Publish, scope.Edit)
	}
	return authority.NewGranted(g, from), nil
}

// visitorOf returns the application that calls a tool server, at the live level (contract T-16).
func (a *Authority) visitorOf(
	ctx context.Context, identity *authaccess.Identity, from netip.Addr,
) (authority.Caller, error) {
	g, live, err := a.grantedOf(ctx, identity, auth.Unverified)
	if err != nil {
		return authority.Caller{}, err
	}
	g.Trust.Level = authority.TrustLevel(live.String())
	resource := resourceOf(identity.Granted.Resource)
	g.Resource, g.Groups = &resource, identity.Granted.Of.Groups
	return authority.NewGranted(g, from), nil
}

// grantedOf returns who has granted what, and the live level, which is that of the grant without a
// session.
func (a *Authority) grantedOf(
	ctx context.Context, identity *authaccess.Identity, level auth.TrustLevel,
) (g authority.Granted, live auth.TrustLevel, err error) {
	of := &identity.Granted.Of
	live = of.Level
	if of.SessionID != "" {
		var s auth.Session
		s, err = a.checker.Confirm(ctx, identity.Session, level)
		live = s.TrustLevel
	}
	return authority.Granted{
		UserID: registry.Holder(of.UserID), SessionID: string(of.SessionID), Client: string(of.Client),
	}, live, err
}

// resourceOf returns a resource as decisions know it.
func resourceOf(r *oauth.Resource) access.Resource {
	url, _ := toolserver.CanonicalURL(r.URL) // one that cannot be read is closed
	return access.Resource{URL: url, Servers: r.Servers}
}

// NewResources returns the resources that operators name in questions about calls; i is nil while there is
// no authorization server.
func NewResources(i *authaccess.Issued) deciding.Resources {
	return func(ctx context.Context, text string) (access.Resource, error) {
		if i == nil {
			return access.Resource{}, fault.New(fault.NotFound, "there is no authorization server")
		}
		found, err := i.FindResource(ctx, text)
		if err == nil && found == nil {
			err = fault.New(fault.NotFound, "this registry is no tool server")
		}
		if err != nil {
			return access.Resource{}, err
		}
		return resourceOf(found), nil
	}
}
