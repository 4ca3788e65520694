package credentials_test

import (
	"context"
	"crypto/rand"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/argon"
	"github.com/tollgate-dev/tollgate/adapters/memory/records"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/audit"
	"github.com/tollgate-dev/tollgate/core/auth/credentials"
	"github.com/tollgate-dev/tollgate/core/auth/people"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
)

const (
	user    auth.UserID = "11111111-2222-4333-8444-555555555555"
	anna    auth.Email  = "anna@example.com"
	present             = "Right Horse 9!"
)

var root = auth.RootSecret(strings.Repeat("r", 32))

type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

type dice struct{}

func (dice) Fill(p []byte) { _, _ = rand.Read(p) } // never fails

type cache struct{ dropped []auth.SessionID }

func (*cache) Get(context.Context, auth.SessionID) (auth.Session, bool) { return auth.Session{}, false }
func (*cache) Put(context.Context, auth.Session, time.Time)             {}
func (c *cache) Drop(_ context.Context, ids ...auth.SessionID)          { c.dropped = append(c.dropped, ids...) }

type world struct {
	t       *testing.T
	service *credentials.Service
	people  *people.Service
	ports   credentials.Ports
	hasher  *argon.Hasher
	clock   *clock
	cache   *cache
	log     *records.AuditLog
	devices *records.Devices
}

func newWorld(t *testing.T) *world {
	t.Helper()
	db := records.New()
	w := &world{
		t: t, clock: &clock{time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)}, cache: &cache{},
		log: records.NewAuditLog(db), devices: records.NewDevices(db),
		ports: credentials.Ports{
			Accounts: records.NewAccounts(db), Sessions: records.NewSessions(db), Pending: records.NewPendingLogins(db),
			Lockouts: records.NewLockouts(db), Transaction: db,
		},
	}
	var err error
	if w.hasher, err = argon.New(argon.Config{MemoryKiB: 64, Iterations: 1, Parallelism: 1, Queue: 64}, dice{}); err != nil {
		t.Fatal(err)
	}
	w.ports.Passwords, w.ports.Cache, w.ports.Trail = w.hasher, w.cache, audit.New(w.log, w.clock, dice{})
	w.ports.Clock, w.ports.Entropy, w.ports.Root = w.clock, dice{}, root
	w.service, err = credentials.New(credentials.Config{
		Lockout: auth.LockoutPolicy{Threshold: 5, Window: 15 * time.Minute, Duration: 15 * time.Minute}, Issuer: "Tollgate",
	}, w.ports)
	if err != nil {
		t.Fatal(err)
	}
	w.people, err = people.New(people.Ports{
		Accounts: w.ports.Accounts, Devices: w.devices, Sessions: w.ports.Sessions,
		Lockouts: w.ports.Lockouts, Pending: w.ports.Pending, Transaction: db,
		Passwords: w.hasher, Cache: w.cache, Trail: audit.New(records.NewAuditLog(records.New()), w.clock, dice{}), Clock: w.clock, Entropy: dice{},
		Root: root,
	})
	if err != nil {
		t.Fatal(err)
	}
	hash, err := w.hasher.Hash(t.Context(), w.password(present))
	w.ok(err)
	w.ok(w.ports.Accounts.Create(t.Context(), auth.Account{ID: user, Email: anna, State: auth.AccountActive, PasswordHash: hash}))
	_, _, err = w.devices.Ensure(t.Context(), auth.Device{ID: "d", UserID: user, Identity: "d"})
	w.ok(err)
	return w
}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) password(s string) auth.Password {
	w.t.Helper()
	p, err := auth.NewPassword("password", s)
	w.ok(err)
	return p
}

// session makes a session of the person.
func (w *world) session(id auth.SessionID, level auth.TrustLevel) auth.Session {
	w.t.Helper()
	s := auth.Session{
		ID: id, UserID: user, DeviceID: "d", DeviceIdentity: "d", TrustLevel: level, CreatedAt: w.clock.now,
		ExpiresAt: w.clock.now.Add(time.Hour), MaxExpiresAt: w.clock.now.Add(time.Hour), IPAddress: netip.MustParseAddr("203.0.113.7"),
	}
	w.ok(w.ports.Sessions.Create(context.Background(), s))
	return s
}

func (w *world) account() auth.Account {
	w.t.Helper()
	a, err := w.ports.Accounts.Get(context.Background(), user)
	w.ok(err)
	return a
}

func (w *world) events(kind auth.EventType) []auth.Event {
	w.t.Helper()
	events, _, err := w.log.Search(context.Background(), authstore.AuditQuery{Type: kind, Limit: 100})
	w.ok(err)
	return events
}

func (w *world) wantFault(what string, err error, kind fault.Kind, code fault.Code) {
	w.t.Helper()
	if f, ok := fault.As(err); !ok || f.Kind != kind || f.Code != code {
		w.t.Errorf("%s: %v, want a fault of kind %s and code %q", what, err, kind, code)
	}
}

// wait lets a login wait for its second factor.
func (w *world) wait() {
	w.t.Helper()
	w.ok(w.ports.Pending.Put(context.Background(), auth.PendingLogin{
		UserID: user, DeviceIdentity: "d", CreatedAt: w.clock.now, ExpiresAt: w.clock.now.Add(time.Hour),
	}))
}

func (w *world) wantNoneWaiting() {
	w.t.Helper()
	if _, err := w.ports.Pending.Find(context.Background(), user, "d"); !fault.Is(err, fault.NotFound) {
		w.t.Errorf("a login still waits: %v", err)
	}
}

func (w *world) enrol(caller auth.Session) (auth.TOTPSecret, []auth.OTP) {
	w.t.Helper()
	e, err := w.service.Enrol(context.Background(), caller)
	w.ok(err)
	if e.URI != e.Secret.URI("Tollgate", anna) {
		w.t.Errorf("URI %s", e.URI)
	}
	codes, err := w.service.Activate(context.Background(), caller, e.Secret.Code(auth.TOTPStep(w.clock.now)))
	w.ok(err)
	w.clock.now = w.clock.now.Add(time.Minute)
	return e.Secret, codes
}

// TestLevels wants every change of what a person signs in with to need FULL_TRUST, and to change nothing below it.
func TestLevels(t *testing.T) {
	w := newWorld(t)
	before := w.account()
	for level := auth.HighRisk; level <= auth.LimitedTrust; level++ {
		s := w.session(auth.SessionID(level.String()), level)
		w.wantRefused(s, fault.Forbidden, auth.CodeInsufficientTrust)
	}
	if after := w.account(); !reflect.DeepEqual(after, before) || len(w.events(auth.CredentialChange)) != 0 {
		t.Errorf("the account is %+v, was %+v; events %v", after, before, w.events(auth.CredentialChange))
	}
}

// wantRefused wants every change to be refused to a session.
func (w *world) wantRefused(s auth.Session, kind fault.Kind, code fault.Code) {
	w.t.Helper()
	ctx := context.Background()
	_, err := w.service.Enrol(ctx, s)
	w.wantFault("enrol", err, kind, code)
	_, err = w.service.Activate(ctx, s, "000000")
	if !fault.Is(err, fault.Conflict) { // there may be nothing to activate
		w.wantFault("activate", err, kind, code)
	}
	err = w.service.Disable(ctx, s, "000000")
	if !fault.Is(err, fault.Conflict) {
		w.wantFault("disable", err, kind, code)
	}
	w.wantFault("password", w.service.ChangePassword(ctx, s, w.password(present), w.password("Another-Horse-8")), kind, code)
}

// TestOutdatedCopies wants changes to go by the session as it is, not by the copy that the caller was checked with.
func TestOutdatedCopies(t *testing.T) {
	for name, c := range map[string]struct {
		alter func(*auth.Session)
		kind  fault.Kind
		code  fault.Code
	}{
		"ended":   {func(s *auth.Session) { s.EndedAt, s.EndReason = s.CreatedAt, auth.EndTerminated }, fault.Unauthenticated, auth.CodeInvalidToken},
		"lowered": {func(s *auth.Session) { s.TrustLevel = auth.LimitedTrust }, fault.Forbidden, auth.CodeInsufficientTrust},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			copied := w.session("s", auth.FullTrust)
			w.ok(w.ports.Sessions.Update(t.Context(), "s", func(s *auth.Session) error { c.alter(s); return nil }))
			before := w.account()
			w.wantRefused(copied, c.kind, c.code)
			if after := w.account(); !reflect.DeepEqual(after, before) {
				t.Errorf("the account is %+v, was %+v", after, before)
			}
		})
	}
}

// TestPendingAuthenticatorsEnd wants an authenticator to be activated by the session that enrolled it, within 10 minutes.
func TestPendingAuthenticatorsEnd(t *testing.T) {
	w := newWorld(t)
	one, other := w.session("one", auth.FullTrust), w.session("other", auth.FullTrust)
	e, err := w.service.Enrol(t.Context(), one)
	w.ok(err)
	code := func() auth.OTP { return e.Secret.Code(auth.TOTPStep(w.clock.now)) }
	_, err = w.service.Activate(t.Context(), other, code())
	w.wantFault("another session", err, fault.Conflict, "")
	_, err = w.people.ActivateMFA(t.Context(), anna, code())
	w.wantFault("an operator", err, fault.Conflict, "")
	w.clock.now = w.clock.now.Add(auth.EnrolmentTTL)
	_, err = w.service.Activate(t.Context(), one, code())
	w.wantFault("too late", err, fault.Conflict, "")

	secret, err := w.people.EnrolMFA(t.Context(), anna)
	w.ok(err)
	_, err = w.service.Activate(t.Context(), one, secret.Code(auth.TOTPStep(w.clock.now)))
	w.wantFault("what an operator enrolled", err, fault.Conflict, "")

	// An enrolment of a version that did not record it, such as one made at LIMITED_TRUST before an upgrade.
	w.ok(w.ports.Accounts.Update(t.Context(), user, func(a *auth.Account) error {
		a.MFA.Enrolment = auth.Enrolment{}
		return nil
	}))
	for _, s := range []auth.Session{one, other} {
		_, err = w.service.Activate(t.Context(), s, secret.Code(auth.TOTPStep(w.clock.now)))
		w.wantFault("not recorded", err, fault.Conflict, "")
	}
	_, err = w.people.ActivateMFA(t.Context(), anna, secret.Code(auth.TOTPStep(w.clock.now)))
	w.wantFault("not recorded, an operator", err, fault.Conflict, "")
	if w.account().MFA.Active {
		t.Error("it is active")
	}
	w.enrol(one) // replaces it
}

func TestAuthenticatorFromEnrolToDisable(t *testing.T) {
	w := newWorld(t)
	caller := w.session("s", auth.FullTrust)
	_, err := w.service.Activate(t.Context(), caller, "000000")
	w.wantFault("activate nothing", err, fault.Conflict, "")
	w.wantFault("disable nothing", w.service.Disable(t.Context(), caller, "000000"), fault.Conflict, "")

	first, err := w.service.Enrol(t.Context(), caller)
	w.ok(err)
	second, err := w.service.Enrol(t.Context(), caller)
	w.ok(err)
	if first.Secret == second.Secret {
		t.Error("enrolling again gives the same secret")
	}
	_, err = w.service.Activate(t.Context(), caller, first.Secret.Code(auth.TOTPStep(w.clock.now)))
	w.wantFault("a code of the replaced secret", err, fault.Unauthenticated, auth.CodeInvalidMFA)
	w.wait()
	_, codes := w.enrol(caller)
	w.wantNoneWaiting()
	if len(codes) != 10 || len(slices.Compact(slices.Sorted(slices.Values(codes)))) != 10 || !w.account().MFA.Active {
		t.Errorf("recovery codes %d, account %+v", len(codes), w.account().MFA)
	}
	_, err = w.service.Enrol(t.Context(), caller)
	w.wantFault("enrol while active", err, fault.Conflict, "")

	w.wantFault("wrong code", w.service.Disable(t.Context(), caller, "000000"), fault.Unauthenticated, auth.CodeInvalidMFA)
	w.wait()
	w.ok(w.service.Disable(t.Context(), caller, codes[3]))
	w.wantNoneWaiting()
	if got := w.account().MFA; got.Active || len(got.Secret) != 0 || len(got.Recovery) != 0 {
		t.Errorf("what stays is %+v", got)
	}
	secret, _ := w.enrol(caller)
	w.ok(w.service.Disable(t.Context(), caller, secret.Code(auth.TOTPStep(w.clock.now))))
	actions := map[any]int{}
	for _, e := range w.events(auth.CredentialChange) {
		actions[e.Details["action"]]++
	}
	if want := map[any]int{"mfa_enrol": 4, "mfa_activate": 2, "mfa_disable": 2}; !maps.Equal(actions, want) {
		t.Errorf("events %v, want %v", actions, want)
	}
}

func TestChangePassword(t *testing.T) {
	w := newWorld(t)
	caller, other := w.session("s", auth.FullTrust), w.session("other", auth.FullTrust)
	w.wait()
	w.wantFault("wrong", w.service.ChangePassword(t.Context(), caller, w.password("Wrong Horse 9!"), w.password("Another-Horse-8")),
		fault.Unauthenticated, auth.CodeInvalidCredentials)
	for _, bad := range []string{"short", "Password123!"} {
		err := w.service.ChangePassword(t.Context(), caller, w.password(present), w.password(bad))
		w.wantFault(bad, err, fault.Invalid, auth.CodeValidation)
		if f, _ := fault.As(err); !strings.Contains(f.Message, "newPassword") {
			t.Errorf("%s: %v does not name the field", bad, err)
		}
	}
	w.ok(w.service.ChangePassword(t.Context(), caller, w.password(present), w.password("Another-Horse-8")))
	w.wantNoneWaiting()
	match, _, err := w.hasher.Verify(t.Context(), w.account().PasswordHash, w.password("Another-Horse-8"))
	if err != nil || !match {
		t.Errorf("the new password does not match: %v", err)
	}
	living, _, err := w.ports.Sessions.Active(t.Context(), user, w.clock.now, auth.PageRequest{Limit: 10})
	if err != nil || len(living) != 1 || living[0].ID != caller.ID || !slices.Equal(w.cache.dropped, []auth.SessionID{other.ID}) {
		t.Errorf("living %+v, dropped %v, %v", living, w.cache.dropped, err)
	}
	if s, err := w.ports.Sessions.Get(t.Context(), other.ID); err != nil || s.EndReason != auth.EndPassword {
		t.Errorf("the other session %+v, %v", s, err)
	}
	if got := w.events(auth.CredentialChange); len(got) != 1 || got[0].Details["action"] != "password" || got[0].Details["trustLevel"] != "FULL_TRUST" {
		t.Errorf("events %+v", got)
	}
}

// TestGuessingIsBounded wants passwords and codes together, in parallel too, to be looked at as often as the threshold, in a count
// that an operator can lift.
func TestGuessingIsBounded(t *testing.T) {
	w := newWorld(t)
	caller := w.session("s", auth.FullTrust)
	secret, _ := w.enrol(caller)
	var mu sync.Mutex
	var all sync.WaitGroup
	codes := map[fault.Code]int{}
	for i := range 50 {
		all.Go(func() {
			var err error
			if i%2 == 0 {
				err = w.service.Disable(t.Context(), caller, "000000")
			} else {
				err = w.service.ChangePassword(t.Context(), caller, w.password("Wrong Horse 9!"), w.password("Another-Horse-8"))
			}
			f, ok := fault.As(err)
			mu.Lock()
			defer mu.Unlock()
			if ok {
				codes[f.Code]++
			}
		})
	}
	all.Wait()
	if codes[auth.CodeInvalidMFA]+codes[auth.CodeInvalidCredentials] != 5 || codes[auth.CodeAccountLocked] != 45 {
		t.Errorf("answers %v, want five evaluated", codes)
	}
	right := secret.Code(auth.TOTPStep(w.clock.now))
	w.wantFault("a right code while locked", w.service.Disable(t.Context(), caller, right), fault.Forbidden, auth.CodeAccountLocked)
	if n := len(w.events(auth.SuspiciousActivity)); n != 1 {
		t.Errorf("%d suspicious activities, want the lock", n)
	}
	w.ok(w.people.Unlock(t.Context(), anna))
	w.ok(w.service.Disable(t.Context(), caller, right))
}

// TestBusyHasherCountsNothing wants a failure of the service to be none of the person's.
func TestBusyHasherCountsNothing(t *testing.T) {
	w := newWorld(t)
	caller := w.session("s", auth.FullTrust)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 10 {
		if err := w.service.ChangePassword(ctx, caller, w.password(present), w.password("Another-Horse-8")); err == nil {
			t.Fatal("a cancelled change is made")
		}
	}
	for range 10 {
		w.wantFault("nothing to disable", w.service.Disable(t.Context(), caller, "000000"), fault.Conflict, "")
	}
	w.ok(w.service.ChangePassword(t.Context(), caller, w.password(present), w.password("Another-Horse-8")))
}

// TestOperator wants an operator to do what a person who lost the authenticator cannot.
func TestOperator(t *testing.T) {
	w := newWorld(t)
	nobody := auth.Email("nobody@example.com")
	_, err := w.people.EnrolMFA(t.Context(), nobody)
	w.wantFault("enrol nobody", err, fault.NotFound, auth.CodeNotFound)
	w.wantFault("disable nothing", w.people.DisableMFA(t.Context(), anna), fault.Conflict, "")
	secret, err := w.people.EnrolMFA(t.Context(), anna)
	w.ok(err)
	_, err = w.people.ActivateMFA(t.Context(), anna, "000000")
	w.wantFault("wrong code", err, fault.Unauthenticated, auth.CodeInvalidMFA)
	codes, err := w.people.ActivateMFA(t.Context(), anna, secret.Code(auth.TOTPStep(w.clock.now)))
	if err != nil || len(codes) != 10 {
		t.Fatalf("%d recovery codes, %v", len(codes), err)
	}
	_, err = w.people.EnrolMFA(t.Context(), anna)
	w.wantFault("enrol while active", err, fault.Conflict, "")
	w.wait()
	w.ok(w.people.DisableMFA(t.Context(), anna))
	w.wantNoneWaiting()
	if got := w.account().MFA; got.Active || len(got.Secret) != 0 || len(got.Recovery) != 0 {
		t.Errorf("what stays is %+v", got)
	}
}
