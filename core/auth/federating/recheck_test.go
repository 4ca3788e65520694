package federating

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/identity"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/sessioncache"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

// remote answers for every provider but hung, which answers when released is closed.
type remote struct {
	identity.Providers

	hung, good atomic.Int32
	released   chan struct{}
	err        error
}

func (r *remote) Refresh(_ context.Context, c identity.Client, _ string) (identity.Tokens, error) {
	if c.Name == "hung" {
		r.hung.Add(1)
		<-r.released
	} else {
		r.good.Add(1)
	}
	return identity.Tokens{}, r.err
}

type plainSealer struct{ secrets.Sealer }

func (plainSealer) Open(s []byte, _ string) ([]byte, error) { return s, nil }

type noCache struct{ sessioncache.Cache }

func (noCache) Drop(context.Context, ...auth.SessionID) {}

// ticks is a waiter that the test lets go on.
type ticks chan struct{}

func (w ticks) Wait(ctx context.Context, _ time.Duration) bool {
	select {
	case <-w:
		return true
	case <-ctx.Done():
		return false
	}
}

// fixture is a service with the providers hung and good, and a person with an identity.
type fixture struct {
	t       *testing.T
	db      *fakedb.Database
	clock   *clocktest.Manual
	remote  *remote
	waiter  ticks
	ports   Ports
	service *Service
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	db, clk := fakedb.New(), clocktest.NewManual(time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC))
	fx := &fixture{t: t, db: db, clock: clk, remote: &remote{released: make(chan struct{})}, waiter: make(ticks)}
	fx.ports = Ports{
		Providers: fakedb.NewProviders(db), Identities: fakedb.NewIdentities(db), Logins: fakedb.NewLogins(db),
		Sessions: fakedb.NewSessions(db), Directory: fakedb.NewDirectory(db), Transactions: db, Remote: fx.remote,
		Sealer: plainSealer{}, Cache: noCache{}, Grants: &operators{}, Waiter: fx.waiter, Clock: clk, Root: auth.RootSecret(strings.Repeat("r", 32)),
	}
	var err error
	fx.service, err = New(Config{SessionTTL: 24 * time.Hour, SessionMaxAge: 24 * time.Hour}, fx.ports)
	fx.must(err)
	fx.must(fakedb.NewAccounts(db).Create(t.Context(), auth.Account{ID: "ada", Email: "ada@example.com", State: auth.AccountActive}))
	fx.must(fx.ports.Identities.Add(t.Context(), company.Identity{ID: "i", UserID: "ada"}))
	_, _, err = fakedb.NewDevices(db).Ensure(t.Context(), auth.Device{ID: "d", UserID: "ada", Identity: "d"})
	fx.must(err)
	for _, name := range []company.Name{"hung", "good"} {
		fx.must(fx.ports.Providers.Save(t.Context(), company.Provider{Name: name, Issuer: "https://" + string(name), MaxSession: time.Hour}))
	}
	return fx
}

func (fx *fixture) must(err error) {
	fx.t.Helper()
	must.Succeed(fx.t, err)
}

// signIn makes a session that came from a provider, which ends in an hour.
func (fx *fixture) signIn(name string, provider company.Name, due time.Time) {
	fx.t.Helper()
	now, session := fx.clock.Now(), auth.SessionID(name)
	fx.must(fx.ports.Sessions.Create(fx.t.Context(), auth.Session{
		ID: session, UserID: "ada", DeviceID: "d", CreatedAt: now, ExpiresAt: now.Add(time.Hour), MaxExpiresAt: now.Add(time.Hour),
	}))
	fx.must(fx.ports.Logins.Add(fx.t.Context(), company.Login{
		ID: company.LoginID(name), SessionID: session, IdentityID: "i", Provider: provider,
		Refresh: auth.SealedSecret("nonce token"), AnsweredAt: now, RecheckAt: due,
	}))
}

// login returns the login of a session.
func (fx *fixture) login(session auth.SessionID) company.Login {
	fx.t.Helper()
	found, err := fx.ports.Logins.Find(fx.t.Context(), authstore.LoginQuery{At: fx.clock.Now(), Session: session})
	fx.must(err)
	if len(found) != 1 {
		fx.t.Fatalf("session %s has the logins %v", session, found)
	}
	return found[0]
}

// TestHungProviderDelaysNoOther checks that the sessions of a provider are checked again and again while
// another one, with more sessions than are checked at once, does not answer.
func TestHungProviderDelaysNoOther(t *testing.T) {
	fx, now := newFixture(t), time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)
	fx.signIn("good", "good", now) // the last one to be found
	for n := range recheckBatch + 5 {
		fx.signIn(fmt.Sprint("hung ", n), "hung", now.Add(-time.Minute))
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); fx.service.Run(ctx) }()
	r := fx.remote
	await.Until(t, "the good provider is asked three times", func() bool {
		select {
		case fx.waiter <- struct{}{}:
		default:
		}
		return r.good.Load() >= 3 && r.hung.Load() >= recheckBatch
	})
	if n := r.hung.Load(); n != recheckBatch {
		t.Errorf("%d sessions wait for the hung provider, want %d", n, recheckBatch)
	}
	stop()
	close(r.released)
	await.Closed(t, "the checks end", ended)
}

// TestMaxSession checks that a session ends maxSession after the provider has last confirmed its person:
// checks without an answer do not prolong it, and do not end it sooner.
func TestMaxSession(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answers func(minute int) bool
		lasts   int // minutes
	}{
		"no answer":                        {func(int) bool { return false }, 60},
		"an answer after half an hour":     {func(minute int) bool { return minute == 30 }, 90},
		"answers, and then none any more":  {func(minute int) bool { return minute <= 20 }, 80},
		"an answer when it has ended":      {func(minute int) bool { return minute >= 60 }, 60},
		"an answer in the last minute":     {func(minute int) bool { return minute == 59 }, 119},
		"no answer after the first minute": {func(minute int) bool { return minute == 1 }, 61},
	} {
		fx := newFixture(t)
		fx.signIn("s", "good", fx.clock.Now())
		minute := 0
		for active := true; active; {
			minute++
			fx.clock.Advance(time.Minute)
			session, err := fx.ports.Sessions.Get(t.Context(), "s")
			fx.must(err)
			if active = session.Active(fx.clock.Now()); !active {
				break
			}
			if fx.remote.err = nil; !test.answers(minute) {
				fx.remote.err = fault.New(fault.Unavailable, company.ProblemAway)
			}
			c := &checks{service: fx.service}
			c.begin(t.Context())
			c.running.Wait()
		}
		if minute != test.lasts {
			t.Errorf("%s: the session lasts %d minutes, want %d", name, minute, test.lasts)
		}
	}
}
