package outages

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestFailoverThatLosesChanges fails over to an asynchronous standby that lacks the last change.
// The next change brings the number of changes to what it was before the failover. Kept responses
// with the lost server must not count as current again (contract R-20).
func TestFailoverThatLosesChanges(t *testing.T) {
	t.Parallel()
	p := startPostgres(t)
	standby, err := p.NewStandby()
	must.Succeed(t, err)
	t.Cleanup(standby.Remove)
	wire := newBreakableProxy(t, p.Address)
	address := p.URL(wire.address())
	s := startService(t, "DATABASE_URL="+address, "REGISTRY_RATE_LIMIT=0")
	importServers(t, address, 0, 5)
	await.Until(t, "the standby has the import", func() bool {
		db := standby.Open()
		defer func() { _ = db.Close() }() // the connection was only used for the query
		var n int
		return db.QueryRowContext(t.Context(), "SELECT count(*) FROM versions").Scan(&n) == nil && n == 5
	})

	standby.Stop()
	importServers(t, address, 30, 31)
	await.Until(t, "the change that will be lost", func() bool {
		status, _ := s.read(serverPath(30, "latest"))
		return status == http.StatusOK && strings.Contains(s.readBody(serversPath), "weather-30")
	})
	p.Stop()
	wire.setTarget(standby.Address)
	must.Succeed(t, standby.Start())
	must.Succeed(t, standby.Promote())
	await.Until(t, "the standby accepts changes", func() bool {
		db := standby.Open()
		defer func() { _ = db.Close() }() // the connection was only used for the query
		var follows bool
		return db.QueryRowContext(t.Context(), "SELECT pg_is_in_recovery()").Scan(&follows) == nil && !follows
	})
	importServers(t, address, 31, 32)
	await.Until(t, "the change after the failover", func() bool {
		status, header := s.read(serverPath(31, "latest"))
		return status == http.StatusOK && header.Get("Warning") == ""
	})
	if status, header := s.read(serverPath(30, "latest")); status != http.StatusNotFound {
		t.Errorf("the lost server has status %d and Warning %q, want 404", status, header.Get("Warning"))
	}
	if list := s.readBody(serversPath); strings.Contains(list, "weather-30") || !strings.Contains(list, "weather-31") {
		t.Errorf("the list after the failover is %s", list)
	}
}

// readBody sends one read and returns the body.
func (s *service) readBody(path string) string {
	s.t.Helper()
	r, err := http.Get("http://" + s.API + path)
	must.Succeed(s.t, err)
	defer func() { _ = r.Body.Close() }() // it was read
	body, err := io.ReadAll(r.Body)
	must.Succeed(s.t, err)
	return string(body)
}
