package authorizing_test

import (
	"context"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/authorizing"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestCode checks what a code is exchanged for.
func TestCode(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	signedIn := fx.clock.Now()
	fx.clock.Advance(time.Hour)
	got := fx.tokens("scope", "read")
	claims := fx.claims(got)
	if family, ok := oauth.FamilyOf(claims.ID); !ok || family != claims.Granted.Family {
		t.Errorf("the id %q does not name the family", claims.ID)
	}
	want := secrets.TokenClaims{
		ID: claims.ID, UserID: fx.session.UserID, SessionID: fx.session.ID, IssuedAt: fx.clock.Now(),
		ExpiresAt: fx.clock.Now().Add(10 * time.Minute), Granted: &oauth.Claims{
			Family: claims.Granted.Family, Client: "app", Resource: wiki, Scopes: []string{"read"}, Level: auth.LimitedTrust,
			AuthTime: signedIn,
		},
	}
	if !reflect.DeepEqual(claims, want) {
		t.Errorf("got %+v %+v, want %+v", claims, claims.Granted, want)
	}
	if len(got.Refresh) != 43 || got.ExpiresIn != 10*time.Minute || !reflect.DeepEqual(got.Scopes, []string{"read"}) {
		t.Errorf("got %+v", got)
	}
	if f := fx.family(got); !f.UsedAt.Equal(fx.clock.Now()) || f.SessionID != fx.session.ID || f.RedirectURI != callback {
		t.Errorf("the family is %+v", f)
	}
	if got := fx.events("AUTHORIZATION"); len(got) != 2 {
		t.Errorf("recorded: %q", got)
	}
}

// TestNoSecretIsRecorded checks that what is secret is neither stored nor recorded as it is.
func TestNoSecretIsRecorded(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	v := fx.visit()
	code := fx.agree(v)
	got, err := fx.token(codeForm(code))
	must.Succeed(t, err)
	events := fx.text()
	for _, one := range []string{code, string(got.Access), string(got.Refresh), verifier, secret, string(v.ID), string(v.Browser)} {
		if strings.Contains(events, one) {
			t.Errorf("%q is recorded: %s", one, events)
		}
	}
	for _, one := range []string{"com.example/wiki", "app.example", wiki, `"read","write"`, "LIMITED_TRUST", home.String()} {
		if !strings.Contains(events, one) {
			t.Errorf("%q is not recorded: %s", one, events)
		}
	}
}

// TestCodesOfOthers checks that a code is refused without its client, redirect URI, verifier and resource,
// and that a wrong request does not use it up.
func TestCodesOfOthers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		changes []string
		want    fault.Code
	}{
		"another client":     {[]string{"client_id", "other", "client_secret", ""}, oauth.CodeInvalidGrant},
		"an unproved client": {[]string{"client_secret", "x"}, oauth.CodeInvalidClient},
		"no verifier":        {[]string{"code_verifier", ""}, oauth.CodeInvalidGrant},
		"another verifier":   {[]string{"code_verifier", "x" + verifier[1:]}, oauth.CodeInvalidGrant},
		"the challenge":      {[]string{"code_verifier", query().Get("code_challenge")}, oauth.CodeInvalidGrant},
		"no redirect URI":    {[]string{"redirect_uri", ""}, oauth.CodeInvalidGrant},
		"a longer one":       {[]string{"redirect_uri", callback + "/"}, oauth.CodeInvalidGrant},
		"no resource":        {[]string{"resource", ""}, oauth.CodeInvalidTarget},
		"another resource":   {[]string{"resource", issuer}, oauth.CodeInvalidTarget},
		"no code":            {[]string{"code", ""}, oauth.CodeInvalidRequest},
		"a guess":            {[]string{"code", "guess"}, oauth.CodeInvalidGrant},
		"as a refresh token": {[]string{"grant_type", "refresh_token"}, oauth.CodeInvalidGrant},
		"a canonical twin":   {[]string{"resource", "https://WIKI.example:443/mcp/"}, ""},
		"a scope":            {[]string{"scope", "read"}, ""},
	} {
		fx := newFixture(t)
		code := fx.agree(fx.visit())
		form := codeForm(code, c.changes...)
		if name == "as a refresh token" {
			form.Set("refresh_token", code)
		}
		_, err := fx.token(form)
		if c.want == "" {
			must.Succeed(t, err)
			continue
		}
		fx.wantCode(name, err, c.want)
		if _, err := fx.token(codeForm(code)); err != nil {
			t.Errorf("%s: the code is used up: %v", name, err)
		}
		if got := fx.events("SUSPICIOUS_ACTIVITY"); len(got) > 0 {
			t.Errorf("%s: %q", name, got)
		}
	}
	fx := newFixture(t)
	form := codeForm(fx.agree(fx.visit()))
	form.Add("resource", wiki)
	_, err := fx.token(form)
	fx.wantCode("two resources", err, oauth.CodeInvalidTarget)
}

func TestCodesEnd(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	code := fx.agree(fx.visit())
	fx.clock.Advance(oauth.CodeTTL - time.Second)
	if _, err := fx.token(codeForm(code)); err != nil {
		t.Errorf("after 59 s: %v", err)
	}
	code = fx.agree(fx.visit("prompt", "consent"))
	fx.clock.Advance(oauth.CodeTTL)
	_, err := fx.token(codeForm(code))
	fx.wantCode("after 60 s", err, oauth.CodeInvalidGrant)
}

// TestCodesAreGoodOnce checks that a second use ends the tokens of the first, also after the end of the code,
// and that without the verifier it is no use.
func TestCodesAreGoodOnce(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	code := fx.agree(fx.visit())
	got, err := fx.token(codeForm(code))
	must.Succeed(t, err)
	_, err = fx.token(codeForm(code, "code_verifier", ""))
	fx.wantCode("without the verifier", err, oauth.CodeInvalidGrant)
	if f := fx.family(got); !f.EndedAt.IsZero() {
		t.Fatalf("a code without its verifier ends the tokens: %+v", f)
	}
	fx.clock.Advance(time.Hour)
	for range 2 {
		_, err = fx.token(codeForm(code))
		fx.wantCode("again", err, oauth.CodeInvalidGrant)
	}
	_, err = fx.token(refreshForm(got.Refresh))
	fx.wantCode("the refresh token", err, oauth.CodeInvalidGrant)
	if f := fx.family(got); f.EndReason != oauth.EndReplay {
		t.Errorf("the family is %+v", f)
	}
	if got := fx.events("SUSPICIOUS_ACTIVITY"); !reflect.DeepEqual(got, []string{"oauth_code_replay"}) {
		t.Errorf("recorded: %q", got)
	}
	if s, err := fx.ports.Sessions.Get(context.Background(), fx.session.ID); err != nil || !s.EndedAt.IsZero() {
		t.Errorf("the session of the person ends: %+v, %v", s, err)
	}
}

// TestAtOnce checks that of two uses of one secret at once one succeeds at most, and the family ends.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	for range 20 {
		fx := newFixture(t)
		first := fx.tokens()
		for name, form := range map[string]func() (authorizing.Tokens, error){
			"code": func() func() (authorizing.Tokens, error) {
				code := fx.agree(fx.visit("prompt", "consent"))
				return func() (authorizing.Tokens, error) { return fx.token(codeForm(code)) }
			}(),
			"refresh token": func() (authorizing.Tokens, error) { return fx.token(refreshForm(first.Refresh)) },
		} {
			var wg sync.WaitGroup
			results := make([]error, 4)
			got := make([]authorizing.Tokens, 4)
			for i := range results {
				wg.Go(func() { got[i], results[i] = form() })
			}
			wg.Wait()
			good := 0
			for i, err := range results {
				if err != nil {
					fx.wantCode(name, err, oauth.CodeInvalidGrant)
					continue
				}
				good++
				if fx.family(got[i]).EndedAt.IsZero() {
					t.Errorf("%s: the family goes on", name)
				}
			}
			if good != 1 {
				t.Errorf("%s: %d succeed", name, good)
			}
		}
	}
}

// TestChangesBetweenCodeAndToken checks that all is decided again when a code is exchanged.
func TestChangesBetweenCodeAndToken(t *testing.T) {
	t.Parallel()
	for name, c := range changesThatEnd() {
		fx := newFixture(t)
		code := fx.agree(fx.visit())
		fx.clock.Advance(time.Second)
		c.change(fx)
		_, err := fx.token(codeForm(code))
		fx.wantCode(name, err, c.code)
		if c.code != oauth.CodeInvalidClient {
			if got := fx.events("AUTHORIZATION"); len(got) != 2 || got[1] != "refuse "+c.why {
				t.Errorf("%s: %q", name, got)
			}
		}
		for token := range fx.signer.signed {
			t.Errorf("%s: there is a token: %s", name, string(token))
		}
	}
}

// change is what happens between two requests of a client, and the code and reason of the second one.
type change struct {
	change func(*fixture)
	code   fault.Code
	why    string
}

// changesThatEnd returns what ends a grant, without a sign that the client can see (contract T-17, T-20).
func changesThatEnd() map[string]change {
	session := func(c func(*auth.Session)) func(*fixture) { return func(fx *fixture) { fx.changeSession(c) } }
	account := func(state auth.AccountState) func(*fixture) {
		return func(fx *fixture) {
			must.Succeed(fx.t, fx.ports.Accounts.Update(context.Background(), fx.session.UserID, func(a *auth.Account) error {
				a.State = state
				return nil
			}))
		}
	}
	resource := func(change func(*oauth.Resource)) func(*fixture) {
		return func(fx *fixture) {
			r := fx.resources["wiki"]
			change(&r)
			fx.resources["wiki"] = r
		}
	}
	const grant = oauth.CodeInvalidGrant
	return map[string]change{
		"quarantine": {
			func(fx *fixture) { fx.gate.servers[0].Quarantined = true }, grant, "the server com.example/wiki is in quarantine",
		},
		"deletion":   {func(fx *fixture) { fx.gate.servers[0].Listed = false }, grant, "no listed version of its servers has the URL"},
		"removal":    {func(fx *fixture) { delete(fx.resources, "wiki") }, grant, "there is no such resource"},
		"a rule":     {func(fx *fixture) { delete(fx.gate.allowed, "com.example/wiki") }, grant, "no access rule allows a call"},
		"the client": {func(fx *fixture) { delete(fx.clients, "app") }, oauth.CodeInvalidClient, ""},
		"more trust": {
			func(fx *fixture) { fx.gate.allowed["com.example/wiki"] = auth.FullTrust }, grant,
			"this needs FULL_TRUST, and there is LIMITED_TRUST",
		},
		"more trust of the resource": {
			resource(func(r *oauth.Resource) { r.MinTrust = auth.FullTrust }), grant,
			"this needs FULL_TRUST, and there is LIMITED_TRUST",
		},
		"a risk": {
			session(func(s *auth.Session) { s.TrustLevel = auth.HighRisk }), grant,
			"this needs LIMITED_TRUST, and there is HIGH_RISK",
		},
		"a sign-out": {session(func(s *auth.Session) { s.EndedAt = s.CreatedAt }), grant, "the session has ended"},
		"an end":     {session(func(s *auth.Session) { s.ExpiresAt = s.CreatedAt }), grant, "the session has ended"},
		"a lock":     {account(auth.AccountLocked), grant, "the person may not sign in"},
		"a leaver":   {account(auth.AccountDisabled), grant, "the person may not sign in"},
		"no scope of the grant": {
			resource(func(r *oauth.Resource) { r.Scopes = []string{"other"} }), grant,
			"the resource has no scope of the grant any more",
		},
	}
}

// TestClientsThatMayNot checks the code for a client that may not have the resource any more.
func TestClientsThatMayNot(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	code := fx.agree(fx.visit())
	changeApp(func(c *oauth.Client) { c.Resources = []oauth.ResourceName{"mail"} })(fx)
	_, err := fx.token(codeForm(code))
	fx.wantCode("a code", err, oauth.CodeInvalidTarget)
	changeApp(func(c *oauth.Client) { c.Resources = nil })(fx)
	got, err := fx.token(codeForm(code))
	must.Succeed(t, err)
	changeApp(func(c *oauth.Client) { c.Resources = []oauth.ResourceName{"mail"} })(fx)
	_, err = fx.token(refreshForm(got.Refresh))
	fx.wantCode("a refresh token", err, oauth.CodeInvalidGrant)
}

// TestRisk checks that a session at risk gets no token, not even one of a resource that is content with it.
func TestRisk(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	code := fx.agree(fx.visit())
	r := fx.resources["wiki"]
	r.MinTrust = auth.HighRisk
	fx.resources["wiki"] = r
	fx.changeSession(func(s *auth.Session) { s.TrustLevel = auth.HighRisk })
	_, err := fx.token(codeForm(code))
	fx.wantCode("at risk", err, oauth.CodeInvalidGrant)
}

// TestDocumentsThatChangeKeys checks that a client proves itself with the keys that it has now.
func TestDocumentsThatChangeKeys(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	editor := fx.documents.clients[document]
	editor.Method, editor.JWKS = oauth.MethodPrivateKey, "key"
	fx.documents.clients[document] = editor
	code := fx.agree(fx.visit("client_id", document, "redirect_uri", "http://localhost:5000/cb"))
	form := func(jti string) []string {
		return []string{
			"client_id", "", "client_secret", "", "redirect_uri", "http://localhost:5000/cb", "client_assertion",
			fx.clientAssertion(document, "jti", jti), "client_assertion_type", assertionType,
		}
	}
	editor.JWKS = "another"
	fx.documents.clients[document] = editor
	_, err := fx.token(codeForm(code, form("1")...))
	fx.wantCode("the old key", err, oauth.CodeInvalidClient)
	editor.JWKS = "key"
	fx.documents.clients[document] = editor
	_, err = fx.token(codeForm(code, form("2")...))
	must.Succeed(t, err)
}

// TestTokensEndWithTheSession checks that no token outlives the session.
func TestTokensEndWithTheSession(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	code := fx.agree(fx.visit())
	fx.changeSession(func(s *auth.Session) { s.ExpiresAt = fx.clock.Now().Add(time.Minute) })
	got, err := fx.token(codeForm(code))
	must.Succeed(t, err)
	if got.ExpiresIn != time.Minute || !fx.claims(got).ExpiresAt.Equal(fx.clock.Now().Add(time.Minute)) {
		t.Errorf("it expires in %v", got.ExpiresIn)
	}
	fx = newFixture(t, func(fx *fixture) {
		r := fx.resources["wiki"]
		r.Refresh = false
		fx.resources["wiki"] = r
	})
	if got := fx.tokens(); got.Refresh != "" {
		t.Errorf("a refresh token of a resource without any")
	}
}
