package joining_test

import (
	"context"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/argon"
	"github.com/tollgate-dev/tollgate/adapters/inprocess"
	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/authtest"
	"github.com/tollgate-dev/tollgate/core/auth/joining"
	"github.com/tollgate-dev/tollgate/core/auth/people"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
	"github.com/tollgate-dev/tollgate/core/auth/signin"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/courier"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/secrets/secretstest"
	"github.com/tollgate-dev/tollgate/ports/throttle"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

const (
	olga  = auth.Email("olga@example.com")
	ivy   = auth.Email("ivy@example.com")
	first = "Right Horse 9!"
	next  = "Left Horse 8!"
)

// letters is a courier that keeps the messages.
type letters struct {
	mu       sync.Mutex
	messages []courier.Message
	err      error
}

func (l *letters) Deliver(_ context.Context, m courier.Message) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := m.Validate(); err != nil {
		return err
	}
	if l.err == nil {
		l.messages = append(l.messages, m)
	}
	return l.err
}

// count is a throttle that admits a number of tries of each key, and fails if it has an error.
type count struct {
	mu    sync.Mutex
	most  int
	tries map[string]int
	err   error
}

func (c *count) Try(_ context.Context, scope throttle.Scope, key string) (throttle.Verdict, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tries[string(scope)+" "+key]++
	return throttle.Verdict{Allowed: c.tries[string(scope)+" "+key] <= c.most}, c.err
}

func (*count) GiveBack(context.Context, throttle.Scope, string, throttle.Verdict) error { return nil }

// reports keeps what is reported.
type reports chan any

func (r reports) Report(event any) { r <- event }

// unsigned makes access tokens that no one checks.
type unsigned struct{}

func (unsigned) Sign(_ context.Context, c secrets.TokenClaims) (auth.AccessToken, error) {
	return auth.AccessToken(c.SessionID), nil
}

// noSignals knows nothing of an address.
type noSignals struct{}

func (noSignals) Locate(context.Context, netip.Addr) risk.Location { return risk.Location{} }
func (noSignals) Rate(context.Context, netip.Addr) risk.Reputation { return risk.Reputation{} }

// gatedHasher holds back each hash until as many are wanted at once as its gate counts.
type gatedHasher struct {
	*argon.Hasher

	gate *sync.WaitGroup // nil for none
}

func (h *gatedHasher) Hash(ctx context.Context, p auth.Password) (auth.PasswordHash, error) {
	if h.gate != nil {
		h.gate.Done()
		h.gate.Wait()
	}
	return h.Hasher.Hash(ctx, p)
}

type fixture struct {
	t        *testing.T
	hasher   *gatedHasher
	service  *joining.Service
	people   *people.Service
	ports    joining.Ports
	stores   signin.Ports
	clock    *clocktest.Manual
	mail     *letters
	throttle *count
	reports  reports
	cache    *memory.Sessions
	grants   authority.Granter
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	db, entropy := fakedb.New(), &secretstest.Entropy{}
	fx := &fixture{
		t: t, clock: clocktest.NewManual(time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)), mail: &letters{},
		throttle: &count{most: 3, tries: map[string]int{}}, reports: make(reports, 100),
		stores: signin.Ports{
			Accounts: fakedb.NewAccounts(db), Devices: fakedb.NewDevices(db), DeviceTokens: fakedb.NewDeviceTokens(db),
			Sessions: fakedb.NewSessions(db), RefreshTokens: fakedb.NewRefreshTokens(db), History: fakedb.NewSessions(db),
			Lockouts: fakedb.NewLockouts(db), Pending: fakedb.NewPendingLogins(db), Transaction: db,
			Counts: fakedb.NewHistory(db), Deferrals: fakedb.NewHistory(db),
			Providers: fakedb.NewProviders(db), Logins: fakedb.NewLogins(db), Tokens: unsigned{},
			Root: auth.RootSecret(strings.Repeat("r", 32)), Geography: noSignals{}, Reputation: noSignals{}, Entropy: entropy,
		},
	}
	hashes, err := argon.New(argon.Config{MemoryKiB: 64, Iterations: 1, Parallelism: 1, Queue: 64}, entropy)
	fx.mustSucceed(err)
	fx.hasher = &gatedHasher{Hasher: hashes}
	fx.cache = memory.NewSessions(fx.clock, memory.Config{MaxSessions: 10})
	trail := auditing.New(fakedb.NewAuditLog(db), fx.clock, entropy)
	fx.grants = inprocess.NewGranter(delegating.NewGrantOperator(delegating.GrantPorts{
		Transactions: db, Grants: fakedb.NewGrants(db), Operators: fakedb.NewDirectory(db), Recorder: trail,
	}))
	p := &fx.stores
	p.Passwords, p.Cache, p.Trail, p.Clock, p.Grants = fx.hasher, fx.cache, trail, fx.clock, fx.grants
	signIn, err := signin.New(authtest.SignIn(), fx.stores)
	fx.mustSucceed(err)
	fx.people, err = people.New(people.Config{
		InvitationTTL: 72 * time.Hour, Console: "https://tools.example.com/console/", Product: "Tools",
	}, people.Ports{
		Accounts: p.Accounts, Devices: p.Devices, Sessions: p.Sessions, Lockouts: p.Lockouts, Pending: p.Pending,
		Links: fakedb.NewLinks(db), Directory: fakedb.NewDirectory(db), Operators: fakedb.NewDirectory(db), Transaction: db,
		Grants: fx.grants, Passwords: fx.hasher, Mail: people.Mail{Courier: fx.mail}, Cache: fx.cache, Trail: trail,
		Clock: fx.clock, Entropy: entropy, Root: p.Root,
	})
	fx.mustSucceed(err)
	fx.ports = joining.Ports{
		Accounts: p.Accounts, Links: fakedb.NewLinks(db), Transaction: db, People: fx.people, SignIn: signIn,
		Cache: fx.cache, Throttle: fx.throttle, Reporter: fx.reports, Clock: fx.clock,
	}
	fx.service = joining.New(fx.ports)
	return fx
}

func (fx *fixture) mustSucceed(err error) {
	fx.t.Helper()
	must.Succeed(fx.t, err)
}

func (fx *fixture) newPassword(s string) auth.Password {
	fx.t.Helper()
	p, err := auth.NewPassword("password", s)
	fx.mustSucceed(err)
	return p
}

// origin is a browser of its own name.
func (fx *fixture) origin(agent string) signin.Origin {
	fx.t.Helper()
	d, err := auth.NewDeviceInfo(auth.DeviceFields{
		UserAgent: agent, ScreenResolution: "1920x1080", Timezone: "Europe/Berlin", Language: "de-DE",
	})
	fx.mustSucceed(err)
	return signin.Origin{Device: d, Address: netip.MustParseAddr("203.0.113.7")}
}

// secretOf returns the secret of a link to a page.
func (fx *fixture) secretOf(l people.Link, page string) auth.LinkSecret {
	fx.t.Helper()
	secret, ok := strings.CutPrefix(l.URL, "https://tools.example.com/console/"+page+"?code=")
	if !ok || len(secret) != 43 { // 256 bits in base64
		fx.t.Fatalf("the link leads to %s", l.URL)
	}
	return auth.LinkSecret(secret)
}

func (fx *fixture) setupCode() auth.LinkSecret {
	fx.t.Helper()
	l, err := fx.people.MakeSetupLink(context.Background())
	fx.mustSucceed(err)
	return fx.secretOf(l, "setup")
}

func (fx *fixture) setUp(code auth.LinkSecret, email auth.Email) (signin.Result, error) {
	return fx.service.SetUp(context.Background(), code, people.Person{
		Email: email, Name: "Olga", Password: fx.newPassword(first),
	}, fx.origin("Firefox"))
}

// invite invites a person, and returns the secret of the invitation.
func (fx *fixture) invite(email auth.Email) auth.LinkSecret {
	fx.t.Helper()
	_, l, err := fx.people.Invite(context.Background(), people.Invitation{Email: email, Name: "Ivy"})
	fx.mustSucceed(err)
	return fx.secretOf(l, "invitation")
}

// join invites a person, who accepts.
func (fx *fixture) join(email auth.Email) signin.Result {
	fx.t.Helper()
	r, err := fx.service.Accept(context.Background(), fx.invite(email), fx.newPassword(first), fx.origin("Firefox"))
	fx.mustSucceed(err)
	return r
}

// resetSecret makes a link to set another password.
func (fx *fixture) resetSecret(email auth.Email) auth.LinkSecret {
	fx.t.Helper()
	l, err := fx.people.MakeResetLink(context.Background(), email)
	fx.mustSucceed(err)
	return fx.secretOf(l, "reset-password")
}

// canSignIn reports whether a password is that of a person.
func (fx *fixture) canSignIn(email auth.Email, password string) bool {
	fx.t.Helper()
	_, err := fx.ports.SignIn.Login(context.Background(), signin.Login{
		Email: email, Password: fx.newPassword(password), Origin: fx.origin("Firefox"),
	})
	if err != nil && !fault.Is(err, fault.Unauthenticated) {
		fx.t.Fatal(err)
	}
	return err == nil
}

// wantTrusted checks that a session is at full trust, on a device that is confirmed.
func (fx *fixture) wantTrusted(r signin.Result) {
	fx.t.Helper()
	s, err := fx.stores.Sessions.Get(context.Background(), r.SessionID)
	fx.mustSucceed(err)
	d, err := fx.stores.Devices.Get(context.Background(), s.DeviceID)
	fx.mustSucceed(err)
	if r.TrustLevel != auth.FullTrust || s.TrustLevel != auth.FullTrust || !d.Confirmed || r.MFARequired {
		fx.t.Errorf("the session %+v is at %s, the device is confirmed: %t", r, s.TrustLevel, d.Confirmed)
	}
}

// runAtOnce calls a function several times at once, and returns how many calls succeeded. Each must
// hash a password, before which all have found the link. Others must return fault.NotFound.
func (fx *fixture) runAtOnce(do func(n int) error) (succeeded int) {
	fx.t.Helper()
	var group sync.WaitGroup
	errs := make([]error, 4)
	fx.hasher.gate = &sync.WaitGroup{}
	fx.hasher.gate.Add(len(errs))
	for i := range errs {
		group.Go(func() { errs[i] = do(i) })
	}
	group.Wait()
	fx.hasher.gate = nil
	for _, err := range errs {
		switch {
		case err == nil:
			succeeded++
		case !fault.Is(err, fault.NotFound):
			fx.t.Errorf("error %v, want fault.NotFound", err)
		}
	}
	return succeeded
}

// wantFault checks that err is a fault of the kind.
func wantFault(t testing.TB, err error, kind fault.Kind, what string, args ...any) {
	t.Helper()
	if !fault.Is(err, kind) {
		t.Errorf(what+": %v, want a fault of kind %s", append(args, err, kind)...)
	}
}
