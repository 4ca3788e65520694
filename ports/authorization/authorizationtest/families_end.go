package authorizationtest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authorization"
	"github.com/tollgate-dev/tollgate/ports/authstore/authstoretest/recordtest"
)

func endsSelected(t *testing.T, s Stores) {
	other, byAssertion, company, others := active(0, 2), asserted(0, 3), asserted(1, 4), asserted(1, 5)
	other.Client += "2" // has the same beginning
	company.Subject += "2"
	others.Provider = "okta2"
	addFamilies(t, s, active(0, 1), other, byAssertion, company, others, active(1, 6))
	at, client, subject := minutes(60), active(0, 1).Client, byAssertion.Subject
	ada, bob := active(0, 1).UserID, active(1, 1).UserID
	var over []int // the numbers of those that have ended
	for _, step := range []struct {
		which authorization.FamilyFilter
		want  []int
	}{
		{authorization.FamilyFilter{UserID: recordtest.UUID[auth.UserID](9)}, nil},
		{authorization.FamilyFilter{UserID: ada, Client: client[:len(client)-1]}, nil},
		{authorization.FamilyFilter{Provider: "entra", Subject: subject[:len(subject)-1]}, nil},
		{authorization.FamilyFilter{Provider: "okta2", Subject: company.Subject}, nil},
		{authorization.FamilyFilter{UserID: bob, Provider: "entra", Subject: subject}, nil},
		{authorization.FamilyFilter{Provider: "entra", Subject: subject}, []int{3}},
		{authorization.FamilyFilter{UserID: ada, Client: client}, []int{1}},
		{authorization.FamilyFilter{Provider: "entra"}, []int{4}},
		{authorization.FamilyFilter{Client: client}, []int{5, 6}},
		{authorization.FamilyFilter{UserID: ada}, []int{2}},
		{authorization.FamilyFilter{UserID: ada}, nil},
	} {
		wantNumber(t, len(step.want))(s.Families.End(t.Context(), step.which, at, "left"))
		over = append(over, step.want...)
		for n := 1; n <= 6; n++ {
			f := recordtest.Must(s.Families.Get(t.Context(), active(0, n).ID))(t)
			if f.EndedAt.Equal(at) != slices.Contains(over, n) || f.EndedAt.IsZero() != (f.EndReason != "left") {
				t.Fatalf("End of %+v: family %d ended at %v by %q", step.which, n, f.EndedAt, f.EndReason)
			}
		}
	}
	addFamilies(t, s, active(0, 7))
	if n, err := s.Families.End(t.Context(), authorization.FamilyFilter{}, at, "all"); n != 0 || !fault.Is(err, fault.Internal) {
		t.Errorf("End of an empty filter = %d, %v", n, err)
	}
	wantFamilies(t, s, active(0, 7))
}

func keepsFormerEnd(t *testing.T, s Stores) {
	expired := active(0, 1)
	addFamilies(t, s, expired, Family(0, 2))
	which := authorization.FamilyFilter{UserID: expired.UserID}
	wantNumber(t, 0)(s.Families.End(t.Context(), which, expired.ExpiresAt, "late"))
	wantFamilies(t, s, expired, Family(0, 2))
	wantNumber(t, 1)(s.Families.End(t.Context(), which, expired.ExpiresAt.Add(-time.Microsecond), "in time"))
	wantFamilies(t, s, Family(0, 2))
}

// endsOnce races in several rounds: the ends must meet on one row.
func endsOnce(t *testing.T, s Stores) {
	for round := range 10 {
		for n := range oauth.MaxFamilies {
			addFamilies(t, s, active(0, oauth.MaxFamilies*round+n))
		}
		counts := make([]int, 20)
		for _, err := range recordtest.Parallel(len(counts), func(i int) error {
			which := authorization.FamilyFilter{UserID: active(0, 1).UserID}
			if i%2 == 0 {
				which = authorization.FamilyFilter{Client: active(0, 1).Client}
			}
			return s.Runner.Atomically(t.Context(), func(ctx context.Context) (err error) {
				counts[i], err = s.Families.End(ctx, which, later(24*time.Hour), "left")
				return err
			})
		}) {
			recordtest.OK(t, err)
		}
		total := 0
		for _, n := range counts {
			total += n
		}
		wantNumber(t, oauth.MaxFamilies)(total, nil)
	}
}

func deletesExpiredFamilies(t *testing.T, s Stores) {
	soon, ended, byAssertion := active(0, 1), Family(0, 2), asserted(0, 3)
	soon.ExpiresAt = minutes(30)
	addFamilies(t, s, soon, ended, byAssertion, active(1, 4))
	for i, f := range []oauth.Family{soon, ended, byAssertion, active(1, 4)} {
		addSecrets(t, s, secret(f, 2*i), secret(f, 2*i+1))
	}
	wantNumber(t, 0)(s.Families.DeleteExpired(t.Context(), minutes(30)))
	wantNumber(t, 1)(s.Families.DeleteExpired(t.Context(), minutes(30).Add(time.Microsecond)))
	wantNumber(t, 0)(s.Families.DeleteExpired(t.Context(), ended.EndedAt))
	wantFamilies(t, s, ended)
	for _, n := range []int{1, 0} {
		wantNumber(t, n)(s.Families.DeleteExpired(t.Context(), ended.EndedAt.Add(time.Microsecond)))
	}
	wantNoFamilies(t, s, soon, ended)
	wantFamilies(t, s, byAssertion, active(1, 4))
	wantSecrets(t, s,
		[]oauth.Secret{secret(byAssertion, 4), secret(byAssertion, 5), secret(active(1, 4), 6), secret(active(1, 4), 7)},
		secret(soon, 0), secret(soon, 1), secret(ended, 2), secret(ended, 3))
}

// deletedWithSession: without its session a family would look like one of an assertion, which is good
// without one.
func deletedWithSession(t *testing.T, s Stores) {
	addFamilies(t, s, active(0, 1), asserted(0, 2), active(1, 3))
	addSecrets(t, s, secret(active(0, 1), 1), secret(active(1, 3), 3))
	recordtest.OK(t, s.Sessions.Update(t.Context(), session(0).ID, func(session *auth.Session) error {
		session.ExpiresAt = minutes(1)
		return nil
	}))
	wantNumber(t, 1)(s.Sessions.DeleteExpired(t.Context(), minutes(2)))
	wantNoFamilies(t, s, active(0, 1))
	wantFamilies(t, s, asserted(0, 2), active(1, 3))
	wantSecrets(t, s, []oauth.Secret{secret(active(1, 3), 3)}, secret(active(0, 1), 1))
}

func familyRollsBack(t *testing.T, s Stores) {
	addFamilies(t, s, active(0, 1))
	recordtest.RollBack(t, s.Runner, func(ctx context.Context) error {
		recordtest.OK(t, s.Families.Add(ctx, active(0, 2)))
		_, err := s.Families.End(ctx, authorization.FamilyFilter{UserID: active(0, 1).UserID}, minutes(3), "left")
		return err
	})
	wantFamilies(t, s, active(0, 1))
	wantNoFamilies(t, s, active(0, 2))
}

func familyHeedsCancel(t *testing.T, s Stores) {
	f := active(0, 1)
	addFamilies(t, s, f)
	recordtest.WantCancelled(t, map[string]func(ctx context.Context) error{
		"Add": func(ctx context.Context) error { return s.Families.Add(ctx, active(0, 2)) },
		"Get": func(ctx context.Context) error { _, err := s.Families.Get(ctx, f.ID); return err },
		"Update": func(ctx context.Context) error {
			return s.Families.Update(ctx, f.ID, func(f *oauth.Family) error { f.Level = auth.HighRisk; return nil })
		},
		"Active": func(ctx context.Context) error {
			_, err := s.Families.Active(ctx, f.UserID, minutes(2), 9)
			return err
		},
		"End": func(ctx context.Context) error {
			_, err := s.Families.End(ctx, authorization.FamilyFilter{UserID: f.UserID}, minutes(2), "left")
			return err
		},
	})
	wantFamilies(t, s, f)
	wantNoFamilies(t, s, active(0, 2))
}
