package signin

import (
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/assessment"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/stepup"
	"github.com/tollgate-dev/tollgate/core/fault"
)

const (
	sendPath   = site.StepUpPath + "/send"
	verifyPath = site.StepUpPath + "/verify"
	resendPath = site.StepUpPath + "/resend"
)

// The fields of the forms of a step-up. They have a prefix of their own because the forms carry the
// fields of the act that the step-up interrupts.
const (
	methodField    = "step-up.method"
	challengeField = "step-up.challenge"
	codeField      = "step-up.code"
	trustField     = "step-up.trust" // also of the second factor at sign-in
)

func (p *Pages) mountStepUp(r fiber.Router) {
	r.Get(site.StepUpPath, p.site.Open(p.signedIn(func(v *site.Visit) error { return p.offerStepUp(v, "") })))
	p.site.PostTo(r, sendPath, 1, p.site.Open(p.signedIn(p.send)))
	p.site.PostTo(r, verifyPath, 1, p.site.Open(p.signedIn(p.verify)))
	p.site.PostTo(r, resendPath, 1, p.site.Open(p.signedIn(p.resend)))
}

// signedIn sends people who are not signed in to the page for that. They come back to the page that
// the step-up was for: a sign-in may make the step-up needless.
func (p *Pages) signedIn(h site.Handler) site.Handler {
	return func(v *site.Visit) error {
		if !v.SignedIn() {
			return v.Redirect(site.SignInAddress(v.Next()))
		}
		return h(v)
	}
}

// carriedView is what all pages of a step-up carry along.
type carriedView struct {
	Title  string // of the act that the step-up interrupts; otherwise empty
	Act    string // its path
	Next   string // the page to go on with, without an act
	Fields []site.Field
}

func carry(v *site.Visit, title string) carriedView {
	return carriedView{title, v.InterruptedAct(), v.Next(), v.Carried()}
}

// stepUpView is the page that offers the methods of a step-up.
type stepUpView struct {
	carriedView
	Routes  []routeView
	Passkey bool
	Reasons []string
}

// routeView is a method of a step-up in words.
type routeView struct {
	Method auth.StepUpMethod
	Text   string
}

// offerStepUp shows the methods of a step-up for an act with a title; otherwise empty.
func (p *Pages) offerStepUp(v *site.Visit, title string) error { return p.renderStepUp(v, title, nil) }

func (p *Pages) renderStepUp(v *site.Visit, title string, problems site.Problems) error {
	routes, err := p.ports.StepUp.Routes(v.UserContext(), v.Session)
	if err != nil {
		return err
	}
	view := stepUpView{carriedView: carry(v, title)}
	for _, r := range routes {
		if r.Method == auth.PasskeyMethod {
			view.Passkey = p.permitsPasskeys(v)
			continue
		}
		view.Routes = append(view.Routes, routeView{r.Method, describeRoute(r)})
	}
	if v.Session.TrustLevel.Admits(auth.FullTrust) {
		if view.Act != "" || v.ServesApplication() {
			view.Reasons = []string{"The last password or code of this session is too old for this."}
		}
	} else if view.Reasons, err = p.reasons(v); err != nil {
		return err
	}
	return v.Render(stepUpPage, site.Head{Title: "Verify that it is you", Problems: problems}, view)
}

// describeRoute returns a method as its button says it, with enough of the recipient to know it.
func describeRoute(r stepup.Route) string {
	switch r.Method {
	case auth.EmailOTP:
		return "Send a code to " + maskEmail(r.Recipient)
	case auth.SMSOTP:
		return "Send a code to the telephone number that ends with " + lastDigits(r.Recipient)
	}
	if r.Method == auth.CompanySignIn {
		return "Sign in at " + r.Recipient + " again"
	}
	return "Use the authenticator app"
}

// maskEmail returns an address with the first letter of its local part.
func maskEmail(address string) string {
	local, domain, _ := strings.Cut(address, "@")
	if len(local) < 2 {
		return address
	}
	return string([]rune(local)[:1]) + "…@" + domain
}

func lastDigits(number string) string {
	const shown = 2
	return number[max(len(number)-shown, 0):]
}

// evaluations is how many of the last evaluations are searched for that of the session.
const evaluations = 50

// reasons returns why the session did not get full trust when it began.
func (p *Pages) reasons(v *site.Visit) ([]string, error) {
	found, err := p.ports.Trail.Search(v.UserContext(), v.Session.UserID, auditing.Query{
		Category: audit.RiskEvaluation, Limit: evaluations,
	})
	if err != nil {
		return nil, err
	}
	for _, e := range found.Events {
		if evaluation := assessment.ReadEvaluation(&e); evaluation.Session == v.Session.ID {
			return site.DescribeReasons(evaluation.Reasons, v.Session.TrustLevel), nil
		}
	}
	return nil, nil
}

// codeView is the page for a code.
type codeView struct {
	carriedView
	Challenge auth.ChallengeID
	Method    auth.StepUpMethod
	Sent      bool // the code was sent, and can be sent again
	Trust     bool // the browser is to be trusted
}

// send begins a step-up and requests its code.
func (p *Pages) send(v *site.Visit) error {
	method, err := auth.ParseStepUpMethod(v.Form.Get(methodField))
	var pending stepup.Pending
	if err == nil {
		pending, err = p.ports.StepUp.Initiate(v.UserContext(), v.Session, method)
	}
	if err != nil {
		return p.refuse(v, err, func(v *site.Visit, problems site.Problems) error {
			return p.renderStepUp(v, "", problems.At(""))
		})
	}
	rest.Accept(v.Ctx, string(v.Session.UserID)) // it has a limit of its own
	if pending.Opens != "" {
		return p.renderCompany(v, pending.ID, pending.Opens, nil)
	}
	return p.renderCode(v, pending.ID, pending.Method, site.Head{})
}

func (p *Pages) renderCode(v *site.Visit, id auth.ChallengeID, m auth.StepUpMethod, head site.Head) error {
	head.Title = "Enter the code"
	return v.Render(codePage, head, codeView{
		carry(v, ""), id, m, m != auth.AuthenticatorApp, v.Form.Has(trustField),
	})
}

// verify checks a code and goes on with what the step-up has interrupted.
func (p *Pages) verify(v *site.Visit) error {
	answer, err := p.readAnswer(v)
	var passed stepup.Passed
	if err == nil {
		passed, err = p.ports.StepUp.Verify(v.UserContext(), answer)
	}
	if err != nil {
		return p.refuse(v, err, p.showCodeAgain(answer.ID))
	}
	rest.Accept(v.Ctx, string(v.Session.UserID))
	if err := v.RotateCookie(); err != nil {
		return err
	}
	v.RememberDevice(passed.DeviceToken)
	return v.Resume()
}

// resend sends the code of a challenge again.
func (p *Pages) resend(v *site.Visit) error {
	id, err := readChallenge(v)
	var pending stepup.Pending
	if err == nil {
		pending, err = p.ports.StepUp.Resend(v.UserContext(), id)
	}
	if fault.Is(err, fault.NotFound) {
		id, err = "", auth.InvalidField(auth.CodeInvalidInput, "challengeId", "is unknown")
	}
	if err != nil {
		return p.refuse(v, err, p.showCodeAgain(id))
	}
	return p.renderCode(v, pending.ID, pending.Method, site.Head{Notice: "A new code was sent."})
}

// showCodeAgain shows the page for a code with the problems of the last one. After a challenge that
// cannot be used, it offers the methods again.
func (p *Pages) showCodeAgain(id auth.ChallengeID) func(*site.Visit, site.Problems) error {
	return func(v *site.Visit, problems site.Problems) error {
		if v.Form.Has(credentialField) {
			return p.renderStepUp(v, "", site.Problems{{Text: "The passkey was not accepted. Use another one, or get a code."}})
		}
		if id == "" || v.Response().StatusCode() == http.StatusTooManyRequests || problems.Of("challengeId") != "" {
			return p.renderStepUp(v, "", closedProblems(problems))
		}
		method, err := auth.ParseStepUpMethod(v.Form.Get(methodField))
		if err != nil {
			method = auth.EmailOTP
		}
		return p.renderCode(v, id, method, site.Head{Problems: problems.At(codeField)})
	}
}

// closedProblems returns the problems in words that help a person who has only a code.
func closedProblems(problems site.Problems) site.Problems {
	if problems.Of("challengeId") == "" {
		return problems
	}
	return site.Problems{{Text: "This code cannot be used any more. Get a new one."}}
}

func readChallenge(v *site.Visit) (auth.ChallengeID, error) {
	return auth.ParseUUID[auth.ChallengeID]("challengeId", v.Form.Get(challengeField))
}

// readCode returns the code that a person has entered, without the spaces that people copy with it.
func readCode(v *site.Visit) auth.OTP {
	code := v.Form.Get(codeField)
	if code == "" {
		code = v.Form.Get("code")
	}
	return auth.OTP(strings.Join(strings.Fields(code), ""))
}
