package tollgateclient

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/test/must"
)

// newTestClient returns a client of a service that answers all requests with handle.
func newTestClient(t *testing.T, handle http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	c, err := New(Config{URL: s.URL + "/", UserAgent: "tollgate/test"})
	must.Succeed(t, err)
	return c
}

func TestAddresses(t *testing.T) {
	for _, c := range []struct {
		url      string
		insecure bool
		refused  string // text in the error; empty if the address is valid
	}{
		{"https://tollgate.example.com", false, ""},
		{"https://example.com/tollgate/", false, ""},
		{"http://localhost:3000", false, ""},
		{"http://127.0.0.2:3000", false, ""},
		{"http://[::1]:3000", false, ""},
		{"http://tollgate.example.com", true, ""},
		{"http://tollgate.example.com", false, "--insecure-http"},
		{"http://localhost.example.com", false, "--insecure-http"},
		{"ftp://example.com", true, "https://"},
		{"localhost:3000", false, "https://"},
		{"tollgate.example.com", false, "https://"},
		{"https://", false, "https://"},
		{"https://ada:secret@example.com", false, "https://"},
		{"https://example.com/?a=b", false, "https://"},
		{"https://example.com/#a", false, "https://"},
		{"", false, "https://"},
	} {
		_, err := New(Config{URL: c.url, InsecureHTTP: c.insecure})
		if (err == nil) != (c.refused == "") ||
			err != nil && (!strings.Contains(err.Error(), c.refused) || !fault.Is(err, fault.Invalid)) {
			t.Errorf("%q, insecure %t: %v, want %q", c.url, c.insecure, err, c.refused)
		}
	}
}

// TestRequests checks the path, headers and body of each call.
func TestRequests(t *testing.T) {
	var got string
	c := newTestClient(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = fmt.Sprintf("%s %s %s %s %s", r.Method, r.URL.RequestURI(), r.Header.Get("Authorization"),
			r.Header.Get("X-Device-Token"), body)
		w.Header().Set("X-Device-Token", "new proof")
		_, _ = io.WriteString(w,
			`{"accessToken":"a","refreshToken":"r","expiresIn":900,"trustLevel":"FULL_TRUST","newTrustLevel":"FULL_TRUST",
			"id":"s","challengeId":"c","valid":true,"server":{},"servers":[],
			"devices":[{"id":"gone","identity":"me","revoked":true},{"id":"d1","identity":"me"}]}`)
	})
	ctx := t.Context()
	m := Machine{Device{UserAgent: "ua"}, "proof"}
	for _, call := range []struct {
		want string
		do   func() error
	}{
		{`POST /auth/login  proof {"deviceInfo":{"userAgent":"ua"},"email":"e","password":"p"}`, func() error {
			s, err := c.Login(ctx, "e", "p", m)
			if s.Access != "a" || s.Refresh != "r" || s.ExpiresIn != 15*time.Minute || s.TrustLevel != "FULL_TRUST" {
				t.Errorf("login returned %+v", s)
			}
			return err
		}},
		{`POST /auth/mfa/verify  proof {"deviceInfo":{"userAgent":"ua"},"mfaCode":"c","userId":"u"}`, func() error {
			s, err := c.VerifyMFA(ctx, "u", "c", m)
			if s.DeviceToken != "new proof" {
				t.Errorf("the second factor returned %+v", s)
			}
			return err
		}},
		{`POST /auth/refresh   {"refreshToken":"r"}`, func() error { _, err := c.RefreshTokens(ctx, "r"); return err }},
		{`POST /auth/logout Bearer t  {"sessionId":"s"}`, func() error { return c.Logout(ctx, "t", "s") }},
		{
			`PUT /devices/d1/trust Bearer t  {"trustStatus":"TRUSTED"}`, func() error {
				return c.TrustDevice(ctx, "t", "me")
			},
		},
		{
			`POST /auth/step-up/initiate Bearer t  {"method":"SMS_OTP"}`, func() error {
				_, err := c.BeginStepUp(ctx, "t", "SMS_OTP")
				return err
			},
		},
		{`POST /auth/step-up/verify   {"challengeId":"c","otp":"1"}`, func() error {
			raised, err := c.VerifyStepUp(ctx, "c", "1")
			if raised != (StepUpResult{"FULL_TRUST", "new proof"}) {
				t.Errorf("the step-up returned %+v", raised)
			}
			return err
		}},
		{`POST /auth/step-up/resend   {"challengeId":"c"}`, func() error { return c.ResendStepUp(ctx, "c") }},
		{`GET /auth/session Bearer t  `, func() error { _, err := c.GetSession(ctx, "t"); return err }},
		{
			`POST /v0.1/publish Bearer t  { as it is`, func() error {
				_, err := c.Publish(ctx, "t", []byte("{ as it is"))
				return err
			},
		},
		{`POST /v0.1/validate   {}`, func() error { _, err := c.Validate(ctx, []byte("{}")); return err }},
		{
			`GET /v0.1/servers/a%2Fb/versions?include_deleted=true   `, func() error {
				_, err := c.ListVersions(ctx, "", "a/b")
				return err
			},
		},
		{
			`GET /v0.1/servers/a%2Fb/versions/1.0.0+x%2Fy?include_deleted=true   `, func() error {
				_, err := c.GetVersion(ctx, "", "a/b", "1.0.0+x/y")
				return err
			},
		},
		{`PATCH /v0.1/servers/a%2Fb/status Bearer t  {"status":"active"}`, func() error {
			_, err := c.SetStatus(ctx, "t", StatusChange{Name: "a/b", Status: "active"})
			return err
		}},
		{`PATCH /v0.1/servers/a%2Fb/versions/1/status Bearer t  {"status":"deleted","statusMessage":"m"}`,
			func() error {
				_, err := c.SetStatus(ctx, "t", StatusChange{"a/b", "1", "deleted", "m"})
				return err
			}},
	} {
		if err := call.do(); err != nil || got != call.want {
			t.Errorf("%v\n got %s\nwant %s", err, got, call.want)
		}
	}
	if err := c.TrustDevice(ctx, "t", "another device"); !fault.Is(err, fault.NotFound) {
		t.Errorf("trusting an unknown device: %v", err)
	}
}

// TestErrors checks the message, kind and code of error responses.
func TestErrors(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		header []string // name and value
		body   string
		kind   fault.Kind
		code   fault.Code
		says   string
	}{
		"an invalid field": {
			400, nil,
			`{"error":"invalid_input","message":"email is missing","details":{"fields":{"email":"is missing"}}}`,
			fault.Invalid, auth.CodeInvalidInput, "email is missing",
		},
		"a broken rule of documents": {
			422, nil, `{"error":"version must not be a range"}`, fault.Invalid, "", "version must not be a range",
		},
		"a lock with an end": {
			403, nil, `{"error":"account_locked","message":"locked","details":{"lockoutUntil":"2026-01-01T00:00:00Z"}}`,
			fault.Forbidden, auth.CodeAccountLocked, "locked, until 2026-01-01T00:00:00Z",
		},
		"a lock without an end": {
			403, nil,
			`{"error":"account_locked","message":"locked","details":{"lockoutUntil":"9999-12-31T23:59:59.000Z"}}`,
			fault.Forbidden, auth.CodeAccountLocked, "locked, until an operator unlocks it",
		},
		"a missing step-up": {
			403, []string{"WWW-Authenticate", `Bearer error="insufficient_user_authentication"`}, `{"error":"step up"}`,
			fault.Forbidden, auth.CodeInsufficientTrust, "step up",
		},
		"a missing grant": {
			403, nil, `{"error":"no grant"}`, fault.Forbidden, "", "no grant",
		},
		"an expired token": {
			401, []string{"WWW-Authenticate", "Bearer"}, `{"error":"expired"}`, fault.Unauthenticated, "", "expired",
		},
		"a rate limit": {
			429, []string{"Retry-After", "90"},
			`{"error":"rate_limit_exceeded","message":"too often","details":{"retryAfter":90}}`, fault.Exhausted,
			auth.CodeRateLimit, "too often: try again in 1m30s",
		},
		"an unavailable service": {
			503, []string{"Retry-After", "5"}, `{"error":"the registry is away"}`, fault.Unavailable, "",
			"the registry is away: try again in 5s",
		},
		"an unknown server": {
			404, nil, `{"error":"no such server"}`, fault.NotFound, "", "no such server",
		},
		"a conflict":               {409, nil, `{"error":"taken"}`, fault.Conflict, "", "taken"},
		"an unsupported operation": {501, nil, `{"error":"off"}`, fault.Unsupported, "", "off"},
		"an error page of a proxy": {
			502, nil, `<html>`, fault.Unavailable, "", " answered 502 Bad Gateway",
		},
		"a page that does not exist on another server": {
			404, nil, `<html>`, fault.NotFound, "",
			" answered 404 Not Found, unlike a tollgate service: check the address",
		},
		"the JSON of another service": {
			200, nil, `{"hello":1}`, fault.Internal, "", "check the address",
		},
		"a page of another server": {200, nil, `<html>`, fault.Internal, "", "check the address"},
		"control characters in a message": {
			400, nil, `{"error":"red \u001b[31m\nalert"}`, fault.Invalid, "", "red  [31m alert",
		},
		"a response that is too large": {
			200, nil, `"` + strings.Repeat("x", maxAnswer) + `"`, fault.Internal, "", "larger than",
		},
		"a message that is too long": {
			400, nil, `{"error":"` + strings.Repeat("x", 10*maxMessage) + `"}`, fault.Invalid, "",
			strings.Repeat("x", maxMessage),
		},
	} {
		t.Run(name, func(t *testing.T) {
			client := newTestClient(t, func(w http.ResponseWriter, _ *http.Request) {
				if c.header != nil {
					w.Header().Set(c.header[0], c.header[1])
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			})
			_, err := client.GetSession(t.Context(), "token")
			f, ok := fault.As(err)
			if !ok || f.Kind != c.kind || f.Code != c.code || !strings.Contains(f.Error(), c.says) ||
				len(f.Error()) > maxMessage+100 {
				t.Errorf("%v, want %v %s %q", err, c.kind, c.code, c.says)
			}
			if NeedsStepUp(err) != (name == "a missing step-up") || NeverSent(err) {
				t.Errorf("needs a step-up: %t, never sent: %t", NeedsStepUp(err), NeverSent(err))
			}
		})
	}
}

// TestRedirects checks that no request goes to another host.
func TestRedirects(t *testing.T) {
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("another host was called")
	}))
	defer thief.Close()
	away := newTestClient(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, thief.URL+r.URL.Path, http.StatusTemporaryRedirect)
	})
	if _, err := away.Login(t.Context(), "e", "p", Machine{}); !fault.Is(err, fault.Invalid) ||
		!strings.Contains(err.Error(), thief.URL) {
		t.Errorf("redirected to another host: %v", err)
	}
	circle := newTestClient(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/again", http.StatusFound)
	})
	if _, err := circle.GetSession(t.Context(), "t"); !fault.Is(err, fault.Invalid) {
		t.Errorf("redirected in a circle: %v", err)
	}
	here := newTestClient(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/here") {
			http.Redirect(w, r, "/here"+r.URL.Path, http.StatusTemporaryRedirect)
			return
		}
		_ = json.NewEncoder(w).Encode(Session{ID: r.Header.Get("Authorization")})
	})
	if s, err := here.GetSession(t.Context(), "t"); err != nil || s.ID != "Bearer t" {
		t.Errorf("redirected on the same host: %+v, %v", s, err)
	}
}

func TestReadiness(t *testing.T) {
	c := newTestClient(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"status":"unavailable","dependencies":{"records":"down"}}`)
	})
	if r, err := c.GetReadiness(t.Context()); err != nil || r.Status != "unavailable" ||
		r.Dependencies["records"] != "down" {
		t.Errorf("a service that is not ready: %+v, %v", r, err)
	}
}

// TestOtherService checks that no call accepts the JSON of another service.
func TestOtherService(t *testing.T) {
	c, ctx := newTestClient(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"hello":1}`)
	}), t.Context()
	for name, call := range map[string]func() error{
		"validate": func() error { _, err := c.Validate(ctx, []byte("{}")); return err },
		"publish":  func() error { _, err := c.Publish(ctx, "t", []byte("{}")); return err },
		"versions": func() error { _, err := c.ListVersions(ctx, "", "a/b"); return err },
		"version":  func() error { _, err := c.GetVersion(ctx, "", "a/b", "1"); return err },
		"status": func() error {
			_, err := c.SetStatus(ctx, "t", StatusChange{"a/b", "1", "active", ""})
			return err
		},
		"all status": func() error {
			_, err := c.SetStatus(ctx, "t", StatusChange{Name: "a/b", Status: "active"})
			return err
		},
		"ready":   func() error { _, err := c.GetReadiness(ctx); return err },
		"session": func() error { _, err := c.GetSession(ctx, "t"); return err },
		"devices": func() error { return c.TrustDevice(ctx, "t", "me") },
		"step up": func() error { _, err := c.BeginStepUp(ctx, "t", "EMAIL_OTP"); return err },
	} {
		if err := call(); !fault.Is(err, fault.Internal) || !strings.Contains(err.Error(), "check the address") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNoService(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	c, err := New(Config{URL: gone.URL})
	must.Succeed(t, err)
	if _, err := c.RefreshTokens(t.Context(), "r"); !fault.Is(err, fault.Unavailable) || !NeverSent(err) ||
		!strings.Contains(err.Error(), gone.URL) {
		t.Errorf("no service: %v", err)
	}
	old := httptest.NewUnstartedServer(nil)
	old.TLS = &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10} //nolint:gosec // a handshake that fails
	old.StartTLS()
	defer old.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	for _, address := range []string{old.URL, strings.Replace(plain.URL, "http:", "https:", 1)} {
		if c, err = New(Config{URL: address}); err == nil {
			_, err = c.RefreshTokens(t.Context(), "r")
		}
		if !fault.Is(err, fault.Unavailable) || !NeverSent(err) {
			t.Errorf("a handshake that fails: %v", err)
		}
	}
	cut := newTestClient(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	if _, err := cut.RefreshTokens(t.Context(), "r"); !fault.Is(err, fault.Unavailable) || NeverSent(err) {
		t.Errorf("a cut connection: %v", err)
	}
	if _, err := cut.Login(t.Context(), "e", "p", Machine{}); errors.Is(err, io.EOF) == NeverSent(err) {
		t.Errorf("a cut connection: %v", err)
	}
}

func TestTokensMissing(t *testing.T) {
	c := newTestClient(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{}`) })
	if _, err := c.Login(t.Context(), "e", "p", Machine{}); !fault.Is(err, fault.Internal) {
		t.Errorf("a login without tokens: %v", err)
	}
	if _, err := c.RefreshTokens(t.Context(), "r"); !fault.Is(err, fault.Internal) {
		t.Errorf("a refresh without tokens: %v", err)
	}
}
