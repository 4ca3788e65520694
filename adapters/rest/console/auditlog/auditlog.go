// Package auditlog has the page of the audit log: a person's own, and for operators that of
// everybody.
package auditlog

import (
	"context"
	"embed"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
)

//go:embed templates
var templates embed.FS

var logPage = site.NewPage(templates, "templates/log.html")

// Log says which part of the audit log a page shows.
type Log struct {
	Search func(ctx context.Context, q auditing.Query) (auditing.Page, error)
	Path   string    // of the page
	Back   site.Link // the page above it
	// Email is the e-mail address that selects a person; Everybody says that there is such a
	// filter.
	Email     string
	Everybody bool
}

// logView is the page of the audit log.
type logView struct {
	Title string // of the page
	Log

	Types        []typeView
	From, Until  string // dates
	Server, Run  string
	Outcomes     []typeView
	CSV, JSON    string      // the addresses of the files
	Recent       []site.Link // the last days
	Events       []eventView
	Total        int
	More         bool   // there are more than Total
	Newer, Older string // the addresses of the other pages
	Kinds        map[audit.Category]string
	Filtered     bool
}

type typeView struct {
	Type     string
	Text     string
	Selected bool
}

// eventView is an event in words.
type eventView struct {
	audit.Event

	Who     string // who did it, or whose event it is
	Text    string // what was done
	From    string // the address
	Parts   string // the address of the page with the parts of a run; empty for another event
	Details []site.Field
	IDs     []site.Field
}

// eventTexts are the types of events in words.
var eventTexts = map[audit.Category]string{
	audit.LoginAttempt: "Sign-in", audit.RiskEvaluation: "Risk of a sign-in", audit.DeviceChange: "Device",
	audit.SuspiciousActivity: "Suspicious",
	audit.StepUpAttempt:      "Verification", audit.RegistryChange: "Registry",
	audit.CredentialChange: "Password and second factor",
	audit.AccountChange:    "Account", audit.MethodsChange: "Methods listing",
	audit.PublisherProof: "Proof of a publisher",
	audit.AccessRefused:  "Refused access",
	audit.AccessDecision: "Denied call",
	audit.Authorization:  "Access of an application",
}

const (
	perPage    = 50
	dateFormat = "2006-01-02"
)

// Show sends a page of the audit log, with the filters and the position that the query names.
func Show(v *site.Visit, l Log, problems site.Problems) error {
	view, q, wrong := readLog(v, l)
	if problems = append(problems, wrong...); len(problems) > 0 {
		v.Status(fiber.StatusUnprocessableEntity)
		return v.Render(logPage, site.Head{Title: view.Title, Problems: problems}, view)
	}
	q.Whole = l.Everybody && q.Run == "" && q.Server == "" // runs, not their parts
	if format := v.Text("format"); format != "" {
		return l.sendFile(v, q, format)
	}
	q.Most = site.MostCounted
	found, err := l.Search(v.UserContext(), q)
	if err == nil {
		err = view.fill(v, found, q.Offset)
	}
	if err != nil {
		return err
	}
	return v.Render(logPage, site.Head{Title: view.Title}, view)
}

// recent returns links to the events of the last days.
func (view *logView) recent(v *site.Visit) (links []site.Link) {
	for _, days := range []int{1, 7, 30} {
		text := "Last " + strconv.Itoa(days) + " days"
		if days == 1 {
			text = "Today"
		}
		links = append(links, site.Link{Text: text, Path: view.address(v, "from", time.Now().UTC().AddDate(0, 0, 1-days).Format(dateFormat))})
	}
	return links
}

// fill adds the events and the addresses of the other pages.
func (view *logView) fill(v *site.Visit, found auditing.Page, offset int) error {
	view.Total, view.More = min(found.Total, site.MostCounted), found.Total > site.MostCounted
	for _, e := range found.Events {
		row, err := view.newEventView(v, e)
		if err != nil {
			return err
		}
		view.Events = append(view.Events, row)
	}
	view.Kinds = eventTexts
	view.Recent = view.recent(v)
	view.CSV, view.JSON = view.address(v, "format", "csv"), view.address(v, "format", "json")
	if offset > 0 {
		view.Newer = view.address(v, "offset", strconv.Itoa(max(offset-perPage, 0)))
	}
	if offset+perPage < found.Total {
		view.Older = view.address(v, "offset", strconv.Itoa(offset+perPage))
	}
	return nil
}

// newEventView returns an event in words.
func (l Log) newEventView(v *site.Visit, e audit.Event) (row eventView, err error) {
	name := func(text string) string {
		known, failed := v.NameOf(text)
		if err == nil {
			err = failed
		}
		return known
	}
	row = eventView{Event: e, Text: e.Sentence(name), From: e.Details.Text("ipAddress")}
	row.Who = name(e.Who())
	if err != nil {
		return row, err
	}
	if run := e.Run(); run != "" && l.Everybody {
		row.Parts = l.Path + "?" + url.Values{"run": {run}}.Encode()
	}
	details := maps.Clone(e.Details)
	if !l.Everybody {
		delete(details, risk.DetailHistory) // how the service compares its ways to score
	}
	row.Details, row.IDs, err = describe(details, v.NameOf)
	return row, err
}

// readLog reads the filters. The dates include both days.
func readLog(v *site.Visit, l Log) (view logView, q auditing.Query, problems site.Problems) {
	view.Log, view.Title = l, "My audit log"
	if l.Everybody {
		view.Title = "Audit log"
	}
	view.From, view.Until = v.Text("from"), v.Text("until")
	q = auditing.Query{Category: audit.Category(v.Text("type")), Limit: perPage}
	for _, t := range audit.Categories() {
		view.Types = append(view.Types, typeView{string(t), eventTexts[t], t == q.Category})
	}
	q.Server, view.Server = v.Text("server"), v.Text("server")
	q.Run = v.Text("run")
	view.Run = q.Run
	outcome := v.Text("outcome")
	view.Outcomes = []typeView{{"done", "Done", outcome == "done"}, {"refused", "Refused", outcome == "refused"}}
	if done := outcome == "done"; done || outcome == "refused" {
		q.Success = &done
	}
	if q.Category != "" && !slices.Contains(audit.Categories(), q.Category) {
		problems = append(problems, site.Problem{Field: "type", Text: "Choose one of the kinds of events."})
	}
	day := func(field, text string) (t time.Time) {
		if text == "" {
			return t
		}
		t, err := time.Parse(dateFormat, text)
		if err != nil {
			problems = append(problems, site.Problem{Field: field, Text: "Enter a date such as 2026-01-31."})
		}
		return t
	}
	if from := day("from", view.From); !from.IsZero() {
		q.After = from.Add(-time.Microsecond)
	}
	if until := day("until", view.Until); !until.IsZero() {
		q.Before = until.AddDate(0, 0, 1)
	}
	if offset, err := strconv.Atoi(v.Text("offset")); err == nil && offset > 0 {
		q.Offset = offset
	}
	view.Filtered = q.Category != "" || q.Server != "" || q.Run != "" || q.Success != nil || v.Text("email") != "" || view.From != "" || view.Until != ""
	return view, q, problems
}

// address returns the address of another page, or of a file, with the same filters.
func (l Log) address(v *site.Visit, field, value string) string {
	q := url.Values{field: {value}}
	for _, name := range [...]string{"type", "from", "until", "email", "server", "run", "outcome"} {
		if value := v.Text(name); value != "" {
			q.Set(name, value)
		}
	}
	return l.Path + "?" + q.Encode()
}
