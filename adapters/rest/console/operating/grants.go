package operating

import (
	"context"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
)

const grantsPath = rightsPath + "/grants"

// grantInputs are the fields of a grant without its holder.
var grantInputs = []site.Input{
	{Name: "action", Label: "May", Kind: "select", Options: site.Options(
		registry.ActionPublish, registry.ActionEdit, registry.ActionReview, registry.ActionOperate)},
	{
		Name: "resource", Label: "Servers",
		Hint: "A name, a prefix such as com.example/*, or *. Empty for operate.",
	},
}

func (p *Pages) mountGrants(r fiber.Router) {
	p.site.Post(r, grantsPath, 1, p.act("Add this grant", p.addGrant, p.rights))
	p.site.Post(r, grantsPath+"/remove", 2, p.act("Remove this grant", p.removeGrant, nil))
}

// newGrantForm returns the form of a grant.
func newGrantForm(v *site.Visit, problems site.Problems) site.FormView {
	email := site.Input{
		Name: "email", Label: "E-mail address", Required: true, Hint: "Or service: and the name of a service account.",
	}
	return v.Fill(site.Form{
		Action: grantsPath, Button: "Add this grant", Inputs: append([]site.Input{email}, grantInputs...),
	}, nil, problems)
}

// formGrant returns the grant that a form describes, of a person or of a service account.
func (p *Pages) formGrant(ctx context.Context, v *site.Visit) (registry.Grant, error) {
	holder := registry.Holder(v.Trimmed("email"))
	if _, ok := auth.Owner(holder).Service(); !ok {
		var err error
		if holder, err = p.personOf(ctx, "email", string(holder)); err != nil {
			return registry.Grant{}, err
		}
	}
	return registry.ParseGrant(holder, v.Form.Get("action"), v.Trimmed("resource"))
}

// personOf returns the person with an e-mail address in a field of a form.
func (p *Pages) personOf(ctx context.Context, field, text string) (registry.Holder, error) {
	email, err := readEmail(field, text)
	if err != nil {
		return "", err
	}
	a, err := p.ports.People.ByEmail(ctx, email)
	if fault.Is(err, fault.NotFound) { // the form is at fault, not the address
		err = auth.InvalidField(auth.CodeInvalidInput, field, "has no account")
	}
	return registry.Holder(a.ID), err
}

// readEmail returns the e-mail address in a field of a form.
func readEmail(field, text string) (auth.Email, error) {
	email, err := auth.ParseEmail(text)
	if err != nil {
		err = auth.InvalidField(auth.CodeInvalidInput, field, "must be an e-mail address")
	}
	return email, err
}

func (p *Pages) addGrant(ctx context.Context, v *site.Visit) error {
	g, err := p.formGrant(ctx, v)
	if err == nil {
		err = p.ports.GrantChanges.Add(ctx, g)
	}
	return v.Done(err, rightsPath, "granted")
}

func (p *Pages) removeGrant(ctx context.Context, v *site.Visit) error {
	g, err := p.formGrant(ctx, v)
	if err == nil {
		err = p.removeByHand(ctx, g)
	}
	return v.Done(err, rightsPath, "revoked")
}

// removeByHand removes a grant that no file manages.
func (p *Pages) removeByHand(ctx context.Context, g registry.Grant) error {
	return p.ports.GrantChanges.Remove(ctx, g, byHand(func(r *registry.GrantRecord) string { return r.ManagedBy }))
}
