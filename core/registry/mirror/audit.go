package mirror

import (
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// NewVersionChange returns the audit event of a version that a mirror has changed: added, replaced,
// status or submitted.
func NewVersionChange(change string, m Name, server registry.Name, v registry.Version) audit.Change {
	details := registry.VersionDetails(server.String(), v.String())
	details["mirror"] = audit.Text(m)
	return registry.NewOperatorChange(audit.Action("mirror_"+change), details)
}
