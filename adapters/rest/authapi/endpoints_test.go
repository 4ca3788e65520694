package authapi_test

import (
	"encoding/base32"
	"encoding/json"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/test/must"
)

const goodLogin = `{"email":" A@Example.com ","password":"secret",` +
	`"deviceInfo":{"userAgent":"UA","screenResolution":"1x2","timezone":null,"other":1},"unknown":[]}`

func TestLogin(t *testing.T) {
	s := serve(t)
	s.call(t, "POST", "/auth/login", goodLogin).expect(t, 200,
		`{"accessToken":"access.token","refreshToken":"refresh-token","trustLevel":"LIMITED_TRUST","expiresIn":900,"requiresMFA":false}`)
	in := s.login
	if in.Email != "a@example.com" || in.Password.Reveal() != "secret" || in.DeviceToken != "" ||
		in.Address != netip.MustParseAddr("127.0.0.1") {
		t.Errorf("the use case got %+v", in)
	}
	want, err := auth.NewDeviceInfo(auth.DeviceFields{UserAgent: "UA", ScreenResolution: "1x2"})
	if err != nil || in.Device != want {
		t.Errorf("device %+v, %v", in.Device, err)
	}
}

func TestLoginReadsTheDeviceToken(t *testing.T) {
	s := serve(t)
	s.call(t, "POST", "/auth/login", goodLogin, "Cookie", "a=b; tollgate_device=from-cookie")
	if string(s.login.DeviceToken) != "from-cookie" {
		t.Errorf("cookie: %q", string(s.login.DeviceToken))
	}
	s.call(t, "POST", "/auth/login", goodLogin, "Cookie",
		"tollgate_device=planted; __Secure-tollgate_device=from-tls; tollgate_device=planted")
	if string(s.login.DeviceToken) != "from-tls" {
		t.Errorf("both cookies: %q", string(s.login.DeviceToken))
	}
	s.call(t, "POST", "/auth/login", goodLogin, "X-Device-Token", "from-header")
	if string(s.login.DeviceToken) != "from-header" {
		t.Errorf("header: %q", string(s.login.DeviceToken))
	}
}

func TestLoginRequiresASecondFactor(t *testing.T) {
	s := serve(t)
	s.pending = true
	a := s.call(t, "POST", "/auth/login", goodLogin)
	a.expect(t, 200, `{"requiresMFA":true,"userId":"`+otherID+`","message":"enter a code from your authenticator"}`)
	if len(a.cookies) != 0 || a.header.Get("X-Device-Token") != "" {
		t.Errorf("a login without its second factor returns a device token: %v", a.header)
	}
	a = s.call(t, "POST", "/auth/mfa/verify",
		`{"userId":"`+strings.ToUpper(otherID)+`","mfaCode":"123 456","deviceInfo":{"userAgent":"UA"}}`,
		"X-Device-Token", "shown")
	a.expect(t, 200,
		`{"accessToken":"access.token","refreshToken":"refresh-token","trustLevel":"LIMITED_TRUST","expiresIn":900}`)
	if len(a.cookies) != 1 || a.header.Get("X-Device-Token") != "device-token" {
		t.Errorf("the response has no device token: %v", a.header)
	}
	in := s.answer
	if in.UserID != otherID || string(in.Code) != "123 456" || string(in.DeviceToken) != "shown" ||
		in.Device.UserAgent() != "UA" ||
		in.Address != netip.MustParseAddr("127.0.0.1") {
		t.Errorf("the use case got %+v", in)
	}
}

func TestCredentials(t *testing.T) {
	s := serve(t)
	a := s.callSignedIn(t, "POST", "/auth/mfa/enroll", "")
	var enrolled struct{ Secret, OTPAuthURI string }
	if err := json.Unmarshal([]byte(a.body), &enrolled); err != nil {
		t.Fatalf("%s: %v", a.body, err)
	}
	a.expect(t, 200,
		`{"secret":"`+enrolled.Secret+`","otpauthUri":"otpauth://totp/Tollgate:a%40example.com?secret=`+enrolled.Secret+
			`\u0026issuer=Tollgate\u0026algorithm=SHA1\u0026digits=6\u0026period=30"}`)
	secret, err := base32.StdEncoding.DecodeString(enrolled.Secret)
	must.Succeed(t, err)
	code := auth.TOTPSecret(secret).Code(now.Unix() / 30)
	a = s.callSignedIn(t, "POST", "/auth/mfa/activate", `{"mfaCode":"`+string(code)+`"}`)
	var activated struct{ RecoveryCodes []string }
	if err := json.Unmarshal([]byte(a.body), &activated); err != nil || len(activated.RecoveryCodes) < 2 {
		t.Fatalf("%s: %v", a.body, err)
	}
	a.expect(t, 200, `{"recoveryCodes":["`+strings.Join(activated.RecoveryCodes, `","`)+`"]}`)
	s.callSignedIn(t, "POST", "/auth/mfa/disable", `{"mfaCode":"`+activated.RecoveryCodes[1]+`"}`).expect(t, 200,
		`{"message":"the authenticator is disabled"}`)
	s.callSignedIn(t, "POST", "/auth/password", `{"currentPassword":"`+password+`","newPassword":"Other Horse 9!"}`).
		expect(t, 200,
			`{"message":"the password is changed; other sessions are ended"}`)
	if person, err := s.accounts.Get(t.Context(), otherID); err != nil || person.PasswordHash != "Other Horse 9!" {
		t.Errorf("the password is changed to %q, %v", person.PasswordHash, err)
	}
}

func TestRefresh(t *testing.T) {
	s := serve(t)
	s.call(t, "POST", "/auth/refresh", `{"refreshToken":"last"}`).expect(t, 200,
		`{"accessToken":"access.token","refreshToken":"refresh-token","expiresIn":900}`)
	if string(s.secret) != "last" || s.from != netip.MustParseAddr("127.0.0.1") {
		t.Errorf("the use case got %q", string(s.secret))
	}
}

func TestLogout(t *testing.T) {
	s := serve(t)
	s.callSignedIn(t, "POST", "/auth/logout", `{"sessionId":"AAAAAAAA-2222-4333-8444-555555555555"}`).expect(t, 200,
		`{"message":"signed out"}`)
	if s.id != "aaaaaaaa-2222-4333-8444-555555555555" || s.user != otherID {
		t.Errorf("ended %q of %q", s.id, s.user)
	}
}

func TestOwnSession(t *testing.T) {
	serve(t).callSignedIn(t, "GET", "/auth/session", "").expect(t, 200, `{"id":"`+someID+`","userId":"`+otherID+
		`","trustLevel":"FULL_TRUST","deviceIdentity":"abc","createdAt":"2027-01-15T07:00:00.000Z","lastActivity":"2027-01-15T08:00:00.000Z",`+
		`"expiresAt":"2027-01-15T09:00:00.000Z","ipAddress":"203.0.113.9"}`)
}

// initiate begins a step-up and returns the ID of the challenge.
func (s *service) initiate(t *testing.T) string {
	t.Helper()
	s.setLevel(t, auth.Unverified)
	a := s.callSignedIn(t, "POST", "/auth/step-up/initiate", `{"method":"SMS_OTP"}`)
	var c struct{ ChallengeID string }
	if err := json.Unmarshal([]byte(a.body), &c); err != nil {
		t.Fatalf("%s: %v", a.body, err)
	}
	a.expect(t, 200,
		`{"challengeId":"`+c.ChallengeID+
			`","method":"SMS_OTP","expiresAt":"2027-01-15T08:10:00.000Z","attemptsRemaining":3}`)
	return c.ChallengeID
}

func TestStepUp(t *testing.T) {
	s := serve(t)
	id := s.initiate(t)
	s.call(t, "POST", "/auth/step-up/resend", `{"challengeId":"`+id+`"}`).expect(t, 200,
		`{"message":"a new code was sent","expiresAt":"2027-01-15T08:10:00.000Z"}`)
	a := s.call(t, "POST", "/auth/step-up/verify", `{"challengeId":"`+id+`","otp":"`+s.mail.code+`"}`)
	a.expect(t, 200,
		`{"success":true,"newTrustLevel":"FULL_TRUST","message":"the session is verified","accessToken":"token of `+
			someID+`"}`)
}

func TestDeviceToken(t *testing.T) {
	for name, c := range map[string]struct {
		service *service
		headers []string
		secure  bool
	}{
		"plain": {serve(t), nil, false},
		"TLS proxy": {
			serve(t, netip.MustParsePrefix("127.0.0.1/32")), []string{"X-Forwarded-Proto", "https"}, true,
		},
		"untrusted peer sends https": {serve(t), []string{"X-Forwarded-Proto", "https"}, false},
	} {
		id := c.service.initiate(t)
		a := c.service.call(t, "POST", "/auth/step-up/verify",
			`{"challengeId":"`+id+`","otp":"`+c.service.mail.code+`"}`, c.headers...)
		token := a.header.Get("X-Device-Token")
		if len(a.cookies) != 1 || token == "" {
			t.Fatalf("%s: %v", name, a.header)
		}
		got := a.cookies[0]
		wantName := "tollgate_device"
		if c.secure {
			wantName = "__Secure-tollgate_device"
		}
		if got.Name != wantName || got.Value != token || got.Path != "/auth" || got.MaxAge != 365*24*3600 ||
			!got.HttpOnly || got.SameSite != http.SameSiteStrictMode || got.Secure != c.secure {
			t.Errorf("%s: cookie %v", name, got)
		}
	}
	a := serve(t).call(t, "POST", "/auth/step-up/verify", `{"challengeId":"`+someID+`","otp":"012345"}`)
	if a.status == 200 || len(a.cookies) != 0 || a.header.Get("X-Device-Token") != "" {
		t.Errorf("an error returns a device token: %d %v", a.status, a.header)
	}
}

func TestDevices(t *testing.T) {
	s := serve(t)
	s.callSignedIn(t, "GET", "/devices?offset=2", "").expect(t, 200, `{"devices":[],"total":2,"limit":1000,"offset":2}`)
	s.callSignedIn(t, "GET", "/devices", "").expect(t, 200,
		`{"devices":[{"id":"`+deviceID+`","identity":"abc","trustStatus":"TRUSTED","revoked":false,`+
			`"firstSeen":"2027-01-15T07:00:00.000Z","lastSeen":"2027-01-15T08:00:00.000Z",`+
			`"metadata":{"deviceType":"desktop","browser":"Firefox","operatingSystem":"Linux","lastIpAddress":"2001:db8::1"}},`+
			`{"id":"`+otherDevice+`","identity":"def","trustStatus":"PENDING","revoked":false,`+
			`"firstSeen":"2027-01-15T07:00:00.000Z","lastSeen":"2027-01-15T07:00:00.000Z",`+
			`"metadata":{"deviceType":"","browser":"","operatingSystem":"","lastIpAddress":""}}],"total":2,"limit":1000,"offset":0}`)
	s.callSignedIn(t, "PUT", "/devices/"+otherDevice+"/trust", `{"trustStatus":"UNTRUSTED"}`).expect(t, 200,
		`{"message":"the device is marked","device":{"id":"`+otherDevice+`","trustStatus":"UNTRUSTED"}}`)
	s.callSignedIn(t, "PUT", "/devices/"+otherDevice+"/name", `{"name":"Laptop"}`).expect(t, 200,
		`{"message":"the device is renamed","device":{"id":"`+otherDevice+`","name":"Laptop"}}`)
	other := callerSession(auth.FullTrust)
	other.ID, other.DeviceID = otherID, otherDevice
	must.Succeed(t, s.sessions.Create(t.Context(), other))
	s.callSignedIn(t, "DELETE", "/devices/"+strings.ToUpper(otherDevice), "").expect(t, 200,
		`{"message":"the device is revoked","sessionsInvalidated":1}`)
	if d, err := s.devices.Get(t.Context(),
		otherDevice); err != nil || !d.Revoked || d.TrustStatus != auth.DeviceUntrusted || d.Name != "Laptop" {
		t.Errorf("the device is %+v, %v", d, err)
	}
	if a := s.callSignedIn(t, "GET", "/devices?offset=1", ""); !strings.Contains(a.body,
		`"trustStatus":"UNTRUSTED","revoked":true,`) {
		t.Errorf("the revoked device is listed as %s", a.body)
	}
}

func TestSessions(t *testing.T) {
	s := serve(t)
	s.callSignedIn(t, "GET", "/sessions?offset=2", "").expect(t, 200,
		`{"sessions":[],"total":1,"limit":1000,"offset":2}`)
	s.setLevel(t, auth.LimitedTrust)
	other := callerSession(auth.HighRisk)
	other.ID, other.IPAddress, other.CreatedAt = otherID, netip.Addr{}, seen.Add(-time.Hour)
	must.Succeed(t, s.sessions.Create(t.Context(), other))
	s.callSignedIn(t, "GET", "/sessions", "").expect(t, 200,
		`{"sessions":[{"id":"`+someID+
			`","trustLevel":"LIMITED_TRUST","deviceIdentity":"abc","createdAt":"2027-01-15T07:00:00.000Z",`+
			`"lastActivity":"2027-01-15T08:00:00.000Z","ipAddress":"203.0.113.9","current":true},`+
			`{"id":"`+otherID+
			`","trustLevel":"HIGH_RISK","deviceIdentity":"abc","createdAt":"2027-01-15T06:00:00.000Z",`+
			`"lastActivity":"2027-01-15T08:00:00.000Z","ipAddress":"","current":false}],"total":2,"limit":1000,"offset":0}`)
	s.callSignedIn(t, "DELETE", "/sessions/"+otherID, "").expect(t, 200, `{"message":"the session is ended"}`)
	if s.id != otherID || s.user != otherID {
		t.Errorf("ended %q of %q", s.id, s.user)
	}
}

func TestPagesOfDevicesAndSessions(t *testing.T) {
	for _, name := range []string{"devices", "sessions"} {
		s := serve(t)
		other := callerSession(auth.HighRisk)
		other.ID, other.CreatedAt = otherID, seen.Add(-time.Hour)
		must.Succeed(t, s.sessions.Create(t.Context(), other))
		a := s.callSignedIn(t, "GET", "/"+name+"?limit=1&offset=1&limit=", "")
		first := map[string]string{"devices": otherDevice, "sessions": otherID}[name]
		if !strings.HasPrefix(a.body, `{"`+name+`":[{"id":"`+first) ||
			!strings.HasSuffix(a.body, `}],"total":2,"limit":1,"offset":1}`) {
			t.Errorf("the second page is %s", a.body)
		}
		for query, field := range map[string]string{
			"limit=0": "limit", "limit=1001": "limit", "limit=x": "limit", "limit=99999999999": "limit",
			"offset=-1": "offset", "offset=1.5": "offset", "offset=99999999999": "offset",
		} {
			a := s.callSignedIn(t, "GET", "/"+name+"?"+query, "")
			if a.status != 400 || !strings.Contains(a.body, `"validation_error"`) ||
				!strings.Contains(a.body, `"`+field+`"`) {
				t.Errorf("%s?%s: %d %s", name, query, a.status, a.body)
			}
		}
	}
}

// record stores events of the person.
func (s *service) record(t *testing.T, events ...audit.Event) {
	t.Helper()
	for i := range events {
		events[i].Subject = otherID
	}
	must.Succeed(t, s.log.Append(t.Context(), events...))
}

func TestAuditLog(t *testing.T) {
	s := serve(t)
	s.callSignedIn(t, "GET", "/audit-logs", "").expect(t, 200, `{"logs":[],"total":0,"limit":100,"offset":0}`)
	if (s.log.query != authstore.AuditQuery{Subject: otherID, Limit: 100}) {
		t.Errorf("the query is %+v", s.log.query)
	}
	s.record(t, audit.Event{
		ID: someID, Time: now, Category: audit.LoginAttempt, Success: true, Details: audit.Details{
			"ipAddress": audit.Text("203.0.113.9"),
		},
	},
		audit.Event{ID: otherID, Time: seen, Category: audit.StepUpAttempt}, audit.Event{
			ID: deviceID, Time: now.Add(time.Hour), Category: audit.LoginAttempt,
		})
	s.callSignedIn(t, "GET", "/audit-logs?limit=2&offset=1&eventType=&unknown=1", "").expect(t, 200,
		`{"logs":[{"id":"`+someID+
			`","timestamp":"2027-01-15T08:00:00.000Z","eventType":"LOGIN_ATTEMPT","success":true,"details":{"ipAddress":"203.0.113.9"}},`+
			`{"id":"`+otherID+
			`","timestamp":"2027-01-15T07:00:00.000Z","eventType":"STEP_UP_ATTEMPT","success":false,"details":{}}],`+
			`"total":3,"limit":2,"offset":1}`)
	s.callSignedIn(t, "GET",
		"/audit-logs?eventType=RISK_EVALUATION&startDate=2026-01-31T12:00:00.5%2B01:00&endDate=2026-02-01", "")
	want := authstore.AuditQuery{
		Subject: otherID, Category: audit.RiskEvaluation, Limit: 100,
		After:  time.Date(2026, 1, 31, 11, 0, 0, 500_999_000, time.UTC),
		Before: time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC),
	}
	if s.log.query != want {
		t.Errorf("the query is %+v, want %+v", s.log.query, want)
	}
}

// TestAuditLogAfterAnEntry uses the timestamp of an entry as startDate. The entry is stored with
// microseconds and sent with milliseconds, and must not count as after its own timestamp.
func TestAuditLogAfterAnEntry(t *testing.T) {
	s := serve(t)
	stored := now.Add(123_456 * time.Microsecond)
	s.record(t, audit.Event{ID: someID, Time: stored, Category: audit.LoginAttempt})
	const shown = "2027-01-15T08:00:00.123Z"
	s.callSignedIn(t, "GET", "/audit-logs", "").expect(t, 200,
		`{"logs":[{"id":"`+someID+`","timestamp":"`+shown+
			`","eventType":"LOGIN_ATTEMPT","success":false,"details":{}}],`+
			`"total":1,"limit":100,"offset":0}`)
	s.callSignedIn(t, "GET", "/audit-logs?startDate="+shown+"&endDate="+shown, "")
	if stored.After(s.log.query.After) {
		t.Errorf("an entry sent with the time %s counts as after it", shown)
	}
	if next := now.Add(124 * time.Millisecond); !next.After(s.log.query.After) {
		t.Errorf("an entry of the next millisecond does not count as after %s", shown)
	}
	if stored.Before(s.log.query.Before) {
		t.Errorf("an entry sent with the time %s counts as before it", shown)
	}
}

func TestAuditLogParsesTimes(t *testing.T) {
	s := serve(t)
	noon := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"2026-01-31T12:00:00Z":          noon,
		"2026-01-31t12:00:00z":          noon,
		"2026-01-31T12:00:00":           noon,
		"2026-01-31T12:00Z":             noon,
		"2026-01-31T12:00:00.250Z":      noon.Add(250 * time.Millisecond),
		"2026-01-31T12:00:00,250Z":      noon.Add(250 * time.Millisecond),
		"2026-01-31T14:00:00%2B02:00":   noon,
		"2026-01-31T14:00:00+02:00":     noon, // a plus that a client did not escape
		"2026-01-31T14:00:00.250+02:00": noon.Add(250 * time.Millisecond),
		"2026-01-31T14:00:00%2B0200":    noon,
		"2026-01-31T14:00%2B02":         noon,
		"2026-01-31T10:00:00-02:00":     noon,
		"20260131T120000Z":              noon,
		"20260131T1400+0200":            noon,
		"2026-01-31":                    noon.Add(-12 * time.Hour),
		"20260131":                      noon.Add(-12 * time.Hour),
	} {
		s.callSignedIn(t, "GET", "/audit-logs?endDate="+text, "")
		if !s.log.query.Before.Equal(want) {
			t.Errorf("%s is parsed as %v, want %v", text, s.log.query.Before, want)
		}
	}
}

func TestAuditLogRejectsParameters(t *testing.T) {
	s := serve(t)
	for query, fields := range map[string]string{
		"limit=ten":                     "limit",
		"limit=1.5":                     "limit",
		"offset=1e3":                    "offset",
		"offset=9999999999":             "offset",
		"limit=0&offset=-1":             "limit offset",
		"limit=1001&offset=x":           "limit offset",
		"limit=0&eventType=X":           "eventType limit",
		"eventType=login":               "eventType",
		"startDate=yesterday":           "startDate",
		"startDate=0000-01-01":          "startDate",
		"startDate=1769860800":          "startDate",
		"endDate=2026-01-31%2012:00:00": "endDate",
		"endDate=31.01.2026":            "endDate",
		"endDate=9999-12-31T23:59:59-01:00&limit=x&eventType=%00": "eventType endDate limit",
	} {
		r := s.callSignedIn(t, "GET", "/audit-logs?"+query, "").expectError(t, 400, "validation_error")
		if r.fieldNames() != fields {
			t.Errorf("%s: the fields are %q, want %q", query, r.fieldNames(), fields)
		}
	}
	if s.log.reads != 0 {
		t.Errorf("the log was read %d times", s.log.reads)
	}
}

func TestKeySet(t *testing.T) {
	s := serve(t)
	a := s.call(t, "GET", "/.well-known/jwks.json", "")
	want := `{"keys":[{"use":"sig","kty":"OKP","kid":"key-1","crv":"Ed25519","alg":"EdDSA","x":"_wAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}]}`
	if a.status != 200 || a.body != want || a.header.Get("Content-Type") != "application/json" {
		t.Errorf("%d %s", a.status, a.body)
	}
}
