package pairing_test

import (
	"context"
	"net/netip"
	"regexp"
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
	"github.com/tollgate-dev/tollgate/ports/singleuse"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

const (
	recent = 15 * time.Minute
	ada    = auth.Email("ada@example.com")
)

// claims remembers keys by the clock.
type claims struct {
	singleuse.Store // for its other methods

	clock *clocktest.Manual
	until map[string]time.Time
}

func (c *claims) Claim(_ context.Context, key string, ttl time.Duration) (bool, error) {
	now := c.clock.Now()
	if now.Before(c.until[key]) {
		return false, nil
	}
	c.until[key] = now.Add(ttl)
	return true, nil
}

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
	fx.service, err = pairing.New(credentials.Config{Lockout: authtest.SignIn().Lockout}, pairing.Ports{
		Links: fakedb.NewLinks(db), Sessions: fx.sessions, Accounts: fx.accounts, Logins: fx.logins, SignIn: signIn,
		Lockouts: fakedb.NewLockouts(db), Transaction: db, Used: &claims{clock: fx.clock, until: map[string]time.Time{}},
		Root: auth.RootSecret(strings.Repeat("r", 32)), Clock: fx.clock, Entropy: entropy,
	})
	must.Succeed(t, err)
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

func (fx *fixture) begin() (auth.LinkSecret, string) {
	fx.t.Helper()
	secret, code, err := fx.service.Begin(fx.t.Context(), origin(fx.t))
	must.Succeed(fx.t, err)
	return secret, code
}

// approve returns the secret of a request that is approved.
func (fx *fixture) approve() auth.LinkSecret {
	fx.t.Helper()
	secret, code := fx.begin()
	by, err := fx.sessions.Get(fx.t.Context(), fx.by.ID)
	must.Succeed(fx.t, err)
	must.Succeed(fx.t, fx.service.Decide(fx.t.Context(), by, code, true))
	return secret
}

func origin(t *testing.T) signin.Origin {
	t.Helper()
	info, err := auth.NewDeviceInfo(auth.DeviceFields{UserAgent: "tollgate-cli (Linux; amd64; 01)"})
	must.Succeed(t, err)
	return signin.Origin{Device: info, Address: netip.MustParseAddr("203.0.113.7")}
}

func (fx *fixture) exchange(secret auth.LinkSecret, shown ...auth.DeviceSecret) (signin.Result, error) {
	fx.t.Helper()
	from := origin(fx.t)
	if len(shown) > 0 {
		from.DeviceToken = shown[0]
	}
	r, email, err := fx.service.Exchange(fx.t.Context(), secret, from)
	if err == nil && email != ada {
		fx.t.Errorf("the session is that of %s", email)
	}
	return r, err
}

// TestLevels checks that a command gets full trust on a new device only if it was approved at full
// trust, not long after a password or a code.
func TestLevels(t *testing.T) {
	late := func(fx *fixture) { fx.clock.Advance(recent + time.Second) }
	for name, test := range map[string]struct {
		before, after func(*fixture)
		level         auth.TrustLevel
	}{
		"full trust":                   {nil, nil, auth.FullTrust},
		"just in time":                 {func(fx *fixture) { fx.clock.Advance(recent) }, late5, auth.FullTrust},
		"after a while":                {late, nil, auth.Unverified},
		"a code of the step-up":        {func(fx *fixture) { late(fx); fx.stepUp() }, nil, auth.FullTrust},
		"limited trust":                {func(fx *fixture) { fx.lower(auth.LimitedTrust) }, nil, auth.Unverified},
		"unverified":                   {func(fx *fixture) { fx.lower(auth.Unverified) }, nil, auth.Unverified},
		"lowered since the press":      {nil, func(fx *fixture) { fx.lower(auth.Unverified) }, auth.Unverified},
		"a step-up since the press":    {late, func(fx *fixture) { late5(fx); fx.stepUp() }, auth.Unverified},
		"raised by one since then too": {func(fx *fixture) { fx.lower(auth.Unverified) }, func(fx *fixture) { late5(fx); fx.stepUp(); fx.lower(auth.FullTrust) }, auth.Unverified},
	} {
		fx := newFixture(t)
		if test.before != nil {
			test.before(fx)
		}
		secret := fx.approve()
		if test.after != nil {
			test.after(fx)
		}
		r, err := fx.exchange(secret)
		if err != nil || r.TrustLevel != test.level || (r.DeviceToken != "") != (test.level == auth.FullTrust) {
			t.Errorf("%s: %v, device token %t, error %v", name, r.TrustLevel, r.DeviceToken != "", err)
		}
	}
}

func late5(fx *fixture) { fx.clock.Advance(5 * time.Second) }

// TestKnownDevice checks that a device that the command has confirmed gets no more than the browser.
func TestKnownDevice(t *testing.T) {
	fx := newFixture(t)
	first, err := fx.exchange(fx.approve())
	must.Succeed(t, err)
	for _, level := range []auth.TrustLevel{auth.LimitedTrust, auth.Unverified, auth.HighRisk} {
		fx.clock.Advance(time.Hour) // not a sign-in after the other
		fx.lower(auth.FullTrust)
		secret := fx.approve()
		fx.lower(level)
		r, err := fx.exchange(secret, first.DeviceToken)
		if err != nil || r.TrustLevel != level {
			t.Errorf("from %v the command gets %v, error %v", level, r.TrustLevel, err)
		}
	}
	secret, code := fx.begin()
	fx.by.TrustLevel = auth.HighRisk
	if err := fx.service.Decide(t.Context(), fx.by, code, true); !fault.Is(err, fault.Forbidden) {
		t.Errorf("a session at HIGH_RISK approves: %v", err)
	}
	wantCode(t, fx, secret, auth.CodePending)
	must.Succeed(t, fx.service.Decide(t.Context(), fx.by, code, false))
}

func (fx *fixture) lower(l auth.TrustLevel) { fx.change(func(s *auth.Session) { s.TrustLevel = l }) }

func (fx *fixture) stepUp() {
	fx.change(func(s *auth.Session) { s.ReauthenticatedAt = fx.clock.Now() })
}

func codeOf(err error) fault.Code {
	f, ok := fault.As(err)
	if !ok {
		return ""
	}
	return auth.CodeOf(f)
}

// wantCode fails the test unless a poll gets the code of an error.
func wantCode(t *testing.T, fx *fixture, secret auth.LinkSecret, code fault.Code) {
	t.Helper()
	if _, err := fx.exchange(secret); err == nil || codeOf(err) != code {
		t.Errorf("the poll gets %v, want %s", err, code)
	}
}

// TestPolls checks what a command gets before and after the decision (RFC 8628, section 3.5).
func TestPolls(t *testing.T) {
	fx := newFixture(t)
	secret, code := fx.begin()
	wantCode(t, fx, secret, auth.CodePending)
	fx.clock.Advance(pairing.Interval - 2*time.Second)
	wantCode(t, fx, secret, auth.CodeSlowDown)
	fx.clock.Advance(2 * time.Second)
	wantCode(t, fx, secret, auth.CodePending)
	wantCode(t, fx, "x"+secret, auth.CodeInvalidCredentials) // with the code, but without the secret
	wantCode(t, fx, auth.LinkSecret(code), auth.CodeInvalidCredentials)
	wantCode(t, fx, auth.LinkSecret("."+code), auth.CodeInvalidCredentials)
	must.Succeed(t, fx.service.Decide(t.Context(), fx.by, code, false))
	wantCode(t, fx, secret, auth.CodeAccessDenied)
	wantCode(t, fx, secret, auth.CodeInvalidCredentials) // the code was answered once
}

// TestCodes checks the form of codes, how they may be entered, and that each is decided once.
func TestCodes(t *testing.T) {
	fx := newFixture(t)
	seen := map[string]bool{}
	for range 50 {
		_, code := fx.begin()
		if !regexp.MustCompile(`^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$`).MatchString(code) || seen[code] {
			t.Fatalf("the code is %s", code)
		}
		seen[code] = true
	}
	secret, code := fx.begin()
	for _, entered := range []string{code, strings.ToLower(code), strings.ReplaceAll(code, "-", ""), " " + strings.ReplaceAll(code, "-", " ") + " "} {
		l, err := fx.service.Find(t.Context(), fx.by, entered)
		if err != nil || l.Asker != "Linux" || l.AskedFrom.String() != "203.0.113.7" || !l.CreatedAt.Equal(fx.clock.Now()) {
			t.Errorf("%q: %+v, error %v", entered, l, err)
		}
	}
	results := make(chan error, 8)
	for i := range cap(results) {
		go func() { results <- fx.service.Decide(t.Context(), fx.by, code, i%2 == 0) }()
	}
	succeeded := 0
	for range cap(results) {
		if err := <-results; err == nil {
			succeeded++
		} else if !fault.Is(err, fault.Invalid) && !fault.Is(err, fault.Exhausted) {
			t.Error(err)
		}
	}
	if succeeded != 1 {
		t.Errorf("%d decisions succeeded", succeeded)
	}
	if _, err := fx.exchange(secret); err != nil && codeOf(err) != auth.CodeAccessDenied {
		t.Error(err)
	}
}

// TestGuesses checks that a person can try few codes.
func TestGuesses(t *testing.T) {
	fx := newFixture(t)
	secret, code := fx.begin()
	for i, guess := range []string{"", "BCDF-GHJK", "\x00", strings.Repeat("B", 5000), string(secret)} {
		if _, err := fx.service.Find(t.Context(), fx.by, guess); !fault.Is(err, fault.Invalid) {
			t.Errorf("guess %d: %v", i, err)
		}
	}
	if err := fx.service.Decide(t.Context(), fx.by, code, true); !fault.Is(err, fault.Exhausted) {
		t.Errorf("after five wrong codes the right one gets %v", err)
	}
	fx.clock.Advance(15*time.Minute + time.Second)
	if _, err := fx.service.Find(t.Context(), fx.by, code); !fault.Is(err, fault.Invalid) {
		t.Errorf("a code that has expired: %v", err)
	}
	wantCode(t, fx, secret, auth.CodeInvalidCredentials)
}

// TestDeadAnswers checks when an approval is good no more.
func TestDeadAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		act  func(*fixture)
		good bool
	}{
		"in time":            {func(fx *fixture) { fx.clock.Advance(599 * time.Second) }, true},
		"late":               {func(fx *fixture) { fx.clock.Advance(10 * time.Minute) }, false},
		"of a clock ahead":   {func(fx *fixture) { fx.clock.Advance(-2 * time.Minute) }, false},
		"signed out":         {func(fx *fixture) { fx.change(func(s *auth.Session) { s.EndedAt = fx.clock.Now() }) }, false},
		"locked by operator": {func(fx *fixture) { fx.setState(auth.AccountLocked) }, false},
		"disabled":           {func(fx *fixture) { fx.setState(auth.AccountDisabled) }, false},
	} {
		fx := newFixture(t)
		secret := fx.approve()
		test.act(fx)
		_, err := fx.exchange(secret)
		if f, _ := fault.As(err); test.good != (err == nil) || err != nil && f.Code != auth.CodeInvalidCredentials {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := fx.exchange(secret); err == nil {
			t.Errorf("%s: the code is good twice", name)
		}
		if refused := fx.refusals(""); test.good && len(refused) != 1 {
			t.Errorf("%s: the refused exchanges without a person are %+v", name, refused)
		}
		if refused := append(fx.refusals(fx.by.UserID), fx.refusals("")...); !test.good && len(refused) != 2 {
			t.Errorf("%s: the refused exchanges are %+v", name, refused)
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
	r, err := fx.exchange(fx.approve())
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
