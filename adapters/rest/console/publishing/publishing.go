// Package publishing has the pages on which people publish servers and change their status.
package publishing

import (
	"bytes"
	"context"
	"embed"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/catalogue"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/browsing"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/core/registry/history"
	"github.com/tollgate-dev/tollgate/core/registry/publishing"
	"github.com/tollgate-dev/tollgate/core/registry/quarantining"
	"github.com/tollgate-dev/tollgate/core/registry/requesting"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

//go:embed templates
var templates embed.FS

var (
	publishPage = site.NewPage(templates, "templates/publish.html")
	managePage  = site.NewPage(templates, "templates/manage.html", "templates/quarantined.html")
	ownPage     = site.NewPage(templates, "templates/own.html", "templates/quarantined.html")
)

// Path is the path of the page for publishing.
const Path = site.Root + "publish"

const (
	ownPath    = site.Root + "own"
	managePath = ownPath + "/:namespace/:server"
	statusPath = managePath + "/status"
)

// Writer changes the registry. *publishing.Publisher implements it and documents the errors.
type Writer interface {
	WritesOff() bool
	Check(ctx context.Context, who authority.Caller, body []byte) ([]publishing.Finding, error)
	Publish(ctx context.Context, who authority.Caller, r publishing.Request) (publishing.Outcome, error)
	SetStatus(
		ctx context.Context, who authority.Caller, r publishing.Request, t publishing.Target,
	) (registry.Record, error)
	SetOwner(ctx context.Context, who authority.Caller, serverName, team, contact string) error
	SetStatusAll(
		ctx context.Context, who authority.Caller, r publishing.Request, serverName string, room publishing.SizeCheck,
	) (history.History, error)
}

// Ports are the use cases that the pages call.
type Ports struct {
	Writer  Writer
	Reviews *reviewing.Service
	Reader  *browsing.Browser
	Own     *browsing.Own
	Owners  registrystore.Owners
	Hidden  *quarantining.Service
	// Policies say who may publish without a person.
	Policies *delegating.Policies
	Requests *requesting.Service
	Rights   *delegating.Rights
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
	p.site.Post(r, Path, 0, site.Act{
		Level: auth.Unverified, Title: "Publish", Do: p.publish, Show: p.showAgain, Keep: true,
	})
	p.mountTrusted(r)
	p.mountRights(r)
	r.Get(requestPath, p.site.Require(auth.Unverified, func(v *site.Visit) error { return p.showRequest(v, nil) }))
	p.site.Post(r, requestPath, 0, site.Act{
		Level: auth.Unverified, Title: "Request a server", Do: p.request, Show: p.showRequest, Keep: true,
		Check: func(v *site.Visit) error { return requestDraft(v).Validate() },
	})
	r.Get(ownPath, p.site.Require(auth.Unverified, p.own))
	r.Get(managePath, p.site.Require(auth.Unverified, func(v *site.Visit) error { return p.manage(v, nil) }))
	r.Get(ownerPath, p.site.Require(auth.Unverified, func(v *site.Visit) error { return p.showOwner(v, nil) }))
	p.site.Post(r, ownerPath, 0, site.Act{Level: auth.Unverified, Title: "Change the owner", Do: p.setOwner, Show: p.showOwner, Keep: true})
	p.site.Post(r, statusPath, 1, site.Act{
		Level: auth.Unverified, Title: "Change the status", Do: p.setStatus, Show: p.manage,
	})
}

// publishView is the page for publishing.
type publishView struct {
	Document  string
	Before    review.Shown // the review of the document that is published again; the zero value without one
	Checked   bool         // the document was checked
	Name      string
	Version   string
	Errors    issuesView
	Warnings  issuesView
	WritesOff bool
	Patterns  []registry.Pattern // of the servers that the person may publish
	Findings  []findingView      // of the checks that publishing makes
	Refused   bool               // one of them would refuse the document
}

// findingView is the result of a check in words.
type findingView struct {
	Badge         site.Badge
	Subject, Text string
}

// issuesView are the mistakes in a document, as far as they fit on the page.
type issuesView struct {
	Shown []issueView
	All   int // the number of all
	More  int // the number of those that are not shown
}

// maxIssues is the number of mistakes and hints on the page.
const maxIssues = 200

// newIssuesView returns the first mistakes, as many as there is room for.
func newIssuesView(all []issueView, room int) issuesView {
	shown := all[:min(len(all), max(room, 0))]
	return issuesView{shown, len(all), len(all) - len(shown)}
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
		problem := registry.Issue{Message: site.Sentence(err), Severity: registry.SeverityError}
		c.errors = []issueView{{registry.PlacedIssue{Issue: problem, Place: registry.RefusalPlace(text)}, ""}}
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
	before, err := p.submitted(v)
	if err != nil {
		return err
	}
	document := site.IndentJSON(before.Document).Text
	patterns, err := v.Patterns(registry.ActionPublish)
	if err != nil {
		return err
	}
	if document == "" && v.Text("template") != "" {
		document = newTemplate(patterns)
	}
	return v.Render(publishPage, site.Head{Title: "Publish a server", Problems: problems}, publishView{
		Document: document, Before: before, WritesOff: p.ports.Writer.WritesOff(), Patterns: patterns,
	})
}

// newTemplate returns a document to begin with, in the first namespace that a person may publish in.
func newTemplate(patterns []registry.Pattern) string {
	name := "com.example/"
	if len(patterns) > 0 && strings.Contains(patterns[0].String(), "/") {
		name = patterns[0].String()
	}
	if name = strings.TrimSuffix(name, "*"); strings.HasSuffix(name, "/") {
		name += "my-server"
	}
	return `{
  "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
  "name": "` + name + `",
  "title": "My server",
  "description": "What one can do with it, in at most 100 characters",
  "version": "1.0.0",
  "remotes": [
    { "type": "streamable-http", "url": "https://my-server.example.com/mcp" }
  ]
}
`
}

// checkAsPublished shows the form with what publishing the document would find.
func (p *Pages) checkAsPublished(v *site.Visit) error {
	who, err := v.Caller()
	if err != nil {
		return err
	}
	findings, err := p.ports.Writer.Check(v.UserContext(), who, []byte(v.Form.Get("document")))
	if err != nil {
		return err
	}
	return p.showFindings(v, nil, findings)
}

// addFindings adds the results of checks.
func (view *publishView) addFindings(findings []publishing.Finding) {
	for _, f := range findings {
		one := findingView{site.Badge{Text: "Passed", Class: "good"}, f.Subject, f.Open}
		switch {
		case f.Err != nil:
			one.Badge, one.Text, view.Refused = site.Badge{Text: "Refused", Class: "bad"}, site.Sentence(f.Err), true
		case f.Open != "":
			one.Badge = site.Badge{Text: "Not checked", Class: "warn"}
		}
		view.Findings = append(view.Findings, one)
	}
}

// submitted returns the review that the query names, to publish its document again; the zero value without one.
func (p *Pages) submitted(v *site.Visit) (review.Shown, error) {
	id := v.Text("review")
	if id == "" {
		return review.Shown{}, nil
	}
	who, err := v.Caller()
	if err != nil {
		return review.Shown{}, err
	}
	return p.ports.Reviews.Get(v.UserContext(), who, registry.ReviewID(id))
}

// showAgain shows the form as it was filled in, with what the rules say about the document.
func (p *Pages) showAgain(v *site.Visit, problems site.Problems) error {
	return p.showFindings(v, problems, nil)
}

// showFindings shows the form as it was filled in, with the results of checks.
func (p *Pages) showFindings(v *site.Visit, problems site.Problems, findings []publishing.Finding) error {
	text := v.Form.Get("document")
	c := checkDocument([]byte(text))
	view := publishView{
		Document: text, Checked: true, Name: c.draft.Name(), Version: c.draft.Version(),
		Errors: newIssuesView(c.errors, maxIssues), Warnings: newIssuesView(c.warnings, maxIssues-len(c.errors)),
		WritesOff: p.ports.Writer.WritesOff(),
	}
	view.addFindings(findings)
	var err error
	if view.Patterns, err = v.Patterns(registry.ActionPublish); err != nil {
		return err
	}
	if len(c.errors) > 0 { // the list of them says more
		problems = nil
		v.Status(fiber.StatusUnprocessableEntity)
	}
	return v.Render(publishPage, site.Head{
		Title: "Publish a server", Problems: problems.At("document"), Failed: len(c.errors) > 0,
	}, view)
}

// publish checks the document, and publishes it if that is asked for and it keeps all rules.
func (p *Pages) publish(v *site.Visit) error {
	text := readDocument(v)
	if len(bytes.TrimSpace(text)) == 0 {
		v.Status(fiber.StatusUnprocessableEntity)
		return p.show(v, site.Problems{{Field: "document", Text: "Paste a document, or choose a file."}})
	}
	switch broken := len(checkDocument(text).errors) > 0; {
	case broken:
		return p.showAgain(v, nil)
	case v.Form.Get("act") == "check":
		return p.checkAsPublished(v)
	}
	return p.publishDocument(v, text)
}

// publishDocument publishes a document and leads to what became of it.
func (p *Pages) publishDocument(v *site.Visit, text []byte) error {
	who, err := v.Caller()
	if err != nil {
		return err
	}
	outcome, err := p.ports.Writer.Publish(v.UserContext(), who, publishing.Request{Body: text})
	switch {
	case err != nil:
		return err
	case outcome.Pending != "":
		return v.Redirect(ownPath + "?done=submitted")
	}
	return v.Redirect(catalogue.VersionPath(outcome.Name, outcome.Version) + "?done=published")
}

// readDocument returns the document of the form: that of the file, if one was chosen, which then
// takes the place of the text.
func readDocument(v *site.Visit) []byte {
	if file := v.Form.Get("file"); file != "" {
		v.Form.Set("document", file)
		v.Form.Del("file")
	}
	return []byte(v.Form.Get("document"))
}
