// Package reviewing has the pages on which reviewers decide about documents, and put servers in
// quarantine.
package reviewing

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/quarantining"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

//go:embed templates
var templates embed.FS

var (
	queuePage      = site.ParsePage(templates, "templates/queue.html")
	reviewPage     = site.ParsePage(templates, "templates/review.html")
	quarantinePage = site.ParsePage(templates, "templates/quarantine.html")
)

// The paths of the pages.
const (
	Path           = site.Root + "reviews"
	QuarantinePath = site.Root + "quarantine"

	reviewPath  = Path + "/:id"
	decidePath  = reviewPath + "/decide"
	releasePath = QuarantinePath + "/release"
)

// Ports are the use cases that the pages call.
type Ports struct {
	Reviews    *reviewing.Service
	Quarantine *quarantining.Service
}

// Pages are the pages of reviewers. It is safe for concurrent use.
type Pages struct {
	site  *site.Site
	ports Ports
}

// New returns the pages.
func New(s *site.Site, p Ports) *Pages { return &Pages{s, p} }

// Mount adds the routes.
func (p *Pages) Mount(r fiber.Router) {
	r.Get(Path, p.site.Require(auth.Unverified, func(v *site.Visit) error { return p.queue(v, nil) }))
	p.site.Post(r, Path, 0, site.Act{
		Level: auth.Unverified, Title: "Decide these reviews", Do: p.decideSelected, Show: p.queue,
	})
	r.Get(reviewPath, p.site.Require(auth.Unverified, func(v *site.Visit) error { return p.show(v, nil) }))
	r.Get(reviewPath+"/document", p.site.Require(auth.Unverified, p.document))
	p.site.Post(r, decidePath, 1, site.Act{
		Level: auth.Unverified, Title: "Decide this review", Do: p.decide, Show: p.show,
	})
	r.Get(QuarantinePath,
		p.site.Require(auth.Unverified, func(v *site.Visit) error { return p.showQuarantine(v, nil) }))
	p.site.Post(r, QuarantinePath, 0, site.Act{
		Level: auth.Unverified, Title: "Put in quarantine", Do: p.hide, Show: p.showQuarantine,
	})
	p.site.Post(r, releasePath, 1, site.Act{Level: auth.Unverified, Title: "Release from quarantine", Do: p.release})
}

// kinds are the kinds of submissions in words.
var kinds = map[review.Kind]string{
	review.NewServer: "New server", review.NewVersion: "New version", review.Replacement: "Changed document",
}

// queueView is the page with a list of reviews.
type queueView struct {
	States  []stateLink
	State   string
	Reviews []review.Shown
	Kinds   map[review.Kind]string // in words
	Next    string
	Later   bool
	Open    bool               // they wait for a decision
	Chosen  map[review.ID]bool // as the form was filled in
	Comment string
}

type stateLink struct {
	Text, Path string
	Current    bool
}

func (p *Pages) queue(v *site.Visit, problems site.Problems) error {
	q := reviewing.Query{State: cmp.Or(v.Text("state"), string(review.Pending)), Cursor: v.Text("cursor")}
	who, err := v.Caller()
	if err != nil {
		return err
	}
	found, err := p.ports.Reviews.List(v.UserContext(), who, q)
	if err != nil {
		return err
	}
	view := queueView{
		States: stateLinks(q.State), State: site.ReviewBadge(review.State(q.State)).Text, Reviews: found.Reviews, Kinds: kinds,
		Later: q.Cursor != "", Open: q.State == string(review.Pending), Chosen: selected(v),
		Comment: v.Form.Get("comment"),
	}
	if found.NextCursor != "" {
		view.Next = Path + "?" + url.Values{"state": {q.State}, "cursor": {found.NextCursor}}.Encode()
	}
	return v.Render(queuePage,
		site.Head{Title: "Reviews", Notice: notices[v.Text("done")], Problems: problems.Only("comment")}, view)
}

// stateLinks returns the links to the lists of reviews in each state.
func stateLinks(current string) (links []stateLink) {
	for _, s := range [...]review.State{review.Pending, review.Approved, review.Rejected, review.Superseded} {
		links = append(links, stateLink{site.ReviewBadge(s).Text, Path + "?state=" + string(s), string(s) == current})
	}
	return links
}

// notices say what has just been done.
var notices = map[string]string{
	"approve": "Approved. The document is listed now.", "reject": "Rejected. The submitter is told why.",
	"approved": "Approved. The documents are listed now.", "rejected": "Rejected. The submitters are told why.",
	"hidden": "It is in quarantine, and listed nowhere.", "released": "It is released, and listed as before.",
}

// reviewView is the page of a review.
type reviewView struct {
	review.Shown

	Kind            string
	By, Decider     string
	Document        site.Excerpt // without Meta
	Meta            site.Excerpt // empty without one
	Whole           string       // the address of the whole document
	Differences     []differenceView
	MetaDifferences []differenceView
	MetaCut         bool // there are more of these, or longer ones
	LeftOut         bool // something outside Meta is not on the page, so that no one approves it here
	Checks          []checkView
	Warnings        []string
	Action          string
	Open            bool // it waits for a decision
	Own             bool // the person has submitted it
	Comment         string
}

// differenceView is a value that differs between two documents.
type differenceView struct{ Path, Before, After string }

// checkView is the check of a package in words.
type checkView struct {
	review.Check

	Text, Class string
}

// checkTexts are the results of checks in words.
var checkTexts = map[review.CheckState]struct{ text, class string }{
	review.CheckPassed:  {"Passed", "good"},
	review.CheckFailed:  {"Failed", "bad"},
	review.CheckSkipped: {"Not checked", "warn"},
}

func (p *Pages) show(v *site.Visit, problems site.Problems) error {
	who, id, err := p.request(v)
	if err != nil {
		return err
	}
	shown, err := p.ports.Reviews.Get(v.UserContext(), who, id)
	if err != nil {
		return err
	}
	view, err := newReviewView(v, shown)
	if err != nil {
		return err
	}
	if view.By, err = v.NameOf(shown.Submitter.Key); err != nil {
		return err
	}
	if view.Decider, err = v.NameOf(shown.DecidedBy); err != nil {
		return err
	}
	title := "Review of " + shown.Name.String()
	return v.Render(reviewPage, site.Head{Title: title, Notice: notices[v.Text("done")], Problems: problems}, view)
}

func newReviewView(v *site.Visit, shown review.Shown) (reviewView, error) {
	path := Path + "/" + string(shown.ID)
	view := reviewView{
		Shown: shown, Kind: kinds[shown.Kind],
		Whole: path + "/document", Action: path + "/decide", Open: shown.State == review.Pending,
		Own: shown.IsOwn(registry.Holder(v.Session.UserID)), Comment: v.Form.Get("comment"),
	}
	document, meta, err := review.Ordered(shown.Document)
	if err != nil {
		return reviewView{}, err
	}
	view.Document = site.IndentLongJSON(document, maxShown)
	view.LeftOut = view.Document.Cut
	if meta != nil {
		view.Meta = site.IndentJSON(meta)
	}
	warnings, err := review.Warnings(shown.Document)
	if err != nil {
		return reviewView{}, err
	}
	for _, w := range warnings[:min(len(warnings), maxWarnings)] {
		view.Warnings = append(view.Warnings, site.EscapeDirections(w))
	}
	view.addDifferences(shown.Diff)
	for _, c := range shown.Checks {
		view.Checks = append(view.Checks, checkView{c, checkTexts[c.State].text, checkTexts[c.State].class})
	}
	return view, nil
}

const (
	// maxWarnings bounds the warnings on a page: those about more arguments of the same kind say
	// nothing new, and the document has all.
	maxWarnings = 50
	// maxShown bounds the document on a page, and the differences, without review.Meta. Only a
	// document that is made to be unreadable has more: it cannot be approved on the page.
	maxShown = 2 << 20
	// markup is about the size of the HTML of a difference.
	markup = 200

	// The bounds of the differences in review.Meta, which a publisher fills with anything.
	maxMetaDifferences    = 100
	maxMetaDifference     = 2 << 10 // bytes of a value
	maxAllMetaDifferences = 32 << 10
)

// addDifferences adds the differences: those in review.Meta as far as they fit, all others whole.
func (view *reviewView) addDifferences(all []review.Difference) {
	size, metaSize := 0, 0
	for _, d := range all {
		before, after := value(d.Before), value(d.After)
		if !d.IsMeta() {
			if size += len(d.Path) + len(before) + len(after) + markup; size > maxShown {
				view.LeftOut = true
				continue
			}
			view.Differences = append(view.Differences, differenceView{d.Path, before, after})
			continue
		}
		first, second := site.NewExcerpt(before, maxMetaDifference), site.NewExcerpt(after, maxMetaDifference)
		metaSize += len(d.Path) + len(first.Text) + len(second.Text)
		if len(view.MetaDifferences) == maxMetaDifferences || metaSize > maxAllMetaDifferences {
			view.MetaCut = true
			continue
		}
		view.MetaCut = view.MetaCut || first.Cut || second.Cut
		view.MetaDifferences = append(view.MetaDifferences, differenceView{d.Path, first.Text, second.Text})
	}
}

// document sends the whole document of a review.
func (p *Pages) document(v *site.Visit) error {
	who, id, err := p.request(v)
	if err != nil {
		return err
	}
	shown, err := p.ports.Reviews.Get(v.UserContext(), who, id)
	if err != nil {
		return err
	}
	return v.SendJSON(shown.Document)
}

// request returns the caller, and the review in the path.
func (p *Pages) request(v *site.Visit) (authority.Caller, review.ID, error) {
	id, err := v.Param("id")
	if err != nil {
		return authority.Caller{}, "", err
	}
	who, err := v.Caller()
	return who, review.ID(id), err
}

// value returns a value of a document as JSON; empty for one that is not there.
func value(v any) string {
	if v == nil {
		return ""
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return site.EscapeDirections(string(bytes.TrimSpace(b.Bytes())))
}

// decide approves or rejects a document.
func (p *Pages) decide(v *site.Visit) error {
	who, id, err := p.request(v)
	if err != nil {
		return err
	}
	comment := v.Form.Get("comment")
	switch decision := v.Form.Get("decision"); decision {
	case "approve":
		_, err = p.ports.Reviews.Approve(v.UserContext(), who, id, comment)
	case "reject":
		_, err = p.ports.Reviews.Reject(v.UserContext(), who, id, comment)
	default:
		err = fault.New(fault.Invalid, "choose whether to approve or to reject")
	}
	if err != nil {
		return err
	}
	return v.Redirect(Path + "/" + url.PathEscape(string(id)) + "?done=" + v.Form.Get("decision"))
}
