package authority

import (
	"net/netip"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
)

// Change returns the audit event of the act. It is in the log of the person who acted.
func (a *Act) Change() audit.Change {
	details := registry.VersionDetails(a.ServerName, a.Version)
	var user registry.Holder
	if p := a.Caller.publisher; p != nil {
		details["publisher"], details["authMethod"] = audit.Text(p.Subject), audit.Text(p.Method)
		details["policies"] = audit.Texts(policyIDs(p.Permissions))
	} else if !a.Caller.IsOperator() {
		user = a.Caller.holder
		details["userId"], details["sessionId"] = audit.Text(user), audit.Text(a.Caller.session)
		details["trustLevel"] = audit.Text(a.Caller.trust.Level)
	}
	details.Set("reason", a.Reason)
	details.Set("warning", a.Warning)
	details.Set("review", string(a.Review))
	details.Set("rule", string(a.Rule))
	details.Set("note", a.Note)
	describeAddress(details, a.Caller.address)
	return audit.Change{
		Category: audit.RegistryChange, Action: a.Action, Subject: audit.Subject(user),
		ByOperator: a.Caller.IsOperator(),
		Failed:     a.Reason != "", Details: details,
	}
}

// Change returns the audit event of the attempt. Only operators see it.
func (a *ProofAttempt) Change() audit.Change {
	details := audit.Details{"method": audit.Text(a.Method)}
	details.Set("domain", a.Domain)
	details.Set("issuer", a.Issuer)
	details.Set("subject", a.Subject)
	details.Set("keyFingerprint", a.Key)
	details.Set("reason", a.Reason)
	if len(a.Policies) > 0 {
		details["policies"] = audit.Texts(a.Policies)
	}
	describeAddress(details, a.Address)
	return audit.Change{Category: audit.PublisherProof, Failed: a.Reason != "", Details: details}
}

func describeAddress(d audit.Details, a netip.Addr) {
	if a.IsValid() {
		d["ipAddress"] = audit.Text(a.String())
	}
}

// policyIDs returns the policies of permissions.
func policyIDs(list []publisher.Permission) []publisher.PolicyID {
	ids := []publisher.PolicyID{}
	for _, p := range list {
		if p.Policy != "" {
			ids = append(ids, p.Policy)
		}
	}
	return ids
}
