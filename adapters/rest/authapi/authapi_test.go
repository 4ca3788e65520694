package authapi_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/authapi"
	"github.com/tollgate-dev/tollgate/adapters/rest/resttest"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/audit"
	"github.com/tollgate-dev/tollgate/core/auth/credentials"
	"github.com/tollgate-dev/tollgate/core/auth/signin"
	"github.com/tollgate-dev/tollgate/core/auth/stepup"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/throttle"
)

const (
	someID  = "11111111-2222-4333-8444-555555555555"
	otherID = "66666666-7777-4888-8999-aaaaaaaaaaaa"
)

var (
	now  = time.Unix(1_800_000_000, 0).UTC()
	seen = now.Add(-time.Hour)
)

// callerSession is the session of the token "good".
func callerSession(level auth.TrustLevel) auth.Session {
	return auth.Session{
		ID: someID, UserID: otherID, TrustLevel: level, DeviceIdentity: "abc",
		CreatedAt: seen, LastActivity: now, ExpiresAt: now.Add(time.Hour), IPAddress: netip.MustParseAddr("203.0.113.9"),
	}
}

// stubUseCases records the calls of the handlers and returns fixed results.
type stubUseCases struct {
	level auth.TrustLevel // of the token "good"
	err   error

	calls    []string
	refused  []string // the operations for which trust was too low
	login    signin.Login
	answer   signin.MFAAnswer
	pending  bool // Login requires a second factor
	words    [2]auth.Password
	secret   auth.RefreshSecret
	from     netip.Addr
	id       string
	method   auth.StepUpMethod
	code     auth.OTP
	mark     auth.TrustStatus
	query    audit.Query
	page     auth.PageRequest
	user     auth.UserID
	devices  []auth.Device
	sessions []auth.Session
	events   []auth.Event
}

func (u *stubUseCases) recordCall(name string) error {
	u.calls = append(u.calls, name)
	return u.err
}

func (u *stubUseCases) CheckLevel(_ context.Context, t auth.AccessToken, level auth.TrustLevel) (auth.Session, error) {
	switch t {
	case "good":
		return callerSession(u.level), trust.Require(u.level, level)
	case "expired":
		return auth.Session{}, fault.New(fault.Unauthenticated, "the token has expired").WithCode(auth.CodeTokenExpired)
	default:
		return auth.Session{}, fault.New(fault.Unauthenticated, "the token is not valid").WithCode(auth.CodeInvalidToken)
	}
}

func (u *stubUseCases) LowTrust(_ context.Context, caller auth.Session, operation string, cause error) error {
	if f, ok := fault.As(cause); ok && f.Code == auth.CodeInsufficientTrust && caller.ID == someID {
		u.refused = append(u.refused, operation)
	}
	return cause
}

func result() signin.Result {
	return signin.Result{
		UserID: otherID, SessionID: someID, TrustLevel: auth.LimitedTrust,
		AccessToken: "access.token", RefreshToken: "refresh-token", ExpiresIn: 15 * time.Minute,
	}
}

func (u *stubUseCases) Login(_ context.Context, in signin.Login) (signin.Result, error) {
	u.login = in
	if u.pending {
		return signin.Result{UserID: otherID, MFARequired: true}, u.recordCall("login")
	}
	return result(), u.recordCall("login")
}

func (u *stubUseCases) VerifyMFA(_ context.Context, in signin.MFAAnswer) (signin.Result, error) {
	u.answer = in
	r := result()
	r.DeviceToken = "device-token"
	return r, u.recordCall("verify MFA")
}

func (u *stubUseCases) ChangePassword(_ context.Context, s auth.Session, present, next auth.Password) error {
	u.user, u.words = s.UserID, [2]auth.Password{present, next}
	return u.recordCall("change password")
}

func (u *stubUseCases) Enrol(_ context.Context, s auth.Session, present auth.Password) (credentials.Enrolment, error) {
	u.user, u.words = s.UserID, [2]auth.Password{present}
	return credentials.Enrolment{Secret: auth.TOTPSecret([]byte("12345678901234567890")), URI: "otpauth://totp/x"}, u.recordCall("enrol")
}

func (u *stubUseCases) Activate(_ context.Context, s auth.Session, code auth.OTP) ([]auth.OTP, error) {
	u.user, u.code = s.UserID, code
	return []auth.OTP{"aaaaa-bbbbb", "ccccc-ddddd"}, u.recordCall("activate")
}

func (u *stubUseCases) Disable(_ context.Context, s auth.Session, code auth.OTP) error {
	u.user, u.code = s.UserID, code
	return u.recordCall("disable")
}

func (u *stubUseCases) Refresh(_ context.Context, secret auth.RefreshSecret, from netip.Addr) (signin.Result, error) {
	u.secret, u.from = secret, from
	return result(), u.recordCall("refresh")
}

func (u *stubUseCases) SignOut(_ context.Context, s auth.Session, id auth.SessionID) error {
	u.user, u.id = s.UserID, string(id)
	return u.recordCall("sign out")
}

func (u *stubUseCases) Terminate(_ context.Context, s auth.Session, id auth.SessionID) error {
	u.user, u.id = s.UserID, string(id)
	return u.recordCall("terminate")
}

func (u *stubUseCases) Initiate(_ context.Context, s auth.Session, m auth.StepUpMethod) (stepup.Pending, error) {
	u.user, u.method = s.UserID, m
	return stepup.Pending{ID: otherID, Method: m, ExpiresAt: now.Add(10 * time.Minute), AttemptsRemaining: 3}, u.recordCall("initiate")
}

func (u *stubUseCases) Verify(_ context.Context, id auth.ChallengeID, code auth.OTP) (stepup.Passed, error) {
	u.id, u.code = string(id), code
	return stepup.Passed{TrustLevel: auth.FullTrust, DeviceToken: "device-token", AccessToken: "access-token"}, u.recordCall("verify")
}

func (u *stubUseCases) Resend(_ context.Context, id auth.ChallengeID) (stepup.Pending, error) {
	u.id = string(id)
	return stepup.Pending{ID: id, ExpiresAt: now.Add(10 * time.Minute)}, u.recordCall("resend")
}

func (u *stubUseCases) ListDevices(_ context.Context, s auth.Session, page auth.PageRequest) ([]auth.Device, int, error) {
	u.user, u.page = s.UserID, page
	return u.devices, page.Offset + len(u.devices), u.recordCall("devices")
}

func (u *stubUseCases) ListSessions(_ context.Context, s auth.Session, page auth.PageRequest) ([]auth.Session, int, error) {
	u.user, u.page = s.UserID, page
	return u.sessions, page.Offset + len(u.sessions), u.recordCall("sessions")
}

func (u *stubUseCases) SetTrust(_ context.Context, s auth.Session, id auth.DeviceID, status auth.TrustStatus) (auth.Device, error) {
	u.user, u.id, u.mark = s.UserID, string(id), status
	return auth.Device{ID: id, TrustStatus: status}, u.recordCall("mark")
}

func (u *stubUseCases) Rename(_ context.Context, s auth.Session, id auth.DeviceID, name string) (auth.Device, error) {
	u.user, u.id = s.UserID, string(id)
	return auth.Device{ID: id, Name: name}, u.recordCall("rename")
}

func (u *stubUseCases) Revoke(_ context.Context, s auth.Session, id auth.DeviceID) (int, error) {
	u.user, u.id = s.UserID, string(id)
	return 2, u.recordCall("revoke")
}

func (u *stubUseCases) SearchOwn(_ context.Context, s auth.Session, q audit.Query) (audit.Page, error) {
	u.user, u.query = s.UserID, q
	return audit.Page{Events: u.events, Total: 7}, u.recordCall("search")
}

func (u *stubUseCases) PublicKeys(context.Context) ([]authstore.PublicKey, error) {
	key := make([]byte, 32)
	key[0] = 0xff
	return []authstore.PublicKey{{ID: "key-1", Key: key}}, u.recordCall("keys")
}

// stubThrottle records the scopes and counts nothing.
type stubThrottle struct{ scopes []throttle.Scope }

func (l *stubThrottle) Try(_ context.Context, scope throttle.Scope, _ string) (throttle.Verdict, error) {
	l.scopes = append(l.scopes, scope)
	limit := map[throttle.Scope]uint64{throttle.AuthAddress: 100, throttle.APIAddress: 1000}[scope]
	return throttle.Verdict{Allowed: true, Limit: limit, Remaining: limit - 1, ResetAt: now.Add(15 * time.Minute)}, nil
}

func (l *stubThrottle) GiveBack(context.Context, throttle.Scope, string, throttle.Verdict) error {
	return nil
}

type service struct {
	*stubUseCases
	url      string
	throttle *stubThrottle
}

// serve starts a listener that has only this part.
func serve(t *testing.T, proxies ...netip.Prefix) *service {
	t.Helper()
	u, l := &stubUseCases{level: auth.FullTrust}, &stubThrottle{}
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	server := rest.New(resttest.Config(proxies...), rest.Ports{
		Parts:    []rest.Part{authapi.New(authapi.UseCases{Access: u, Refusals: u, SignIn: u, Credentials: u, StepUp: u, Devices: u, Trail: u, Keys: u})},
		Throttle: l, Clock: clocktest.NewManual(now), Log: logrus.NewEntry(logger),
	})
	return &service{u, resttest.Serve(t, server), l}
}

type response struct {
	status  int
	header  http.Header
	cookies []*http.Cookie
	body    string
}

// call sends a request. headers are names followed by values.
func (s *service) call(t *testing.T, method, path, body string, headers ...string) response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	got, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response{got.StatusCode, got.Header, got.Cookies(), string(text)}
}

// callSignedIn is call with the token "good".
func (s *service) callSignedIn(t *testing.T, method, path, body string) response {
	t.Helper()
	return s.call(t, method, path, body, "Authorization", "Bearer good")
}

func (a response) expect(t *testing.T, status int, body string) {
	t.Helper()
	if a.status != status || a.body != body {
		t.Errorf("got %d %s, want %d %s", a.status, a.body, status, body)
	}
	if a.header.Get("Cache-Control") != "no-store" || a.header.Get("Content-Type") != "application/json" {
		t.Errorf("headers %v", a.header)
	}
	for _, name := range []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"} {
		if a.header.Get(name) == "" {
			t.Errorf("%s is missing", name)
		}
	}
}

// errorBody is the body of an error.
type errorBody struct {
	Error   string         `json:"error"`
	Message string         `json:"message"`
	Details map[string]any `json:"details"`
}

func (a response) expectError(t *testing.T, status int, code string) errorBody {
	t.Helper()
	var r errorBody
	if err := json.Unmarshal([]byte(a.body), &r); err != nil {
		t.Fatalf("%d %s: %v", a.status, a.body, err)
	}
	if a.status != status || r.Error != code || r.Message == "" || r.Details == nil {
		t.Errorf("got %d %s, want %d %s with message and details", a.status, a.body, status, code)
	}
	return r
}

// fieldNames returns the names in details.fields in a fixed order.
func (r errorBody) fieldNames() string {
	fields, _ := r.Details["fields"].(map[string]any)
	var names []string
	for _, name := range []string{
		"email", "password", "deviceInfo", "deviceInfo.userAgent", "deviceInfo.timezone", "refreshToken", "sessionId", "method",
		"userId", "mfaCode", "currentPassword", "newPassword", "challengeId", "otp", "trustStatus", "name", "id", "eventType", "startDate", "endDate", "limit", "offset",
	} {
		if _, ok := fields[name]; ok {
			names = append(names, name)
		}
	}
	if len(names) != len(fields) {
		return "unknown fields"
	}
	return strings.Join(names, " ")
}

// endpoint is an endpoint with a valid body.
type endpoint struct {
	method, path, body, call string
	level                    auth.TrustLevel // 0 = no token required
	scope                    throttle.Scope
}

func endpoints() []endpoint {
	const login = `{"email":"a@example.com","password":"secret","deviceInfo":{}}`
	return []endpoint{
		{"POST", "/auth/login", login, "login", 0, throttle.AuthAddress},
		{"POST", "/auth/refresh", `{"refreshToken":"r"}`, "refresh", 0, throttle.AuthAddress},
		{"POST", "/auth/logout", `{"sessionId":"` + someID + `"}`, "sign out", auth.HighRisk, throttle.AuthAddress},
		{"GET", "/auth/session", "", "", auth.HighRisk, throttle.APIAddress},
		{"POST", "/auth/password", `{"currentPassword":"a","newPassword":"b"}`, "change password", auth.FullTrust, throttle.AuthAddress},
		{"POST", "/auth/mfa/verify", `{"userId":"` + someID + `","mfaCode":"123456","deviceInfo":{}}`, "verify MFA", 0, throttle.AuthAddress},
		{"POST", "/auth/mfa/enroll", "", "enrol", auth.FullTrust, throttle.AuthAddress},
		{"POST", "/auth/mfa/activate", `{"mfaCode":"123456"}`, "activate", auth.FullTrust, throttle.AuthAddress},
		{"POST", "/auth/mfa/disable", `{"mfaCode":"123456"}`, "disable", auth.FullTrust, throttle.AuthAddress},
		{"POST", "/auth/step-up/initiate", `{"method":"EMAIL_OTP"}`, "initiate", auth.Unverified, throttle.AuthAddress},
		{"POST", "/auth/step-up/verify", `{"challengeId":"` + someID + `","otp":"123456"}`, "verify", 0, throttle.AuthAddress},
		{"POST", "/auth/step-up/resend", `{"challengeId":"` + someID + `"}`, "resend", 0, throttle.AuthAddress},
		{"GET", "/devices", "", "devices", auth.Unverified, throttle.APIAddress},
		{"PUT", "/devices/" + someID + "/trust", `{"trustStatus":"TRUSTED"}`, "mark", auth.Unverified, throttle.APIAddress},
		{"PUT", "/devices/" + someID + "/name", `{"name":"Laptop"}`, "rename", auth.Unverified, throttle.APIAddress},
		{"DELETE", "/devices/" + someID, "", "revoke", auth.Unverified, throttle.APIAddress},
		{"GET", "/sessions", "", "sessions", auth.Unverified, throttle.APIAddress},
		{"DELETE", "/sessions/" + someID, "", "terminate", auth.Unverified, throttle.APIAddress},
		{"GET", "/audit-logs", "", "search", auth.Unverified, throttle.APIAddress},
		{"GET", "/.well-known/jwks.json", "", "keys", 0, throttle.APIAddress},
	}
}
