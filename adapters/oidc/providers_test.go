package oidc

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/identity"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/oidcissuer"
)

// openProviders returns Providers that wait for a short time, and the service as a client of p.
func openProviders(p *oidcissuer.Provider) (*Providers, *clocktest.Manual, identity.Client) {
	clk := newClock()
	s := NewProviders(Config{}, clk)
	s.timeout = 300 * time.Millisecond
	return s, clk, identity.Client{ClientSecret: p.Secret, Redirect: "http://localhost/callback", Provider: &company.Provider{
		Issuer: p.URL, ClientID: p.ClientID, Scopes: []string{"openid"}, Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	}}
}

// signIn begins a sign-in, and takes the answer of the provider to the exchange and of the userinfo
// endpoint.
func signIn(t *testing.T, s *Providers, c identity.Client) error {
	t.Helper()
	got, err := exchange(t, s, c)
	if err == nil {
		_, err = got.More(t.Context())
	}
	return err
}

func exchange(t *testing.T, s *Providers, c identity.Client) (identity.Tokens, error) {
	t.Helper()
	address, err := s.Authorize(t.Context(), c, identity.Request{State: "s", Nonce: "n", Verifier: strings.Repeat("v", 43)})
	if err != nil {
		return identity.Tokens{}, err
	}
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := browser.Get(address)
	must.Succeed(t, err)
	defer func() { _ = answer.Body.Close() }() // it is empty
	back, err := answer.Location()
	must.Succeed(t, err)
	return s.Exchange(t.Context(), c, back.Query().Get("code"), strings.Repeat("v", 43))
}

// TestProvidersWithFaults lets each endpoint of a provider fail in each way: a call returns in time and
// says that the provider is away, and the next one works once it is back.
func TestProvidersWithFaults(t *testing.T) {
	p := oidcissuer.StartProvider(t)
	status := func(code int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "out of order", code) })
	}
	text := func(s string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(s)) // the client may be gone
		})
	}
	cut := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write([]byte(`{"a":`)) // the client may be gone
	})
	gone := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	lying := p.Discovery()
	lying["issuer"] = "https://elsewhere.example"
	away := map[string]http.Handler{"hung": p.Hung(), "gone": gone, "500": status(500), "503": status(503), "cut": cut}
	for path, faults := range map[string]map[string]http.Handler{
		oidcissuer.DiscoveryPath: {
			"404": status(404), "another issuer": oidcissuer.Document(lying), "no endpoints": oidcissuer.Document(p.Discovery()),
			"no JSON": text("<html>"), "endless": text(`{"issuer":"` + strings.Repeat("x", maxDocument)),
			"to another host": http.RedirectHandler("http://localhost:1/", http.StatusFound),
		},
		oidcissuer.KeysPath:     {"404": status(404), "no keys": text(`{}`)},
		oidcissuer.TokenPath:    {},
		oidcissuer.UserinfoPath: {},
	} {
		for name, handler := range away {
			faults[name] = handler
		}
		for name, handler := range faults {
			s, clk, c := openProviders(p)
			p.SignIn("u1", "ada@acme.example")
			p.Respond(path, handler)
			began := time.Now()
			err := signIn(t, s, c)
			if f, ok := fault.As(err); !ok || f.Kind != fault.Unavailable || f.Message != company.ProblemAway {
				t.Errorf("%s %s: the error is %v, want one of a provider that is away", path, name, err)
			}
			if took := time.Since(began); took > 20*s.timeout { // the machine may be busy
				t.Errorf("%s %s: the error took %v", path, name, took)
			}
			p.Respond(path, nil)
			await.Until(t, path+" "+name+": the provider works again", func() bool {
				clk.Advance(2 * time.Second) // a reading that has failed is not repeated at once
				return signIn(t, s, c) == nil
			})
		}
	}
}

// TestKeptDiscovery checks that a provider whose documents were read lately is used while it does not
// serve them, for a day and not longer.
func TestKeptDiscovery(t *testing.T) {
	p := oidcissuer.StartProvider(t)
	s, clk, c := openProviders(p)
	p.SignIn("u1", "ada@acme.example")
	must.Succeed(t, signIn(t, s, c))
	p.Disconnect()
	for _, want := range []struct {
		passed time.Duration
		good   bool
	}{{2 * time.Hour, true}, {21 * time.Hour, true}, {2 * time.Hour, false}} {
		clk.Advance(want.passed)
		if err := signIn(t, s, c); (err == nil) != want.good {
			t.Errorf("%v later the error is %v", want.passed, err)
		}
	}
}

// TestNewKeys checks that an unknown key causes one reading in 30 s, and that the keys of another
// provider are good for nothing.
func TestNewKeys(t *testing.T) {
	p, other := oidcissuer.StartProvider(t), oidcissuer.StartProvider(t)
	s, clk, c := openProviders(p)
	p.SignIn("u1", "ada@acme.example")
	for i, want := range []struct {
		passed  time.Duration
		good    bool
		fetches int
	}{{0, true, 1}, {0, true, 2}, {time.Second, false, 2}, {28 * time.Second, false, 2}, {2 * time.Second, true, 3}} {
		clk.Advance(want.passed)
		if i > 0 && i < 3 {
			p.RotateKeys(t)
		}
		err := signIn(t, s, c)
		if n := p.Fetches(oidcissuer.KeysPath); (err == nil) != want.good || n != want.fetches {
			t.Errorf("%d: the error is %v after %d readings of keys, want %+v", i, err, n, want)
		}
	}
	p.Behave(oidcissuer.Behaviour{
		Claims: map[string]any{"sub": "u1"}, Sign: func(claims map[string]any) string { return other.Sign(t, claims) },
	})
	if err := signIn(t, s, c); !fault.Is(err, fault.Unauthenticated) {
		t.Errorf("with a key of another provider the error is %v", err)
	}
}

// TestReplacedRefreshToken checks that a refresh token that replaces another one is returned although
// the ID token cannot be verified now.
func TestReplacedRefreshToken(t *testing.T) {
	p := oidcissuer.StartProvider(t)
	s, clk, c := openProviders(p)
	p.Behave(oidcissuer.Behaviour{Claims: map[string]any{"sub": "u1"}, Refresh: "first", Rotates: true})
	first, err := exchange(t, s, c)
	if err != nil || first.Refresh != "first" {
		t.Fatalf("the refresh token is %q, error %v", first.Refresh, err)
	}
	p.RotateKeys(t)
	p.Respond(oidcissuer.KeysPath, http.NotFoundHandler())
	second, err := s.Refresh(t.Context(), c, first.Refresh)
	if f, ok := fault.As(err); !ok || f.Message != company.ProblemAway || second.Refresh == "" || second.Refresh == first.Refresh {
		t.Fatalf("without keys the refresh token is %q, error %v", second.Refresh, err)
	}
	p.Respond(oidcissuer.KeysPath, nil)
	clk.Advance(unknownKeyEvery)
	if third, err := s.Refresh(t.Context(), c, second.Refresh); err != nil || third.Payload == nil {
		t.Errorf("afterwards the error is %v", err)
	}
	if _, err := s.Refresh(t.Context(), c, first.Refresh); !isRefused(err) {
		t.Errorf("for the replaced refresh token the error is %v", err)
	}
}

func isRefused(err error) bool {
	f, ok := fault.As(err)
	return ok && f.Kind == fault.Unauthenticated && f.Code == "invalid_grant"
}

// TestRefusalsOfTheTokenEndpoint checks what a refusal of the token endpoint says about: the code, the refresh
// token, the client, or the provider (RFC 6749, section 5.2).
func TestRefusalsOfTheTokenEndpoint(t *testing.T) {
	p := oidcissuer.StartProvider(t)
	s, _, c := openProviders(p)
	const invalid = "the company's sign-in refuses the code"
	for name, test := range map[string]struct {
		status        int
		body          string
		code, refresh string // the messages
	}{
		"the grant":            {400, `{"error":"invalid_grant"}`, invalid, "the company's sign-in does not know the session any more"},
		"the grant, by 401":    {401, `{"error":"invalid_grant"}`, invalid, "the company's sign-in does not know the session any more"},
		"the request":          {400, `{"error":"invalid_request"}`, invalid, company.ProblemAway},
		"the client":           {400, `{"error":"invalid_client"}`, company.ProblemClient, company.ProblemClient},
		"the client, by 401":   {401, `{}`, company.ProblemClient, company.ProblemClient},
		"the grant type of it": {403, `{"error":"unauthorized_client"}`, company.ProblemClient, company.ProblemClient},
		"too many":             {429, `{}`, company.ProblemAway, company.ProblemAway},
		"the provider":         {500, `{"error":"invalid_client"}`, company.ProblemAway, company.ProblemAway},
	} {
		p.Respond(oidcissuer.TokenPath, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(test.status)
			_, _ = w.Write([]byte(test.body)) // the client may be gone
		}))
		if _, err := s.Exchange(t.Context(), c, "code", strings.Repeat("v", 43)); fault.PublicMessage(err) != test.code {
			t.Errorf("%s: a code: %v, want %q", name, err, test.code)
		}
		if _, err := s.Refresh(t.Context(), c, "token"); fault.PublicMessage(err) != test.refresh {
			t.Errorf("%s: a refresh token: %v, want %q", name, err, test.refresh)
		}
	}
}

// TestConsent checks that a sign-in with offline_access requests consent, without which many providers
// give no refresh token, but not at Entra, where that shuts people out who may not consent (E2).
func TestConsent(t *testing.T) {
	p := oidcissuer.StartProvider(t)
	s, clk, c := openProviders(p)
	for _, test := range []struct{ issuer, scope, want string }{
		{p.URL, "email", ""},
		{p.URL, "offline_access", "consent"},
		{"https://login.microsoftonline.com/9f4c2d1e/v2.0", "offline_access", ""},
		{"https://login.microsoftonline.us/9f4c2d1e/v2.0", "offline_access", ""},
		{"https://login.partner.microsoftonline.cn/9f4c2d1e/v2.0", "offline_access", ""},
		{"https://acme.okta.com", "offline_access", "consent"},
		{"https://acme.example/login.microsoftonline.com", "offline_access", "consent"},
	} {
		c.Issuer, c.Scopes = test.issuer, []string{"openid", test.scope}
		s.kept[fmt.Sprintf("%s %v", c.Issuer, c.Networks)] = &provider{issuer: c.Issuer, keyCache: newKeyCache(clk, maxWait,
			rate.NewLimiter(1, 1), func(ctx context.Context) (*keySet, error) { return readKeys(ctx, http.DefaultClient, p.URL) })}
		address, err := s.Authorize(t.Context(), c, identity.Request{State: "s", Nonce: "n", Verifier: strings.Repeat("v", 43)})
		must.Succeed(t, err)
		if u, err := url.Parse(address); err != nil || u.Query().Get("prompt") != test.want {
			t.Errorf("at %s with %s the address is %s", test.issuer, test.scope, address)
		}
	}
}
