package signin

import (
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/people"
)

// The pages of links. Package people makes their addresses. Opening one does not use the link up.
const (
	setupPath      = site.Root + "setup"
	invitationPath = site.Root + "invitation"
	welcomePath    = invitationPath + "/welcome"
	forgotPath     = site.Root + "forgot-password"
	resetPath      = site.Root + "reset-password"

	// checklistPath is the page of operators that lists what is not set up yet.
	checklistPath = site.Root + "operator"
)

var (
	setupPage       = parsePage("templates/setup.html")
	newPasswordPage = parsePage("templates/newpassword.html")
	forgotPage      = site.NewPage(templates, "templates/forgot.html")
	welcomePage     = site.NewPage(templates, "templates/welcome.html")
)

func parsePage(file string) *site.Page {
	return site.NewPage(templates, "templates/parts.html", file)
}

// TakesSecrets reports whether a form with a path has a password or a secret.
func TakesSecrets(path string) bool {
	for _, prefix := range [...]string{site.SignInPath, site.StepUpPath, setupPath, invitationPath, forgotPath, resetPath} {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}

func (p *Pages) mountLinks(r fiber.Router) {
	for path, h := range map[string]struct{ show, act site.Handler }{
		setupPath:      {p.openSetup, p.setUp},
		invitationPath: {p.openInvitation, p.accept},
		resetPath:      {p.openReset, p.reset},
	} {
		r.Get(path, p.site.Open(secretly(h.show)))
		p.site.PostTo(r, path, 0, p.site.Open(secretly(h.act)))
	}
	r.Get(forgotPath, p.site.Open(func(v *site.Visit) error { return p.renderForgot(v, nil) }))
	p.site.PostTo(r, forgotPath, 0, p.site.Open(p.forgot))
	r.Get(welcomePath, p.site.Require(auth.Unverified, func(v *site.Visit) error {
		return v.Render(welcomePage, site.Head{Title: "Welcome"}, nil)
	}))
}

// secretly keeps the address of a page secret.
func secretly(h site.Handler) site.Handler {
	return func(v *site.Visit) error {
		v.KeepSecret()
		return h(v)
	}
}

// readSecret returns the secret of the link that a page or its form is about.
func readSecret(v *site.Visit) auth.LinkSecret {
	if v.Form.Has("code") {
		return auth.LinkSecret(v.Form.Get("code"))
	}
	return auth.LinkSecret(v.Text("code"))
}

// setupView is the page on which the first account is made.
type setupView struct {
	Code, Email, Name string
	CanSignIn         bool
}

func (p *Pages) openSetup(v *site.Visit) error {
	if err := p.ports.Joining.CheckSetup(v.UserContext(), readSecret(v)); err != nil {
		return err
	}
	return p.renderSetup(v, nil)
}

func (p *Pages) renderSetup(v *site.Visit, problems site.Problems) error {
	return v.Render(setupPage, site.Head{Title: "Set up Tollgate", Problems: problems}, setupView{
		string(readSecret(v)), v.Form.Get("email"), v.Form.Get("name"), v.CanSignIn(),
	})
}

// setUp makes the first account and signs its person in.
func (p *Pages) setUp(v *site.Visit) error {
	if !v.CanSignIn() {
		return p.openSetup(v)
	}
	if err := p.ports.Joining.CheckSetup(v.UserContext(), readSecret(v)); err != nil {
		return err
	}
	login, err := readLogin(v)
	if err != nil {
		return p.refuse(v, err, p.renderSetup)
	}
	r, err := p.ports.Joining.SetUp(v.UserContext(), readSecret(v), people.Person{
		Email: login.Email, Name: v.Form.Get("name"), Password: login.Password,
	}, login.Origin)
	if err != nil {
		return p.refuse(v, err, p.renderSetup)
	}
	return p.beginAt(v, r, checklistPath)
}

// newPasswordView is the page on which a link sets a password.
type newPasswordView struct {
	Title, Text, Path, Code, Email string
	Field                          string // the id of the field
	CanSignIn                      bool
}

func (p *Pages) openInvitation(v *site.Visit) error { return p.renderInvitation(v, nil) }

func (p *Pages) renderInvitation(v *site.Visit, problems site.Problems) error {
	a, err := p.ports.Joining.FindInvited(v.UserContext(), readSecret(v))
	if err != nil {
		return err
	}
	return v.Render(newPasswordPage, site.Head{Title: "Invitation", Problems: problems}, newPasswordView{
		"You are invited", "Set the password with which you will sign in.", invitationPath, string(readSecret(v)),
		string(a.Email), "password", v.CanSignIn(),
	})
}

// accept sets the password of an invited person and signs them in.
func (p *Pages) accept(v *site.Visit) error {
	if !v.CanSignIn() {
		return p.openInvitation(v)
	}
	password, err := auth.NewPassword("password", v.Form.Get("password"))
	if err != nil {
		return p.refuse(v, err, p.renderInvitation)
	}
	origin, err := readOrigin(v)
	if err != nil {
		return p.refuse(v, err, p.renderInvitation)
	}
	r, err := p.ports.Joining.Accept(v.UserContext(), readSecret(v), password, origin)
	if err != nil {
		return p.refuse(v, err, p.renderInvitation)
	}
	return p.beginAt(v, r, welcomePath)
}

func (p *Pages) openReset(v *site.Visit) error { return p.renderReset(v, nil) }

func (p *Pages) renderReset(v *site.Visit, problems site.Problems) error {
	if err := p.ports.Joining.CheckReset(v.UserContext(), readSecret(v)); err != nil {
		return err
	}
	return v.Render(newPasswordPage, site.Head{Title: "Set a new password", Problems: problems}, newPasswordView{
		Title: "Set a new password", Text: "All your sessions end, and you sign in with the new password. Your tokens go on: look at them on your account page.",
		Path: resetPath, Code: string(readSecret(v)), Field: "newPassword", CanSignIn: v.CanSignIn(),
	})
}

// reset sets a new password and leads to the sign-in.
func (p *Pages) reset(v *site.Visit) error {
	if !v.CanSignIn() {
		return p.openReset(v)
	}
	password, err := auth.NewPassword("newPassword", v.Form.Get("newPassword"))
	if err == nil {
		err = p.ports.Joining.Reset(v.UserContext(), readSecret(v), password)
	}
	if err != nil {
		return p.refuse(v, err, p.renderReset)
	}
	v.EndSession()
	return v.Redirect(site.SignInPath + "?set=1")
}

// forgotView is the page on which people ask for a new password.
type forgotView struct {
	Email   string
	Asked   bool
	CanMail bool
}

func (p *Pages) renderForgot(v *site.Visit, problems site.Problems) error {
	return v.Render(forgotPage, site.Head{Title: "Forgot your password?", Problems: problems}, forgotView{
		v.Form.Get("email"), false, p.ports.Joining.CanMail(),
	})
}

// forgot shows the same for every address.
func (p *Pages) forgot(v *site.Visit) error {
	email, err := auth.ParseEmail(v.Form.Get("email"))
	if err != nil {
		return p.refuse(v, auth.InvalidField(auth.CodeInvalidInput, "email", "must be an e-mail address"), p.renderForgot)
	}
	p.ports.Joining.Forgot(email)
	return v.Render(forgotPage, site.Head{Title: "Forgot your password?"}, forgotView{string(email), true, true})
}
