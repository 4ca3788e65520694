package site

import (
	"bytes"
	"embed"
	"encoding/csv"
	"fmt"
	"html/template"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/moment"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/review"
)

//go:embed templates
var templateFiles embed.FS

// layout is the frame of all pages, and the parts that they share, parsed for the first page that is shown.
var layout = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(functions).ParseFS(templateFiles, "templates/layout.html",
		"templates/parts.html"))
})

// functions are what templates call.
var functions = template.FuncMap{
	"when": formatTime, "ago": Ago, "machine": func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"field": newFieldView, "list": func(items ...any) []any { return items }, "ask": newAsk,
	"reviewBadge": ReviewBadge, "rightBadge": RightBadge, "isBroad": registry.IsBroad, "escape": func(text any) string { return EscapeInvisible(fmt.Sprint(text)) },
	"sentence": asSentence, "initials": initials,
}

// Page is the template of a page. It is parsed when the page is first shown, because most processes show no
// page, for example commands.
type Page struct{ parse func() *template.Template }

// NewPage returns the page whose template is in files, which define "main". Its first use panics if the template
// cannot be parsed: it is a part of the program, and a test parses all pages.
func NewPage(files fs.FS, names ...string) *Page {
	return &Page{sync.OnceValue(func() *template.Template {
		return template.Must(template.Must(layout().Clone()).ParseFS(files, names...))
	})}
}

var (
	confirmationPage = NewPage(templateFiles, "templates/confirm.html")
	messagePage      = NewPage(templateFiles, "templates/message.html")
)

// Head is what the layout shows around a page.
type Head struct {
	Title    string // of the window
	Notice   string // what has just been done
	Problems Problems
	Failed   bool // the page itself lists what is wrong
	Search   Search
}

// Search is what the search in the header has.
type Search struct {
	Text    string
	Filters []Field // that stay as they are
	Live    bool    // the page follows while one types
}

// frameView is what the layout shows.
type frameView struct {
	Head
	Main any

	visit *Visit

	Brand                        Brand
	Section                      *section // the menu beside the page; otherwise nil
	Style, Script, Passkey, Icon string
	Path                         string           // of the page
	Links, Own                   []navigationLink // of the service, and of the person
	Initials                     string           // of the person
	SignIn                       string           // the address of the sign-in; otherwise empty
	Person                       string           // who is signed in; empty for no one
	Verified                     bool             // the session has full trust
	Limited                      bool             // it has limited trust or more
	Verifying                    bool             // the page is a step of a step-up
	StepUp                       string           // the address of the step-up
	HighRisk                     bool             // nothing is allowed
	Application                  string           // where the form that leads back to the application is sent; otherwise empty
}

// MostCounted is the number of events up to which pages count, so that they take the same time for
// any history.
const MostCounted = 1000

// NameOf returns the e-mail address of a person with an id, for templates (Visit.NameOf).
func (f frameView) NameOf(holder any) (string, error) { return f.visit.NameOf(fmt.Sprint(holder)) }

// May reports whether the person has a grant for an action, for templates.
func (f frameView) May(action registry.Action) (bool, error) { return f.visit.Holds(action) }

// Adding reports whether a page with a list shows the form for something new in its place, for templates (Visit.Adds).
func (f frameView) Adding(form FormView) bool { return f.visit.Adds(form.Action) }

// Adds reports whether a page with a list shows the form for something new, which is sent to an address: because that is
// wanted, or because the form was sent.
func (v *Visit) Adds(action string) bool {
	return v.Query("new") != "" || v.Method() == fiber.MethodPost && v.Path() == action
}

type navigationLink struct {
	Link
	Current bool
}

// Later is the name of what the next page says; empty for nothing.
type Later string

// What the page after a sign-in at a provider says about the groups of the person.
const (
	GroupsOverage Later = "groups-overage"
	GroupsTooMany Later = "groups-too-many"
	GroupsWrong   Later = "groups-wrong"
)

var laterTexts = map[Later]string{
	GroupsOverage: "Your company did not send your groups, because there are too many: you have no permissions by them.",
	GroupsTooMany: "Your company sent more than 2,000 groups: you have no permissions by them.",
	GroupsWrong:   "Your company sent your groups in a form that cannot be read: you have no permissions by them.",
}

const laterCookie = "tollgate_notice"

// NotifyNext makes the next page say something.
func (v *Visit) NotifyNext(what Later) {
	if what != "" {
		v.setLater(string(what), time.Now().Add(time.Minute))
	}
}

func (v *Visit) setLater(value string, expires time.Time) {
	v.Cookie(&fiber.Cookie{
		Name: laterCookie, Value: value, Path: strings.TrimSuffix(Root, "/"), Expires: expires,
		Secure: rest.Secure(v.Ctx), HTTPOnly: true, SameSite: fiber.CookieSameSiteLaxMode,
	})
}

// Render sends a page.
func (v *Visit) Render(p *Page, head Head, main any) error {
	if text := laterTexts[Later(v.Cookies(laterCookie))]; text != "" && head.Notice == "" {
		head.Notice = text
		v.setLater("", time.Unix(1, 0))
	}
	if v.resumed && head.Notice == "" {
		head.Notice = "You are verified. Nothing is lost, and nothing is done yet: what you entered is below, so press the button again."
	}
	head.Title = EscapeInvisible(head.Title)
	frame, err := v.site.frame(v, head, main)
	if err != nil {
		return err
	}
	return v.send(p, frame)
}

// formula is where a cell begins with what a spreadsheet computes. In many languages cells end with a semicolon.
var formula = regexp.MustCompile(`(^|[;\n])([=+@\t\r-])`)

// WriteCSV returns rows of texts as CSV, none of which a spreadsheet takes for a formula.
func WriteCSV(rows [][]string) ([]byte, error) {
	var b bytes.Buffer
	for _, row := range rows {
		for i, text := range row {
			row[i] = formula.ReplaceAllString(text, "${1}'${2}")
		}
	}
	if err := csv.NewWriter(&b).WriteAll(rows); err != nil {
		return nil, fmt.Errorf("write CSV: %w", err)
	}
	return b.Bytes(), nil
}

// SendCSV sends rows as a file with a name.
func (v *Visit) SendCSV(name string, rows [][]string) error {
	text, err := WriteCSV(rows)
	v.Set(fiber.HeaderCacheControl, "no-store")
	v.Attachment(name)
	v.Set(fiber.HeaderContentType, "text/csv; charset=utf-8")
	v.Response().SetBodyRaw(text)
	return err
}

// SendJSON sends a JSON text as it is, for people who read it in the browser.
func (v *Visit) SendJSON(text []byte) error {
	v.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	v.Response().SetBodyRaw(text)
	return nil
}

func (v *Visit) send(p *Page, frame frameView) error {
	var b bytes.Buffer
	if err := p.parse().ExecuteTemplate(&b, "layout", frame); err != nil {
		return fmt.Errorf("render a page: %w", err)
	}
	body, err := p.addGuideLink(b.Bytes(), v.Path())
	if err != nil {
		return fmt.Errorf("render a page: %w", err)
	}
	securityHeaders.Set(v.Ctx)
	if v.secret {
		v.Set(fiber.HeaderCacheControl, "no-store")
	}
	if len(v.Response().Header.Peek(fiber.HeaderCacheControl)) == 0 {
		v.Set(fiber.HeaderCacheControl, "no-cache")
	}
	v.Set(fiber.HeaderContentType, fiber.MIMETextHTMLCharsetUTF8)
	v.Response().SetBodyRaw(body)
	return nil
}

// frame returns what the layout shows to the visitor.
func (s *Site) frame(v *Visit, head Head, main any) (frameView, error) {
	f := s.bareFrame(v, head, main)
	links, own := []Link{{Text: "Servers", Path: Home, Key: "s"}, {Text: "Connect", Path: Root + "connect", Key: "c"}}, []Link(nil)
	if v.SignedIn() {
		f.addPerson(v)
		more, err := linksOf(v)
		if err != nil {
			return frameView{}, err
		}
		links = append(links, more...)
		own = []Link{{Text: "My account", Path: Root + "account"}}
		if len(more) > 0 {
			own = []Link{
				{Text: "Home", Path: MyHome, Key: "h"}, {Text: "My servers", Path: Root + "own"}, {Text: "Request a server", Path: Root + "request"},
				{Text: "What may I use", Path: Root + "account/access"}, {Text: "Tokens", Path: Root + "account/tokens"}, own[0],
			}
		}
	} else if s.HasSignIn() && !strings.HasPrefix(f.Path, SignInPath) {
		f.SignIn = SignInAddress(v.address())
	}
	if v.SignedIn() && !f.Verifying {
		f.Section = sectionOf(f.Path, s.hidden...)
	}
	f.Links, f.Own = navigation(links, f.Path), navigation(own, f.Path)
	return f, nil
}

// navigation returns links of which that of the page with a path is marked.
func navigation(links []Link, path string) (all []navigationLink) {
	for _, l := range links {
		all = append(all, navigationLink{l, isCurrent(l.Path, path)})
	}
	return all
}

// addPerson adds who is signed in and what the session may do.
func (f *frameView) addPerson(v *Visit) {
	f.Person, f.Initials = string(v.Account.Email), initials(string(v.Account.Email))
	f.Verified = v.Session.TrustLevel.Admits(auth.FullTrust)
	f.Limited = v.Session.TrustLevel.Admits(auth.LimitedTrust)
	f.HighRisk = !v.Session.TrustLevel.Admits(auth.Unverified)
	f.Verifying = strings.HasPrefix(f.Path, StepUpPath) || v.InterruptedAct() != ""
	f.StepUp = StepUpAddress(v.address())
}

// initials returns one or two letters for a name or an e-mail address: those at the beginning of its first two words.
func initials(name string) string {
	name, _, _ = strings.Cut(name, "@")
	var all []rune
	for _, word := range strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		letters := []rune(word)
		if all = append(all, letters[0]); len(all) == 2 {
			break
		}
		if len(letters) > 1 && !strings.ContainsAny(name, ".-_ ") {
			all = append(all, letters[1])
		}
	}
	return strings.ToUpper(string(all))
}

// linksOf returns the links of the navigation for what the person may do: none if the session is at
// high risk.
func linksOf(v *Visit) ([]Link, error) {
	if !v.Session.TrustLevel.Admits(auth.Unverified) {
		return nil, nil
	}
	if v.waits == nil {
		n, err := v.site.waiting(v)
		if err != nil {
			return nil, err
		}
		v.waits = &n
	}
	links := []Link{{Text: "Publish", Path: Root + "publish", Key: "p"}, {"Inbox", Root + "inbox", "r", *v.waits}}
	operates, err := v.Holds(registry.ActionOperate)
	if operates {
		links = append(links, Link{Text: "Operate", Path: Root + "operator", Key: "o"})
	}
	return links, err
}

// bareFrame returns what the layout shows without knowing the visitor.
func (s *Site) bareFrame(v *Visit, head Head, main any) frameView {
	return frameView{
		Head: head, Main: main, visit: v, Style: s.static.style, Script: s.static.script, Passkey: s.static.passkey, Icon: s.static.icon,
		Path: strings.Clone(v.Path()), Brand: s.brand, Application: v.applicationAddress(),
	}
}

// Badge is a state in words, and the class of its colour.
type Badge struct{ Text, Class string }

// ReviewBadge returns the state of a review in words.
func ReviewBadge(s review.State) Badge {
	return map[review.State]Badge{
		review.Pending: {"Pending", "warn"}, review.Approved: {"Approved", "good"}, review.Rejected: {"Rejected", "bad"},
		review.ChangesRequested: {"Changes requested", "warn"},
		review.Superseded:       {"Superseded", ""},
	}[s]
}

// ReviewKinds are the kinds of submissions in words.
var ReviewKinds = map[review.Kind]string{
	review.NewServer: "New server", review.NewVersion: "New version", review.Replacement: "Changed document",
	review.Tools: "Changed tools",
}

// RightBadge returns the state of a request for a right in words.
func RightBadge(s registry.RightState) Badge {
	return map[registry.RightState]Badge{
		registry.RightOpen: {"Waiting", "warn"}, registry.RightGranted: {"Granted", "good"}, registry.RightDeclined: {"Declined", "bad"},
	}[s]
}

// Level is a trust level on a page.
type Level struct {
	Name  string
	Means string // what the session may do
	Class string // of its look
}

var levels = map[auth.TrustLevel]Level{
	auth.FullTrust: {"Full trust", "It may do everything that you may do.", "good trust"},
	auth.LimitedTrust: {
		"Limited trust", "It may read, and do what does not change the registry, until you enter a code.", "warn trust some",
	},
	auth.Unverified: {"Not verified", "It may look at this account and little else, until you enter a code.", "warn trust none"},
	auth.HighRisk:   {"High risk", "It may only sign out.", "bad"},
}

// LevelOf returns how a page shows a trust level.
func LevelOf(l auth.TrustLevel) Level { return levels[l] }

// formatTime formats a time for people.
func formatTime(t time.Time) string {
	return t.UTC().Format("2\u00a0Jan\u00a02006, 15:04\u00a0UTC") // it may be broken after the comma only
}

// Ago returns a time for people as the distance from now, or as a day.
func Ago(t time.Time) string { return moment.Ago(t, time.Now()) }

// Address returns the address of the console on a listener, in a browser on this machine.
func Address(listener net.Addr, tls bool) string {
	u := url.URL{Scheme: "http", Host: listener.String(), Path: Home}
	if tls {
		u.Scheme = "https"
	}
	if a, err := netip.ParseAddrPort(u.Host); err == nil && (a.Addr().IsUnspecified() || a.Addr().IsLoopback()) {
		u.Host = net.JoinHostPort("localhost", strconv.Itoa(int(a.Port())))
	}
	return u.String()
}
