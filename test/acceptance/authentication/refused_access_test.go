package authentication

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// refusedAccess is an event of refused access, in the order of the requests.
type refusedAccess struct{ what, target, level, required string }

// TestRefusedAccessIsRecorded checks that access that is refused leaves an event in the log of the
// person who tried, and nothing in the log of the owner (contract A-66).
func TestRefusedAccessIsRecorded(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		s := e.Start(t)
		thief, owner := e.NewPerson(t, "eve@example.com"), e.NewPerson(t, "ada@example.com")
		thief.Login(t, s)
		owner.Login(t, s)
		device := listDevices(t, owner, s)[0].ID
		session, _ := fixture.ReadSession(t, s, owner)
		for _, r := range []struct {
			method, path string
			body         any
			code         string
		}{
			{
				"POST", "/auth/password", map[string]string{
					"currentPassword": fixture.Password, "newPassword": "Another-pass-9!",
				}, "insufficient_trust",
			},
			{"PUT", "/devices/" + device + "/trust", map[string]string{"trustStatus": "TRUSTED"}, "access_denied"},
			{"PUT", "/devices/" + device + "/name", map[string]string{"name": "mine"}, "access_denied"},
			{"DELETE", "/devices/" + device, nil, "access_denied"},
			{"DELETE", "/sessions/" + session, nil, "access_denied"},
			{"POST", "/auth/logout", map[string]string{"sessionId": session}, "access_denied"},
		} {
			a := apiclient.Call(t, r.method, s.API+r.path, r.body, thief.Bearer()...).WantStatus(t,
				http.StatusForbidden)
			apiclient.WantAuthError(t, a, r.code)
		}
		apiclient.Call(t, "DELETE", s.API+"/devices/"+unknownID, nil, thief.Bearer()...).WantStatus(t,
			http.StatusNotFound)

		want := []refusedAccess{
			{"POST /auth/password", "", "UNVERIFIED", "FULL_TRUST"},
			{"trust", device, "UNVERIFIED", ""}, {"rename", device, "UNVERIFIED", ""}, {
				"revoke", device, "UNVERIFIED", "",
			},
			{"terminated", session, "UNVERIFIED", ""}, {"sign_out", session, "UNVERIFIED", ""},
		}
		if got := readRefusedAccess(t, s, thief); !slices.Equal(got, want) {
			t.Errorf("the log of who tried has %+v, want %+v", got, want)
		}
		if got := readRefusedAccess(t, s, owner); len(got) != 0 {
			t.Errorf("the owner's log has %+v", got)
		}
		var all []fixture.AuditEvent
		e.ReadCommand(t, &all, "audit", "search", "--type", "ACCESS_REFUSED", "--limit", "0")
		if len(all) != len(want) {
			t.Errorf("operators see %d events, want %d", len(all), len(want))
		}
	})
}

// readRefusedAccess returns the refused access in the log of a person, oldest first.
func readRefusedAccess(t *testing.T, s *fixture.Service, p *fixture.Person) (list []refusedAccess) {
	t.Helper()
	text := func(details map[string]any, names ...string) string {
		for _, name := range names {
			if value, ok := details[name].(string); ok {
				return value
			}
		}
		return ""
	}
	for _, entry := range p.ReadAuditLog(t, s, "eventType=ACCESS_REFUSED&limit=1000").Logs {
		if entry.Success {
			t.Errorf("a success: %+v", entry)
		}
		d := entry.Details
		list = append(list, refusedAccess{
			text(d, "operation", "action"), text(d, "targetDeviceId", "targetSessionId"), text(d, "trustLevel"),
			text(d, "requiredTrustLevel"),
		})
	}
	slices.Reverse(list)
	return list
}

// TestRefusedAccessIsBounded checks that 200 refusals at once, on all instances, leave no more
// events than the limit of an hour (contract A-66).
func TestRefusedAccessIsBounded(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		const limit = 20
		on := startPair(t, e)
		thief, owner := e.NewPerson(t, "eve@example.com"), e.NewPerson(t, "ada@example.com")
		thief.Login(t, on[0])
		owner.Login(t, on[0])
		device := listDevices(t, owner, on[0])[0].ID
		begun := time.Now()
		answers := fixture.CallInParallel(t, 200, func(i int) (apiclient.Response, error) {
			return apiclient.TryCall("DELETE", on[i%len(on)].API+"/devices/"+device, nil, thief.Bearer()...)
		})
		windows := 1 + int(time.Now().Truncate(time.Hour).Sub(begun.Truncate(time.Hour))/time.Hour)
		for _, a := range answers {
			apiclient.WantAuthError(t, a.WantStatus(t, http.StatusForbidden), "access_denied")
		}
		if n := len(readRefusedAccess(t, on[0], thief)); n < limit || n > limit*windows {
			t.Errorf("%d events, want %d in each of %d windows", n, limit, windows)
		}
	})
}
