package authorizing_test

import (
	"context"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/test/must"
)

const idp = "https://idp.example"

// withProvider adds a provider whose assertions count, with Anna's identity, and lets rules and the resource
// be content with UNVERIFIED.
func withProvider(changes ...func(*fixture)) []func(*fixture) {
	return append(changes, func(fx *fixture) {
		must.Succeed(fx.t, fx.ports.Providers.Save(context.Background(), company.Provider{
			Name: "corp", Issuer: idp, ClientID: "idp-key", IDJAG: true, GroupsClaim: "groups", EmailClaim: "email",
			AMR: []string{"mfa"}, MaxSession: time.Hour,
		}))
		must.Succeed(fx.t, fx.ports.Providers.Save(context.Background(), company.Provider{
			Name: "plain", Issuer: "https://plain.example", ClientID: "idp-key", GroupsClaim: "groups", EmailClaim: "email",
		}))
		if r, ok := fx.resources["wiki"]; ok {
			r.MinTrust = auth.Unverified
			fx.resources["wiki"] = r
		}
	})
}

func (fx *fixture) link() {
	fx.t.Helper()
	must.Succeed(fx.t, fx.ports.Identities.Add(context.Background(), company.Identity{
		ID: "cccccccc-2222-4333-8444-555555555555", UserID: fx.session.UserID, Issuer: idp, Subject: "anna",
		LinkedAt: fx.clock.Now(), ConfirmedAt: fx.clock.Now(),
	}))
}

// assertion returns an ID-JAG for app.
func (fx *fixture) assertion(changes ...any) string {
	now := fx.clock.Now()
	claims := map[string]any{
		"iss": idp, "sub": "anna", "aud": issuer, "client_id": "app", "jti": "j", "resource": wiki,
		"iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(),
	}
	for i := 0; i < len(changes); i += 2 {
		if claims[changes[i].(string)] = changes[i+1]; changes[i+1] == nil {
			delete(claims, changes[i].(string))
		}
	}
	return sign(claims, "idp-key")
}

func assertionForm(token string, changes ...string) url.Values {
	return with(url.Values{
		"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "assertion": {token}, "client_id": {"app"},
		"client_secret": {secret},
	}, changes...)
}

// TestAssertion checks what an assertion is exchanged for.
func TestAssertion(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, withProvider()...)
	fx.link()
	signedIn := fx.clock.Now().Add(-time.Minute).Truncate(time.Second)
	got, err := fx.token(assertionForm(fx.assertion("auth_time", signedIn.Unix(), "amr", []string{"mfa"},
		"groups", []string{"dev"}, "scope", "write read other")))
	must.Succeed(t, err)
	c := fx.claims(got)
	want := &oauth.Claims{
		Family: c.Granted.Family, Client: "app", Resource: wiki, Scopes: []string{"read", "write"}, Level: auth.LimitedTrust,
		AuthTime: signedIn,
	}
	if !reflect.DeepEqual(c.Granted, want) || c.UserID != fx.session.UserID || c.SessionID != "" || got.Refresh != "" {
		t.Errorf("got %+v %+v", c, c.Granted)
	}
	if f := fx.family(got); f.Provider != "corp" || f.Subject != "anna" || !reflect.DeepEqual(f.Groups, []string{"corp/dev"}) {
		t.Errorf("the family is %+v", f)
	}
	if !reflect.DeepEqual(fx.gate.question.Groups, []string{"corp/dev"}) || fx.gate.question.From != home {
		t.Errorf("the rules are about %+v", fx.gate.question)
	}
	if got := fx.events("AUTHORIZATION"); !reflect.DeepEqual(got, []string{"assertion"}) {
		t.Errorf("recorded: %q", got)
	}
	got, err = fx.token(assertionForm(fx.assertion("jti", "2"), "scope", "read"))
	must.Succeed(t, err)
	if c := fx.claims(got).Granted; c.Level != auth.Unverified || !c.AuthTime.IsZero() || !reflect.DeepEqual(got.Scopes, []string{"read"}) {
		t.Errorf("without a second factor: %+v", c)
	}
	if fx.gate.question.Groups != nil {
		t.Errorf("without groups, those of the person count: %q", fx.gate.question.Groups)
	}
	got, err = fx.token(assertionForm(fx.assertion("jti", "3", "resource", nil, "groups", []string{}), "resource", wiki))
	must.Succeed(t, err)
	if fx.gate.question.Groups == nil || fx.claims(got).Granted.Resource != wiki {
		t.Errorf("without any group: %+v", fx.gate.question)
	}
}

// TestAssertionsOfOthers checks that an assertion of another provider, audience, client or time is refused, and
// that the refusal does not use it up.
func TestAssertionsOfOthers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		claims  []any
		changes []string
		want    fault.Code
	}{
		"another issuer":         {[]any{"iss", "https://evil.example"}, nil, oauth.CodeInvalidGrant},
		"a provider without":     {[]any{"iss", "https://plain.example"}, nil, oauth.CodeInvalidGrant},
		"another audience":       {[]any{"aud", "https://other.example"}, nil, oauth.CodeInvalidGrant},
		"two audiences":          {[]any{"aud", []string{issuer, "https://other.example"}}, nil, oauth.CodeInvalidGrant},
		"another client":         {[]any{"client_id", "other"}, nil, oauth.CodeInvalidGrant},
		"sent by another":        {nil, []string{"client_id", "basic", "client_secret", secret}, oauth.CodeInvalidGrant},
		"a client without a key": {[]any{"client_id", "other"}, []string{"client_id", "other", "client_secret", ""}, oauth.CodeUnauthorizedClient},
		"old":                    {[]any{"iat", 1, "exp", 2}, nil, oauth.CodeInvalidGrant},
		"too long":               {[]any{"exp", 4102444800}, nil, oauth.CodeInvalidGrant},
		"no jti":                 {[]any{"jti", nil}, nil, oauth.CodeInvalidGrant},
		"another person":         {[]any{"sub", "carol", "email", "anna@example.com"}, nil, oauth.CodeInvalidGrant},
		"no assertion":           {nil, []string{"assertion", ""}, oauth.CodeInvalidRequest},
		"no JWT":                 {nil, []string{"assertion", "x"}, oauth.CodeInvalidGrant},
		"another resource":       {nil, []string{"resource", issuer}, oauth.CodeInvalidTarget},
		"no resource":            {[]any{"resource", nil}, nil, oauth.CodeInvalidTarget},
		"an unknown resource":    {[]any{"resource", "https://evil.example/mcp"}, nil, oauth.CodeInvalidGrant},
		"no scope of it":         {[]any{"scope", "other"}, nil, oauth.CodeInvalidScope},
		"no scope at all":        {[]any{"scope", ""}, []string{"scope", "read"}, oauth.CodeInvalidScope},
		"a scope that is not":    {nil, []string{"scope", "admin"}, oauth.CodeInvalidScope},
	} {
		fx := newFixture(t, withProvider(func(fx *fixture) {
			fx.clients["basic"] = oauth.Client{ID: "basic", Method: oauth.MethodSecretInForm, SecretHash: fx.clients["app"].SecretHash}
		})...)
		fx.link()
		_, err := fx.token(assertionForm(fx.assertion(c.claims...), c.changes...))
		fx.wantCode(name, err, c.want)
		if _, err := fx.token(assertionForm(fx.assertion())); err != nil {
			t.Errorf("%s: it is used up: %v", name, err)
		}
	}
	fx := newFixture(t, withProvider()...)
	fx.link()
	_, err := fx.token(assertionForm(fx.assertion() + "x"))
	fx.wantCode("another key", err, oauth.CodeInvalidGrant)
	fx = newFixture(t)
	_, err = fx.token(assertionForm(fx.assertion()))
	fx.wantCode("no provider", err, oauth.CodeUnsupportedGrantType)
}

// TestAssertionsAreGoodOnce checks that an assertion is used once until its end, unless it is set otherwise.
func TestAssertionsAreGoodOnce(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, withProvider()...)
	fx.link()
	token := fx.assertion()
	_, err := fx.token(assertionForm(token))
	must.Succeed(t, err)
	_, err = fx.token(assertionForm(token))
	fx.wantCode("again", err, oauth.CodeInvalidGrant)
	fx.clock.Advance(5*time.Minute + 30*time.Second) // within the skew
	_, err = fx.token(assertionForm(token))
	fx.wantCode("at the end", err, oauth.CodeInvalidGrant)

	fx = newFixture(t, withProvider(func(fx *fixture) { fx.config.ReuseByClient = true })...)
	fx.link()
	for range 2 {
		_, err = fx.token(assertionForm(fx.assertion()))
		must.Succeed(t, err)
	}
}

// TestAssertionsAreDecidedAbout checks that the rules and levels hold for an assertion, and that the refusal
// is recorded for its person.
func TestAssertionsAreDecidedAbout(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*fixture)
		want   fault.Code
		why    string
	}{
		"no rule":    {func(fx *fixture) { delete(fx.gate.allowed, "com.example/wiki") }, oauth.CodeInvalidGrant, "no access rule allows a call"},
		"quarantine": {func(fx *fixture) { fx.gate.servers[0].Quarantined = true }, oauth.CodeInvalidGrant, "the server com.example/wiki is in quarantine"},
		"more trust": {
			func(fx *fixture) { fx.gate.allowed["com.example/wiki"] = auth.LimitedTrust }, oauth.CodeInvalidGrant,
			"this needs LIMITED_TRUST, and there is UNVERIFIED",
		},
		"not for the client": {
			changeApp(func(c *oauth.Client) { c.Resources = []oauth.ResourceName{"mail"} }), oauth.CodeInvalidTarget,
			"the client may not have this resource",
		},
		"a person who has left": {func(fx *fixture) {
			must.Succeed(fx.t, fx.ports.Identities.Confirm(context.Background(), "cccccccc-2222-4333-8444-555555555555", time.Time{}, nil))
		}, oauth.CodeInvalidGrant, "the person has left the company"},
	} {
		fx := newFixture(t, withProvider()...)
		fx.link()
		c.change(fx)
		_, err := fx.token(assertionForm(fx.assertion()))
		fx.wantCode(name, err, c.want)
		if got := fx.events("AUTHORIZATION"); !reflect.DeepEqual(got, []string{"refuse " + c.why}) {
			t.Errorf("%s: %q", name, got)
		}
		if got := fx.text(); !strings.Contains(got, string(fx.session.UserID)) || !strings.Contains(got, `"provider":"corp"`) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestRefusedAssertionsAdmitNobody checks that no account is made for a resource that the client may not have.
func TestRefusedAssertionsAdmitNobody(t *testing.T) {
	t.Parallel()
	admitted := 0
	fx := newFixture(t, append(withProvider(), func(fx *fixture) {
		fx.gate.servers[0].Quarantined = true
		fx.ports.Admit = func(ctx context.Context, p *company.Provider, c *company.Claims) (auth.UserID, error) {
			admitted++
			return fx.admit(ctx, p, c)
		}
	})...)
	_, err := fx.token(assertionForm(fx.assertion()))
	fx.wantCode("quarantine", err, oauth.CodeInvalidGrant)
	if admitted > 0 {
		t.Error("an account is made")
	}
}

// TestWhatEndsAssertions checks that a token of an assertion is not good after its person has left.
func TestWhatEndsAssertions(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*fixture){
		"a leaver": func(fx *fixture) {
			must.Succeed(fx.t, fx.ports.Identities.Confirm(context.Background(), "cccccccc-2222-4333-8444-555555555555", time.Time{}, nil))
		},
		"an identity that is unlinked": func(fx *fixture) {
			must.Succeed(fx.t, fx.ports.Identities.Remove(context.Background(), fx.session.UserID, "cccccccc-2222-4333-8444-555555555555"))
		},
		"a provider that makes none": func(fx *fixture) {
			must.Succeed(fx.t, fx.ports.Providers.Save(context.Background(), company.Provider{Name: "corp", Issuer: idp}))
		},
		"a provider that is another": func(fx *fixture) {
			must.Succeed(fx.t, fx.ports.Providers.Save(context.Background(), company.Provider{
				Name: "corp", Issuer: "https://other.example", IDJAG: true,
			}))
		},
	} {
		fx := newFixture(t, withProvider()...)
		fx.link()
		got, err := fx.token(assertionForm(fx.assertion()))
		must.Succeed(t, err)
		wantActive := func(want bool) {
			t.Helper()
			found, err := fx.service.Introspect(context.Background(), service("wiki", "decide"), string(got.Access))
			if err != nil || found.Active != want {
				t.Errorf("%s: %+v, %v", name, found, err)
			}
		}
		wantActive(true)
		change(fx)
		wantActive(false)
	}
}
