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

// openStepUp sends a browser to a provider for the step-up whose address it has opened. For a session
// elsewhere it shows a warning first.
func (p *Pages) openStepUp(v *site.Visit) error {
	if !v.CanSignIn() {
		return p.renderPassword(v, nil)
	}
	v.KeepSecret()
	opened, err := p.findOpened(v)
	if err != nil {
		return explainAddress(err)
	}
	if v.SignedIn() && v.Session.UserID != opened.UserID {
		return fault.New(fault.Conflict, "this browser is signed in as another person: sign out first")
	}
	if v.Session.ID != opened.SessionID && !opened.Session.IsNear(rest.Address(v.Ctx)) && v.Query("go") != "1" {
		return v.Render(foreignPage, site.Head{Title: "Did you begin this?"}, foreignView{opened, v.Text("code")})
	}
	return p.leave(v, federating.Start{
		Provider: string(opened.Provider.Name), Return: v.Local("return"), StepUp: &opened,
	})
}

func (p *Pages) findOpened(v *site.Visit) (opened stepup.Opened, err error) {
	text, err := v.Param("id")
	if err != nil {
		return opened, err
	}
	id, err := auth.ParseUUID[auth.ChallengeID]("challengeId", text)
	if err != nil {
		return opened, err
	}
	return p.ports.StepUp.Open(v.UserContext(), id, auth.OTP(v.Text("code")))
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
