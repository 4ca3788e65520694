package publishing

import (
	"slices"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/core/registry/requesting"
)

const requestPath = site.Root + "request"

var requestPage = site.NewPage(templates, "templates/request.html")

// requestView is the page on which people ask for a server.
type requestView struct {
	Form      site.FormView
	WritesOff bool
}

// requestDraft returns the request of the form.
func requestDraft(v *site.Visit) requesting.Draft {
	return requesting.Draft{
		Server: v.Form.Get("serverName"), Mirror: v.Form.Get("mirror"), Reason: v.Form.Get("reason"),
	}
}

// request submits the server of the form for review.
func (p *Pages) request(v *site.Visit) error {
	who, err := v.Caller()
	if err != nil {
		return err
	}
	if _, err := p.ports.Requests.Request(v.UserContext(), who, requestDraft(v)); err != nil {
		return err
	}
	return v.Redirect(ownPath + "?done=requested")
}

func (p *Pages) showRequest(v *site.Visit, problems site.Problems) error {
	mirrors, err := p.ports.Requests.Mirrors(v.UserContext())
	if err != nil {
		return err
	}
	form := site.Form{Action: requestPath, Button: "Request it", Inputs: requestInputs(mirrors)}
	view := requestView{Form: v.Fill(form, nil, atRequest(problems)), WritesOff: p.ports.Writer.WritesOff()}
	return v.Render(requestPage, site.Head{Title: "Request a server", Problems: atRequest(problems)}, view)
}

// requestInputs returns the fields of the form. Where the registry knows other registries, a name is
// enough.
func requestInputs(mirrors []mirror.Name) []site.Input {
	server := site.Input{
		Name: "serverName", Label: "Server", Required: true, Hint: "The https address of its server.json.",
	}
	reason := site.Input{
		Name: "reason", Label: "What you need it for", Kind: "area", Required: true,
		Hint: "A sentence for the reviewer, at most 500 characters.",
	}
	if len(mirrors) == 0 {
		return []site.Input{server, reason}
	}
	server.Hint = "Its name, such as io.github.acme/tools, or the https address of its server.json."
	return []site.Input{server, {
		Name: "mirror", Label: "Mirror", Kind: "select", Options: site.Options(mirrors...),
		Hint: "Whose registry has a server of this name.",
	}, reason}
}

// atRequest returns the problems at the fields of the form: those of the document are about the
// server.
func atRequest(problems site.Problems) site.Problems {
	list := slices.Clone(problems)
	for i := range list {
		if list[i].Field != "mirror" && list[i].Field != "reason" {
			list[i].Field = "serverName"
		}
	}
	return list
}
