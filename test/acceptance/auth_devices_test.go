package acceptance

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"
)

// deviceEntry is a device as the API shows it.
type deviceEntry struct {
	ID, Identity, TrustStatus, FirstSeen, LastSeen string
	Revoked                                        bool
	Metadata                                       struct{ DeviceType, Browser, OperatingSystem, LastIPAddress string }
}

// devices returns the person's devices, the last seen first.
func (p *person) devices(t *testing.T, s *service) []deviceEntry {
	t.Helper()
	var got struct{ Devices []deviceEntry }
	call(t, "GET", s.api+"/devices", nil, p.bearer()...).want(t, http.StatusOK).decode(t, &got)
	return got.Devices
}

type sessionEntry struct {
	ID, TrustLevel, DeviceIdentity, CreatedAt, LastActivity, IPAddress string
	Current                                                            bool
}

// sessions returns the person's sessions, the newest first.
func (p *person) sessions(t *testing.T, s *service) []sessionEntry {
	t.Helper()
	var got struct{ Sessions []sessionEntry }
	call(t, "GET", s.api+"/sessions", nil, p.bearer()...).want(t, http.StatusOK).decode(t, &got)
	return got.Sessions
}

// unhurried are settings for tests that sign in faster than people do.
var unhurried = []string{"RISK_VELOCITY_SESSIONS=1000", "RISK_FAILED_FEW=0", "RISK_FAILED_SOME=0", "RISK_FAILED_MANY=0"}

// TestDevices walks through what a person sees of their devices and sessions,
// and does to them.
func TestDevices(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		s := e.start(t, unhurried...)
		desk := e.newPerson(t, "ada@example.com")
		desk.login(t, s)
		phone := &person{email: desk.email, device: map[string]string{
			"userAgent": "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1",
		}}
		phone.login(t, s)
		seen := desk.devices(t, s)
		if len(seen) != 2 {
			t.Fatalf("devices are %+v", seen)
		}
		for i, want := range []string{"mobile Safari iOS PENDING false 127.0.0.1", "desktop Firefox Linux PENDING false 127.0.0.1"} {
			d := seen[i]
			got := fmt.Sprint(d.Metadata.DeviceType, " ", d.Metadata.Browser, " ", d.Metadata.OperatingSystem, " ", d.TrustStatus, " ", d.Revoked, " ", d.Metadata.LastIPAddress)
			if got != want || len(d.Identity) != 64 {
				t.Errorf("device %d is %s of identity %s, want %s", i, got, d.Identity, want)
			}
			wantInstants(t, d.FirstSeen, d.LastSeen)
		}
		sessions := desk.sessions(t, s)
		if len(sessions) != 2 || sessions[0].Current || !sessions[1].Current || sessions[0].DeviceIdentity != seen[0].Identity || sessions[1].TrustLevel != "UNVERIFIED" || sessions[1].IPAddress != "127.0.0.1" {
			t.Errorf("sessions are %+v", sessions)
		}
		wantInstants(t, sessions[0].CreatedAt, sessions[0].LastActivity)

		var marked struct{ Device map[string]string }
		call(t, "PUT", s.api+"/devices/"+seen[0].ID+"/trust", `{"trustStatus":"UNTRUSTED"}`, desk.bearer()...).want(t, http.StatusOK).decode(t, &marked)
		if marked.Device["id"] != seen[0].ID || marked.Device["trustStatus"] != "UNTRUSTED" || desk.devices(t, s)[0].TrustStatus != "UNTRUSTED" {
			t.Errorf("after the mark the device is %v", marked.Device)
		}
		revokeTwice(t, s, desk, phone, seen[0].ID)
		phone.login(t, s) // makes a new device; the revoked one stays listed
		if all := desk.devices(t, s); len(all) != 3 || all[0].ID == seen[0].ID || all[0].TrustStatus != "PENDING" {
			t.Errorf("after the next login the devices are %+v", all)
		}
		other, _ := sessionOf(t, s, phone)
		call(t, "DELETE", s.api+"/sessions/"+other, nil, desk.bearer()...).want(t, http.StatusOK)
		wantCode(t, call(t, "DELETE", s.api+"/sessions/"+other, nil, desk.bearer()...).want(t, http.StatusNotFound), "resource_not_found")
		awaitEnded(t, s, phone)
		if left := desk.sessions(t, s); len(left) != 1 || !left[0].Current {
			t.Errorf("sessions left are %+v", left)
		}
	})
}

func revokeTwice(t *testing.T, s *service, by, of *person, device string) {
	t.Helper()
	for _, want := range []int{1, 0} {
		var revoked struct{ SessionsInvalidated *int }
		call(t, "DELETE", s.api+"/devices/"+device, nil, by.bearer()...).want(t, http.StatusOK).decode(t, &revoked)
		if revoked.SessionsInvalidated == nil || *revoked.SessionsInvalidated != want {
			t.Errorf("revoked %v sessions, want %d", revoked.SessionsInvalidated, want)
		}
	}
	awaitEnded(t, s, of)
	wantCode(t, call(t, "POST", s.api+"/auth/refresh", map[string]string{"refreshToken": of.refreshToken}).want(t, http.StatusUnauthorized), "invalid_token")
	all := by.devices(t, s)
	if i := slices.IndexFunc(all, func(d deviceEntry) bool { return d.ID == device }); i < 0 || !all[i].Revoked {
		t.Errorf("after the revocation the devices are %+v", all)
	}
}

// awaitEnded waits until the person's session is refused everywhere: copies of
// it may pass for less than a second.
func awaitEnded(t *testing.T, s *service, p *person) {
	t.Helper()
	await(t, "the end of a session", func() bool { return call(t, "GET", s.api+"/auth/session", nil, p.bearer()...).status != http.StatusOK })
	wantCode(t, call(t, "GET", s.api+"/auth/session", nil, p.bearer()...).want(t, http.StatusUnauthorized), "invalid_token")
}

func wantInstants(t *testing.T, all ...string) {
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
	each(t, func(t *testing.T, e *environment) {
		for i, c := range []struct{ binding, known, proven, trusted, unproven string }{
			{"preferred", "LIMITED_TRUST", "LIMITED_TRUST", "FULL_TRUST", "LIMITED_TRUST"},
			{"required", "UNVERIFIED", "LIMITED_TRUST", "FULL_TRUST", "UNVERIFIED"},
			{"off", "LIMITED_TRUST", "LIMITED_TRUST", "FULL_TRUST", "FULL_TRUST"},
		} {
			t.Run(c.binding, func(t *testing.T) {
				s := e.start(t, append([]string{"DEVICE_BINDING=" + c.binding}, unhurried...)...)
				p := e.newPerson(t, fmt.Sprintf("ada%d@example.com", i))
				level := func(want, token string) {
					t.Helper()
					p.deviceToken = token
					if p.login(t, s); p.trustLevel != want {
						t.Errorf("the level is %s, want %s", p.trustLevel, want)
					}
				}
				level("UNVERIFIED", "")
				mark := p.devices(t, s)[0].ID
				call(t, "PUT", s.api+"/devices/"+mark+"/trust", `{"trustStatus":"TRUSTED"}`, p.bearer()...).want(t, http.StatusOK)
				level("UNVERIFIED", "") // the mark counts once the device is confirmed
				call(t, "PUT", s.api+"/devices/"+mark+"/trust", `{"trustStatus":"PENDING"}`, p.bearer()...).want(t, http.StatusOK)
				p.stepUp(t, e, s)
				token := p.deviceToken
				level(c.known, "")
				level(c.known, "nonsense")
				level(c.proven, token)
				call(t, "PUT", s.api+"/devices/"+mark+"/trust", `{"trustStatus":"TRUSTED"}`, p.bearer()...).want(t, http.StatusOK)
				level(c.trusted, token)
				level(c.unproven, "")
				p.device["timezone"] = "Asia/Tokyo"
				level("UNVERIFIED", token) // a token proves its own device, no other
			})
		}
	})
}

// TestDeviceCookie wants the cookie's attributes, and that it serves as the
// header does.
func TestDeviceCookie(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		s := e.start(t, append([]string{"TRUSTED_PROXIES=127.0.0.0/8"}, unhurried...)...)
		p := e.newPerson(t, "ada@example.com")
		for _, proto := range []string{"http", "https"} {
			p.login(t, s)
			id := p.challenge(t, s)
			a := call(t, "POST", s.api+"/auth/step-up/verify", map[string]string{"challengeId": id, "otp": e.code(t, p.email)}, "X-Forwarded-Proto", proto).want(t, http.StatusOK)
			cookie, err := http.ParseSetCookie(a.header.Get("Set-Cookie"))
			if err != nil {
				t.Fatal(err)
			}
			if cookie.Name != "tollgate_device" || cookie.Path != "/auth" || cookie.MaxAge != 365*24*3600 || !cookie.HttpOnly ||
				cookie.SameSite != http.SameSiteStrictMode || cookie.Secure != (proto == "https") || cookie.Value != a.header.Get("X-Device-Token") {
				t.Errorf("over %s the cookie is %v", proto, cookie)
			}
			call(t, "PUT", s.api+"/devices/"+p.devices(t, s)[0].ID+"/trust", `{"trustStatus":"TRUSTED"}`, p.bearer()...).want(t, http.StatusOK)
			var got struct{ TrustLevel string }
			call(t, "POST", s.api+"/auth/login", map[string]any{"email": p.email, "password": password, "deviceInfo": p.device}, "Cookie", cookie.Name+"="+cookie.Value).
				want(t, http.StatusOK).decode(t, &got)
			if got.TrustLevel != "FULL_TRUST" {
				t.Errorf("with the cookie the level is %s", got.TrustLevel)
			}
		}
	})
}

// logPage is an answer of the audit log.
type logPage struct {
	Logs []struct {
		event
		ID, Timestamp string
	}
	Total, Limit, Offset int
}

func (p *person) log(t *testing.T, s *service, query string) logPage {
	t.Helper()
	var page logPage
	call(t, "GET", s.api+"/audit-logs?"+query, nil, p.bearer()...).want(t, http.StatusOK).decode(t, &page)
	return page
}

// TestAuditLog checks that each act leaves its events (contract A-47), and that the log can be
// filtered and paged (contract ).
func TestAuditLog(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		s := e.start(t)
		p, other := e.newPerson(t, "ada@example.com"), e.newPerson(t, "eve@example.com")
		other.login(t, s)
		call(t, "POST", s.api+"/auth/login", map[string]any{"email": p.email, "password": "wrong", "deviceInfo": p.device}).want(t, http.StatusUnauthorized)
		p.login(t, s)
		wantCode(t, call(t, "POST", s.api+"/auth/step-up/verify", map[string]string{"challengeId": p.challenge(t, s), "otp": "none"}).want(t, http.StatusUnauthorized), "invalid_otp")
		p.stepUp(t, e, s)
		call(t, "PUT", s.api+"/devices/"+p.devices(t, s)[0].ID+"/trust", `{"trustStatus":"TRUSTED"}`, p.bearer()...).want(t, http.StatusOK)

		page := p.log(t, s, "")
		var got []string
		for _, entry := range page.Logs {
			wantInstants(t, entry.Timestamp)
			got = append(got, fmt.Sprintf("%s %t", entry.EventType, entry.Success))
		}
		want := []string{
			"DEVICE_CHANGE true", "STEP_UP_ATTEMPT true", "STEP_UP_ATTEMPT true", "STEP_UP_ATTEMPT false", "STEP_UP_ATTEMPT true",
			"DEVICE_CHANGE true", "LOGIN_ATTEMPT true", "RISK_EVALUATION true", "LOGIN_ATTEMPT false",
		}
		if !slices.Equal(got, want) || page.Total != len(want) || page.Limit != 100 || page.Offset != 0 {
			t.Errorf("the log is %q (%+v), want %q", got, page, want)
		}
		wantRiskDetails(t, page.Logs[7].Details)
		wantPages(t, s, p, page)
	})
}

func wantRiskDetails(t *testing.T, details map[string]any) {
	t.Helper()
	factors, _ := details["factors"].(map[string]any)
	// An unknown device, and one failed sign-in before.
	want := map[string]any{"deviceFamiliarity": 30.0, "geographicAnomaly": 0.0, "ipReputation": 0.0, "loginVelocity": 0.0, "failedAttempts": 10.0}
	for name, points := range want {
		if factors[name] != points {
			t.Errorf("factor %s is %v, want %v", name, factors[name], points)
		}
	}
	if details["riskScore"] != 40.0 || details["trustLevel"] != "UNVERIFIED" {
		t.Errorf("the evaluation tells %v", details)
	}
}

// wantPages wants parts of a log that is known whole.
func wantPages(t *testing.T, s *service, p *person, whole logPage) {
	t.Helper()
	at := url.QueryEscape(whole.Logs[4].Timestamp)
	for query, want := range map[string]struct{ first, count, total int }{
		"limit=2": {0, 2, 9}, "limit=2&offset=3": {3, 2, 9}, "limit=1000&offset=8": {8, 1, 9}, "offset=9": {9, 0, 9},
		"eventType=RISK_EVALUATION": {7, 1, 1}, "eventType=&limit=1": {0, 1, 9}, "eventType=SUSPICIOUS_ACTIVITY": {9, 0, 0},
		"startDate=2999-01-01": {9, 0, 0}, "endDate=1999-01-01T00:00:00Z": {9, 0, 0},
	} {
		got := p.log(t, s, query)
		if len(got.Logs) != want.count || got.Total != want.total || want.count > 0 && got.Logs[0].ID != whole.Logs[want.first].ID {
			t.Errorf("%s: %+v, want %d of %d from entry %d", query, got, want.count, want.total, want.first)
		}
	}
	for _, entry := range p.log(t, s, "startDate="+at).Logs {
		if entry.Timestamp <= whole.Logs[4].Timestamp {
			t.Errorf("an entry of %s is not after %s", entry.Timestamp, whole.Logs[4].Timestamp)
		}
	}
	for _, entry := range p.log(t, s, "endDate="+at).Logs {
		if entry.Timestamp >= whole.Logs[4].Timestamp {
			t.Errorf("an entry of %s is not before %s", entry.Timestamp, whole.Logs[4].Timestamp)
		}
	}
}

// TestPagesOfDevicesAndSessions reads lists page by page: each says how long the whole list is.
func TestPagesOfDevicesAndSessions(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		s := e.start(t, unhurried...)
		ada := e.newPerson(t, "ada@example.com")
		for _, agent := range []string{"one", "two", "three", "four", "five"} {
			ada.device = map[string]string{"userAgent": agent}
			ada.login(t, s)
		}
		for _, name := range []string{"devices", "sessions"} {
			var whole, paged []string
			for offset := 0; offset < 6; offset += 2 {
				var page struct {
					Devices, Sessions    []struct{ ID string }
					Total, Limit, Offset int
				}
				path := fmt.Sprintf("%s/%s?limit=2&offset=%d", s.api, name, offset)
				call(t, "GET", path, nil, ada.bearer()...).want(t, http.StatusOK).decode(t, &page)
				if page.Total != 5 || page.Limit != 2 || page.Offset != offset {
					t.Errorf("%s: %+v, want a total of 5", path, page)
				}
				for _, entry := range append(page.Devices, page.Sessions...) {
					paged = append(paged, entry.ID)
				}
			}
			for _, d := range ada.devices(t, s) {
				whole = append(whole, d.ID)
			}
			if name == "sessions" {
				whole = nil
				for _, session := range ada.sessions(t, s) {
					whole = append(whole, session.ID)
				}
			}
			if !slices.Equal(paged, whole) {
				t.Errorf("the pages of %s have %v, want %v", name, paged, whole)
			}
			wantCode(t, call(t, "GET", s.api+"/"+name+"?limit=1001", nil, ada.bearer()...).want(t, http.StatusBadRequest), "validation_error")
		}
	})
}
