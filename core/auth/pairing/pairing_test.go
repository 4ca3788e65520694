package pairing_test

import (
	"context"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/authtest"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/credentials"
	"github.com/tollgate-dev/tollgate/core/auth/pairing"
	"github.com/tollgate-dev/tollgate/core/auth/signin"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/secrets/secretstest"
	"github.com/tollgate-dev/tollgate/ports/signals/signalstest"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

const (
	verifier  = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk" // with its challenge, of RFC 7636, appendix B
	challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
	callback  = "http://127.0.0.1:49152/callback"
	recent    = 5 * time.Minute
	ada       = auth.Email("ada@example.com")
)

type testSigner struct{}

func (testSigner) Sign(context.Context, secrets.TokenClaims) (auth.AccessToken, error) {
	return "access", nil
}

type fixture struct {
	t        *testing.T
	clock    *clocktest.Manual
	sessions authstore.Sessions
	accounts authstore.Accounts
	logins   authstore.Logins

	identities authstore.Identities
	log        *fakedb.AuditLog

	service *pairing.Service
	by      auth.Session // of the browser
}

// newFixture returns a service, and a session of a browser at FULL_TRUST.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	db, entropy := fakedb.New(), &secretstest.Entropy{}
	fx := &fixture{
		t: t, clock: clocktest.NewManual(time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)),
		sessions: fakedb.NewSessions(db), accounts: fakedb.NewAccounts(db), logins: fakedb.NewLogins(db),
		identities: fakedb.NewIdentities(db), log: fakedb.NewAuditLog(db),
	}
	signIn, err := signin.New(authtest.SignIn(), signin.Ports{
		Accounts: fx.accounts, Devices: fakedb.NewDevices(db), DeviceTokens: fakedb.NewDeviceTokens(db), Sessions: fx.sessions,
		RefreshTokens: fakedb.NewRefreshTokens(db), History: fakedb.NewSessions(db), Lockouts: fakedb.NewLockouts(db),
		Counts: fakedb.NewHistory(db), Deferrals: fakedb.NewHistory(db), Logins: fx.logins, Transaction: db,
		Tokens: testSigner{}, Root: auth.RootSecret(strings.Repeat("r", 32)), Geography: signalstest.None{}, Reputation: signalstest.None{},
		Trail: auditing.New(fx.log, fx.clock, entropy), Clock: fx.clock, Entropy: entropy,
	})
	must.Succeed(t, err)
	fx.service = pairing.New(credentials.Config{ReauthenticationMaxAge: recent}, pairing.Ports{
		Links: fakedb.NewLinks(db), Sessions: fx.sessions, Accounts: fx.accounts, Logins: fx.logins, SignIn: signIn,
		Clock: fx.clock, Entropy: entropy,
	})
	account := auth.Account{ID: secrets.NewUUID[auth.UserID](entropy), Email: ada, Name: "Ada", State: auth.AccountActive}
	must.Succeed(t, fx.accounts.Create(t.Context(), account))
	now := fx.clock.Now()
	device, _, err := fakedb.NewDevices(db).Ensure(t.Context(), auth.Device{
		ID: secrets.NewUUID[auth.DeviceID](entropy), UserID: account.ID, Identity: "browser", TrustStatus: auth.DevicePending,
	})
	must.Succeed(t, err)
	fx.by = auth.Session{
		ID: secrets.NewUUID[auth.SessionID](entropy), UserID: account.ID, DeviceID: device.ID,
		TrustLevel: auth.FullTrust, CreatedAt: now, LastActivity: now, ExpiresAt: now.Add(24 * time.Hour), MaxExpiresAt: now.Add(24 * time.Hour),
	}
	must.Succeed(t, fx.sessions.Create(t.Context(), fx.by))
	return fx
}

// change changes the session of the browser as it is stored.
func (fx *fixture) change(change func(*auth.Session)) {
	fx.t.Helper()
	if err := fx.sessions.Update(fx.t.Context(), fx.by.ID, func(s *auth.Session) error {
		change(s)
		return nil
	}); err != nil {
		fx.t.Fatal(err)
	}
}

func (fx *fixture) approve(redirect string) auth.LinkSecret {
	fx.t.Helper()
	r := pairing.Request{Challenge: challenge, Method: "S256", Redirect: redirect, State: "s"}
	must.Succeed(fx.t, r.Check())
	code, err := fx.service.Approve(fx.t.Context(), fx.by, r)
	must.Succeed(fx.t, err)
	return code
}

func (fx *fixture) exchange(code auth.LinkSecret, redirect string, shown ...auth.DeviceSecret) (signin.Result, error) {
	fx.t.Helper()
	info, err := auth.NewDeviceInfo(auth.DeviceFields{UserAgent: "tollgate-cli (Linux; amd64; 01)"})
	must.Succeed(fx.t, err)
	in := pairing.Exchange{
		Code: code, Verifier: verifier, Redirect: redirect,
		From: signin.Origin{Device: info, Address: netip.MustParseAddr("203.0.113.7")},
	}
	if len(shown) > 0 {
		in.From.DeviceToken = shown[0]
	}
	r, email, err := fx.service.Exchange(fx.t.Context(), in)
	if err == nil && email != ada {
		fx.t.Errorf("the session is that of %s", email)
	}
	return r, err
}

// TestLevels checks that a command gets full trust on a new device only right after a password or a
// code in a session at full trust, by a port of the same machine.
func TestLevels(t *testing.T) {
	for name, test := range map[string]struct {
		change   func(*fixture)
		redirect string
		level    auth.TrustLevel
		device   bool // the device is confirmed
	}{
		"full trust":              {func(*fixture) {}, callback, auth.FullTrust, true},
		"with a copied code":      {func(*fixture) {}, "", auth.Unverified, false},
		"after a while":           {func(fx *fixture) { fx.clock.Advance(recent + time.Second) }, callback, auth.Unverified, false},
		"a code of the step-up":   {func(fx *fixture) { fx.clock.Advance(recent + time.Second); fx.stepUp() }, callback, auth.FullTrust, true},
		"limited trust":           {func(fx *fixture) { fx.lower(auth.LimitedTrust) }, callback, auth.Unverified, false},
		"unverified":              {func(fx *fixture) { fx.lower(auth.Unverified) }, callback, auth.Unverified, false},
		"unverified, copied":      {func(fx *fixture) { fx.lower(auth.Unverified) }, "", auth.Unverified, false},
		"lowered since the press": {func(*fixture) {}, callback, auth.Unverified, false},
	} {
		fx := newFixture(t)
		test.change(fx)
		code := fx.approve(test.redirect)
		if strings.HasPrefix(name, "lowered") {
			fx.lower(auth.Unverified)
		}
		r, err := fx.exchange(code, test.redirect)
		if err != nil || r.TrustLevel != test.level || (r.DeviceToken != "") != test.device {
			t.Errorf("%s: %v, device token %t, error %v", name, r.TrustLevel, r.DeviceToken != "", err)
		}
	}
}

// TestKnownDevice checks that a device that the command has confirmed gets no more than the browser.
func TestKnownDevice(t *testing.T) {
	fx := newFixture(t)
	first, err := fx.exchange(fx.approve(callback), callback)
	must.Succeed(t, err)
	for _, level := range []auth.TrustLevel{auth.LimitedTrust, auth.Unverified, auth.HighRisk} {
		fx.clock.Advance(time.Hour) // not a sign-in after the other
		fx.lower(level)
		r, err := fx.exchange(fx.approve(callback), callback, first.DeviceToken)
		if err != nil || r.TrustLevel != level {
			t.Errorf("from %v the command gets %v, error %v", level, r.TrustLevel, err)
		}
	}
}

func (fx *fixture) lower(l auth.TrustLevel) { fx.change(func(s *auth.Session) { s.TrustLevel = l }) }

func (fx *fixture) stepUp() {
	fx.change(func(s *auth.Session) { s.ReauthenticatedAt = fx.clock.Now() })
}

// TestDeadCodes checks when a code is good no more.
func TestDeadCodes(t *testing.T) {
	for name, test := range map[string]struct {
		redirect string
		act      func(*fixture)
		good     bool
	}{
		"in time":            {callback, func(fx *fixture) { fx.clock.Advance(59 * time.Second) }, true},
		"late":               {callback, func(fx *fixture) { fx.clock.Advance(time.Minute) }, false},
		"copied in time":     {"", func(fx *fixture) { fx.clock.Advance(299 * time.Second) }, true},
		"copied late":        {"", func(fx *fixture) { fx.clock.Advance(5 * time.Minute) }, false},
		"of a clock ahead":   {"", func(fx *fixture) { fx.clock.Advance(-time.Minute) }, false},
		"signed out":         {callback, func(fx *fixture) { fx.change(func(s *auth.Session) { s.EndedAt = fx.clock.Now() }) }, false},
		"locked by operator": {callback, func(fx *fixture) { fx.setState(auth.AccountLocked) }, false},
		"disabled":           {callback, func(fx *fixture) { fx.setState(auth.AccountDisabled) }, false},
	} {
		fx := newFixture(t)
		code := fx.approve(test.redirect)
		test.act(fx)
		_, err := fx.exchange(code, test.redirect)
		if f, _ := fault.As(err); test.good != (err == nil) || err != nil && f.Code != auth.CodeInvalidCredentials {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := fx.exchange(code, test.redirect); err == nil {
			t.Errorf("%s: the code is good twice", name)
		}
		if refused := fx.refusals(""); test.good && len(refused) != 1 {
			t.Errorf("%s: the refused exchanges without a person are %+v", name, refused)
		}
		if refused := fx.refusals(fx.by.UserID); !test.good && len(refused) != 2 {
			t.Errorf("%s: the refused exchanges of the person are %+v", name, refused)
		}
	}
}

// refusals returns the events of refused exchanges of a person; of no known one if it is empty.
func (fx *fixture) refusals(user auth.UserID) (refused []audit.Event) {
	fx.t.Helper()
	all, _, err := fx.log.Search(fx.t.Context(), authstore.AuditQuery{Category: audit.LoginAttempt, Limit: auth.MaxPage})
	must.Succeed(fx.t, err)
	for _, e := range all {
		if !e.Success && e.Subject == audit.Subject(user) && e.Details["method"] == audit.Text("browser") {
			refused = append(refused, e)
		}
	}
	return refused
}

func (fx *fixture) setState(state auth.AccountState) {
	fx.t.Helper()
	if err := fx.accounts.Update(fx.t.Context(), fx.by.UserID, func(a *auth.Account) error {
		a.State = state
		return nil
	}); err != nil {
		fx.t.Fatal(err)
	}
}

// TestCompanySession checks that the session of a command ends with the sign-in at the company from
// which that of the browser came, and takes no refresh token along.
func TestCompanySession(t *testing.T) {
	fx := newFixture(t)
	identity := company.Identity{ID: "22222222-2222-4222-8222-222222222222", UserID: fx.by.UserID, Issuer: "https://acme.example", Subject: "u1"}
	must.Succeed(t, fx.identities.Add(t.Context(), identity))
	login := company.Login{
		ID: "11111111-1111-4111-8111-111111111111", IdentityID: identity.ID, Provider: "acme", SID: "sid",
		Refresh: auth.SealedSecret("sealed"), AnsweredAt: fx.clock.Now(), RecheckAt: fx.clock.Now().Add(time.Hour),
	}
	must.Succeed(t, fx.logins.Add(t.Context(), login))
	must.Succeed(t, fx.logins.Bind(t.Context(), login.ID, fx.by.ID))
	r, err := fx.exchange(fx.approve(callback), callback)
	must.Succeed(t, err)
	s, err := fx.sessions.Get(t.Context(), r.SessionID)
	if err != nil || !s.MaxExpiresAt.Equal(fx.by.MaxExpiresAt) || s.ExpiresAt.After(s.MaxExpiresAt) {
		t.Errorf("the session lives until %v and %v, error %v", s.ExpiresAt, s.MaxExpiresAt, err)
	}
	found, err := fx.logins.Find(t.Context(), authstore.LoginQuery{At: fx.clock.Now(), SID: "sid"})
	if err != nil || len(found) != 2 {
		t.Fatalf("%d logins, error %v", len(found), err)
	}
	for _, l := range found {
		if of := l.SessionID == r.SessionID; of && (len(l.Refresh) > 0 || !l.RecheckAt.IsZero()) || l.IdentityID != login.IdentityID {
			t.Errorf("the login is %+v", l)
		}
	}
}

// TestAddresses checks where the browser goes with an answer.
func TestAddresses(t *testing.T) {
	r := pairing.Request{Challenge: challenge, Method: "S256", Redirect: callback, State: "a~b"}
	for address, want := range map[string]url.Values{
		r.Approved("the.code"): {"code": {"the.code"}, "state": {"a~b"}},
		r.Denied():             {"error": {"access_denied"}, "state": {"a~b"}},
	} {
		u, err := url.Parse(address)
		if err != nil || u.Host != "127.0.0.1:49152" || u.Path != "/callback" || u.Query().Encode() != want.Encode() {
			t.Errorf("%s, error %v, want %v", address, err, want)
		}
	}
	if r.Origin() != "http://127.0.0.1:49152" {
		t.Errorf("origin %s", r.Origin())
	}
}
