package inprocess

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/audit"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

var _ authority.Acts = (*Acts)(nil)

// Acts writes what callers do to the registry to the audit log. It is safe for concurrent use.
type Acts struct{ trail *audit.Trail }

// NewActs returns Acts that writes to t.
func NewActs(t *audit.Trail) *Acts { return &Acts{t} }

// Record implements [authority.Acts].
func (a *Acts) Record(ctx context.Context, act authority.Act) error {
	details := map[string]any{"action": act.Action, "serverName": act.ServerName}
	var user registry.Holder
	if p := act.Caller.Publisher(); p != nil {
		details["publisher"], details["authMethod"], details["policies"] = p.Subject, string(p.Method), policyIDs(p.Permissions)
	} else if act.Caller.IsOperator() {
		details[audit.Actor] = audit.Operator
	} else {
		user, _ = act.Caller.Person() // only a publisher has none
		details["userId"] = string(user)
		details["sessionId"], details["trustLevel"] = act.Caller.Session()
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
	if from := act.Caller.Address(); from.IsValid() {
		details["ipAddress"] = from.String()
	}
	return a.trail.Record(ctx, audit.Entry{
		Type: auth.RegistryChange, UserID: auth.UserID(user), Success: act.Reason == "", Details: details,
	})
}
