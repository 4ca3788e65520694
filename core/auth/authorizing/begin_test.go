package authorizing_test

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/authorizing"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/throttle"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestBeginNeverRedirectsToAStranger checks that an unknown client, or a redirect URI that is not its own,
// is a page, whatever else is wrong.
func TestBeginNeverRedirectsToAStranger(t *testing.T) {
	t.Parallel()
	for name, changes := range map[string][]string{
		"an unknown client":         {"client_id", "nobody"},
		"no client":                 {"client_id", ""},
		"a client with a NUL":       {"client_id", "a\x00"},
		"no redirect URI":           {"redirect_uri", ""},
		"another redirect URI":      {"redirect_uri", callback + "/evil"},
		"another host":              {"redirect_uri", "https://app.example.evil.example/cb"},
		"a document elsewhere":      {"client_id", "https://evil.example/client"},
		"a document that is absent": {"client_id", "https://editor.example/other"},
		"a document with a query":   {"client_id", document + "?x=1"},
		"a document by http":        {"client_id", "http://editor.example/client"},
		"a localhost of evil":       {"client_id", document, "redirect_uri", "http://localhost.evil.example/cb"},
		"and all is wrong":          {"client_id", "nobody", "response_type", "token", "resource", ""},
	} {
		fx := newFixture(t)
		_, err := fx.begin(changes...)
		if !fault.Is(err, fault.Invalid) || errorOf(t, err) != "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	fx := newFixture(t)
	for _, twice := range []string{"client_id", "redirect_uri"} {
		q := query()
		q.Add(twice, "https://evil.example/")
		if _, err := fx.service.Begin(context.Background(), q, home); !fault.Is(err, fault.Invalid) || errorOf(t, err) != "" {
			t.Errorf("%s twice: %v", twice, err)
		}
	}
}

func TestBeginRedirects(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		changes []string
		want    fault.Code
	}{
		"a token":               {[]string{"response_type", "token"}, oauth.CodeUnsupportedResponseType},
		"no resource":           {[]string{"resource", ""}, oauth.CodeInvalidTarget},
		"an unknown resource":   {[]string{"resource", "https://evil.example/mcp"}, oauth.CodeInvalidTarget},
		"a part of the URL":     {[]string{"resource", "https://wiki.example"}, oauth.CodeInvalidTarget},
		"an encoded part":       {[]string{"resource", "https://wiki.example/%6dcp"}, oauth.CodeInvalidTarget},
		"another port":          {[]string{"resource", "https://wiki.example:8443/mcp"}, oauth.CodeInvalidTarget},
		"another scheme":        {[]string{"resource", "http://wiki.example/mcp"}, oauth.CodeInvalidTarget},
		"a fragment":            {[]string{"resource", wiki + "#"}, oauth.CodeInvalidTarget},
		"a letter of Unicode":   {[]string{"resource", "https://wi\u212ai.example/mcp"}, oauth.CodeInvalidTarget},
		"the same, encoded":     {[]string{"resource", "https://wi%E2%84%AAi.example/mcp"}, oauth.CodeInvalidTarget},
		"a scope that is there": {[]string{"scope", "read admin"}, ""},
		"no scope that is":      {[]string{"scope", "admin"}, oauth.CodeInvalidScope},
		"case, port and slash":  {[]string{"resource", "HTTPS://Wiki.Example:443/mcp/"}, ""},
		"this registry":         {[]string{"resource", issuer + "/"}, ""},
		"a path of it":          {[]string{"resource", issuer + "/mcp"}, oauth.CodeInvalidTarget},
	} {
		fx := newFixture(t)
		_, err := fx.begin(c.changes...)
		if got := errorOf(t, err); got != string(c.want) || (err == nil) != (c.want == "") {
			t.Errorf("%s: %v, %q", name, err, got)
		}
	}
}

// TestResourcesThatAreNotFor checks that a closed resource, and one of other clients, gives no token.
func TestResourcesThatAreNotFor(t *testing.T) {
	t.Parallel()
	change := func(change func(*oauth.Resource)) func(*fixture) {
		return func(fx *fixture) {
			r := fx.resources["wiki"]
			change(&r)
			fx.resources["wiki"] = r
		}
	}
	for name, c := range map[string]func(*fixture){
		"in quarantine": func(fx *fixture) { fx.gate.servers[0].Quarantined = true },
		"not listed":    func(fx *fixture) { fx.gate.servers[0].Listed = false },
		"another URL":   func(fx *fixture) { fx.gate.urls["com.example/wiki"] = wiki + "/2" },
		"other clients": change(func(r *oauth.Resource) { r.Clients = []oauth.ClientID{"other"} }),
		"other resources": func(fx *fixture) {
			app := fx.clients["app"]
			app.Resources = []oauth.ResourceName{"mail"}
			fx.clients["app"] = app
		},
	} {
		fx := newFixture(t, c)
		if _, err := fx.begin(); errorOf(t, err) != string(oauth.CodeInvalidTarget) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestListedResources checks that what is listed is a resource only if it is set so, that a twin closes it,
// and that the rules must allow all of its servers.
func TestListedResources(t *testing.T) {
	t.Parallel()
	listed := func(fx *fixture) { fx.config.AllListed, fx.resources = true, nil }
	twin := func(fx *fixture) {
		fx.gate.servers = append(fx.gate.servers, oauth.Server{Name: named(fx.t, "com.evil/twin"), Listed: true})
		fx.gate.urls["com.evil/twin"] = wiki
	}
	fx := newFixture(t, func(fx *fixture) { fx.resources = nil })
	if _, err := fx.begin(); errorOf(t, err) != string(oauth.CodeInvalidTarget) {
		t.Errorf("declared ones only: %v", err)
	}
	fx = newFixture(t, listed)
	next := fx.next(fx.visit("scope", ""))
	if next.Step != authorizing.Ask || next.Consent.Resource != wiki {
		t.Errorf("a listed one: %+v", next)
	}
	spelled := func(fx *fixture) { fx.gate.servers[0].URL, fx.gate.servers[1].URL = wiki+"/", wiki }
	fx = newFixture(t, listed, twin, spelled, func(fx *fixture) { fx.gate.allowed["com.evil/twin"] = 0 })
	if next := fx.next(fx.visit("scope", "")); next.Step != authorizing.Ask || next.Consent.Resource != wiki {
		t.Errorf("as the request spells it, and one server: %+v", next)
	}
	fx = newFixture(t, listed, twin)
	if next := fx.next(fx.visit()); next.Step != authorizing.Leave || answerOf(t, next.URL).Get("error") != "access_denied" {
		t.Errorf("a twin that no rule allows: %+v", next)
	}
	fx = newFixture(t, listed, twin, func(fx *fixture) { fx.gate.allowed["com.evil/twin"] = auth.FullTrust })
	if next := fx.next(fx.visit()); next.Step != authorizing.StepUp || next.Level != auth.FullTrust {
		t.Errorf("a twin that needs more: %+v", next)
	}
	fx = newFixture(t, listed, twin, func(fx *fixture) { fx.gate.servers[1].Quarantined = true })
	if _, err := fx.begin(); errorOf(t, err) != string(oauth.CodeInvalidTarget) {
		t.Errorf("a twin in quarantine: %v", err)
	}
	// One that is declared needs one of its servers only.
	fx = newFixture(t, twin, func(fx *fixture) {
		r := fx.resources["wiki"]
		r.Servers = append(r.Servers, named(fx.t, "com.evil/twin"))
		fx.resources["wiki"] = r
	})
	if next := fx.next(fx.visit()); next.Step != authorizing.Ask {
		t.Errorf("a declared one: %+v", next)
	}
	// A server that has another URL now allows nothing at this one.
	fx.gate.allowed = map[string]auth.TrustLevel{"com.evil/twin": 0}
	fx.gate.urls["com.evil/twin"] = "https://evil.example/mcp"
	if next := fx.next(fx.visit()); next.Step != authorizing.Leave || answerOf(t, next.URL).Get("error") != "access_denied" {
		t.Errorf("a server elsewhere: %+v", next)
	}
}

func TestBeginCounts(t *testing.T) {
	t.Parallel()
	counts := &fixedThrottle{refuses: throttle.OAuthAuthorize}
	fx := newFixture(t, func(fx *fixture) { fx.ports.Throttle = counts })
	_, err := fx.begin()
	if f, _ := fault.As(err); f == nil || f.Kind != fault.Exhausted || f.RetryAfter < time.Second || len(counts.keys) != 1 {
		t.Errorf("got %v", err)
	}
	for _, from := range []string{"2001:db8::1", "2001:db8::ffff", "2001:db8:0:1::1"} {
		_, _ = fx.service.Begin(context.Background(), query(), netip.MustParseAddr(from))
	}
	if k := counts.keys; len(k) != 4 || k[0] != home.String() || k[1] != k[2] || k[2] == k[3] {
		t.Errorf("counted as %q", k)
	}
}

// TestDocumentsAreNoted checks that a document is recorded the first time, and each time that it is
// refused, but not for each request, and not by somebody whose host is not admitted.
func TestDocumentsAreNoted(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	for range 3 {
		fx.visit("client_id", document, "redirect_uri", "http://localhost:5000/cb")
		_, _ = fx.begin("client_id", "https://evil.example/client")
		_, _ = fx.begin("client_id", "https://editor.example/other")
	}
	want := "document|document the document is not there"
	if got := strings.Join(fx.events("AUTHORIZATION"), "|"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	seen, err := fx.ports.Sightings.List(context.Background(), 10)
	must.Succeed(t, err)
	if len(seen) != 2 || seen[0].Problem == seen[1].Problem {
		t.Errorf("seen: %+v", seen)
	}
	fx.clock.Advance(11 * time.Minute)
	fx.documents.clients[document] = oauth.Client{ID: document, Name: "Editor", JWKS: "other keys", RedirectURIs: []string{"http://localhost/cb"}}
	fx.visit("client_id", document, "redirect_uri", "http://localhost:5000/cb")
	if got := fx.events("AUTHORIZATION"); len(got) != 3 {
		t.Errorf("other keys are not recorded: %q", got)
	}
}

func TestDocumentsThatAreBusy(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	fx.documents.clients = nil
	fx.documents.err = fault.New(fault.Exhausted, "too often").After(time.Second)
	if _, err := fx.begin("client_id", document); !fault.Is(err, fault.Exhausted) {
		t.Errorf("got %v", err)
	}
	fx = newFixture(t, func(fx *fixture) { fx.config.Clients = authorizing.ClientsRegistered })
	if _, err := fx.begin("client_id", document, "redirect_uri", "http://localhost:5000/cb"); !fault.Is(err, fault.Invalid) {
		t.Errorf("registered ones only: %v", err)
	}
	fx = newFixture(t, func(fx *fixture) { fx.config.Clients, fx.config.Hosts = authorizing.ClientsOpen, nil })
	if _, err := fx.begin("client_id", document, "redirect_uri", "http://localhost:5000/cb"); err != nil {
		t.Errorf("open: %v", err)
	}
}
