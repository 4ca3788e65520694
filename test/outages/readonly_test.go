package outages

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestStartOnReadOnlyDatabase starts a new instance, with a signing key of its own, on a standby.
// It serves reads at once, and everything else as soon as the standby is promoted.
func TestStartOnReadOnlyDatabase(t *testing.T) {
	t.Parallel()
	p := startPostgres(t)
	address := p.URL(p.Address)
	must.Succeed(t, startService(t, "DATABASE_URL="+address).Stop()) // migrates
	importServers(t, address, 0, 3)
	standby, err := p.NewStandby()
	must.Succeed(t, err)
	t.Cleanup(standby.Remove)

	s := startService(t, "DATABASE_URL="+standby.URL(standby.Address), "AUTH_RATE_LIMIT=0")
	if status, _ := s.read(serverPath(1, "latest")); status != http.StatusOK {
		t.Errorf("a read has status %d", status)
	}
	if !strings.Contains(s.Log(), "the signing key cannot be announced") {
		t.Error("the log does not say that the signing key waits")
	}
	s.wantAll("sign-ins", s.failLogins(1), http.StatusServiceUnavailable)
	if status, body := getPage(t, "http://"+s.API+"/ready"); status != http.StatusServiceUnavailable {
		t.Errorf("/ready: %d %s", status, body)
	}
	must.Succeed(t, standby.Promote())
	await.Until(t, "the instance is ready", func() bool {
		status, _ := getPage(t, "http://"+s.API+"/ready")
		return status == http.StatusOK
	})
	s.wantAll("sign-ins", s.failLogins(1), http.StatusUnauthorized)
	db := standby.Open()
	defer func() { _ = db.Close() }() // the test is over
	await.Until(t, "the key is announced", func() bool {
		var n int
		return db.QueryRowContext(t.Context(), "SELECT count(*) FROM signing_keys").Scan(&n) == nil && n == 2
	})
}
