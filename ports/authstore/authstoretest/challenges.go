package authstoretest

import (
	"context"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore/authstoretest/recordtest"
)

// runChallenges tests the challenge store.
func runChallenges(t *testing.T, open func(t *testing.T) Stores) {
	t.Helper()
	testCases(t, func(t *testing.T) Stores {
		s := open(t)
		createParents(t, s)
		recordtest.OK(t, s.Sessions.Create(t.Context(), Living(0, 1)))
		return s
	}, map[string]func(t *testing.T, s Stores){
		"a stored challenge has the value of every field":           challengeKeepsEveryField,
		"any challenge is returned as it was stored":                challengeRoundTrips,
		"a returned challenge shares no memory with the stored one": challengeSharesNoMemory,
		"a challenge that does not exist is not found":              challengeNotFound,
		"an update whose change fails stores nothing":               challengeFailedChange,
		"parallel attempts are all counted":                         countsEveryTry,
		"one of several parallel correct codes passes":              passesOnce,
		"deletion removes challenges that have expired":             challengeDeletesExpired,
		"a failed transaction stores no challenge":                  challengeRollsBack,
		"a call with a cancelled context fails":                     challengeHeedsCancel,
	})
}

// challenge returns a sample with every field set. Greater numbers end later.
func challenge(n int) auth.Challenge {
	session := Living(0, 1)
	return auth.Challenge{
		ID: recordtest.UUID[auth.ChallengeID](n), SessionID: session.ID, UserID: session.UserID,
		Method: auth.SMSOTP, CodeHash: auth.CodeHash{0, 1, '\'', 0xff}, Standby: auth.CodeHash{1, 0, 0xff}, Attempts: 2,
		State:     auth.ChallengeOpen,
		CreatedAt: recordtest.Epoch(), ExpiresAt: recordtest.Epoch().Add(time.Duration(n) * time.Microsecond),
	}
}

func challengeKeepsEveryField(t *testing.T, s Stores) {
	c := challenge(1)
	recordtest.Whole(t, c)
	recordtest.OK(t, s.Challenges.Create(t.Context(), c))
	recordtest.Equal(t, recordtest.Must(s.Challenges.Get(t.Context(), c.ID))(t), c)
}

func challengeRoundTrips(t *testing.T, s Stores) {
	n := 0
	rapid.Check(t, func(r *rapid.T) {
		n++
		a, b := challengeDraw(r, n), challengeDraw(r, n)
		recordtest.OK(r, s.Challenges.Create(t.Context(), a))
		recordtest.OK(r, s.Challenges.Update(t.Context(), a.ID, func(p *auth.Challenge) error {
			recordtest.Equal(r, *p, a)
			*p = b
			return nil
		}))
		recordtest.Equal(r, recordtest.Must(s.Challenges.Get(t.Context(), a.ID))(r), b)
	})
}

func challengeDraw(r *rapid.T, n int) auth.Challenge {
	c := challenge(n)
	c.Method = rapid.SampledFrom([]auth.StepUpMethod{auth.EmailOTP, auth.SMSOTP, auth.AuthenticatorApp}).
		Draw(r, "method")
	c.CodeHash = recordtest.Bytes().Draw(r, "code hash")
	c.Attempts = rapid.IntRange(0, 100).Draw(r, "attempts")
	c.State = rapid.SampledFrom([]auth.ChallengeState{auth.ChallengeOpen, auth.ChallengePassed, auth.ChallengeVoid}).
		Draw(r, "state")
	c.CreatedAt, c.ExpiresAt = recordtest.Instant().Draw(r, "created"), recordtest.Instant().Draw(r, "expires")
	return c
}

func challengeSharesNoMemory(t *testing.T, s Stores) {
	c := challenge(1)
	recordtest.OK(t, s.Challenges.Create(t.Context(), c))
	c.CodeHash[0] ^= 1
	recordtest.Must(s.Challenges.Get(t.Context(), c.ID))(t).CodeHash[0] ^= 1
	recordtest.Equal(t, recordtest.Must(s.Challenges.Get(t.Context(), c.ID))(t), challenge(1))
}

func challengeNotFound(t *testing.T, s Stores) {
	recordtest.OK(t, s.Challenges.Create(t.Context(), challenge(1)))
	none := challenge(2).ID
	recordtest.WantNotFound(t, map[string]func() error{
		"Get": func() error { _, err := s.Challenges.Get(t.Context(), none); return err },
		"Update": func() error {
			return s.Challenges.Update(t.Context(), none, func(*auth.Challenge) error {
				t.Error("change was called")
				return nil
			})
		},
	})
}

func challengeFailedChange(t *testing.T, s Stores) {
	c, failed := challenge(1), errors.New("failed")
	recordtest.OK(t, s.Challenges.Create(t.Context(), c))
	err := s.Challenges.Update(t.Context(), c.ID, func(p *auth.Challenge) error {
		p.State = auth.ChallengePassed
		p.CodeHash[0] ^= 1
		return failed
	})
	if !errors.Is(err, failed) {
		t.Errorf("Update returned %v", err)
	}
	recordtest.Equal(t, recordtest.Must(s.Challenges.Get(t.Context(), c.ID))(t), c)
}

func countsEveryTry(t *testing.T, s Stores) {
	const calls = 20
	c := challenge(1)
	recordtest.OK(t, s.Challenges.Create(t.Context(), c))
	recordtest.OK(t, errors.Join(recordtest.Parallel(calls, func(int) error {
		return s.Challenges.Update(t.Context(), c.ID, func(p *auth.Challenge) error { p.Attempts++; return nil })
	})...))
	c.Attempts += calls
	recordtest.Equal(t, recordtest.Must(s.Challenges.Get(t.Context(), c.ID))(t), c)
}

func passesOnce(t *testing.T, s Stores) {
	c := challenge(1)
	recordtest.OK(t, s.Challenges.Create(t.Context(), c))
	recordtest.WantOne(t, recordtest.Parallel(20, func(int) error {
		return s.Challenges.Update(t.Context(), c.ID, func(p *auth.Challenge) error {
			if p.State != auth.ChallengeOpen {
				return fault.New(fault.Conflict, "passed before")
			}
			p.State = auth.ChallengePassed
			return nil
		})
	}), fault.Conflict)
}

func challengeDeletesExpired(t *testing.T, s Stores) {
	for n := range 4 {
		recordtest.OK(t, s.Challenges.Create(t.Context(), challenge(n)))
	}
	if n := recordtest.Must(s.Challenges.DeleteExpired(t.Context(), challenge(2).ExpiresAt))(t); n != 2 {
		t.Errorf("DeleteExpired deleted %d challenges, want 2", n)
	}
	for n := range 4 {
		_, err := s.Challenges.Get(t.Context(), challenge(n).ID)
		if kept := n >= 2; kept != (err == nil) || !kept && !fault.Is(err, fault.NotFound) {
			t.Errorf("Get of challenge %d returned %v", n, err)
		}
	}
}

func challengeRollsBack(t *testing.T, s Stores) {
	c := challenge(1)
	recordtest.OK(t, s.Challenges.Create(t.Context(), c))
	recordtest.RollBack(t, s.Runner, func(ctx context.Context) error {
		if err := s.Challenges.Create(ctx, challenge(2)); err != nil {
			return err
		}
		if n, err := s.Challenges.DeleteExpired(ctx, challenge(3).ExpiresAt); err != nil || n != 2 {
			t.Errorf("DeleteExpired = %d, %v, want both challenges", n, err)
		}
		return nil
	})
	recordtest.Equal(t, recordtest.Must(s.Challenges.Get(t.Context(), c.ID))(t), c)
	if _, err := s.Challenges.Get(t.Context(), challenge(2).ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("Get of a challenge that was rolled back returned %v", err)
	}
}

func challengeHeedsCancel(t *testing.T, s Stores) {
	c := challenge(1)
	recordtest.OK(t, s.Challenges.Create(t.Context(), c))
	recordtest.WantCancelled(t, map[string]func(ctx context.Context) error{
		"Create": func(ctx context.Context) error { return s.Challenges.Create(ctx, challenge(2)) },
		"Get":    func(ctx context.Context) error { _, err := s.Challenges.Get(ctx, c.ID); return err },
		"Update": func(ctx context.Context) error {
			return s.Challenges.Update(ctx, c.ID, func(p *auth.Challenge) error { p.Attempts++; return nil })
		},
		"DeleteExpired": func(ctx context.Context) error {
			_, err := s.Challenges.DeleteExpired(ctx, challenge(9).ExpiresAt)
			return err
		},
	})
	recordtest.Equal(t, recordtest.Must(s.Challenges.Get(t.Context(), c.ID))(t), c)
}
