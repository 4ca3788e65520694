package authentication

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// lockRounds is the number of times that each pair of changes is made at once.
const lockRounds = 15

// TestLockOrder makes changes at once that lock the same rows: those of a device and of its
// sessions. PostgreSQL must not detect a deadlock, because that takes a second and fails one of the
// changes.
func TestLockOrder(t *testing.T) {
	e := fixture.NewProduction(t)
	s := e.Start(t, append(fixture.RelaxedRiskSettings, "STEP_UP_LIMIT=100000")...)
	p := e.NewPerson(t, "ada@example.com")
	revoker := &fixture.Person{Email: p.Email, Device: map[string]string{"userAgent": "another"}}
	revoker.Login(t, s)
	for round := range lockRounds {
		p.Device["screenResolution"] = fmt.Sprint(round)
		p.Login(t, s)
		var challenge struct{ ChallengeID string }
		apiclient.Call(t, "POST", s.API+"/auth/step-up/initiate", map[string]string{"method": "EMAIL_OTP"},
			p.Bearer()...).
			WantStatus(t, http.StatusOK).Decode(t, &challenge)
		code, device := e.LastCode(t, p.Email), findNewestOther(t, s, revoker)
		requests := []func() (apiclient.Response, error){
			func() (apiclient.Response, error) {
				return apiclient.TryCall("POST", s.API+"/auth/step-up/verify", map[string]string{
					"challengeId": challenge.ChallengeID, "otp": code,
				})
			},
			func() (apiclient.Response, error) {
				return apiclient.TryCall("DELETE", s.API+"/devices/"+device, nil, revoker.Bearer()...)
			},
			func() (apiclient.Response, error) {
				return apiclient.TryCall("POST", s.API+"/auth/refresh", map[string]string{
					"refreshToken": p.RefreshToken,
				})
			},
			func() (apiclient.Response, error) {
				return apiclient.TryCall("POST", s.API+"/auth/login", map[string]any{
					"email": p.Email, "password": fixture.Password, "deviceInfo": p.Device,
				})
			},
		}
		for i, a := range fixture.CallInParallel(t, len(requests), func(i int) (apiclient.Response, error) {
			return requests[i]()
		}) {
			if a.Status >= http.StatusInternalServerError {
				t.Errorf("round %d: request %d is answered %d %s", round, i, a.Status, a.Body)
			}
		}
	}
	s.Stop() // so that all its connections have reported their counts
	if n := countDeadlocks(t, e); n != 0 {
		t.Errorf("%d deadlocks in %d rounds", n, lockRounds)
	}
}

// findNewestOther returns the device that was last seen, but for the person's own.
func findNewestOther(t *testing.T, s *fixture.Service, p *fixture.Person) string {
	t.Helper()
	own := listSessions(t, p, s)
	for _, d := range listDevices(t, p, s) {
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

// countDeadlocks returns how many deadlocks PostgreSQL has solved in the environment's database.
func countDeadlocks(t *testing.T, e *fixture.Environment) (n int) {
	t.Helper()
	err := e.OpenDatabase(t).QueryRowContext(t.Context(),
		"SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").Scan(&n)
	must.Succeed(t, err)
	return n
}
