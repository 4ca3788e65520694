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
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/identity"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/sessioncache"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fakedb"
)

// remote answers for every provider but hung, which answers when released is closed.
type remote struct {
	identity.Providers

	hung, good atomic.Int32
	released   chan struct{}
}

func (r *remote) Refresh(_ context.Context, c identity.Client, _ string) (identity.Tokens, error) {
	if c.Name == "hung" {
		r.hung.Add(1)
		<-r.released
	} else {
		r.good.Add(1)
	}
	return identity.Tokens{}, nil
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

// TestHungProviderDelaysNoOther checks that the sessions of a provider are checked again and again while
// another one, with more sessions than are checked at once, does not answer.
func TestHungProviderDelaysNoOther(t *testing.T) {
	db, clk := fakedb.New(), clocktest.NewManual(time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC))
	r, waiter := &remote{released: make(chan struct{})}, make(ticks)
	ports := Ports{
		Providers: fakedb.NewProviders(db), Identities: fakedb.NewIdentities(db), Logins: fakedb.NewLogins(db),
		Sessions: fakedb.NewSessions(db), Directory: fakedb.NewDirectory(db), Transactions: db, Remote: r,
		Sealer: plainSealer{}, Cache: noCache{}, Waiter: waiter, Clock: clk, Root: auth.RootSecret(strings.Repeat("r", 32)),
	}
	s, err := New(Config{SessionTTL: 24 * time.Hour, SessionMaxAge: 24 * time.Hour}, ports)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(err)
	must(fakedb.NewAccounts(db).Create(t.Context(), auth.Account{ID: "ada", Email: "ada@example.com", State: auth.AccountActive}))
	must(ports.Identities.Add(t.Context(), company.Identity{ID: "i", UserID: "ada"}))
	_, _, err = fakedb.NewDevices(db).Ensure(t.Context(), auth.Device{ID: "d", UserID: "ada", Identity: "d"})
	must(err)
	now := clk.Now()
	for n := range recheckBatch + 5 {
		l := company.Login{
			ID: company.LoginID(fmt.Sprint("l", n)), SessionID: auth.SessionID(fmt.Sprint("s", n)), IdentityID: "i", Provider: "hung",
			Refresh: auth.SealedSecret("nonce token"), AnsweredAt: now, RecheckAt: now.Add(-time.Minute),
		}
		if n == 0 {
			l.Provider, l.RecheckAt = "good", now // the last one to be found
		}
		must(ports.Sessions.Create(t.Context(), auth.Session{
			ID: l.SessionID, UserID: "ada", DeviceID: "d", CreatedAt: now, ExpiresAt: now.Add(time.Hour), MaxExpiresAt: now.Add(time.Hour),
		}))
		must(ports.Logins.Add(t.Context(), l))
	}
	for _, name := range []company.Name{"hung", "good"} {
		must(ports.Providers.Save(t.Context(), company.Provider{Name: name, Issuer: "https://" + string(name), MaxSession: time.Hour}))
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); s.Run(ctx) }()
	await.Until(t, "the good provider is asked three times", func() bool {
		select {
		case waiter <- struct{}{}:
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
