package signin

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/federating"
	"github.com/tollgate-dev/tollgate/core/auth/stepup"
	"github.com/tollgate-dev/tollgate/core/fault"
)

const (
	openPath     = site.Root + federating.StepUpPath + ":id"
	goOnPath     = site.StepUpPath + "/continue"
	verifiedPath = site.StepUpPath + "/verified"
)

var (
	companyPage  = site.NewPage(templates, "templates/company.html")
	foreignPage  = site.NewPage(templates, "templates/foreign.html")
	verifiedPage = site.NewPage(templates, "templates/verified.html")
)

func (p *Pages) mountCompanyStepUp(r fiber.Router) {
	r.Get(openPath, p.site.Open(p.openStepUp))
	p.site.PostTo(r, openPath, 0, p.site.Open(p.goOnForeign))
	p.site.PostTo(r, goOnPath, 1, p.site.Open(p.signedIn(p.goOnVerified)))
	r.Get(verifiedPath, p.site.Open(func(v *site.Visit) error {
		return v.Render(verifiedPage, site.Head{Title: "You are verified"}, nil)
	}))
}

// companyView is the page that leads to a provider for a step-up.
type companyView struct {
	carriedView

	Company   string
	Challenge auth.ChallengeID
	Code      string // an OTP is not shown
	Address   string
}

// renderCompany shows the page that leads to a provider. The page with the methods takes its place if
// the challenge cannot be passed any more.
func (p *Pages) renderCompany(v *site.Visit, id auth.ChallengeID, code auth.OTP, problems site.Problems) error {
	opened, err := p.ports.StepUp.Open(v.UserContext(), id, code)
	if err != nil {
		return p.refuse(v, explainAddress(err), func(v *site.Visit, problems site.Problems) error {
			return p.renderStepUp(v, "", problems.At(""))
		})
	}
	view := companyView{carry(v, ""), opened.Provider.DisplayName, id, string(code), ""}
	query := url.Values{"code": {string(code)}}
	if view.Act == "" { // nothing was typed: the same tab goes on
		query.Set("return", view.Next)
	}
	view.Address = strings.Replace(openPath, ":id", string(id), 1) + "?" + query.Encode()
	return v.Render(companyPage, site.Head{Title: "Verify at your company", Problems: problems}, view)
}

// goOnVerified goes on with what a step-up has interrupted, if that has succeeded in another tab.
func (p *Pages) goOnVerified(v *site.Visit) error {
	if v.Session.TrustLevel.Admits(auth.FullTrust) {
		return v.Resume()
	}
	id, err := readChallenge(v)
	if err != nil {
		return p.refuse(v, err, func(v *site.Visit, _ site.Problems) error { return p.renderStepUp(v, "", nil) })
	}
	v.Status(http.StatusUnprocessableEntity)
	return p.renderCompany(v, id, readCode(v), site.Problems{{Text: "You are not verified yet. Sign in at your company first."}})
}

// explainAddress returns the error of a challenge in words for who has opened its address.
func explainAddress(err error) error {
	if fault.Is(err, fault.Invalid) {
		return fault.New(fault.Invalid, "this address is wrong, used or too old: begin again where you got it")
	}
	return err
}

// foreignView is the page that says whose session a step-up raises.
type foreignView struct {
	stepup.Opened

	Code string
}

// openStepUp sends a browser to a provider for the step-up whose address it has opened. For a session that
// is neither the one of the browser nor near it, it asks first: the address may come from somebody else.
func (p *Pages) openStepUp(v *site.Visit) error {
	opened, err := p.findOpened(v, v.Text("code"))
	switch {
	case err != nil:
		return err
	case v.Session.ID != opened.SessionID && !opened.Session.IsNear(rest.Address(v.Ctx)):
		return v.Render(foreignPage, site.Head{Title: "Did you begin this?"}, foreignView{opened, v.Text("code")})
	}
	return p.leave(v, startOf(&opened, v.Local("return")))
}

// goOnForeign leads to a provider after the person has said to have begun the step-up of another session.
func (p *Pages) goOnForeign(v *site.Visit) error {
	opened, err := p.findOpened(v, v.Form.Get("code"))
	if err != nil {
		return err
	}
	return p.offerLeave(v, startOf(&opened, ""), "Sign in there to verify the session at "+
		opened.Session.IPAddress.String()+".", site.Home)
}

func startOf(o *stepup.Opened, back string) federating.Start {
	return federating.Start{Provider: string(o.Provider.Name), Return: back, StepUp: o}
}

// findOpened returns the step-up whose address the browser has opened, with a code. The error is in words
// for the person.
func (p *Pages) findOpened(v *site.Visit, code string) (opened stepup.Opened, err error) {
	v.KeepSecret()
	text, err := v.Param("id")
	if err != nil {
		return opened, err
	}
	id, err := auth.ParseUUID[auth.ChallengeID]("challengeId", text)
	if err == nil {
		opened, err = p.ports.StepUp.Open(v.UserContext(), id, auth.OTP(code))
	}
	switch {
	case err != nil:
		return opened, explainAddress(err)
	case !v.CanSignIn():
		return opened, fault.New(fault.Forbidden, "this needs https")
	case v.SignedIn() && v.Session.UserID != opened.UserID:
		return opened, fault.New(fault.Conflict, "this browser is signed in as another person: sign out first")
	}
	return opened, nil
}

// finishStepUp follows a step-up at a provider: with a page of the session that it has raised, or with
// one that says so.
func (p *Pages) finishStepUp(v *site.Visit, done *federating.Completed) error {
	if done.Raised.Session != v.Session.ID {
		return v.Redirect(verifiedPath)
	}
	if err := v.RotateCookie(); err != nil {
		return err
	}
	v.RememberDevice(done.Raised.DeviceToken)
	if done.Return == "" {
		done.Return = verifiedPath
	}
	return v.Redirect(done.Return)
}
