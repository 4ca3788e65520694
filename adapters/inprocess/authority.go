package inprocess

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/access"
	"github.com/tollgate-dev/tollgate/core/auth/audit"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// Authority identifies the callers of the registry by their access tokens (contract R-34). It is
// safe for concurrent use.
type Authority struct {
	checker *access.Checker
	trail   *audit.Trail
	level   auth.TrustLevel
}

// NewAuthority returns an Authority that requires a trust level for writes to the registry
// (REGISTRY_WRITE_TRUST).
func NewAuthority(c *access.Checker, t *audit.Trail, level auth.TrustLevel) *Authority {
	return &Authority{checker: c, trail: t, level: level}
}

// Identify returns the caller with an access token.
func (a *Authority) Identify(ctx context.Context, token string) (authority.Caller, error) {
	identity, err := a.checker.Identify(ctx, auth.AccessToken(token))
	if err != nil {
		return authority.Caller{}, err
	}
	if identity.Publisher != nil {
		p, err := readPublisher(identity.Publisher)
		return authority.Caller{Publisher: p}, err
	}
	s, err := a.checker.Confirm(ctx, identity.Session, auth.FullTrust) // the highest level that a write requires
	if err != nil {
		return authority.Caller{}, err
	}
	return authority.Caller{
		UserID: string(s.UserID), SessionID: string(s.ID), TrustLevel: s.TrustLevel.String(), Address: s.IPAddress,
	}, nil
}

// RequireTrust returns an error if the trust level of the caller is too low for writes to the
// registry.
func (a *Authority) RequireTrust(_ context.Context, c authority.Caller) error {
	return requireTrust(c, a.level)
}

// RequireVerified returns an error if the trust level of the caller is below UNVERIFIED.
func (a *Authority) RequireVerified(_ context.Context, c authority.Caller) error {
	return requireTrust(c, auth.Unverified)
}

// RequireFullTrust returns an error if the trust level of the caller is below FULL_TRUST.
func (a *Authority) RequireFullTrust(_ context.Context, c authority.Caller) error {
	return requireTrust(c, auth.FullTrust)
}

func requireTrust(c authority.Caller, level auth.TrustLevel) error {
	have, err := auth.ParseTrustLevel(c.TrustLevel)
	if err != nil {
		have = 0 // an unknown level permits nothing
	}
	return trust.Require(have, level)
}

// Record writes an act to the audit log.
func (a *Authority) Record(ctx context.Context, act authority.Act) error {
	details := map[string]any{"action": act.Action, "serverName": act.ServerName}
	if p := act.Caller.Publisher; p != nil {
		details["publisher"], details["authMethod"], details["policies"] = p.Subject, string(p.Method), policyIDs(p.Permissions)
	} else {
		details["userId"], details["sessionId"], details["trustLevel"] = act.Caller.UserID, act.Caller.SessionID, act.Caller.TrustLevel
	}
	if act.Version != "" {
		details["version"] = act.Version
	}
	if act.Reason != "" {
		details["reason"] = act.Reason
	}
	if act.Warning != "" {
		details["warning"] = act.Warning
	}
	if act.Review != "" {
		details["review"] = string(act.Review)
	}
	if act.Rule != "" {
		details["rule"] = string(act.Rule)
	}
	if act.Note != "" {
		details["note"] = act.Note
	}
	if act.Caller.Address.IsValid() {
		details["ipAddress"] = act.Caller.Address.String()
	}
	return a.trail.Record(ctx, audit.Entry{
		Type: auth.RegistryChange, UserID: auth.UserID(act.Caller.UserID), Success: act.Reason == "", Details: details,
	})
}
