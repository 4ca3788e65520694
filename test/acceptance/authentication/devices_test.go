package authentication

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// deviceEntry is a device in a response of the API.
type deviceEntry struct {
	ID, Identity, TrustStatus, FirstSeen, LastSeen, Name string
	Revoked                                              bool
	Metadata                                             struct{ DeviceType, Browser, OperatingSystem, LastIPAddress string }
}

// listDevices returns the person's devices, the last seen first.
func listDevices(t *testing.T, p *fixture.Person, s *fixture.Service) []deviceEntry {
	t.Helper()
	var got struct{ Devices []deviceEntry }
	apiclient.Call(t, "GET", s.API+"/devices", nil, p.Bearer()...).WantStatus(t, http.StatusOK).Decode(t, &got)
	return got.Devices
}

type sessionEntry struct {
	ID, TrustLevel, DeviceIdentity, CreatedAt, LastActivity, IPAddress string
	Current                                                            bool
}

// listSessions returns the person's sessions, the newest first.
func listSessions(t *testing.T, p *fixture.Person, s *fixture.Service) []sessionEntry {
	t.Helper()
	var got struct{ Sessions []sessionEntry }
	apiclient.Call(t, "GET", s.API+"/sessions", nil, p.Bearer()...).WantStatus(t, http.StatusOK).Decode(t, &got)
	return got.Sessions
}

// TestDevices checks what a person sees of their devices and sessions, and every change of them.
func TestDevices(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		s := e.Start(t, fixture.RelaxedRiskSettings...)
		desk := e.NewPerson(t, "ada@example.com")
		desk.Login(t, s)
		phone := &fixture.Person{Email: desk.Email, Device: map[string]string{
			"userAgent": "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1",
		}}
		phone.Login(t, s)
		seen := listDevices(t, desk, s)
		if len(seen) != 2 {
			t.Fatalf("devices are %+v", seen)
		}
		for i, want := range []string{
			"mobile Safari iOS PENDING false 127.0.0.1", "desktop Firefox Linux PENDING false 127.0.0.1",
		} {
			d := seen[i]
			got := fmt.Sprint(d.Metadata.DeviceType, " ", d.Metadata.Browser, " ", d.Metadata.OperatingSystem, " ",
				d.TrustStatus, " ", d.Revoked, " ", d.Metadata.LastIPAddress)
			if got != want || len(d.Identity) != 64 {
				t.Errorf("device %d is %s of identity %s, want %s", i, got, d.Identity, want)
			}
			wantTimes(t, d.FirstSeen, d.LastSeen)
		}
		sessions := listSessions(t, desk, s)
		if len(sessions) != 2 || sessions[0].Current || !sessions[1].Current ||
			sessions[0].DeviceIdentity != seen[0].Identity || sessions[1].TrustLevel != "UNVERIFIED" ||
			sessions[1].IPAddress != "127.0.0.1" {
			t.Errorf("sessions are %+v", sessions)
		}
		wantTimes(t, sessions[0].CreatedAt, sessions[0].LastActivity)

		var marked struct{ Device map[string]string }
		apiclient.Call(t, "PUT", s.API+"/devices/"+seen[0].ID+"/trust", `{"trustStatus":"UNTRUSTED"}`,
			desk.Bearer()...).WantStatus(t, http.StatusOK).Decode(t, &marked)
		if marked.Device["id"] != seen[0].ID || marked.Device["trustStatus"] != "UNTRUSTED" ||
			listDevices(t, desk, s)[0].TrustStatus != "UNTRUSTED" {
			t.Errorf("after the mark the device is %v", marked.Device)
		}
		var renamed struct{ Device map[string]string }
		apiclient.Call(t, "PUT", s.API+"/devices/"+seen[0].ID+"/name", `{"name":" Tablet "}`, desk.Bearer()...).
			WantStatus(t, http.StatusOK).Decode(t, &renamed)
		if renamed.Device["name"] != "Tablet" || listDevices(t, desk, s)[0].Name != "Tablet" ||
			listDevices(t, desk, s)[1].Name != "" {
			t.Errorf("after the renaming the device is %v", renamed.Device)
		}
		revokeTwice(t, s, desk, phone, seen[0].ID)
		phone.Login(t, s) // makes a new device; the revoked one stays in the list
		if all := listDevices(t, desk, s); len(all) != 3 || all[0].ID == seen[0].ID || all[0].TrustStatus != "PENDING" {
			t.Errorf("after the next login the devices are %+v", all)
		}
		other, _ := fixture.ReadSession(t, s, phone)
		apiclient.Call(t, "DELETE", s.API+"/sessions/"+other, nil, desk.Bearer()...).WantStatus(t, http.StatusOK)
		apiclient.WantAuthError(t,
			apiclient.Call(t, "DELETE", s.API+"/sessions/"+other, nil, desk.Bearer()...).WantStatus(t,
				http.StatusNotFound), "resource_not_found")
		awaitEnded(t, s, phone)
		if left := listSessions(t, desk, s); len(left) != 1 || !left[0].Current {
			t.Errorf("sessions left are %+v", left)
		}
	})
}

func revokeTwice(t *testing.T, s *fixture.Service, by, of *fixture.Person, device string) {
	t.Helper()
	for _, want := range []int{1, 0} {
		var revoked struct{ SessionsInvalidated *int }
		apiclient.Call(t, "DELETE", s.API+"/devices/"+device, nil, by.Bearer()...).WantStatus(t, http.StatusOK).
			Decode(t, &revoked)
		if revoked.SessionsInvalidated == nil || *revoked.SessionsInvalidated != want {
			t.Errorf("revoked %v sessions, want %d", revoked.SessionsInvalidated, want)
		}
	}
	awaitEnded(t, s, of)
	apiclient.WantAuthError(t,
		apiclient.Call(t, "POST", s.API+"/auth/refresh", map[string]string{"refreshToken": of.RefreshToken}).
			WantStatus(t, http.StatusUnauthorized), "invalid_token")
	all := listDevices(t, by, s)
	if i := slices.IndexFunc(all, func(d deviceEntry) bool { return d.ID == device }); i < 0 || !all[i].Revoked {
		t.Errorf("after the revocation the devices are %+v", all)
	}
}

// awaitEnded waits until every instance refuses the person's session. Cached copies may be accepted
// for less than a second.
func awaitEnded(t *testing.T, s *fixture.Service, p *fixture.Person) {
	t.Helper()
	await.Until(t, "the end of a session", func() bool {
		return apiclient.Call(t, "GET", s.API+"/auth/session", nil, p.Bearer()...).Status != http.StatusOK
	})
	apiclient.WantAuthError(t,
		apiclient.Call(t, "GET", s.API+"/auth/session", nil, p.Bearer()...).WantStatus(t, http.StatusUnauthorized),
		"invalid_token")
}

func wantTimes(t *testing.T, all ...string) {
	t.Helper()
	for _, instant := range all {
		if at, err := time.Parse("2006-01-02T15:04:05.000Z", instant); err != nil || time.Since(at).Abs() > time.Hour {
			t.Errorf("%q is no time of now: %v", instant, err)
		}
	}
}

// TestTrustOfDevices checks the level that a password alone, a device token and the person's mark
// bring under each DEVICE_BINDING (contract ).
func TestTrustOfDevices(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		for i, c := range []struct{ binding, known, proven, trusted, unproven string }{
			{"preferred", "LIMITED_TRUST", "LIMITED_TRUST", "FULL_TRUST", "LIMITED_TRUST"},
			{"required", "UNVERIFIED", "LIMITED_TRUST", "FULL_TRUST", "UNVERIFIED"},
			{"off", "LIMITED_TRUST", "LIMITED_TRUST", "FULL_TRUST", "FULL_TRUST"},
		} {
			t.Run(c.binding, func(t *testing.T) {
				s := e.Start(t, append([]string{"DEVICE_BINDING=" + c.binding}, fixture.RelaxedRiskSettings...)...)
				p := e.NewPerson(t, fmt.Sprintf("ada%d@example.com", i))
				level := func(want, token string) {
					t.Helper()
					p.DeviceToken = token
					if p.Login(t, s); p.TrustLevel != want {
						t.Errorf("the level is %s, want %s", p.TrustLevel, want)
					}
				}
				level("UNVERIFIED", "")
				mark := listDevices(t, p, s)[0].ID
				apiclient.Call(t, "PUT", s.API+"/devices/"+mark+"/trust", `{"trustStatus":"TRUSTED"}`, p.Bearer()...).
					WantStatus(t, http.StatusOK)
				level("UNVERIFIED", "") // the mark applies once the device is confirmed
				apiclient.Call(t, "PUT", s.API+"/devices/"+mark+"/trust", `{"trustStatus":"PENDING"}`, p.Bearer()...).
					WantStatus(t, http.StatusOK)
				p.StepUp(t, e, s)
				token := p.DeviceToken
				level(c.known, "")
				level(c.known, "nonsense")
				level(c.proven, token)
				p.StepUp(t, e, s) // below FULL_TRUST the mark would count after the next code only
				apiclient.Call(t, "PUT", s.API+"/devices/"+mark+"/trust", `{"trustStatus":"TRUSTED"}`, p.Bearer()...).
					WantStatus(t, http.StatusOK)
				level(c.trusted, token)
				level(c.unproven, "")
				p.Device["timezone"] = "Asia/Tokyo"
				level("UNVERIFIED", token) // a token proves its own device only
			})
		}
	})
}

// TestAuditLog checks that each act leaves its events (contract A-47). How the log is filtered and
// paged is checked in adapters/rest/authapi and in the suite of its store.
func TestAuditLog(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t)
		p, other := e.NewPerson(t, "ada@example.com"), e.NewPerson(t, "eve@example.com")
		other.Login(t, s)
		apiclient.Call(t, "POST", s.API+"/auth/login", map[string]any{
			"email": p.Email, "password": "wrong", "deviceInfo": p.Device,
		}).WantStatus(t, http.StatusUnauthorized)
		p.Login(t, s)
		apiclient.WantAuthError(t,
			apiclient.Call(t, "POST", s.API+"/auth/step-up/verify", map[string]string{
				"challengeId": startChallenge(t, p, s), "otp": "none",
			}).WantStatus(t, http.StatusUnauthorized), "invalid_otp")
		p.StepUp(t, e, s)
		apiclient.Call(t, "PUT", s.API+"/devices/"+listDevices(t, p, s)[0].ID+"/trust", `{"trustStatus":"TRUSTED"}`,
			p.Bearer()...).WantStatus(t, http.StatusOK)

		page := p.ReadAuditLog(t, s, "")
		var got []string
		for _, entry := range page.Logs {
			wantTimes(t, entry.Timestamp)
			got = append(got, fmt.Sprintf("%s %t", entry.EventType, entry.Success))
		}
		want := []string{
			"DEVICE_CHANGE true", "STEP_UP_ATTEMPT true", "STEP_UP_ATTEMPT true", "STEP_UP_ATTEMPT false",
			"STEP_UP_ATTEMPT true",
			"DEVICE_CHANGE true", "LOGIN_ATTEMPT true", "RISK_EVALUATION true", "LOGIN_ATTEMPT false",
		}
		if !slices.Equal(got, want) || page.Total != len(want) || page.Limit != 100 || page.Offset != 0 {
			t.Errorf("the log is %q (%+v), want %q", got, page, want)
		}
		// An unknown device, and one failed login before.
		if d := page.Logs[7].Details; d["riskScore"] != 40.0 || d["trustLevel"] != "UNVERIFIED" {
			t.Errorf("the evaluation is %v", d)
		}
		some := p.ReadAuditLog(t, s, "eventType=STEP_UP_ATTEMPT&limit=2&offset=1&startDate=2020-01-01")
		if some.Total != 4 || len(some.Logs) != 2 || some.Logs[0].ID != page.Logs[2].ID {
			t.Errorf("a page of the step-ups is %+v", some)
		}
	})
}
