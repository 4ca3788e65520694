package authorizing_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/inprocess"
	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/authorizing"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/toolserver"
	"github.com/tollgate-dev/tollgate/ports/authorization"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/management"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/secrets/secretstest"
	"github.com/tollgate-dev/tollgate/ports/throttle"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

const (
	issuer   = "https://tollgate.example"
	wiki     = "https://wiki.example/mcp"
	callback = "https://app.example/cb"
	verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk" // of RFC 7636, appendix B
	secret   = "a secret that is good"
	document = "https://editor.example/client"
	bob      = auth.UserID("bbbbbbbb-2222-4333-8444-555555555555")
)

var home = netip.MustParseAddr("203.0.113.7")

// testStore keeps the objects of a kind by their keys.
type testStore[K ~string, T any] struct {
	management.Store[K, T] // for its other methods

	objects map[K]T
}

func (s testStore[K, T]) Get(_ context.Context, key K) (T, error) {
	one, ok := s.objects[key]
	if !ok {
		return one, fault.New(fault.NotFound, "not found")
	}
	return one, nil
}

func (s testStore[K, T]) List(context.Context, K, int) (all []T, err error) {
	for _, key := range slices.Sorted(maps.Keys(s.objects)) {
		all = append(all, s.objects[key])
	}
	return all, nil
}

// testGate knows servers by name, and from which level on calls of them are allowed.
type testGate struct {
	servers  []oauth.Server
	urls     map[string]string // by name
	allowed  map[string]auth.TrustLevel
	question authorization.Question // the last one
}

func (g *testGate) Servers(_ context.Context, url string, named []toolserver.Name) (all []oauth.Server, err error) {
	for _, one := range g.servers {
		has := g.urls[one.Name.String()] == url
		one.Listed = one.Listed && has
		if named == nil && has || slices.Contains(named, one.Name) {
			all = append(all, one)
		}
	}
	return all, nil
}

func (g *testGate) Permits(_ context.Context, q authorization.Question) (auth.TrustLevel, bool, error) {
	g.question = q
	least, ok := g.allowed[q.Server.String()]
	return least, ok, nil
}

// testDocuments has the documents of clients, and takes a token for signed whose last part is the key.
type testDocuments struct {
	clients map[oauth.ClientID]oauth.Client
	err     error
}

func (d *testDocuments) Client(_ context.Context, id oauth.ClientID) (oauth.Client, error) {
	c, ok := d.clients[id]
	if !ok && d.err == nil {
		return c, fault.New(fault.Invalid, "the document is not there")
	}
	return c, d.err
}

func (d *testDocuments) Verify(_ context.Context, c *oauth.Client, token string) ([]byte, error) {
	if token == "away" {
		return nil, fault.New(fault.Unavailable, "the keys cannot be read")
	}
	return readSigned(token, c.JWKS)
}

// sign returns a token that readSigned accepts with the key.
func sign(claims map[string]any, key string) string {
	text, _ := json.Marshal(claims) //nolint:errchkjson // there are only texts and numbers
	return "h." + base64.RawURLEncoding.EncodeToString(text) + "." + key
}

func readSigned(token, key string) ([]byte, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 || key == "" || parts[2] != key {
		return nil, fault.New(fault.Unauthenticated, "the signature is wrong").WithCode("signature")
	}
	return base64.RawURLEncoding.DecodeString(parts[1])
}

// testAssertions verifies assertions by the client id of their provider.
type testAssertions struct{}

func (testAssertions) ReadAssertion(token string) ([]byte, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, fault.New(fault.Unauthenticated, "the assertion is malformed").WithCode("malformed")
	}
	return base64.RawURLEncoding.DecodeString(parts[1])
}

func (testAssertions) VerifyAssertion(_ context.Context, p *company.Provider, token string) error {
	_, err := readSigned(token, p.ClientID)
	return err
}

// testSigner keeps the claims of what it has signed.
type testSigner struct {
	mu     sync.Mutex
	signed map[auth.AccessToken]secrets.TokenClaims
}

func (s *testSigner) Sign(_ context.Context, c secrets.TokenClaims) (auth.AccessToken, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	token := auth.AccessToken("access " + c.ID)
	s.signed[token] = c
	return token, nil
}

func (s *testSigner) Verify(_ context.Context, t auth.AccessToken) (secrets.TokenClaims, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.signed[t]
	if !ok {
		return c, fault.New(fault.Unauthenticated, "the token is not valid").WithCode(auth.CodeInvalidToken)
	}
	return c, nil
}

// fixture is a service with its dependencies: the registered client app with a secret, the resource wiki,
// and the person Anna with a session at LIMITED_TRUST.
type fixture struct {
	t         testing.TB
	service   *authorizing.Service
	config    authorizing.Config
	ports     authorizing.Ports
	db        *fakedb.Database
	clock     *clocktest.Manual
	gate      *testGate
	documents *testDocuments
	signer    *testSigner
	clients   map[oauth.ClientID]oauth.Client
	resources map[oauth.ResourceName]oauth.Resource
	log       *fakedb.AuditLog
	changes   uint64

	session auth.Session
}

func newFixture(t testing.TB, changes ...func(*fixture)) *fixture {
	t.Helper()
	db := fakedb.New()
	entropy := &secretstest.Entropy{}
	fx := &fixture{
		t: t, db: db, log: fakedb.NewAuditLog(db),
		clock: clocktest.NewManual(time.Date(2026, time.November, 30, 12, 0, 0, 0, time.UTC)),
		config: authorizing.Config{
			On: true, Issuer: issuer, Clients: authorizing.ClientsOfHosts, Hosts: []string{"editor.example"},
			SessionTTL: 7 * 24 * time.Hour, SessionMaxAge: 30 * 24 * time.Hour,
		},
		gate: &testGate{
			urls: map[string]string{"com.example/wiki": wiki}, allowed: map[string]auth.TrustLevel{"com.example/wiki": 0},
			servers: []oauth.Server{{Name: named(t, "com.example/wiki"), Listed: true}},
		},
		documents: &testDocuments{clients: map[oauth.ClientID]oauth.Client{document: {
			ID: document, Name: "Editor", RedirectURIs: []string{"http://localhost/cb"}, Method: oauth.MethodNone,
		}}},
		signer: &testSigner{signed: map[auth.AccessToken]secrets.TokenClaims{}},
		clients: map[oauth.ClientID]oauth.Client{
			"app": {
				ID: "app", Name: "App", RedirectURIs: []string{callback}, Method: oauth.MethodSecretInForm,
				SecretHash: sha256.Sum256([]byte(secret)),
			},
			"other": {ID: "other", Name: "Other", RedirectURIs: []string{callback}, Method: oauth.MethodNone},
			"keyed": {ID: "keyed", Name: "Keyed", RedirectURIs: []string{callback}, Method: oauth.MethodPrivateKey, JWKS: "key"},
		},
		resources: map[oauth.ResourceName]oauth.Resource{"wiki": {
			Name: "wiki", URL: wiki, Servers: []toolserver.Name{named(t, "com.example/wiki")}, Scopes: []string{"read", "write"},
			Introspectors: []string{"wiki"}, TokenTTL: 10 * time.Minute, MinTrust: auth.LimitedTrust, Refresh: true,
		}},
	}
	used, err := inprocess.NewSingleUse("", memory.NewCounters(fx.clock, memory.Config{}))
	must.Succeed(t, err)
	fx.ports = authorizing.Ports{
		Requests: fakedb.NewRequests(db), Families: fakedb.NewFamilies(db), Secrets: fakedb.NewSecrets(db),
		Consents: fakedb.NewConsents(db), Sightings: fakedb.NewSightings(db), Accounts: fakedb.NewAccounts(db),
		Sessions: fakedb.NewSessions(db), Identities: fakedb.NewIdentities(db), Providers: fakedb.NewProviders(db),
		Changes:      func() uint64 { fx.changes++; return fx.changes }, // nothing is kept
		Transactions: db, Gate: fx.gate, Documents: fx.documents, Assertions: testAssertions{}, Admit: fx.admit,
		Signer: fx.signer, Verifier: fx.signer, Used: used, Trail: auditing.New(fx.log, fx.clock, entropy),
		Clock: fx.clock, Entropy: entropy, Root: auth.RootSecret(strings.Repeat("r", 32)),
	}
	for _, change := range changes {
		change(fx)
	}
	fx.ports.Clients = testStore[oauth.ClientID, oauth.Client]{objects: fx.clients}
	fx.ports.Resources = testStore[oauth.ResourceName, oauth.Resource]{objects: fx.resources}
	if fx.ports.Throttle == nil {
		fx.ports.Throttle, err = inprocess.NewThrottle(inprocess.ThrottleConfig{}, nil, fx.clock)
		must.Succeed(t, err)
	}
	fx.renew()
	fx.session = fx.signIn("aaaaaaaa-2222-4333-8444-555555555555", auth.LimitedTrust)
	return fx
}

// renew makes the service of the ports.
func (fx *fixture) renew() {
	fx.t.Helper()
	var err error
	fx.service, err = authorizing.New(fx.config, fx.ports)
	must.Succeed(fx.t, err)
}

func named(t testing.TB, name string) toolserver.Name {
	t.Helper()
	n, err := toolserver.ParseName(name)
	must.Succeed(t, err)
	return n
}

// admit knows Anna by the subject "anna", and makes no account.
func (fx *fixture) admit(_ context.Context, _ *company.Provider, c *company.Claims) (auth.UserID, error) {
	if c.Subject != "anna" {
		return "", fault.New(fault.Forbidden, "unknown_person")
	}
	return fx.session.UserID, nil
}

// signIn begins a session of a person, whose account it makes.
func (fx *fixture) signIn(user auth.UserID, level auth.TrustLevel) auth.Session {
	fx.t.Helper()
	ctx, now := context.Background(), fx.clock.Now()
	if _, err := fx.ports.Accounts.Get(ctx, user); err != nil {
		must.Succeed(fx.t, fx.ports.Accounts.Create(ctx, auth.Account{
			ID: user, Email: auth.Email(string(user) + "@example.com"), State: auth.AccountActive,
		}))
	}
	device := auth.Device{ID: secrets.NewUUID[auth.DeviceID](fx.ports.Entropy), UserID: user, FirstSeen: now, LastSeen: now}
	device.Identity = auth.DeviceIdentity(device.ID)
	_, _, err := fakedb.NewDevices(fx.db).Ensure(ctx, device)
	must.Succeed(fx.t, err)
	s := auth.Session{
		ID: secrets.NewUUID[auth.SessionID](fx.ports.Entropy), UserID: user, DeviceID: device.ID, TrustLevel: level,
		CreatedAt: now, LastActivity: now, ExpiresAt: now.Add(7 * 24 * time.Hour), MaxExpiresAt: now.Add(30 * 24 * time.Hour),
		IPAddress: home,
	}
	must.Succeed(fx.t, fx.ports.Sessions.Create(ctx, s))
	return s
}

func (fx *fixture) changeSession(change func(*auth.Session)) {
	fx.t.Helper()
	must.Succeed(fx.t, fx.ports.Sessions.Update(context.Background(), fx.session.ID, func(s *auth.Session) error {
		change(s)
		return nil
	}))
}

// with returns values with others in their place; an empty one is left out.
func with(values url.Values, changes ...string) url.Values {
	for i := 0; i < len(changes); i += 2 {
		if values.Set(changes[i], changes[i+1]); changes[i+1] == "" {
			values.Del(changes[i])
		}
	}
	return values
}

// query returns an authorization request of app.
func query(changes ...string) url.Values {
	return with(url.Values{
		"response_type": {"code"}, "client_id": {"app"}, "redirect_uri": {callback}, "resource": {wiki}, "state": {"s"},
		"code_challenge": {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}, "code_challenge_method": {"S256"},
	}, changes...)
}

func (fx *fixture) begin(changes ...string) (authorizing.Begun, error) {
	return fx.service.Begin(context.Background(), query(changes...), home)
}

// visit begins a request, and returns the visit of Anna's browser.
func (fx *fixture) visit(changes ...string) authorizing.Visit {
	fx.t.Helper()
	begun, err := fx.begin(changes...)
	must.Succeed(fx.t, err)
	return authorizing.Visit{ID: begun.ID, Browser: begun.Browser, Session: fx.session, From: home}
}

// next returns the next step of a visit.
func (fx *fixture) next(v authorizing.Visit) authorizing.Next {
	fx.t.Helper()
	next, err := fx.service.Continue(context.Background(), v)
	must.Succeed(fx.t, err)
	return next
}

// agree decides a visit, and returns the code.
func (fx *fixture) agree(v authorizing.Visit) string {
	fx.t.Helper()
	next, err := fx.service.Decide(context.Background(), v, true)
	must.Succeed(fx.t, err)
	answer := answerOf(fx.t, next.URL)
	if next.Step != authorizing.Leave || answer.Get("code") == "" || answer.Get("iss") != issuer || answer.Get("state") != "s" {
		fx.t.Fatalf("no code: %+v", next)
	}
	return answer.Get("code")
}

func answerOf(t testing.TB, text string) url.Values {
	t.Helper()
	u, err := url.Parse(text)
	must.Succeed(t, err)
	return u.Query()
}

// errorOf returns the error of a Redirect; empty for another one.
func errorOf(t testing.TB, err error) string {
	t.Helper()
	var r *authorizing.Redirect
	if !errors.As(err, &r) {
		return ""
	}
	answer := answerOf(t, r.URL)
	if answer.Get("iss") != issuer || answer.Get("state") != "s" || answer.Get("code") != "" || !strings.HasPrefix(r.URL, callback) {
		t.Errorf("an error at %s", r.URL)
	}
	return answer.Get("error")
}

// codeForm returns a token request of app for a code.
func codeForm(code string, changes ...string) url.Values {
	return with(url.Values{
		"grant_type": {"authorization_code"}, "client_id": {"app"}, "client_secret": {secret}, "code": {code},
		"redirect_uri": {callback}, "code_verifier": {verifier}, "resource": {wiki},
	}, changes...)
}

// refreshForm returns a token request of app for a refresh token.
func refreshForm(token auth.RefreshSecret, changes ...string) url.Values {
	return with(url.Values{
		"grant_type": {"refresh_token"}, "client_id": {"app"}, "client_secret": {secret}, "refresh_token": {string(token)},
	}, changes...)
}

func (fx *fixture) token(form url.Values) (authorizing.Tokens, error) {
	return fx.service.Token(context.Background(), authorizing.TokenRequest{Form: form, From: home})
}

// tokens returns those of a new code.
func (fx *fixture) tokens(changes ...string) authorizing.Tokens {
	fx.t.Helper()
	got, err := fx.token(codeForm(fx.agree(fx.visit(changes...))))
	must.Succeed(fx.t, err)
	return got
}

// claims returns those of an access token.
func (fx *fixture) claims(t authorizing.Tokens) secrets.TokenClaims {
	fx.t.Helper()
	c, err := fx.signer.Verify(context.Background(), t.Access)
	must.Succeed(fx.t, err)
	return c
}

func (fx *fixture) family(t authorizing.Tokens) oauth.Family {
	fx.t.Helper()
	f, err := fx.ports.Families.Get(context.Background(), fx.claims(t).Granted.Family)
	must.Succeed(fx.t, err)
	return f
}

func (fx *fixture) wantCode(what string, err error, code fault.Code) {
	fx.t.Helper()
	if f, _ := fault.As(err); f == nil || f.Code != code {
		fx.t.Errorf("%s: %v, want the code %s", what, err, code)
	}
}

// events returns the actions of the events of a category with the reasons of those that failed, the oldest
// first.
func (fx *fixture) events(category audit.Category) (all []string) {
	fx.t.Helper()
	events, _, err := fx.log.Search(context.Background(), authstore.AuditQuery{Category: category, Limit: auth.MaxPage})
	must.Succeed(fx.t, err)
	slices.SortStableFunc(events, func(a, b audit.Event) int { return cmp.Or(a.Time.Compare(b.Time)) })
	for i := range events {
		text := string(events[i].Action())
		if !events[i].Success {
			text = strings.TrimSpace(text + " " + events[i].Details.Text("reason"))
		}
		all = append(all, text)
	}
	return all
}

// fixedThrottle refuses a scope, and notes the keys.
type fixedThrottle struct {
	throttle.Throttle // for its other methods

	refuses throttle.Scope
	keys    []string
}

func (f *fixedThrottle) Try(_ context.Context, scope throttle.Scope, key string) (throttle.Verdict, error) {
	f.keys = append(f.keys, key)
	return throttle.Verdict{Allowed: scope != f.refuses}, nil
}

// text returns all events as JSON.
func (fx *fixture) text() string {
	fx.t.Helper()
	events, _, err := fx.log.Search(context.Background(), authstore.AuditQuery{Limit: auth.MaxPage})
	must.Succeed(fx.t, err)
	text, err := json.Marshal(events)
	must.Succeed(fx.t, err)
	return string(text)
}
