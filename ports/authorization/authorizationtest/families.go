package authorizationtest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authorization"
	"github.com/tollgate-dev/tollgate/ports/authstore/authstoretest"
	"github.com/tollgate-dev/tollgate/ports/authstore/authstoretest/recordtest"
)

func familyTests() map[string]func(t *testing.T, s Stores) {
	return map[string]func(t *testing.T, s Stores){
		"a stored family has the value of every field":                familyKeepsEveryField,
		"any family is returned as it was stored":                     familyRoundTrips,
		"no groups and an empty list of groups differ":                groupsMayBeEmpty,
		"a family belongs to a person and a session":                  familyHasParents,
		"an update that fails stores nothing":                         familyFailedChange,
		"parallel updates of a family are all stored":                 familyLosesNoUpdate,
		"the oldest families above the limit end":                     endsOldest,
		"families that are added at once stay within the limit":       limitsInParallel,
		"the families of a person are listed while they are good":     listsActive,
		"an end stops exactly the families that its filter selects":   endsSelected,
		"a family that has ended or expired keeps its end":            keepsFormerEnd,
		"one of several parallel ends counts the family":              endsOnce,
		"deletion removes families that are over, with their secrets": deletesExpiredFamilies,
		"a family is deleted with its session":                        deletedWithSession,
		"a failed transaction stores no family":                       familyRollsBack,
		"a call with a cancelled context fails":                       familyHeedsCancel,
	}
}

// Family returns a sample with every field set, of the session of a person. Greater numbers are newer.
func Family(person, n int) oauth.Family {
	return oauth.Family{
		ID: recordtest.UUID[oauth.FamilyID](n), UserID: authstoretest.Account(person).ID, SessionID: session(person).ID,
		Client: longURL("client"), ClientName: "Tool \"é\"", RedirectURI: "http://localhost:7/'\\", Challenge: "E9Mel",
		Resource: "https://Tools.example/mcp/", Scopes: []string{"b", "a"}, Level: auth.FullTrust,
		AuthTime: later(-time.Hour), Provider: "okta", Subject: "00u'é", Groups: []string{"okta/devs"},
		CreatedAt: minutes(n), UsedAt: minutes(n).Add(time.Second), ExpiresAt: minutes(n).Add(oauth.FamilyTTL),
		EndedAt: minutes(n).Add(time.Hour), EndReason: "revoked",
	}
}

// active is a sample that has not ended.
func active(person, n int) oauth.Family {
	f := Family(person, n)
	f.EndedAt, f.EndReason = time.Time{}, ""
	return f
}

// asserted is a sample of an assertion, which has no session.
func asserted(person, n int) oauth.Family {
	f := active(person, n)
	f.SessionID, f.Provider, f.Subject = "", "entra", string(longURL("subject"))
	return f
}

func addFamilies(t *testing.T, s Stores, all ...oauth.Family) {
	t.Helper()
	for _, f := range all {
		recordtest.OK(t, s.Families.Add(t.Context(), f))
	}
}

// wantFamilies fails the test unless the store has each of the families as it is.
func wantFamilies(t *testing.T, s Stores, all ...oauth.Family) {
	t.Helper()
	for _, f := range all {
		recordtest.Equal(t, recordtest.Must(s.Families.Get(t.Context(), f.ID))(t), f)
	}
}

// wantNoFamilies fails the test if the store has one of the families.
func wantNoFamilies(t *testing.T, s Stores, all ...oauth.Family) {
	t.Helper()
	for _, f := range all {
		if got, err := s.Families.Get(t.Context(), f.ID); !fault.Is(err, fault.NotFound) {
			t.Errorf("Get returned %+v, %v, want fault.NotFound", got, err)
		}
	}
}

func familyKeepsEveryField(t *testing.T, s Stores) {
	f := Family(1, 1)
	recordtest.Whole(t, f)
	addFamilies(t, s, f)
	wantFamilies(t, s, f)
	wantNoFamilies(t, s, Family(1, 2))
	if err := s.Families.Add(t.Context(), f); err == nil {
		t.Error("a family is added twice")
	}
}

func familyRoundTrips(t *testing.T, s Stores) {
	n := 0
	rapid.Check(t, func(r *rapid.T) {
		n++
		a, b := familyDraw(r, n), familyDraw(r, n)
		recordtest.OK(r, s.Families.Add(t.Context(), a))
		recordtest.OK(r, s.Families.Update(t.Context(), a.ID, func(f *oauth.Family) error {
			recordtest.Equal(r, *f, a)
			*f = b
			f.ID, f.UserID, f.SessionID, f.CreatedAt = "x", "y", "z", later(0)
			return nil
		}))
		b.SessionID, b.CreatedAt = a.SessionID, a.CreatedAt
		recordtest.Equal(r, recordtest.Must(s.Families.Get(t.Context(), a.ID))(r), b)
		wantEnded(t, s, authorization.FamilyFilter{UserID: a.UserID}) // so that none is too many
	})
}

// wantEnded ends the families of a filter.
func wantEnded(t *testing.T, s Stores, which authorization.FamilyFilter) {
	t.Helper()
	_, err := s.Families.End(t.Context(), which, time.UnixMicro(-1e15), "end")
	recordtest.OK(t, err)
}

func familyDraw(r *rapid.T, n int) oauth.Family {
	text, at := recordtest.Text(), recordtest.Instant()
	f := Family(0, n)
	if rapid.Bool().Draw(r, "of an assertion") {
		f.SessionID = ""
	}
	f.Client, f.ClientName = oauth.ClientID(text.Draw(r, "client")), text.Draw(r, "name")
	f.RedirectURI, f.Challenge, f.Resource = text.Draw(r, "redirect URI"), text.Draw(r, "challenge"), text.Draw(r, "resource")
	f.Scopes, f.Groups = names().Draw(r, "scopes"), names().Draw(r, "groups")
	f.Level = auth.TrustLevel(rapid.IntRange(0, int(auth.FullTrust)).Draw(r, "level"))
	f.Provider, f.Subject = text.Draw(r, "provider"), text.Draw(r, "subject")
	f.CreatedAt, f.ExpiresAt = at.Draw(r, "created"), at.Draw(r, "expires")
	f.AuthTime, f.UsedAt = recordtest.Optional(at).Draw(r, "auth time"), recordtest.Optional(at).Draw(r, "used")
	f.EndedAt, f.EndReason = recordtest.Optional(at).Draw(r, "ended"), text.Draw(r, "reason")
	return f
}

// groupsMayBeEmpty: a person in no group of the company must not get the groups of the account instead.
func groupsMayBeEmpty(t *testing.T, s Stores) {
	none, empty := active(0, 1), active(0, 2)
	none.Groups, empty.Groups = nil, []string{}
	addFamilies(t, s, none, empty)
	for range 2 {
		wantFamilies(t, s, none, empty)
		listed := recordtest.Must(s.Families.Active(t.Context(), none.UserID, minutes(3), 9))(t)
		recordtest.Equal(t, listed, []oauth.Family{empty, none})
		for _, f := range listed {
			recordtest.OK(t, s.Families.Update(t.Context(), f.ID, func(*oauth.Family) error { return nil }))
		}
	}
}

func familyHasParents(t *testing.T, s Stores) {
	person, away := Family(0, 1), Family(0, 1)
	person.UserID = recordtest.UUID[auth.UserID](9)
	if err := s.Families.Add(t.Context(), person); !fault.Is(err, fault.NotFound) {
		t.Errorf("Add of a family of nobody returned %v", err)
	}
	away.SessionID = recordtest.UUID[auth.SessionID](9)
	if err := s.Families.Add(t.Context(), away); err == nil {
		t.Error("a family of an unknown session is kept")
	}
	wantNoFamilies(t, s, Family(0, 1))
}

func familyFailedChange(t *testing.T, s Stores) {
	f, failed := active(0, 1), errors.New("failed")
	addFamilies(t, s, f)
	err := s.Families.Update(t.Context(), f.ID, func(f *oauth.Family) error { f.Level = auth.HighRisk; return failed })
	if !errors.Is(err, failed) {
		t.Errorf("Update returned %v", err)
	}
	wantFamilies(t, s, f)
	err = s.Families.Update(t.Context(), Family(0, 2).ID, func(*oauth.Family) error {
		t.Error("change was called")
		return nil
	})
	if !fault.Is(err, fault.NotFound) {
		t.Errorf("Update of what is not there returned %v", err)
	}
}

// familyLosesNoUpdate lets an End come between the updates as well: a refresh must not make a family good
// again.
func familyLosesNoUpdate(t *testing.T, s Stores) {
	const calls = 20
	f := active(0, 1)
	addFamilies(t, s, f)
	recordtest.OK(t, errors.Join(recordtest.Parallel(calls, func(i int) error {
		if i == 0 {
			_, err := s.Families.End(t.Context(), authorization.FamilyFilter{UserID: f.UserID}, f.CreatedAt, "replay")
			return err
		}
		return s.Families.Update(t.Context(), f.ID, func(f *oauth.Family) error {
			f.UsedAt = f.UsedAt.Add(time.Second)
			return nil
		})
	})...))
	f.UsedAt = f.UsedAt.Add((calls - 1) * time.Second)
	f.EndedAt, f.EndReason = f.CreatedAt, "replay"
	wantFamilies(t, s, f)
}

// endsOldest: the newest oauth.MaxFamilies stay, and what is not active or of somebody or something else
// does not count.
func endsOldest(t *testing.T, s Stores) {
	expired, other, others := active(0, 1), active(0, 3), active(1, 4)
	expired.ExpiresAt = minutes(5)
	other.Client += "2"
	addFamilies(t, s, expired, Family(0, 2), other, others)
	var all []oauth.Family
	for i := range oauth.MaxFamilies + 2 {
		f := active(0, 10+i)
		if i%2 == 0 {
			f = asserted(0, 10+i)
		}
		addFamilies(t, s, f)
		all = append(all, f)
		if i >= oauth.MaxFamilies {
			first := &all[i-oauth.MaxFamilies]
			first.EndedAt, first.EndReason = f.CreatedAt, oauth.EndTooMany
		}
		wantFamilies(t, s, all...)
	}
	unused := active(0, 80) // a code that no one has used pushes out one family, and others of its kind none
	unused.UsedAt = time.Time{}
	all[len(all)-oauth.MaxFamilies].EndedAt, all[len(all)-oauth.MaxFamilies].EndReason = unused.CreatedAt, oauth.EndTooMany
	another := unused
	another.ID, another.CreatedAt = active(0, 81).ID, active(0, 81).CreatedAt
	addFamilies(t, s, unused, another)
	unused.EndedAt, unused.EndReason = another.CreatedAt, oauth.EndTooMany
	wantFamilies(t, s, append(slices.Clone(all), unused, another)...)
	recordtest.OK(t, s.Sessions.Update(t.Context(), session(0).ID, func(session *auth.Session) error {
		session.EndedAt = minutes(82)
		return nil
	}))
	byAssertion := asserted(0, 83) // families of a session that has ended do not count
	addFamilies(t, s, byAssertion)
	wantFamilies(t, s, append(slices.Clone(all), unused, another, byAssertion)...)
	late := active(0, 6) // of an instance whose clock is behind
	addFamilies(t, s, late)
	wantFamilies(t, s, late, expired, Family(0, 2), other, others)
}

func limitsInParallel(t *testing.T, s Stores) {
	const calls = oauth.MaxFamilies + 15
	recordtest.OK(t, errors.Join(recordtest.Parallel(calls, func(i int) error {
		f := active(0, i)
		f.CreatedAt = minutes(1)
		add := func(ctx context.Context) error { return s.Families.Add(ctx, f) }
		if i%2 == 0 {
			return add(t.Context())
		}
		return s.Runner.Atomically(t.Context(), add)
	})...))
	good := recordtest.Must(s.Families.Active(t.Context(), active(0, 0).UserID, minutes(2), 2*calls))(t)
	if len(good) != oauth.MaxFamilies {
		t.Errorf("%d families are active, want %d", len(good), oauth.MaxFamilies)
	}
	for i := range calls {
		f := recordtest.Must(s.Families.Get(t.Context(), active(0, i).ID))(t)
		if f.EndedAt.IsZero() == (f.EndReason == oauth.EndTooMany) {
			t.Errorf("a family ended at %v by %q", f.EndedAt, f.EndReason)
		}
	}
}

func listsActive(t *testing.T, s Stores) {
	unused, expired, byAssertion := active(0, 3), active(0, 4), asserted(0, 5)
	unused.UsedAt = time.Time{}
	expired.ExpiresAt = minutes(60)
	addFamilies(t, s, active(0, 1), Family(0, 2), unused, expired, byAssertion, active(1, 6), active(0, 7))
	list := func(at time.Time, limit int) (ids []oauth.FamilyID) {
		t.Helper()
		for _, f := range recordtest.Must(s.Families.Active(t.Context(), active(0, 1).UserID, at, limit))(t) {
			wantFamilies(t, s, f)
			ids = append(ids, f.ID)
		}
		return ids
	}
	newest, second, first := active(0, 7).ID, byAssertion.ID, active(0, 1).ID
	for _, c := range []struct {
		at    time.Time
		limit int
		want  []oauth.FamilyID
	}{
		{minutes(60), 9, []oauth.FamilyID{newest, second, first}},
		{minutes(59), 9, []oauth.FamilyID{newest, second, expired.ID, first}},
		{minutes(60), 2, []oauth.FamilyID{newest, second}},
		{minutes(60), 0, nil},
		{active(0, 5).ExpiresAt, 9, []oauth.FamilyID{newest}},
	} {
		if got := list(c.at, c.limit); !slices.Equal(got, c.want) {
			t.Errorf("Active at %v, limit %d = %v, want %v", c.at, c.limit, got, c.want)
		}
	}
	recordtest.OK(t, s.Sessions.Update(t.Context(), session(0).ID, func(session *auth.Session) error {
		session.EndedAt, session.EndReason = minutes(60), auth.EndSignOut
		return nil
	}))
	if got := list(minutes(60), 9); !slices.Equal(got, []oauth.FamilyID{second}) {
		t.Errorf("after the session has ended: %v", got)
	}
}
