// Package site is what all pages of the console share: the layout, the session cookie, the checks
// that every request passes, forms that may need a step-up, errors and static files. The pages are
// in the packages next to it.
package site

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/cookies"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/viewing"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// Root is the path below which all pages are.
const Root = "/console/"

// The paths of the pages that a request without enough trust is redirected to.
const (
	SignInPath = Root + "sign-in"
	StepUpPath = Root + "step-up"
	// Home is the path of the first page.
	Home = Root
	// MyHome is the path of the first page of a person.
	MyHome = Root + "home"
)

// Ports are the dependencies of a Site. All but Reading are nil if no one can sign in.
type Ports struct {
	Reading   viewing.Config
	Cookies   *cookies.Service
	Authority authority.Authority
	Accounts  authstore.Accounts
	Grants    registrystore.Grants
	Refusals  *auditing.Refusals
}

// Link is an entry of the navigation.
type Link struct {
	Text, Path string
	Key        string // that leads there after g; empty without one
	Count      int    // of what waits there
}

// Site is the frame of the console. It is safe for concurrent use.
type Site struct {
	ports  Ports
	guard  *http.CrossOriginProtection
	static *staticFiles
	brand  Brand
	stepUp func(v *Visit, title string) error // set by SetStepUpPage
	// waiting returns how much waits for a person; set by SetWaiting.
	waiting func(v *Visit) (int, error)
	hidden  []string // the paths of pages that the service does not have
}

// Brand is what each page says about the service.
type Brand struct{ Product, Version string }

// New returns the frame of the console.
func New(p Ports, b Brand) *Site {
	return &Site{ports: p, brand: b, guard: http.NewCrossOriginProtection(), static: newStaticFiles()}
}

// SetStepUpPage sets what shows the page that offers a step-up for an act with a title. It must be
// called before the first request.
func (s *Site) SetStepUpPage(show func(v *Visit, title string) error) { s.stepUp = show }

// SetWaiting sets what counts all that waits for a person. It must be called before the first request.
func (s *Site) SetWaiting(count func(v *Visit) (int, error)) { s.waiting = count }

// Hide leaves links to a page out of menus. It must be called before the first request.
func (s *Site) Hide(path string) { s.hidden = append(s.hidden, path) }

// HasSignIn reports whether people can sign in.
func (s *Site) HasSignIn() bool { return s.ports.Cookies != nil }

// Visit is a request of a person for a page.
type Visit struct {
	*fiber.Ctx
	// Session is the session of the person; its ID is empty if no one is signed in.
	Session auth.Session
	Account auth.Account
	// Form has the fields of the form that was sent, also after a step-up.
	Form url.Values

	site       *Site
	cookie     auth.CookieSecret
	again      func(*Visit, Problems) error // shows the form whose act failed (Act.Keep); otherwise nil
	secret     bool                         // the address of the page is secret
	offersBack bool                         // the page offers the way back to the application
	grants     []registry.Grant             // of the person; read by loadGrants
	loaded     bool
	names      map[string]string // what NameOf has returned
	caller     *authority.Caller // what Caller has returned
	waits      *int              // what CountWaiting was told
	resumed    bool              // the page is a form that comes back after a step-up
}

// CountWaiting says how much waits for the person, so that the header does not count it again.
func (v *Visit) CountWaiting(n int) { v.waits = &n }

// SignedIn reports whether somebody is signed in.
func (v *Visit) SignedIn() bool { return v.Session.ID != "" }

// loadGrants returns the grants of the person. It reads them once.
func (v *Visit) loadGrants() ([]registry.Grant, error) {
	if !v.SignedIn() || v.loaded {
		return v.grants, nil
	}
	grants, err := v.site.ports.Grants.Of(v.UserContext(), registry.Holder(v.Session.UserID))
	v.grants, v.loaded = grants, err == nil
	return grants, err
}

// May reports whether the person has a grant for a server. It says what to offer; the use cases
// decide what is allowed.
func (v *Visit) May(action registry.Action, name registry.Name) (bool, error) {
	grants, err := v.loadGrants()
	return slices.ContainsFunc(grants, func(g registry.Grant) bool {
		return g.Action == action && g.Pattern.Matches(name)
	}), err
}

// Holds reports whether the person has a grant for an action on any server.
func (v *Visit) Holds(action registry.Action) (bool, error) {
	grants, err := v.loadGrants()
	return slices.ContainsFunc(grants, func(g registry.Grant) bool { return g.Action == action }), err
}

// Patterns returns the names for which the person has a grant for an action.
func (v *Visit) Patterns(action registry.Action) (patterns []registry.Pattern, err error) {
	grants, err := v.loadGrants()
	for _, g := range grants {
		if g.Action == action {
			patterns = append(patterns, g.Pattern)
		}
	}
	return patterns, err
}

// HolderOf returns the id of the person with an e-mail address, and any other text as it is.
func (v *Visit) HolderOf(name string) (string, error) {
	email, err := auth.ParseEmail(name)
	if err != nil {
		return name, nil //nolint:nilerr // it is not an e-mail address
	}
	a, err := v.site.ports.Accounts.ByEmail(v.UserContext(), email)
	if fault.Is(err, fault.NotFound) {
		return name, nil
	}
	return string(a.ID), err
}

// NameOf returns the e-mail address of a person with an id, or of the actor of an event, and any
// other text as it is. It reads each account once.
func (v *Visit) NameOf(holder string) (string, error) {
	holder = strings.TrimPrefix(holder, audit.PersonActor)
	if name, known := v.names[holder]; known {
		return name, nil
	}
	id, err := auth.ParseUUID[auth.UserID]("id", holder)
	if err != nil {
		return holder, nil //nolint:nilerr // it is not the id of a person
	}
	a, err := v.site.ports.Accounts.Get(v.UserContext(), id)
	name := string(a.Email)
	switch {
	case fault.Is(err, fault.NotFound):
		name = holder
	case err != nil:
		return "", err
	}
	if v.names == nil {
		v.names = map[string]string{}
	}
	v.names[holder] = name
	return name, nil
}

// Handler serves a request for a page.
type Handler func(v *Visit) error

// Open returns the handler of a page that everybody may see.
func (s *Site) Open(h Handler) fiber.Handler {
	return func(c *fiber.Ctx) error {
		v, err := s.visit(c)
		if err != nil {
			return err
		}
		return h(v)
	}
}

// Require returns the handler of a page for people with a session of at least the level. Others are
// sent to the page for signing in, or for a step-up, and come back.
func (s *Site) Require(level auth.TrustLevel, h Handler) fiber.Handler {
	return s.Open(func(v *Visit) error {
		if !v.SignedIn() {
			return v.Redirect(SignInAddress(v.address()))
		}
		err := s.requireLevel(v, level)
		if err == nil {
			err = h(v)
		}
		if isRefusedForTrust(err) && v.Session.TrustLevel.Admits(auth.Unverified) {
			return v.Redirect(withNext(StepUpPath, v.address()))
		}
		return err
	})
}

// Reader returns the handler of a page that shows servers. Everybody may see it, unless reading the
// registry needs a caller (contract C-40): then people sign in, and programs, which want JSON, send
// the token with which they may read.
func (s *Site) Reader(h Handler) fiber.Handler {
	if !s.ports.Reading.Private {
		return s.Open(h)
	}
	page := s.Require(auth.Unverified, h)
	return func(c *fiber.Ctx) error {
		token := rest.BearerToken(c)
		if s.HasSignIn() && token == "" && !WantsJSON(c) {
			return page(c)
		}
		return s.Open(func(v *Visit) error {
			v.Set(fiber.HeaderVary, fiber.HeaderCookie+", "+fiber.HeaderAuthorization)
			v.Set(fiber.HeaderCacheControl, "no-store")
			who, err := v.readerBy(token)
			if err == nil {
				err = who.MayRead()
			}
			if err != nil {
				return err
			}
			return h(v)
		})(c)
	}
}

// Reader returns the person who is signed in; else no one.
func (v *Visit) Reader() (authority.Caller, error) { return v.readerBy("") }

// IsPrivate reports whether reading the registry needs a caller.
func (s *Site) IsPrivate() bool { return s.ports.Reading.Private }

// readerBy returns who reads a page: by a token, or the person who is signed in.
func (v *Visit) readerBy(token string) (authority.Caller, error) {
	if !v.site.HasSignIn() || token == "" && !v.SignedIn() {
		return authority.Caller{}, nil
	}
	if token == "" {
		return v.Caller()
	}
	return v.site.ports.Authority.IdentifyReader(v.UserContext(), token, rest.Address(v.Ctx))
}

// requireLevel returns the error of trust.Require for the session of the person, and records it
// (contract A-66).
func (s *Site) requireLevel(v *Visit, level auth.TrustLevel) error {
	err := trust.Require(v.Session.TrustLevel, level)
	if err == nil {
		return nil
	}
	return s.ports.Refusals.LowTrust(v.UserContext(), v.Session, rest.Operation(v.Ctx), err)
}

// visit checks a request and finds out who sent it. All responses have the headers of pages, also
// redirects: what one that keeps the method says about the referrer applies to the request that
// follows.
func (s *Site) visit(c *fiber.Ctx) (*Visit, error) {
	securityHeaders.Set(c)
	if err := s.checkOrigin(c); err != nil {
		return nil, err
	}
	v := &Visit{Ctx: c, site: s}
	if err := s.identify(v); err != nil {
		return nil, err
	}
	c.Locals(visitKey, v)
	if c.Method() == fiber.MethodPost {
		form, err := readForm(c)
		if err != nil {
			return nil, err
		}
		v.Form = form
	}
	return v, nil
}

// KeepSecret keeps the query of the address of a page secret: no other page learns it, and no cache
// keeps the page.
func (v *Visit) KeepSecret() { v.secret = true }

// address returns the path and query of a page, to come back to. Of a secret one it is the path.
func (v *Visit) address() string {
	if v.secret {
		return strings.Clone(v.Path())
	}
	return strings.Clone(v.OriginalURL())
}

// Redirect sends the browser to another page, which it gets with GET.
func (v *Visit) Redirect(to string) error { return v.Ctx.Redirect(markStep(to), http.StatusSeeOther) }

// Done leads to a page that says what was done, or returns err.
func (v *Visit) Done(err error, page, notice string) error {
	if err != nil {
		return err
	}
	return v.Redirect(page + "?done=" + notice)
}

// SignInAddress returns the address of the sign-in that leads to a page.
func SignInAddress(next string) string { return withNext(SignInPath, next) }

// StepUpAddress returns the address of the step-up that leads to a page.
func StepUpAddress(next string) string { return withNext(StepUpPath, next) }

// withNext adds the page to come back to, to the address of another page.
func withNext(path, next string) string { return path + "?next=" + url.QueryEscape(next) }

// Next returns the page to come back to, which a field of the query or the form names: a page of
// the console, or the first page if the field is empty.
func (v *Visit) Next() string {
	next := v.Form.Get(nextField)
	if next == "" {
		next = strings.Clone(v.Query(nextField))
	}
	if page, _, _ := strings.Cut(next, "?"); !isLocal(next) || page == SignInPath {
		return Home
	}
	return next
}

// Local returns a parameter of the query that names a page of the console; otherwise empty.
func (v *Visit) Local(name string) string {
	if page := v.Text(name); isLocal(page) {
		return page
	}
	return ""
}

const nextField = "next"

// isLocal reports whether an address is a page of the console or of an authorization request, and not one
// that a browser understands as an address elsewhere.
func isLocal(address string) bool {
	if IsContinue(address) {
		return true
	}
	if !strings.HasPrefix(address, Root) || strings.ContainsAny(address, "\\\r\n\t") {
		return false
	}
	u, err := url.ParseRequestURI(address)
	return err == nil && u.Host == "" && !slices.Contains(strings.Split(u.Path, "/"), "..")
}

// isRefusedForTrust reports whether an act was refused because the trust level of the session is
// too low.
func isRefusedForTrust(err error) bool {
	f, ok := fault.As(err)
	return ok && f.Kind == fault.Forbidden && f.Code == auth.CodeInsufficientTrust
}

// Text returns a parameter of the query.
func (v *Visit) Text(name string) string { return strings.Clone(v.Query(name)) }

// Param returns a parameter of the path. It returns fault.NotFound if it is not text.
func (v *Visit) Param(name string) (string, error) {
	value, err := url.PathUnescape(strings.Clone(v.Params(name)))
	if err != nil || !utf8.ValidString(value) {
		return "", fault.New(fault.NotFound, "there is no such page")
	}
	return value, nil
}

// Device returns what a sign-in learns about the device: the user agent and the language, so that a
// browser is one device with and without JavaScript, and the token that proves it.
func (v *Visit) Device() (auth.DeviceInfo, auth.DeviceSecret, error) {
	device, err := auth.NewDeviceInfo(v.DeviceFields())
	return device, rest.DeviceCookie(v.Ctx), err
}

// DeviceFields returns the fields of the device, before they are checked.
func (v *Visit) DeviceFields() auth.DeviceFields {
	return auth.DeviceFields{
		UserAgent: strings.Clone(v.Get(fiber.HeaderUserAgent)),
		Language:  firstLanguage(v.Get(fiber.HeaderAcceptLanguage)),
	}
}

// firstLanguage returns the first language of Accept-Language, as navigator.language names it.
func firstLanguage(header string) string {
	first, _, _ := strings.Cut(header, ",")
	first, _, _ = strings.Cut(first, ";")
	return strings.Clone(strings.TrimSpace(first))
}
