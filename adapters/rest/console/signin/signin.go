// Package signin has the pages on which people sign in, verify themselves with a code, sign out, and
// open links that let them set a password.
package signin

import (
	"cmp"
	"context"
	"embed"
	"net/http"
	"net/url"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/cookies"
	"github.com/tollgate-dev/tollgate/core/auth/federating"
	"github.com/tollgate-dev/tollgate/core/auth/joining"
	"github.com/tollgate-dev/tollgate/core/auth/pairing"
	"github.com/tollgate-dev/tollgate/core/auth/passkeys"
	"github.com/tollgate-dev/tollgate/core/auth/signin"
	"github.com/tollgate-dev/tollgate/core/auth/stepup"
	"github.com/tollgate-dev/tollgate/core/fault"
)

//go:embed templates
var templates embed.FS

var (
	passwordPage = site.NewPage(templates, "templates/password.html")
	factorPage   = parsePage("templates/factor.html")
	stepUpPage   = parsePage("templates/stepup.html")
	codePage     = parsePage("templates/code.html")
)

const (
	factorPath  = site.SignInPath + "/code"
	signOutPath = site.Root + "sign-out"
)

// SignIn begins and ends sessions. *signin.Service implements it and documents the errors.
type SignIn interface {
	Login(ctx context.Context, in signin.Login) (signin.Result, error)
	LoginByPasskey(ctx context.Context, in passkeys.Answer, from signin.Origin) (signin.Result, error)
	VerifyMFA(ctx context.Context, in signin.MFAAnswer) (signin.Result, error)
	SignOut(ctx context.Context, caller auth.Session, id auth.SessionID) error
}

// Ports are the use cases that the pages call.
type Ports struct {
	SignIn  SignIn
	StepUp  *stepup.Service
	Joining *joining.Service
	Trail   *auditing.Trail

	Companies *federating.Service
	Passkeys  *passkeys.Service
	Pairing   *pairing.Service
}

// Pages are the pages of signing in. It is safe for concurrent use.
type Pages struct {
	site  *site.Site
	ports Ports
}

// New returns the pages, which also offer a step-up for acts of other pages.
func New(s *site.Site, p Ports) *Pages {
	pages := &Pages{s, p}
	s.SetStepUpPage(pages.offerStepUp)
	return pages
}

// Mount adds the routes.
func (p *Pages) Mount(r fiber.Router) {
	r.Get(site.SignInPath, p.site.Open(p.showPassword))
	p.site.PostTo(r, site.SignInPath, 0, p.site.Open(p.checkPassword))
	r.Get(factorPath, p.site.Open(p.showFactor))
	p.site.PostTo(r, factorPath, 0, p.site.Open(p.checkFactor))
	p.site.PostTo(r, signOutPath, 1, p.site.Open(p.signOut))
	p.mountStepUp(r)
	p.mountLinks(r)
	p.mountCompany(r)
	p.mountPasskeys(r)
	p.mountCommand(r)
}

// passwordView is the page for the e-mail address and the password.
type passwordView struct {
	Email, Next string
	CanSignIn   bool // the connection is safe
	Companies   []companyLink
	Passkeys    bool // browsers permit them here
}

func (p *Pages) showPassword(v *site.Visit) error { return p.renderPassword(v, nil) }

func (p *Pages) renderPassword(v *site.Visit, problems site.Problems) error {
	head := site.Head{Title: "Sign in", Problems: problems}
	if v.Query("set") != "" {
		head.Notice = "The password is set. Sign in with it."
	}
	if v.SessionEnded() {
		head.Notice = "Your session has ended, and the form was not accepted. Sign in, then send it again."
	}
	links, err := p.companyLinks(v, "")
	if err != nil {
		return err
	}
	return v.Render(passwordPage, head, passwordView{cmp.Or(v.Form.Get("email"), v.Text("email")), v.Next(), v.CanSignIn(), links, p.permitsPasskeys(v)})
}

// checkPassword signs a person in, or requests the second factor.
func (p *Pages) checkPassword(v *site.Visit) error {
	if !v.CanSignIn() {
		return p.renderPassword(v, nil)
	}
	in, err := readLogin(v)
	if err != nil {
		return p.refuseLogin(v, in.Email, err)
	}
	r, err := p.ports.SignIn.Login(v.UserContext(), in)
	switch {
	case err != nil:
		return p.refuseLogin(v, in.Email, err)
	case r.MFARequired:
		rest.Accept(v.Ctx, string(r.UserID))
		return v.Redirect(
			factorPath + "?user=" + url.QueryEscape(string(r.UserID)) + "&next=" + url.QueryEscape(v.Next()))
	}
	return p.begin(v, r)
}

func readLogin(v *site.Visit) (in signin.Login, err error) {
	if in.Email, err = auth.ParseEmail(v.Form.Get("email")); err != nil {
		return in, auth.InvalidField(auth.CodeInvalidInput, "email", "must be an e-mail address")
	}
	if in.Password, err = auth.NewPassword("password", v.Form.Get("password")); err != nil {
		return in, err
	}
	in.Origin, err = readOrigin(v)
	return in, err
}

func readOrigin(v *site.Visit) (signin.Origin, error) {
	device, token, err := v.Device()
	return signin.Origin{Device: device, DeviceToken: token, Address: rest.Address(v.Ctx)}, err
}

// begin sets the cookies of a session that has begun and goes on. A session that the browser had
// before ends, unless an application wants its person to sign in again: other applications may act in it.
func (p *Pages) begin(v *site.Visit, r signin.Result) error { return p.beginAt(v, r, v.Next()) }

// beginAt is begin with the page to go on with.
func (p *Pages) beginAt(v *site.Visit, r signin.Result, next string) error {
	rest.Accept(v.Ctx, string(r.UserID))
	if v.SignedIn() && (v.Session.UserID != r.UserID || !site.IsContinue(next)) {
		if err := p.ports.SignIn.SignOut(v.UserContext(), v.Session, v.Session.ID); err != nil &&
			!fault.Is(err, fault.NotFound) {
			return err
		}
	}
	v.RememberDevice(r.DeviceToken)
	if err := v.BeginSession(cookies.Begun{
		SessionID: r.SessionID, UserID: r.UserID, TrustLevel: r.TrustLevel,
	}); err != nil {
		return err
	}
	if next == site.Home && r.TrustLevel.Admits(auth.Unverified) {
		next = site.MyHome
	}
	return v.Redirect(next)
}

// refuse shows a form again after its act was refused.
func (p *Pages) refuse(v *site.Visit, err error, show func(*site.Visit, site.Problems) error) error {
	f, ok := fault.As(err)
	if !ok || f.Kind == fault.Internal || f.Kind == fault.Unavailable || f.Kind == fault.NotFound {
		return err
	}
	status := http.StatusUnprocessableEntity
	if f.Kind == fault.Exhausted {
		status = http.StatusTooManyRequests
	}
	v.Status(status)
	return show(v, site.ProblemsOf(f))
}

// factorView is the page for the second factor.
type factorView struct {
	User, Next string
	Again      string // the address of the sign-in from its beginning
	Trust      bool   // the browser is to be trusted
}

func (p *Pages) showFactor(v *site.Visit) error { return p.renderFactor(v, nil) }

func (p *Pages) renderFactor(v *site.Visit, problems site.Problems) error {
	user, err := readUser(v)
	if err != nil {
		return v.Redirect(site.SignInAddress(v.Next()))
	}
	return v.Render(factorPage, site.Head{Title: "Second factor", Problems: problems}, factorView{
		string(user), v.Next(), site.SignInAddress(v.Next()), v.Form.Has(trustField),
	})
}

// readUser returns the person who has entered a password.
func readUser(v *site.Visit) (auth.UserID, error) {
	user := v.Form.Get("user")
	if user == "" {
		user = v.Query("user")
	}
	return auth.ParseUUID[auth.UserID]("user", string([]byte(user)))
}

// checkFactor completes a sign-in with the second factor.
func (p *Pages) checkFactor(v *site.Visit) error {
	user, err := readUser(v)
	if err != nil || !v.CanSignIn() {
		return v.Redirect(site.SignInAddress(v.Next()))
	}
	origin, err := readOrigin(v)
	if err != nil {
		return p.refuse(v, err, p.renderFactor)
	}
	r, err := p.ports.SignIn.VerifyMFA(v.UserContext(), signin.MFAAnswer{
		UserID: user, Code: readCode(v), Origin: origin, TrustDevice: v.Form.Has(trustField),
	})
	if err != nil {
		return p.refuse(v, err, func(v *site.Visit, problems site.Problems) error {
			return p.renderFactor(v, problems.At("code"))
		})
	}
	return p.begin(v, r)
}

func (p *Pages) signOut(v *site.Visit) error {
	if v.SignedIn() {
		err := p.ports.SignIn.SignOut(v.UserContext(), v.Session, v.Session.ID)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
	}
	v.EndSession()
	return v.Redirect(site.Home)
}
