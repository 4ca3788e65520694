package signin_test

import (
	"context"
	"errors"
	"net/netip"
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
	"github.com/tollgate-dev/tollgate/core/auth/risk"
	"github.com/tollgate-dev/tollgate/core/auth/signin"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/test/must"
)

func TestFirstLogin(t *testing.T) {
	fx := newFixture(t)
	r := fx.mustLogin()
	s := fx.getSession(r.SessionID)
	if r.TrustLevel != auth.Unverified || s.TrustLevel != auth.Unverified || s.RiskScore != 30 {
		t.Errorf("level %s, session %s with score %d; want UNVERIFIED and 30", r.TrustLevel, s.TrustLevel, s.RiskScore)
	}
	if r.ExpiresIn != 15*time.Minute || s.ExpiresAt.Sub(s.CreatedAt) != 168*time.Hour ||
		s.MaxExpiresAt.Sub(s.CreatedAt) != 720*time.Hour {
		t.Errorf("expires in %s; session of %s, at most %s", r.ExpiresIn, s.ExpiresAt.Sub(s.CreatedAt),
			s.MaxExpiresAt.Sub(s.CreatedAt))
	}
	d, err := fx.ports.Devices.Get(context.Background(), s.DeviceID)
	if err != nil || d.TrustStatus != auth.DevicePending || d.Confirmed || d.Browser != "Chrome" || d.OS != "Linux" ||
		d.Type != "desktop" {
		t.Errorf("device %+v, error %v", d, err)
	}
	if d.Identity != s.DeviceIdentity || d.LastIPAddress != homeAddress {
		t.Errorf("device %s at %s, session on %s", d.Identity, d.LastIPAddress, s.DeviceIdentity)
	}
}

func TestLoginLeavesEvents(t *testing.T) {
	fx := newFixture(t)
	s := fx.getSession(fx.mustLogin().SessionID)
	attempt := fx.findEvents(audit.LoginAttempt)[0]
	if !attempt.Success || attempt.Subject != audit.Subject(s.UserID) ||
		attempt.Details.Text("ipAddress") != homeAddress.String() ||
		attempt.Details.Text("deviceIdentity") != string(s.DeviceIdentity) ||
		attempt.Details.Text("trustLevel") != "UNVERIFIED" {
		t.Errorf("login attempt %+v", attempt)
	}
	evaluation := fx.findEvents(audit.RiskEvaluation)[0]
	if evaluation.Details.Number("riskScore") != 30.0 || evaluation.Details.Text("trustLevel") != "UNVERIFIED" {
		t.Errorf("risk evaluation %+v", evaluation)
	}
	for name, want := range map[string]float64{
		"deviceFamiliarity": 30, "geographicAnomaly": 0, "ipReputation": 0, "loginVelocity": 0, "failedAttempts": 0,
	} {
		wantEqual(t, fx.riskFactors().Number(name), want, "factor %s", name)
	}
	if made := fx.findEvents(audit.DeviceChange); len(made) != 1 || made[0].Details.Text("action") != "new" {
		t.Errorf("device changes %+v, want one new", made)
	}
	fx.clock.Advance(time.Hour)
	fx.mustLogin()
	wantEqual(t, len(fx.findEvents(audit.DeviceChange)), 1, "device changes after the second login")
}

func TestTrustByDevice(t *testing.T) {
	for name, c := range map[string]struct {
		binding trust.Binding
		mark    auth.TrustStatus
		shown   bool
		want    auth.TrustLevel
	}{
		"confirmed, proven": {trust.BindingPreferred, auth.DevicePending, true, auth.LimitedTrust},
		"confirmed, proven, untrusted": {
			trust.BindingPreferred, auth.DeviceUntrusted, true, auth.LimitedTrust,
		},
		"confirmed, proven, trusted":            {trust.BindingPreferred, auth.DeviceTrusted, true, auth.FullTrust},
		"confirmed, trusted, not proven":        {trust.BindingPreferred, auth.DeviceTrusted, false, auth.LimitedTrust},
		"required: trusted, proven":             {trust.BindingRequired, auth.DeviceTrusted, true, auth.FullTrust},
		"required: trusted, not proven":         {trust.BindingRequired, auth.DeviceTrusted, false, auth.Unverified},
		"off: confirmed, trusted, without more": {trust.BindingOff, auth.DeviceTrusted, false, auth.FullTrust},
	} {
		t.Run(name, func(t *testing.T) {
			fx := newFixture(t, func(config *signin.Config) { config.DeviceBinding = c.binding })
			token := fx.confirmDevice(fx.mustLogin().SessionID, c.mark)
			fx.clock.Advance(time.Hour)
			if !c.shown {
				token = ""
			}
			if r := fx.mustLogin(withDeviceToken(token)); r.TrustLevel != c.want {
				t.Errorf("level %s, want %s", r.TrustLevel, c.want)
			}
		})
	}
}

func TestForeignDeviceTokenProvesNothing(t *testing.T) {
	fx := newFixture(t)
	fx.confirmDevice(fx.mustLogin().SessionID, auth.DeviceTrusted)
	other, err := auth.NewDeviceInfo(auth.DeviceFields{UserAgent: "another"})
	must.Succeed(t, err)
	foreign := fx.confirmDevice(fx.mustLogin(func(in *signin.Login) { in.Device = other }).SessionID)
	fx.clock.Advance(time.Hour)
	if r := fx.mustLogin(withDeviceToken(foreign)); r.TrustLevel != auth.LimitedTrust {
		t.Errorf("level %s, want LIMITED_TRUST", r.TrustLevel)
	}
	fx.clock.Advance(time.Hour)
	if r := fx.mustLogin(withDeviceToken("invented")); r.TrustLevel != auth.LimitedTrust {
		t.Errorf("level %s, want LIMITED_TRUST", r.TrustLevel)
	}
}

func TestRevokedDeviceIsANewOne(t *testing.T) {
	fx := newFixture(t)
	first := fx.getSession(fx.mustLogin().SessionID)
	token := fx.confirmDevice(first.ID, auth.DeviceTrusted)
	err := fx.ports.Devices.Update(context.Background(), first.DeviceID, func(d *auth.Device) error {
		d.Revoked = true
		return nil
	})
	must.Succeed(t, err)
	fx.clock.Advance(time.Hour)
	r := fx.mustLogin(withDeviceToken(token))
	if again := fx.getSession(r.SessionID); again.DeviceID == first.DeviceID || r.TrustLevel != auth.Unverified {
		t.Errorf("device %s again at %s, want a new one at UNVERIFIED", again.DeviceID, r.TrustLevel)
	}
}

func TestUnknownAndDisabledGetTheSameError(t *testing.T) {
	fx := newFixture(t)
	disabled := auth.Email("gone@example.com")
	id := fx.addAccount(disabled)
	err := fx.ports.Accounts.Update(context.Background(), id, func(a *auth.Account) error {
		a.State = auth.AccountDisabled
		return nil
	})
	must.Succeed(t, err)
	want := ""
	for n, c := range []struct {
		email auth.Email
		word  string
	}{{anna, "wrong"}, {"nobody@example.com", password}, {disabled, password}} {
		for range 5 {
			_, err := fx.tryLogin(c.word, func(in *signin.Login) { in.Email = c.email })
			wantFault(t, string(c.email), err, fault.Unauthenticated, auth.CodeInvalidCredentials)
			if want == "" {
				want = err.Error()
			}
			if err.Error() != want {
				t.Errorf("%s: %q, want %q", c.email, err, want)
			}
		}
		_, err := fx.tryLogin(password, func(in *signin.Login) { in.Email = c.email })
		wantFault(t, string(c.email)+" after five failures", err, fault.Forbidden, auth.CodeAccountLocked)
		wantEqual(t, fx.hasher.compared+fx.hasher.dummies, 5*(n+1), "the passwords compared")
	}
	wantEqual(t, fx.hasher.dummies, 10, "dummy hashes")
}

// TestLock also checks that the end of a lock and a complete login reset the count.
func TestLock(t *testing.T) {
	fx := newFixture(t)
	fail := func(times int) {
		t.Helper()
		for range times {
			_, err := fx.tryLogin("wrong")
			wantFault(t, "a wrong password", err, fault.Unauthenticated, auth.CodeInvalidCredentials)
		}
	}
	fail(5)
	_, err := fx.tryLogin(password)
	wantFault(t, "the sixth try", err, fault.Forbidden, auth.CodeAccountLocked)
	f, _ := fault.As(err)
	wantEqual(t, f.Details.Text("lockoutUntil"), "2026-11-21T12:15:00.000Z", "locked until")
	wantEqual(t, len(fx.findEvents(audit.SuspiciousActivity)), 1, "suspicious activities")
	fx.clock.Advance(15 * time.Minute)
	fx.mustLogin()
	if fx.riskFactors().Number("failedAttempts") != 0.0 {
		t.Errorf("factors %v, want failures of long ago forgotten", fx.riskFactors())
	}
	fail(5)
	fx.clock.Advance(15 * time.Minute)
	for range 3 {
		fail(4)
		fx.mustLogin()
	}
}

// retriedLockouts runs each change twice, as a database does with a transaction that lost against
// another: here one of a login that fills the count, on another instance.
type retriedLockouts struct {
	authstore.Lockouts
	now time.Time
}

func (a retriedLockouts) Update(ctx context.Context, key auth.LockoutKey, change func(*auth.Lockout) error) error {
	return a.Lockouts.Update(ctx, key, func(l *auth.Lockout) error {
		lost := *l
		_ = change(&lost) // rolled back
		l.LockedUntil = a.now.Add(time.Minute)
		return change(l)
	})
}

func TestLockByAnotherInstanceIsRecordedOnce(t *testing.T) {
	fx := newFixture(t)
	fx.ports.Lockouts = retriedLockouts{fx.ports.Lockouts, fx.clock.Now()}
	config := authtest.SignIn()
	config.Lockout.Threshold = 1
	fx.startService(config)
	_, err := fx.tryLogin("wrong")
	wantFault(t, "a try that came second", err, fault.Forbidden, auth.CodeAccountLocked)
	wantEqual(t, len(fx.findEvents(audit.SuspiciousActivity)), 0, "suspicious activities")
}

func TestFailuresOfLongAgoDoNotLock(t *testing.T) {
	fx := newFixture(t)
	for range 12 {
		_, err := fx.tryLogin("wrong")
		wantFault(t, "a wrong password", err, fault.Unauthenticated, auth.CodeInvalidCredentials)
		fx.clock.Advance(4 * time.Minute)
	}
}

func TestStrangerCannotLockOutAProvenDevice(t *testing.T) {
	fx := newFixture(t)
	token := fx.confirmDevice(fx.mustLogin().SessionID)
	for range 6 {
		_, _ = fx.tryLogin("wrong") // a stranger, without the token
	}
	if _, err := fx.tryLogin(password); !fault.Is(err, fault.Forbidden) {
		t.Fatalf("without the token: %v, want a lock", err)
	}
	fx.mustLogin(withDeviceToken(token))
	if _, err := fx.tryLogin(password); !fault.Is(err, fault.Forbidden) {
		t.Errorf("without the token: %v, want the lock untouched", err)
	}
	for range 5 {
		_, err := fx.tryLogin("wrong", withDeviceToken(token))
		wantFault(t, "a wrong password", err, fault.Unauthenticated, auth.CodeInvalidCredentials)
	}
	_, err := fx.tryLogin(password, withDeviceToken(token))
	wantFault(t, "the device's own lock", err, fault.Forbidden, auth.CodeAccountLocked)
}

func TestParallelGuesses(t *testing.T) {
	fx := newFixture(t)
	codes := inParallel(50, func() error { _, err := fx.tryLogin("wrong"); return err })
	if codes[auth.CodeInvalidCredentials] != 5 || codes[auth.CodeAccountLocked] != 45 || fx.hasher.compared != 5 {
		t.Errorf("answers %v, %d passwords compared; want 5 of 50", codes, fx.hasher.compared)
	}
}

func TestParallelRightLoginsAllSucceed(t *testing.T) {
	fx := newFixture(t)
	codes := inParallel(30, func() error { _, err := fx.tryLogin(password); return err })
	if codes[""] != 30 {
		t.Errorf("answers %v, want 30 successes", codes)
	}
	wantEqual(t, len(fx.findEvents(audit.DeviceChange)), 1, "devices were made")
}

// inParallel counts the codes of what n calls return; success is the empty code.
func inParallel(n int, call func() error) map[fault.Code]int {
	var wait sync.WaitGroup
	var mu sync.Mutex
	codes := map[fault.Code]int{}
	for range n {
		wait.Go(func() {
			err := call()
			f, ok := fault.As(err)
			if !ok {
				f = &fault.Error{}
				if err != nil {
					f.Code = fault.Code(err.Error())
				}
			}
			mu.Lock()
			defer mu.Unlock()
			codes[f.Code]++
		})
	}
	wait.Wait()
	return codes
}

func TestFailureOfTheServiceIsNotCounted(t *testing.T) {
	fx := newFixture(t)
	fx.hasher.err = fault.New(fault.Unavailable, "busy").After(time.Second)
	for range 10 {
		if _, err := fx.tryLogin(password); !fault.Is(err, fault.Unavailable) {
			t.Fatalf("error %v, want fault.Unavailable", err)
		}
	}
	fx.hasher.err = errors.New("broken")
	if _, err := fx.tryLogin(password); fault.KindOf(err) != fault.Internal {
		t.Errorf("error %v, want an internal one", err)
	}
	wantEqual(t, len(fx.findEvents("")), 0, "events")
	fx.hasher.err = nil
	fx.mustLogin()
}

// failingAuditLog is an audit log that is not available.
type failingAuditLog struct{ authstore.AuditLog }

func (failingAuditLog) Append(context.Context, ...audit.Event) error {
	return fault.New(fault.Unavailable, "the audit log is away")
}

// TestFailureCountsWithoutAuditLog checks that guesses are limited even if the audit log fails.
func TestFailureCountsWithoutAuditLog(t *testing.T) {
	fx := newFixture(t)
	told := fx.trail
	fx.trail = auditing.New(failingAuditLog{fx.log}, fx.clock, fx.entropy)
	fx.startService(authtest.SignIn())
	for range 5 {
		_, err := fx.tryLogin("Wrong Horse 9!")
		wantFault(t, "a wrong password that cannot be told", err, fault.Unavailable, "")
	}
	fx.trail = told
	fx.startService(authtest.SignIn())
	_, err := fx.tryLogin(password)
	wantFault(t, "the right password after five failures", err, fault.Forbidden, auth.CodeAccountLocked)
	wantEqual(t, fx.hasher.compared, 5, "passwords were compared")
}

// TestLockOfAnOperator checks that only the right password reveals the lock, and that wrong ones
// get the responses, and the count of failures, of an address without an account.
func TestLockOfAnOperator(t *testing.T) {
	fx := newFixture(t)
	first := fx.mustLogin()
	err := fx.ports.Accounts.Update(context.Background(), first.UserID, func(a *auth.Account) error {
		a.State = auth.AccountLocked
		return nil
	})
	must.Succeed(t, err)
	until := func(err error) any {
		f, _ := fault.As(err)
		return f.Details.Text("lockoutUntil")
	}
	for range 6 { // more than would lock by themselves
		_, right := fx.tryLogin(password)
		wantFault(t, "the right password", right, fault.Forbidden, auth.CodeAccountLocked)
		wantEqual(t, until(right), "9999-12-31T23:59:59.000Z", "the lock of an operator ends at")
	}
	compared := fx.hasher.compared
	for i := range 7 {
		_, wrong := fx.tryLogin("wrong")
		_, unknown := fx.tryLogin("wrong", func(in *signin.Login) { in.Email = "nobody@example.com" })
		if !reflect.DeepEqual(wrong, unknown) {
			t.Fatalf("wrong password %d: %#v, of an unknown address: %#v", i, wrong, unknown)
		}
	}
	if n := fx.hasher.compared - compared; n != 5 || fx.hasher.dummies != 5 {
		t.Errorf("%d passwords were compared, of an unknown address %d", n, fx.hasher.dummies)
	}
	_, right := fx.tryLogin(password)
	wantFault(t, "the right password after too many wrong ones", right, fault.Forbidden, auth.CodeAccountLocked)
	wantEqual[any](t, until(right), fx.clock.Now().Add(15*time.Minute).Format("2006-01-02T15:04:05.000Z"),
		"the ordinary lock ends at")
	if n := len(fx.findEvents(audit.SuspiciousActivity)); n != 2 { // in no one's own log: of the unknown address
		t.Errorf("%d suspicious activities, want the two ordinary locks", n)
	}
	if _, err := fx.tryRefresh(first.RefreshToken); err != nil {
		t.Errorf("refresh of a living session: %v", err)
	}
}

func TestRehash(t *testing.T) {
	fx := newFixture(t)
	fx.hasher.present = "v2"
	id := fx.mustLogin().UserID
	a, err := fx.ports.Accounts.Get(context.Background(), id)
	if err != nil || !strings.HasPrefix(string(a.PasswordHash), "v2:") {
		t.Errorf("hash %s, error %v; want it renewed", a.PasswordHash, err)
	}
	fx.mustLogin()
}

func TestRiskFactors(t *testing.T) {
	t.Run("velocity", func(t *testing.T) {
		fx := newFixture(t)
		for n, want := range []float64{0, 0, 30, 30} {
			fx.mustLogin()
			wantEqual(t, fx.riskFactors().Number("loginVelocity"), want, "login %d", n)
			fx.clock.Advance(time.Second)
		}
		fx.clock.Advance(2 * time.Minute)
		fx.mustLogin()
		if got := fx.riskFactors().Number("loginVelocity"); got != 15.0 {
			t.Errorf("after two minutes: %v points, want 15", got)
		}
	})
	t.Run("failed attempts", func(t *testing.T) {
		for failures, want := range map[int]float64{1: 10, 2: 10, 3: 25, 4: 25} {
			fx := newFixture(t)
			for range failures {
				_, _ = fx.tryLogin("wrong") // its answer is TestLock's business
			}
			fx.mustLogin()
			wantEqual(t, fx.riskFactors().Number("failedAttempts"), want, "%d failures", failures)
		}
	})
	t.Run("reputation", func(t *testing.T) {
		fx := newFixture(t)
		fx.signals.rates = map[netip.Addr]risk.Reputation{homeAddress: {State: risk.Known, Class: risk.Listed}}
		if r := fx.mustLogin(); r.TrustLevel != auth.HighRisk || fx.riskFactors().Number("ipReputation") != 40.0 {
			t.Errorf("level %s, factors %v; want HIGH_RISK and 40", r.TrustLevel, fx.riskFactors())
		}
		wantEqual(t, len(fx.findEvents(audit.SuspiciousActivity)), 1, "suspicious activities")
	})
	t.Run("silent source", func(t *testing.T) {
		fx := newFixture(t)
		fx.signals.places = map[netip.Addr]risk.Location{homeAddress: {State: risk.Unanswered}}
		fx.mustLogin()
		named, _ := fx.findEvents(audit.RiskEvaluation)[0].Details["unanswered"].(audit.List)
		if fx.riskFactors().Number("geographicAnomaly") != 10.0 ||
			!slices.Contains(named, audit.Value(audit.Text("geographicAnomaly"))) {
			t.Errorf("factors %v, unanswered %v", fx.riskFactors(), named)
		}
		reasons, _ := fx.findEvents(audit.RiskEvaluation)[0].Details["reasons"].(audit.Details)
		if len(reasons) != len(fx.riskFactors()) ||
			reasons.Text("geographicAnomaly") != "the location of the address is not known" {
			t.Errorf("reasons %v", reasons)
		}
	})
}

func TestGeographyLearnsFromTrustedSessionsOnly(t *testing.T) {
	berlin, tokyo := netip.MustParseAddr("203.0.113.1"), netip.MustParseAddr("203.0.113.2")
	fx := newFixture(t)
	fx.signals.places = map[netip.Addr]risk.Location{
		berlin: {State: risk.Known, Country: "DE", Coordinates: &risk.Coordinates{Latitude: 52.5, Longitude: 13.4}},
		tokyo:  {State: risk.Known, Country: "JP", Coordinates: &risk.Coordinates{Latitude: 35.7, Longitude: 139.7}},
	}
	from := func(a netip.Addr) func(*signin.Login) { return func(in *signin.Login) { in.Address = a } }
	first := fx.mustLogin(from(berlin))
	fx.clock.Advance(time.Hour)
	fx.mustLogin(from(tokyo))
	if got := fx.riskFactors().Number("geographicAnomaly"); got != 0.0 {
		t.Errorf("without a history: %v points, want 0", got)
	}
	err := fx.ports.Sessions.Update(context.Background(), first.SessionID, func(s *auth.Session) error {
		s.TrustLevel = auth.FullTrust
		return nil
	})
	must.Succeed(t, err)
	fx.mustLogin(from(tokyo))
	if got := fx.riskFactors().Number("geographicAnomaly"); got != 40.0 {
		t.Errorf("Berlin to Tokyo in an hour: %v points, want 40", got)
	}
	fx.clock.Advance(48 * time.Hour)
	fx.mustLogin(from(tokyo))
	if got := fx.riskFactors().Number("geographicAnomaly"); got != 20.0 {
		t.Errorf("another country: %v points, want 20", got)
	}
	fx.clock.Advance(time.Second)
	fx.mustLogin(from(berlin))
	if got := fx.riskFactors().Number("geographicAnomaly"); got != 0.0 {
		t.Errorf("the usual country: %v points, want 0", got)
	}
}

func TestNothingSecretIsLogged(t *testing.T) {
	fx := newFixture(t)
	r := fx.mustLogin()
	token := fx.confirmDevice(r.SessionID)
	_, err := fx.tryLogin("Wrong Horse 7!", withDeviceToken(token))
	next, refreshErr := fx.tryRefresh(r.RefreshToken)
	if refreshErr != nil {
		t.Fatal(refreshErr)
	}
	_, replayErr := fx.tryRefresh(r.RefreshToken)
	text := fx.auditText() + err.Error() + replayErr.Error()
	for _, s := range []string{
		password, "Wrong Horse 7!", string(r.AccessToken), string(r.RefreshToken), string(next.RefreshToken),
		string(token), string(anna),
	} {
		if strings.Contains(text, s) {
			t.Errorf("%q is in the audit log or in an error", s)
		}
	}
}

// TestIdentityDoesNotRevealTheFields checks that the identity is a keyed hash. A session at
// UNVERIFIED sees the identities of all devices, and must not be able to find the fields of a
// confirmed one by hashing likely values.
func TestIdentityDoesNotRevealTheFields(t *testing.T) {
	fx := newFixture(t)
	first := fx.getSession(fx.mustLogin().SessionID)
	if first.DeviceIdentity == laptopInfo(t).Identity(first.UserID) {
		t.Error("the identity can be found from the fields without a key")
	}
	if again := fx.getSession(fx.mustLogin().SessionID); again.DeviceIdentity != first.DeviceIdentity ||
		again.DeviceID != first.DeviceID {
		t.Errorf("identity %s, then %s", first.DeviceIdentity, again.DeviceIdentity)
	}
}
