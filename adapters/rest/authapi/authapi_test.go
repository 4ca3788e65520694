package authapi_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/inprocess"
	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/authapi"
	"github.com/tollgate-dev/tollgate/adapters/rest/resttest"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/access"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/authtest"
	"github.com/tollgate-dev/tollgate/core/auth/credentials"
	"github.com/tollgate-dev/tollgate/core/auth/devices"
	"github.com/tollgate-dev/tollgate/core/auth/passkeys"
	"github.com/tollgate-dev/tollgate/core/auth/signin"
	"github.com/tollgate-dev/tollgate/core/auth/stepup"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/courier"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/throttle"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

const (
	someID  = "11111111-2222-4333-8444-555555555555"
	otherID = "66666666-7777-4888-8999-aaaaaaaaaaaa"

	deviceID    = "dddddddd-2222-4333-8444-555555555555"
	otherDevice = "eeeeeeee-2222-4333-8444-555555555555"
)

var (
	now  = time.Unix(1_800_000_000, 0).UTC()
	seen = now.Add(-time.Hour)
)

// callerSession is the session of the token "good".
func callerSession(level auth.TrustLevel) auth.Session {
	return auth.Session{
		ID: someID, UserID: otherID, DeviceID: deviceID, TrustLevel: level, DeviceIdentity: "abc",
		ReauthenticatedAt: now, MaxExpiresAt: now.Add(time.Hour),
		CreatedAt: seen, LastActivity: now, ExpiresAt: now.Add(time.Hour),
		IPAddress: netip.MustParseAddr("203.0.113.9"),
	}
}

// signInStub records the calls of the handlers and returns fixed results.
type signInStub struct {
	err     error
	calls   []string
	login   signin.Login
	answer  signin.MFAAnswer
	pending bool // Login requires a second factor
	secret  auth.RefreshSecret
	from    netip.Addr
	id      string
	user    auth.UserID
}

func (u *signInStub) recordCall(name string) error {
	u.calls = append(u.calls, name)
	return u.err
}

func result() signin.Result {
	return signin.Result{
		UserID: otherID, SessionID: someID, TrustLevel: auth.LimitedTrust,
		AccessToken: "access.token", RefreshToken: "refresh-token", ExpiresIn: 15 * time.Minute,
	}
}

func (u *signInStub) Login(_ context.Context, in signin.Login) (signin.Result, error) {
	u.login = in
	if u.pending {
		return signin.Result{UserID: otherID, MFARequired: true}, u.recordCall("login")
	}
	return result(), u.recordCall("login")
}

func (u *signInStub) VerifyMFA(_ context.Context, in signin.MFAAnswer) (signin.Result, error) {
	u.answer = in
	r := result()
	r.DeviceToken = "device-token"
	return r, u.recordCall("verify MFA")
}

func (u *signInStub) LoginByPasskey(context.Context, passkeys.Answer, signin.Origin) (signin.Result, error) {
	return result(), u.recordCall("log in by passkey")
}

func (u *signInStub) Refresh(_ context.Context, secret auth.RefreshSecret, from netip.Addr) (signin.Result, error) {
	u.secret, u.from = secret, from
	return result(), u.recordCall("refresh")
}

func (u *signInStub) SignOut(_ context.Context, s auth.Session, id auth.SessionID) error {
	u.user, u.id = s.UserID, string(id)
	return u.recordCall("sign out")
}

func (u *signInStub) Terminate(_ context.Context, s auth.Session, id auth.SessionID) error {
	u.user, u.id = s.UserID, string(id)
	return u.recordCall("terminate")
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

// fakeTokens are access tokens: "good" is of the session someID, and those that are signed have the
// ID of their session.
type fakeTokens struct{}

func (fakeTokens) Verify(_ context.Context, t auth.AccessToken) (secrets.TokenClaims, error) {
	switch t {
	case "good":
		return secrets.TokenClaims{UserID: otherID, SessionID: someID, IssuedAt: now}, nil
	case "expired":
		return secrets.TokenClaims{}, fault.New(fault.Unauthenticated, "the token has expired").
			WithCode(auth.CodeTokenExpired)
	default:
		return secrets.TokenClaims{}, fault.New(fault.Unauthenticated, "the token is not valid").
			WithCode(auth.CodeInvalidToken)
	}
}

func (fakeTokens) Sign(_ context.Context, c secrets.TokenClaims) (auth.AccessToken, error) {
	return auth.AccessToken("token of " + c.SessionID), nil
}

// fakeKeys has one public key.
type fakeKeys struct{}

func (fakeKeys) PublicKeys(context.Context) ([]authstore.PublicKey, error) {
	key := make(ed25519.PublicKey, 32)
	key[0] = 0xff
	return []authstore.PublicKey{{ID: "key-1", Key: key}}, nil
}

// noCache keeps no sessions.
type noCache struct{}

func (noCache) Get(context.Context, auth.SessionID) (auth.Session, bool) {
	return auth.Session{}, false
}
func (noCache) Put(context.Context, auth.Session, time.Time) {}
func (noCache) Drop(context.Context, ...auth.SessionID)      {}

// plainHasher keeps passwords as they are.
type plainHasher struct{ secrets.PasswordHasher }

func (plainHasher) Hash(_ context.Context, p auth.Password) (auth.PasswordHash, error) {
	return auth.PasswordHash(p.Reveal()), nil
}

func (plainHasher) Verify(_ context.Context, h auth.PasswordHash, p auth.Password) (match, stale bool, err error) {
	return string(h) == p.Reveal(), false, nil
}

// lastCode is a courier that keeps the last code.
type lastCode struct{ code string }

func (c *lastCode) Deliver(_ context.Context, m courier.Message) error {
	c.code = m.Code
	return nil
}

type randomEntropy struct{}

func (randomEntropy) Fill(p []byte) { _, _ = rand.Read(p) } // never fails

// queriedLog keeps the last query, and the operations for which trust was too low.
type queriedLog struct {
	*fakedb.AuditLog
	query   authstore.AuditQuery
	reads   int
	refused []string
}

func (l *queriedLog) Append(ctx context.Context, events ...audit.Event) error {
	for _, e := range events {
		if e.Category == audit.AccessRefused {
			l.refused = append(l.refused, e.Details.Text("operation"))
		}
	}
	return l.AuditLog.Append(ctx, events...)
}

func (l *queriedLog) Search(ctx context.Context, q authstore.AuditQuery) ([]audit.Event, int, error) {
	l.query = q
	l.reads++
	return l.AuditLog.Search(ctx, q)
}

// service is a listener with this part alone, over records in memory: a person with a session for
// the token "good" on the device deviceID, and the device otherDevice.
type service struct {
	*signInStub
	url      string
	throttle *stubThrottle
	accounts *fakedb.Accounts
	devices  *fakedb.Devices
	sessions *fakedb.Sessions
	log      *queriedLog
	mail     *lastCode
}

func serve(t *testing.T, proxies ...netip.Prefix) *service {
	t.Helper()
	db := fakedb.New()
	s := &service{
		signInStub: &signInStub{}, throttle: &stubThrottle{}, mail: &lastCode{}, accounts: fakedb.NewAccounts(db),
		devices: fakedb.NewDevices(db), sessions: fakedb.NewSessions(db), log: &queriedLog{
			AuditLog: fakedb.NewAuditLog(db),
		},
	}
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	server := rest.New(resttest.Config(proxies...), rest.Ports{
		Parts:    []rest.Part{authapi.New(s.newUseCases(t, db))},
		Throttle: s.throttle, Clock: clocktest.NewManual(now), Log: logrus.NewEntry(logger),
	})
	s.addPerson(t)
	s.url = resttest.Serve(t, server)
	return s
}

func (s *service) newUseCases(t *testing.T, db *fakedb.Database) authapi.UseCases {
	t.Helper()
	at, root := clocktest.NewManual(now), auth.RootSecret(strings.Repeat("r", 32))
	trail := auditing.New(s.log, at, randomEntropy{})
	unlimited, err := inprocess.NewThrottle(inprocess.ThrottleConfig{}, nil, at)
	must.Succeed(t, err)
	own, err := credentials.New(credentials.Config{
		Lockout: auth.LockoutPolicy{Threshold: 5, Window: time.Hour, Duration: time.Hour}, Issuer: "Tollgate",
		ReauthenticationMaxAge: 5 * time.Minute,
	}, credentials.Ports{
		Accounts: s.accounts, Sessions: s.sessions, Pending: fakedb.NewPendingLogins(db),
		Links: fakedb.NewLinks(db), Lockouts: fakedb.NewLockouts(db), Transaction: db,
		Passwords: plainHasher{}, Cache: noCache{}, Trail: trail, Clock: at, Entropy: randomEntropy{}, Root: root,
	})
	must.Succeed(t, err)
	codes, err := stepup.New(authtest.StepUp(), stepup.Ports{
		Accounts: s.accounts, Sessions: s.sessions, Devices: s.devices, DeviceTokens: fakedb.NewDeviceTokens(db),
		Challenges:  fakedb.NewChallenges(db),
		Transaction: db, Tokens: fakeTokens{}, Couriers: stepup.Couriers{Email: s.mail, SMS: s.mail},
		Throttle: unlimited, Cache: noCache{},
		Trail: trail, Clock: at, Entropy: randomEntropy{}, Root: root,
	})
	must.Succeed(t, err)
	return authapi.UseCases{
		Access:   access.NewChecker(fakeTokens{}, s.sessions, noCache{}, nil, at, func() uint64 { return 0 }, nil),
		Refusals: auditing.NewRefusals(trail, unlimited), SignIn: s.signInStub,
		Credentials: own, StepUp: codes, Trail: trail, Keys: fakeKeys{},
		Devices: devices.New(devices.Ports{
			Devices: s.devices, DeviceTokens: fakedb.NewDeviceTokens(db), Sessions: s.sessions, Levels: s.sessions,
			Transaction: db,
			Cache:       noCache{}, Trail: trail, Clock: at,
		}),
	}
}

const password = "Right Horse 9!"

func (s *service) addPerson(t *testing.T) {
	t.Helper()
	person := auth.Account{
		ID: otherID, Email: "a@example.com", Phone: "+4915112345678", State: auth.AccountActive, PasswordHash: password,
	}
	must.Succeed(t, s.accounts.Create(t.Context(), person))
	for _, d := range []auth.Device{{
		ID: deviceID, UserID: otherID, Identity: "abc", TrustStatus: auth.DeviceTrusted, FirstSeen: seen, LastSeen: now,
		Type: "desktop", Browser: "Firefox", OS: "Linux", LastIPAddress: netip.MustParseAddr("2001:db8::1"),
	}, {
		ID: otherDevice, UserID: otherID, Identity: "def", TrustStatus: auth.DevicePending, FirstSeen: seen,
		LastSeen: seen,
	}} {
		if _, _, err := s.devices.Ensure(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	must.Succeed(t, s.sessions.Create(t.Context(), callerSession(auth.FullTrust)))
}

// setLevel sets the trust level of the session of the token "good".
func (s *service) setLevel(t *testing.T, level auth.TrustLevel) {
	t.Helper()
	err := s.sessions.Update(t.Context(), someID, func(stored *auth.Session) error {
		stored.TrustLevel = level
		return nil
	})
	must.Succeed(t, err)
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
	must.Succeed(t, err)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	got, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	must.Succeed(t, err)
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	must.Succeed(t, err)
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
		"email", "password", "deviceInfo", "deviceInfo.userAgent", "deviceInfo.timezone", "refreshToken",
		"sessionId", "method",
		"userId", "mfaCode", "currentPassword", "newPassword", "challengeId", "otp", "trustStatus", "name", "id",
		"eventType", "startDate", "endDate", "limit", "offset",
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

// endpoint is an endpoint with a body that can be read, and the status for it of a session with the
// level: the use cases refuse made-up codes and challenges.
type endpoint struct {
	method, path, body string
	status             int
	level              auth.TrustLevel // 0 = no token required
	scope              throttle.Scope
}

func endpoints() []endpoint {
	const login = `{"email":"a@example.com","password":"secret","deviceInfo":{}}`
	return []endpoint{
		{"POST", "/auth/login", login, 200, 0, throttle.AuthAddress},
		{"POST", "/auth/refresh", `{"refreshToken":"r"}`, 200, 0, throttle.AuthAddress},
		{"POST", "/auth/logout", `{"sessionId":"` + someID + `"}`, 200, auth.HighRisk, throttle.AuthAddress},
		{"GET", "/auth/session", "", 200, auth.HighRisk, throttle.APIAddress},
		{
			"POST", "/auth/password", `{"currentPassword":"` + password + `","newPassword":"Other Horse 9!"}`, 200,
			auth.FullTrust, throttle.AuthAddress,
		},
		{
			"POST", "/auth/mfa/verify", `{"userId":"` + someID + `","mfaCode":"123456","deviceInfo":{}}`, 200, 0,
			throttle.AuthAddress,
		},
		{"POST", "/auth/mfa/enroll", "", 200, auth.FullTrust, throttle.AuthAddress},
		{"POST", "/auth/mfa/activate", `{"mfaCode":"123456"}`, 401, auth.FullTrust, throttle.AuthAddress},
		{"POST", "/auth/mfa/disable", `{"mfaCode":"123456"}`, 409, auth.FullTrust, throttle.AuthAddress},
		{"POST", "/auth/step-up/initiate", `{"method":"EMAIL_OTP"}`, 200, auth.Unverified, throttle.AuthAddress},
		{
			"POST", "/auth/step-up/verify", `{"challengeId":"` + someID + `","otp":"123456"}`, 400, 0,
			throttle.AuthAddress,
		},
		{"POST", "/auth/step-up/resend", `{"challengeId":"` + someID + `"}`, 404, 0, throttle.AuthAddress},
		{"GET", "/devices", "", 200, auth.Unverified, throttle.APIAddress},
		{
			"PUT", "/devices/" + deviceID + "/trust", `{"trustStatus":"UNTRUSTED"}`, 200, auth.Unverified,
			throttle.APIAddress,
		},
		{"PUT", "/devices/" + deviceID + "/name", `{"name":"Laptop"}`, 200, auth.Unverified, throttle.APIAddress},
		{"DELETE", "/devices/" + otherDevice, "", 200, auth.Unverified, throttle.APIAddress},
		{"GET", "/sessions", "", 200, auth.Unverified, throttle.APIAddress},
		{"DELETE", "/sessions/" + someID, "", 200, auth.Unverified, throttle.APIAddress},
		{"GET", "/audit-logs", "", 200, auth.Unverified, throttle.APIAddress},
		{"GET", "/.well-known/jwks.json", "", 200, 0, throttle.APIAddress},
	}
}
