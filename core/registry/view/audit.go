package view

import (
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// Object returns the view as the audit log describes it.
func (v View) Object() audit.Object {
	return audit.Object{Kind: "view", Key: string(v.Name), Fields: audit.Details{
		"include": audit.Texts(registry.PatternTexts(v.Include)), "exclude": audit.Texts(registry.PatternTexts(v.Exclude)),
		"deprecated": audit.Text(v.Deprecated), "access": audit.Text(v.Access), "managedBy": audit.Text(v.ManagedBy),
		"people": audit.Texts(v.Members.People), "groups": audit.Texts(v.Members.Groups),
	}}
}
