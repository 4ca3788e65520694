package reviewing

import (
	"strings"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/catalogue"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// reviewView is the page of a review.
type reviewView struct {
	review.Shown

	Kind        string
	What        string // it decides about
	By, Decider string
	Points      []review.Point // what it changes, in words
	MorePoints  int
	Lines       []review.Line // the difference
	MetaLines   []review.Line
	MetaCut     bool         // there are more of these
	Document    site.Excerpt // without Meta
	Meta        site.Excerpt // empty without one
	Whole       string       // the address of the whole document
	Listed      string       // the address of the version that it is compared with; empty if it is not listed
	LeftOut     bool         // something outside Meta is not on the page, so that no one approves it here
	Checks      []checkView
	Tools       []toolsView
	Warnings    []string
	History     map[review.State]int // of the submitter, here
	Action      string
	Open        bool   // it waits for a decision
	Own         bool   // the person has submitted it
	Again       string // the address of the form that publishes it again; empty if that is not offered
	Danger      bool   // a point of its summary is dangerous
	Mine        bool   // the person has given the first of two approvals
	FirstBy     string
	Deciders    []reviewing.Deciders // who may decide it
	Waiting     int                  // reviews that wait for the person
	Place       int                  // of the review among them; 0 if it is none of the first
	Previous    string
	Next        string        // the addresses of the reviews before and after it; empty without them
	Past        review.Review // the last refusal of the version; the zero value without one
	PastDecider string
	Since       []review.Point // what differs from what was rejected
	Comment     string
	Objection   string // a comment for a refusal; empty if nothing is dangerous
}

// checkView is the check of a package in words.
type checkView struct {
	review.Check

	Badge site.Badge
}

// checkBadges are the results of checks in words.
var checkBadges = map[review.CheckState]site.Badge{
	review.CheckPassed:  {Text: "Passed", Class: "good"},
	review.CheckFailed:  {Text: "Failed", Class: "bad"},
	review.CheckSkipped: {Text: "Not checked", Class: "warn"},
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
	if err := p.addPeople(v, &view); err != nil {
		return err
	}
	if err := p.addPlace(v, who, &view); err != nil {
		return err
	}
	title := "Review of " + shown.Name.String() + " " + shown.Version.String()
	return v.Render(reviewPage, site.Head{Title: title, Notice: p.noticeOfOne(v, who, view.Open), Problems: view.explain(problems)}, view)
}

// noticeOfOne returns what has just been done, and after the last review that no other waits.
func (p *Pages) noticeOfOne(v *site.Visit, who authority.Caller, open bool) string {
	notice := p.notice(v, who)
	if notice == "" || open {
		return notice
	}
	if waiting, err := p.ports.Reviews.Waiting(v.UserContext(), who); err == nil && len(waiting.Reviews) == 0 {
		notice += ". No other review waits for you."
	}
	return notice
}

// explain returns the problems of the form; that of the comment, if one is offered, says so.
func (view *reviewView) explain(problems site.Problems) site.Problems {
	if view.Objection == "" || view.Comment != view.Objection || problems.Of("comment") == "" {
		return problems
	}
	return site.Problems{{Field: "comment", Text: "Comment is filled in from what is dangerous: change it or not, and refuse again."}}
}

// maxDeciders bounds the patterns whose reviewers a page names.
const maxDeciders = 4

// addPeople adds who has submitted and decided, and what the submitter has submitted before.
func (p *Pages) addPeople(v *site.Visit, view *reviewView) (err error) {
	if view.By, err = v.NameOf(view.Submitter.Key); err != nil {
		return err
	}
	if view.Decider, err = v.NameOf(view.DecidedBy); err != nil {
		return err
	}
	if view.FirstBy, err = v.NameOf(view.First.By); err != nil {
		return err
	}
	if view.Open {
		if view.Deciders, err = p.ports.Reviews.Deciders(v.UserContext(), view.Review); err != nil {
			return err
		}
		view.Deciders = view.Deciders[:min(len(view.Deciders), maxDeciders)]
	}
	view.History, err = p.ports.Reviews.HistoryOf(v.UserContext(), view.Review)
	return err
}

func newReviewView(v *site.Visit, shown review.Shown) (reviewView, error) {
	path := Path + "/" + string(shown.ID)
	what := map[bool]string{true: "list", false: "document"}[shown.Kind == review.Tools]
	view := reviewView{
		What: what, Danger: shown.IsDangerous(), Mine: shown.First.By == string(v.Session.UserID), Shown: shown, Kind: site.ReviewKinds[shown.Kind],
		Whole: path + "/document", Action: path + "/decide", Open: shown.State == review.Pending,
		Own: shown.IsOwn(registry.Holder(v.Session.UserID)), Comment: v.Form.Get("comment"), Objection: site.EscapeInvisible(shown.Objection()),
	}
	if refused := v.Form.Has("decision") && v.Form.Get("decision") != "approve"; refused && strings.TrimSpace(view.Comment) == "" {
		view.Comment = view.Objection
	}
	if view.Own && (shown.State == review.Rejected || shown.State == review.ChangesRequested) && shown.Kind != review.Tools && !shown.IsRequest() {
		view.Again = site.Root + "publish?review=" + string(shown.ID)
	}
	if shown.Replaces != nil && view.Open {
		view.Listed = catalogue.ServerPath(shown.Name)
	}
	steps := []func() error{view.addSummary, view.addDocument, view.addChecks}
	if shown.Kind == review.Tools {
		steps = nil
	}
	for _, add := range append(steps, view.addTools) {
		if err := add(); err != nil {
			return reviewView{}, err
		}
	}
	return view, nil
}

const (
	// maxWarnings bounds the warnings on a page: those about more arguments of the same kind say
	// nothing new, and the document has all. maxPoints bounds the summary likewise.
	maxWarnings = 50
	maxPoints   = 100
	// maxShown bounds the document on a page, and the difference, without review.Meta. Only a
	// document that is made to be unreadable has more: it cannot be approved on the page.
	maxShown = 2 << 20
	// markup is about the size of the HTML of a line.
	markup = 30
	// maxMeta bounds the difference in review.Meta, which a publisher fills with anything.
	maxMeta = 32 << 10
)

// addSummary adds what the document changes, in words and as a difference: that in review.Meta as far
// as it fits, and all else.
func (view *reviewView) addSummary() error {
	points, err := review.Summarize(view.Replaces, view.Shown.Document)
	if err != nil {
		return err
	}
	view.Points = points[:min(len(points), maxPoints)]
	view.MorePoints = len(points) - len(view.Points)
	if view.Replaces == nil {
		return nil
	}
	if view.Lines, view.MetaLines, err = review.Unified(view.Replaces, view.Shown.Document); err != nil {
		return err
	}
	size := 0
	for i, l := range view.MetaLines {
		if size += len(l.Text()) + markup; size > maxMeta {
			view.MetaLines, view.MetaCut = view.MetaLines[:i], true
			break
		}
	}
	return nil
}

// addDocument adds the document, and whether it fits on the page together with the difference.
func (view *reviewView) addDocument() error {
	document, meta, err := review.Ordered(view.Shown.Document)
	if err != nil {
		return err
	}
	view.Document = site.IndentLongJSON(document, maxShown)
	size := len(view.Document.Text)
	for _, l := range view.Lines {
		size += len(l.Text()) + markup
	}
	if view.LeftOut = view.Document.Cut || size > maxShown; view.LeftOut {
		view.Lines = nil
	}
	if meta != nil {
		view.Meta = site.IndentJSON(meta)
	}
	return nil
}

// addChecks adds the checks of the packages, and the warnings.
func (view *reviewView) addChecks() error {
	checks, err := view.PackageChecks()
	if err != nil {
		return err
	}
	for _, c := range checks {
		view.Checks = append(view.Checks, checkView{c, checkBadges[c.State]})
	}
	warnings, err := review.Warnings(view.Shown.Document)
	view.Warnings = warnings[:min(len(warnings), maxWarnings)]
	return err
}
