package signin_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/inprocess"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/authtest"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
	"github.com/tollgate-dev/tollgate/core/auth/signin"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/secrets/secretstest"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

const (
	anna     = auth.Email("anna@example.com")
	password = "Right Horse 9!"
)

var homeAddress = netip.MustParseAddr("203.0.113.7")

// testHasher hashes passwords as "v1:" and their SHA-256, and counts the comparisons.
type testHasher struct {
	mu       sync.Mutex
	present  string
	compared int
	dummies  int
	err      error
	hold     func() // called with each password before it is compared
}

func (h *testHasher) hashOf(version string, p auth.Password) auth.PasswordHash {
	sum := sha256.Sum256([]byte(p.Reveal()))
	return auth.PasswordHash(version + ":" + string(auth.NewUUID[auth.UserID]([16]byte(sum[:16]))))
}

func (h *testHasher) Hash(_ context.Context, p auth.Password) (auth.PasswordHash, error) {
	return h.hashOf(h.present, p), nil
}

func (h *testHasher) Verify(
	_ context.Context, stored auth.PasswordHash, p auth.Password,
) (match, stale bool, err error) {
	if h.hold != nil {
		h.hold()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil {
		return false, false, h.err
	}
	h.compared++
	version, _, _ := strings.Cut(string(stored), ":")
	match = stored == h.hashOf(version, p)
	return match, match && version != h.present, nil
}

func (h *testHasher) VerifyNone(context.Context, auth.Password) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dummies++
	return h.err
}

// testSigner returns tokens that contain the session and token ID.
type testSigner struct{}

func (testSigner) Sign(_ context.Context, c secrets.TokenClaims) (auth.AccessToken, error) {
	return auth.AccessToken("access/" + string(c.SessionID) + "/" + c.ID), nil
}

// testCache records the sessions that are dropped from it.
type testCache struct {
	mu      sync.Mutex
	dropped []auth.SessionID
}

func (c *testCache) Get(context.Context, auth.SessionID) (auth.Session, bool) {
	return auth.Session{}, false
}
func (c *testCache) Put(context.Context, auth.Session, time.Time) {}
func (c *testCache) Drop(_ context.Context, ids ...auth.SessionID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropped = append(c.dropped, ids...)
}

// testSignals knows the location and reputation of a few addresses.
type testSignals struct {
	places map[netip.Addr]risk.Location
	rates  map[netip.Addr]risk.Reputation
}

func (a *testSignals) Locate(_ context.Context, address netip.Addr) risk.Location {
	return a.places[address]
}
func (a *testSignals) Rate(_ context.Context, address netip.Addr) risk.Reputation {
	return a.rates[address]
}

// fixture is a service with its dependencies.
type fixture struct {
	t       *testing.T
	service *signin.Service
	db      *fakedb.Database
	ports   signin.Ports
	clock   *clocktest.Manual
	hasher  *testHasher
	cache   *testCache
	signals *testSignals
	trail   *auditing.Trail
	log     *fakedb.AuditLog
	entropy *secretstest.Entropy
}

func newFixture(t *testing.T, changes ...func(*signin.Config)) *fixture {
	t.Helper()
	config := authtest.SignIn()
	for _, change := range changes {
		change(&config)
	}
	db := fakedb.New()
	fx := &fixture{
		t: t, db: db, clock: clocktest.NewManual(time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)),
		hasher: &testHasher{present: "v1"}, cache: &testCache{}, signals: &testSignals{}, log: fakedb.NewAuditLog(db),
		entropy: &secretstest.Entropy{},
		ports: signin.Ports{
			Accounts: fakedb.NewAccounts(db), Devices: fakedb.NewDevices(db), DeviceTokens: fakedb.NewDeviceTokens(db),
			Sessions: fakedb.NewSessions(db), RefreshTokens: fakedb.NewRefreshTokens(db),
			History:  fakedb.NewSessions(db),
			Lockouts: fakedb.NewLockouts(db), Pending: fakedb.NewPendingLogins(db), Transaction: db,
			Counts: fakedb.NewHistory(db), Deferrals: fakedb.NewHistory(db),
			Providers: fakedb.NewProviders(db), Logins: fakedb.NewLogins(db),
		},
	}
	fx.trail = auditing.New(fx.log, fx.clock, fx.entropy)
	fx.startService(config)
	fx.addAccount(anna)
	return fx
}

// startService creates the service again, on the present records of the fixture.
func (fx *fixture) startService(config signin.Config) {
	fx.t.Helper()
	p := fx.ports
	unlimited, err := inprocess.NewThrottle(inprocess.ThrottleConfig{}, nil, fx.clock)
	must.Succeed(fx.t, err)
	p.Refusals = auditing.NewRefusals(fx.trail, unlimited)
	p.Passwords, p.Tokens, p.Root = fx.hasher, testSigner{}, rootSecret()
	p.Geography, p.Reputation, p.Cache, p.Trail, p.Clock, p.Entropy = fx.signals, fx.signals, fx.cache, fx.trail,
		fx.clock, fx.entropy
	fx.service, err = signin.New(config, p)
	must.Succeed(fx.t, err)
}

func rootSecret() auth.RootSecret { return auth.RootSecret(strings.Repeat("r", 32)) }

func (fx *fixture) addAccount(email auth.Email) auth.UserID {
	fx.t.Helper()
	var random [16]byte
	fx.entropy.Fill(random[:])
	a := auth.Account{
		ID: auth.NewUUID[auth.UserID](random), Email: email, Name: "Anna", State: auth.AccountActive,
		PasswordHash: fx.hasher.hashOf("v1", newPassword(fx.t, password)),
	}
	must.Succeed(fx.t, fx.ports.Accounts.Create(context.Background(), a))
	return a.ID
}

func newPassword(t *testing.T, s string) auth.Password {
	t.Helper()
	p, err := auth.NewPassword("password", s)
	must.Succeed(t, err)
	return p
}

func laptopInfo(t *testing.T) auth.DeviceInfo {
	t.Helper()
	d, err := auth.NewDeviceInfo(auth.DeviceFields{
		UserAgent:        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36",
		ScreenResolution: "1920x1080", Timezone: "Europe/Berlin", Language: "de-DE",
	})
	must.Succeed(t, err)
	return d
}

// tryLogin logs in from the laptop at home.
func (fx *fixture) tryLogin(word string, changes ...func(*signin.Login)) (signin.Result, error) {
	in := signin.Login{
		Email: anna, Password: newPassword(fx.t, word), Origin: signin.Origin{
			Device: laptopInfo(fx.t), Address: homeAddress,
		},
	}
	for _, change := range changes {
		change(&in)
	}
	return fx.service.Login(context.Background(), in)
}

func (fx *fixture) mustLogin(changes ...func(*signin.Login)) signin.Result {
	fx.t.Helper()
	r, err := fx.tryLogin(password, changes...)
	if err != nil {
		fx.t.Fatalf("login: %v", err)
	}
	return r
}

// tryRefresh refreshes from home.
func (fx *fixture) tryRefresh(s auth.RefreshSecret) (signin.Result, error) {
	return fx.service.Refresh(context.Background(), s, homeAddress)
}

func (fx *fixture) getSession(id auth.SessionID) auth.Session {
	fx.t.Helper()
	s, err := fx.ports.Sessions.Get(context.Background(), id)
	must.Succeed(fx.t, err)
	return s
}

// findEvents returns the events of a type, newest first; of all types when it is empty.
func (fx *fixture) findEvents(kind audit.Category) []audit.Event {
	fx.t.Helper()
	events, _, err := fx.log.Search(context.Background(), authstore.AuditQuery{Category: kind, Limit: auth.MaxPage})
	must.Succeed(fx.t, err)
	return events
}

// riskFactors returns the factors of the latest risk evaluation.
func (fx *fixture) riskFactors() audit.Details {
	fx.t.Helper()
	factors := fx.findEvents(audit.RiskEvaluation)[0].Details.Inner("factors")
	if factors == nil {
		fx.t.Fatal("the event has no factors")
	}
	return factors
}

// confirmDevice confirms the device of a session as a step-up does, and returns a token of the
// device.
func (fx *fixture) confirmDevice(id auth.SessionID, marks ...auth.TrustStatus) auth.DeviceSecret {
	fx.t.Helper()
	ctx := context.Background()
	device := fx.getSession(id).DeviceID
	err := fx.ports.Devices.Update(ctx, device, func(d *auth.Device) error {
		d.Confirmed = true
		for _, mark := range marks {
			d.TrustStatus = mark
		}
		return nil
	})
	must.Succeed(fx.t, err)
	var random [32]byte
	fx.entropy.Fill(random[:])
	token := auth.NewSecret[auth.DeviceSecret](random)
	err = fx.ports.DeviceTokens.Add(ctx, auth.DeviceToken{
		Hash: auth.HashSecret(token), DeviceID: device, IssuedAt: fx.clock.Now(),
	}, 5)
	must.Succeed(fx.t, err)
	return token
}

func withDeviceToken(token auth.DeviceSecret) func(*signin.Login) {
	return func(in *signin.Login) { in.DeviceToken = token }
}

func wantFault(t *testing.T, what string, err error, kind fault.Kind, code fault.Code) {
	t.Helper()
	if f, ok := fault.As(err); !ok || f.Kind != kind || f.Code != code {
		t.Errorf("%s: %v, want a fault of kind %s and code %q", what, err, kind, code)
	}
}

// auditText returns all events of the audit log as JSON.
func (fx *fixture) auditText() string {
	fx.t.Helper()
	text, err := json.Marshal(fx.findEvents(""))
	must.Succeed(fx.t, err)
	return string(text)
}

// wantEqual checks that both are deeply equal.
func wantEqual[V any](t *testing.T, got, want V, what string, args ...any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf(what+": got %v, want %v", append(args, got, want)...)
	}
}
