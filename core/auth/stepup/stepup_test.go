package stepup_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/memory/records"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/audit"
	"github.com/tollgate-dev/tollgate/core/auth/stepup"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/courier"
	"github.com/tollgate-dev/tollgate/ports/throttle"
)

const (
	user    auth.UserID    = "11111111-2222-4333-8444-555555555555"
	device  auth.DeviceID  = "22222222-2222-4333-8444-555555555555"
	session auth.SessionID = "33333333-2222-4333-8444-555555555555"
)

type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// dice counts, so that no two draws are the same.
type dice struct {
	mu sync.Mutex
	n  uint64
}

func (d *dice) Fill(p []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.n++
	var word [8]byte
	binary.BigEndian.PutUint64(word[:], d.n*0x9e3779b97f4a7c15)
	for i := range p {
		p[i] = word[i%len(word)] + byte(i/len(word))
	}
}

// mailbox is a courier that keeps what it delivers, and fails when told to.
type mailbox struct {
	mu       sync.Mutex
	messages []courier.Message
	err      error
	then     func() // called once, before a message is delivered
}

func (m *mailbox) Deliver(_ context.Context, message courier.Message) error {
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

func (m *mailbox) code() auth.OTP { return auth.OTP(m.messages[len(m.messages)-1].Code) }

// turnstile lets five tries through.
type turnstile struct {
	mu    sync.Mutex
	used  int
	reset time.Time
}

func (s *turnstile) Try(_ context.Context, scope throttle.Scope, key string) (throttle.Verdict, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if scope != throttle.StepUpUser || key != string(user) {
		return throttle.Verdict{}, errors.New("another scope or key")
	}
	s.used++
	return throttle.Verdict{Allowed: s.used <= 5, Limit: 5, ResetAt: s.reset}, nil
}

func (s *turnstile) GiveBack(context.Context, throttle.Scope, string, throttle.Verdict) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used--
	return nil
}

type cache struct {
	mu      sync.Mutex
	dropped []auth.SessionID
}

func (c *cache) Get(context.Context, auth.SessionID) (auth.Session, bool) {
	return auth.Session{}, false
}
func (c *cache) Put(context.Context, auth.Session, time.Time) {}
func (c *cache) Drop(_ context.Context, ids ...auth.SessionID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropped = append(c.dropped, ids...)
}

type world struct {
	t        *testing.T
	service  *stepup.Service
	ports    stepup.Ports
	clock    *clock
	mail     *mailbox
	throttle *turnstile
	cache    *cache
	log      *records.AuditLog
}

func newWorld(t *testing.T) *world {
	t.Helper()
	db, now := records.New(), time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)
	w := &world{
		t: t, clock: &clock{now: now}, mail: &mailbox{}, throttle: &turnstile{reset: now.Add(time.Hour)}, cache: &cache{},
		log: records.NewAuditLog(db),
		ports: stepup.Ports{
			Accounts: records.NewAccounts(db), Sessions: records.NewSessions(db), Devices: records.NewDevices(db),
			DeviceTokens: records.NewDeviceTokens(db), Challenges: records.NewChallenges(db), Transaction: db,
		},
	}
	entropy := &dice{}
	var err error
	w.ports.Couriers, w.ports.Throttle, w.ports.Cache = stepup.Couriers{Email: w.mail, SMS: w.mail}, w.throttle, w.cache
	w.ports.Trail, w.ports.Clock, w.ports.Entropy = audit.New(w.log, w.clock, entropy), w.clock, entropy
	w.ports.Root = auth.RootSecret(strings.Repeat("r", 32))
	w.service, err = stepup.New(stepup.Defaults(), w.ports)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	err = errors.Join(
		w.ports.Accounts.Create(ctx, auth.Account{ID: user, Email: "anna@example.com", State: auth.AccountActive}),
		func() error {
			_, _, err := w.ports.Devices.Ensure(ctx, auth.Device{ID: device, UserID: user, Identity: "d"})
			return err
		}(),
		w.ports.Sessions.Create(ctx, auth.Session{
			ID: session, UserID: user, DeviceID: device, DeviceIdentity: "d", TrustLevel: auth.Unverified, CreatedAt: now,
			ExpiresAt: now.Add(time.Hour), MaxExpiresAt: now.Add(time.Hour),
		}),
	)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) session() auth.Session {
	w.t.Helper()
	s, err := w.ports.Sessions.Get(context.Background(), session)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *world) initiate() stepup.Pending {
	w.t.Helper()
	p, err := w.service.Initiate(context.Background(), w.session(), auth.EmailOTP)
	if err != nil {
		w.t.Fatalf("initiate: %v", err)
	}
	return p
}

func (w *world) verify(p stepup.Pending, code auth.OTP) (stepup.Passed, error) {
	return w.service.Verify(context.Background(), p.ID, code)
}

func (w *world) events(kind auth.EventType) []auth.Event {
	w.t.Helper()
	events, _, err := w.log.Search(context.Background(), authstore.AuditQuery{Type: kind, Limit: auth.MaxPage})
	if err != nil {
		w.t.Fatal(err)
	}
	return events
}

// wrong returns a code that is not the given one.
func wrong(code auth.OTP) auth.OTP {
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
	w := newWorld(t)
	p := w.initiate()
	if p.AttemptsRemaining != 3 || p.Method != auth.EmailOTP || p.ExpiresAt.Sub(w.clock.Now()) != 10*time.Minute {
		t.Errorf("challenge %+v", p)
	}
	m := w.mail.messages[0]
	if m.Recipient != "anna@example.com" || m.Channel != courier.Email || len(m.Code) != 6 || !m.ExpiresAt.Equal(p.ExpiresAt) {
		t.Errorf("message to %s by %s, %d characters", m.Recipient, m.Channel, len(m.Code))
	}
	passed, err := w.verify(p, w.mail.code())
	if err != nil || passed.TrustLevel != auth.FullTrust || w.session().TrustLevel != auth.FullTrust {
		t.Fatalf("passed %+v, error %v, session at %s", passed, err, w.session().TrustLevel)
	}
	d, err := w.ports.Devices.Get(context.Background(), device)
	if err != nil || !d.Confirmed {
		t.Errorf("device %+v, error %v; want it confirmed", d, err)
	}
	token, err := w.ports.DeviceTokens.Find(context.Background(), auth.HashSecret(passed.DeviceToken))
	if err != nil || token.DeviceID != device {
		t.Errorf("device token %v, error %v", token, err)
	}
	if len(w.cache.dropped) != 1 || w.cache.dropped[0] != session {
		t.Errorf("dropped %v, want the session", w.cache.dropped)
	}
	w.clock.advance(time.Second)
	_, err = w.verify(p, w.mail.code())
	wantFault(t, "a used challenge", err, fault.Invalid, auth.CodeInvalidInput)
	tries := w.events(auth.StepUpAttempt) // one for each verify (contract A-47)
	if len(tries) != 3 || tries[0].Success || tries[0].Details["reason"] != "challenge_closed" {
		t.Errorf("events %+v, want the refused verify last of three", tries)
	}
}

func TestWrongCodes(t *testing.T) {
	w := newWorld(t)
	p := w.initiate()
	for n := range 3 {
		_, err := w.verify(p, wrong(w.mail.code()))
		f := wantFault(t, "a wrong code", err, fault.Unauthenticated, auth.CodeInvalidOTP)
		if f.Details["attemptsRemaining"] != 2-n {
			t.Errorf("try %d: details %v", n, f.Details)
		}
	}
	w.clock.advance(time.Minute)
	_, err := w.verify(p, w.mail.code())
	f := wantFault(t, "the right code after three wrong ones", err, fault.Exhausted, auth.CodeRateLimit)
	if f.RetryAfter != 9*time.Minute || f.Details["retryAfter"] != 540 || f.Details["limit"] != uint64(3) {
		t.Errorf("retry after %s, details %v; want nine minutes", f.RetryAfter, f.Details)
	}
	if w.session().TrustLevel != auth.Unverified {
		t.Errorf("session at %s", w.session().TrustLevel)
	}
	if n := len(w.events(auth.SuspiciousActivity)); n != 1 {
		t.Errorf("%d suspicious activities, want one", n)
	}
	if n := len(w.events(auth.StepUpAttempt)); n != 5 {
		t.Errorf("%d step-up attempts, want one to initiate and four to verify", n)
	}
}

func TestCodesThatAreNone(t *testing.T) {
	w := newWorld(t)
	for _, code := range []auth.OTP{"", "abc", "\x00", auth.OTP(strings.Repeat("1", 1<<16))} {
		p := w.initiate()
		_, err := w.verify(p, code)
		wantFault(t, "what is no code", err, fault.Unauthenticated, auth.CodeInvalidOTP)
	}
}

func TestParallelGuesses(t *testing.T) {
	w := newWorld(t)
	p := w.initiate()
	guess := wrong(w.mail.code())
	var wait sync.WaitGroup
	var mu sync.Mutex
	codes := map[fault.Code]int{}
	for range 50 {
		wait.Go(func() {
			_, err := w.verify(p, guess)
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
	w := newWorld(t)
	p, passed := w.initiate(), 0
	var wait sync.WaitGroup
	var mu sync.Mutex
	for range 20 {
		wait.Go(func() {
			if _, err := w.verify(p, w.mail.code()); err == nil {
				mu.Lock()
				defer mu.Unlock()
				passed++
			}
		})
	}
	wait.Wait()
	if passed != 1 {
		t.Errorf("%d passed, want one", passed)
	}
}

func TestChallengesThatCannotBeVerified(t *testing.T) {
	w := newWorld(t)
	_, err := w.service.Verify(context.Background(), "44444444-2222-4333-8444-555555555555", "123456")
	wantFault(t, "an unknown challenge", err, fault.Invalid, auth.CodeInvalidInput)
	p := w.initiate()
	w.clock.advance(10 * time.Minute)
	_, err = w.verify(p, w.mail.code())
	wantFault(t, "an expired challenge", err, fault.Invalid, auth.CodeInvalidInput)
	_, err = w.service.Resend(context.Background(), p.ID)
	wantFault(t, "resend for an expired challenge", err, fault.NotFound, auth.CodeNotFound)
	p = w.initiate()
	err = w.ports.Sessions.Update(context.Background(), session, func(s *auth.Session) error {
		s.EndedAt = w.clock.Now()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range []auth.OTP{w.mail.code(), wrong(w.mail.code())} {
		_, err = w.verify(p, code)
		wantFault(t, "an ended session", err, fault.Invalid, auth.CodeInvalidInput)
	}
	_, err = w.service.Resend(context.Background(), p.ID)
	wantFault(t, "resend for an ended session", err, fault.NotFound, auth.CodeNotFound)
}

func TestResend(t *testing.T) {
	w := newWorld(t)
	p := w.initiate()
	old := w.mail.code()
	if _, err := w.verify(p, wrong(old)); err == nil {
		t.Fatal("a wrong code passed")
	}
	w.clock.advance(9 * time.Minute)
	again, err := w.service.Resend(context.Background(), p.ID)
	if err != nil || again.ID != p.ID || again.ExpiresAt.Sub(w.clock.Now()) != 10*time.Minute || again.AttemptsRemaining != 2 {
		t.Fatalf("resend %+v, error %v", again, err)
	}
	if w.mail.code() == old {
		t.Fatal("the same code was sent again")
	}
	_, err = w.verify(p, old)
	wantFault(t, "the old code", err, fault.Unauthenticated, auth.CodeInvalidOTP)
	if _, err := w.verify(p, w.mail.code()); err != nil {
		t.Errorf("the new code: %v", err)
	}
	_, err = w.service.Resend(context.Background(), p.ID)
	wantFault(t, "a used challenge", err, fault.NotFound, auth.CodeNotFound)
	_, err = w.service.Resend(context.Background(), "44444444-2222-4333-8444-555555555555")
	wantFault(t, "an unknown challenge", err, fault.NotFound, auth.CodeNotFound)
}

func TestLimitCountsResends(t *testing.T) {
	w := newWorld(t)
	p := w.initiate()
	for range 4 {
		if _, err := w.service.Resend(context.Background(), p.ID); err != nil {
			t.Fatal(err)
		}
	}
	_, err := w.service.Initiate(context.Background(), w.session(), auth.EmailOTP)
	f := wantFault(t, "the sixth code", err, fault.Exhausted, auth.CodeRateLimit)
	if f.Details["retryAfter"] != 3600 {
		t.Errorf("details %v, want an hour", f.Details)
	}
	_, err = w.service.Resend(context.Background(), p.ID)
	wantFault(t, "the sixth code", err, fault.Exhausted, auth.CodeRateLimit)
}

func TestFailedDelivery(t *testing.T) {
	w := newWorld(t)
	p := w.initiate()
	code := w.mail.code()
	w.mail.err = errors.New("no route")
	_, err := w.service.Resend(context.Background(), p.ID)
	if !fault.Is(err, fault.Unavailable) {
		t.Fatalf("resend: %v, want fault.Unavailable", err)
	}
	_, err = w.verify(p, code)
	wantFault(t, "a challenge whose code was not delivered", err, fault.Invalid, auth.CodeInvalidInput)
	for range 10 {
		if _, err := w.service.Initiate(context.Background(), w.session(), auth.EmailOTP); !fault.Is(err, fault.Unavailable) {
			t.Fatalf("initiate: %v, want fault.Unavailable", err)
		}
	}
	if w.throttle.used != 1 {
		t.Errorf("%d codes counted, want the delivered one", w.throttle.used)
	}
}

// TestResendsAtOnce makes a resend while another one is being delivered, and wants the code of the one that is delivered good,
// whichever was asked for first.
func TestResendsAtOnce(t *testing.T) {
	for name, firstFails := range map[string]bool{"the first fails": true, "the second fails": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			p := w.initiate()
			fails := func(is bool) {
				w.mail.err = nil
				if is {
					w.mail.err = errors.New("no route")
				}
			}
			resend := func(is bool) {
				if _, err := w.service.Resend(t.Context(), p.ID); (err != nil) != is {
					t.Errorf("resend: %v, want a failure: %t", err, is)
				}
			}
			w.mail.then = func() {
				fails(!firstFails)
				resend(!firstFails)
				fails(firstFails)
			}
			resend(firstFails)
			if _, err := w.verify(p, w.mail.code()); err != nil {
				t.Errorf("the code that was delivered: %v", err)
			}
			if w.throttle.used != 2 {
				t.Errorf("%d codes counted, want those that were delivered", w.throttle.used)
			}
		})
	}
}

func TestMethodsThatAreNotThere(t *testing.T) {
	w := newWorld(t)
	for _, method := range []auth.StepUpMethod{auth.SMSOTP, auth.AuthenticatorApp, "PIGEON", ""} {
		_, err := w.service.Initiate(context.Background(), w.session(), method)
		wantFault(t, string(method), err, fault.Invalid, auth.CodeValidation)
	}
	if w.throttle.used != 0 {
		t.Errorf("%d codes counted, want none", w.throttle.used)
	}
}

func TestHighRiskMayNotAsk(t *testing.T) {
	w := newWorld(t)
	s := w.session()
	s.TrustLevel = auth.HighRisk
	_, err := w.service.Initiate(context.Background(), s, auth.EmailOTP)
	wantFault(t, "HIGH_RISK", err, fault.Forbidden, auth.CodeInsufficientTrust)
}

func TestNothingSecretIsLogged(t *testing.T) {
	w := newWorld(t)
	p := w.initiate()
	guess := wrong(w.mail.code())
	_, wrongErr := w.verify(p, guess)
	passed, err := w.verify(p, w.mail.code())
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(w.events(""))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{string(guess), string(w.mail.code()), string(passed.DeviceToken), "anna@example.com"} {
		if strings.Contains(string(text)+wrongErr.Error(), s) {
			t.Errorf("%q is in the audit log or in an error", s)
		}
	}
	c, err := w.ports.Challenges.Get(context.Background(), p.ID)
	if err != nil || strings.Contains(string(c.CodeHash), string(w.mail.code())) || len(c.CodeHash) != 32 {
		t.Errorf("code hash of %d bytes, error %v", len(c.CodeHash), err)
	}
}
