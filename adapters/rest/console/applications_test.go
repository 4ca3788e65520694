package console_test

import (
	"context"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/console"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/account"
	applicationpages "github.com/tollgate-dev/tollgate/adapters/rest/console/authorizing"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/operating"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/webtest"
	"github.com/tollgate-dev/tollgate/adapters/rest/resttest"
	"github.com/tollgate-dev/tollgate/core/access/ruling"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/access"
	"github.com/tollgate-dev/tollgate/core/auth/authorizing"
	"github.com/tollgate-dev/tollgate/core/auth/cookies"
	"github.com/tollgate-dev/tollgate/core/auth/federating"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/auth/tokens"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/core/registry/mirroring"
	"github.com/tollgate-dev/tollgate/core/registry/viewing"
	"github.com/tollgate-dev/tollgate/core/toolserver"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/secrets/secretstest"
	"github.com/tollgate-dev/tollgate/ports/throttle"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

const (
	ada = auth.UserID("11111111-2222-4333-8444-555555555555")
	eve = auth.UserID("22222222-2222-4333-8444-555555555555")

	application = "http://127.0.0.1:4321/callback"
	begins      = "/oauth2/authorize?client_id=https%3A%2F%2Fapp.example%2Fa.json"
)

// requestID returns the id of the nth request.
func requestID(n int) auth.LinkSecret {
	return auth.LinkSecret(strings.Repeat("-", 42) + string(rune('a'+n)))
}

// flow is the use cases of the authorization server, as tests set them.
type flow struct {
	next     authorizing.Next // of Continue
	err      error            // of all
	begun    int
	visits   []authorizing.Visit
	answers  []bool
	query    url.Values
	families []authorizing.Application
	removed  []oauth.FamilyID
}

func (f *flow) begin(_ context.Context, query url.Values, _ netip.Addr) (authorizing.Begun, error) {
	f.query = query
	id := requestID(f.begun)
	f.begun++
	return authorizing.Begun{ID: id, Browser: "browser-of-" + id}, f.err
}

// check returns what Continue does for a request of the browser that began it.
func (f *flow) check(v authorizing.Visit) (authorizing.Next, error) {
	f.visits = append(f.visits, v)
	switch {
	case f.err != nil:
		return authorizing.Next{}, f.err
	case v.Browser != "browser-of-"+v.ID:
		return authorizing.Next{}, fault.New(fault.NotFound, "no such request")
	}
	return f.next, nil
}

func (f *flow) goOn(_ context.Context, v authorizing.Visit) (authorizing.Next, error) {
	return f.check(v)
}

func (f *flow) decide(_ context.Context, v authorizing.Visit, agreed bool) (authorizing.Next, error) {
	next, err := f.check(v)
	f.answers = append(f.answers, agreed)
	if next.Step == authorizing.Ask || !agreed {
		next.Step, next.URL = authorizing.Leave, denied
		if agreed {
			next.URL = application + "?code=1"
		}
	}
	return next, err
}

// denied and unmet are where somebody is led who does not agree, or gives up.
const (
	denied = application + "?error=access_denied&state=%22%3E"
	unmet  = application + "?error=unmet_authentication_requirements"
)

func (f *flow) giveUp(_ context.Context, v authorizing.Visit) (authorizing.Next, error) {
	next, err := f.check(v)
	next.Step, next.URL = authorizing.Leave, unmet
	return next, err
}

func serverName(text string) toolserver.Name {
	name, err := toolserver.ParseName(text)
	if err != nil {
		panic(err)
	}
	return name
}

// asking is the step of a consent.
func asking() authorizing.Next {
	return authorizing.Next{
		Step: authorizing.Ask, Client: "<b>App\u202e",
		Consent: &authorizing.Consent{
			Client: "<b>App\u202e", ClientHost: "app.example", Host: "127.0.0.1:4321", Local: true, Resource: "https://tools.example/mcp",
			Servers: []oauth.Server{
				{Name: serverName("com.example/a"), Title: "<i>Weather", Publisher: "com.example", Reviewed: true},
				{Name: serverName("com.example/b"), Publisher: "com.example"},
			},
			Scopes: []string{"read<", oauth.ScopeWrite},
		},
	}
}

type unlimited struct{ throttle.Throttle }

func (unlimited) Try(context.Context, throttle.Scope, string) (throttle.Verdict, error) {
	return throttle.Verdict{Allowed: true, Unlimited: true}, nil
}

// office is a console with the pages of authorization requests, over records in memory.
type office struct {
	*flow

	t       *testing.T
	api     string
	cookies *cookies.Service
	secrets map[auth.UserID]auth.CookieSecret
}

func openOffice(t *testing.T) *office {
	t.Helper()
	db, clock := fakedb.New(), clocktest.NewManual(time.Now())
	accounts, sessions, cache := fakedb.NewAccounts(db), fakedb.NewSessions(db), memory.NewSessions(clock, memory.Config{})
	o := &office{flow: &flow{next: asking()}, t: t, secrets: map[auth.UserID]auth.CookieSecret{}, cookies: cookies.New(cookies.Config{SessionTTL: time.Hour}, cookies.Ports{
		Cookies: fakedb.NewSessionCookies(db), Sessions: sessions, Cache: cache, Clock: clock, Entropy: &secretstest.Entropy{},
		Access: access.NewChecker(nil, sessions, cache, nil, clock, func() uint64 { return 0 }, nil),
	})}
	for email, id := range map[auth.Email]auth.UserID{"ada@example.com": ada, "eve@example.com": eve} {
		must.Succeed(t, accounts.Create(t.Context(), auth.Account{ID: id, Email: email, State: auth.AccountActive}))
		if _, _, err := fakedb.NewDevices(db).Ensure(t.Context(), auth.Device{ID: auth.DeviceID(id), UserID: id, Identity: "d"}); err != nil {
			t.Fatal(err)
		}
		must.Succeed(t, sessions.Create(t.Context(), auth.Session{
			ID: auth.SessionID(id), UserID: id, DeviceID: auth.DeviceID(id), TrustLevel: auth.FullTrust, CreatedAt: clock.Now(), LastActivity: clock.Now(),
			ExpiresAt: clock.Now().Add(time.Hour), MaxExpiresAt: clock.Now().Add(time.Hour),
		}))
	}
	log := logrus.New()
	log.SetOutput(io.Discard)
	o.api = resttest.Serve(t, rest.New(resttest.Config(), rest.Ports{
		Throttle: unlimited{}, Clock: clock, Log: logrus.NewEntry(log),
		Parts: []rest.Part{console.New(console.Ports{Auth: &console.AuthPorts{
			Site:        site.Ports{Cookies: o.cookies, Accounts: accounts, Grants: fakedb.NewGrants(db)},
			Authorizing: applicationpages.Ports{Begin: o.begin, Continue: o.goOn, Decide: o.decide, GiveUp: o.giveUp},
			Account: account.Ports{
				Tokens:       tokens.New(tokens.Ports{Tokens: fakedb.NewAPITokens(db)}),
				Applications: account.Applications{List: o.list, Remove: o.remove},
			},
			Operating: operating.Ports{
				Providers: new(federating.Providers), Services: new(delegating.Services), AccessRules: ruling.New(ruling.Ports{}),
				Mirrors: new(mirroring.Operator), Views: new(viewing.Operator),
			},
		}})},
	}))
	return o
}

func (f *flow) list(_ context.Context, user auth.UserID) ([]authorizing.Application, error) {
	if user != ada {
		return nil, f.err
	}
	return f.families, f.err
}

func (f *flow) remove(_ context.Context, s auth.Session, id oauth.FamilyID) error {
	if s.UserID != ada {
		return fault.New(fault.NotFound, "there is no such application")
	}
	f.removed = append(f.removed, id)
	return f.err
}

// browser returns a browser of a person; of no one for an empty id.
func (o *office) browser(person auth.UserID) *webtest.Browser {
	o.t.Helper()
	b := webtest.New(o.t, o.api)
	b.Seen = templates.see
	b.Client.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.Path, "/oauth2/") {
			return nil
		}
		return http.ErrUseLastResponse
	}
	if person != "" {
		o.become(b, person)
	}
	return b
}

// become signs a person in, in a browser.
func (o *office) become(b *webtest.Browser, person auth.UserID) {
	o.t.Helper()
	base, err := url.Parse(b.Base)
	if o.secrets[person] == "" && err == nil {
		o.secrets[person], err = o.cookies.Issue(o.t.Context(), cookies.Begun{SessionID: auth.SessionID(person), UserID: person, TrustLevel: auth.FullTrust})
	}
	must.Succeed(o.t, err)
	b.Client.Jar.SetCookies(base, []*http.Cookie{{Name: "tollgate", Value: string(o.secrets[person]), Path: "/"}})
}

// TestConsent: a request leads to its page, which says everything that the person must know as text, and to the
// application after the answer by a link of a page, since the browser would not follow a redirect.
func TestConsent(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	b := o.browser(ada)
	b.Open(begins+"&state=1&state=2", http.StatusOK)
	if got := b.Page.URL.RequestURI(); got != "/oauth2/continue/"+string(requestID(0)) || len(o.query["state"]) != 2 {
		t.Errorf("the page is %s, of the query %v", got, o.query)
	}
	b.WantText("Let <b>App\\u202e act for you?", "of app.example", "127.0.0.1:4321", "ada@example.com", "<i>Weather", "com.example/a",
		"com.example/b", "published by com.example", "approved by a reviewer", "not reviewed", "read<", "any program can pretend to be it",
		"https://tools.example/mcp", "Back to the application").WantNoText("Change the registry", "registered here", "this registry")
	if h := b.Page.Header; h.Get("Cache-Control") != "no-store" || h.Get("X-Frame-Options") != "DENY" || strings.Contains(b.Page.Body, "<i>Weather") ||
		!strings.Contains(h.Get("Content-Security-Policy"), "frame-ancestors 'none'") || strings.Count(b.Page.Body, "<img") != 1 {
		t.Errorf("the page has %v:\n%s", h, b.Page.Body)
	}
	b.Press("Allow", http.StatusOK).WantText("Back to <b>App")
	if got := b.Page.Header.Get("Refresh"); got != "0; url="+application+"?code=1" || !strings.Contains(b.Page.Body, `href="`+application+`?code=1"`) {
		t.Errorf("the answer leads to %s:\n%s", got, b.Page.Body)
	}
	b.Open("/oauth2/continue/"+string(requestID(0)), http.StatusOK)
	o.next.Step, o.next.URL = authorizing.Leave, application+"?code=1" // another tab has agreed meanwhile
	b.Press("Deny", http.StatusOK)
	o.next.Step = authorizing.Ask
	if !strings.Contains(b.Page.Body, `href="`+application+`?error=access_denied&amp;state=%22%3E"`) || len(o.answers) != 2 || !o.answers[0] || o.answers[1] {
		t.Errorf("%v leads back at:\n%s", o.answers, b.Page.Body)
	}
	o.next.Consent.Registry, o.next.Consent.ClientHost, o.next.Consent.Servers = true, "", nil
	b.Open(begins, http.StatusOK).WantText("Change the registry: publish servers", "this registry", "registered here")
}

// TestConsentOfOthers: an answer counts only from the page of this site, for the person and the question that the page
// had, and in the browser that began the request.
func TestConsentOfOthers(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	b := o.browser(ada)
	b.Open(begins, http.StatusOK)
	b.Send(webtest.FromElsewhere(b.Submission("Allow")), http.StatusForbidden)
	b.Open(begins, http.StatusOK)
	page := b.Page
	old := b.Submission("Allow")
	o.become(b, eve)
	b.Send(old, http.StatusConflict).WantText("eve@example.com", "The question was for another person, or has changed")
	b.Page = page
	o.become(b, ada)
	o.next.Consent.Scopes = append(o.next.Consent.Scopes, "delete")
	b.Send(b.Submission("Allow"), http.StatusConflict).WantText("delete")
	o.next.Consent.Servers[1].Name = serverName("com.example/c")
	b.Press("Allow", http.StatusConflict)
	o.next.Consent.Host = "127.0.0.1:99"
	b.Press("Allow", http.StatusConflict)
	stranger := o.browser(eve)
	stranger.Open("/oauth2/continue/"+string(requestID(0)), http.StatusNotFound).WantText("start again from the application")
	stranger.Open(begins, http.StatusOK)
	stranger.Open("/oauth2/continue/"+string(requestID(0)), http.StatusNotFound)
	b.Send(b.Request(http.MethodPost, "/oauth2/continue/"+string(requestID(0)), []byte("decision=allow"), "application/x-www-form-urlencoded"), http.StatusConflict)
	if len(o.answers) != 0 {
		t.Errorf("the answers %v were taken", o.answers)
	}
	b.Press("Allow", http.StatusOK)
	if !o.answers[0] || o.visits[len(o.visits)-1].Session.UserID != ada {
		t.Errorf("%v of %+v", o.answers, o.visits)
	}
}

// TestSteps: the page of a request leads to what comes next, and a redirect to the application only if no form can have
// led there.
func TestSteps(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	b := o.browser("")
	b.Client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	where := func(path string) string {
		t.Helper()
		b.Try(b.Request(http.MethodGet, path, nil, ""))
		return b.Page.Header.Get("Location")
	}
	page := where(begins)
	if !site.IsContinue(page) || b.Page.Status != http.StatusFound {
		t.Fatalf("the request leads to %q with %d", page, b.Page.Status)
	}
	next := "?next=" + url.QueryEscape(page)
	for want, step := range map[string]authorizing.Next{
		"/console/sign-in" + next:                         {Step: authorizing.SignIn},
		"/console/sign-in" + next + "&email=a%26b%40c.de": {Step: authorizing.SignIn, LoginHint: "a&b@c.de"},
		"/console/step-up" + next:                         {Step: authorizing.StepUp},
		application + "?code=2":                           {Step: authorizing.Leave, URL: application + "?code=2"},
		"cursor://oauth?code=2":                           {Step: authorizing.Leave, URL: "cursor://oauth?code=2"},
	} {
		o.next = step
		if got := where(page); got != want {
			t.Errorf("%+v leads to %s, want %s", step, got, want)
		}
	}
	o.next = authorizing.Next{Step: authorizing.Leave, URL: "cursor://oauth?code=2"}
	b.Open(page+"?stepped", http.StatusOK)
	if b.Page.Header.Get("Refresh") != "0; url=cursor://oauth?code=2" || !strings.Contains(b.Page.Body, `href="cursor://oauth?code=2"`) {
		t.Errorf("after a form: %v\n%s", b.Page.Header, b.Page.Body)
	}
	for _, bad := range []string{"javascript:alert(1)//", "JavaScript:alert(1)", "data:text/html,x", "", "/console/", "https://a b", "http://a/\r\nX: y", `http://a/"x`} {
		o.next.URL = bad
		for _, address := range []string{page, page + "?stepped"} {
			if b.Open(address, http.StatusInternalServerError); b.Page.Header.Get("Location") != "" || strings.Contains(b.Page.Body, "alert") {
				t.Errorf("%q leads to %v\n%s", bad, b.Page.Header, b.Page.Body)
			}
		}
	}
}

// TestBack: who does not want to go on gets back to the application without access at each step, signed in or not.
func TestBack(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	b := o.browser("")
	b.Open(begins, http.StatusOK)
	o.next.Step = authorizing.SignIn
	page := "/oauth2/continue/" + string(requestID(0))
	b.Send(b.Request(http.MethodPost, page+"/back", nil, "application/x-www-form-urlencoded"), http.StatusOK)
	if !strings.HasPrefix(b.Page.Header.Get("Refresh"), "0; url="+application+"?error=access_denied") || o.answers[0] {
		t.Errorf("the way back is %v", b.Page.Header)
	}
	b.Send(webtest.FromElsewhere(b.Request(http.MethodPost, page+"/back", nil, "application/x-www-form-urlencoded")), http.StatusForbidden)
	o.next.Step = authorizing.StepUp
	unable := url.Values{"unmet": {"true"}}
	b.Send(b.Request(http.MethodPost, page+"/back", []byte(unable.Encode()), "application/x-www-form-urlencoded"), http.StatusOK)
	if !strings.HasPrefix(b.Page.Header.Get("Refresh"), "0; url="+unmet) || len(o.answers) != 1 {
		t.Errorf("who cannot verify is led by %v, and has answered %v", b.Page.Header, o.answers)
	}
	o.next.Step = authorizing.Ask
	b.Open(page+"/back", http.StatusOK).Press("Back to the application", http.StatusOK)
	if len(o.answers) != 2 || o.answers[1] {
		t.Errorf("the answers are %v", o.answers)
	}
}

// TestRefusedRequests: what cannot go back to the application is a page, and a limit says when it ends.
func TestRefusedRequests(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	b := o.browser(ada)
	for _, c := range []struct {
		err          error
		status       int
		retry, shows string
	}{
		{oauth.Refuse(oauth.CodeInvalidClient, "the client <x> is unknown"), 401, "", "The client <x> is unknown."},
		{oauth.Refuse(oauth.CodeInvalidRequest, "the redirect URI is not one of the client"), 400, "", "The redirect URI is not one of the client."},
		{fault.New(fault.Exhausted, "app.example was read too often").After(90 * time.Second), 503, "90", "Try again in\u00a02\u00a0min."},
		{fault.New(fault.Exhausted, "too many requests").WithCode(auth.CodeRateLimit).After(30 * time.Second), 429, "30", "Too many requests"},
		{fault.New(fault.Internal, "secret"), 500, "", "fault of the service"},
	} {
		o.err = c.err
		b.Open(begins, c.status).WantText(c.shows).WantNoText("secret", "Back to the application")
		if b.Page.Header.Get("Retry-After") != c.retry || b.Page.Header.Get("WWW-Authenticate") != "" {
			t.Errorf("%v has %v", c.err, b.Page.Header)
		}
	}
	o.err = nil
	b.Open("/oauth2/authorize?state="+strings.Repeat("a", 8<<10), http.StatusBadRequest)
	b.Open("/oauth2/authorize?state=%zz", http.StatusBadRequest)
	for _, method := range []string{http.MethodHead, http.MethodPost, http.MethodPut} {
		if got := b.Try(b.Request(method, begins, nil, "application/x-www-form-urlencoded")); got != http.StatusMethodNotAllowed {
			t.Errorf("%s is %d", method, got)
		}
	}
	if o.begun != 5 {
		t.Errorf("%d requests have begun", o.begun)
	}
	o.err = &authorizing.Redirect{URL: application + "?error=invalid_scope"}
	b.Client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if b.Open(begins, http.StatusFound); b.Page.Header.Get("Location") != application+"?error=invalid_scope" {
		t.Errorf("the error goes to %v", b.Page.Header)
	}
}

// TestRequestCookie: the cookie of the browser is for this host and its servers alone, and has the last five requests.
func TestRequestCookie(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	b := o.browser(ada)
	for n := range 6 {
		b.Open(begins, http.StatusOK)
		if want := "/oauth2/continue/" + string(requestID(n)); b.Page.URL.Path != want {
			t.Fatalf("the page is %s, want %s", b.Page.URL, want)
		}
	}
	for n := range 6 {
		b.Open("/oauth2/continue/"+string(requestID(n)), map[bool]int{true: http.StatusNotFound, false: http.StatusOK}[n == 0])
	}
	b.Client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	b.Open(begins, http.StatusFound)
	cookie, err := http.ParseSetCookie(b.Page.Header.Get("Set-Cookie"))
	must.Succeed(t, err)
	if cookie.Name != "tollgate_application" || !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || cookie.MaxAge != 900 || cookie.Path != "/" {
		t.Errorf("the cookie is %+v", cookie)
	}
}

// TestApplications: a person sees the applications with access and revokes one; the page and its link are there only if
// applications may act for people.
func TestApplications(t *testing.T) {
	o := openOffice(t)
	b := o.browser(ada)
	const path = "/console/account/applications"
	b.Open(path, http.StatusOK).WantText("No application acts for you.")
	o.families = []authorizing.Application{{Family: oauth.Family{
		ID: "33333333-2222-4333-8444-555555555555", Client: "https://app.example/a.json", ClientName: "<App>", Resource: "https://tools.example/mcp",
		Scopes: []string{"read"}, CreatedAt: time.Now(),
	}, Servers: asking().Consent.Servers}, {Family: oauth.Family{ID: "44444444-2222-4333-8444-555555555555", Client: "inner", ClientName: "Inner"}}}
	b.Open(path, http.StatusOK).WantText("<App>", "app.example", "com.example/a", "com.example/b", "https://tools.example/mcp", "read", "never",
		"registered here", "those of the server")
	o.browser(eve).Open(path, http.StatusOK).WantText("No application acts for you.")
	b.Send(webtest.FromElsewhere(b.Submission("Revoke the access of Inner")), http.StatusForbidden)
	b.Open(path, http.StatusOK).Press("Revoke the access of Inner", http.StatusSeeOther)
	if got := b.Page.Header.Get("Location"); got != path+"?done=application" || len(o.removed) != 1 || !strings.HasPrefix(string(o.removed[0]), "4444") {
		t.Errorf("%s after %v", got, o.removed)
	}
	b.Open(path+"?done=application", http.StatusOK).WantText("The access of the application is revoked.")
	_, s := start(t)
	off := newBrowser(t, s)
	for _, path := range []string{begins, "/oauth2/continue/" + string(requestID(0))} {
		off.Open(path, http.StatusNotFound)
	}
}

// TestStepsOfApplications: the pages for signing in and for a step-up lead to the request of an application and nowhere
// else outside of the console, offer the way back to the application, and take the address that it suggests.
func TestStepsOfApplications(t *testing.T) {
	e, s := start(t)
	pia := e.NewPerson(t, "pia@example.com")
	b := newBrowser(t, s)
	page := "/oauth2/continue/" + string(requestID(0))
	next := "?next=" + url.QueryEscape(page)
	for _, bad := range []string{page + "/back", page + "?x", page + "a", "/oauth2/continue/", "/oauth2/authorize?x=y", "/" + page, "https://evil.example" + page} {
		b.Open("/console/sign-in?next="+url.QueryEscape(bad), http.StatusOK).WantNoText("Back to the application").WantFields("next", "/console/")
	}
	b.Open("/console/sign-in"+next+"&email="+pia.Email, http.StatusOK).WantText("Back to the application").WantFields("next", page, "email", pia.Email)
	if back := b.Submission("Back to the application"); back.URL.Path != page+"/back" || back.ContentLength != 0 {
		t.Errorf("the way back is %s", back.URL)
	}
	b.Press("Sign in", http.StatusUnprocessableEntity, "password", "wrong").WantText("Back to the application")
	b.Press("Sign in", http.StatusNotFound, "password", fixture.Password).WantPath(page + "?stepped") // there are no requests
	b.Open("/console/step-up"+next, http.StatusOK).WantText("Back to the application", "I cannot do this").WantNoText("Cancel")
	b.verify(e, pia, http.StatusNotFound).WantPath(page + "?stepped")
	b.Open("/console/step-up"+next, http.StatusOK).WantText("The last password or code of this session is too old for this.")
	b.Press("Send a code to p…@example.com", http.StatusOK).WantText("Back to the application").WantNoText("Cancel")
}
