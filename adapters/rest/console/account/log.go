package account

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/audit"
)

// logView is the page of the audit log.
type logView struct {
	Types        []typeView
	From, Until  string // dates
	Events       []eventView
	Total        int
	Newer, Older string // the addresses of the other pages
	Filtered     bool
}

type typeView struct {
	Type     auth.EventType
	Text     string
	Selected bool
}

// eventView is an event in words.
type eventView struct {
	auth.Event

	Text    string
	Details []site.Field
}

// eventTexts are the types of events in words.
var eventTexts = map[auth.EventType]string{
	auth.LoginAttempt: "Sign-in", auth.RiskEvaluation: "Risk of a sign-in", auth.DeviceChange: "Device", auth.SuspiciousActivity: "Suspicious",
	auth.StepUpAttempt: "Verification", auth.RegistryChange: "Registry", auth.CredentialChange: "Password and second factor",
	auth.AccountChange: "Account", auth.MethodsChange: "Methods listing", auth.PublisherProof: "Proof of a publisher",
}

const (
	perPage    = 50
	dateFormat = "2006-01-02"
)

func (p *Pages) showLog(v *site.Visit) error {
	view, q, problems := readLog(v)
	if len(problems) > 0 {
		v.Status(fiber.StatusUnprocessableEntity)
		return v.Render(logPage, site.Head{Title: "Audit log", Problems: problems}, view)
	}
	found, err := p.ports.Trail.Search(v.UserContext(), v.Session.UserID, q)
	if err != nil {
		return err
	}
	view.Total = found.Total
	for _, e := range found.Events {
		view.Events = append(view.Events, eventView{e, eventTexts[e.Type], describe(e.Details)})
	}
	if q.Offset > 0 {
		view.Newer = logAddress(v, max(q.Offset-perPage, 0))
	}
	if q.Offset+perPage < found.Total {
		view.Older = logAddress(v, q.Offset+perPage)
	}
	return v.Render(logPage, site.Head{Title: "Audit log"}, view)
}

// readLog reads the filters. The dates include both days.
func readLog(v *site.Visit) (view logView, q audit.Query, problems site.Problems) {
	view.From, view.Until = v.Text("from"), v.Text("until")
	q = audit.Query{Type: auth.EventType(v.Text("type")), Limit: perPage}
	for _, t := range auth.EventTypes() {
		view.Types = append(view.Types, typeView{t, eventTexts[t], t == q.Type})
	}
	if q.Type != "" && !slices.Contains(auth.EventTypes(), q.Type) {
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
	view.Filtered = q.Type != "" || view.From != "" || view.Until != ""
	return view, q, problems
}

// logAddress returns the address of another page with the same filters.
func logAddress(v *site.Visit, offset int) string {
	q := url.Values{"offset": {strconv.Itoa(offset)}}
	for _, name := range [...]string{"type", "from", "until"} {
		if value := v.Text(name); value != "" {
			q.Set(name, value)
		}
	}
	return logPath + "?" + q.Encode()
}

// describe returns the details of an event, ordered by name.
func describe(details map[string]any) (fields []site.Field) {
	for _, name := range slices.Sorted(maps.Keys(details)) {
		fields = append(fields, site.Field{Name: name, Value: text(details[name])})
	}
	return fields
}

// text returns a value of an event.
func text(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case map[string]any, []any, []string:
		if b, err := json.Marshal(v); err == nil {
			return string(b)
		}
	}
	return fmt.Sprint(value)
}
