package authstoretest

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/scope"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/authstore/authstoretest/recordtest"
)

// APITokens are the ports that one adapter implements over its tokens.
type APITokens interface {
	authstore.APITokens
	authstore.APITokenExpiry
}

func runAPITokens(t *testing.T, open func(t *testing.T) Stores) {
	testCases(t, withAccounts(open), map[string]func(t *testing.T, s Stores){
		"a token is found by its hash, with all fields, while its owner is active": findsAPITokens,
		"the tokens of an owner are listed by id, without those of workloads":      listsAPITokens,
		"parallel calls do not exceed the number of tokens of an owner":            boundsAPITokens,
		"a removed token is not found, and one of another owner is not removed":    removesAPITokens,
		"a later use is stored, an earlier one is not":                             storesUses,
		"one of several parallel calls announces the end of a token":               announcesOnce,
		"expired tokens are deleted":                                               deletesExpiredAPITokens,
		"a failed transaction stores no token":                                     apiTokensRollBack,
		"a call with a cancelled context fails":                                    refusesCancelledAPITokens,
	})
}

const robot = "robot-1"

func personOwner(n int) auth.Owner { return auth.Owner(Account(n).ID) }

// apiToken returns a token of an owner with every field.
func apiToken(o auth.Owner, n int) auth.APIToken {
	return auth.APIToken{
		ID: recordtest.UUID[auth.APITokenID](n), Hash: auth.TokenHash{0xff, 0, '\'', byte(n), 31: byte(n >> 8)}, Owner: o,
		Name: "Ada's \"é\" token", Prefix: "tgp_01234567", Scopes: scope.Set{scope.Admin, scope.Read},
		Networks:  []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::/32")},
		CreatedBy: personOwner(1), CreatedAt: recordtest.Epoch(), ExpiresAt: recordtest.Epoch().Add(time.Hour),
		NoticeAt: recordtest.Epoch().Add(time.Minute), LastUsedAt: recordtest.Epoch().Add(time.Second),
		LastUsedFrom: netip.MustParseAddr("2001:db8::1"),
	}
}

// activate makes the account of a number active.
func activate(t *testing.T, s Stores, state auth.AccountState) {
	recordtest.OK(t, s.Accounts.Update(t.Context(), Account(0).ID, func(a *auth.Account) error {
		a.State = state
		return nil
	}))
}

func findsAPITokens(t *testing.T, s Stores) {
	s.AddService(t, robot, true)
	s.AddService(t, "robot-2", false)
	person, service := apiToken(personOwner(0), 1), apiToken(auth.ServiceOwner(robot), 2)
	service.Workload = true
	recordtest.Whole(t, service)
	stopped := apiToken(auth.ServiceOwner("robot-2"), 3)
	bare := auth.APIToken{
		ID: recordtest.UUID[auth.APITokenID](4), Hash: auth.TokenHash{4}, Owner: personOwner(0), CreatedAt: recordtest.Epoch(),
		ExpiresAt: recordtest.Epoch(),
	}
	for _, token := range []auth.APIToken{person, service, stopped, bare} {
		recordtest.OK(t, s.APITokens.Add(t.Context(), token))
	}
	activate(t, s, auth.AccountActive)
	for _, want := range []auth.APIToken{person, service, bare} {
		recordtest.Equal(t, recordtest.Must(s.APITokens.Find(t.Context(), want.Hash))(t), want)
	}
	find := func(of auth.APIToken) func() error {
		return func() error { _, err := s.APITokens.Find(t.Context(), of.Hash); return err }
	}
	recordtest.WantNotFound(t, map[string]func() error{
		"of a service account that is disabled": find(stopped), "unknown": find(auth.APIToken{Hash: auth.TokenHash{9}}),
	})
	for _, state := range []auth.AccountState{auth.AccountLocked, auth.AccountDisabled} {
		activate(t, s, state)
		recordtest.WantNotFound(t, map[string]func() error{"of a person who is " + string(state): find(person)})
	}
}

func listsAPITokens(t *testing.T, s Stores) {
	s.AddService(t, robot, true)
	owner := auth.ServiceOwner(robot)
	workload := apiToken(owner, 9)
	workload.Workload = true
	for _, token := range []auth.APIToken{
		apiToken(owner, 3), apiToken(owner, 1), apiToken(owner, 2), apiToken(personOwner(0), 4), workload,
	} {
		recordtest.OK(t, s.APITokens.Add(t.Context(), token))
	}
	first := recordtest.Must(s.APITokens.Of(t.Context(), owner, "", 2))(t)
	recordtest.Equal(t, first, []auth.APIToken{apiToken(owner, 1), apiToken(owner, 2)})
	rest := recordtest.Must(s.APITokens.Of(t.Context(), owner, first[1].ID, 2))(t)
	recordtest.Equal(t, rest, []auth.APIToken{apiToken(owner, 3)})
	recordtest.Equal(t, len(recordtest.Must(s.APITokens.Of(t.Context(), personOwner(1), "", 2))(t)), 0)
}

func boundsAPITokens(t *testing.T, s Stores) {
	owner := personOwner(0)
	recordtest.WantNotFound(t, map[string]func() error{"Add without an owner": func() error {
		return s.APITokens.Add(t.Context(), apiToken(auth.ServiceOwner("nobody"), 1))
	}})
	expired := apiToken(owner, 500)
	expired.ExpiresAt = expired.CreatedAt
	recordtest.OK(t, s.APITokens.Add(t.Context(), expired))
	added := 0
	for _, err := range recordtest.Parallel(owner.MaxTokens()+5, func(i int) error {
		return s.APITokens.Add(t.Context(), apiToken(owner, i))
	}) {
		switch {
		case err == nil:
			added++
		case !fault.Is(err, fault.Conflict):
			t.Errorf("Add of one too many: %v, want fault.Conflict", err)
		}
	}
	if added != owner.MaxTokens() {
		t.Errorf("%d tokens were added, want %d", added, owner.MaxTokens())
	}
	recordtest.OK(t, s.APITokens.Add(t.Context(), apiToken(personOwner(1), 501)))
	workload := apiToken(owner, 502)
	workload.Workload = true
	recordtest.OK(t, s.APITokens.Add(t.Context(), workload))
}

func removesAPITokens(t *testing.T, s Stores) {
	activate(t, s, auth.AccountActive)
	want := apiToken(personOwner(0), 1)
	recordtest.OK(t, s.APITokens.Add(t.Context(), want))
	remove := func(owner auth.Owner, id auth.APITokenID) func() error {
		return func() error { _, err := s.APITokens.Remove(t.Context(), owner, id); return err }
	}
	recordtest.WantNotFound(t, map[string]func() error{
		"of another person":     remove(personOwner(1), want.ID),
		"of a service account":  remove(auth.ServiceOwner(robot), want.ID),
		"a token of another id": remove(personOwner(0), "no id"),
	})
	recordtest.Equal(t, recordtest.Must(s.APITokens.Remove(t.Context(), want.Owner, want.ID))(t), want)
	recordtest.WantNotFound(t, map[string]func() error{
		"again": remove(want.Owner, want.ID),
		"Find":  func() error { _, err := s.APITokens.Find(t.Context(), want.Hash); return err },
	})
}

func storesUses(t *testing.T, s Stores) {
	activate(t, s, auth.AccountActive)
	token := apiToken(personOwner(0), 1)
	token.LastUsedAt, token.LastUsedFrom = time.Time{}, netip.Addr{}
	recordtest.OK(t, s.APITokens.Add(t.Context(), token))
	for _, minute := range []int{2, 1, 3} {
		use := token
		use.LastUsedAt = recordtest.Epoch().Add(time.Duration(minute) * time.Minute)
		use.LastUsedFrom = netip.AddrFrom4([4]byte{192, 0, 2, byte(minute)})
		recordtest.OK(t, s.APITokens.Use(t.Context(), use))
		found := recordtest.Must(s.APITokens.Find(t.Context(), token.Hash))(t)
		if minute == 1 {
			minute = 2
		}
		recordtest.Equal(t, found.LastUsedAt, recordtest.Epoch().Add(time.Duration(minute)*time.Minute))
		recordtest.Equal(t, found.LastUsedFrom, netip.AddrFrom4([4]byte{192, 0, 2, byte(minute)}))
	}
	recordtest.OK(t, s.APITokens.Use(t.Context(), apiToken(personOwner(0), 2))) // which is gone
}

func announcesOnce(t *testing.T, s Stores) {
	token, never := apiToken(personOwner(0), 1), apiToken(personOwner(0), 2)
	never.NoticeAt = time.Time{}
	later := apiToken(personOwner(0), 3)
	later.NoticeAt = token.NoticeAt.Add(time.Microsecond)
	for _, one := range []auth.APIToken{token, never, later} {
		recordtest.OK(t, s.APITokens.Add(t.Context(), one))
	}
	due := func(now time.Time, limit int) []auth.APIToken {
		return recordtest.Must(s.APITokens.Due(t.Context(), now, limit))(t)
	}
	recordtest.Equal(t, len(due(token.NoticeAt.Add(-time.Microsecond), 9)), 0)
	recordtest.Equal(t, due(token.NoticeAt, 9), []auth.APIToken{token})
	recordtest.Equal(t, due(later.NoticeAt, 9), []auth.APIToken{token, later})
	recordtest.Equal(t, due(later.NoticeAt, 1), []auth.APIToken{token})
	next := token.NoticeAt.Add(time.Hour)
	recordtest.WantOne(t, recordtest.Parallel(4, func(int) error {
		return s.APITokens.MoveNotice(t.Context(), token.ID, token.NoticeAt, next)
	}), fault.Conflict)
	recordtest.OK(t, s.APITokens.MoveNotice(t.Context(), token.ID, next, time.Time{}))
	recordtest.Equal(t, due(next, 9), []auth.APIToken{later})
}

func deletesExpiredAPITokens(t *testing.T, s Stores) {
	token := apiToken(personOwner(0), 1)
	recordtest.OK(t, s.APITokens.Add(t.Context(), token))
	recordtest.Equal(t, recordtest.Must(s.APITokens.DeleteExpired(t.Context(), token.ExpiresAt))(t), 0)
	recordtest.Equal(t, recordtest.Must(s.APITokens.DeleteExpired(t.Context(),
		token.ExpiresAt.Add(time.Microsecond)))(t), 1)
	recordtest.Equal(t, len(recordtest.Must(s.APITokens.Of(t.Context(), token.Owner, "", 9))(t)), 0)
}

func apiTokensRollBack(t *testing.T, s Stores) {
	recordtest.RollBack(t, s.Runner, func(ctx context.Context) error {
		return s.APITokens.Add(ctx, apiToken(personOwner(0), 1))
	})
	recordtest.Equal(t, len(recordtest.Must(s.APITokens.Of(t.Context(), personOwner(0), "", 9))(t)), 0)
}

func refusesCancelledAPITokens(t *testing.T, s Stores) {
	token := apiToken(personOwner(0), 1)
	recordtest.WantCancelled(t, map[string]func(ctx context.Context) error{
		"Add":  func(ctx context.Context) error { return s.APITokens.Add(ctx, token) },
		"Find": func(ctx context.Context) error { _, err := s.APITokens.Find(ctx, token.Hash); return err },
		"Of":   func(ctx context.Context) error { _, err := s.APITokens.Of(ctx, token.Owner, "", 9); return err },
		"Remove": func(ctx context.Context) error {
			_, err := s.APITokens.Remove(ctx, token.Owner, token.ID)
			return err
		},
		"Use": func(ctx context.Context) error { return s.APITokens.Use(ctx, token) },
		"Due": func(ctx context.Context) error { _, err := s.APITokens.Due(ctx, token.NoticeAt, 9); return err },
		"MoveNotice": func(ctx context.Context) error {
			return s.APITokens.MoveNotice(ctx, token.ID, token.NoticeAt, time.Time{})
		},
		"DeleteExpired": func(ctx context.Context) error {
			_, err := s.APITokens.DeleteExpired(ctx, token.ExpiresAt)
			return err
		},
	})
}
