package account

import (
	"slices"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/federating"
)

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
