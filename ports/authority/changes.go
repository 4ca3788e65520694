package authority

import (
	"net/netip"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
)

// DetailClient is the client of the authorization server by whose token somebody acts.
const DetailClient = "client"

// Change returns the audit event of the act. It is in the log of the person who acted.
func (a *Act) Change() audit.Change {
	details := registry.VersionDetails(a.ServerName, a.Version)
	details.Set("reason", a.Reason)
	details.Set("warning", a.Warning)
	details.Set("review", string(a.Review))
	details.Set("rule", string(a.Rule))
	details.Set("note", a.Note)
	details.Set("status", a.Status)
	details.Set("statusMessage", a.StatusMessage)
	details.Set("part", a.Part)
	details.Set("toolState", a.ToolState)
	a.Changed.Describe(details)
	return audit.Change{
		Category: audit.RegistryChange, Action: a.Action, Subject: a.Caller.describe(details),
		ByOperator: a.Caller.IsOperator(),
		Failed:     a.Reason != "", Details: details,
	}
}

// describe adds who the caller is to the details of an event, and returns the person in whose log
// the event is; empty for other callers.
func (c Caller) describe(details audit.Details) (person audit.Subject) {
	if p := c.publisher; p != nil {
		details["publisher"], details["authMethod"] = audit.Text(p.Subject), audit.Text(p.Method)
		details["policies"] = audit.Texts(policyIDs(p.Permissions))
	} else if f := c.foreign; f != nil {
		person = audit.Subject(f.Holder)
		details["issuer"], details["subject"] = audit.Text(f.Issuer), audit.Text(f.Subject)
	} else if service, ok := c.holder.Service(); ok {
		details["service"], details[audit.DetailActor] = audit.Text(service), audit.Text(c.Actor().Who)
	} else if c.kind == watcher {
		details[audit.DetailActor] = audit.Text(c.Actor().Who)
	} else if !c.IsOperator() {
		person = audit.Subject(c.holder)
		details["userId"], details[audit.DetailActor] = audit.Text(c.holder), audit.Text(c.Actor().Who)
		details.Set("sessionId", c.session)
	}
	if g := c.granted; g != nil {
		details.Set(DetailClient, g.Client)
	}
	details.Set("trustLevel", string(c.trust.Level))
	details.Set(audit.DetailToken, c.tokenPrefix())
	describeAddress(details, c.address)
	return person
}

// tokenPrefix returns the prefix of the token by which the caller acts; empty without one.
func (c Caller) tokenPrefix() string {
	t, _ := c.Token()
	return t.Prefix
}

// Actor returns who makes the changes of the caller.
func (c Caller) Actor() audit.Actor {
	switch c.kind {
	case person, visitor:
		return audit.Actor{Who: audit.PersonActor + string(c.holder), TokenPrefix: c.tokenPrefix()}
	case serviceAccount:
		return audit.Actor{Who: string(c.holder), TokenPrefix: c.tokenPrefix()}
	case provedPublisher:
		return audit.Actor{Who: "publisher:" + c.publisher.Subject}
	case watcher:
		return audit.Actor{Who: audit.ToolsActor}
	case foreigner:
		return audit.Actor{Who: "jwt:" + c.foreign.Issuer + " " + c.foreign.Subject}
	}
	return audit.Actor{}
}

// Refused returns the event of a change of an object of operators that was refused to the caller.
func (c Caller) Refused(category audit.Category, action audit.Action, o audit.Object, reason string) audit.Change {
	details := audit.About(audit.Details{"reason": audit.Text(reason)}, o)
	return audit.Change{
		Category: category, Action: action, Subject: c.describe(details), ByOperator: true, Failed: true,
		Details: details,
	}
}

// Change returns the audit event of the attempt. Only operators see it.
func (a *ProofAttempt) Change() audit.Change {
	details := audit.Details{"method": audit.Text(a.Method)}
	details.Set("domain", a.Domain)
	details.Set("issuer", a.Issuer)
	details.Set("subject", a.Subject)
	details.Set("service", a.Service)
	details.Set("keyFingerprint", a.Key)
	details.Set("reason", a.Reason)
	if len(a.Policies) > 0 {
		details["policies"] = audit.Texts(a.Policies)
	}
	if a.Holds {
		details[publisher.DetailHolds] = audit.Text("true")
		claims := audit.Details{}
		for name, value := range a.Claims {
			claims.Set(name, value)
		}
		details[publisher.DetailClaims] = claims
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
func policyIDs(list []publisher.Permission) []registry.PolicyID {
	ids := []registry.PolicyID{}
	for _, p := range list {
		if p.Policy != "" {
			ids = append(ids, p.Policy)
		}
	}
	return ids
}
