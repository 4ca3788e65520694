package company

import (
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fields"
)

// GroupGrant is a grant that the members of a group get.
type GroupGrant struct{ Group, Action, Resource string }

// String returns the grant as ReadGroupGrants reads it.
func (g GroupGrant) String() string { return g.Group + "=" + g.Action + ":" + g.Resource }

// ReadGroupGrants returns the field groupGrants for Parse of texts like
// developers=publish:com.example/*, or fault.Invalid.
func ReadGroupGrants(texts []string) (grants audit.List, err error) {
	for i, text := range texts {
		n := strings.LastIndex(text, "=")
		action, resource, ok := strings.Cut(text[n+1:], ":")
		if n < 0 || !ok {
			return nil, fields.Invalid(fields.Item("groupGrants", i), " must be GROUP=ACTION:RESOURCE, for example developers=publish:com.example/*")
		}
		grants = append(grants, audit.Details{
			"group": audit.Text(text[:n]), "action": audit.Text(action), "resource": audit.Text(resource),
		})
	}
	return grants, nil
}

func (r *reader) grants() (all []GroupGrant) {
	if len(r.Values.List("groupGrants")) > maxGrants {
		r.Note(fields.Invalid("groupGrants", " must have at most %d entries", maxGrants))
		return nil
	}
	for i, g := range r.Values.Objects("groupGrants") {
		one := GroupGrant{g.Text("group"), g.Text("action"), g.Text("resource")}
		switch {
		case !fields.IsText(one.Group, fields.MaxText):
			r.Note(fields.Invalid(fields.Item("groupGrants", i)+".group", " must have 1 to %d characters", fields.MaxText))
		case one.Action == "" || one.Resource == "":
			r.Note(fields.Invalid(fields.Item("groupGrants", i), " must have an action and a resource"))
		case slices.Contains(all, one):
			r.Note(fields.Invalid(fields.Item("groupGrants", i), " is there twice"))
		}
		all = append(all, one)
	}
	return all
}

// GrantsOf returns the grants of the members of groups, each once.
func (p *Provider) GrantsOf(groups []string) (grants []GroupGrant) {
	for _, g := range p.GroupGrants {
		one := GroupGrant{Action: g.Action, Resource: g.Resource}
		if slices.Contains(groups, g.Group) && !slices.Contains(grants, one) {
			grants = append(grants, one)
		}
	}
	return grants
}
