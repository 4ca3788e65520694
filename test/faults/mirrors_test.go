package faults

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/upstream"
)

// nextRead is how long a test waits for the next read of another registry: a failed one is repeated
// after a minute, or after the lease of the reader, which is shorter.
const nextRead = 3 * patience

// listedServers returns how many servers an instance lists whose names contain a text.
func (s *service) listedServers(search string) int {
	s.t.Helper()
	seen, cursor := map[string]bool{}, ""
	for {
		status, body := getPage(s.t, "http://"+s.API+serversPath+"?limit=100&search="+search+"&cursor="+url.QueryEscape(cursor))
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

// TestMirrorWhileTheDatabaseIsAway makes PostgreSQL unavailable when an instance has stored a part of what
// another registry lists. When it is back, both instances list everything, without a command (contract
// C-63).
func TestMirrorWhileTheDatabaseIsAway(t *testing.T) {
	const servers, blocked = 300, 150
	type server struct {
		*instance.Postgres
		wire *breakableProxy
	}
	for name, c := range map[string]struct{ away, back func(server) error }{
		"frozen":  {func(s server) error { return s.Freeze() }, func(s server) error { return s.Thaw() }},
		"stopped": {func(s server) error { s.Stop(); return nil }, func(s server) error { return s.Start() }},
		"cut off": {func(s server) error { s.wire.stopForwarding(); return nil }, func(s server) error { s.wire.forwardNewConnections(); return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			p := startPostgres(t)
			on := server{p, newBreakableProxy(t, p.Address)}
			address := p.URL(on.wire.address())
			settings := []string{"DATABASE_URL=" + address, "REGISTRY_RATE_LIMIT=0"}
			one, other := startService(t, settings...), startService(t, settings...)
			up := upstream.Start(t, upstream.Servers(servers)...)
			release := blockServer(t, p, fmt.Sprintf("com.example/server-%06d", blocked))
			runCommand(t, address, "mirror", "add", "corp", up.URL)
			await.Within(t, patience, "a part of the servers is stored", func() bool { return one.listedServers("server") > 0 })
			failOnError(t, c.away(on))
			await.Within(t, patience, "an error in a log", func() bool {
				return strings.Contains(one.Log()+other.Log(), "mirrors could not be listed")
			})
			failOnError(t, c.back(on))
			release()
			for _, s := range []*service{one, other} {
				if n := s.listedServers("server"); n > blocked {
					t.Errorf("%d servers are listed, and %d were stored before the database was away", n, blocked)
				}
			}
			for _, s := range []*service{one, other} {
				await.Within(t, nextRead, "all servers", func() bool { return s.listedServers("server") == servers })
				await.Within(t, nextRead, "the state of a mirror that works", func() bool {
					return s.mirrorMetric("servers", "corp") == servers && s.mirrorMetric("failing", "corp") == 0
				})
			}
		})
	}
}

// blockServer keeps others from storing a server until release is called, or PostgreSQL ends.
func blockServer(t *testing.T, p *instance.Postgres, name string) (release func()) {
	t.Helper()
	db := p.Open()
	tx, err := db.BeginTx(t.Context(), nil)
	failOnError(t, err)
	_, err = tx.ExecContext(t.Context(), "INSERT INTO servers (name) VALUES ('"+name+"')")
	failOnError(t, err)
	return func() {
		_ = tx.Rollback() // PostgreSQL may have ended
		_ = db.Close()    // likewise
	}
}

// TestMirrorOfAHungRegistry mirrors a registry that does not respond to its first request, and one that
// does not send the end of a page. The service gives up after 30 seconds without data, goes on with
// everything else, and takes the servers when the registries respond (contract C-62, C-66 and C-67).
func TestMirrorOfAHungRegistry(t *testing.T) {
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
		runCommand(t, address, "mirror", "add", name, up.URL)
		return up
	}
	add("steady", upstream.Behaviour{})
	await.Within(t, patience, "the servers of a registry that responds", func() bool { return s.listedServers("steady") == servers })
	silent := add("silent", upstream.Behaviour{Fault: upstream.Hang(), Times: 1})
	broken := add("broken", upstream.Behaviour{Fault: upstream.HangInside(), OnPage: 2})

	await.Within(t, nextRead, "the servers of the silent registry", func() bool { return s.listedServers("silent") == servers })
	if n := len(silent.Requests()); n != 3 {
		t.Errorf("the silent registry got %d requests, want its first page twice and its second page", n)
	}
	await.Within(t, nextRead, "a registry that is failing", func() bool { return s.mirrorMetric("failing", "broken") == 1 })
	if n := s.listedServers("broken"); n != 0 {
		t.Errorf("%d servers are listed of a registry whose list has no end", n)
	}
	if !strings.Contains(s.Log(), "page 2: no data arrived for 30s") {
		t.Error("the log does not say that no data arrived")
	}
	broken.Behave(upstream.Behaviour{})
	await.Within(t, nextRead, "the servers of the registry that failed", func() bool { return s.listedServers("broken") == servers })
	for _, name := range []string{"steady", "silent", "broken"} {
		await.Within(t, patience, name+" works", func() bool { return s.mirrorMetric("failing", name) == 0 && s.mirrorMetric("servers", name) == servers })
		if n := s.listedServers(name); n != servers {
			t.Errorf("%d servers of %s are listed, want %d", n, name, servers)
		}
	}
	if n := strings.Count(s.Log(), "could not be read"); n != 1 {
		t.Errorf("the log says %d times that a registry could not be read, want it once", n)
	}
}
