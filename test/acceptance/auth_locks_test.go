package acceptance

import (
	"database/sql"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/uptrace/bun/driver/pgdriver"
)

// lockRounds is how often each pair of changes is made at once.
const lockRounds = 15

// TestLockOrder makes changes at once that lock the same rows, a device's and its sessions': PostgreSQL must have no deadlock to
// solve, which takes a second each and fails one of them.
func TestLockOrder(t *testing.T) {
	e := production(t)
	s := e.start(t, append(unhurried, "STEP_UP_LIMIT=100000")...)
	p := e.newPerson(t, "ada@example.com")
	revoker := &person{email: p.email, device: map[string]string{"userAgent": "another"}}
	revoker.login(t, s)
	for round := range lockRounds {
		p.device["screenResolution"] = fmt.Sprint(round)
		p.login(t, s)
		var challenge struct{ ChallengeID string }
		call(t, "POST", s.api+"/auth/step-up/initiate", map[string]string{"method": "EMAIL_OTP"}, p.bearer()...).
			want(t, http.StatusOK).decode(t, &challenge)
		code, device := e.code(t, p.email), newestOther(t, s, revoker)
		requests := []func() (answer, error){
			func() (answer, error) {
				return try("POST", s.api+"/auth/step-up/verify", map[string]string{"challengeId": challenge.ChallengeID, "otp": code})
			},
			func() (answer, error) { return try("DELETE", s.api+"/devices/"+device, nil, revoker.bearer()...) },
			func() (answer, error) {
				return try("POST", s.api+"/auth/refresh", map[string]string{"refreshToken": p.refreshToken})
			},
			func() (answer, error) {
				return try("POST", s.api+"/auth/login", map[string]any{"email": p.email, "password": password, "deviceInfo": p.device})
			},
		}
		for i, a := range together(t, len(requests), func(i int) (answer, error) { return requests[i]() }) {
			if a.status >= http.StatusInternalServerError {
				t.Errorf("round %d: request %d is answered %d %s", round, i, a.status, a.body)
			}
		}
	}
	s.stop() // so that all its connections have told what they counted
	if n := deadlocks(t, e); n != 0 {
		t.Errorf("%d deadlocks in %d rounds", n, lockRounds)
	}
}

// newestOther returns the device that was last seen, but for the person's own.
func newestOther(t *testing.T, s *service, p *person) string {
	t.Helper()
	own := p.sessions(t, s)
	for _, d := range p.devices(t, s) {
		if d.Revoked {
			continue
		}
		for _, session := range own {
			if session.DeviceIdentity == d.Identity && !session.Current {
				return d.ID
			}
		}
	}
	t.Fatal("no other device has a session")
	return ""
}

// deadlocks returns how many deadlocks PostgreSQL has solved in the environment's database.
func deadlocks(t *testing.T, e *environment) (n int) {
	t.Helper()
	var address string
	for _, setting := range e.environ {
		if url, ok := strings.CutPrefix(setting, "DATABASE_URL="); ok {
			address = url
		}
	}
	db := sql.OpenDB(pgdriver.NewConnector(pgdriver.WithDSN(address)))
	defer func() { _ = db.Close() }() // it was only read
	err := db.QueryRowContext(t.Context(), "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
