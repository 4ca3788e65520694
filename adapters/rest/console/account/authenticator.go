package account

import (
	"encoding/base64"
	"fmt"
	"html/template"
	"strings"

	"github.com/gofiber/fiber/v2"
	"rsc.io/qr"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/credentials"
)

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
	if err := v.RotateCookie(); err != nil {
		return err
	}
	return v.Redirect(authenticatorPath + "?done=another")
}

func (p *Pages) removeAuthenticator(v *site.Visit) error {
	id := auth.AuthenticatorID(v.Form.Get("app"))
	err := p.ports.Credentials.RemoveAuthenticator(v.UserContext(), v.Session, id, readCode(v, removeCodeField))
	if err != nil {
		return asProblem(err, removeCodeField)
	}
	if err := v.RotateCookie(); err != nil {
		return err
	}
	return v.Redirect(authenticatorPath + "?done=removed")
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
	if err := v.RotateCookie(); err != nil {
		return err
	}
	return v.Redirect(authenticatorPath + "?done=disabled")
}

// readCode returns the code in a field of the form, without the spaces that people copy with it.
func readCode(v *site.Visit, field string) auth.OTP {
	return auth.OTP(strings.Join(strings.Fields(v.Form.Get(field)), ""))
}
