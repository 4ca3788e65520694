package registry

import (
	"strings"

	"github.com/tollgate-dev/tollgate/core/audit"
)

// This file makes the audit events that several use cases of the registry record.

// VersionDetails returns the details of an event about a version of a server; about the server if
// the version is empty.
func VersionDetails(name, version string) audit.Details {
	details := audit.Details{audit.DetailServer: audit.Text(name)}
	details.Set("version", version)
	return details
}

// NewQuarantineChange returns the event of an operator or an import that put q in quarantine.
func NewQuarantineChange(q Quarantined) audit.Change {
	details := VersionDetails(q.Name.String(), q.Version.String())
	details["note"] = audit.Text(q.Reason)
	return NewOperatorChange("quarantine", details)
}

// Object returns the grant as the audit log describes it.
func (g Grant) Object() audit.Object {
	return audit.Object{Kind: "grant", Key: strings.Join([]string{string(g.Holder), string(g.Action), g.Pattern.String()}, " ")}
}

// NewOperatorChange returns the event of an operator who changed the registry.
func NewOperatorChange(action audit.Action, details audit.Details) audit.Change {
	return audit.Change{Category: audit.RegistryChange, Action: action, ByOperator: true, Details: details}
}
