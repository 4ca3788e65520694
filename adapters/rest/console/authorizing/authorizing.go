// Package authorizing has the pages on which people let applications act for them: an authorization
// request begins here, waits while they sign in, and leads back to its application (contract T-10, T-13).
package authorizing

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/authorizing"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
)

//go:embed templates
var templates embed.FS

var (
	consentPage = site.NewPage(templates, "templates/consent.html")
	returnPage  = site.NewPage(templates, "templates/return.html")
)

// Path is where applications send the browsers of people.
const Path = "/oauth2/authorize"

const (
	continuePath = site.ContinuePath + ":id"
	backPath     = continuePath + "/back"

	// maxQuery is the greatest length of an authorization request, in bytes.
	maxQuery = 8 << 10
)

// Ports are the use cases that the pages call: methods of authorizing.Service, which documents the errors.
// All are nil without the authorization server.
type Ports struct {
	Begin    func(ctx context.Context, query url.Values, from netip.Addr) (authorizing.Begun, error)
	Continue func(context.Context, authorizing.Visit) (authorizing.Next, error)
	Decide   func(ctx context.Context, v authorizing.Visit, agreed bool) (authorizing.Next, error)
	GiveUp   func(context.Context, authorizing.Visit) (authorizing.Next, error)
}

// On reports whether there is an authorization server.
func (p Ports) On() bool { return p.Begin != nil }

// Owns reports whether a path is one of the pages.
func Owns(path string) bool { return path == Path || strings.HasPrefix(path, site.ContinuePath) }

// Pages are the pages of authorization requests. It is safe for concurrent use.
type Pages struct {
	site  *site.Site
	ports Ports
}

// New returns the pages.
func New(s *site.Site, p Ports) *Pages { return &Pages{s, p} }

// Mount adds the routes.
func (p *Pages) Mount(r fiber.Router) {
	r.Get(Path, p.site.Open(uncached(p.begin)))
	r.Get(continuePath, p.site.Open(uncached(p.goOn)))
	p.site.PostTo(r, continuePath, 0, p.site.Open(uncached(p.decide)))
	p.site.PostTo(r, backPath, 1, p.site.Open(uncached(p.leadBack)))
}

// uncached keeps what a page says, and where it leads, out of all caches. No request is answered that only
// looks at its headers: an answer may use up what it answers.
func uncached(h site.Handler) site.Handler {
	return func(v *site.Visit) error {
		v.Set(fiber.HeaderCacheControl, "no-store")
		if v.Method() == fiber.MethodHead {
			return fiber.ErrMethodNotAllowed
		}
		return h(v)
	}
}

// begin keeps an authorization request, and leads to its page.
func (p *Pages) begin(v *site.Visit) error {
	query, err := readQuery(v)
	if err != nil {
		return err
	}
	begun, err := p.ports.Begin(v.UserContext(), query, rest.Address(v.Ctx))
	if refused := (*authorizing.Redirect)(nil); errors.As(err, &refused) {
		return leave(v, refused.URL)
	}
	if err != nil {
		return explain(err)
	}
	remember(v, begun)
	return v.Ctx.Redirect(site.ContinuePath+string(begun.ID), http.StatusFound)
}

// readQuery returns the parameters of a request. A parameter that is there twice has both values.
func readQuery(v *site.Visit) (url.Values, error) {
	text := string(v.Context().URI().QueryString())
	if len(text) > maxQuery {
		return nil, fault.Newf(fault.Invalid, "the request of the application is longer than %d bytes", maxQuery)
	}
	query, err := url.ParseQuery(text)
	if err != nil {
		return nil, fault.New(fault.Invalid, "the request of the application cannot be read")
	}
	return query, nil
}

// goOn leads to what the person does next.
func (p *Pages) goOn(v *site.Visit) error {
	next, err := p.ports.Continue(v.UserContext(), visitOf(v))
	if err != nil {
		return explain(err)
	}
	return p.lead(v, &next, v.Stepped())
}

// explain returns the error of a request for the person. That the document of an application was read too often is
// no limit of the person (contract T-7).
func explain(err error) error {
	f, ok := fault.As(err)
	switch {
	case ok && f.Kind == fault.NotFound:
		return fault.New(fault.NotFound,
			"this request of an application has expired, is answered, or began in another browser: start again from the application")
	case ok && f.Kind == fault.Exhausted && f.Code != auth.CodeRateLimit:
		return fault.New(fault.Unavailable, f.Message).After(f.RetryAfter)
	}
	return err
}

// lead leads to a step. byForm is whether a form may have led here, so that the browser must not be
// redirected to the application.
func (p *Pages) lead(v *site.Visit, next *authorizing.Next, byForm bool) error {
	page := site.ContinuePath + string(visitOf(v).ID)
	switch next.Step {
	case authorizing.SignIn:
		return v.Redirect(site.SignInAddress(page) + hintOf(next))
	case authorizing.StepUp:
		return v.Redirect(site.StepUpAddress(page))
	case authorizing.Ask:
		return renderConsent(v, next, nil)
	}
	if byForm {
		return renderReturn(v, next.Client, next.URL)
	}
	return leave(v, next.URL)
}

func hintOf(next *authorizing.Next) string {
	if next.LoginHint == "" {
		return ""
	}
	return "&email=" + url.QueryEscape(next.LoginHint)
}

// decide takes the answer of a person to the question of the page: of the person whom the page was for, and to
// what it said. Otherwise it shows the question again.
func (p *Pages) decide(v *site.Visit) error {
	in := visitOf(v)
	if v.Form.Get(decisionField) != "allow" {
		return p.leadBack(v) // whatever was agreed to meanwhile
	}
	next, err := p.ports.Continue(v.UserContext(), in)
	if err != nil {
		return explain(err)
	}
	if next.Step == authorizing.Ask && v.Form.Get(shownField) != fingerprint(v.Session.UserID, next.Consent) {
		v.Status(http.StatusConflict)
		return renderConsent(v, &next, site.Problems{{Text: "The question was for another person, or has changed. Please read it again."}})
	}
	if next.Step == authorizing.Ask {
		next, err = p.ports.Decide(v.UserContext(), in, true)
	}
	if err != nil {
		return explain(err)
	}
	return p.lead(v, &next, true)
}

// leadBack leads back to the application without access, which learns why (contract T-10, T-11).
func (p *Pages) leadBack(v *site.Visit) error {
	leave := func(ctx context.Context, in authorizing.Visit) (authorizing.Next, error) {
		return p.ports.Decide(ctx, in, false)
	}
	if v.Form.Has(unmetField) {
		leave = p.ports.GiveUp
	}
	next, err := leave(v.UserContext(), visitOf(v))
	if err != nil {
		return explain(err)
	}
	return renderReturn(v, next.Client, next.URL)
}

// visitOf returns what the browser sends to the page of a request.
func visitOf(v *site.Visit) authorizing.Visit {
	id := auth.LinkSecret(strings.Clone(v.Params("id")))
	return authorizing.Visit{ID: id, Browser: recall(v, id), Session: v.Session, From: rest.Address(v.Ctx)}
}

const (
	// maxKept is how many requests the cookie of a browser has; the oldest falls out.
	maxKept   = 5
	separator = "."
)

// remember adds a request to the cookie of the browser: its id and the secret of the browser.
func remember(v *site.Visit, b authorizing.Begun) {
	kept := strings.Split(v.ApplicationCookie(), separator)
	kept = append(kept, string(b.ID)+":"+string(b.Browser))
	v.SetApplicationCookie(strings.Trim(strings.Join(kept[max(0, len(kept)-maxKept):], separator), separator), oauth.RequestTTL)
}

// recall returns the secret of the browser for a request; empty if the browser did not begin it.
func recall(v *site.Visit, id auth.LinkSecret) auth.LinkSecret {
	for _, one := range strings.Split(v.ApplicationCookie(), separator) {
		if of, secret, ok := strings.Cut(one, ":"); ok && of == string(id) {
			return auth.LinkSecret(secret)
		}
	}
	return ""
}

// The fields of the forms.
const (
	shownField    = "shown"
	decisionField = "decision"
	unmetField    = "unmet" // of who cannot reach the level that the application needs
)

// consentView is the page of the question whether an application may act for the person.
type consentView struct {
	*authorizing.Consent

	Person auth.Email
	Shown  string // the fingerprint of the question
	Scopes []scopeView
}

// scopeView is a scope in words; Means is empty for one of another server.
type scopeView struct{ Name, Means string }

// meanings are the scopes of this registry in words.
var meanings = map[string]string{
	oauth.ScopeRead:  "Read the registry: which servers there are, and how they are used, as far as you may see them.",
	oauth.ScopeWrite: "Change the registry: publish servers, replace and delete their versions, as far as you may do so.",
}

func renderConsent(v *site.Visit, next *authorizing.Next, problems site.Problems) error {
	v.OfferBack()
	view := consentView{Consent: next.Consent, Person: v.Account.Email, Shown: fingerprint(v.Session.UserID, next.Consent)}
	for _, name := range next.Consent.Scopes {
		one := scopeView{Name: name}
		if next.Consent.Registry {
			one.Means = meanings[name]
		}
		view.Scopes = append(view.Scopes, one)
	}
	return v.Render(consentPage, site.Head{Title: "Let an application act for you", Problems: problems}, view)
}

// fingerprint returns what identifies a question and the person whom it is for, so that no answer counts for
// another one.
func fingerprint(person auth.UserID, c *authorizing.Consent) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%#v", []any{person, *c})) // as in Go, so that texts are quoted
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// returnView is the page whose link leads back to the application.
type returnView struct {
	Client  string
	Address template.URL // checked by checkAddress
}

// renderReturn shows the page that leads back to an application. A form does not lead there itself: browsers
// hold each address to which its answer is redirected against the policy of the page.
func renderReturn(v *site.Visit, client, address string) error {
	if err := checkAddress(address); err != nil {
		return err
	}
	v.Set("Refresh", "0; url="+address)
	return v.Render(returnPage, site.Head{Title: "Back to the application"},
		returnView{client, template.URL(address)}) //nolint:gosec // checkAddress admits no address that is a program
}

// leave redirects the browser to an application.
func leave(v *site.Visit, address string) error {
	if err := checkAddress(address); err != nil {
		return err
	}
	return v.Ctx.Redirect(address, http.StatusFound)
}

// programs are the schemes of addresses that browsers run, show or open as their own.
var programs = []string{"javascript", "vbscript", "data", "blob", "file", "filesystem", "about", "view-source", "ws", "wss"}

// checkAddress returns an error for an address that is no way back to an application. Redirect URIs are
// checked where they are read; this is for what that may have missed.
func checkAddress(address string) error {
	u, err := url.Parse(address)
	unseen := strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"<>\^`+"`{|}", r) })
	if err != nil || u.Scheme == "" || unseen || slices.Contains(programs, strings.ToLower(u.Scheme)) {
		return fault.Newf(fault.Internal, "an address that leads back to an application must not be %.200q", address)
	}
	return nil
}
