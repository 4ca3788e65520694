package access_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/access"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

// countingTokens counts the calls of a store.
type countingTokens struct {
	authstore.APITokens
	finds, uses int
	useErr      error
}

func (c *countingTokens) Find(ctx context.Context, h auth.TokenHash) (auth.APIToken, error) {
	c.finds++
	return c.APITokens.Find(ctx, h)
}

func (c *countingTokens) Use(ctx context.Context, t auth.APIToken) error {
	c.uses++
	if c.useErr != nil {
		return c.useErr
	}
	return c.APITokens.Use(ctx, t)
}

type tokenFixture struct {
	checker  *access.Checker
	store    *countingTokens
	accounts *fakedb.Accounts
	clock    *clocktest.Manual
	token    auth.APIToken
	secret   auth.APISecret
	changes  uint64
}

var home = netip.MustParseAddr("192.0.2.7")

func newTokenFixture(t *testing.T) *tokenFixture {
	t.Helper()
	db := fakedb.New()
	fx := &tokenFixture{
		store: &countingTokens{APITokens: fakedb.NewAPITokens(db)}, accounts: fakedb.NewAccounts(db),
		clock: clocktest.NewManual(time.Date(2026, time.November, 21, 12, 0, 30, 0, time.UTC)),
	}
	fx.checker = access.NewChecker(testVerifier{}, fakedb.NewSessions(db), memory.NewSessions(fx.clock, memory.Config{}),
		fx.store, fx.clock, func() uint64 { return fx.changes }, nil)
	err := fx.accounts.Create(t.Context(), auth.Account{ID: user, Email: "a@b.c", State: auth.AccountActive})
	must.Succeed(t, err)
	fx.token, fx.secret = auth.APIToken{
		ID: "t", Owner: auth.Owner(user), CreatedAt: fx.clock.Now(), ExpiresAt: fx.clock.Now().Add(time.Hour),
		Networks: []netip.Prefix{netip.PrefixFrom(home, 24).Masked()},
	}.Issue([32]byte{1})
	must.Succeed(t, fx.store.Add(t.Context(), fx.token))
	return fx
}

func (fx *tokenFixture) identify(t *testing.T, secret auth.APISecret, from netip.Addr) (access.Identity, error) {
	t.Helper()
	return fx.checker.Identify(t.Context(), auth.AccessToken(secret), from)
}

// TestTokenIsIdentified checks to whom a token belongs, and that its use is stored once a minute.
func TestTokenIsIdentified(t *testing.T) {
	fx := newTokenFixture(t)
	for seconds, uses := range []int{1, 1, 2} {
		got, err := fx.identify(t, fx.secret, home)
		if err != nil || got.Token == nil || got.Token.ID != "t" || got.Token.Owner != auth.Owner(user) {
			t.Fatalf("Identify = %+v, %v", got, err)
		}
		if fx.store.uses != uses {
			t.Errorf("after %d calls the use was stored %d times, want %d", seconds+1, fx.store.uses, uses)
		}
		fx.clock.Advance(20 * time.Second)
	}
	found, err := fx.store.APITokens.Find(t.Context(), fx.token.Hash)
	want := time.Date(2026, time.November, 21, 12, 1, 0, 0, time.UTC)
	if err != nil || !found.LastUsedAt.Equal(want) || found.LastUsedFrom != home {
		t.Errorf("the last use is %s from %s, %v, want %s", found.LastUsedAt, found.LastUsedFrom, err, want)
	}
}

// TestRecentTokens checks that a copy of a token counts for less than a second, and not after a change by
// this process (R9).
func TestRecentTokens(t *testing.T) {
	fx := newTokenFixture(t)
	want := func(what string, ok bool) {
		t.Helper()
		got, err := fx.checker.IdentifyRecent(t.Context(), auth.AccessToken(fx.secret), home)
		if !ok {
			wantFault(t, what, err, auth.CodeInvalidToken)
		} else if err != nil || got.Token.ID != "t" {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
	set := func(state auth.AccountState) {
		t.Helper()
		must.Succeed(t, fx.accounts.Update(t.Context(), user, func(a *auth.Account) error { a.State = state; return nil }))
	}
	want("at first", true)
	set(auth.AccountLocked)
	want("locked by another process", true)
	fx.changes++
	want("locked by this one", false)
	set(auth.AccountActive)
	want("not locked any more", true)
	set(auth.AccountLocked)
	fx.clock.Advance(time.Second)
	want("locked a second ago", false)
}

// TestTokenThatCannotBeStored checks that a database that cannot be written does not refuse a token.
func TestTokenThatCannotBeStored(t *testing.T) {
	fx := newTokenFixture(t)
	fx.store.useErr = fault.New(fault.Unavailable, "read only")
	if _, err := fx.identify(t, fx.secret, home); err != nil {
		t.Error(err)
	}
	fx.store.useErr = fault.New(fault.Internal, "broken")
	if _, err := fx.identify(t, fx.secret, home); !fault.Is(err, fault.Internal) {
		t.Errorf("a store that is broken: %v", err)
	}
}

// TestTokensThatAreRefused checks the error of each.
func TestTokensThatAreRefused(t *testing.T) {
	fx := newTokenFixture(t)
	_, unknown := auth.APIToken{Owner: auth.Owner(user)}.Issue([32]byte{2})
	_, err := fx.identify(t, unknown, home)
	wantFault(t, "an unknown token", err, auth.CodeInvalidToken)
	_, err = fx.identify(t, fx.secret, netip.MustParseAddr("198.51.100.1"))
	wantFault(t, "from elsewhere", err, auth.CodeInvalidToken)
	for _, state := range []auth.AccountState{auth.AccountLocked, auth.AccountDisabled, auth.AccountActive} {
		err := fx.accounts.Update(t.Context(), user, func(a *auth.Account) error { a.State = state; return nil })
		must.Succeed(t, err)
		if _, err = fx.identify(t, fx.secret, home); state != auth.AccountActive {
			wantFault(t, "of a person who is "+string(state), err, auth.CodeInvalidToken)
		} else if err != nil {
			t.Errorf("of a person who is active again: %v", err)
		}
	}
	fx.clock.Advance(time.Hour)
	_, err = fx.identify(t, fx.secret, home)
	wantFault(t, "an expired token", err, auth.CodeTokenExpired)
	if _, err := fx.store.Remove(t.Context(), fx.token.Owner, fx.token.ID); err != nil {
		t.Fatal(err)
	}
	_, err = fx.identify(t, fx.secret, home)
	wantFault(t, "a removed token", err, auth.CodeInvalidToken)
}

// TestTokensWithoutAQuery checks that what was never issued is refused without a query, and that no
// token is a session.
func TestTokensWithoutAQuery(t *testing.T) {
	fx := newTokenFixture(t)
	for _, secret := range []auth.APISecret{"tgp_", fx.secret[:52], fx.secret + "0", "tgs_" + fx.secret[4:]} {
		_, err := fx.identify(t, secret, home)
		wantFault(t, "a malformed token", err, auth.CodeInvalidToken)
	}
	_, err := fx.checker.Check(t.Context(), auth.AccessToken(fx.secret))
	wantFault(t, "a token in place of a session", err, auth.CodeInvalidToken)
	if fx.store.finds != 0 {
		t.Errorf("%d queries", fx.store.finds)
	}
}
