package account

import (
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/federating"
	"github.com/tollgate-dev/tollgate/core/fault"
)

func (p *Pages) showPassword(v *site.Visit, problems site.Problems) error {
	return v.Render(passwordPage, site.Head{Title: "Change the password", Problems: problems}, nil)
}

// checkPassword returns the rule that the new password breaks.
func (p *Pages) checkPassword(v *site.Visit) error {
	next, err := auth.NewPassword("newPassword", v.Form.Get("newPassword"))
	if err != nil {
		return err
	}
	return p.ports.Credentials.CheckPassword(&v.Account, next)
}

// changePassword changes the password, ends the other sessions and changes the cookie of this one.
func (p *Pages) changePassword(v *site.Visit) error {
	present, err := auth.NewPassword("currentPassword", v.Form.Get("currentPassword"))
	if err != nil {
		return err
	}
	next, err := auth.NewPassword("newPassword", v.Form.Get("newPassword"))
	if err != nil {
		return err
	}
	if err := p.ports.Credentials.ChangePassword(v.UserContext(), v.Session, present, next); err != nil {
		return asProblem(err, "currentPassword")
	}
	if err := v.RotateCookie(); err != nil {
		return err
	}
	return p.offerTokens(v, Path, "password", time.Time{})
}

// asProblem returns the error for a wrong secret as a problem of its field.
func asProblem(err error, field string) error {
	f, ok := fault.As(err)
	if !ok || f.Kind != fault.Unauthenticated {
		return err
	}
	return auth.InvalidField(f.Code, field, "is wrong")
}

// addCompanies adds the identities of the person, and the providers at which there is no identity.
func (p *Pages) addCompanies(v *site.Visit, view *accountView) (err error) {
	if view.Identities, err = p.ports.Companies.Identities(v.UserContext(), v.Session.UserID); err != nil {
		return err
	}
	offers, _, err := p.ports.Companies.Offered(v.UserContext(), "")
	for _, o := range offers {
		if !slices.ContainsFunc(view.Identities, func(l federating.Linked) bool { return l.Provider == o.Name }) {
			view.Offers = append(view.Offers, o)
		}
	}
	return err
}

func (p *Pages) unlink(v *site.Visit) error {
	id, err := pathID[company.IdentityID](v)
	if err != nil {
		return err
	}
	done, err := p.ports.Companies.Unlink(v.UserContext(), v.Session, rest.Address(v.Ctx), id)
	if err != nil {
		return err
	}
	return p.offerTokens(v, Path, "unlinked", done.Since)
}
