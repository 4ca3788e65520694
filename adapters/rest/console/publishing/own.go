package publishing

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/catalogue"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/core/registry/publishing"
	"github.com/tollgate-dev/tollgate/core/registry/requesting"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
)

// notices say what has just been done.
var notices = map[string]string{
	"submitted": "The document waits for review. It is listed when somebody else approves it.",
	"requested": "The request waits for review. You get an e-mail when it is decided.",
	"status":    "The status is changed.",
}

// ownView is the page with the servers of a person.
type ownView struct {
	Waiting []review.Shown
	Decided []review.Shown
	Servers []ownCard
	Next    string
	Later   bool
}

// ownCard is a server of a person.
type ownCard struct {
	catalogue.Card

	Quarantined []registry.Quarantined // what of it is in quarantine
}

// own shows the servers that the person may change, and what waits for review.
func (p *Pages) own(v *site.Visit) error {
	cursor := v.Text("cursor")
	view := ownView{Later: cursor != ""}
	if err := p.addSubmitted(v, &view); err != nil {
		return err
	}
	found, err := p.ports.Own.List(v.UserContext(), registry.Holder(v.Session.UserID), cursor)
	if err != nil {
		return err
	}
	if view.Servers, err = p.ownCards(v, found.Records); err != nil {
		return err
	}
	if found.NextCursor != "" {
		view.Next = ownPath + "?" + url.Values{"cursor": {found.NextCursor}}.Encode()
	}
	return v.Render(ownPage, site.Head{Title: "My servers", Notice: notices[v.Text("done")]}, view)
}

// ownCards returns the cards of servers.
func (p *Pages) ownCards(v *site.Visit, records []registry.Record) (cards []ownCard, err error) {
	names := make([]registry.Name, len(records))
	for i := range records {
		names[i] = records[i].Name
	}
	hidden, err := p.ports.Hidden.Entries(v.UserContext(), names...)
	for _, r := range records {
		card := catalogue.NewCard(r, hidden[r.Name])
		card.Path = catalogue.ManagePath(r.Name)
		cards = append(cards, ownCard{card, hidden[r.Name]})
	}
	return cards, err
}

// addSubmitted adds the documents of the person that wait for review, and the last that were decided.
func (p *Pages) addSubmitted(v *site.Visit, view *ownView) error {
	who, err := v.Caller()
	if err != nil {
		return err
	}
	own := reviewing.Filter{Own: true, Brief: true}
	waiting, err := p.ports.Reviews.List(v.UserContext(), who, reviewing.Query{Limit: "100", Filter: own})
	if err != nil {
		return err
	}
	own.Decided = true
	decided, err := p.ports.Reviews.List(v.UserContext(), who, reviewing.Query{Limit: "20", Filter: own})
	view.Waiting, view.Decided = waiting.Reviews, decided.Reviews
	return err
}

// manageView is the page on which the status of versions is changed.
type manageView struct {
	Name, Path, Here, Action string
	Editions                 []registry.Edition
	More                     int
	Quarantined              []registry.Quarantined
	Version                  string            // whose status is changed; allVersions for all, empty for none yet
	Now                      *registry.Edition // that version
	Status                   string            // as the form was filled in
	Message                  string
	Asks                     bool // whether the person is sure
}

// allVersions is the version of the form that changes all of a server.
const allVersions = "*"

// isSure reports whether the change of the form can be undone easily, or the person is sure.
func isSure(v *site.Visit) bool {
	hard := v.Form.Get("version") == allVersions || v.Form.Get("status") == string(registry.StatusDeleted)
	return !hard || v.Form.Get("sure") != ""
}

// maxListed is the number of versions on a page.
const maxListed = 100

func (p *Pages) manage(v *site.Visit, problems site.Problems) error {
	name, err := readName(v)
	if err != nil {
		return err
	}
	editions, err := p.ports.Reader.Editions(v.UserContext(), name)
	if err != nil {
		return err
	}
	hidden, err := p.ports.Hidden.Entries(v.UserContext(), editions[0].Name)
	if err != nil {
		return err
	}
	view := newManageView(v, name, editions)
	view.Quarantined = hidden[editions[0].Name]
	return v.Render(managePage, site.Head{
		Title: "Change the status of " + name, Notice: notices[v.Text("done")], Problems: problems,
	}, view)
}

func newManageView(v *site.Visit, name string, editions []registry.Edition) manageView {
	view := manageView{
		Name: name, Path: catalogue.ServerPath(editions[0].Name), Here: catalogue.ManagePath(editions[0].Name), Action: catalogue.ManagePath(editions[0].Name) + "/status",
		Editions: editions[:min(len(editions), maxListed)], More: max(len(editions)-maxListed, 0),
		Version: cmp.Or(v.Form.Get("version"), v.Text("version")), Status: v.Form.Get("status"),
		Message: v.Form.Get("message"), Asks: !isSure(v),
	}
	if i := slices.IndexFunc(editions, func(e registry.Edition) bool { return e.Version.String() == view.Version }); i >= 0 {
		view.Now = &editions[i]
	}
	return view
}

func readName(v *site.Visit) (string, error) {
	namespace, err := v.Param("namespace")
	if err != nil {
		return "", err
	}
	server, err := v.Param("server")
	return namespace + "/" + server, err
}

// setStatus changes the status of one version, or of all.
func (p *Pages) setStatus(v *site.Visit) error {
	text, err := readName(v)
	if err != nil {
		return err
	}
	if !isSure(v) {
		v.Status(http.StatusUnprocessableEntity)
		return p.manage(v, site.Problems{{Field: "sure", Text: "Say that you are sure: users notice this at once."}})
	}
	r, err := statusRequest(v)
	if err != nil {
		return err
	}
	return v.Done(p.changeStatus(v, text, r), strings.TrimSuffix(strings.Clone(v.Path()), "/status"), "status")
}

// changeStatus changes the status of the version of the form, or of all versions of the server.
func (p *Pages) changeStatus(v *site.Visit, server string, r publishing.Request) error {
	who, err := v.Caller()
	if err != nil {
		return err
	}
	version := v.Form.Get("version")
	if version == "" {
		return fault.New(fault.Invalid, "choose a version, or all versions")
	}
	if version != allVersions {
		_, err = p.ports.Writer.SetStatus(v.UserContext(), who, r, publishing.Target{Name: server, Version: version})
	} else {
		_, err = p.ports.Writer.SetStatusAll(v.UserContext(), who, r, server, nil)
	}
	return err
}

// statusRequest returns the request with the status and the message of the form.
func statusRequest(v *site.Visit) (publishing.Request, error) {
	update := struct {
		Status  string `json:"status"`
		Message string `json:"statusMessage,omitempty"`
	}{v.Form.Get("status"), strings.TrimSpace(v.Form.Get("message"))}
	body, err := json.Marshal(update)
	if err != nil {
		return publishing.Request{}, fmt.Errorf("encode a change of status: %w", err)
	}
	return publishing.Request{Body: body}, nil
}

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
	_, err = p.ports.Requests.Request(v.UserContext(), who, requestDraft(v))
	return v.Done(err, ownPath, "requested")
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
