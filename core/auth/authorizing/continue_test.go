package authorizing_test

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/authorizing"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authorization"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestRequestsOfOthers checks that a request is of one browser, for a while, and answered once.
func TestRequestsOfOthers(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	ctx := context.Background()
	v := fx.visit()
	wantGone := func(what string, v authorizing.Visit) {
		t.Helper()
		if _, err := fx.service.Continue(ctx, v); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s goes on: %v", what, err)
		}
		for _, agreed := range []bool{true, false} {
			if _, err := fx.service.Decide(ctx, v, agreed); !fault.Is(err, fault.NotFound) {
				t.Errorf("%s decides: %v", what, err)
			}
		}
	}
	other, another := v, v
	other.Browser, another.Browser = fx.visit().Browser, ""
	wantGone("another browser", other)
	wantGone("no browser", another)
	another.ID = "guess"
	wantGone("a guess", another)
	fx.agree(v)
	wantGone("a request that is answered", v)
	v = fx.visit()
	fx.clock.Advance(oauth.RequestTTL)
	wantGone("an old request", v)
}

// TestSteps checks what a person does next, and what the client learns of a request without a person.
func TestSteps(t *testing.T) {
	t.Parallel()
	strict := func(fx *fixture) { fx.gate.allowed["com.example/wiki"] = auth.FullTrust }
	trusted := func(fx *fixture) { fx.changeSession(func(s *auth.Session) { s.TrustLevel = auth.FullTrust }) }
	for name, c := range map[string]struct {
		changes []string
		before  func(*fixture) // before the request
		after   func(*fixture)
		want    authorizing.Step
		level   auth.TrustLevel
		silent  fault.Code // with prompt=none
	}{
		"a question": {want: authorizing.Ask, silent: oauth.CodeConsentRequired},
		"no session": {
			after: func(fx *fixture) { fx.session = auth.Session{} }, want: authorizing.SignIn, silent: oauth.CodeLoginRequired,
		},
		"a session that has ended": {
			after: func(fx *fixture) { fx.changeSession(func(s *auth.Session) { s.EndedAt = fx.clock.Now() }) },
			want:  authorizing.SignIn, silent: oauth.CodeLoginRequired,
		},
		"a session of another person": {
			after: func(fx *fixture) { fx.session.UserID = bob }, want: authorizing.SignIn, silent: oauth.CodeLoginRequired,
		},
		"too little for the resource": {
			after: func(fx *fixture) { fx.changeSession(func(s *auth.Session) { s.TrustLevel = auth.Unverified }) },
			want:  authorizing.StepUp, level: auth.LimitedTrust, silent: oauth.CodeUnmetAuthentication,
		},
		"a risk": {
			after: func(fx *fixture) { fx.changeSession(func(s *auth.Session) { s.TrustLevel = auth.HighRisk }) },
			want:  authorizing.StepUp, level: auth.LimitedTrust, silent: oauth.CodeUnmetAuthentication,
		},
		"a risk at this registry": {
			changes: []string{"resource", issuer}, want: authorizing.StepUp, level: auth.Unverified,
			after:  func(fx *fixture) { fx.changeSession(func(s *auth.Session) { s.TrustLevel = auth.HighRisk }) },
			silent: oauth.CodeUnmetAuthentication,
		},
		"too little for a rule": {
			after: strict, want: authorizing.StepUp, level: auth.FullTrust, silent: oauth.CodeUnmetAuthentication,
		},
		"enough for a rule": {before: trusted, after: strict, want: authorizing.Ask, silent: oauth.CodeConsentRequired},
		"too little for the client": {
			changes: []string{"acr_values", "FULL_TRUST"}, want: authorizing.StepUp, level: auth.FullTrust,
			silent: oauth.CodeUnmetAuthentication,
		},
		"enough for the client": {
			changes: []string{"acr_values", "FULL_TRUST UNVERIFIED"}, want: authorizing.Ask, silent: oauth.CodeConsentRequired,
		},
		"too old": {
			changes: []string{"max_age", "60"}, before: func(fx *fixture) { fx.clock.Advance(time.Hour) },
			want: authorizing.StepUp, level: auth.LimitedTrust, silent: oauth.CodeUnmetAuthentication,
		},
		"young enough": {
			changes: []string{"max_age", "60"}, before: func(fx *fixture) { fx.clock.Advance(time.Minute) },
			want: authorizing.Ask, silent: oauth.CodeConsentRequired,
		},
		"too old for 0": {
			changes: []string{"max_age", "0"}, before: func(fx *fixture) { fx.clock.Advance(time.Second) },
			want: authorizing.StepUp, level: auth.LimitedTrust, silent: oauth.CodeUnmetAuthentication,
		},
		"anew for 0": {
			changes: []string{"max_age", "0"}, before: func(fx *fixture) { fx.clock.Advance(time.Hour) },
			after: func(fx *fixture) {
				fx.changeSession(func(s *auth.Session) { s.ReauthenticatedAt = fx.clock.Now() })
				fx.clock.Advance(time.Minute)
			},
			want: authorizing.Ask, silent: oauth.CodeConsentRequired,
		},
		"of a clock that was ahead": {
			changes: []string{"max_age", "60"}, want: authorizing.StepUp, level: auth.LimitedTrust,
			after: func(fx *fixture) {
				fx.changeSession(func(s *auth.Session) { s.ReauthenticatedAt = fx.clock.Now().Add(time.Hour) })
			},
			silent: oauth.CodeUnmetAuthentication,
		},
	} {
		for _, silent := range []bool{false, true} {
			fx := newFixture(t)
			if c.before != nil {
				c.before(fx)
			}
			changes := c.changes
			if silent {
				changes = append([]string{"prompt", "none"}, changes...)
			}
			v := fx.visit(changes...)
			if c.after != nil {
				c.after(fx)
			}
			v.Session = fx.session
			next := fx.next(v)
			switch {
			case silent:
				if got := answerOf(t, next.URL).Get("error"); next.Step != authorizing.Leave || got != string(c.silent) {
					t.Errorf("%s: %q, want %s", name, got, c.silent)
				}
			case next.Step != c.want || next.Level != c.level || (next.Consent != nil) != (c.want == authorizing.Ask):
				t.Errorf("%s: %+v", name, next)
			default:
				end, code := func(ctx context.Context, v authorizing.Visit) (authorizing.Next, error) {
					return fx.service.Decide(ctx, v, false)
				}, oauth.CodeAccessDenied
				if c.want == authorizing.StepUp {
					end, code = fx.service.GiveUp, oauth.CodeUnmetAuthentication
				}
				next, err := end(context.Background(), v)
				must.Succeed(t, err)
				if got := answerOf(t, next.URL); got.Get("error") != string(code) || got.Get("state") != "s" {
					t.Errorf("%s: the way back is %s", name, next.URL)
				}
			}
		}
	}
}

// TestSignInAgain checks that prompt=login needs a sign-in after the request.
func TestSignInAgain(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	fx.clock.Advance(time.Second)
	v := fx.visit("prompt", "login", "login_hint", "anna@example.com")
	if next := fx.next(v); next.Step != authorizing.SignIn || next.LoginHint != "anna@example.com" || next.Client != "App" {
		t.Errorf("before: %+v", next)
	}
	fx.clock.Advance(time.Second)
	v.Session = fx.signIn(fx.session.UserID, auth.LimitedTrust)
	if next := fx.next(v); next.Step != authorizing.Ask {
		t.Errorf("after: %+v", next)
	}
}

// TestNoRuleAllows checks that somebody who may call no server gets no code, also if that is so only after
// the question, and that it is recorded once.
func TestNoRuleAllows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*fixture)
		want   fault.Code
	}{
		"no rule":       {func(fx *fixture) { delete(fx.gate.allowed, "com.example/wiki") }, oauth.CodeAccessDenied},
		"in quarantine": {func(fx *fixture) { fx.gate.servers[0].Quarantined = true }, oauth.CodeInvalidTarget},
		"locked": {func(fx *fixture) {
			must.Succeed(fx.t, fx.ports.Accounts.Update(context.Background(), fx.session.UserID, func(a *auth.Account) error {
				a.State = auth.AccountLocked
				return nil
			}))
		}, oauth.CodeAccessDenied},
		"no scope any more": {func(fx *fixture) {
			r := fx.resources["wiki"]
			r.Scopes = []string{"other"}
			fx.resources["wiki"] = r
		}, oauth.CodeInvalidScope},
	} {
		for _, agreed := range []bool{false, true} {
			fx := newFixture(t)
			v := fx.visit()
			c.change(fx)
			decide := fx.service.Continue
			if agreed {
				decide = func(ctx context.Context, v authorizing.Visit) (authorizing.Next, error) {
					return fx.service.Decide(ctx, v, true)
				}
			}
			next, err := decide(context.Background(), v)
			must.Succeed(t, err)
			if answer := answerOf(t, next.URL); answer.Get("error") != string(c.want) || answer.Has("code") {
				t.Errorf("%s: %s", name, next.URL)
			}
			if _, err := fx.service.Continue(context.Background(), v); !fault.Is(err, fault.NotFound) {
				t.Errorf("%s: the request goes on: %v", name, err)
			}
			if got := fx.events("AUTHORIZATION"); len(got) != 1 || !strings.HasPrefix(got[0], "refuse ") {
				t.Errorf("%s: %q", name, got)
			}
		}
	}
}

// TestTheQuestionOfTheRules checks that the access rules are about the person, the client and the address.
func TestTheQuestionOfTheRules(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	fx.next(fx.visit())
	want := authorization.Question{UserID: fx.session.UserID, Client: "app", Server: named(t, "com.example/wiki"), From: home}
	if !reflect.DeepEqual(fx.gate.question, want) {
		t.Errorf("got %+v, want %+v", fx.gate.question, want)
	}
}

func TestConsent(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	next := fx.next(fx.visit("scope", "read"))
	want := &authorizing.Consent{
		Client: "App", Host: "app.example", Resource: wiki, Scopes: []string{"read"},
		Servers: []oauth.Server{{Name: named(t, "com.example/wiki"), Listed: true}},
	}
	if !reflect.DeepEqual(next.Consent, want) {
		t.Errorf("the question: %+v", next.Consent)
	}
	next = fx.next(fx.visit("client_id", document, "redirect_uri", "http://localhost:5000/cb", "resource", issuer))
	want = &authorizing.Consent{
		Client: "Editor", ClientHost: "editor.example", Host: "localhost", Local: true, Resource: issuer, Registry: true,
		Scopes: []string{oauth.ScopeRead, oauth.ScopeWrite},
	}
	if !reflect.DeepEqual(next.Consent, want) {
		t.Errorf("the question of a document: %+v", next.Consent)
	}
}

// TestConsentIsRemembered checks what a consent covers, and what ends it.
func TestConsentIsRemembered(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		changes []string
		change  func(*fixture)
		want    authorizing.Step
	}{
		"the same":       {nil, nil, authorizing.Leave},
		"fewer scopes":   {[]string{"scope", "read"}, nil, authorizing.Leave},
		"another scope":  {[]string{"scope", "read extra"}, nil, authorizing.Ask},
		"another one":    {[]string{"resource", issuer, "scope", ""}, nil, authorizing.Ask},
		"on demand":      {[]string{"prompt", "consent"}, nil, authorizing.Ask},
		"after 90 days":  {nil, func(fx *fixture) { fx.clock.Advance(oauth.ConsentTTL) }, authorizing.Ask},
		"another person": {nil, func(fx *fixture) { fx.session = fx.signIn(bob, auth.LimitedTrust) }, authorizing.Ask},
		"another client": {[]string{"client_id", "other"}, nil, authorizing.Ask},
		"another name":   {nil, changeApp(func(c *oauth.Client) { c.Name = "New" }), authorizing.Leave},
		"a redirect URI": {nil, changeApp(func(c *oauth.Client) { c.RedirectURIs = append(c.RedirectURIs, "https://b.example") }), authorizing.Ask},
		"other keys":     {nil, changeApp(func(c *oauth.Client) { c.JWKS = "{}" }), authorizing.Ask},
		"it was withdrawn": {nil, func(fx *fixture) {
			got, err := fx.token(codeForm(fx.agree(fx.visit("prompt", "consent"))))
			must.Succeed(fx.t, err)
			must.Succeed(fx.t, fx.service.Remove(context.Background(), fx.session, fx.claims(got).Granted.Family))
		}, authorizing.Ask},
	} {
		fx := newFixture(t, func(fx *fixture) {
			r := fx.resources["wiki"]
			r.Scopes = []string{"read", "write", "extra"}
			fx.resources["wiki"] = r
		})
		fx.agree(fx.visit("scope", "read write"))
		if c.change != nil {
			c.change(fx)
		}
		if name == "after 90 days" {
			fx.session = fx.signIn(fx.session.UserID, auth.LimitedTrust)
		}
		next := fx.next(fx.visit(append([]string{"scope", "read write"}, c.changes...)...))
		if next.Step != c.want || c.want == authorizing.Leave && answerOf(t, next.URL).Get("code") == "" {
			t.Errorf("%s: %+v", name, next)
		}
	}
	fx := newFixture(t, func(fx *fixture) { fx.config.AlwaysAsk = true })
	fx.agree(fx.visit())
	if next := fx.next(fx.visit()); next.Step != authorizing.Ask {
		t.Errorf("set so: %+v", next)
	}
	// A consent is what a person has agreed to, not what a client may skip.
	skipping := newFixture(t, changeApp(func(c *oauth.Client) { c.SkipConsent = true }))
	skipping.next(skipping.visit())
	changeApp(func(c *oauth.Client) { c.SkipConsent = false })(skipping)
	if next := skipping.next(skipping.visit()); next.Step != authorizing.Ask {
		t.Errorf("skipped before: %+v", next)
	}
}

func changeApp(change func(*oauth.Client)) func(*fixture) {
	return func(fx *fixture) {
		app := fx.clients["app"]
		change(&app)
		fx.clients["app"] = app
	}
}

// TestConsentIsSkipped checks that only a registered client is not asked about.
func TestConsentIsSkipped(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, changeApp(func(c *oauth.Client) { c.SkipConsent = true }), func(fx *fixture) {
		editor := fx.documents.clients[document]
		editor.SkipConsent = true
		fx.documents.clients[document] = editor
	})
	if next := fx.next(fx.visit()); next.Step != authorizing.Leave || answerOf(t, next.URL).Get("code") == "" {
		t.Errorf("registered: %+v", next)
	}
	if next := fx.next(fx.visit("prompt", "consent")); next.Step != authorizing.Ask {
		t.Errorf("on demand: %+v", next)
	}
	if next := fx.next(fx.visit("client_id", document, "redirect_uri", "http://localhost:5000/cb")); next.Step != authorizing.Ask {
		t.Errorf("by document: %+v", next)
	}
}

// TestConsentIsForItsServers checks that other servers at the resource are another question, and that those that are
// not listed are no part of it.
func TestConsentIsForItsServers(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, func(fx *fixture) {
		r := fx.resources["wiki"]
		r.Servers = append(r.Servers, named(fx.t, "com.example/other"))
		fx.resources["wiki"] = r
		fx.gate.servers = append(fx.gate.servers, oauth.Server{Name: named(fx.t, "com.example/other")})
		fx.gate.urls["com.example/other"] = wiki
	})
	next := fx.next(fx.visit())
	if next.Step != authorizing.Ask || len(next.Consent.Servers) != 1 {
		t.Fatalf("the question is %+v", next.Consent)
	}
	fx.agree(fx.visit())
	if next := fx.next(fx.visit()); next.Step != authorizing.Leave {
		t.Errorf("the same servers: %+v", next)
	}
	fx.gate.servers[1].Listed = true
	if next := fx.next(fx.visit()); next.Step != authorizing.Ask || len(next.Consent.Servers) != 2 {
		t.Errorf("another server: %+v", next)
	}
}

// TestDenied checks that who does not agree gives nothing, even if a consent is remembered meanwhile.
func TestDenied(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	v := fx.visit()
	fx.agree(fx.visit())
	fx.clock.Advance(time.Second)
	next, err := fx.service.Decide(context.Background(), v, false)
	must.Succeed(t, err)
	if answer := answerOf(t, next.URL); answer.Get("error") != "access_denied" || answer.Has("code") {
		t.Errorf("got %s", next.URL)
	}
	v = fx.visit()
	next, err = fx.service.GiveUp(context.Background(), v)
	must.Succeed(t, err)
	if answer := answerOf(t, next.URL); answer.Get("error") != "unmet_authentication_requirements" || answer.Has("code") {
		t.Errorf("who gives up gets %s", next.URL)
	}
	if got := strings.Join(fx.events("AUTHORIZATION"), "|"); got != "allow|refuse the person has not agreed|refuse the person could not verify the sign-in" {
		t.Errorf("recorded: %s", got)
	}
}

// TestAnotherPersonDecides checks that a grant is that of the session that agrees, with its level.
func TestAnotherPersonDecides(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	v := fx.visit()
	fx.next(v)
	v.Session = fx.signIn(bob, auth.Unverified)
	next, err := fx.service.Decide(context.Background(), v, true)
	must.Succeed(t, err)
	if next.Step != authorizing.StepUp || next.URL != "" {
		t.Errorf("a lower level has agreed: %+v", next)
	}
	v.Session = fx.signIn(bob, auth.FullTrust)
	got, err := fx.token(codeForm(fx.agree(v)))
	must.Succeed(t, err)
	if c := fx.claims(got); c.UserID != bob || c.SessionID != v.Session.ID || c.Granted.Level != auth.FullTrust {
		t.Errorf("got %+v", c)
	}
}

// TestClientsThatChange checks that a client whose redirect URI is gone gets no answer there.
func TestClientsThatChange(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*fixture){
		"another redirect URI": changeApp(func(c *oauth.Client) { c.RedirectURIs = []string{"https://b.example"} }),
		"removed":              func(fx *fixture) { delete(fx.clients, "app") },
	} {
		fx := newFixture(t)
		v := fx.visit()
		change(fx)
		for _, agreed := range []bool{true, false} {
			if next, err := fx.service.Decide(context.Background(), v, agreed); !fault.Is(err, fault.Invalid) || next.URL != "" {
				t.Errorf("%s: %+v, %v", name, next, err)
			}
		}
	}
}
