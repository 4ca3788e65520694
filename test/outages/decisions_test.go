package outages

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
)

// neverMade has the form of a token, so that the service looks for it in the database.
const neverMade = "tgp_000000000000000000000000000000000000000000017jAMh"

// askForDecision sends the question of a proxy whether a caller may call a server that is not listed, and returns
// the status.
func (s *service) askForDecision(token string) int { return s.askAbout("com.example/weather", token) }

// askAbout is askForDecision about a server.
func (s *service) askAbout(server, token string) int {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://"+s.API+"/decide/http", nil)
	must.Succeed(s.t, err)
	r.Header.Set("X-Forwarded-Method", http.MethodGet)
	r.Header.Set("x-tollgate-server", server)
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

// TestDecisionsAfterALoss: the first question after an instance had lost its database is decided by what has
// changed meanwhile. While the database is away, /ready says how old rules and listings are, and beyond
// DECIDE_STALE_MAX no call is decided by them.
func TestDecisionsAfterALoss(t *testing.T) {
	p := startPostgres(t)
	c, err := instance.NewCutter(p.Address)
	must.Succeed(t, err)
	t.Cleanup(c.Close)
	importServers(t, p.URL(p.Address), 1, 3)
	db := openDatabase(t, p)
	s := startOnPostgres(t, p, c.Address, "DECIDE=on", "DECIDE_NETWORKS=127.0.0.0/8", "ACCESS_DEFAULT=allow", "DECIDE_STALE_MAX=3s")
	ask := func(n int) int { return s.askAbout(fmt.Sprintf("com.example/weather-%d", n), "") }
	ready := func(want string) func() bool {
		return func() bool {
			_, body := getPage(t, "http://"+s.API+"/ready")
			return strings.Contains(body, want)
		}
	}
	await.Until(t, "the first decision", func() bool { return ask(1) == http.StatusOK })
	if !ready(`"access":"ok"`)() {
		t.Error("/ready does not say that rules and listings are read")
	}
	c.Refuse()
	await.Until(t, "the loss", func() bool { return s.readMetric("tollgate_database_available") == 0 })
	if status := ask(2); status != http.StatusOK {
		t.Errorf("just after the loss: %d", status)
	}
	_, err = db.ExecContext(t.Context(), "UPDATE versions SET status = 'deleted' WHERE name = 'com.example/weather-1'")
	must.Succeed(t, err)
	await.Until(t, "/ready that says the age", ready(` old"`))
	await.Until(t, "the bound", func() bool { return ask(2) == http.StatusServiceUnavailable })
	if s.readMetric("tollgate_decide_snapshot_age_seconds") < 3 {
		t.Error("the metric does not say the age")
	}
	c.Accept()
	await.Until(t, "the database", func() bool { return s.readMetric("tollgate_database_available") == 1 })
	if status := ask(1); status != http.StatusForbidden {
		t.Errorf("a server that was deleted during the loss: %d", status)
	}
	if status := ask(2); status != http.StatusOK {
		t.Errorf("another server: %d", status)
	}
}

// TestDecisionsOfASlowDatabase: reading what has changed may take longer than a call of the database, and
// than the question that begins it.
func TestDecisionsOfASlowDatabase(t *testing.T) {
	p := startPostgres(t)
	d, err := instance.NewDelayer(p.Address)
	must.Succeed(t, err)
	t.Cleanup(d.Close)
	importServers(t, p.URL(p.Address), 1, 2)
	db := openDatabase(t, p)
	s := startOnPostgres(t, p, d.Address, "DECIDE=on", "DECIDE_NETWORKS=127.0.0.0/8", "ACCESS_DEFAULT=allow", "DATABASE_TIMEOUT=1s")
	ask := func() int { return s.askAbout("com.example/weather-1", "") }
	await.Until(t, "the first decision", func() bool { return ask() == http.StatusOK })
	// Of each of several statements, so that reading takes longer than a call may; a new connection takes three, and has
	// time, also that of a probe.
	d.SetDelay(200 * time.Millisecond)
	_, err = db.ExecContext(t.Context(), "UPDATE versions SET status = 'deleted'")
	must.Succeed(t, err)
	await.Until(t, "the deletion", func() bool { return ask() == http.StatusForbidden })
}
