package outages

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/upstream"
)

// setMirrors changes columns of the mirrors that a condition selects, but of none whose row is
// locked, and returns how many it changed.
func setMirrors(t *testing.T, db *sql.DB, columns, condition string) int64 {
	t.Helper()
	result, err := db.ExecContext(t.Context(),
		"UPDATE mirrors SET "+columns+" WHERE name IN (SELECT name FROM mirrors WHERE "+condition+
			" FOR UPDATE SKIP LOCKED)")
	must.Succeed(t, err)
	n, err := result.RowsAffected()
	must.Succeed(t, err)
	return n
}

// awaitMirrored waits until an instance lists the servers of another registry. After a failure the
// next read would follow a minute later (contract C-62), so the time until then passes at once.
func (s *service) awaitMirrored(db *sql.DB, search string, servers int) {
	s.t.Helper()
	await.Until(s.t, "the servers of "+search, func() bool {
		setMirrors(s.t, db, "next_at = now()", "failing_since IS NOT NULL AND next_at > now()")
		return s.listedServers(search) == servers
	})
}

// listedServers returns how many servers an instance lists whose names contain a text.
func (s *service) listedServers(search string) int {
	s.t.Helper()
	seen, cursor := map[string]bool{}, ""
	for {
		status, body := getPage(s.t,
			"http://"+s.API+serversPath+"?limit=100&search="+search+"&cursor="+url.QueryEscape(cursor))
		var page struct {
			Servers  []struct{ Server struct{ Name string } }
			Metadata struct{ NextCursor string }
		}
		if err := json.Unmarshal([]byte(body), &page); err != nil || status != http.StatusOK {
			return -1 // the database is away
		}
		for _, one := range page.Servers {
			seen[one.Server.Name] = true
		}
		if cursor = page.Metadata.NextCursor; cursor == "" {
			return len(seen)
		}
	}
}

// mirrorMetric returns a metric of a mirror.
func (s *service) mirrorMetric(metric, mirror string) uint64 {
	s.t.Helper()
	return s.readMetric(fmt.Sprintf("tollgate_mirror_%s{mirror=%q}", metric, mirror))
}

// TestMirrorWhileTheDatabaseIsAway makes PostgreSQL unavailable when an instance has stored a part
// of what another registry lists. When it is back, both instances list everything, without a
// command (contract C-63).
func TestMirrorWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	const servers, blocked = 300, 150
	eachFailure(t, mostFailures(), func(t *testing.T, on remoteServer, f failure) {
		p, address := on.Postgres, on.url()
		// PostgreSQL ends a transaction that was cut off after three times
		// DATABASE_STATEMENT_TIMEOUT.
		settings := []string{"DATABASE_URL=" + address, "REGISTRY_RATE_LIMIT=0", "DATABASE_STATEMENT_TIMEOUT=3s"}
		one, other := startService(t, settings...), startService(t, settings...)
		up := upstream.Start(t, upstream.Servers(servers)...)
		release := blockServer(t, p, fmt.Sprintf("com.example/server-%06d", blocked))
		runCommand(t, []string{"DATABASE_URL=" + address}, "", "mirror", "add", "corp", up.URL)
		await.Until(t, "a part of the servers is stored", func() bool { return one.listedServers("server") > 0 })
		must.Succeed(t, f.away(on))
		await.Until(t, "an error in a log", func() bool {
			return strings.Contains(one.Log()+other.Log(), "mirrors could not be listed")
		})
		must.Succeed(t, f.back(on))
		release()
		for _, s := range []*service{one, other} {
			if n := s.listedServers("server"); n > blocked {
				t.Errorf("%d servers are listed, and %d were stored before the database was away", n, blocked)
			}
		}
		db := openDatabase(t, p)
		// The reader could not end its lease while the database was away; its time passes at
		// once.
		await.Until(t, "the end of the transactions", func() bool {
			return setMirrors(t, db, "lease_until = lease_until - interval '30 s'", "true") == 1
		})
		for _, s := range []*service{one, other} {
			s.awaitMirrored(db, "server", servers)
			await.Until(t, "the state of a mirror that works", func() bool {
				return s.mirrorMetric("servers", "corp") == servers && s.mirrorMetric("failing", "corp") == 0
			})
		}
	})
}

// openDatabase opens the database of a server until the test ends.
func openDatabase(t *testing.T, p *instance.Postgres) *sql.DB {
	t.Helper()
	db := p.Open()
	t.Cleanup(func() { _ = db.Close() }) // the test is over
	return db
}

// blockServer keeps others from storing a server until release is called, or PostgreSQL ends.
func blockServer(t *testing.T, p *instance.Postgres, name string) (release func()) {
	t.Helper()
	db := p.Open()
	tx, err := db.BeginTx(t.Context(), nil)
	must.Succeed(t, err)
	_, err = tx.ExecContext(t.Context(), "INSERT INTO servers (name) VALUES ('"+name+"')")
	must.Succeed(t, err)
	return func() {
		_ = tx.Rollback() // PostgreSQL may have ended
		_ = db.Close()    // likewise
	}
}

// TestMirrorOfAHungRegistry mirrors a registry that does not respond to its first request, and one
// that does not send the end of a page. The service gives up after 30 seconds without data, goes on
// with everything else, and takes the servers when the registries respond (contract C-62, C-66 and
// C-67).
func TestMirrorOfAHungRegistry(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("long: waits until registries have sent no data for 30 seconds; make test-long runs it")
	}
	const servers = 120
	p := startPostgres(t)
	address := p.URL(p.Address)
	s := startService(t, "DATABASE_URL="+address, "REGISTRY_RATE_LIMIT=0")
	add := func(name string, b upstream.Behaviour) *upstream.Server {
		records := make([]upstream.Record, servers)
		for i := range records {
			records[i].Document = upstream.Document(fmt.Sprintf("com.example.%s/s%d", name, i), "1.0.0", "A server.")
		}
		up := upstream.Start(t, records...)
		up.Behave(b)
		runCommand(t, []string{"DATABASE_URL=" + address}, "", "mirror", "add", name, up.URL)
		return up
	}
	add("steady", upstream.Behaviour{})
	await.Until(t, "the servers of a registry that responds", func() bool {
		return s.listedServers("steady") == servers
	})
	silent := add("silent", upstream.Behaviour{Fault: upstream.Hang(), Times: 1})
	broken := add("broken", upstream.Behaviour{Fault: upstream.HangInside(), OnPage: 2})

	var began time.Time
	await.Until(t, "reads of both registries", func() bool {
		began = time.Now()
		return len(silent.Requests()) == 1 && len(broken.Requests()) == 2
	})
	await.Until(t, "most of the time without data", func() bool { return time.Since(began) > 15*time.Second })
	await.Until(t, "the servers of the silent registry", func() bool { return s.listedServers("silent") == servers })
	if n := len(silent.Requests()); n != 3 {
		t.Errorf("the silent registry got %d requests, want its first page twice and its second page", n)
	}
	await.Until(t, "a registry that is failing", func() bool { return s.mirrorMetric("failing", "broken") == 1 })
	if n := s.listedServers("broken"); n != 0 {
		t.Errorf("%d servers are listed of a registry whose list has no end", n)
	}
	if !strings.Contains(s.Log(), "page 2: no data arrived for 30s") {
		t.Error("the log does not say that no data arrived")
	}
	broken.Behave(upstream.Behaviour{})
	s.awaitMirrored(openDatabase(t, p), "broken", servers)
	for _, name := range []string{"steady", "silent", "broken"} {
		await.Until(t, name+" works", func() bool {
			return s.mirrorMetric("failing", name) == 0 && s.mirrorMetric("servers", name) == servers
		})
		if n := s.listedServers(name); n != servers {
			t.Errorf("%d servers of %s are listed, want %d", n, name, servers)
		}
	}
	if n := strings.Count(s.Log(), "could not be read"); n != 1 {
		t.Errorf("the log says %d times that a registry could not be read, want it once", n)
	}
}
