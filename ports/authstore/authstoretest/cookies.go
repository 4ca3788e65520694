package authstoretest

import (
	"context"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore/authstoretest/recordtest"
)

// runCookies tests the store of session cookies.
func runCookies(t *testing.T, open func(t *testing.T) Stores) {
	t.Helper()
	testCases(t, func(t *testing.T) Stores {
		s := open(t)
		createParents(t, s)
		create(t, s, Living(0, 1), Living(0, 2))
		return s
	}, map[string]func(t *testing.T, s Stores){
		"a stored cookie has the value of every field":         cookieKeepsEveryField,
		"a cookie that does not exist is not found":            cookieNotFound,
		"a session has at most one cookie":                     cookieIsOnlyOne,
		"a replaced cookie is not found, and the new one is":   cookieReplaces,
		"one of several parallel replacements succeeds":        cookieReplacedOnce,
		"a failed transaction stores no cookie":                cookieRollsBack,
		"the cookie of an ended session is deleted":            cookieEndsWithSession,
		"a call with a cancelled context fails":                cookieHeedsCancel,
		"a cookie cannot replace that of another session":      cookieOfAnotherSession,
		"a cookie of a session that does not exist is refused": cookieWithoutSession,
	})
}

func cookie(s auth.Session, n byte) auth.SessionCookie {
	return auth.SessionCookie{
		Hash: auth.TokenHash{0xfe, 0, '\'', 31: n}, SessionID: s.ID, UserID: s.UserID, TrustLevel: auth.LimitedTrust,
		IssuedAt: s.CreatedAt,
	}
}

func cookieKeepsEveryField(t *testing.T, s Stores) {
	want := cookie(Living(0, 1), 1)
	recordtest.Whole(t, want)
	recordtest.OK(t, s.Cookies.Add(t.Context(), want))
	recordtest.OK(t, s.Cookies.Add(t.Context(), cookie(Living(0, 2), 2)))
	recordtest.Equal(t, recordtest.Must(s.Cookies.Find(t.Context(), want.Hash))(t), want)
}

func cookieNotFound(t *testing.T, s Stores) {
	recordtest.OK(t, s.Cookies.Add(t.Context(), cookie(Living(0, 1), 1)))
	recordtest.WantNotFound(t, map[string]func() error{
		"Find":    func() error { _, err := s.Cookies.Find(t.Context(), auth.TokenHash{1}); return err },
		"Replace": func() error { return s.Cookies.Replace(t.Context(), auth.TokenHash{1}, cookie(Living(0, 1), 2)) },
	})
}

func cookieIsOnlyOne(t *testing.T, s Stores) {
	first := cookie(Living(0, 1), 1)
	recordtest.OK(t, s.Cookies.Add(t.Context(), first))
	if err := s.Cookies.Add(t.Context(), cookie(Living(0, 1), 2)); !fault.Is(err, fault.Conflict) {
		t.Errorf("Add of a second cookie returned %v", err)
	}
	recordtest.Equal(t, recordtest.Must(s.Cookies.Find(t.Context(), first.Hash))(t), first)
}

func cookieReplaces(t *testing.T, s Stores) {
	old, other := cookie(Living(0, 1), 1), cookie(Living(0, 2), 2)
	recordtest.OK(t, s.Cookies.Add(t.Context(), old))
	recordtest.OK(t, s.Cookies.Add(t.Context(), other))
	next := auth.SessionCookie{
		Hash: auth.TokenHash{3}, SessionID: old.SessionID, UserID: old.UserID, TrustLevel: auth.FullTrust,
		IssuedAt: old.IssuedAt.Add(time.Hour),
	}
	recordtest.OK(t, s.Cookies.Replace(t.Context(), old.Hash, next))
	recordtest.Equal(t, recordtest.Must(s.Cookies.Find(t.Context(), next.Hash))(t), next)
	recordtest.Equal(t, recordtest.Must(s.Cookies.Find(t.Context(), other.Hash))(t), other)
	recordtest.WantNotFound(t, map[string]func() error{
		"Find of the old one": func() error { _, err := s.Cookies.Find(t.Context(), old.Hash); return err },
		"Replace of the old one": func() error {
			return s.Cookies.Replace(t.Context(), old.Hash, cookie(Living(0, 1), 4))
		},
	})
}

func cookieReplacedOnce(t *testing.T, s Stores) {
	old := cookie(Living(0, 1), 0)
	recordtest.OK(t, s.Cookies.Add(t.Context(), old))
	recordtest.WantOne(t, recordtest.Parallel(10, func(i int) error {
		return s.Cookies.Replace(t.Context(), old.Hash, cookie(Living(0, 1), byte(i+1)))
	}), fault.NotFound)
}

func cookieOfAnotherSession(t *testing.T, s Stores) {
	old := cookie(Living(0, 1), 1)
	recordtest.OK(t, s.Cookies.Add(t.Context(), old))
	recordtest.WantNotFound(t, map[string]func() error{
		"Replace": func() error { return s.Cookies.Replace(t.Context(), old.Hash, cookie(Living(0, 2), 2)) },
	})
	recordtest.Equal(t, recordtest.Must(s.Cookies.Find(t.Context(), old.Hash))(t), old)
}

func cookieWithoutSession(t *testing.T, s Stores) {
	if err := s.Cookies.Add(t.Context(), cookie(Living(1, 3), 1)); err == nil {
		t.Error("Add for an unknown session succeeded")
	}
}

func cookieRollsBack(t *testing.T, s Stores) {
	old, next := cookie(Living(0, 1), 1), cookie(Living(0, 1), 2)
	recordtest.OK(t, s.Cookies.Add(t.Context(), old))
	recordtest.RollBack(t, s.Runner, func(ctx context.Context) error { return s.Cookies.Replace(ctx, old.Hash, next) })
	recordtest.Equal(t, recordtest.Must(s.Cookies.Find(t.Context(), old.Hash))(t), old)
}

func cookieEndsWithSession(t *testing.T, s Stores) {
	gone := Living(0, 1)
	c := cookie(gone, 1)
	recordtest.OK(t, s.Cookies.Add(t.Context(), c))
	if n, err := s.Sessions.DeleteExpired(t.Context(), gone.MaxExpiresAt.Add(24*time.Hour)); err != nil || n < 1 {
		t.Fatalf("DeleteExpired = %d, %v", n, err)
	}
	recordtest.WantNotFound(t, map[string]func() error{
		"Find": func() error { _, err := s.Cookies.Find(t.Context(), c.Hash); return err },
	})
}

func cookieHeedsCancel(t *testing.T, s Stores) {
	c := cookie(Living(0, 1), 1)
	recordtest.OK(t, s.Cookies.Add(t.Context(), c))
	recordtest.WantCancelled(t, map[string]func(ctx context.Context) error{
		"Add":     func(ctx context.Context) error { return s.Cookies.Add(ctx, cookie(Living(0, 2), 2)) },
		"Find":    func(ctx context.Context) error { _, err := s.Cookies.Find(ctx, c.Hash); return err },
		"Replace": func(ctx context.Context) error { return s.Cookies.Replace(ctx, c.Hash, cookie(Living(0, 1), 3)) },
	})
	recordtest.Equal(t, recordtest.Must(s.Cookies.Find(t.Context(), c.Hash))(t), c)
}
