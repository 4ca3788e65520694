// Package publishing has the pages on which people publish servers and change their status.
package publishing

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/catalogue"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/browse"
	"github.com/tollgate-dev/tollgate/core/registry/publish"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/reviews"
)

//go:embed templates
var templates embed.FS

var (
	publishPage = site.ParsePage(templates, "templates/publish.html")
	managePage  = site.ParsePage(templates, "templates/manage.html")
	ownPage     = site.ParsePage(templates, "templates/own.html")
)

// Path is the path of the page for publishing.
const Path = site.Root + "publish"

const (
	ownPath    = site.Root + "own"
	managePath = ownPath + "/:namespace/:server"
	statusPath = managePath + "/status"
)

// Writer changes the registry. *publish.Publisher implements it and documents the errors.
type Writer interface {
	WritesOff() bool
	Publish(ctx context.Context, r publish.Request) (publish.Outcome, error)
	SetStatus(ctx context.Context, r publish.Request, t publish.Target) (registry.Record, error)
	SetStatusAll(ctx context.Context, r publish.Request, serverName string, room publish.SizeCheck) (browse.History, error)
}

// Reviews has the documents that wait for review. *reviews.Service implements it.
type Reviews interface {
	List(ctx context.Context, r reviews.Request, q reviews.Query) (reviews.Page, error)
}

// Reader reads the registry. *browse.Browser implements it.
type Reader interface {
	Editions(ctx context.Context, serverName string) ([]registry.Edition, error)
}

// Own finds the servers that a person may change. *browse.Own implements it.
type Own interface {
	List(ctx context.Context, person registry.Holder, cursor string) (browse.Page, error)
}

// Ports are the use cases that the pages call.
type Ports struct {
	Writer  Writer
	Reviews Reviews
	Reader  Reader
	Own     Own
}

// Pages are the pages of publishing. It is safe for concurrent use.
type Pages struct {
	site  *site.Site
	ports Ports
}

// New returns the pages.
func New(s *site.Site, p Ports) *Pages { return &Pages{s, p} }

// Mount adds the routes.
func (p *Pages) Mount(r fiber.Router) {
	r.Get(Path, p.site.Require(auth.Unverified, func(v *site.Visit) error { return p.show(v, nil) }))
	r.Post(Path, p.site.Do(site.Act{Level: auth.Unverified, Title: "Publish", Do: p.publish, Show: p.showAgain}))
	r.Get(ownPath, p.site.Require(auth.Unverified, p.own))
	r.Get(managePath, p.site.Require(auth.Unverified, func(v *site.Visit) error { return p.manage(v, nil) }))
	r.Post(statusPath, p.site.Do(site.Act{Level: auth.Unverified, Title: "Change the status", Do: p.setStatus, Show: p.manage}))
}

// publishView is the page for publishing.
type publishView struct {
	Document  string
	Checked   bool // the document was checked
	Name      string
	Version   string
	Errors    []issueView
	Warnings  []issueView
	WritesOff bool
}

// issueView is a mistake in a document, with its line.
type issueView struct {
	registry.PlacedIssue

	Text string // a part of the line
}

// check is what the rules say about a document.
type check struct {
	draft            registry.Draft
	errors, warnings []issueView
}

// checkDocument checks a document by the rules, without storing anything.
func checkDocument(text []byte) check {
	var c check
	draft, err := registry.ParseDraft(text)
	if err != nil {
		place, _ := registry.SyntaxErrorPlace(text)
		if place == (registry.Place{}) {
			place = registry.Place{Line: 1, Column: 1}
		}
		problem := registry.Issue{Message: site.Sentence(err), Severity: registry.SeverityError}
		c.errors = []issueView{{registry.PlacedIssue{Issue: problem, Place: place}, ""}}
	} else {
		c.draft = draft
		for _, i := range draft.PlacedIssues(text) {
			if i.Severity == registry.SeverityWarning {
				c.warnings = append(c.warnings, issueView{PlacedIssue: i})
			} else {
				c.errors = append(c.errors, issueView{PlacedIssue: i})
			}
		}
	}
	lines := strings.Split(string(text), "\n")
	for _, all := range [][]issueView{c.errors, c.warnings} {
		for i := range all {
			all[i].Text = excerpt(lines[all[i].Line-1], all[i].Column)
		}
	}
	return c
}

// excerpt returns the part of a line around a column, from 1.
func excerpt(line string, column int) string {
	const before, after = 20, 60
	characters := []rune(strings.TrimRight(line, "\r"))
	from, to := max(column-1-before, 0), min(column-1+after, len(characters))
	text := strings.TrimSpace(string(characters[min(from, to):to]))
	if from > 0 {
		text = "…" + text
	}
	if to < len(characters) {
		text += "…"
	}
	return text
}

func (p *Pages) show(v *site.Visit, problems site.Problems) error {
	return v.Render(publishPage, site.Head{Title: "Publish a server", Problems: problems}, publishView{WritesOff: p.ports.Writer.WritesOff()})
}

// showAgain shows the form as it was filled in, with what the rules say about the document.
func (p *Pages) showAgain(v *site.Visit, problems site.Problems) error {
	text := v.Form.Get("document")
	c := checkDocument([]byte(text))
	view := publishView{
		Document: text, Checked: true, Name: c.draft.Name(), Version: c.draft.Version(), Errors: c.errors, Warnings: c.warnings,
		WritesOff: p.ports.Writer.WritesOff(),
	}
	if len(c.errors) > 0 { // the list of them says more
		problems = nil
		v.Status(fiber.StatusUnprocessableEntity)
	}
	return v.Render(publishPage, site.Head{Title: "Publish a server", Problems: problems}, view)
}

// publish checks the document, and publishes it if that is asked for and it keeps all rules.
func (p *Pages) publish(v *site.Visit) error {
	if file := v.Form.Get("file"); file != "" {
		v.Form.Set("document", file)
		v.Form.Del("file")
	}
	text := []byte(v.Form.Get("document"))
	if v.Form.Get("act") == "check" || len(checkDocument(text).errors) > 0 {
		return p.showAgain(v, nil)
	}
	r, err := p.request(v, text)
	if err != nil {
		return err
	}
	outcome, err := p.ports.Writer.Publish(v.UserContext(), r)
	switch {
	case err != nil:
		return err
	case outcome.Pending != "":
		return v.Redirect(ownPath + "?done=submitted")
	}
	return v.Redirect(catalogue.VersionPath(outcome.Name, outcome.Version))
}

// request returns a request of the person to change the registry.
func (p *Pages) request(v *site.Visit, body []byte) (publish.Request, error) {
	token, err := v.Token()
	return publish.Request{Token: token, Address: rest.Address(v.Ctx), Body: body}, err
}

// notices say what has just been done.
var notices = map[string]string{
	"submitted": "The document waits for review. It is listed when somebody else approves it.",
	"status":    "The status is changed.",
}

// ownView is the page with the servers of a person.
type ownView struct {
	Waiting []waitingView
	Servers []catalogue.Card
	Next    string
	Later   bool
}

// waitingView is a document that waits for review.
type waitingView struct {
	review.Shown

	Path string
}

// own shows the servers that the person may change, and what waits for review.
func (p *Pages) own(v *site.Visit) error {
	token, err := v.Token()
	if err != nil {
		return err
	}
	waiting, err := p.ports.Reviews.List(v.UserContext(), reviews.Request{Token: token, Address: rest.Address(v.Ctx)}, reviews.Query{Limit: "100"})
	if err != nil {
		return err
	}
	cursor := v.Text("cursor")
	found, err := p.ports.Own.List(v.UserContext(), registry.Holder(v.Session.UserID), cursor)
	if err != nil {
		return err
	}
	view := ownView{Later: cursor != ""}
	for _, w := range waiting.Reviews {
		if w.IsOwn(registry.Holder(v.Session.UserID)) {
			view.Waiting = append(view.Waiting, waitingView{w, site.Root + "reviews/" + string(w.ID)})
		}
	}
	for _, r := range found.Records {
		card := catalogue.NewCard(r)
		card.Path = manageAddress(r.Name)
		view.Servers = append(view.Servers, card)
	}
	if found.NextCursor != "" {
		view.Next = ownPath + "?cursor=" + found.NextCursor
	}
	return v.Render(ownPage, site.Head{Title: "My servers", Notice: notices[v.Text("done")]}, view)
}

// manageAddress returns the address of the page on which a server is changed.
func manageAddress(name registry.Name) string {
	return ownPath + "/" + strings.TrimPrefix(catalogue.ServerPath(name), catalogue.ServersPath)
}

// manageView is the page on which the status of versions is changed.
type manageView struct {
	Name, Path, Action string
	Editions           []registry.Edition
	More               int
	Version            string // as the form was filled in
	Status             string
	Message            string
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
	view := manageView{
		Name: name, Path: catalogue.ServerPath(editions[0].Name), Action: manageAddress(editions[0].Name) + "/status",
		Editions: editions[:min(len(editions), maxListed)], More: max(len(editions)-maxListed, 0),
		Version: v.Form.Get("version"), Status: v.Form.Get("status"), Message: v.Form.Get("message"),
	}
	return v.Render(managePage, site.Head{Title: "Change the status of " + name, Notice: notices[v.Text("done")], Problems: problems}, view)
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
	name, err := readName(v)
	if err != nil {
		return err
	}
	update := struct {
		Status  string `json:"status"`
		Message string `json:"statusMessage,omitempty"`
	}{v.Form.Get("status"), strings.TrimSpace(v.Form.Get("message"))}
	body, err := json.Marshal(update)
	if err != nil {
		return fmt.Errorf("encode a change of status: %w", err)
	}
	r, err := p.request(v, body)
	if err != nil {
		return err
	}
	if version := v.Form.Get("version"); version != "" {
		_, err = p.ports.Writer.SetStatus(v.UserContext(), r, publish.Target{Name: name, Version: version})
	} else {
		_, err = p.ports.Writer.SetStatusAll(v.UserContext(), r, name, nil)
	}
	if err != nil {
		return err
	}
	parsed, err := registry.ParseName(name)
	if err != nil {
		return err
	}
	return v.Redirect(manageAddress(parsed) + "?done=status")
}
