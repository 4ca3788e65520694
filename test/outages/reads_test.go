package outages

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/must"
)

// keptReads are the reads of TestReadsWhileTheDatabaseIsAway, by their status.
var keptReads = map[string]int{
	serversPath:                   http.StatusOK,
	serversPath + "?limit=2":      http.StatusOK,
	serversPath + "?search=wea":   http.StatusOK,
	serversPath + "?version=9.9":  http.StatusOK,
	serverPath(1, "latest"):       http.StatusOK,
	serverPath(2, "1.0.0"):        http.StatusOK,
	serversPath + versionsPath(3): http.StatusOK,
	"/v0/servers?limit=2&search=": http.StatusOK, // the same as another one
}

func versionsPath(n int) string { return fmt.Sprintf("/com.example%%2Fweather-%d/versions", n) }

func serverPath(n int, version string) string { return serversPath + versionsPath(n) + "/" + version }

// importServers imports servers as an operator does.
func importServers(t *testing.T, address string, from, to int) {
	t.Helper()
	type server struct {
		Schema      string `json:"$schema"`
		Name        string `json:"name"`
		Description string `json:"description"`
		Version     string `json:"version"`
	}
	var list struct {
		Servers []map[string]server `json:"servers"`
	}
	for n := from; n < to; n++ {
		list.Servers = append(list.Servers, map[string]server{"server": {
			"https://static.modelcontextprotocol.io/schemas/2025-10-17/server.schema.json",
			fmt.Sprintf("com.example/weather-%d", n), "Answers what the weather will be", "1.0.0",
		}})
	}
	content, err := json.Marshal(list)
	must.Succeed(t, err)
	file := filepath.Join(t.TempDir(), "servers.json")
	must.Succeed(t, os.WriteFile(file, content, 0o600))
	runCommand(t, []string{"DATABASE_URL=" + address}, "", "registry", "import", file)
}

// read sends one read and returns its status and headers.
func (s *service) read(path string) (int, http.Header) {
	s.t.Helper()
	r, err := http.Get("http://" + s.API + path)
	must.Succeed(s.t, err)
	must.Succeed(s.t, r.Body.Close())
	return r.StatusCode, r.Header
}

// TestReadsWhileTheDatabaseIsAway makes PostgreSQL unavailable in different ways while clients
// read. No read that was answered before fails, until the database is back and the responses are
// current again.
func TestReadsWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	more := []failure{
		{
			name: "restarted", away: func(s remoteServer) error { s.Stop(); return s.Start() },
			back: func(remoteServer) error { return nil }, readable: true,
		},
		{
			name: "failed over", away: func(s remoteServer) error {
				s.wire.setTarget(s.standby.Address)
				s.Stop()
				return nil
			}, back: func(s remoteServer) error { return s.standby.Promote() }, readable: true, standby: true,
		},
	}
	eachFailure(t, append(more, failures...), func(t *testing.T, on remoteServer, f failure) {
		address := on.url()
		s := startService(t, "DATABASE_URL="+address, "REGISTRY_RATE_LIMIT=0")
		importServers(t, address, 0, 10)
		await.Until(t, "the import is seen", func() bool {
			status, _ := s.read(serverPath(1, "latest"))
			return status == http.StatusOK
		})
		s.readAll("before")
		if status, _ := s.read(serverPath(99, "latest")); status != http.StatusNotFound {
			t.Errorf("an unknown server has status %d", status)
		}
		importServers(t, address, 10, 12) // some responses are made again, some are not
		await.Until(t, "the second import is seen", func() bool {
			status, _ := s.read(serverPath(11, "latest"))
			return status == http.StatusOK
		})
		must.Succeed(t, f.away(on))
		rounds := 0
		if !f.readable {
			await.Until(t, "responses that say how old they are", func() bool {
				rounds++
				return s.readAll(f.name)
			})
		}
		for end := rounds + 100; rounds < end; rounds++ {
			if !s.readAll(f.name) && !f.readable {
				t.Fatal("a response does not say how old it is after others did")
			}
		}
		t.Logf("%d reads while it was away", rounds*len(keptReads))
		if !f.readable {
			s.checkAway()
		}
		must.Succeed(t, f.back(on))
		await.Until(t, "current responses", func() bool {
			_, header := s.read(serversPath)
			return header.Get("Warning") == ""
		})
		importServers(t, address, 20, 21)
		await.Until(t, "a change after the database is back", func() bool {
			status, _ := s.read(serverPath(20, "latest"))
			return status == http.StatusOK
		})
		if stale := s.readMetric("tollgate_registry_stale_seconds"); stale != 0 {
			t.Errorf("the responses are %d s old after the database is back", stale)
		}
	})
}

// readAll reads each of keptReads once, and reports whether all responses have a warning with their
// age.
func (s *service) readAll(what string) (warned bool) {
	s.t.Helper()
	warned = true
	for path, want := range keptReads {
		status, header := s.read(path)
		if status != want {
			s.t.Fatalf("%s: %s has status %d, want %d", what, path, status, want)
		}
		warned = warned && strings.HasPrefix(header.Get("Warning"), "110 ") && header.Get("Age") != ""
	}
	return warned
}

// checkAway checks what operators and writers see while the database is away.
func (s *service) checkAway() {
	s.t.Helper()
	if status, _ := s.read(serverPath(99, "latest")); status != http.StatusServiceUnavailable {
		s.t.Errorf("a server that was unknown before has status %d", status)
	}
	if status, _ := s.read(serverPath(5, "latest")); status != http.StatusServiceUnavailable {
		s.t.Errorf("a read that was not answered before has status %d", status)
	}
	await.Until(s.t, "/ready that says so", func() bool {
		status, body := getPage(s.t, "http://"+s.API+"/ready")
		return status == http.StatusServiceUnavailable && strings.Contains(body, `"registry_reads":"stale"`) &&
			strings.Contains(body, `"database":"down"`)
	})
	await.Until(s.t, "metrics of stale reads", func() bool {
		return s.readMetric(`tollgate_registry_cache_reads_total{result="stale"}`) > 0 &&
			s.readMetric("tollgate_registry_stale_seconds") > 0
	})
}
