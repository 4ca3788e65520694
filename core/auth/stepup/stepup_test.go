package stepup_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/authtest"
	"github.com/tollgate-dev/tollgate/core/auth/stepup"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/courier"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/secrets/secretstest"
	"github.com/tollgate-dev/tollgate/ports/throttle"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

const (
	user    auth.UserID    = "11111111-2222-4333-8444-555555555555"
	device  auth.DeviceID  = "22222222-2222-4333-8444-555555555555"
	session auth.SessionID = "33333333-2222-4333-8444-555555555555"
)

// testCourier keeps the messages that it delivers, and returns an error if one is set.
type testCourier struct {
	mu       sync.Mutex
	messages []courier.Message
	err      error
	then     func() // called once, before a message is delivered
}

func (m *testCourier) Deliver(_ context.Context, message courier.Message) error {
	if then := m.then; then != nil {
		m.then = nil
		then()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	if err := message.Validate(); err != nil {
		return err
	}
	m.messages = append(m.messages, message)
	return nil
}

func (m *testCourier) lastCode() auth.OTP { return auth.OTP(m.messages[len(m.messages)-1].Code) }

// testThrottle allows five tries.
type testThrottle struct {
	mu    sync.Mutex
	used  int
	reset time.Time
}

func (s *testThrottle) Try(_ context.Context, scope throttle.Scope, key string) (throttle.Verdict, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if scope != throttle.StepUpUser || key != string(user) {
		return throttle.Verdict{}, errors.New("another scope or key")
	}
	s.used++
	return throttle.Verdict{Allowed: s.used <= 5, Limit: 5, ResetAt: s.reset}, nil
}

func (s *testThrottle) GiveBack(context.Context, throttle.Scope, string, throttle.Verdict) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used--
	return nil
}

type testCache struct {
	mu      sync.Mutex
	dropped []auth.SessionID
}

func (c *testCache) Get(context.Context, auth.SessionID) (auth.Session, bool) {
	return auth.Session{}, false
}
func (c *testCache) Put(context.Context, auth.Session, time.Time) {}
func (c *testCache) Drop(_ context.Context, ids ...auth.SessionID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropped = append(c.dropped, ids...)
}

type fixture struct {
	t        *testing.T
	service  *stepup.Service
	ports    stepup.Ports
	clock    *clocktest.Manual
	mail     *testCourier
	throttle *testThrottle
	cache    *testCache
	log      *fakedb.AuditLog
}

// plainSigner signs a token as the ID of its session and when it expires.
type plainSigner struct{}

func (plainSigner) Sign(_ context.Context, c secrets.TokenClaims) (auth.AccessToken, error) {
	return auth.AccessToken(string(c.SessionID) + " " + c.ExpiresAt.Sub(c.IssuedAt).String()), nil
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	db, now := fakedb.New(), time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)
	fx := &fixture{
		t: t, clock: clocktest.NewManual(now), mail: &testCourier{}, throttle: &testThrottle{reset: now.Add(time.Hour)},
		cache: &testCache{},
		log:   fakedb.NewAuditLog(db),
		ports: stepup.Ports{
			Accounts: fakedb.NewAccounts(db), Sessions: fakedb.NewSessions(db), Devices: fakedb.NewDevices(db),
			DeviceTokens: fakedb.NewDeviceTokens(db), Challenges: fakedb.NewChallenges(db), Transaction: db,
			Deferrals: fakedb.NewHistory(db), Identities: fakedb.NewIdentities(db), Providers: fakedb.NewProviders(db),
		},
	}
	entropy := &secretstest.Entropy{}
	var err error
	fx.ports.Couriers, fx.ports.Throttle, fx.ports.Cache = stepup.Couriers{Email: fx.mail, SMS: fx.mail},
		fx.throttle, fx.cache
	fx.ports.Trail, fx.ports.Clock, fx.ports.Entropy = auditing.New(fx.log, fx.clock, entropy), fx.clock, entropy
	fx.ports.Root, fx.ports.Tokens = auth.RootSecret(strings.Repeat("r", 32)), plainSigner{}
	fx.service, err = stepup.New(authtest.StepUp(), fx.ports)
	must.Succeed(t, err)
	ctx := context.Background()
	err = errors.Join(
		fx.ports.Accounts.Create(ctx, auth.Account{ID: user, Email: "anna@example.com", State: auth.AccountActive}),
		func() error {
			_, _, err := fx.ports.Devices.Ensure(ctx, auth.Device{ID: device, UserID: user, Identity: "d"})
			return err
		}(),
		fx.ports.Sessions.Create(ctx, auth.Session{
			ID: session, UserID: user, DeviceID: device, DeviceIdentity: "d", TrustLevel: auth.Unverified,
			CreatedAt: now,
			ExpiresAt: now.Add(time.Hour), MaxExpiresAt: now.Add(time.Hour),
		}),
	)
	must.Succeed(t, err)
	return fx
}

func (fx *fixture) getSession() auth.Session {
	fx.t.Helper()
	s, err := fx.ports.Sessions.Get(context.Background(), session)
	must.Succeed(fx.t, err)
	return s
}

func (fx *fixture) mustInitiate() stepup.Pending {
	fx.t.Helper()
	p, err := fx.service.Initiate(context.Background(), fx.getSession(), auth.EmailOTP)
	if err != nil {
		fx.t.Fatalf("initiate: %v", err)
	}
	return p
}

func (fx *fixture) tryCode(p stepup.Pending, code auth.OTP) (stepup.Passed, error) {
	return fx.service.Verify(context.Background(), stepup.Answer{ID: p.ID, Code: code})
}

// TestTrustThisBrowser marks the device as TRUSTED with a right code only, with an event.
func TestTrustThisBrowser(t *testing.T) {
	fx := newFixture(t)
	p := fx.mustInitiate()
	wantMark := func(mark auth.TrustStatus, events int) {
		t.Helper()
		d, err := fx.ports.Devices.Get(context.Background(), device)
		changes := fx.findEvents(audit.DeviceChange)
		if err != nil || d.TrustStatus != mark || d.Trusted() != (mark == auth.DeviceTrusted) || len(changes) != events {
			t.Errorf("device %+v, %v, events %+v", d, err, changes)
		}
	}
	answer := stepup.Answer{ID: p.ID, Code: wrongCode(fx.mail.lastCode()), TrustDevice: true}
	_, err := fx.service.Verify(context.Background(), answer)
	wantFault(t, "a wrong code", err, fault.Unauthenticated, auth.CodeInvalidOTP)
	wantMark("", 0)
	answer.Code = fx.mail.lastCode()
	if _, err := fx.service.Verify(context.Background(), answer); err != nil {
		t.Fatal(err)
	}
	wantMark(auth.DeviceTrusted, 1)
	e := fx.findEvents(audit.DeviceChange)[0]
	if e.Action() != "trust" || e.Subject != audit.Subject(user) || e.Details.Text("sessionId") != string(session) ||
		e.Details.Text("trustStatus") != "TRUSTED" {
		t.Errorf("event %+v", e)
	}
	answer = stepup.Answer{ID: fx.mustInitiate().ID, Code: fx.mail.lastCode()} // without the mark, it stays
	if _, err := fx.service.Verify(context.Background(), answer); err != nil {
		t.Fatal(err)
	}
	wantMark(auth.DeviceTrusted, 1)
}

func (fx *fixture) findEvents(kind audit.Category) []audit.Event {
	fx.t.Helper()
	events, _, err := fx.log.Search(context.Background(), authstore.AuditQuery{Category: kind, Limit: auth.MaxPage})
	must.Succeed(fx.t, err)
	return events
}

// wrongCode returns a code that is not the given one.
func wrongCode(code auth.OTP) auth.OTP {
	if code[0] == '0' {
		return "1" + code[1:]
	}
	return "0" + code[1:]
}

func wantFault(t *testing.T, what string, err error, kind fault.Kind, code fault.Code) *fault.Error {
	t.Helper()
	f, ok := fault.As(err)
	if !ok || f.Kind != kind || f.Code != code {
		t.Fatalf("%s: %v, want a fault of kind %s and code %q", what, err, kind, code)
	}
	return f
}

func TestRightCode(t *testing.T) {
	fx := newFixture(t)
	p := fx.mustInitiate()
	if p.AttemptsRemaining != 3 || p.Method != auth.EmailOTP || p.ExpiresAt.Sub(fx.clock.Now()) != 10*time.Minute {
		t.Errorf("challenge %+v", p)
	}
	m := fx.mail.messages[0]
	if m.Recipient != "anna@example.com" || m.Channel != courier.Email || len(m.Code) != 6 ||
		!m.ExpiresAt.Equal(p.ExpiresAt) {
		t.Errorf("message to %s by %s, %d characters", m.Recipient, m.Channel, len(m.Code))
	}
	passed, err := fx.tryCode(p, fx.mail.lastCode())
	if err != nil || passed.TrustLevel != auth.FullTrust || fx.getSession().TrustLevel != auth.FullTrust {
		t.Fatalf("passed %+v, error %v, session at %s", passed, err, fx.getSession().TrustLevel)
	}
	d, err := fx.ports.Devices.Get(context.Background(), device)
	if err != nil || !d.Confirmed {
		t.Errorf("device %+v, error %v; want it confirmed", d, err)
	}
	stored := fx.getSession()
	if want := string(stored.ID) + " 15m0s"; string(passed.AccessToken) != want ||
		!stored.ReauthenticatedAt.Equal(fx.clock.Now()) {
		t.Errorf("the access token is %q, want %q; the session %+v", string(passed.AccessToken), want, stored)
	}
	token, err := fx.ports.DeviceTokens.Find(context.Background(), auth.HashSecret(passed.DeviceToken))
	if err != nil || token.DeviceID != device {
		t.Errorf("device token %v, error %v", token, err)
	}
	if len(fx.cache.dropped) != 1 || fx.cache.dropped[0] != session {
		t.Errorf("dropped %v, want the session", fx.cache.dropped)
	}
	fx.clock.Advance(time.Second)
	_, err = fx.tryCode(p, fx.mail.lastCode())
	wantFault(t, "a used challenge", err, fault.Invalid, auth.CodeInvalidInput)
	tries := fx.findEvents(audit.StepUpAttempt) // one for each verify (contract A-47)
	if len(tries) != 3 || tries[0].Success || tries[0].Details.Text("reason") != "challenge_closed" {
		t.Errorf("events %+v, want the refused verify last of three", tries)
	}
}

// TestPendingPhone wants a number that an operator has set to raise no session before its person has
// entered a code of it, in a session that proved itself otherwise.
func TestPendingPhone(t *testing.T) {
	fx, ctx := newFixture(t), context.Background()
	change := func(alter func(*auth.Account)) {
		fx.clock.Advance(time.Second)
		must.Succeed(t, fx.ports.Accounts.Update(ctx, user, func(a *auth.Account) error {
			a.UpdatedAt = fx.clock.Now()
			alter(a)
			return nil
		}))
		fx.clock.Advance(time.Second)
	}
	pending := func() bool {
		a, err := fx.ports.Accounts.Get(ctx, user)
		must.Succeed(t, err)
		return a.PhonePending
	}
	change(func(a *auth.Account) { a.Phone, a.PhonePending = "+4930123456", true })
	offered := func() bool {
		routes, err := fx.service.Routes(ctx, fx.getSession())
		must.Succeed(t, err)
		return slices.Contains(routes, stepup.Route{Method: auth.SMSOTP, Recipient: "+4930123456"})
	}
	initiate := func() stepup.Pending {
		t.Helper()
		p, err := fx.service.Initiate(ctx, fx.getSession(), auth.SMSOTP)
		must.Succeed(t, err)
		return p
	}
	_, err := fx.service.Initiate(ctx, fx.getSession(), auth.SMSOTP)
	wantFault(t, "below FULL_TRUST", err, fault.Invalid, auth.CodeValidation)
	if len(fx.mail.messages) != 0 || offered() {
		t.Error("a code goes to the number")
	}
	_, err = fx.tryCode(fx.mustInitiate(), fx.mail.lastCode())
	must.Succeed(t, err)
	proven := fx.getSession().ReauthenticatedAt
	if !offered() {
		t.Error("at FULL_TRUST the number cannot be confirmed")
	}
	lower := func(to auth.TrustLevel) {
		must.Succeed(t, fx.ports.Sessions.Update(ctx, session, func(s *auth.Session) error {
			s.TrustLevel = to
			return nil
		}))
	}
	p := initiate()
	lower(auth.LimitedTrust)
	_, err = fx.tryCode(p, fx.mail.lastCode())
	wantFault(t, "the session was lowered meanwhile", err, fault.Invalid, auth.CodeInvalidInput)
	_, err = fx.service.Resend(ctx, p.ID)
	wantFault(t, "another code for it", err, fault.Invalid, auth.CodeValidation)
	lower(auth.FullTrust)
	p = initiate()
	change(func(*auth.Account) {})
	_, err = fx.tryCode(p, fx.mail.lastCode())
	wantFault(t, "the account has changed meanwhile", err, fault.Invalid, auth.CodeInvalidInput)
	if !pending() {
		t.Fatal("the number is confirmed")
	}
	p = initiate()
	_, err = fx.tryCode(p, fx.mail.lastCode())
	must.Succeed(t, err)
	if pending() || !fx.getSession().ReauthenticatedAt.Equal(proven) {
		t.Errorf("pending %t, the session %+v; want the number confirmed, and nothing else proven", pending(), fx.getSession())
	}
	lower(auth.Unverified)
	fx.throttle.used = 0
	_, err = fx.tryCode(initiate(), fx.mail.lastCode())
	must.Succeed(t, err)
	if !fx.getSession().ReauthenticatedAt.After(proven) {
		t.Error("a confirmed number is no proof")
	}
}

func TestWrongCodes(t *testing.T) {
	fx := newFixture(t)
	p := fx.mustInitiate()
	for n := range 3 {
		_, err := fx.tryCode(p, wrongCode(fx.mail.lastCode()))
		f := wantFault(t, "a wrong code", err, fault.Unauthenticated, auth.CodeInvalidOTP)
		if f.Details.Int("attemptsRemaining") != 2-n {
			t.Errorf("try %d: details %v", n, f.Details)
		}
	}
	fx.clock.Advance(time.Minute)
	_, err := fx.tryCode(p, fx.mail.lastCode())
	f := wantFault(t, "the right code after three wrong ones", err, fault.Exhausted, auth.CodeRateLimit)
	if f.RetryAfter != 9*time.Minute || f.Details.Int("limit") != 3 {
		t.Errorf("retry after %s, details %v; want nine minutes", f.RetryAfter, f.Details)
	}
	wantEqual(t, fx.getSession().TrustLevel, auth.Unverified, "session at")
	wantEqual(t, len(fx.findEvents(audit.SuspiciousActivity)), 1, "suspicious activities")
	wantEqual(t, len(fx.findEvents(audit.StepUpAttempt)), 5, "step-up attempts")
}

func TestMalformedCodes(t *testing.T) {
	fx := newFixture(t)
	for _, code := range []auth.OTP{"", "abc", "\x00", auth.OTP(strings.Repeat("1", 1<<16))} {
		p := fx.mustInitiate()
		_, err := fx.tryCode(p, code)
		wantFault(t, "what is no code", err, fault.Unauthenticated, auth.CodeInvalidOTP)
	}
}

func TestParallelGuesses(t *testing.T) {
	fx := newFixture(t)
	p := fx.mustInitiate()
	guess := wrongCode(fx.mail.lastCode())
	var wait sync.WaitGroup
	var mu sync.Mutex
	codes := map[fault.Code]int{}
	for range 50 {
		wait.Go(func() {
			_, err := fx.tryCode(p, guess)
			f, _ := fault.As(err)
			mu.Lock()
			defer mu.Unlock()
			codes[f.Code]++
		})
	}
	wait.Wait()
	if codes[auth.CodeInvalidOTP] != 3 || codes[auth.CodeRateLimit] != 47 {
		t.Errorf("answers %v, want three tries", codes)
	}
}

func TestParallelRightCodesPassOnce(t *testing.T) {
	fx := newFixture(t)
	p, passed := fx.mustInitiate(), 0
	var wait sync.WaitGroup
	var mu sync.Mutex
	for range 20 {
		wait.Go(func() {
			if _, err := fx.tryCode(p, fx.mail.lastCode()); err == nil {
				mu.Lock()
				defer mu.Unlock()
				passed++
			}
		})
	}
	wait.Wait()
	wantEqual(t, passed, 1, "passed")
}

func TestChallengesThatCannotBeVerified(t *testing.T) {
	fx := newFixture(t)
	_, err := fx.service.Verify(context.Background(), stepup.Answer{
		ID: "44444444-2222-4333-8444-555555555555", Code: "123456",
	})
	wantFault(t, "an unknown challenge", err, fault.Invalid, auth.CodeInvalidInput)
	p := fx.mustInitiate()
	fx.clock.Advance(10 * time.Minute)
	_, err = fx.tryCode(p, fx.mail.lastCode())
	wantFault(t, "an expired challenge", err, fault.Invalid, auth.CodeInvalidInput)
	_, err = fx.service.Resend(context.Background(), p.ID)
	wantFault(t, "resend for an expired challenge", err, fault.NotFound, auth.CodeNotFound)
	p = fx.mustInitiate()
	err = fx.ports.Sessions.Update(context.Background(), session, func(s *auth.Session) error {
		s.EndedAt = fx.clock.Now()
		return nil
	})
	must.Succeed(t, err)
	for _, code := range []auth.OTP{fx.mail.lastCode(), wrongCode(fx.mail.lastCode())} {
		_, err = fx.tryCode(p, code)
		wantFault(t, "an ended session", err, fault.Invalid, auth.CodeInvalidInput)
	}
	_, err = fx.service.Resend(context.Background(), p.ID)
	wantFault(t, "resend for an ended session", err, fault.NotFound, auth.CodeNotFound)
}

// TestChallengeOfAClockThatWasAhead checks that a challenge whose expiry a clock that was ahead has
// set is not good for longer than others, neither at once nor later in all.
func TestChallengeOfAClockThatWasAhead(t *testing.T) {
	fx := newFixture(t)
	fx.clock.Advance(30 * time.Minute)
	p := fx.mustInitiate()
	fx.clock.Advance(-30 * time.Minute)
	_, err := fx.tryCode(p, fx.mail.lastCode())
	wantFault(t, "verify", err, fault.Invalid, auth.CodeInvalidInput)
	_, err = fx.service.Resend(t.Context(), p.ID)
	wantFault(t, "resend", err, fault.NotFound, auth.CodeNotFound)
	next := fx.mustInitiate()
	if _, err := fx.tryCode(next, fx.mail.lastCode()); err != nil {
		t.Errorf("a new challenge: %v", err)
	}
}

func TestResend(t *testing.T) {
	fx := newFixture(t)
	p := fx.mustInitiate()
	old := fx.mail.lastCode()
	if _, err := fx.tryCode(p, wrongCode(old)); err == nil {
		t.Fatal("a wrong code passed")
	}
	fx.clock.Advance(9 * time.Minute)
	again, err := fx.service.Resend(context.Background(), p.ID)
	if err != nil || again.ID != p.ID || again.ExpiresAt.Sub(fx.clock.Now()) != 10*time.Minute ||
		again.AttemptsRemaining != 2 {
		t.Fatalf("resend %+v, error %v", again, err)
	}
	if fx.mail.lastCode() == old {
		t.Fatal("the same code was sent again")
	}
	_, err = fx.tryCode(p, old)
	wantFault(t, "the old code", err, fault.Unauthenticated, auth.CodeInvalidOTP)
	if _, err := fx.tryCode(p, fx.mail.lastCode()); err != nil {
		t.Errorf("the new code: %v", err)
	}
	_, err = fx.service.Resend(context.Background(), p.ID)
	wantFault(t, "a used challenge", err, fault.NotFound, auth.CodeNotFound)
	_, err = fx.service.Resend(context.Background(), "44444444-2222-4333-8444-555555555555")
	wantFault(t, "an unknown challenge", err, fault.NotFound, auth.CodeNotFound)
}

func TestLimitCountsResends(t *testing.T) {
	fx := newFixture(t)
	p := fx.mustInitiate()
	for range 4 {
		if _, err := fx.service.Resend(context.Background(), p.ID); err != nil {
			t.Fatal(err)
		}
	}
	_, err := fx.service.Initiate(context.Background(), fx.getSession(), auth.EmailOTP)
	f := wantFault(t, "the sixth code", err, fault.Exhausted, auth.CodeRateLimit)
	wantEqual(t, f.RetryAfter, time.Hour, "retry after")
	_, err = fx.service.Resend(context.Background(), p.ID)
	wantFault(t, "the sixth code", err, fault.Exhausted, auth.CodeRateLimit)
}

func TestFailedDelivery(t *testing.T) {
	fx := newFixture(t)
	p := fx.mustInitiate()
	code := fx.mail.lastCode()
	fx.mail.err = errors.New("no route")
	_, err := fx.service.Resend(context.Background(), p.ID)
	if !fault.Is(err, fault.Unavailable) {
		t.Fatalf("resend: %v, want fault.Unavailable", err)
	}
	_, err = fx.tryCode(p, code)
	wantFault(t, "a challenge whose code was not delivered", err, fault.Invalid, auth.CodeInvalidInput)
	for range 10 {
		if _, err := fx.service.Initiate(context.Background(), fx.getSession(), auth.EmailOTP); !fault.Is(err,
			fault.Unavailable) {
			t.Fatalf("initiate: %v, want fault.Unavailable", err)
		}
	}
	wantEqual(t, fx.throttle.used, 1, "codes counted")
}

// TestResendsAtOnce resends a code while another one is being delivered, and checks that the code
// that was delivered is valid, whichever was requested first.
func TestResendsAtOnce(t *testing.T) {
	for name, firstFails := range map[string]bool{"the first fails": true, "the second fails": false} {
		t.Run(name, func(t *testing.T) {
			fx := newFixture(t)
			p := fx.mustInitiate()
			fails := func(is bool) {
				fx.mail.err = nil
				if is {
					fx.mail.err = errors.New("no route")
				}
			}
			resend := func(is bool) {
				if _, err := fx.service.Resend(t.Context(), p.ID); (err != nil) != is {
					t.Errorf("resend: %v, want a failure: %t", err, is)
				}
			}
			fx.mail.then = func() {
				fails(!firstFails)
				resend(!firstFails)
				fails(firstFails)
			}
			resend(firstFails)
			if _, err := fx.tryCode(p, fx.mail.lastCode()); err != nil {
				t.Errorf("the code that was delivered: %v", err)
			}
			wantEqual(t, fx.throttle.used, 2, "codes counted")
		})
	}
}

func TestUnavailableMethods(t *testing.T) {
	fx := newFixture(t)
	for _, method := range []auth.StepUpMethod{auth.SMSOTP, auth.AuthenticatorApp, "PIGEON", ""} {
		_, err := fx.service.Initiate(context.Background(), fx.getSession(), method)
		wantFault(t, string(method), err, fault.Invalid, auth.CodeValidation)
	}
	wantEqual(t, fx.throttle.used, 0, "codes counted")
}

func TestHighRiskIsRefused(t *testing.T) {
	fx := newFixture(t)
	s := fx.getSession()
	s.TrustLevel = auth.HighRisk
	_, err := fx.service.Initiate(context.Background(), s, auth.EmailOTP)
	wantFault(t, "HIGH_RISK", err, fault.Forbidden, auth.CodeInsufficientTrust)
}

func TestNothingSecretIsLogged(t *testing.T) {
	fx := newFixture(t)
	p := fx.mustInitiate()
	guess := wrongCode(fx.mail.lastCode())
	_, wrongErr := fx.tryCode(p, guess)
	passed, err := fx.tryCode(p, fx.mail.lastCode())
	must.Succeed(t, err)
	text, err := json.Marshal(fx.findEvents(""))
	must.Succeed(t, err)
	for _, s := range []string{
		string(guess), string(fx.mail.lastCode()), string(passed.DeviceToken), "anna@example.com",
	} {
		if strings.Contains(string(text)+wrongErr.Error(), s) {
			t.Errorf("%q is in the audit log or in an error", s)
		}
	}
	c, err := fx.ports.Challenges.Get(context.Background(), p.ID)
	if err != nil || strings.Contains(string(c.CodeHash), string(fx.mail.lastCode())) || len(c.CodeHash) != 32 {
		t.Errorf("code hash of %d bytes, error %v", len(c.CodeHash), err)
	}
}

// wantEqual checks that both are deeply equal.
func wantEqual[V any](t testing.TB, got, want V, what string, args ...any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf(what+": got %v, want %v", append(args, got, want)...)
	}
}
