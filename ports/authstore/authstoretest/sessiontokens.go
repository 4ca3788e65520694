package authstoretest

import (
	"context"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore/authstoretest/recordtest"
)

// sessionToken returns an unspent token of a session.
func sessionToken(s auth.Session, n byte) auth.RefreshToken {
	return auth.RefreshToken{
		Hash: auth.TokenHash{0xff, 0, '\'', 31: n}, SessionID: s.ID,
		IssuedAt: s.CreatedAt, ExpiresAt: s.ExpiresAt,
	}
}

func tokensKeepEveryField(t *testing.T, s Stores) {
	session := Living(0, 1)
	create(t, s, session)
	want := sessionToken(session, 1)
	recordtest.OK(t, s.RefreshTokens.Add(t.Context(), want))
	recordtest.Equal(t, recordtest.Must(s.RefreshTokens.Find(t.Context(), want.Hash))(t), want)
	want.SpentAt = session.LastActivity
	recordtest.Whole(t, want)
	recordtest.OK(t, s.RefreshTokens.Spend(t.Context(), want.Hash, want.SpentAt))
	recordtest.Equal(t, recordtest.Must(s.RefreshTokens.Find(t.Context(), want.Hash))(t), want)
}

func tokensRoundTrip(t *testing.T, s Stores) {
	create(t, s, Living(0, 1), Living(0, 2))
	stored := map[auth.TokenHash]bool{}
	rapid.Check(t, func(r *rapid.T) {
		want := auth.RefreshToken{
			Hash: auth.TokenHash(rapid.SliceOfN(rapid.Byte(), 32, 32).
				Filter(func(b []byte) bool { return !stored[auth.TokenHash(b)] }).Draw(r, "hash")),
			SessionID: Living(0, rapid.IntRange(1, 2).Draw(r, "session")).ID,
			IssuedAt:  recordtest.Instant().Draw(r, "issued"), ExpiresAt: recordtest.Instant().Draw(r, "expires"),
		}
		stored[want.Hash] = true
		recordtest.OK(r, s.RefreshTokens.Add(t.Context(), want))
		recordtest.Equal(r, recordtest.Must(s.RefreshTokens.Find(t.Context(), want.Hash))(r), want)
		want.SpentAt = recordtest.Instant().Draw(r, "spent")
		recordtest.OK(r, s.RefreshTokens.Spend(t.Context(), want.Hash, want.SpentAt))
		recordtest.Equal(r, recordtest.Must(s.RefreshTokens.Find(t.Context(), want.Hash))(r), want)
	})
}

func spendsOnce(t *testing.T, s Stores) {
	session := Living(0, 1)
	create(t, s, session)
	want, other := sessionToken(session, 1), sessionToken(session, 2)
	recordtest.OK(t, s.RefreshTokens.Add(t.Context(), want))
	recordtest.OK(t, s.RefreshTokens.Add(t.Context(), other))
	want.SpentAt = session.LastActivity
	recordtest.OK(t, s.RefreshTokens.Spend(t.Context(), want.Hash, want.SpentAt))
	// A transaction may go on after a conflict.
	recordtest.OK(t, s.Runner.Atomically(t.Context(), func(ctx context.Context) error {
		if err := s.RefreshTokens.Spend(ctx, want.Hash, want.SpentAt.Add(time.Hour)); !fault.Is(err, fault.Conflict) {
			t.Errorf("Spend of a spent token returned %v", err)
		}
		return s.Sessions.Update(ctx, session.ID, func(p *auth.Session) error { p.RiskScore++; return nil })
	}))
	recordtest.Equal(t, recordtest.Must(s.RefreshTokens.Find(t.Context(), want.Hash))(t), want)
	recordtest.Equal(t, recordtest.Must(s.RefreshTokens.Find(t.Context(), other.Hash))(t), other)
	session.RiskScore++
	recordtest.Equal(t, recordtest.Must(s.Sessions.Get(t.Context(), session.ID))(t), session)
}

// spendsOnceInParallel: half of the calls are part of greater transactions, as a refresh is.
func spendsOnceInParallel(t *testing.T, s Stores) {
	session := Living(0, 1)
	create(t, s, session)
	spent := sessionToken(session, 0)
	recordtest.OK(t, s.RefreshTokens.Add(t.Context(), spent))
	errs := recordtest.Parallel(20, func(i int) error {
		if i%2 == 0 {
			return s.RefreshTokens.Spend(t.Context(), spent.Hash, session.LastActivity)
		}
		return s.Runner.Atomically(t.Context(), func(ctx context.Context) error {
			if err := s.RefreshTokens.Spend(ctx, spent.Hash, session.LastActivity); err != nil {
				return err
			}
			return s.RefreshTokens.Add(ctx, sessionToken(session, byte(i)))
		})
	})
	recordtest.WantOne(t, errs, fault.Conflict)
	for i := 1; i < len(errs); i += 2 {
		_, err := s.RefreshTokens.Find(t.Context(), sessionToken(session, byte(i)).Hash)
		if won := errs[i] == nil; won != (err == nil) {
			t.Errorf("call %d won: %v, and its successor was found: %v", i, won, err)
		}
	}
}

func sessionDeletesExpired(t *testing.T, s Stores) {
	at := Living(0, 1).ExpiresAt
	endedNow, endedLater := Living(0, 3), Living(0, 4)
	endedNow.EndedAt, endedLater.EndedAt = at, at.Add(time.Microsecond)
	expired, expiresLater := Living(0, 1), Living(0, 2)
	create(t, s, expired, expiresLater, endedNow, endedLater)
	for n, session := range []auth.Session{expired, expiresLater, endedNow, endedLater} {
		for generation := range 2 { // spent ones too
			of := sessionToken(session, byte(10*n+generation))
			recordtest.OK(t, s.RefreshTokens.Add(t.Context(), of))
			if generation == 0 {
				recordtest.OK(t, s.RefreshTokens.Spend(t.Context(), of.Hash, session.CreatedAt))
			}
		}
	}
	if n := recordtest.Must(s.RefreshTokens.DeleteExpired(t.Context(), at))(t); n != 4 {
		t.Errorf("DeleteExpired deleted %d tokens, want 4", n)
	}
	for n, session := range []auth.Session{expired, expiresLater, endedNow, endedLater} {
		_, err := s.RefreshTokens.Find(t.Context(), sessionToken(session, byte(10*n)).Hash)
		if kept := n == 1 || n == 3; kept != (err == nil) {
			t.Errorf("Find of the token of session %d returned %v", n+1, err)
		}
	}
	for _, want := range []int{0, 4} { // those that were there still go when their time has come
		if n := recordtest.Must(s.RefreshTokens.DeleteExpired(t.Context(), at))(t); n != want {
			t.Errorf("DeleteExpired deleted %d tokens, want %d", n, want)
		}
		at = expiresLater.ExpiresAt
	}
}

func deletesExpiredSessions(t *testing.T, s Stores) {
	at := Living(0, 3).ExpiresAt
	old, ended, edge, later := Living(0, 1), Session(1, 2), Living(0, 3), Session(0, 4)
	create(t, s, old, ended, edge, later)
	for n, session := range []auth.Session{old, ended, edge, later} {
		recordtest.OK(t, s.RefreshTokens.Add(t.Context(), sessionToken(session, byte(n))))
	}
	if n := recordtest.Must(s.Sessions.DeleteExpired(t.Context(), at))(t); n != 2 {
		t.Errorf("DeleteExpired deleted %d sessions, want 2", n)
	}
	for n, session := range []auth.Session{old, ended, edge, later} {
		_, err := s.Sessions.Get(t.Context(), session.ID)
		_, tokenErr := s.RefreshTokens.Find(t.Context(), sessionToken(session, byte(n)).Hash)
		if kept := n >= 2; kept != (err == nil) || kept != (tokenErr == nil) {
			t.Errorf("session %d: %v, its token: %v", n+1, err, tokenErr)
		}
	}
	if n := recordtest.Must(s.Sessions.DeleteExpired(t.Context(), at))(t); n != 0 {
		t.Errorf("DeleteExpired again deleted %d sessions", n)
	}
}

// keepsDevices checks that an unused device is kept as long as it has a session.
func keepsDevices(t *testing.T, s Stores) {
	session := Session(0, 1)
	create(t, s, session)
	recordtest.OK(t,
		s.Devices.Update(t.Context(), session.DeviceID, func(d *auth.Device) error { d.Revoked = true; return nil }))
	future := session.ExpiresAt.Add(time.Hour)
	recordtest.Must(s.Devices.DeleteUnused(t.Context(), future))(t)
	if _, err := s.Devices.Get(t.Context(), session.DeviceID); err != nil {
		t.Errorf("the device of a session after DeleteUnused: %v", err)
	}
	recordtest.Must(s.Sessions.DeleteExpired(t.Context(), future))(t)
	if n := recordtest.Must(s.Devices.DeleteUnused(t.Context(), future))(t); n != 1 {
		t.Errorf("DeleteUnused deleted %d devices, want 1", n)
	}
}

func sessionTokensRollBack(t *testing.T, s Stores) {
	session := Living(0, 1)
	create(t, s, session)
	first, second := sessionToken(session, 1), sessionToken(session, 2)
	recordtest.OK(t, s.RefreshTokens.Add(t.Context(), first))
	recordtest.RollBack(t, s.Runner, func(ctx context.Context) error {
		if err := s.RefreshTokens.Spend(ctx, first.Hash, session.LastActivity); err != nil {
			return err
		}
		return s.RefreshTokens.Add(ctx, second)
	})
	recordtest.Equal(t, recordtest.Must(s.RefreshTokens.Find(t.Context(), first.Hash))(t), first)
	if _, err := s.RefreshTokens.Find(t.Context(), second.Hash); !fault.Is(err, fault.NotFound) {
		t.Errorf("Find of a token that was rolled back returned %v", err)
	}
}
