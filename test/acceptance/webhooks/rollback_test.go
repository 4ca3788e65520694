package webhooks

import (
	"database/sql"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/uptrace/bun/driver/pgdriver"
	_ "modernc.org/sqlite" // the driver sqlite

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/apiclient"
	"github.com/tollgate-dev/tollgate/test/acceptance/internal/fixture"
)

// TestRollback makes the last statement of changes fail, which is the one for the audit log. Nothing
// of them is left, so no event arrives (contract C-54).
func TestRollback(t *testing.T) {
	t.Parallel()
	fixture.InEachEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := openSite(t, e)
		s.publish(t, "com.example/kept", "1.0.0")
		r := newReceiver(t)
		r.add(e, allEvents, "*")
		db := openDatabase(t, e)
		refuse, accept := `CREATE TRIGGER refuse BEFORE INSERT ON audit_events BEGIN SELECT RAISE(ABORT, 'no'); END`, `DROP TRIGGER refuse`
		if e.Shared {
			refuse, accept = `ALTER TABLE audit_events ADD CONSTRAINT refuse CHECK (false) NOT VALID`, `ALTER TABLE audit_events DROP CONSTRAINT refuse`
		}
		execute(t, db, refuse)
		path := "/v0.1" + fixture.ServerPath("com.example/kept", "1.0.0")
		for _, c := range []struct {
			method, path string
			body         any
		}{
			{"POST", "/v0.1/publish", fixture.NewServerDocument("com.example/lost", "1.0.0")},
			{"PUT", path, fixture.WithProperty(fixture.NewServerDocument("com.example/kept", "1.0.0"), "title", "lost")},
			{"PATCH", path + "/status", `{"status":"deprecated"}`},
			{"PATCH", "/v0.1" + fixture.ServerPath("com.example/kept") + "/status", `{"status":"deprecated"}`},
			{"DELETE", path, nil},
		} {
			a, err := apiclient.TryCall(c.method, s.one.API+c.path, c.body, s.ada.Bearer()...)
			if err != nil || a.Status < http.StatusInternalServerError {
				t.Errorf("%s %s: %d %s, %v, want a failure", c.method, c.path, a.Status, a.Body, err)
			}
		}
		if _, _, code := e.TryCommand(t, "", "registry", "quarantine", "com.example/kept", "--reason", "lost"); code == 0 {
			t.Error("quarantine succeeded without the audit log")
		}
		execute(t, db, accept)
		s.publish(t, "com.example/kept", "2.0.0")
		s.publish(t, "com.example/last", "1.0.0")
		r.awaitAnyOrder("published kept 2.0.0", "published last 1.0.0")
	})
}

// openDatabase opens the database of an environment.
func openDatabase(t *testing.T, e *fixture.Environment) *sql.DB {
	t.Helper()
	var db *sql.DB
	for _, variable := range e.Environ {
		if address, ok := strings.CutPrefix(variable, "DATABASE_URL="); ok {
			db = sql.OpenDB(pgdriver.NewConnector(pgdriver.WithDSN(address)))
		}
	}
	if db == nil {
		var err error
		if db, err = sql.Open("sqlite", filepath.Join(e.Dir, "data", "tollgate.db")+"?_pragma=busy_timeout(10000)"); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = db.Close() }) // nothing is open any more
	return db
}

func execute(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}
