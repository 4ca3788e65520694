package signin

import (
	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/pairing"
)

// commandPath is the page that 'tollgate login' opens. Its parameters have the names of OAuth 2.0.
const commandPath = site.SignInPath + "/command"

var commandPage = site.NewPage(templates, "templates/command.html")

func (p *Pages) mountCommand(r fiber.Router) {
	r.Get(commandPath, p.site.Require(auth.Unverified, func(v *site.Visit) error {
		return renderCommand(v, commandView{Request: readRequest(v.Text)})
	}))
	p.site.Post(r, commandPath, 0, site.Act{Level: auth.Unverified, Title: "Sign in the command", Do: p.decideCommand})
}

// commandView is the page that offers a command a session, and says what has become of it.
type commandView struct {
	pairing.Request

	Code   string // that the person copies; empty before
	Denied bool
	Person string
	Full   bool // the command may get full access
}

func readRequest(get func(string) string) pairing.Request {
	return pairing.Request{
		Challenge: get("code_challenge"), Method: get("code_challenge_method"), Redirect: get("redirect_uri"), State: get("state"),
	}
}

func renderCommand(v *site.Visit, view commandView) error {
	if err := view.Check(); err != nil {
		return err
	}
	v.LetFormsLeadTo(view.Origin())
	view.Person, view.Full = string(v.Account.Email), view.Redirect != "" && v.Session.TrustLevel.Admits(auth.FullTrust)
	return v.Render(commandPage, site.Head{Title: "Sign in the tollgate command"}, view)
}

// decideCommand gives the command of a request a code, or refuses it.
func (p *Pages) decideCommand(v *site.Visit) error {
	r := readRequest(v.Form.Get)
	if err := r.Check(); err != nil {
		return err
	}
	if v.Form.Has("deny") {
		if r.Redirect == "" {
			return renderCommand(v, commandView{Request: r, Denied: true})
		}
		return v.Redirect(r.Denied())
	}
	code, err := p.ports.Pairing.Approve(v.UserContext(), v.Session, r)
	switch {
	case err != nil:
		return err
	case r.Redirect == "":
		return renderCommand(v, commandView{Request: r, Code: string(code)})
	}
	return v.Redirect(r.Approved(code))
}
