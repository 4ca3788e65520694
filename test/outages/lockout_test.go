package outages

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/uptrace/bun/driver/pgdriver"

	"github.com/tollgate-dev/tollgate/adapters/relational/postgres/postgrestest"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/must"
)

const rightPassword = "Right-Horse-9-Battery"

// logIn signs a person in and returns the status, or 0 when there is no response.
func logIn(s *service, email, password string) int {
	// never fails
	body, _ := json.Marshal(map[string]any{
		"email": email, "password": password, "deviceInfo": map[string]string{"userAgent": "test"},
	})
	r, err := http.Post("http://"+s.API+"/auth/login", "application/json",
		bytes.NewReader(body)) //nolint:gosec // the instance's own
	if err != nil {
		return 0
	}
	_ = r.Body.Close() // the test checks the status only
	return r.StatusCode
}

// TestKilledInTheMiddleOfALogin kills an instance after it has accepted a password and before it
// stores the login, as often as the lockout threshold. The other instance must not count these
// logins as failures.
func TestKilledInTheMiddleOfALogin(t *testing.T) {
	t.Parallel()
	address := postgrestest.NewMigrated(t)
	environ := []string{"DATABASE_URL=" + address, "LOCKOUT_THRESHOLD=3", "DATABASE_TIMEOUT=30s"}
	left := startService(t, environ...)
	runCommand(t, environ, rightPassword, "user", "add", "--email", "ada@example.com", "--name", "Ada", "--password-stdin")
	db := sql.OpenDB(pgdriver.NewConnector(pgdriver.WithDSN(address)))
	t.Cleanup(func() { must.Succeed(t, db.Close()) })
	for range 3 {
		dies := startProcess(t, environ...)
		holder, err := db.BeginTx(t.Context(), nil)
		must.Succeed(t, err)
		_, err = holder.ExecContext(t.Context(), "SELECT 1 FROM accounts FOR UPDATE")
		must.Succeed(t, err)
		answered := make(chan int, 1)
		go func() { answered <- logIn(dies, "ada@example.com", rightPassword) }()
		await.Until(t, "a login that waits for its account", func() bool {
			var waiting int
			must.Succeed(t, db.QueryRowContext(t.Context(),
				"SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").Scan(&waiting))
			return waiting > 0
		})
		dies.Kill()
		if status := <-answered; status != 0 {
			t.Errorf("an instance that was killed answered %d", status)
		}
		must.Succeed(t, holder.Rollback())
	}
	var failed int
	must.Succeed(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM audit_events WHERE NOT success").Scan(&failed))
	if failed != 0 {
		t.Errorf("%d failures in the audit log, want 0", failed)
	}
	for range 2 {
		if status := logIn(left, "ada@example.com", "wrong"); status != http.StatusUnauthorized {
			t.Errorf("a wrong password is answered %d", status)
		}
	}
	if status := logIn(left, "ada@example.com", rightPassword); status != http.StatusOK {
		t.Errorf("a right password after two wrong ones is answered %d", status)
	}
}
