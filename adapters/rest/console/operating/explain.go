package operating

import (
	"context"
	"maps"
	"net/url"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/access/deciding"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/fields"
	"github.com/tollgate-dev/tollgate/core/trustlevel"
)

const explainPath = accessPath + "/explain"

var explainPage = site.NewPage(templates, "templates/explain.html")

// explainForm are the fields of a question about a call.
var explainForm = site.Form{Action: explainPath, Button: "Explain", Inputs: []site.Input{
	{Name: "subject", Label: "Subject", Hint: "An e-mail address, service: and the name of a service account, group: for a member of it, or everyone. Empty for a caller without a token."},
	{Name: "server", Label: "Server", Hint: "Its name, or the address that is called, such as https://tools.example.com/mcp.", Required: true},
	{Name: "method", Label: "Method", Kind: "select", Options: site.Options(
		string(access.CallsTools), string(access.ListsTools), "prompts/list", "prompts/get", "resources/list", "resources/read", "initialize")},
	{Name: "tool", Label: "Tool", Hint: "Of tools/call."},
	{Name: "address", Label: "Address of the client", Hint: "An IP address, for rules with networks. Optional."},
	{Name: "client", Label: "Client", Hint: "Of the authorization server: its name, or the URL of its document. Optional."},
	{Name: "resource", Label: "Resource", Hint: "The URL for which the token of the client is. Optional."},
	{Name: "trust", Label: "Trust", Kind: "select", Options: append([]site.Option{{Text: "That of the newest session"}}, site.Options(trustlevel.Names()...)...)},
}}

// explainView is the page that says why a call is allowed or denied.
type explainView struct {
	Ask    site.FormView
	Answer *answerView // nil before a question
}

// answerView is the answer to a question, in words.
type answerView struct {
	access.Explanation

	Person   string // the e-mail address of the subject, if it is a person
	Level    site.Level
	Required site.Level
	Steps    []access.Step // the rules before the one that decided, or a part of them
	Others   int           // those that are not in Steps: most are not about the subject or the server
	All      string        // the address of all of them, in pages; empty if these are they
	First    int           // the place of the first one of Steps, on a page of all of them; otherwise 0
	Earlier  string        // the address of the page before; likewise
	Later    string        // likewise
}

func (p *Pages) explain(ctx context.Context, v *site.Visit) error {
	values, err := url.ParseQuery(string(v.Request().URI().QueryString()))
	if err != nil {
		values = url.Values{}
	}
	view, problems := explainView{}, site.Problems(nil)
	if values.Has("server") {
		e, err := p.answer(ctx, values, nil)
		if f, ok := fault.As(err); ok && f.Kind == fault.Invalid {
			v.Status(fiber.StatusUnprocessableEntity)
			problems = site.ProblemsOf(f)
		} else if err != nil {
			return err
		} else {
			view.Answer = newAnswerView(&e, values)
		}
	}
	view.Ask = site.FillForm(explainForm, values, problems)
	return v.Render(explainPage, newHead(v, "Explain a call", problems, view.Ask), view)
}

// answer explains the call that a form describes, by the rules with another one unless that is nil.
func (p *Pages) answer(ctx context.Context, values url.Values, trial *access.Rule) (access.Explanation, error) {
	trimmed := func(field string) string { return strings.TrimSpace(values.Get(field)) }
	d := deciding.Draft{
		Subject: subjectOf(values.Get("subject")), Trust: values.Get("trust"), Method: values.Get("method"), Name: trimmed("tool"),
		Address: trimmed("address"), Server: trimmed("server"), Client: trimmed("client"), Resource: trimmed("resource"),
	}
	switch {
	case d.Server == "":
		return access.Explanation{}, fields.Invalid("server", " must be a name or an address")
	case d.Method == string(access.CallsTools) && d.Name == "":
		return access.Explanation{}, fields.Invalid("tool", " must be the name of the tool that is called")
	case d.Subject == "":
		d.Subject = string(access.SelectAnyone)
	}
	if _, err := access.ParseSelector(d.Subject); err != nil {
		return access.Explanation{}, fields.Invalid("subject", ": %s", fault.PublicMessage(err))
	}
	if strings.Contains(d.Server, "://") {
		if u, err := url.Parse(d.Server); err != nil || u.Host == "" {
			return access.Explanation{}, fields.Invalid("server", " must be a name or a URL, for example https://tools.example.com/mcp")
		}
		d.Server, d.URL = "", d.Server
	}
	who, q, err := deciding.ParseQuestion(d)
	if err != nil {
		return access.Explanation{}, err
	}
	who.Trial = trial
	return p.ports.Access.Explain(ctx, who, q)
}

// maxSteps is up to how many rules a page lists that did not decide, whatever failed.
const maxSteps = 100

func newAnswerView(e *access.Explanation, asked url.Values) *answerView {
	view := &answerView{
		Explanation: *e, Level: site.LevelOf(e.Trust), Required: site.LevelOf(e.Decision.Required),
	}
	view.Person, _ = strings.CutPrefix(e.Subject, string(access.SelectPerson)+":")
	if asked.Has("offset") {
		view.page(asked)
		return view
	}
	for _, step := range e.Steps {
		if len(e.Steps) > maxSteps && (step.Failed == access.OnSubject || step.Failed == access.OnServer) || len(view.Steps) == maxSteps {
			view.Others++
			continue
		}
		view.Steps = append(view.Steps, step)
	}
	if view.Others > 0 {
		view.All = stepsAddress(asked, 0)
	}
	return view
}

// page selects the steps of a page of all of them.
func (a *answerView) page(asked url.Values) {
	offset, err := strconv.Atoi(asked.Get("offset"))
	if err != nil || offset < 0 || offset >= len(a.Explanation.Steps) {
		offset = 0
	}
	a.Steps, a.First = a.Page(offset, maxSteps), offset+1
	if offset > 0 {
		a.Earlier = stepsAddress(asked, max(offset-maxSteps, 0))
	}
	if offset+maxSteps < len(a.Explanation.Steps) {
		a.Later = stepsAddress(asked, offset+maxSteps)
	}
}

// Last returns the place of the last one of Steps, on a page of all of them.
func (a *answerView) Last() int { return a.First + len(a.Steps) - 1 }

// stepsAddress returns the address of a page of all steps of a question.
func stepsAddress(asked url.Values, offset int) string {
	values := maps.Clone(asked)
	values.Set("offset", strconv.Itoa(offset))
	return explainPath + "?" + values.Encode() + "#rules"
}
