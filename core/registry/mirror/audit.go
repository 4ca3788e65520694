package mirror

import (
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// Object returns the mirror as the audit log describes it: the URL without its secret.
func (m *Mirror) Object() audit.Object {
	fields := m.Fields()
	delete(fields, "name")
	fields[audit.FieldSecret], fields["managedBy"] = audit.Text(audit.HashSecret(m.URL.Address())), audit.Text(m.ManagedBy)
	return audit.Object{Kind: Kind.Name, Key: string(m.Name), Fields: fields}
}

// NewVersionChange returns the audit event of a version that a mirror has changed: added, replaced,
// status or submitted. before are the releases of the server, of which the event says what their
// status was; optional.
func NewVersionChange(change string, m Name, r registry.Release, before ...registry.Release) audit.Change {
	details := registry.VersionDetails(r.Name.String(), r.Version.String())
	details["mirror"] = audit.Text(m)
	registry.StatusChangeOf(before, []registry.Release{r}).Describe(details)
	return registry.NewOperatorChange(audit.Action("mirror_"+change), details)
}
