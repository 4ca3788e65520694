package authstoretest

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore/authstoretest/recordtest"
)

// runLinks tests the store of links.
func runLinks(t *testing.T, open func(t *testing.T) Stores) {
	t.Helper()
	testCases(t, withAccounts(open), map[string]func(t *testing.T, s Stores){
		"a stored link has the value of every field":         linkKeepsEveryField,
		"a link can be taken once":                           takesLinkOnce,
		"the links of a person for a purpose can be removed": removesLinksOfPerson,
		"deletion removes links that have expired":           linkDeletesExpired,
		"a failed transaction takes no link":                 linkRollsBack,
	})
}

// linkSample returns one of a person with every field set. Greater numbers end later.
func linkSample(person, n int) auth.Link {
	made := recordtest.Epoch().Add(time.Duration(n) * time.Minute)
	return auth.Link{
		Hash: auth.TokenHash{0: byte(person), 1: byte(n), 31: 0xff}, Purpose: auth.LinkReset, UserID: Account(person).ID,
		CreatedAt: made, ExpiresAt: made.Add(auth.ResetTTL), Asker: "Linux", AskedFrom: netip.MustParseAddr("2001:db8::1"),
		Answer: auth.TokenHash{1: byte(n), 31: 0xfe}, SessionID: recordtest.UUID[auth.SessionID](n),
	}
}

func putLinks(t *testing.T, s Stores, all ...auth.Link) {
	t.Helper()
	for _, l := range all {
		recordtest.OK(t, s.Links.Put(t.Context(), l))
	}
}

// wantLinks fails the test unless the store has each of the links, and no others.
func wantLinks(t *testing.T, s Stores, all []auth.Link, others ...auth.Link) {
	t.Helper()
	for _, l := range all {
		recordtest.Equal(t, recordtest.Must(s.Links.Find(t.Context(), l.Hash))(t), l)
	}
	for _, l := range others {
		if got, err := s.Links.Find(t.Context(), l.Hash); !fault.Is(err, fault.NotFound) {
			t.Errorf("Find returned %+v, %v, want fault.NotFound", got, err)
		}
	}
}

func linkKeepsEveryField(t *testing.T, s Stores) {
	l, setup := linkSample(1, 1), linkSample(2, 1)
	recordtest.Whole(t, l)
	setup = auth.Link{Hash: setup.Hash, Purpose: auth.LinkSetup, CreatedAt: setup.CreatedAt, ExpiresAt: setup.ExpiresAt}
	putLinks(t, s, l, setup)
	wantLinks(t, s, []auth.Link{l, setup}, linkSample(0, 1))
	foreign := linkSample(0, 1)
	foreign.UserID = recordtest.UUID[auth.UserID](people + 1)
	if err := s.Links.Put(t.Context(), foreign); err == nil {
		t.Error("a link of an unknown account is kept")
	}
}

func takesLinkOnce(t *testing.T, s Stores) {
	l, other := linkSample(0, 1), linkSample(0, 2)
	putLinks(t, s, l, other)
	recordtest.WantOne(t, recordtest.Parallel(20, func(i int) error {
		if i%2 == 0 {
			return s.Links.Take(t.Context(), l.Hash)
		}
		return s.Runner.Atomically(t.Context(), func(ctx context.Context) error { return s.Links.Take(ctx, l.Hash) })
	}), fault.NotFound)
	wantLinks(t, s, []auth.Link{other}, l)
}

func removesLinksOfPerson(t *testing.T, s Stores) {
	first, second, invitation, others := linkSample(0, 1), linkSample(0, 2), linkSample(0, 3), linkSample(1, 1)
	invitation.Purpose = auth.LinkInvitation
	setup := linkSample(2, 2)
	setup.Purpose, setup.UserID = auth.LinkSetup, ""
	putLinks(t, s, first, second, invitation, others, setup)
	for range 2 {
		recordtest.OK(t, s.Links.RemoveAll(t.Context(), first.UserID, auth.LinkReset))
		wantLinks(t, s, []auth.Link{invitation, others, setup}, first, second)
	}
	recordtest.OK(t, s.Links.RemoveAll(t.Context(), "", auth.LinkSetup, auth.LinkReset))
	wantLinks(t, s, []auth.Link{invitation, others}, setup)
}

func linkDeletesExpired(t *testing.T, s Stores) {
	putLinks(t, s, linkSample(0, 1), linkSample(0, 2), linkSample(1, 1))
	for _, n := range []int{2, 0} {
		got := recordtest.Must(s.Links.DeleteExpired(t.Context(), linkSample(0, 2).ExpiresAt))(t)
		if got != n {
			t.Errorf("DeleteExpired = %d, want %d", got, n)
		}
	}
	wantLinks(t, s, []auth.Link{linkSample(0, 2)}, linkSample(0, 1), linkSample(1, 1))
}

func linkRollsBack(t *testing.T, s Stores) {
	l := linkSample(0, 1)
	putLinks(t, s, l)
	failed := fault.New(fault.Invalid, "failed")
	err := s.Runner.Atomically(t.Context(), func(ctx context.Context) error {
		recordtest.OK(t, s.Links.Take(ctx, l.Hash))
		return failed
	})
	if !fault.Is(err, fault.Invalid) {
		t.Errorf("Atomically returned %v", err)
	}
	wantLinks(t, s, []auth.Link{l})
}
