package authapi

import (
	"mime"
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/federating"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
)

type providerList struct {
	Providers []providerOffer `json:"providers"`
	Password  bool            `json:"password"`
}

type providerOffer struct {
	Name        company.Name `json:"name"`
	DisplayName string       `json:"displayName"`
}

// listProviders lists the providers at which people may sign in, for an e-mail address those of its
// domain.
func (a *API) listProviders(c *fiber.Ctx) error {
	var email auth.Email
	if text := strings.Clone(c.Query("email")); text != "" {
		var err error
		if email, err = auth.ParseEmail(text); err != nil {
			return err
		}
	}
	offers, password, err := a.use.Companies.Offered(c.UserContext(), email)
	if err != nil {
		return err
	}
	return sendJSON(c, providerList{
		each.Map(offers, func(o federating.Offer) providerOffer { return providerOffer(o) }), password,
	})
}

type identityList struct {
	Identities []linkedIdentity `json:"identities"`
}

type linkedIdentity struct {
	ID         company.IdentityID `json:"id"`
	Provider   company.Name       `json:"provider"` // empty if it is not configured any more
	Subject    string             `json:"subject"`
	Email      auth.Email         `json:"email"`
	LinkedAt   string             `json:"linkedAt"`
	LastUsedAt string             `json:"lastUsedAt"`
}

func (a *API) listIdentities(c *fiber.Ctx, caller auth.Session) error {
	found, err := a.use.Companies.Identities(c.UserContext(), caller.UserID)
	if err != nil {
		return err
	}
	return sendJSON(c, identityList{each.MapRef(found, newLinkedIdentity)})
}

func newLinkedIdentity(l *federating.Linked) linkedIdentity {
	return linkedIdentity{
		l.ID, l.Provider, l.Subject, l.Email, FormatTime(l.LinkedAt), FormatTime(l.LastUsedAt),
	}
}

// IdentityShape returns an identity as the API shows it to its person.
func IdentityShape(l *federating.Linked) any { return newLinkedIdentity(l) }

func (a *API) removeIdentity(c *fiber.Ctx, caller auth.Session, id company.IdentityID) error {
	_, err := a.use.Companies.Unlink(c.UserContext(), caller, rest.Address(c), id)
	return replyEmpty(c, err)
}

// logoutRefusal is the body of a refused logout token (OpenID Connect Back-Channel Logout 1.0, section
// 2.8).
type logoutRefusal struct {
	Error       string `json:"error"`
	Description string `json:"error_description"`
}

// logOutAtCompany ends the sessions that a logout token of a provider names.
func (a *API) logOutAtCompany(c *fiber.Ctx) error {
	if kind, _, err := mime.ParseMediaType(c.Get(fiber.HeaderContentType)); err != nil || kind != fiber.MIMEApplicationForm {
		return fiber.NewError(http.StatusUnsupportedMediaType, "the body must be a form")
	}
	err := a.use.Companies.LogOut(c.UserContext(), strings.Clone(c.Params("name")), strings.Clone(c.FormValue("logout_token")))
	c.Set(fiber.HeaderCacheControl, "no-store")
	if f, ok := fault.As(err); ok && f.Kind == fault.Unauthenticated {
		return c.Status(http.StatusBadRequest).JSON(logoutRefusal{"invalid_request", f.Message})
	}
	return err
}
