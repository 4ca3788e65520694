package authapi_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
	"github.com/tollgate-dev/tollgate/ports/throttle"
)

func TestTrustLevelOfEndpoints(t *testing.T) {
	s := serve(t)
	ids := strings.NewReplacer(someID, ":id", deviceID, ":id", otherDevice, ":id")
	for _, e := range endpoints() {
		for level := auth.HighRisk; level <= auth.FullTrust; level++ {
			s.setLevel(t, level)
			s.log.refused = nil
			a := s.callSignedIn(t, e.method, e.path, e.body)
			if level >= e.level {
				if a.status != e.status {
					t.Errorf("%s %s at %v: %d %s, want %d", e.method, e.path, level, a.status, a.body, e.status)
				}
				if len(s.log.refused) != 0 {
					t.Errorf("%s %s at %v: recorded as refused %v", e.method, e.path, level, s.log.refused)
				}
				continue
			}
			a.expectError(t, 403, "insufficient_trust")
			if operation := e.method + " " + ids.Replace(e.path); !slices.Equal(s.log.refused, []string{operation}) {
				t.Errorf("recorded as refused: %q, want %s", s.log.refused, operation)
			}
			challenge := a.header.Get("WWW-Authenticate")
			if !strings.HasPrefix(challenge, `Bearer error="insufficient_user_authentication"`) ||
				strings.Contains(a.body, "Bearer") {
				t.Errorf("%s %s at %v: challenge %q, body %s", e.method, e.path, level, challenge, a.body)
			}
		}
		if e.level == 0 {
			continue
		}
		s.calls = nil
		for token, code := range map[string]string{
			"": "invalid_token", "Bearer bad": "invalid_token", "Bearer expired": "token_expired",
			"Basic good": "invalid_token",
		} {
			a := s.call(t, e.method, e.path, "<not even JSON>", "Authorization", token, "Content-Type", "text/plain")
			a.expectError(t, 401, code)
			if a.header.Get("WWW-Authenticate") != "Bearer" || len(s.calls) != 0 {
				t.Errorf("%s %s: headers %v, called %v", e.method, e.path, a.header, s.calls)
			}
		}
	}
}

func TestLimitsOfPaths(t *testing.T) {
	s := serve(t)
	for _, e := range endpoints() {
		s.throttle.scopes = nil
		s.callSignedIn(t, e.method, e.path, e.body)
		if !slices.Equal(s.throttle.scopes, []throttle.Scope{e.scope}) {
			t.Errorf("%s is counted against %v", e.path, s.throttle.scopes)
		}
	}
	for path, want := range map[string]throttle.Scope{
		"/auth/nothing": throttle.AuthAddress, "/auth": throttle.AuthAddress, "/devices/x/y": throttle.APIAddress,
	} {
		s.throttle.scopes = nil
		s.call(t, "GET", path, "").expectError(t, 404, "resource_not_found")
		if !slices.Equal(s.throttle.scopes, []throttle.Scope{want}) {
			t.Errorf("%s is counted against %v", path, s.throttle.scopes)
		}
	}
	for method, want := range map[string]throttle.Scope{
		"HEAD": throttle.APIAddress, "POST": throttle.AuthAddress, "DELETE": throttle.AuthAddress,
	} {
		s.throttle.scopes = nil
		s.call(t, method, "/auth/session", "")
		if !slices.Equal(s.throttle.scopes, []throttle.Scope{want}) {
			t.Errorf("%s /auth/session is counted against %v", method, s.throttle.scopes)
		}
	}
	s.throttle.scopes = nil
	if a := s.call(t, "GET", "/authentic", ""); a.body != `{"error":"no such path"}` || len(s.throttle.scopes) != 0 {
		t.Errorf("a path outside the part: %s, counted against %v", a.body, s.throttle.scopes)
	}
}

func TestErrors(t *testing.T) {
	s := serve(t)
	for _, c := range []struct {
		fault   *fault.Error
		status  int
		code    string
		details map[string]any
	}{
		{fault.New(fault.Internal, "internal detail"), 500, "internal_error", nil},
		{fault.New(fault.Invalid, "wrong"), 400, "invalid_input", nil},
		{fault.New(fault.Invalid, "wrong").WithCode(auth.CodeValidation), 400, "validation_error", nil},
		{
			fault.New(fault.Unauthenticated, "wrong").WithCode(auth.CodeInvalidCredentials), 401,
			"invalid_credentials", nil,
		},
		{fault.New(fault.Forbidden, "locked").WithCode(auth.CodeAccountLocked).WithDetail("lockoutUntil",
			jsonvalue.Text("2026-11-21T00:00:00.000Z")), 403, "account_locked",
			map[string]any{"lockoutUntil": "2026-11-21T00:00:00.000Z"}},
		{fault.New(fault.Forbidden, "no"), 403, "access_denied", nil},
		{fault.New(fault.NotFound, "no"), 404, "resource_not_found", nil},
		{fault.New(fault.Conflict, "changed"), 409, "conflict", nil},
		{
			fault.New(fault.Exhausted, "enough").WithDetail("limit", jsonvalue.Number(5)).After(2 * time.Second), 429,
			"rate_limit_exceeded",
			map[string]any{"retryAfter": 2.0},
		},
		{
			fault.New(fault.Exhausted, "enough").After(1500 * time.Millisecond), 429, "rate_limit_exceeded",
			map[string]any{"retryAfter": 2.0},
		},
		{fault.New(fault.Unsupported, "no"), 501, "not_implemented", nil},
		{fault.New(fault.Unavailable, "away"), 503, "service_unavailable", map[string]any{"retryAfter": 1.0}},
	} {
		s.err = c.fault
		a := s.call(t, "POST", "/auth/refresh", `{"refreshToken":"r"}`)
		r := a.expectError(t, c.status, c.code)
		if len(r.Details) != len(c.details) {
			t.Errorf("%s: details %v", c.code, r.Details)
		}
		for name, want := range c.details {
			if r.Details[name] != want {
				t.Errorf("%s: details %v", c.code, r.Details)
			}
		}
		if strings.Contains(a.body, "secret") || a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %s %v", c.code, a.body, a.header)
		}
		if c.status == 429 && (a.header.Get("Retry-After") != "2" || a.header.Get("X-RateLimit-Remaining") != "0") {
			t.Errorf("headers %v", a.header)
		}
	}
}

func TestErrorsOfTheServer(t *testing.T) {
	s := serve(t)
	a := s.call(t, "GET", "/auth/login", "")
	a.expectError(t, 405, "method_not_allowed")
	if a.header.Get("Allow") != "POST" {
		t.Errorf("Allow %q", a.header.Get("Allow"))
	}
	s.call(t, "POST", "/auth/login", `{}`, "Content-Type", "text/plain").expectError(t, 415, "invalid_input")
	s.call(t, "POST", "/auth/login", strings.Repeat(" ", rest.MaxBody+1)).expectError(t, 413, "invalid_input")
	if got := s.throttle.scopes; !slices.Equal(got, []throttle.Scope{
		throttle.AuthAddress, throttle.AuthAddress, throttle.AuthAddress,
	}) {
		t.Errorf("counted against %v", got)
	}
}
