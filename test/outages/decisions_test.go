package outages

import (
	"net/http"
	"testing"

	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/must"
)

// neverMade has the form of a token, so that the service looks for it in the database.
const neverMade = "tgp_000000000000000000000000000000000000000000017jAMh"

// askForDecision sends the question of a proxy whether a caller may call a server that is not listed, and returns
// the status.
func (s *service) askForDecision(token string) int {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://"+s.API+"/decide/http", nil)
	must.Succeed(s.t, err)
	r.Header.Set("X-Forwarded-Method", http.MethodGet)
	r.Header.Set("x-tollgate-server", "com.example/weather")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	a, err := http.DefaultClient.Do(r)
	must.Succeed(s.t, err)
	must.Succeed(s.t, a.Body.Close())
	return a.StatusCode
}

// TestDecisionsWhileTheDatabaseIsAway: what needs no database is decided as before. For a caller who is
// not known it is DECIDE_AWAY that decides, until the database is back.
func TestDecisionsWhileTheDatabaseIsAway(t *testing.T) {
	p := startPostgres(t)
	settings := []string{"DECIDE=on", "DECIDE_NETWORKS=127.0.0.0/8", "ACCESS_UNLISTED=allow"}
	denies := startOnPostgres(t, p, p.Address, append(settings, "DECIDE_AWAY=deny")...)
	allows := startOnPostgres(t, p, p.Address, append(settings, "DECIDE_AWAY=allow")...)
	for _, s := range []*service{denies, allows} {
		await.Until(t, "the first decision", func() bool { return s.askForDecision("") == http.StatusOK })
		if status := s.askForDecision(neverMade); status != http.StatusUnauthorized {
			t.Errorf("a token that was never made: %d", status)
		}
	}
	p.Stop()
	for s, want := range map[*service]int{denies: http.StatusServiceUnavailable, allows: http.StatusOK} {
		await.Until(t, "a decision without the database", func() bool { return s.askForDecision(neverMade) == want })
		if status := s.askForDecision(""); status != http.StatusOK {
			t.Errorf("a caller without a token: %d", status)
		}
	}
	must.Succeed(t, p.Start())
	for _, s := range []*service{denies, allows} {
		await.Until(t, "the database", func() bool { return s.askForDecision(neverMade) == http.StatusUnauthorized })
	}
}
