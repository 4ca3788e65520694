package notifying

import (
	"database/sql"
	"net/http"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestRollback makes the last statement of changes fail, which is the one for the audit log.
// Nothing of them is left, so no event arrives (contract C-54).
func TestRollback(t *testing.T) {
	t.Parallel()
	fixture.InBothEnvironments(t, func(t *testing.T, e *fixture.Environment) {
		t.Parallel()
		s := openSite(t, e)
		s.publish(t, "com.example/kept", "1.0.0")
		r := newReceiver(t)
		r.add(e, allEvents, "*")
		db := e.OpenDatabase(t)
		refuse, accept := `CREATE TRIGGER refuse BEFORE INSERT ON audit_events BEGIN SELECT RAISE(ABORT, 'no'); END`,
			`DROP TRIGGER refuse`
		if e.Shared {
			refuse, accept = `ALTER TABLE audit_events ADD CONSTRAINT refuse CHECK (false) NOT VALID`,
				`ALTER TABLE audit_events DROP CONSTRAINT refuse`
		}
		execute(t, db, refuse)
		path := "/v0.1" + fixture.ServerPath("com.example/kept", "1.0.0")
		for _, c := range []struct {
			method, path string
			body         any
		}{
			{"POST", "/v0.1/publish", fixture.NewServerDocument("com.example/lost", "1.0.0")},
			{
				"PUT", path,
				fixture.WithProperty(fixture.NewServerDocument("com.example/kept", "1.0.0"), "title", "lost"),
			},
			{"PATCH", path + "/status", `{"status":"deprecated"}`},
			{"PATCH", "/v0.1" + fixture.ServerPath("com.example/kept") + "/status", `{"status":"deprecated"}`},
			{"DELETE", path, nil},
		} {
			a, err := apiclient.TryCall(c.method, s.one.API+c.path, c.body, s.ada.Bearer()...)
			if err != nil || a.Status < http.StatusInternalServerError {
				t.Errorf("%s %s: %d %s, %v, want a failure", c.method, c.path, a.Status, a.Body, err)
			}
		}
		if _, _, code := e.TryCommand(t, "", "registry", "quarantine", "com.example/kept", "--reason",
			"lost"); code == 0 {
			t.Error("quarantine succeeded without the audit log")
		}
		execute(t, db, accept)
		s.publish(t, "com.example/kept", "2.0.0")
		s.publish(t, "com.example/last", "1.0.0")
		r.awaitAnyOrder("published kept 2.0.0", "published last 1.0.0")
	})
}

func execute(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}
