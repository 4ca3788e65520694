package view

import "github.com/tollgate-dev/tollgate/core/audit"

// Object returns the view for the audit log.
func (v View) Object() audit.Object {
	fields := v.Fields()
	delete(fields, "name")
	fields["managedBy"] = audit.Text(v.ManagedBy)
	return audit.Object{Kind: Kind.Name, Key: string(v.Name), Fields: fields}
}
