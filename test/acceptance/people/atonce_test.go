package people

import (
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// passwords are the passwords of those who use one link at once.
var passwords = []string{"First-Horse-1-Battery", "Second-Horse-2-Battery", "Third-Horse-3-Battery"}

// wantOneWinner checks that of the statuses of parallel uses of a link one is 200 and the others are
// another one, and that the password of the winner is in force.
func (s *site) wantOneWinner(t *testing.T, what, email string, statuses []int, others int) {
	t.Helper()
	winner := slices.Index(statuses, http.StatusOK)
	for i, status := range statuses {
		if want := map[bool]int{true: http.StatusOK, false: others}[i == winner]; status != want {
			t.Fatalf("%s at once answers %v", what, statuses)
		}
	}
	for i, password := range passwords {
		want := map[bool]int{true: http.StatusOK, false: http.StatusUnauthorized}[i == winner]
		if got := s.login(t, email, password).Status; got != want {
			t.Errorf("%s: password %d of winner %d: the sign-in answers %d", what, i, winner, got)
		}
	}
}

// submitAtOnce submits the form of a link several times at once, each with another password.
func (s *site) submitAtOnce(t *testing.T, link, field string) []int {
	t.Helper()
	statuses := make([]int, len(passwords))
	var group sync.WaitGroup
	for i, password := range passwords {
		b := s.newBrowser(t)
		group.Go(func() { statuses[i] = b.submit(t, link, field, password) })
	}
	group.Wait()
	return statuses
}

// TestLinksAtOnce uses a link several times at once: one wins. An invitation begins one session, at
// full trust on a device that is confirmed.
func TestLinksAtOnce(t *testing.T) {
	inSite(t, func(t *testing.T, s *site) {
		id, link := s.invite(t, "ivy@example.com")
		statuses := s.submitAtOnce(t, link, "password")
		s.wantTrusted(t, "'"+id+"'")
		s.wantOneWinner(t, "an invitation", "ivy@example.com", statuses, http.StatusNotFound)

		link = s.makeResetLink(t, id)
		s.wantOneWinner(t, "the page of a reset", "ivy@example.com", s.submitAtOnce(t, link, "newPassword"), http.StatusNotFound)

		code := codeOf(s.makeResetLink(t, id))
		answers := fixture.CallInParallel(t, len(passwords), func(i int) (apiclient.Response, error) {
			return apiclient.TryCall("POST", s.API+"/auth/password/reset", object{"token": code, "newPassword": passwords[i]})
		})
		statuses = nil
		for _, a := range answers {
			statuses = append(statuses, a.Status)
		}
		s.wantOneWinner(t, "a reset", "ivy@example.com", statuses, http.StatusBadRequest)
	}, "LOCKOUT_THRESHOLD=100")
}

// wantTrusted checks that a person, whom a query finds, has one session, at full trust on a device that
// is confirmed.
func (s *site) wantTrusted(t *testing.T, user string) {
	t.Helper()
	rows, err := s.e.OpenDatabase(t).QueryContext(t.Context(), "SELECT s.trust_level, d.confirmed FROM sessions s "+
		"JOIN devices d ON d.id = s.device_id WHERE s.user_id IN ("+user+")")
	must.Succeed(t, err)
	defer func() { _ = rows.Close() }() // all rows are read, or the test has failed
	sessions := 0
	for rows.Next() {
		var level string
		var confirmed bool
		if err := rows.Scan(&level, &confirmed); err != nil || level != "FULL_TRUST" || !confirmed {
			t.Errorf("the session is at %q, the device is confirmed: %t, %v", level, confirmed, err)
		}
		sessions++
	}
	if rows.Err() != nil || sessions != 1 {
		t.Errorf("there are %d sessions, %v", sessions, rows.Err())
	}
}
