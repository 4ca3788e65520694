package account

import (
	"encoding/base64"
	"fmt"
	"html/template"
	"strings"

	"rsc.io/qr"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
)

func (p *Pages) showPassword(v *site.Visit, problems site.Problems) error {
	return v.Render(passwordPage, site.Head{Title: "Change the password", Problems: problems}, nil)
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
	return v.Redirect(Path + "?done=password")
}

// asProblem returns the error for a wrong secret as a problem of its field.
func asProblem(err error, field string) error {
	f, ok := fault.As(err)
	if !ok || f.Kind != fault.Unauthenticated {
		return err
	}
	return auth.InvalidField(f.Code, field, "is wrong")
}

// authenticatorView is the page of the authenticator app.
type authenticatorView struct {
	Active bool
	Setup  bool // it is being set up
	Secret string
	URI    string       // of the secret, for apps
	Image  template.URL // the QR code; otherwise empty
}

func (p *Pages) showAuthenticator(v *site.Visit, problems site.Problems) error {
	view := authenticatorView{Active: v.Account.MFA.Active, Secret: v.Form.Get("secret"), URI: v.Form.Get("uri")}
	view.Setup = !view.Active && view.Secret != ""
	if image, err := drawQR(view.URI); err == nil && view.Setup {
		view.Image = image
	}
	return v.Render(authenticatorPage, site.Head{
		Title: "Authenticator app", Notice: notices[v.Text("done")], Problems: problems,
	}, view)
}

// enrol shows the secret of a new authenticator, once.
func (p *Pages) enrol(v *site.Visit) error {
	e, err := p.ports.Credentials.Enrol(v.UserContext(), v.Session, auth.Password{})
	if err != nil {
		return err
	}
	v.Form.Set("secret", groups(e.Secret.Base32()))
	v.Form.Set("uri", e.URI)
	return p.showAuthenticator(v, nil)
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

// recoveryView is the page with the recovery codes.
type recoveryView struct{ Codes []string }

// activate turns the authenticator on, and shows the recovery codes, once.
func (p *Pages) activate(v *site.Visit) error {
	codes, err := p.ports.Credentials.Activate(v.UserContext(), v.Session, readCode(v))
	if err != nil {
		return asProblem(err, "code")
	}
	var view recoveryView
	for _, c := range codes {
		view.Codes = append(view.Codes, string(c))
	}
	if err := v.RotateCookie(); err != nil {
		return err
	}
	return v.Render(recoveryPage, site.Head{Title: "Recovery codes", Notice: "The authenticator app is on."}, view)
}

func (p *Pages) disable(v *site.Visit) error {
	if err := p.ports.Credentials.Disable(v.UserContext(), v.Session, readCode(v)); err != nil {
		return asProblem(err, "code")
	}
	if err := v.RotateCookie(); err != nil {
		return err
	}
	return v.Redirect(authenticatorPath + "?done=disabled")
}

// readCode returns the code of the form, without the spaces that people copy with it.
func readCode(v *site.Visit) auth.OTP {
	return auth.OTP(strings.Join(strings.Fields(v.Form.Get("code")), ""))
}
