package registry

import (
	"slices"
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

// StatusChange is what the status and the message of versions were before a change, and are after
// it. Those before are separated by commas if the versions had several.
type StatusChange struct{ Status, Message, NewStatus, NewMessage string }

// StatusChangeOf returns what a change did to the status of versions; the zero value for new ones.
// after are the versions that changed, and before has them too, among others.
func StatusChangeOf(before, after []Release) StatusChange {
	var statuses, messages []string
	for _, r := range before {
		if slices.ContainsFunc(after, func(a Release) bool { return a.Version == r.Version }) {
			statuses, messages = append(statuses, string(r.Status)), append(messages, r.StatusMessage)
		}
	}
	if len(statuses) == 0 {
		return StatusChange{}
	}
	return StatusChange{
		joinDifferent(statuses), joinDifferent(messages), string(after[0].Status), after[0].StatusMessage,
	}
}

func joinDifferent(texts []string) string {
	slices.Sort(texts)
	return strings.Join(slices.DeleteFunc(slices.Compact(texts), func(t string) bool { return t == "" }), ", ")
}

// Describe adds from what to what the status changed to the details of an event; nothing for no
// change.
func (c StatusChange) Describe(d audit.Details) {
	changes := audit.Compare(
		audit.Details{"status": audit.Text(c.Status), "statusMessage": audit.Text(c.Message)},
		audit.Details{"status": audit.Text(c.NewStatus), "statusMessage": audit.Text(c.NewMessage)})
	if len(changes) > 0 {
		d[audit.DetailChanges] = changes
	}
}

// Object returns the grant as the audit log describes it.
func (g Grant) Object() audit.Object {
	return audit.Object{Kind: "grant", Key: strings.Join([]string{string(g.Holder), string(g.Action), g.Pattern.String()}, " ")}
}

// NewOperatorChange returns the event of an operator who changed the registry.
func NewOperatorChange(action audit.Action, details audit.Details) audit.Change {
	return audit.Change{Category: audit.RegistryChange, Action: action, ByOperator: true, Details: details}
}
