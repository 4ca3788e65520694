package signin

import (
	"net/http"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// commandPath is the page on which people enter the code that 'tollgate login' shows.
const commandPath = site.SignInPath + "/command"

var commandPage = site.NewPage(templates, "templates/command.html")

func (p *Pages) mountCommand(r fiber.Router) {
	r.Get(commandPath, p.site.Require(auth.Unverified, p.showCommand))
	p.site.Post(r, commandPath, 0, site.Act{
		Level: auth.Unverified, Title: "Sign in the command", Do: p.decideCommand,
		Show: func(v *site.Visit, problems site.Problems) error {
			if problems != nil { // with the code, which has been counted
				return render(v, commandView{Code: v.Form.Get("code")}, problems)
			}
			return p.renderCommand(v, v.Form.Get("code"))
		},
	})
}

// commandView is the page with the form for a code, then with the question about its command, then
// with the result.
type commandView struct {
	Code, Person    string
	Request         *auth.Link // that waits with the code; nil before the code is looked up
	Elsewhere       bool       // the command asked from another address than that of the browser
	Full            bool       // the command gets full access
	Denied, Granted bool
}

// showCommand looks a code up, unless another site has led here with it: guesses are counted.
func (p *Pages) showCommand(v *site.Visit) error {
	code := v.Text("code")
	switch v.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		if code != "" {
			return p.renderCommand(v, code)
		}
	}
	return render(v, commandView{Code: code}, nil)
}

func render(v *site.Visit, view commandView, problems site.Problems) error {
	view.Person = string(v.Account.Email)
	return v.Render(commandPage, site.Head{Title: "Sign in the tollgate command", Problems: problems}, view)
}

// renderCommand shows the question about the request with a code; without one, the form for a code.
func (p *Pages) renderCommand(v *site.Visit, code string) error {
	view := commandView{Code: code, Full: p.ports.Pairing.Full(&v.Session) == nil}
	l, err := p.ports.Pairing.Find(v.UserContext(), v.Session, code)
	switch f, ok := fault.As(err); {
	case err == nil:
		view.Request, view.Elsewhere = &l, l.AskedFrom != rest.Address(v.Ctx)
	case ok && f.Kind == fault.Invalid:
		v.Status(http.StatusUnprocessableEntity)
		return render(v, view, site.ProblemsOf(f))
	default:
		return err
	}
	return render(v, view, nil)
}

// decideCommand approves the command with a code, with as much as the button says, or refuses it.
func (p *Pages) decideCommand(v *site.Visit) error {
	as := v.Form.Get("as")
	switch full := p.ports.Pairing.Full(&v.Session); {
	case as == "full" && full != nil:
		return full
	case as == "less" && full == nil, as != "full" && as != "less" && as != "deny": // the page says something else now
		return p.renderCommand(v, v.Form.Get("code"))
	}
	view := commandView{Denied: as == "deny", Granted: as != "deny"}
	if err := p.ports.Pairing.Decide(v.UserContext(), v.Session, v.Form.Get("code"), view.Granted); err != nil {
		return err
	}
	return render(v, view, nil)
}
