// Package styletest serves a page that has each part of the pages of the console in each of its states,
// so that a test of this page is one of theirs. It is not for production code.
package styletest

import (
	"embed"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/registry/review"
)

// Path is the path of the page.
const Path = site.Root + "style"

//go:embed templates
var templates embed.FS

// Serve serves the page until the end of the test, and returns the base of its address.
func Serve(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	s := site.New(site.Ports{}, site.Brand{Product: "Tollgate"})
	s.Mount(app)
	page := site.NewPage(templates, "templates/style.html")
	app.Get(Path, s.Open(func(v *site.Visit) error { return show(v, page) }))
	ended := make(chan error, 1)
	go func() { ended <- app.Listener(listener) }()
	t.Cleanup(func() {
		if err := app.Shutdown(); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return "http://" + listener.Addr().String()
}

// styleView has the parts, as the design systems of GitHub and gov.uk show theirs.
type styleView struct {
	Form        site.FormView
	Mistakes    site.Problems
	Badges      []site.Badge
	Times       []time.Time
	Points      []review.Point
	Lines       []review.Line
	Name, Title string // hostile ones
}

// The documents whose difference the page shows.
const (
	styleBefore = `{"name": "com.example/crm", "version": "1.0.0", "description": "Finds customers",
		"remotes": [{"type": "streamable-http", "url": "https://crm.example.com/mcp"}]}`
	styleAfter = `{"name": "com.example/crm", "version": "1.1.0", "description": "Finds and changes customers",
		"remotes": [{"type": "streamable-http", "url": "https://crm.example.net/mcp",
			"headers": [{"name": "X-Token", "isSecret": true}]}]}`
)

func show(v *site.Visit, page *site.Page) error {
	view := newStyleView(time.Now())
	var err error
	if view.Points, err = review.Summarize([]byte(styleBefore), []byte(styleAfter)); err != nil {
		return err
	}
	if view.Lines, _, err = review.Unified([]byte(styleBefore), []byte(styleAfter)); err != nil {
		return err
	}
	return v.Render(page, site.Head{Title: "Style", Notice: "This is what the page after an act says."}, view)
}

func newStyleView(now time.Time) styleView {
	view := styleView{
		Mistakes: site.Problems{{Field: "address", Text: "E-mail address has no account."}},
		Badges: []site.Badge{
			{Text: "Active", Class: "good"}, {Text: "Deprecated", Class: "warn"}, {Text: "Deleted", Class: "bad"},
			{Text: "Quarantined", Class: "bad"}, {Text: "Latest"},
		},
		Times: []time.Time{
			now, now.Add(-3 * time.Minute), now.Add(-50 * time.Hour), now.Add(-9000 * time.Hour), now.Add(72 * time.Hour), {},
		},
		Name:  "io.github.an-organisation-with-a-very-long-name/a-server-with-a-name-that-is-as-long-as-names-may-well-be",
		Title: "a \u202egnp.exe\u202c and a zero\u200bwidth space",
	}
	for _, state := range []review.State{review.Pending, review.Approved, review.Rejected, review.ChangesRequested, review.Superseded} {
		view.Badges = append(view.Badges, site.ReviewBadge(state))
	}
	for _, level := range []auth.TrustLevel{auth.FullTrust, auth.LimitedTrust, auth.Unverified, auth.HighRisk} {
		l := site.LevelOf(level)
		view.Badges = append(view.Badges, site.Badge{Text: l.Name, Class: l.Class})
	}
	view.Form = site.FillForm(styleForm, url.Values{
		"address": {"nobody@example.com"}, "chosen": {"edit"}, "scopes": {"registry:read"},
	}, view.Mistakes)
	return view
}

var styleForm = site.Form{Action: Path, Button: "Save", Inputs: []site.Input{
	{Name: "plain", Label: "Name"},
	{Name: "hinted", Label: "Servers", Hint: "A name, a prefix such as com.example/*, or *.", Required: true},
	{Name: "address", Label: "E-mail address", Kind: "email", Hint: "Or service: and the name of a service account."},
	{Name: "secret", Label: "Secret", Kind: "password"},
	{Name: "chosen", Label: "May", Kind: "select", Options: site.Options("publish", "edit", "review")},
	{Name: "day", Label: "End", Kind: "date"},
	{Name: "scopes", Label: "Scopes", Kind: "choices", Options: site.Options("registry:read", "registry:publish")},
	{Name: "lines", Label: "Claims", Kind: "area", Hint: "One on each line."},
}}
