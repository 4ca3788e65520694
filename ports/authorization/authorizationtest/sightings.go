package authorizationtest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/ports/authstore/authstoretest/recordtest"
)

func sightingTests() map[string]func(t *testing.T, s Stores) {
	return map[string]func(t *testing.T, s Stores){
		"a noted sighting has the value of every field":  sightingKeepsEveryField,
		"a sighting takes the place of that of its URL":  sightingReplaces,
		"the oldest of too many sightings are forgotten": forgetsOldest,
		"parallel sightings of a document are one":       notesInParallel,
		"a failed transaction notes nothing":             sightingRollsBack,
		"a call with a cancelled context fails":          sightingHeedsCancel,
	}
}

// sighting returns a sample with every field set. Greater numbers are newer, and have other URLs.
func sighting(n int) oauth.Sighting {
	return oauth.Sighting{
		URL: longURL(fmt.Sprint("client", n)), Name: "Tool \"é\"", Problem: "client_id: is another one",
		At: later(time.Duration(n) * time.Second),
	}
}

func note(t *testing.T, s Stores, all ...oauth.Sighting) {
	t.Helper()
	for _, seen := range all {
		recordtest.OK(t, s.Sightings.Note(t.Context(), seen))
	}
}

// wantSightings fails the test unless these are the sightings, the newest first.
func wantSightings(t *testing.T, s Stores, want ...oauth.Sighting) {
	t.Helper()
	got := recordtest.Must(s.Sightings.List(t.Context(), 2*oauth.MaxSightings))(t)
	if len(got)+len(want) > 0 {
		recordtest.Equal(t, got, want)
	}
}

func sightingKeepsEveryField(t *testing.T, s Stores) {
	wantSightings(t, s)
	recordtest.Whole(t, sighting(1))
	note(t, s, sighting(1), sighting(3), sighting(2))
	wantSightings(t, s, sighting(3), sighting(2), sighting(1))
	recordtest.Equal(t, recordtest.Must(s.Sightings.List(t.Context(), 1))(t), []oauth.Sighting{sighting(3)})
	wantNumber(t, 0)(len(recordtest.Must(s.Sightings.List(t.Context(), 0))(t)), nil)
}

func sightingReplaces(t *testing.T, s Stores) {
	again := oauth.Sighting{URL: sighting(1).URL, At: sighting(3).At, Name: "Other"}
	note(t, s, sighting(1), sighting(2), again)
	wantSightings(t, s, again, sighting(2))
}

func forgetsOldest(t *testing.T, s Stores) {
	recordtest.OK(t, s.Runner.Atomically(t.Context(), func(ctx context.Context) error {
		for n := range oauth.MaxSightings + 3 {
			if err := s.Sightings.Note(ctx, oauth.Sighting{URL: oauth.ClientID(fmt.Sprint(n)), At: sighting(n).At}); err != nil {
				return err
			}
		}
		return nil
	}))
	got := recordtest.Must(s.Sightings.List(t.Context(), 2*oauth.MaxSightings))(t)
	if len(got) != oauth.MaxSightings || got[len(got)-1].URL != "3" || got[0].URL != oauth.ClientID(fmt.Sprint(oauth.MaxSightings+2)) {
		t.Errorf("%d sightings are kept, from %q to %q", len(got), got[0].URL, got[len(got)-1].URL)
	}
}

func notesInParallel(t *testing.T, s Stores) {
	recordtest.OK(t, errors.Join(racing(t, s, func(ctx context.Context) error {
		return s.Sightings.Note(ctx, sighting(1))
	})...))
	wantSightings(t, s, sighting(1))
}

func sightingRollsBack(t *testing.T, s Stores) {
	recordtest.RollBack(t, s.Runner, func(ctx context.Context) error { return s.Sightings.Note(ctx, sighting(1)) })
	wantSightings(t, s)
}

func sightingHeedsCancel(t *testing.T, s Stores) {
	recordtest.WantCancelled(t, map[string]func(ctx context.Context) error{
		"Note": func(ctx context.Context) error { return s.Sightings.Note(ctx, sighting(1)) },
		"List": func(ctx context.Context) error { _, err := s.Sightings.List(ctx, 1); return err },
	})
	wantSightings(t, s)
}
