package authstoretest

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/authstore/authstoretest/recordtest"
)

// runSessions tests the stores of sessions and refresh tokens.
func runSessions(t *testing.T, open func(t *testing.T) Stores) {
	t.Helper()
	testCases(t, func(t *testing.T) Stores {
		s := open(t)
		createParents(t, s)
		return s
	}, map[string]func(t *testing.T, s Stores){
		"a stored session has the value of every field":                              sessionKeepsEveryField,
		"any session is returned as it was stored":                                   sessionRoundTrips,
		"a session that does not exist is not found":                                 sessionNotFound,
		"an update whose change fails stores nothing":                                sessionFailedChange,
		"parallel updates of a session are all stored":                               sessionLosesNoUpdate,
		"parallel sign-ins of one person are all stored":                             signsInParallel,
		"an end stops exactly the sessions that its filter selects":                  endsSelected,
		"a session that has ended or expired keeps its end":                          keepsFormerEnd,
		"one of several parallel ends reports the session":                           endsOnce,
		"a lower trust level is set on exactly the sessions that the filter selects": lowersSelected,
		"a list has the active sessions, newest first":                               listsActive,
		"a count includes the person's sessions that began after a time":             countsNewerSessions,
		"the newest sessions with full trust are listed, also after their end":       listsTrustedSessions,
		"a failed transaction stores no session":                                     sessionRollsBack,
		"deletion removes sessions that ended before a time":                         deletesExpiredSessions,
		"a device that a session refers to is not deleted":                           keepsDevices,
		"a call with a cancelled context fails":                                      sessionHeedsCancel,

		"a stored refresh token has the value of every field":               tokensKeepEveryField,
		"any refresh token is returned as it was stored":                    tokensRoundTrip,
		"a refresh token can be spent once":                                 spendsOnce,
		"one of several parallel uses of a refresh token succeeds":          spendsOnceInParallel,
		"deletion removes refresh tokens of sessions that ended or expired": sessionDeletesExpired,
		"a failed transaction spends no refresh token":                      sessionTokensRollBack,
	})
}

// createParents stores what the samples belong to: accounts 0 and 1, and the devices 2×user and
// 2×user+1 of each.
func createParents(t *testing.T, s Stores) {
	t.Helper()
	for user := range 2 {
		recordtest.OK(t, s.Accounts.Create(t.Context(), Account(user)))
		for n := 2 * user; n < 2*user+2; n++ {
			if _, _, err := s.Devices.Ensure(t.Context(), Device(user, n)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Session returns a sample with every field set, of the account of a number,
// on its first device. Greater numbers are newer.
func Session(user, n int) auth.Session {
	d := Device(user, 2*user)
	created := recordtest.Epoch().Add(time.Duration(n) * time.Second)
	return auth.Session{
		ID: recordtest.UUID[auth.SessionID](n), UserID: d.UserID, DeviceID: d.ID, DeviceIdentity: d.Identity,
		TrustLevel: auth.LimitedTrust, RiskScore: 37,
		CreatedAt: created, LastActivity: created.Add(time.Minute),
		ExpiresAt: created.Add(time.Hour), MaxExpiresAt: created.Add(24 * time.Hour),
		IPAddress: netip.MustParseAddr("192.0.2.7"),
		EndedAt:   created.Add(time.Minute), EndReason: auth.EndTerminated, ReauthenticatedAt: created.Add(time.Second),
	}
}

// Living is a sample that has not ended.
func Living(user, n int) auth.Session {
	s := Session(user, n)
	s.EndedAt, s.EndReason = time.Time{}, ""
	return s
}

func create(t *testing.T, s Stores, sessions ...auth.Session) {
	t.Helper()
	for _, session := range sessions {
		recordtest.OK(t, s.Sessions.Create(t.Context(), session))
	}
}

func sessionKeepsEveryField(t *testing.T, s Stores) {
	session := Session(1, 1)
	recordtest.Whole(t, session)
	create(t, s, session)
	recordtest.Equal(t, recordtest.Must(s.Sessions.Get(t.Context(), session.ID))(t), session)
}

func sessionRoundTrips(t *testing.T, s Stores) {
	n := 0
	rapid.Check(t, func(r *rapid.T) {
		n++
		a, b := sessionDraw(r, n), sessionDraw(r, n)
		recordtest.OK(r, s.Sessions.Create(t.Context(), a))
		recordtest.OK(r, s.Sessions.Update(t.Context(), a.ID, func(p *auth.Session) error {
			recordtest.Equal(r, *p, a)
			*p = b
			return nil
		}))
		recordtest.Equal(r, recordtest.Must(s.Sessions.Get(t.Context(), a.ID))(r), b)
	})
}

func sessionDraw(r *rapid.T, n int) auth.Session {
	s := Session(0, n)
	s.DeviceID = Device(0, rapid.IntRange(0, 1).Draw(r, "device")).ID
	s.DeviceIdentity = auth.DeviceIdentity(recordtest.Text().Draw(r, "identity"))
	s.TrustLevel = auth.TrustLevel(rapid.IntRange(0, int(auth.FullTrust)).Draw(r, "level"))
	s.RiskScore = rapid.IntRange(0, 100).Draw(r, "score")
	s.CreatedAt, s.LastActivity = recordtest.Instant().Draw(r, "created"), recordtest.Instant().Draw(r, "activity")
	s.ExpiresAt, s.MaxExpiresAt = recordtest.Instant().Draw(r, "expires"), recordtest.Instant().Draw(r, "at most")
	s.IPAddress = recordtest.Address().Draw(r, "address")
	s.EndedAt = recordtest.Optional(recordtest.Instant()).Draw(r, "ended")
	s.ReauthenticatedAt = recordtest.Optional(recordtest.Instant()).Draw(r, "reauthenticated")
	s.EndReason = rapid.SampledFrom([]auth.EndReason{"", auth.EndSignOut, auth.EndReplay}).Draw(r, "reason")
	return s
}

func sessionNotFound(t *testing.T, s Stores) {
	create(t, s, Session(0, 1))
	none := Session(0, 2).ID
	recordtest.WantNotFound(t, map[string]func() error{
		"Get": func() error { _, err := s.Sessions.Get(t.Context(), none); return err },
		"Update": func() error {
			return s.Sessions.Update(t.Context(), none, func(*auth.Session) error {
				t.Error("change was called")
				return nil
			})
		},
		"Tokens.Find": func() error { _, err := s.RefreshTokens.Find(t.Context(), auth.TokenHash{1}); return err },
		"Tokens.Spend": func() error {
			return s.RefreshTokens.Spend(t.Context(), auth.TokenHash{1}, recordtest.Epoch())
		},
	})
}

func sessionFailedChange(t *testing.T, s Stores) {
	session, failed := Living(0, 1), errors.New("failed")
	create(t, s, session)
	err := s.Sessions.Update(t.Context(), session.ID, func(p *auth.Session) error {
		p.TrustLevel = auth.FullTrust
		return failed
	})
	if !errors.Is(err, failed) {
		t.Errorf("Update returned %v", err)
	}
	recordtest.Equal(t, recordtest.Must(s.Sessions.Get(t.Context(), session.ID))(t), session)
}

// sessionLosesNoUpdate lets an End come between the updates as well.
func sessionLosesNoUpdate(t *testing.T, s Stores) {
	const calls = 20
	session := Living(0, 1)
	create(t, s, session)
	recordtest.OK(t, errors.Join(recordtest.Parallel(calls, func(i int) error {
		if i == 0 {
			_, err := s.Sessions.End(t.Context(), authstore.SessionFilter{UserID: session.UserID}, session.CreatedAt,
				auth.EndReplay)
			return err
		}
		return s.Sessions.Update(t.Context(), session.ID, func(p *auth.Session) error { p.RiskScore++; return nil })
	})...))
	session.RiskScore += calls - 1
	session.EndedAt, session.EndReason = session.CreatedAt, auth.EndReplay
	recordtest.Equal(t, recordtest.Must(s.Sessions.Get(t.Context(), session.ID))(t), session)
}

// signsInParallel: transactions that add what refers to an account, and then
// change the account, must not stop each other.
func signsInParallel(t *testing.T, s Stores) {
	const calls = 20
	was := Account(0)
	recordtest.OK(t, errors.Join(recordtest.Parallel(calls, func(i int) error {
		return s.Runner.Atomically(t.Context(), func(ctx context.Context) error {
			session := Living(0, i)
			if err := s.Sessions.Create(ctx, session); err != nil {
				return err
			}
			if err := s.RefreshTokens.Add(ctx, sessionToken(session, byte(i))); err != nil {
				return err
			}
			return s.Accounts.Update(ctx, was.ID, func(a *auth.Account) error { a.MFA.LastStep++; return nil })
		})
	})...))
	if n := len(active(t, s, was.ID, recordtest.Epoch(), 2*calls)); n != calls {
		t.Errorf("%d sessions are stored, want %d", n, calls)
	}
	was.MFA.LastStep += calls
	recordtest.Equal(t, recordtest.Must(s.Accounts.Get(t.Context(), was.ID))(t), was)
}

func endsSelected(t *testing.T, s Stores) {
	second := Living(0, 2)
	second.DeviceID = Device(0, 1).ID
	third, others := Living(0, 3), Living(1, 4)
	user, at := second.UserID, third.CreatedAt.Add(time.Minute)
	ids := func(sessions ...auth.Session) (ids []auth.SessionID) {
		for _, session := range sessions {
			ids = append(ids, session.ID)
		}
		return ids
	}
	create(t, s, Living(0, 1), second, third, others)
	for _, step := range []struct {
		which authstore.SessionFilter
		want  []auth.SessionID
	}{
		{authstore.SessionFilter{UserID: user, DeviceID: Device(1, 2).ID}, nil},
		{authstore.SessionFilter{UserID: user, DeviceID: second.DeviceID, Except: second.ID}, nil},
		{authstore.SessionFilter{UserID: user, DeviceID: second.DeviceID}, ids(second)},
		{authstore.SessionFilter{UserID: user, Except: third.ID}, ids(Living(0, 1))},
		{authstore.SessionFilter{UserID: user}, ids(third)},
		{authstore.SessionFilter{UserID: user}, nil},
	} {
		got := recordtest.Must(s.Sessions.End(t.Context(), step.which, at, auth.EndSignOut))(t)
		if slices.Sort(got); !slices.Equal(got, step.want) {
			t.Fatalf("End of %+v ended %v, want %v", step.which, got, step.want)
		}
	}
	third.EndedAt, third.EndReason = at, auth.EndSignOut
	recordtest.Equal(t, recordtest.Must(s.Sessions.Get(t.Context(), third.ID))(t), third)
	recordtest.Equal(t, recordtest.Must(s.Sessions.Get(t.Context(), others.ID))(t), others)
}

// lowersSelected: the living sessions of the filter that are above the level, and no others.
func lowersSelected(t *testing.T, s Stores) {
	at := Living(0, 1).CreatedAt.Add(time.Minute)
	elsewhere := Living(0, 10)
	elsewhere.DeviceID, elsewhere.TrustLevel = Device(0, 1).ID, auth.FullTrust
	ended, expired, other := Session(0, 11), Living(0, 12), Living(1, 13)
	expired.ExpiresAt = at
	var levels []auth.Session
	for level := auth.HighRisk; level <= auth.FullTrust; level++ {
		session := Living(0, int(level))
		session.TrustLevel = level
		levels = append(levels, session)
	}
	for _, session := range []*auth.Session{&ended, &expired, &other} {
		session.TrustLevel = auth.FullTrust
	}
	create(t, s, append(levels, elsewhere, ended, expired, other)...)
	which := authstore.SessionFilter{UserID: elsewhere.UserID, DeviceID: levels[0].DeviceID}
	lower := func(which authstore.SessionFilter, to auth.TrustLevel, want ...auth.SessionID) {
		t.Helper()
		got := recordtest.Must(s.Sessions.Lower(t.Context(), which, to, at))(t)
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("Lower of %+v to %s lowered %v, want %v", which, to, got, want)
		}
	}
	full := levels[3]
	lower(which, auth.FullTrust)
	lower(authstore.SessionFilter{UserID: which.UserID, DeviceID: which.DeviceID, Except: full.ID}, auth.LimitedTrust)
	lower(which, auth.LimitedTrust, full.ID)
	lower(which, auth.LimitedTrust)
	full.TrustLevel = auth.LimitedTrust
	for _, session := range []auth.Session{levels[0], levels[1], levels[2], full, elsewhere, ended, expired, other} {
		recordtest.Equal(t, recordtest.Must(s.Sessions.Get(t.Context(), session.ID))(t), session)
	}
	lower(authstore.SessionFilter{UserID: which.UserID}, auth.HighRisk, levels[1].ID, levels[2].ID, full.ID,
		elsewhere.ID)
}

// keepsFormerEnd: what ended or expired before keeps its end.
func keepsFormerEnd(t *testing.T, s Stores) {
	ended, expired := Session(0, 1), Living(0, 2)
	create(t, s, ended, expired)
	which := authstore.SessionFilter{UserID: ended.UserID}
	if ids := recordtest.Must(s.Sessions.End(t.Context(), which, expired.ExpiresAt, auth.EndReplay))(t); len(ids) != 0 {
		t.Errorf("End ended %v", ids)
	}
	recordtest.Equal(t, recordtest.Must(s.Sessions.Get(t.Context(), ended.ID))(t), ended)
	recordtest.Equal(t, recordtest.Must(s.Sessions.Get(t.Context(), expired.ID))(t), expired)
	ids := recordtest.Must(s.Sessions.End(t.Context(), which, expired.ExpiresAt.Add(-time.Microsecond),
		auth.EndReplay))(t)
	recordtest.Equal(t, ids, []auth.SessionID{expired.ID})
}

func endsOnce(t *testing.T, s Stores) {
	const sessions, calls = 10, 8
	for n := range sessions {
		create(t, s, Living(0, n))
	}
	got := make([][]auth.SessionID, calls)
	recordtest.OK(t, errors.Join(recordtest.Parallel(calls, func(i int) (err error) {
		got[i], err = s.Sessions.End(t.Context(), authstore.SessionFilter{UserID: Living(0, 0).UserID},
			recordtest.Epoch(), auth.EndReplay)
		return err
	})...))
	all := slices.Concat(got...)
	slices.Sort(all)
	if len(all) != sessions || len(slices.Compact(all)) != sessions {
		t.Errorf("%d ends were told of %d sessions", len(all), sessions)
	}
}

func listsActive(t *testing.T, s Stores) {
	expired := Living(0, 1)
	at := expired.ExpiresAt
	create(t, s, expired, Living(0, 4), Living(0, 2), Session(0, 5), Living(0, 3), Living(1, 6))
	user := expired.UserID
	for _, c := range []struct {
		at    time.Time
		limit int
		want  []auth.Session
	}{
		{at, 10, []auth.Session{Living(0, 4), Living(0, 3), Living(0, 2)}},
		{at, 2, []auth.Session{Living(0, 4), Living(0, 3)}},
		{at.Add(-time.Microsecond), 10, []auth.Session{Living(0, 4), Living(0, 3), Living(0, 2), expired}},
	} {
		recordtest.Equal(t, active(t, s, user, c.at, c.limit), c.want)
	}
	for page, want := range map[auth.PageRequest][]auth.Session{
		{Limit: 1, Offset: 1}: {Living(0, 3)},
		{Limit: 5, Offset: 2}: {Living(0, 2)},
		{Limit: 5, Offset: 3}: nil,
		{Limit: 5, Offset: 9}: nil,
		{}:                    nil,
	} {
		got, total, err := s.Sessions.Active(t.Context(), user, at, page)
		recordtest.OK(t, err)
		if total != 3 || len(got) != len(want) {
			t.Fatalf("page %+v has %d sessions of %d, want %d of 3", page, len(got), total, len(want))
		}
		for i := range got {
			recordtest.Equal(t, got[i], want[i])
		}
	}
}

// active returns the first sessions of a user that live at a time.
func active(t *testing.T, s Stores, user auth.UserID, at time.Time, limit int) []auth.Session {
	t.Helper()
	sessions, _, err := s.Sessions.Active(t.Context(), user, at, auth.PageRequest{Limit: limit})
	recordtest.OK(t, err)
	return sessions
}

func countsNewerSessions(t *testing.T, s Stores) {
	create(t, s, Living(0, 1), Session(0, 2), Living(0, 3), Living(1, 4))
	for want, since := range []time.Time{
		Living(0, 3).CreatedAt, Living(0, 3).CreatedAt.Add(-time.Microsecond), Living(0, 1).CreatedAt,
		recordtest.Epoch(),
	} {
		if got := recordtest.Must(s.Sessions.CountSince(t.Context(), Living(0, 1).UserID, since))(t); got != want {
			t.Errorf("CountSince(%v) = %d, want %d", since, got, want)
		}
	}
}

func listsTrustedSessions(t *testing.T, s Stores) {
	full, unverified, risky := Living(0, 1), Living(0, 2), Living(0, 4)
	full.TrustLevel, unverified.TrustLevel, risky.TrustLevel = auth.FullTrust, auth.Unverified, auth.HighRisk
	create(t, s, full, unverified, Session(0, 3), risky, Living(1, 5))
	recordtest.Equal(t, recordtest.Must(s.Sessions.Trusted(t.Context(), full.UserID, 10))(t), []auth.Session{
		Session(0, 3), full,
	})
	recordtest.Equal(t, recordtest.Must(s.Sessions.Trusted(t.Context(), full.UserID, 1))(t), []auth.Session{
		Session(0, 3),
	})
}

func sessionRollsBack(t *testing.T, s Stores) {
	session := Living(0, 1)
	create(t, s, session)
	recordtest.RollBack(t, s.Runner, func(ctx context.Context) error {
		if err := s.Sessions.Create(ctx, Living(0, 2)); err != nil {
			return err
		}
		ids, err := s.Sessions.End(ctx, authstore.SessionFilter{UserID: session.UserID}, recordtest.Epoch(),
			auth.EndReplay)
		if err != nil || len(ids) != 2 {
			t.Errorf("End = %v, %v, want both sessions", ids, err)
		}
		return s.Sessions.Update(ctx, session.ID, func(p *auth.Session) error { p.RiskScore++; return nil })
	})
	recordtest.Equal(t, active(t, s, session.UserID, session.CreatedAt, 10), []auth.Session{session})
}

func sessionHeedsCancel(t *testing.T, s Stores) {
	session, token := Living(0, 1), sessionToken(Living(0, 1), 1)
	create(t, s, session)
	recordtest.OK(t, s.RefreshTokens.Add(t.Context(), token))
	user, late := session.UserID, session.MaxExpiresAt
	recordtest.WantCancelled(t, map[string]func(ctx context.Context) error{
		"Create": func(ctx context.Context) error { return s.Sessions.Create(ctx, Living(0, 2)) },
		"Get":    func(ctx context.Context) error { _, err := s.Sessions.Get(ctx, session.ID); return err },
		"Update": func(ctx context.Context) error {
			return s.Sessions.Update(ctx, session.ID, func(p *auth.Session) error { p.RiskScore++; return nil })
		},
		"End": func(ctx context.Context) error {
			_, err := s.Sessions.End(ctx, authstore.SessionFilter{UserID: user}, session.CreatedAt, auth.EndReplay)
			return err
		},
		"Active": func(ctx context.Context) error {
			_, _, err := s.Sessions.Active(ctx, user, late, auth.PageRequest{Limit: 10})
			return err
		},
		"CountSince": func(ctx context.Context) error { _, err := s.Sessions.CountSince(ctx, user, late); return err },
		"Trusted":    func(ctx context.Context) error { _, err := s.Sessions.Trusted(ctx, user, 10); return err },
		"Add": func(ctx context.Context) error {
			return s.RefreshTokens.Add(ctx, auth.RefreshToken{SessionID: session.ID})
		},
		"Find":  func(ctx context.Context) error { _, err := s.RefreshTokens.Find(ctx, token.Hash); return err },
		"Spend": func(ctx context.Context) error { return s.RefreshTokens.Spend(ctx, token.Hash, late) },
		"Sessions.DeleteExpired": func(ctx context.Context) error {
			_, err := s.Sessions.DeleteExpired(ctx, late)
			return err
		},
		"DeleteExpired": func(ctx context.Context) error {
			_, err := s.RefreshTokens.DeleteExpired(ctx, late)
			return err
		},
	})
	recordtest.Equal(t, active(t, s, user, session.CreatedAt, 10), []auth.Session{session})
	recordtest.Equal(t, recordtest.Must(s.RefreshTokens.Find(t.Context(), token.Hash))(t), token)
}
