package account

import (
	"encoding/base64"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"rsc.io/qr"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/adapters/rest/passkeyjson"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/credentials"
	"github.com/tollgate-dev/tollgate/core/auth/federating"
	"github.com/tollgate-dev/tollgate/core/auth/passkeys"
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

func (p *Pages) unlink(v *site.Visit, id company.IdentityID) error {
	done, err := p.ports.Companies.Unlink(v.UserContext(), v.Session, rest.Address(v.Ctx), id)
	if err != nil {
		return err
	}
	return p.offerTokens(v, Path, "unlinked", done.Since)
}

// The fields of codes of the page. Each form has its own, so that a problem is shown at its form.
const (
	codeField        = "code"
	anotherCodeField = "code-another"
	removeCodeField  = "code-remove"
	codesCodeField   = "code-codes"
)

// secretView is the secret of an authenticator that is being set up.
type secretView struct {
	Path   string // of the form with its first code
	Secret string
	URI    string       // of the secret, for apps
	Image  template.URL // the QR code; otherwise empty
}

// authenticatorView is the page of the authenticator app.
type authenticatorView struct {
	Apps  []auth.Authenticator // those that are active
	Max   int
	Codes int         // recovery codes that are left
	Setup *secretView // nil if none is being set up
	Name  string      // of another app, as it was typed
}

func (p *Pages) mountAuthenticator(r fiber.Router) {
	r.Get(authenticatorPath,
		p.site.Require(auth.Unverified, func(v *site.Visit) error { return p.showAuthenticator(v, nil) }))
	p.site.Post(r, authenticatorPath, 0, site.Act{
		Level: auth.FullTrust, Title: "Set up an authenticator app", Do: p.enrol,
	})
	p.site.Post(r, activatePath, 1, site.Act{
		Level: auth.FullTrust, Title: "Turn the authenticator app on", Do: p.activate, Show: p.showSetup(activatePath),
	})
	p.site.Post(r, anotherPath, 1, site.Act{
		Level: auth.FullTrust, Title: "Add another authenticator app", Do: p.enrolAnother, Show: p.showAuthenticator,
	})
	p.site.Post(r, activateMorePath, 2, site.Act{
		Level: auth.FullTrust, Title: "Add another authenticator app", Do: p.activateAnother,
		Show: p.showSetup(activateMorePath),
	})
	p.site.Post(r, removePath, 1, site.Act{
		Level: auth.FullTrust, Title: "Remove an authenticator app", Do: p.removeAuthenticator, Show: p.showAuthenticator,
	})
	p.site.Post(r, codesPath, 1, site.Act{
		Level: auth.FullTrust, Title: "Make new recovery codes", Do: p.renewCodes, Show: p.showAuthenticator,
	})
	p.site.Post(r, disablePath, 1, site.Act{
		Level: auth.FullTrust, Title: "Turn the authenticator app off", Do: p.disable, Show: p.showAuthenticator,
	})
}

func (p *Pages) showAuthenticator(v *site.Visit, problems site.Problems) error {
	mfa := &v.Account.MFA
	return v.Render(authenticatorPage, site.Head{
		Title: "Authenticator app", Notice: notices[v.Text("done")], Problems: problems,
	}, authenticatorView{
		Apps: mfa.Authenticators(), Max: auth.MaxAuthenticators, Codes: len(mfa.Recovery), Name: v.Form.Get("name"),
	})
}

// showSetup returns what shows the secret of an authenticator with the form for its first code.
func (p *Pages) showSetup(path string) func(v *site.Visit, problems site.Problems) error {
	return func(v *site.Visit, problems site.Problems) error {
		view := &secretView{Path: path, Secret: v.Form.Get("secret"), URI: v.Form.Get("uri")}
		if view.Secret == "" {
			return p.showAuthenticator(v, problems)
		}
		if image, err := drawQR(view.URI); err == nil {
			view.Image = image
		}
		return v.Render(authenticatorPage, site.Head{
			Title: "Set up an authenticator app", Problems: problems,
		}, authenticatorView{Setup: view})
	}
}

// enrol shows the secret of a new authenticator, once.
func (p *Pages) enrol(v *site.Visit) error {
	e, err := p.ports.Credentials.Enrol(v.UserContext(), v.Session, auth.Password{})
	if err != nil {
		return err
	}
	return p.showEnrolment(v, e, activatePath)
}

// enrolAnother shows the secret of a further authenticator, once.
func (p *Pages) enrolAnother(v *site.Visit) error {
	e, err := p.ports.Credentials.EnrolAnother(v.UserContext(), v.Session, v.Form.Get("name"), readCode(v, anotherCodeField))
	if err != nil {
		return asProblem(err, anotherCodeField)
	}
	return p.showEnrolment(v, e, activateMorePath)
}

// showEnrolment shows a secret, and where its first code is sent.
func (p *Pages) showEnrolment(v *site.Visit, e credentials.Enrolment, path string) error {
	v.Form.Set("secret", groups(e.Secret.Base32()))
	v.Form.Set("uri", e.URI)
	return p.showSetup(path)(v, nil)
}

// drawQR returns a text as a QR code in a data URL.
func drawQR(text string) (template.URL, error) {
	code, err := qr.Encode(text, qr.M)
	if err != nil {
		return "", fmt.Errorf("draw a QR code: %w", err)
	}
	// #nosec G203 -- an image of our own
	return template.URL("data:image/png;base64," + base64.StdEncoding.EncodeToString(code.PNG())), nil
}

// groups returns a secret in groups of four, as people type it.
func groups(secret string) string {
	const size = 4
	var b strings.Builder
	for i, c := range secret {
		if i > 0 && i%size == 0 {
			b.WriteByte(' ')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// activate turns the authenticator on, and shows the recovery codes, once.
func (p *Pages) activate(v *site.Visit) error {
	codes, err := p.ports.Credentials.Activate(v.UserContext(), v.Session, readCode(v, codeField))
	if err != nil {
		return asProblem(err, codeField)
	}
	if err := v.RotateCookie(); err != nil {
		return err
	}
	return p.showCodes(v, codes, "The authenticator app is on.")
}

func (p *Pages) activateAnother(v *site.Visit) error {
	if err := p.ports.Credentials.ActivateAnother(v.UserContext(), v.Session, readCode(v, codeField)); err != nil {
		return asProblem(err, codeField)
	}
	return v.Done(v.RotateCookie(), authenticatorPath, "another")
}

func (p *Pages) removeAuthenticator(v *site.Visit) error {
	id := auth.AuthenticatorID(v.Form.Get("app"))
	err := p.ports.Credentials.RemoveAuthenticator(v.UserContext(), v.Session, id, readCode(v, removeCodeField))
	if err != nil {
		return asProblem(err, removeCodeField)
	}
	return v.Done(v.RotateCookie(), authenticatorPath, "removed")
}

// renewCodes shows new recovery codes, once.
func (p *Pages) renewCodes(v *site.Visit) error {
	codes, err := p.ports.Credentials.RenewRecoveryCodes(v.UserContext(), v.Session, readCode(v, codesCodeField))
	if err != nil {
		return asProblem(err, codesCodeField)
	}
	if err := v.RotateCookie(); err != nil {
		return err
	}
	return p.showCodes(v, codes, "You have new recovery codes. The old ones are not accepted any more.")
}

// showCodes shows recovery codes.
func (*Pages) showCodes(v *site.Visit, codes []auth.OTP, notice string) error {
	shown := make([]string, len(codes)) // an OTP prints as a placeholder
	for i, c := range codes {
		shown[i] = string(c)
	}
	return v.Render(recoveryPage, site.Head{Title: "Recovery codes", Notice: notice}, shown)
}

func (p *Pages) disable(v *site.Visit) error {
	if err := p.ports.Credentials.Disable(v.UserContext(), v.Session, readCode(v, codeField)); err != nil {
		return asProblem(err, codeField)
	}
	return v.Done(v.RotateCookie(), authenticatorPath, "disabled")
}

// readCode returns the code in a field of the form, without the spaces that people copy with it.
func readCode(v *site.Visit, field string) auth.OTP {
	return auth.OTP(strings.Join(strings.Fields(v.Form.Get(field)), ""))
}

const passkeysPath = Path + "/passkeys"

var passkeysPage = site.NewPage(templates, "templates/passkeys.html")

func (p *Pages) mountPasskeys(r fiber.Router) {
	r.Get(passkeysPath, p.site.Require(auth.Unverified, func(v *site.Visit) error { return p.showPasskeys(v, nil) }))
	r.Post(passkeysPath+"/begin", p.site.Open(p.beginPasskey))
	p.site.Post(r, passkeysPath, 0, site.Act{
		Level: auth.FullTrust, Title: "Add a passkey", Do: p.addPasskey, Show: p.showPasskeys,
	})
	p.site.Post(r, passkeysPath+"/:id/name", 2, site.Act{
		Level: auth.FullTrust, Title: "Rename this passkey", Do: withID(p.renamePasskey),
	})
	p.site.Post(r, passkeysPath+"/:id/remove", 2, site.Act{
		Level: auth.FullTrust, Title: "Remove this passkey", Do: withID(p.removePasskey),
	})
}

// passkeysView is the page with the passkeys.
type passkeysView struct {
	Passkeys  []auth.Passkey
	Name      string // of the next one, as it was typed
	Permitted bool   // browsers permit passkeys at this address
}

func (p *Pages) showPasskeys(v *site.Visit, problems site.Problems) error {
	all, err := p.ports.Passkeys.List(v.UserContext(), v.Session.UserID)
	if err != nil {
		return err
	}
	_, refused := passkeyjson.Party(v.Ctx, p.ports.Passkeys)
	return v.Render(passkeysPage, site.Head{
		Title: "Passkeys", Notice: notices[v.Text("done")], Problems: problems,
	}, passkeysView{all, v.Form.Get("name"), refused == nil})
}

// beginPasskey answers with the options of a registration.
func (p *Pages) beginPasskey(v *site.Visit) error {
	party, err := passkeyjson.Party(v.Ctx, p.ports.Passkeys)
	if err != nil {
		return err
	}
	s, err := p.ports.Passkeys.BeginRegistration(v.UserContext(), v.Session, party)
	if err != nil {
		return err
	}
	return passkeyjson.Send(v.Ctx, string(s.ID), passkeyjson.NewCreation(s.Options))
}

// addPasskey registers a passkey. The form comes without one if no options could be had for it: then
// the error says why.
func (p *Pages) addPasskey(v *site.Visit) error {
	party, err := passkeyjson.Party(v.Ctx, p.ports.Passkeys)
	if err != nil {
		return err
	}
	if v.Form.Get("credential") == "" {
		if _, err := p.ports.Passkeys.BeginRegistration(v.UserContext(), v.Session, party); err != nil {
			return err
		}
	}
	_, err = p.ports.Passkeys.Register(v.UserContext(), v.Session, passkeys.Answer{
		Party: party, Ceremony: passkeys.CeremonyID(v.Form.Get("ceremony")), Response: []byte(v.Form.Get("credential")),
	}, v.Form.Get("name"))
	return v.Done(err, passkeysPath, "passkey")
}

func (p *Pages) renamePasskey(v *site.Visit, id auth.PasskeyID) error {
	_, err := p.ports.Passkeys.Rename(v.UserContext(), v.Session, id, v.Form.Get("name"))
	return v.Done(err, passkeysPath, "passkey-name")
}

func (p *Pages) removePasskey(v *site.Visit, id auth.PasskeyID) error {
	removed, err := p.ports.Passkeys.Remove(v.UserContext(), v.Session, id)
	if err != nil {
		return err
	}
	return p.offerTokens(v, passkeysPath, "passkey-removed", removed.CreatedAt)
}
