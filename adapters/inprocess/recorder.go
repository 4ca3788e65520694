package inprocess

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

var _ authority.Recorder = (*Recorder)(nil)

// Recorder writes the changes of operators to the audit log. Their events have no user ID, because
// the log of a user contains only sign-ins and changes by that user; the change of a policy by a
// person has the ID of that person. It is safe for concurrent use.
type Recorder struct{ trail *audit.Trail }

// NewRecorder returns a Recorder that writes to t.
func NewRecorder(t *audit.Trail) *Recorder { return &Recorder{t} }

// RecordChanges implements [authority.Recorder].
func (r *Recorder) RecordChanges(ctx context.Context, changes ...authority.Change) error {
	entries := make([]audit.Entry, len(changes))
	for i, c := range changes {
		kind, details := describeChange(c)
		if details == nil {
			return fault.Newf(fault.Internal, "no audit event for a change of type %T", c)
		}
		entries[i] = audit.Entry{Type: kind, Success: true, Details: details}
		if p, ok := c.(authority.PolicyChange); ok && p.Actor != "" {
			entries[i].UserID = auth.UserID(p.Actor)
		} else {
			details[audit.Actor] = audit.Operator
		}
	}
	return r.trail.Record(ctx, entries...)
}

// describeMirror returns the details of a change of a mirror, or by one.
func describeMirror(c authority.Change) map[string]any {
	switch c := c.(type) {
	case authority.MirrorChange:
		if c.Given {
			return map[string]any{"action": "mirror_add", "mirror": string(c.Mirror), "url": c.URL}
		}
		return map[string]any{"action": "mirror_remove", "mirror": string(c.Mirror), "url": c.URL, "purged": c.Purged}
	case authority.MirroredVersion:
		details := map[string]any{
			"action": "mirror_" + c.Change, "mirror": string(c.Mirror), "serverName": c.ServerName, "version": c.Version,
		}
		if c.Review != "" {
			details["review"] = string(c.Review)
		}
		return details
	}
	return nil
}

// describeChange returns the type and the details of the event for a change. The details are nil if
// the type of the change is unknown.
func describeChange(c authority.Change) (auth.EventType, map[string]any) {
	switch c := c.(type) {
	case authority.GrantChange:
		action := "grant_remove"
		if c.Given {
			action = "grant_add"
		}
		return auth.AccountChange, map[string]any{"action": action, "userId": c.Holder, "grant": c.Action, "resource": c.Resource}
	case authority.PolicyChange:
		action := "publisher_remove"
		if c.Given {
			action = "publisher_add"
		}
		return auth.AccountChange, map[string]any{
			"action": action, "policy": c.Policy, "method": string(c.Method), "publisher": c.Subject, "resource": c.Pattern, "actions": c.Actions,
		}
	case authority.ReviewDecision:
		action := "reject"
		if c.Approved {
			action = "approve"
		}
		return auth.RegistryChange, map[string]any{"action": action, "review": string(c.Review), "serverName": c.ServerName, "version": c.Version}
	case authority.ReviewRuleChange:
		action := "review_rule_remove"
		if c.Given {
			action = "review_rule_add"
		}
		return auth.RegistryChange, map[string]any{
			"action": action, "rule": string(c.Rule), "resource": c.Pattern, "publisher": c.Publisher, "when": string(c.When),
		}
	case authority.ViewChange:
		details := map[string]any{"action": c.Action, "view": string(c.View)}
		if c.Token != "" {
			details["token"] = string(c.Token)
		}
		return auth.RegistryChange, details
	case authority.WebhookChange:
		details := map[string]any{"action": c.Action, "webhook": string(c.Webhook), "host": c.Host}
		if c.Event != "" {
			details["event"] = string(c.Event)
		}
		return auth.RegistryChange, details
	case authority.MirrorChange, authority.MirroredVersion:
		return auth.RegistryChange, describeMirror(c)
	case authority.ImportedVersion:
		return auth.RegistryChange, map[string]any{"action": "import", "serverName": c.ServerName, "version": c.Version}
	case authority.QuarantineChange:
		return auth.RegistryChange, describeQuarantine(c)
	case authority.MethodChange:
		return auth.MethodsChange, map[string]any{"action": c.Action, "methodId": c.ID, "path": c.Path, "service": c.Service}
	}
	return "", nil
}

func describeQuarantine(c authority.QuarantineChange) map[string]any {
	details := map[string]any{"action": "release", "serverName": c.ServerName}
	if c.Added {
		details["action"], details["note"] = "quarantine", c.Reason
	}
	if c.Version != "" {
		details["version"] = c.Version
	}
	return details
}
