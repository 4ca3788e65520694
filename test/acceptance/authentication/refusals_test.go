package authentication

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// refusal is a request and the error that it must get. check also verifies the fields of contract
//
type refusal struct {
	name, method, path string
	as                 *fixture.Person // the person whose access token is sent; nil for no token
	body               any             // sent as JSON; a string is sent unchanged
	status             int
	code               string
	field              string // the field in details.fields
}

// refusalTable holds the people of the table and the ids of their devices and sessions.
type refusalTable struct {
	fresh    *fixture.Person // UNVERIFIED: a first login
	full     *fixture.Person // FULL_TRUST, on a device of the same person
	high     *fixture.Person // HIGH_RISK
	other    *fixture.Person // another person
	device   string          // a device of other
	session  string          // the session of other
	own      string          // a device of full
	pending  string          // an open challenge of fresh
	session0 string          // the session of fresh
}

const (
	unknownID  = "66666666-7777-4888-8999-aaaaaaaaaaaa"
	badRequest = http.StatusBadRequest
)

// TestAuthRefusals checks each refusal of contract, with its status, code and headers.
func TestAuthRefusals(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		s := e.Start(t, "STEP_UP_LIMIT=100")
		c := newRefusalTable(t, e, s)
		rows := c.gateRows()
		for _, part := range [][]refusal{c.loginRows(), c.tokenRows(), c.stepUpRows(), c.ownershipRows(), c.logRows()} {
			rows = append(rows, part...)
		}
		for _, r := range rows {
			t.Run(strings.TrimSpace(r.method+" "+r.path+" "+r.name), func(t *testing.T) { r.check(t, s) })
		}
	})
}

func (r refusal) check(t *testing.T, s *fixture.Service) {
	t.Helper()
	var header []string
	if r.as != nil {
		header = r.as.Bearer()
	}
	a := apiclient.Call(t, r.method, s.API+r.path, r.body, header...).WantStatus(t, r.status)
	details := apiclient.WantAuthError(t, a, r.code)
	if fields, _ := details["fields"].(map[string]any); r.field != "" && fields[r.field] == nil {
		t.Errorf("details %v do not name %s", details, r.field)
	}
	wantLimits(t, a)
	challenge := a.Header.Get("WWW-Authenticate")
	switch {
	case r.code == "insufficient_trust" &&
		!(strings.Contains(challenge, `error="insufficient_user_authentication"`) &&
			strings.Contains(challenge, "acr_values=")),
		r.status == http.StatusUnauthorized && !strings.HasPrefix(challenge, "Bearer"):
		t.Errorf("the challenge is %q", challenge)
	}
}

// wantLimits checks that an answer has the headers of contract A-53.
func wantLimits(t *testing.T, a apiclient.Response) {
	t.Helper()
	for _, name := range []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"} {
		if a.Header.Get(name) == "" {
			t.Errorf("no header %s", name)
		}
	}
}

func newRefusalTable(t *testing.T, e *fixture.Environment, s *fixture.Service) *refusalTable {
	t.Helper()
	c := &refusalTable{
		fresh: e.NewPerson(t, "ada@example.com"), high: e.NewPerson(t, "mallory@example.com"),
		other: e.NewPerson(t, "eve@example.com"),
	}
	c.fresh.Login(t, s)
	c.session0, _ = fixture.ReadSession(t, s, c.fresh)
	c.full = &fixture.Person{
		Email: c.fresh.Email, Device: map[string]string{"userAgent": "curl/8.5.0", "language": "en"},
	}
	c.full.Login(t, s)
	c.full.StepUp(t, e, s)
	c.own = listDevices(t, c.full, s)[0].ID
	c.other.Login(t, s)
	c.session, _ = fixture.ReadSession(t, s, c.other)
	c.device = listDevices(t, c.other, s)[0].ID
	c.pending = startChallenge(t, c.fresh, s)
	c.high.Login(t, s)
	c.high.Login(t, s)
	apiclient.Call(t, "POST", s.API+"/auth/login", map[string]any{
		"email": c.high.Email, "password": "wrong", "deviceInfo": c.high.Device,
	}).WantStatus(t, http.StatusUnauthorized)
	c.high.Login(t, s) // two sessions within a minute and a failure on an unknown device
	for p, want := range map[*fixture.Person]string{c.fresh: "UNVERIFIED", c.full: "FULL_TRUST", c.high: "HIGH_RISK"} {
		if p.TrustLevel != want {
			t.Fatalf("%s of %v is at %s, want %s", p.Email, p.Device, p.TrustLevel, want)
		}
	}
	return c
}

// startChallenge opens a challenge and returns its id.
func startChallenge(t *testing.T, p *fixture.Person, s *fixture.Service) string {
	t.Helper()
	var got struct{ ChallengeID string }
	p.PostJSON(t, s, "/auth/step-up/initiate", map[string]string{"method": "EMAIL_OTP"}).WantStatus(t, http.StatusOK).
		Decode(t, &got)
	return got.ChallengeID
}

// gateRows returns the refusals of every protected endpoint: no token, a malformed token, and a
// session below the required level.
func (c *refusalTable) gateRows() []refusal {
	var rows []refusal
	for _, at := range []struct{ method, path, level string }{
		{"POST", "/auth/logout", ""}, {"GET", "/auth/session", ""},
		{"POST", "/auth/password", "FULL_TRUST"}, {"POST", "/auth/mfa/enroll", "FULL_TRUST"},
		{"POST", "/auth/mfa/activate", "FULL_TRUST"}, {"POST", "/auth/mfa/disable", "FULL_TRUST"},
		{"POST", "/auth/step-up/initiate", "UNVERIFIED"}, {"GET", "/devices", "UNVERIFIED"},
		{"PUT", "/devices/" + c.own + "/trust", "UNVERIFIED"}, {"PUT", "/devices/" + c.own + "/name", "UNVERIFIED"}, {
			"DELETE", "/devices/" + c.own, "UNVERIFIED",
		},
		{"GET", "/sessions", "UNVERIFIED"}, {"DELETE", "/sessions/" + c.session0, "UNVERIFIED"}, {
			"GET", "/audit-logs", "UNVERIFIED",
		},
	} {
		gate := func(name string, as *fixture.Person, status int, code string) {
			rows = append(rows, refusal{
				name: name, method: at.method, path: at.path, as: as, status: status, code: code,
			})
		}
		gate("without a token", nil, http.StatusUnauthorized, "invalid_token")
		gate("with nonsense", &fixture.Person{AccessToken: "a.b.c"}, http.StatusUnauthorized, "invalid_token")
		gate("with a refresh token", &fixture.Person{AccessToken: c.full.RefreshToken}, http.StatusUnauthorized,
			"invalid_token")
		if at.level != "" {
			gate("at HIGH_RISK", c.high, http.StatusForbidden, "insufficient_trust")
		}
		if at.level == "LIMITED_TRUST" || at.level == "FULL_TRUST" {
			gate("at UNVERIFIED", c.fresh, http.StatusForbidden, "insufficient_trust")
		}
	}
	return rows
}

// loginRows returns the refusals of a login.
func (c *refusalTable) loginRows() []refusal {
	good := map[string]any{"email": c.fresh.Email, "password": fixture.Password, "deviceInfo": c.fresh.Device}
	post := func(name string, body any, status int, code, field string) refusal {
		return refusal{
			name: name, method: "POST", path: "/auth/login", body: body, status: status, code: code, field: field,
		}
	}
	but := func(field string, value any) map[string]any {
		return fixture.WithProperty(maps.Clone(good), field, value)
	}
	rows := []refusal{
		post("no JSON", "{", badRequest, "invalid_input", ""), post("a list", "[]", badRequest, "invalid_input", ""),
		post("e-mail without @", but("email", "ada"), badRequest, "validation_error", "email"),
		post("unknown person", but("email", "nobody@example.com"), http.StatusUnauthorized, "invalid_credentials", ""),
		post("wrong password", but("password", "wrong"), http.StatusUnauthorized, "invalid_credentials", ""),
		post("long user agent", but("deviceInfo", map[string]string{"userAgent": strings.Repeat("x", 513)}), badRequest,
			"validation_error", ""),
		post("language of a number", but("deviceInfo", map[string]any{"language": 7}), badRequest, "invalid_input", ""),
		post("too much", strings.Repeat(" ", 1<<20+1), http.StatusRequestEntityTooLarge, "invalid_input", ""),
	}
	for _, field := range []string{"email", "password", "deviceInfo"} {
		missing := maps.Clone(good)
		delete(missing, field)
		rows = append(rows, post("no "+field, missing, badRequest, "invalid_input", field),
			post(field+" of a number", but(field, 7), badRequest, "invalid_input", field),
			post(field+" null", but(field, nil), badRequest, "invalid_input", field))
		if field != "deviceInfo" {
			rows = append(rows, post("empty "+field, but(field, ""), badRequest, "invalid_input", field),
				post(field+" with NUL", but(field, "a\x00b@example.com"), badRequest, "invalid_input", field))
		}
	}
	return rows
}

// tokenRows returns the refusals of refresh, sign-out and other calls below /auth.
func (c *refusalTable) tokenRows() []refusal {
	return []refusal{
		{
			name: "no token", method: "POST", path: "/auth/refresh", body: "{}", status: badRequest,
			code: "invalid_input", field: "refreshToken",
		},
		{
			name: "empty token", method: "POST", path: "/auth/refresh", body: `{"refreshToken":""}`, status: badRequest,
			code: "invalid_input", field: "refreshToken",
		},
		{
			name: "unknown token", method: "POST", path: "/auth/refresh", body: `{"refreshToken":"nonsense"}`,
			status: http.StatusUnauthorized, code: "invalid_token",
		},
		{
			name: "access token", method: "POST", path: "/auth/refresh", body: map[string]string{
				"refreshToken": c.full.AccessToken,
			}, status: http.StatusUnauthorized, code: "invalid_token",
		},
		{
			name: "no session", method: "POST", path: "/auth/logout", as: c.fresh, body: "{}", status: badRequest,
			code: "invalid_input", field: "sessionId",
		},
		{
			name: "no UUID", method: "POST", path: "/auth/logout", as: c.fresh, body: `{"sessionId":"7"}`,
			status: badRequest, code: "validation_error", field: "sessionId",
		},
		{
			name: "unknown session", method: "POST", path: "/auth/logout", as: c.fresh, body: map[string]string{
				"sessionId": unknownID,
			}, status: http.StatusNotFound, code: "resource_not_found",
		},
		{
			name: "session of another", method: "POST", path: "/auth/logout", as: c.fresh, body: map[string]string{
				"sessionId": c.session,
			}, status: http.StatusForbidden, code: "access_denied",
		},
		{
			name: "no e-mail", method: "POST", path: "/auth/mfa/verify", body: "{}", status: badRequest,
			code: "invalid_input", field: "userId",
		},
		{
			name: "unknown path", method: "GET", path: "/auth/nothing", status: http.StatusNotFound,
			code: "resource_not_found",
		},
		{
			name: "wrong method", method: "GET", path: "/auth/login", status: http.StatusMethodNotAllowed,
			code: "method_not_allowed",
		},
	}
}

// stepUpRows returns the refusals of step-up.
func (c *refusalTable) stepUpRows() []refusal {
	initiate := func(name string, body any, code string) refusal {
		return refusal{
			name: name, method: "POST", path: "/auth/step-up/initiate", as: c.fresh, body: body, status: badRequest,
			code: code, field: "method",
		}
	}
	rows := []refusal{
		initiate("no method", "{}", "invalid_input"),
		initiate("unknown method", `{"method":"PIGEON"}`, "validation_error"),
		initiate("lower case", `{"method":"email_otp"}`, "validation_error"),
		initiate("no number for SMS", `{"method":"SMS_OTP"}`, "validation_error"),
		initiate("no authenticator", `{"method":"AUTHENTICATOR_APP"}`, "validation_error"),
		{
			name: "no code", method: "POST", path: "/auth/step-up/verify", body: map[string]string{
				"challengeId": c.pending,
			}, status: badRequest, code: "invalid_input", field: "otp",
		},
		{
			name: "wrong code", method: "POST", path: "/auth/step-up/verify", body: map[string]string{
				"challengeId": c.pending, "otp": "none",
			}, status: http.StatusUnauthorized, code: "invalid_otp",
		},
		{
			name: "unknown challenge", method: "POST", path: "/auth/step-up/verify", body: map[string]string{
				"challengeId": unknownID, "otp": "123456",
			}, status: badRequest, code: "invalid_input", field: "challengeId",
		},
		{
			name: "unknown challenge", method: "POST", path: "/auth/step-up/resend", body: map[string]string{
				"challengeId": unknownID,
			}, status: http.StatusNotFound, code: "resource_not_found",
		},
	}
	for _, path := range []string{"/auth/step-up/verify", "/auth/step-up/resend"} {
		rows = append(rows,
			refusal{
				name: "no challenge", method: "POST", path: path, body: `{"otp":"123456"}`, status: badRequest,
				code: "invalid_input", field: "challengeId",
			},
			refusal{
				name: "no UUID", method: "POST", path: path, body: `{"challengeId":"7","otp":"123456"}`,
				status: badRequest, code: "validation_error", field: "challengeId",
			})
	}
	return rows
}

// ownershipRows returns the refusals of devices and sessions.
func (c *refusalTable) ownershipRows() []refusal {
	trusted := map[string]string{"trustStatus": "TRUSTED"}
	rows := []refusal{
		{
			name: "no status", method: "PUT", path: "/devices/" + c.own + "/trust", body: "{}", status: badRequest,
			code: "invalid_input", field: "trustStatus",
		},
		{
			name: "unknown status", method: "PUT", path: "/devices/" + c.own + "/trust",
			body: `{"trustStatus":"LOVED"}`, status: badRequest, code: "validation_error", field: "trustStatus",
		},
		{
			name: "no name", method: "PUT", path: "/devices/" + c.own + "/name", body: "{}", status: badRequest,
			code: "invalid_input", field: "name",
		},
		{
			name: "too long a name", method: "PUT", path: "/devices/" + c.own + "/name",
			body: `{"name":"` + strings.Repeat("x", 65) + `"}`, status: badRequest, code: "validation_error",
			field: "name",
		},
	}
	for _, at := range []struct {
		method, before, id, after string
		body                      any
	}{
		{"PUT", "/devices/", c.device, "/trust", trusted}, {
			"PUT", "/devices/", c.device, "/name", map[string]string{"name": "Laptop"},
		}, {"DELETE", "/devices/", c.device, "", nil}, {"DELETE", "/sessions/", c.session, "", nil},
	} {
		add := func(name, id string, status int, code, field string) {
			rows = append(rows, refusal{
				name: name, method: at.method, path: at.before + id + at.after, body: at.body, status: status,
				code: code, field: field,
			})
		}
		add("of another", at.id, http.StatusForbidden, "access_denied", "")
		add("unknown", unknownID, http.StatusNotFound, "resource_not_found", "")
		add("no UUID", "7", badRequest, "validation_error", "id")
	}
	for i := range rows {
		rows[i].as = c.fresh
	}
	return rows
}

// logRows returns the refusals of the audit log's query.
func (c *refusalTable) logRows() []refusal {
	var rows []refusal
	for query, field := range map[string]string{
		"eventType=login_attempt": "eventType", "startDate=yesterday": "startDate", "endDate=2026-13-01": "endDate",
		"limit=0": "limit", "limit=0&offset=-1": "offset", "limit=1001": "limit", "limit=-1": "limit",
		"limit=ten": "limit", "offset=-1": "offset", "offset=1.5": "offset",
	} {
		rows = append(rows, refusal{
			method: "GET", path: "/audit-logs?" + query, as: c.fresh, status: badRequest, code: "validation_error",
			field: field,
		})
	}
	return rows
}
