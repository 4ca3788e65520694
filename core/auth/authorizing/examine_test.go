package authorizing_test

import (
	"context"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/authorizing"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/scope"
	"github.com/tollgate-dev/tollgate/core/toolserver"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authority/authoritytest"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/test/must"
)

// service returns a service account with a token with scopes.
func service(name string, scopes ...scope.Scope) authority.Caller {
	return authority.NewToken(authority.Token{Owner: registry.Holder("service:" + name), Scopes: scopes}, netip.Addr{})
}

// TestIntrospection checks what a tool server learns of a token: with the level of now.
func TestIntrospection(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	got := fx.tokens()
	fx.changeSession(func(s *auth.Session) { s.TrustLevel = auth.FullTrust })
	r := fx.resources["wiki"]
	r.Scopes = []string{"write"}
	fx.resources["wiki"] = r
	found, err := fx.service.Introspect(context.Background(), service("wiki", scope.Decide), string(got.Access))
	must.Succeed(t, err)
	c := fx.claims(got)
	granted := *c.Granted
	granted.Level, granted.Scopes = auth.FullTrust, []string{"write"}
	want := authorizing.Introspection{
		Active: true, Claims: granted, Subject: fx.session.UserID, Session: fx.session.ID, ID: c.ID, IssuedAt: c.IssuedAt,
		ExpiresAt: c.ExpiresAt,
	}
	if !reflect.DeepEqual(found, want) {
		t.Errorf("got %+v, want %+v", found, want)
	}
	if fx.gate.question.From != home {
		t.Errorf("the rules are about the address %v, want that of the session", fx.gate.question.From)
	}
}

// TestWhoIntrospects checks that only a service account with the scope examines tokens, and only those of its
// resources.
func TestWhoIntrospects(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	got := string(fx.tokens().Access)
	for name, c := range map[string]struct {
		who  authority.Caller
		kind fault.Kind
	}{
		"nobody":                   {authority.Caller{}, fault.Unauthenticated},
		"a person":                 {authoritytest.Person("anna"), fault.Forbidden},
		"a token of a person":      {authority.NewToken(authority.Token{Owner: "anna", Scopes: scope.Set{scope.Decide}}, home), fault.Forbidden},
		"an account without scope": {service("wiki", scope.Read), fault.Forbidden},
		"an operator command":      {authority.Operator(), fault.Forbidden},
	} {
		if found, err := fx.service.Introspect(context.Background(), c.who, got); !fault.Is(err, c.kind) || found.Active {
			t.Errorf("%s: %+v, %v", name, found, err)
		}
	}
	for name, who := range map[string]authority.Caller{"another account": service("mail", scope.Decide), "a longer name": service("wiki2", scope.Decide)} {
		if found, err := fx.service.Introspect(context.Background(), who, got); err != nil || !reflect.DeepEqual(found, authorizing.Introspection{}) {
			t.Errorf("%s: %+v, %v", name, found, err)
		}
	}
}

// TestWhatIsInactive checks that a token is not active after what ends its grant, and that no other token is.
func TestWhatIsInactive(t *testing.T) {
	t.Parallel()
	inactive := func(fx *fixture, name, token string) {
		t.Helper()
		found, err := fx.service.Introspect(context.Background(), service("wiki", scope.Decide), token)
		if err != nil || !reflect.DeepEqual(found, authorizing.Introspection{}) {
			t.Errorf("%s: %+v, %v", name, found, err)
		}
	}
	for name, c := range changesThatEnd() {
		fx := newFixture(t)
		got := fx.tokens()
		c.change(fx)
		inactive(fx, name, string(got.Access))
	}
	fx := newFixture(t)
	mail := fx.resources["wiki"]
	mail.Name, mail.URL = "mail", "https://mail.example/mcp"
	mail.Servers = []toolserver.Name{named(t, "com.example/mail")}
	fx.resources["mail"] = mail
	fx.gate.servers = append(fx.gate.servers, oauth.Server{Name: mail.Servers[0], Listed: true})
	fx.gate.urls["com.example/mail"], fx.gate.allowed["com.example/mail"] = mail.URL, 0
	got := fx.tokens()
	inactive(fx, "a refresh token", string(got.Refresh))
	inactive(fx, "nothing", "")
	inactive(fx, "a guess", "guess")
	session, err := fx.signer.Sign(context.Background(), secrets.TokenClaims{ID: "1", UserID: fx.session.UserID, SessionID: fx.session.ID})
	must.Succeed(t, err)
	inactive(fx, "the token of a session", string(session))
	inactive(fx, "a token for this registry", string(fx.registryToken().Access))
	for name, change := range map[string]func(*secrets.TokenClaims){
		"another family":   func(c *secrets.TokenClaims) { c.Granted.Family = "dddddddd-2222-4333-8444-555555555555" },
		"another client":   func(c *secrets.TokenClaims) { c.Granted.Client = "other" },
		"another person":   func(c *secrets.TokenClaims) { c.UserID = bob },
		"another session":  func(c *secrets.TokenClaims) { c.SessionID = "" },
		"another resource": func(c *secrets.TokenClaims) { c.Granted.Resource = "https://mail.example/mcp" },
	} {
		claims, granted := fx.claims(got), *fx.claims(got).Granted
		claims.ID, claims.Granted = name, &granted
		change(&claims)
		token, err := fx.signer.Sign(context.Background(), claims)
		must.Succeed(t, err)
		inactive(fx, name, string(token))
	}
	fx.clock.Advance(time.Second)
	must.Succeed(t, fx.revoke(nil, "client_id", "app", "client_secret", secret, "token", string(got.Access)))
	inactive(fx, "after a revocation", string(got.Access))
}

func (fx *fixture) registryToken() authorizing.Tokens {
	fx.t.Helper()
	got, err := fx.token(codeForm(fx.agree(fx.visit("resource", issuer)), "resource", issuer))
	must.Succeed(fx.t, err)
	return got
}

// TestRegistryTokens checks a token for this registry, for which no rule is needed.
func TestRegistryTokens(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, func(fx *fixture) { fx.gate.allowed = nil })
	fx.changeSession(func(s *auth.Session) { s.TrustLevel = auth.Unverified })
	c := fx.claims(fx.registryToken())
	if c.Granted.Resource != issuer || !reflect.DeepEqual(c.Granted.Scopes, []string{oauth.ScopeRead, oauth.ScopeWrite}) {
		t.Errorf("got %+v", c.Granted)
	}
}

// TestDocumentsAreNotReadForIntrospection checks that a client by document is active while the settings admit
// it, without its document.
func TestDocumentsAreNotReadForIntrospection(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	code := fx.agree(fx.visit("client_id", document, "redirect_uri", "http://localhost:5000/cb"))
	got, err := fx.token(codeForm(code, "client_id", document, "client_secret", "", "redirect_uri", "http://localhost:5000/cb"))
	must.Succeed(t, err)
	fx.documents.err = fault.New(fault.Internal, "was read")
	for _, hosts := range [][]string{{"editor.example"}, {"other.example"}} {
		fx.config.Hosts = hosts
		s, err := authorizing.New(fx.config, fx.ports)
		must.Succeed(t, err)
		found, err := s.Introspect(context.Background(), service("wiki", scope.Decide), string(got.Access))
		if err != nil || found.Active != (hosts[0] == "editor.example") {
			t.Errorf("%s: %+v, %v", hosts, found, err)
		}
	}
}

// TestRevoke checks that each token ends its family, for its own client alone.
func TestRevoke(t *testing.T) {
	t.Parallel()
	for _, access := range []bool{true, false} {
		fx := newFixture(t)
		got := fx.tokens()
		token := string(got.Refresh)
		if access {
			token = string(got.Access)
		}
		must.Succeed(t, fx.revoke(nil, "client_id", "other", "token", token))
		if f := fx.family(got); !f.EndedAt.IsZero() {
			t.Fatalf("another client ends %+v", f)
		}
		for range 2 {
			must.Succeed(t, fx.revoke(nil, "client_id", "app", "client_secret", secret, "token", token, "token_type_hint", "x"))
		}
		if f := fx.family(got); f.EndReason != oauth.EndRevoked {
			t.Errorf("the family is %+v", f)
		}
		_, err := fx.token(refreshForm(got.Refresh))
		fx.wantCode("after it", err, oauth.CodeInvalidGrant)
		if got := fx.events("AUTHORIZATION"); len(got) != 3 {
			t.Errorf("recorded: %q", got)
		}
		if next := fx.next(fx.visit()); next.Step != authorizing.Leave {
			t.Errorf("a client has withdrawn the consent of the person: %+v", next)
		}
	}
	fx := newFixture(t)
	code := fx.agree(fx.visit())
	must.Succeed(t, fx.revoke(nil, "client_id", "app", "client_secret", secret, "token", code))
	if _, err := fx.token(codeForm(code)); err != nil {
		t.Errorf("a code is revoked: %v", err)
	}
	fx.wantCode("no token", fx.revoke(nil, "client_id", "app", "client_secret", secret, "token", ""), oauth.CodeInvalidRequest)
	fx.wantCode("no client", fx.revoke(nil, "token", "x"), oauth.CodeInvalidClient)
}

// TestApplications checks that a person sees and ends their own applications only.
func TestApplications(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	fx := newFixture(t)
	got := fx.tokens()
	fx.agree(fx.visit()) // a code that no one has used
	list, err := fx.service.Applications(ctx, fx.session.UserID)
	must.Succeed(t, err)
	if len(list) != 1 || list[0].ClientName != "App" || len(list[0].Servers) != 1 {
		t.Errorf("got %+v", list)
	}
	other := fx.signIn(bob, auth.FullTrust)
	if list, err := fx.service.Applications(ctx, bob); err != nil || len(list) > 0 {
		t.Errorf("another person has %+v, %v", list, err)
	}
	id := fx.claims(got).Granted.Family
	if err := fx.service.Remove(ctx, other, id); !fault.Is(err, fault.NotFound) {
		t.Errorf("another person ends it: %v", err)
	}
	fx.gate.servers[0].Quarantined = true
	if list, err := fx.service.Applications(ctx, fx.session.UserID); err != nil || len(list) != 1 {
		t.Errorf("in quarantine: %+v, %v", list, err)
	}
	fx.gate.servers[0].Quarantined = false
	must.Succeed(t, fx.service.Remove(ctx, fx.session, id))
	for _, gone := range []oauth.FamilyID{id, "dddddddd-2222-4333-8444-555555555555"} {
		if err := fx.service.Remove(ctx, fx.session, gone); !fault.Is(err, fault.NotFound) {
			t.Errorf("again: %v", err)
		}
	}
	if next := fx.next(fx.visit()); next.Step != authorizing.Ask {
		t.Errorf("the consent is still there: %+v", next)
	}
	_, err = fx.token(refreshForm(got.Refresh))
	fx.wantCode("after it", err, oauth.CodeInvalidGrant)
}

func TestMetadata(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, func(fx *fixture) { fx.config.Clients = authorizing.ClientsRegistered })
	if m, err := fx.service.Metadata(context.Background()); err != nil || m != (authorizing.Metadata{Issuer: issuer}) {
		t.Errorf("got %+v, %v", m, err)
	}
	fx = newFixture(t, withProvider()...)
	if m, err := fx.service.Metadata(context.Background()); err != nil || !m.Documents || !m.Assertions {
		t.Errorf("got %+v, %v", m, err)
	}
}
