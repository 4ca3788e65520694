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

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/audit"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
	"github.com/tollgate-dev/tollgate/core/auth/signin"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
)

func TestFirstLogin(t *testing.T) {
	w := newWorld(t)
	r := w.login()
	s := w.session(r.SessionID)
	if r.TrustLevel != auth.Unverified || s.TrustLevel != auth.Unverified || s.RiskScore != 30 {
		t.Errorf("level %s, session %s with score %d; want UNVERIFIED and 30", r.TrustLevel, s.TrustLevel, s.RiskScore)
	}
	if r.ExpiresIn != 15*time.Minute || s.ExpiresAt.Sub(s.CreatedAt) != 168*time.Hour || s.MaxExpiresAt.Sub(s.CreatedAt) != 720*time.Hour {
		t.Errorf("expires in %s; session of %s, at most %s", r.ExpiresIn, s.ExpiresAt.Sub(s.CreatedAt), s.MaxExpiresAt.Sub(s.CreatedAt))
	}
	d, err := w.ports.Devices.Get(context.Background(), s.DeviceID)
	if err != nil || d.TrustStatus != auth.DevicePending || d.Confirmed || d.Browser != "Chrome" || d.OS != "Linux" || d.Type != "desktop" {
		t.Errorf("device %+v, error %v", d, err)
	}
	if d.Identity != s.DeviceIdentity || d.LastIPAddress != home {
		t.Errorf("device %s at %s, session on %s", d.Identity, d.LastIPAddress, s.DeviceIdentity)
	}
}

func TestLoginLeavesEvents(t *testing.T) {
	w := newWorld(t)
	s := w.session(w.login().SessionID)
	attempt := w.events(auth.LoginAttempt)[0]
	if !attempt.Success || attempt.UserID != s.UserID || attempt.Details["ipAddress"] != home.String() ||
		attempt.Details["deviceIdentity"] != string(s.DeviceIdentity) || attempt.Details["trustLevel"] != "UNVERIFIED" {
		t.Errorf("login attempt %+v", attempt)
	}
	evaluation := w.events(auth.RiskEvaluation)[0]
	if evaluation.Details["riskScore"] != 30.0 || evaluation.Details["trustLevel"] != "UNVERIFIED" {
		t.Errorf("risk evaluation %+v", evaluation)
	}
	for name, want := range map[string]float64{
		"deviceFamiliarity": 30, "geographicAnomaly": 0, "ipReputation": 0, "loginVelocity": 0, "failedAttempts": 0,
	} {
		if w.factors()[name] != want {
			t.Errorf("factor %s is %v, want %v", name, w.factors()[name], want)
		}
	}
	if made := w.events(auth.DeviceChange); len(made) != 1 || made[0].Details["action"] != "new" {
		t.Errorf("device changes %+v, want one new", made)
	}
	w.clock.advance(time.Hour)
	w.login()
	if n := len(w.events(auth.DeviceChange)); n != 1 {
		t.Errorf("%d device changes after the second login, want one", n)
	}
}

func TestTrustByDevice(t *testing.T) {
	for name, c := range map[string]struct {
		binding trust.Binding
		mark    auth.TrustStatus
		shown   bool
		want    auth.TrustLevel
	}{
		"confirmed, proven":                     {trust.BindingPreferred, auth.DevicePending, true, auth.LimitedTrust},
		"confirmed, proven, untrusted":          {trust.BindingPreferred, auth.DeviceUntrusted, true, auth.LimitedTrust},
		"confirmed, proven, trusted":            {trust.BindingPreferred, auth.DeviceTrusted, true, auth.FullTrust},
		"confirmed, trusted, not proven":        {trust.BindingPreferred, auth.DeviceTrusted, false, auth.LimitedTrust},
		"required: trusted, proven":             {trust.BindingRequired, auth.DeviceTrusted, true, auth.FullTrust},
		"required: trusted, not proven":         {trust.BindingRequired, auth.DeviceTrusted, false, auth.Unverified},
		"off: confirmed, trusted, without more": {trust.BindingOff, auth.DeviceTrusted, false, auth.FullTrust},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(config *signin.Config) { config.DeviceBinding = c.binding })
			token := w.confirm(w.login().SessionID, c.mark)
			w.clock.advance(time.Hour)
			if !c.shown {
				token = ""
			}
			if r := w.login(shows(token)); r.TrustLevel != c.want {
				t.Errorf("level %s, want %s", r.TrustLevel, c.want)
			}
		})
	}
}

func TestForeignDeviceTokenProvesNothing(t *testing.T) {
	w := newWorld(t)
	w.confirm(w.login().SessionID, auth.DeviceTrusted)
	other, err := auth.NewDeviceInfo(auth.DeviceFields{UserAgent: "another"})
	if err != nil {
		t.Fatal(err)
	}
	foreign := w.confirm(w.login(func(in *signin.Login) { in.Device = other }).SessionID)
	w.clock.advance(time.Hour)
	if r := w.login(shows(foreign)); r.TrustLevel != auth.LimitedTrust {
		t.Errorf("level %s, want LIMITED_TRUST", r.TrustLevel)
	}
	w.clock.advance(time.Hour)
	if r := w.login(shows("invented")); r.TrustLevel != auth.LimitedTrust {
		t.Errorf("level %s, want LIMITED_TRUST", r.TrustLevel)
	}
}

func TestRevokedDeviceIsANewOne(t *testing.T) {
	w := newWorld(t)
	first := w.session(w.login().SessionID)
	token := w.confirm(first.ID, auth.DeviceTrusted)
	err := w.ports.Devices.Update(context.Background(), first.DeviceID, func(d *auth.Device) error { d.Revoked = true; return nil })
	if err != nil {
		t.Fatal(err)
	}
	w.clock.advance(time.Hour)
	r := w.login(shows(token))
	if again := w.session(r.SessionID); again.DeviceID == first.DeviceID || r.TrustLevel != auth.Unverified {
		t.Errorf("device %s again at %s, want a new one at UNVERIFIED", again.DeviceID, r.TrustLevel)
	}
}

func TestUnknownAndDisabledAnswerAlike(t *testing.T) {
	w := newWorld(t)
	disabled := auth.Email("gone@example.com")
	id := w.addAccount(disabled)
	err := w.ports.Accounts.Update(context.Background(), id, func(a *auth.Account) error { a.State = auth.AccountDisabled; return nil })
	if err != nil {
		t.Fatal(err)
	}
	want := ""
	for n, c := range []struct {
		email auth.Email
		word  string
	}{{anna, "wrong"}, {"nobody@example.com", password}, {disabled, password}} {
		for range 5 {
			_, err := w.attempt(c.word, func(in *signin.Login) { in.Email = c.email })
			wantFault(t, string(c.email), err, fault.Unauthenticated, auth.CodeInvalidCredentials)
			if want == "" {
				want = err.Error()
			}
			if err.Error() != want {
				t.Errorf("%s: %q, want %q", c.email, err, want)
			}
		}
		_, err := w.attempt(password, func(in *signin.Login) { in.Email = c.email })
		wantFault(t, string(c.email)+" after five failures", err, fault.Forbidden, auth.CodeAccountLocked)
		if done := w.hasher.compared + w.hasher.nobody; done != 5*(n+1) {
			t.Errorf("%d passwords were hashed, want %d", done, 5*(n+1))
		}
	}
	if w.hasher.nobody != 10 {
		t.Errorf("%d dummy hashes, want 10", w.hasher.nobody)
	}
}

func TestLock(t *testing.T) {
	w := newWorld(t)
	for range 5 {
		_, err := w.attempt("wrong")
		wantFault(t, "a wrong password", err, fault.Unauthenticated, auth.CodeInvalidCredentials)
	}
	_, err := w.attempt(password)
	wantFault(t, "the sixth try", err, fault.Forbidden, auth.CodeAccountLocked)
	f, _ := fault.As(err)
	if until := f.Details["lockoutUntil"]; until != "2026-11-21T12:15:00.000Z" {
		t.Errorf("locked until %v", until)
	}
	if n := len(w.events(auth.SuspiciousActivity)); n != 1 {
		t.Errorf("%d suspicious activities, want one for the lock", n)
	}
	w.clock.advance(15 * time.Minute)
	w.login()
	if w.factors()["failedAttempts"] != 0.0 {
		t.Errorf("factors %v, want failures of long ago forgotten", w.factors())
	}
}

// again runs each change twice, as a database does with a transaction that lost against another: here one of a login that fills
// the count, on another instance.
type again struct {
	authstore.Lockouts
	now time.Time
}

func (a again) Update(ctx context.Context, key auth.LockoutKey, change func(*auth.Lockout) error) error {
	return a.Lockouts.Update(ctx, key, func(l *auth.Lockout) error {
		lost := *l
		_ = change(&lost) // rolled back
		l.LockedUntil = a.now.Add(time.Minute)
		return change(l)
	})
}

func TestLockByAnotherInstanceIsToldOnceOnly(t *testing.T) {
	w := newWorld(t)
	w.ports.Lockouts = again{w.ports.Lockouts, w.clock.Now()}
	config := signin.Defaults()
	config.Lockout.Threshold = 1
	w.start(config)
	_, err := w.attempt("wrong")
	wantFault(t, "a try that came second", err, fault.Forbidden, auth.CodeAccountLocked)
	if n := len(w.events(auth.SuspiciousActivity)); n != 0 {
		t.Errorf("%d suspicious activities, want none: the other login tells of the lock", n)
	}
}

func TestEndOfLockResetsTheCount(t *testing.T) {
	w := newWorld(t)
	for range 5 {
		_, _ = w.attempt("wrong") // its answer is TestLock's business
	}
	w.clock.advance(15 * time.Minute)
	for range 4 {
		_, err := w.attempt("wrong")
		wantFault(t, "a wrong password", err, fault.Unauthenticated, auth.CodeInvalidCredentials)
	}
	w.login()
}

func TestCompleteLoginResetsTheCount(t *testing.T) {
	w := newWorld(t)
	for range 3 {
		for range 4 {
			_, err := w.attempt("wrong")
			wantFault(t, "a wrong password", err, fault.Unauthenticated, auth.CodeInvalidCredentials)
		}
		w.login()
	}
}

func TestFailuresOfLongAgoDoNotLock(t *testing.T) {
	w := newWorld(t)
	for range 12 {
		_, err := w.attempt("wrong")
		wantFault(t, "a wrong password", err, fault.Unauthenticated, auth.CodeInvalidCredentials)
		w.clock.advance(4 * time.Minute)
	}
}

func TestStrangerCannotLockOutAProvenDevice(t *testing.T) {
	w := newWorld(t)
	token := w.confirm(w.login().SessionID)
	for range 6 {
		_, _ = w.attempt("wrong") // a stranger, without the token
	}
	if _, err := w.attempt(password); !fault.Is(err, fault.Forbidden) {
		t.Fatalf("without the token: %v, want a lock", err)
	}
	w.login(shows(token))
	if _, err := w.attempt(password); !fault.Is(err, fault.Forbidden) {
		t.Errorf("without the token: %v, want the lock untouched", err)
	}
	for range 5 {
		_, err := w.attempt("wrong", shows(token))
		wantFault(t, "a wrong password", err, fault.Unauthenticated, auth.CodeInvalidCredentials)
	}
	_, err := w.attempt(password, shows(token))
	wantFault(t, "the device's own lock", err, fault.Forbidden, auth.CodeAccountLocked)
}

func TestParallelGuesses(t *testing.T) {
	w := newWorld(t)
	codes := inParallel(50, func() error { _, err := w.attempt("wrong"); return err })
	if codes[auth.CodeInvalidCredentials] != 5 || codes[auth.CodeAccountLocked] != 45 || w.hasher.compared != 5 {
		t.Errorf("answers %v, %d passwords compared; want 5 of 50", codes, w.hasher.compared)
	}
}

func TestParallelRightLoginsAllSucceed(t *testing.T) {
	w := newWorld(t)
	codes := inParallel(30, func() error { _, err := w.attempt(password); return err })
	if codes[""] != 30 {
		t.Errorf("answers %v, want 30 successes", codes)
	}
	if n := len(w.events(auth.DeviceChange)); n != 1 {
		t.Errorf("%d devices were made, want one", n)
	}
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
	w := newWorld(t)
	w.hasher.err = fault.New(fault.Unavailable, "", "busy").After(time.Second)
	for range 10 {
		if _, err := w.attempt(password); !fault.Is(err, fault.Unavailable) {
			t.Fatalf("error %v, want fault.Unavailable", err)
		}
	}
	w.hasher.err = errors.New("broken")
	if _, err := w.attempt(password); fault.KindOf(err) != fault.Internal {
		t.Errorf("error %v, want an internal one", err)
	}
	if n := len(w.events("")); n != 0 {
		t.Errorf("%d events, want none", n)
	}
	w.hasher.err = nil
	w.login()
}

// mute is an audit log that takes nothing.
type mute struct{ authstore.AuditLog }

func (mute) Append(context.Context, ...auth.Event) error {
	return fault.New(fault.Unavailable, "", "the audit log is away")
}

// TestFailureCountsWithoutItsEvents wants guesses bounded whatever becomes of what is told of them.
func TestFailureCountsWithoutItsEvents(t *testing.T) {
	w := newWorld(t)
	told := w.trail
	w.trail = audit.New(mute{w.log}, w.clock, w.dice)
	w.start(signin.Defaults())
	for range 5 {
		_, err := w.attempt("Wrong Horse 9!")
		wantFault(t, "a wrong password that cannot be told", err, fault.Unavailable, "")
	}
	w.trail = told
	w.start(signin.Defaults())
	_, err := w.attempt(password)
	wantFault(t, "the right password after five failures", err, fault.Forbidden, auth.CodeAccountLocked)
	if w.hasher.compared != 5 {
		t.Errorf("%d passwords were compared, want 5", w.hasher.compared)
	}
}

// TestLockOfAnOperator wants only the right password to learn of the lock, and everybody else to get the answers, and the count of
// failures, of an address without an account.
func TestLockOfAnOperator(t *testing.T) {
	w := newWorld(t)
	first := w.login()
	err := w.ports.Accounts.Update(context.Background(), first.UserID, func(a *auth.Account) error { a.State = auth.AccountLocked; return nil })
	if err != nil {
		t.Fatal(err)
	}
	until := func(err error) any {
		f, _ := fault.As(err)
		return f.Details["lockoutUntil"]
	}
	for range 6 { // more than would lock by themselves
		_, right := w.attempt(password)
		wantFault(t, "the right password", right, fault.Forbidden, auth.CodeAccountLocked)
		if until(right) != "9999-12-31T23:59:59.000Z" {
			t.Errorf("the lock of an operator ends at %v", until(right))
		}
	}
	compared := w.hasher.compared
	for i := range 7 {
		_, wrong := w.attempt("wrong")
		_, unknown := w.attempt("wrong", func(in *signin.Login) { in.Email = "nobody@example.com" })
		if !reflect.DeepEqual(wrong, unknown) {
			t.Fatalf("wrong password %d: %#v, of an unknown address: %#v", i, wrong, unknown)
		}
	}
	if n := w.hasher.compared - compared; n != 5 || w.hasher.nobody != 5 {
		t.Errorf("%d passwords were compared, of an unknown address %d", n, w.hasher.nobody)
	}
	_, right := w.attempt(password)
	wantFault(t, "the right password after too many wrong ones", right, fault.Forbidden, auth.CodeAccountLocked)
	if until(right) != w.clock.Now().Add(15*time.Minute).Format("2006-01-02T15:04:05.000Z") {
		t.Errorf("the ordinary lock ends at %v", until(right))
	}
	if n := len(w.events(auth.SuspiciousActivity)); n != 2 { // in nobody's own log: of the unknown address
		t.Errorf("%d suspicious activities, want the two ordinary locks", n)
	}
	if _, err := w.refresh(first.RefreshToken); err != nil {
		t.Errorf("refresh of a living session: %v", err)
	}
}

func TestRehash(t *testing.T) {
	w := newWorld(t)
	w.hasher.present = "v2"
	id := w.login().UserID
	a, err := w.ports.Accounts.Get(context.Background(), id)
	if err != nil || !strings.HasPrefix(string(a.PasswordHash), "v2:") {
		t.Errorf("hash %s, error %v; want it renewed", a.PasswordHash, err)
	}
	w.login()
}

func TestRiskFactors(t *testing.T) {
	t.Run("velocity", func(t *testing.T) {
		w := newWorld(t)
		for n, want := range []float64{0, 0, 30, 30} {
			w.login()
			if got := w.factors()["loginVelocity"]; got != want {
				t.Errorf("login %d: %v points, want %v", n, got, want)
			}
			w.clock.advance(time.Second)
		}
		w.clock.advance(2 * time.Minute)
		w.login()
		if got := w.factors()["loginVelocity"]; got != 15.0 {
			t.Errorf("after two minutes: %v points, want 15", got)
		}
	})
	t.Run("failed attempts", func(t *testing.T) {
		for failures, want := range map[int]float64{1: 10, 2: 10, 3: 25, 4: 25} {
			w := newWorld(t)
			for range failures {
				_, _ = w.attempt("wrong") // its answer is TestLock's business
			}
			w.login()
			if got := w.factors()["failedAttempts"]; got != want {
				t.Errorf("%d failures: %v points, want %v", failures, got, want)
			}
		}
	})
	t.Run("reputation", func(t *testing.T) {
		w := newWorld(t)
		w.atlas.rates = map[netip.Addr]risk.Reputation{home: {State: risk.Known, Class: risk.Listed}}
		if r := w.login(); r.TrustLevel != auth.HighRisk || w.factors()["ipReputation"] != 40.0 {
			t.Errorf("level %s, factors %v; want HIGH_RISK and 40", r.TrustLevel, w.factors())
		}
		if n := len(w.events(auth.SuspiciousActivity)); n != 1 {
			t.Errorf("%d suspicious activities, want one", n)
		}
	})
	t.Run("silent source", func(t *testing.T) {
		w := newWorld(t)
		w.atlas.places = map[netip.Addr]risk.Location{home: {State: risk.Unanswered}}
		w.login()
		named, _ := w.events(auth.RiskEvaluation)[0].Details["unanswered"].([]any)
		if w.factors()["geographicAnomaly"] != 10.0 || !slices.Contains(named, any("geographicAnomaly")) {
			t.Errorf("factors %v, unanswered %v", w.factors(), named)
		}
		reasons, _ := w.events(auth.RiskEvaluation)[0].Details["reasons"].(map[string]any)
		if len(reasons) != len(w.factors()) || reasons["geographicAnomaly"] != "the location of the address is not known" {
			t.Errorf("reasons %v", reasons)
		}
	})
}

func TestGeographyLearnsFromTrustedSessionsOnly(t *testing.T) {
	berlin, tokyo := netip.MustParseAddr("203.0.113.1"), netip.MustParseAddr("203.0.113.2")
	w := newWorld(t)
	w.atlas.places = map[netip.Addr]risk.Location{
		berlin: {State: risk.Known, Country: "DE", Coordinates: &risk.Coordinates{Latitude: 52.5, Longitude: 13.4}},
		tokyo:  {State: risk.Known, Country: "JP", Coordinates: &risk.Coordinates{Latitude: 35.7, Longitude: 139.7}},
	}
	from := func(a netip.Addr) func(*signin.Login) { return func(in *signin.Login) { in.Address = a } }
	first := w.login(from(berlin))
	w.clock.advance(time.Hour)
	w.login(from(tokyo))
	if got := w.factors()["geographicAnomaly"]; got != 0.0 {
		t.Errorf("without a history: %v points, want 0", got)
	}
	err := w.ports.Sessions.Update(context.Background(), first.SessionID, func(s *auth.Session) error {
		s.TrustLevel = auth.FullTrust
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	w.login(from(tokyo))
	if got := w.factors()["geographicAnomaly"]; got != 40.0 {
		t.Errorf("Berlin to Tokyo in an hour: %v points, want 40", got)
	}
	w.clock.advance(48 * time.Hour)
	w.login(from(tokyo))
	if got := w.factors()["geographicAnomaly"]; got != 20.0 {
		t.Errorf("another country: %v points, want 20", got)
	}
	w.clock.advance(time.Second)
	w.login(from(berlin))
	if got := w.factors()["geographicAnomaly"]; got != 0.0 {
		t.Errorf("the usual country: %v points, want 0", got)
	}
}

func TestNothingSecretIsLogged(t *testing.T) {
	w := newWorld(t)
	r := w.login()
	token := w.confirm(r.SessionID)
	_, err := w.attempt("Wrong Horse 7!", shows(token))
	next, refreshErr := w.refresh(r.RefreshToken)
	if refreshErr != nil {
		t.Fatal(refreshErr)
	}
	_, replayErr := w.refresh(r.RefreshToken)
	text := w.text() + err.Error() + replayErr.Error()
	for _, s := range []string{
		password, "Wrong Horse 7!", string(r.AccessToken), string(r.RefreshToken), string(next.RefreshToken), string(token), string(anna),
	} {
		if strings.Contains(text, s) {
			t.Errorf("%q is in the audit log or in an error", s)
		}
	}
}

// A stolen password alone never gets past UNVERIFIED: a session at that level sees the identities of all devices, and must not be
// able to find the fields of a confirmed one by hashing likely ones.
func TestIdentityTellsNothingOfTheFields(t *testing.T) {
	w := newWorld(t)
	first := w.session(w.login().SessionID)
	if first.DeviceIdentity == laptop(t).Identity(first.UserID) {
		t.Error("the identity can be found from the fields without a key")
	}
	if again := w.session(w.login().SessionID); again.DeviceIdentity != first.DeviceIdentity || again.DeviceID != first.DeviceID {
		t.Errorf("identity %s, then %s", first.DeviceIdentity, again.DeviceIdentity)
	}
}
