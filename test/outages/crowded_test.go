package outages

import (
	"net/http"
	"testing"

	"github.com/tollgate-dev/tollgate/test/must"
)

// TestServerWithoutConnections takes all connections of PostgreSQL except those that the service
// has. Callers wait for one of these, and get no error.
func TestServerWithoutConnections(t *testing.T) {
	t.Parallel()
	p := startPostgres(t)
	admin := p.Open()
	_, err := admin.ExecContext(t.Context(), "ALTER SYSTEM SET max_connections = 12")
	must.Succeed(t, err)
	must.Succeed(t, admin.Close())
	p.Stop()
	must.Succeed(t, p.Start())
	other := p.Open()
	defer func() { _ = other.Close() }() // the test is over
	// The service may have 20 connections, more than the server gives out.
	s := startService(t, "DATABASE_URL="+p.URL(p.Address), "REGISTRY_RATE_LIMIT=0", "AUTH_RATE_LIMIT=0",
		"REGISTRY_CACHE_BYTES=0", "DATABASE_TIMEOUT=30s")
	s.wantAll("before", s.callInParallel(serversPath, 1), http.StatusOK)
	taken := 0
	for ; ; taken++ {
		conn, err := other.Conn(t.Context())
		if err != nil {
			break
		}
		defer func() { _ = conn.Close() }() // the test is over
	}
	t.Logf("%d of 12 connections are taken", taken)
	s.wantAll("reads", s.callInParallel(serversPath, crowd), http.StatusOK)
	s.wantAll("changes", s.failLogins(crowd), http.StatusUnauthorized)
	if status, body := getPage(t, "http://"+s.API+"/ready"); status != http.StatusOK {
		t.Errorf("/ready: %d %s", status, body)
	}
}
