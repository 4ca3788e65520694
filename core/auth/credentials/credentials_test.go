package credentials_test

import (
	"cmp"
	"context"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/argon"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/credentials"
	"github.com/tollgate-dev/tollgate/core/auth/people"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/secrets/secretstest"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

const (
	user    auth.UserID = "11111111-2222-4333-8444-555555555555"
	anna    auth.Email  = "anna@example.com"
	present             = "Right Horse 9!"
)

var rootSecret = auth.RootSecret(strings.Repeat("r", 32))

type testCache struct{ dropped []auth.SessionID }

func (*testCache) Get(context.Context, auth.SessionID) (auth.Session, bool) {
	return auth.Session{}, false
}
func (*testCache) Put(context.Context, auth.Session, time.Time) {}
func (c *testCache) Drop(_ context.Context, ids ...auth.SessionID) {
	c.dropped = append(c.dropped, ids...)
}

type fixture struct {
	t       *testing.T
	service *credentials.Service
	people  *people.Service
	ports   credentials.Ports
	hasher  *argon.Hasher
	clock   *clocktest.Manual
	cache   *testCache
	log     *fakedb.AuditLog
	devices *fakedb.Devices
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	db := fakedb.New()
	fx := &fixture{
		t: t, clock: clocktest.NewManual(time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)),
		cache: &testCache{},
		log:   fakedb.NewAuditLog(db), devices: fakedb.NewDevices(db),
		ports: credentials.Ports{
			Accounts: fakedb.NewAccounts(db), Sessions: fakedb.NewSessions(db), Pending: fakedb.NewPendingLogins(db),
			Links: fakedb.NewLinks(db), Lockouts: fakedb.NewLockouts(db), Transaction: db,
		},
	}
	var err error
	if fx.hasher, err = argon.New(argon.Config{MemoryKiB: 64, Iterations: 1, Parallelism: 1, Queue: 64},
		&secretstest.Entropy{}); err != nil {
		t.Fatal(err)
	}
	fx.ports.Passwords, fx.ports.Cache, fx.ports.Trail = fx.hasher, fx.cache,
		auditing.New(fx.log, fx.clock, &secretstest.Entropy{})
	fx.ports.Clock, fx.ports.Entropy, fx.ports.Root = fx.clock, &secretstest.Entropy{}, rootSecret
	fx.service, err = credentials.New(credentials.Config{
		Lockout: auth.LockoutPolicy{Threshold: 5, Window: 15 * time.Minute, Duration: 15 * time.Minute},
		Issuer:  "Tollgate", ReauthenticationMaxAge: 5 * time.Minute,
	}, fx.ports)
	must.Succeed(t, err)
	fx.people, err = people.New(people.Config{InvitationTTL: time.Hour}, people.Ports{
		Accounts: fx.ports.Accounts, Devices: fx.devices, Sessions: fx.ports.Sessions,
		Lockouts: fx.ports.Lockouts, Pending: fx.ports.Pending, Transaction: db,
		Operators: fakedb.NewDirectory(db), Links: fakedb.NewLinks(db), Directory: fakedb.NewDirectory(db),
		Passwords: fx.hasher, Cache: fx.cache,
		Trail: auditing.New(fakedb.NewAuditLog(fakedb.New()), fx.clock, &secretstest.Entropy{}), Clock: fx.clock,
		Entropy: &secretstest.Entropy{},
		Root:    rootSecret,
	})
	must.Succeed(t, err)
	hash, err := fx.hasher.Hash(t.Context(), fx.newPassword(present))
	fx.mustSucceed(err)
	fx.mustSucceed(fx.ports.Accounts.Create(t.Context(), auth.Account{
		ID: user, Email: anna, State: auth.AccountActive, PasswordHash: hash,
	}))
	_, _, err = fx.devices.Ensure(t.Context(), auth.Device{ID: "d", UserID: user, Identity: "d"})
	fx.mustSucceed(err)
	return fx
}

func (fx *fixture) mustSucceed(err error) {
	fx.t.Helper()
	must.Succeed(fx.t, err)
}

func (fx *fixture) newPassword(s string) auth.Password {
	fx.t.Helper()
	p, err := auth.NewPassword("password", s)
	fx.mustSucceed(err)
	return p
}

// newSession stores a session of the person.
func (fx *fixture) newSession(id auth.SessionID, level auth.TrustLevel) auth.Session {
	fx.t.Helper()
	s := auth.Session{
		ID: id, UserID: user, DeviceID: "d", DeviceIdentity: "d", TrustLevel: level, CreatedAt: fx.clock.Now(),
		ExpiresAt: fx.clock.Now().Add(time.Hour), MaxExpiresAt: fx.clock.Now().Add(time.Hour),
		IPAddress: netip.MustParseAddr("203.0.113.7"),
	}
	fx.mustSucceed(fx.ports.Sessions.Create(context.Background(), s))
	return s
}

func (fx *fixture) getAccount() auth.Account {
	fx.t.Helper()
	a, err := fx.ports.Accounts.Get(context.Background(), user)
	fx.mustSucceed(err)
	return a
}

func (fx *fixture) findEvents(kind audit.Category) []audit.Event {
	fx.t.Helper()
	events, _, err := fx.log.Search(context.Background(), authstore.AuditQuery{Category: kind, Limit: 100})
	fx.mustSucceed(err)
	return events
}

func (fx *fixture) wantFault(what string, err error, kind fault.Kind, code fault.Code) {
	fx.t.Helper()
	if f, ok := fault.As(err); !ok || f.Kind != kind || f.Code != code {
		fx.t.Errorf("%s: %v, want a fault of kind %s and code %q", what, err, kind, code)
	}
}

// addPendingLogin stores a login that waits for its second factor.
func (fx *fixture) addPendingLogin() {
	fx.t.Helper()
	fx.mustSucceed(fx.ports.Pending.Put(context.Background(), auth.PendingLogin{
		UserID: user, DeviceIdentity: "d", CreatedAt: fx.clock.Now(), ExpiresAt: fx.clock.Now().Add(time.Hour),
	}))
}

func (fx *fixture) wantNoPendingLogin() {
	fx.t.Helper()
	if _, err := fx.ports.Pending.Find(context.Background(), user, "d"); !fault.Is(err, fault.NotFound) {
		fx.t.Errorf("a login still waits: %v", err)
	}
}

func (fx *fixture) mustEnrol(caller auth.Session) (auth.TOTPSecret, []auth.OTP) {
	fx.t.Helper()
	e, err := fx.service.Enrol(context.Background(), caller, auth.Password{})
	fx.mustSucceed(err)
	if e.URI != e.Secret.URI("Tollgate", anna) {
		fx.t.Errorf("URI %s", e.URI)
	}
	codes, err := fx.service.Activate(context.Background(), caller, e.Secret.Code(auth.TOTPStep(fx.clock.Now())))
	fx.mustSucceed(err)
	fx.clock.Advance(time.Minute)
	return e.Secret, codes
}

// TestLevels checks that every change of credentials requires FULL_TRUST and changes nothing below
// it.
func TestLevels(t *testing.T) {
	fx := newFixture(t)
	before := fx.getAccount()
	for level := auth.HighRisk; level <= auth.LimitedTrust; level++ {
		s := fx.newSession(auth.SessionID(level.String()), level)
		fx.wantRefused(s, fault.Forbidden, auth.CodeInsufficientTrust)
	}
	if after := fx.getAccount(); !reflect.DeepEqual(after, before) || len(fx.findEvents(audit.CredentialChange)) != 0 {
		t.Errorf("the account is %+v, was %+v; events %v", after, before, fx.findEvents(audit.CredentialChange))
	}
}

// wantRefused checks that every change is refused for a session.
func (fx *fixture) wantRefused(s auth.Session, kind fault.Kind, code fault.Code) {
	fx.t.Helper()
	ctx := context.Background()
	_, err := fx.service.Enrol(ctx, s, auth.Password{})
	fx.wantFault("enrol", err, kind, code)
	_, err = fx.service.Activate(ctx, s, "000000")
	if !fault.Is(err, fault.Conflict) { // there may be nothing to activate
		fx.wantFault("activate", err, kind, code)
	}
	err = fx.service.Disable(ctx, s, "000000")
	if !fault.Is(err, fault.Conflict) {
		fx.wantFault("disable", err, kind, code)
	}
	fx.wantFault("password",
		fx.service.ChangePassword(ctx, s, fx.newPassword(present), fx.newPassword("Another-Horse-8")), kind, code)
}

// TestOutdatedCopies checks that changes depend on the stored session and not on the cached copy of
// the caller.
func TestOutdatedCopies(t *testing.T) {
	for name, c := range map[string]struct {
		alter func(*auth.Session)
		kind  fault.Kind
		code  fault.Code
	}{
		"ended": {
			func(s *auth.Session) { s.EndedAt, s.EndReason = s.CreatedAt, auth.EndTerminated }, fault.Unauthenticated,
			auth.CodeInvalidToken,
		},
		"lowered": {
			func(s *auth.Session) { s.TrustLevel = auth.LimitedTrust }, fault.Forbidden, auth.CodeInsufficientTrust,
		},
	} {
		t.Run(name, func(t *testing.T) {
			fx := newFixture(t)
			copied := fx.newSession("s", auth.FullTrust)
			fx.mustSucceed(fx.ports.Sessions.Update(t.Context(), "s", func(s *auth.Session) error {
				c.alter(s)
				return nil
			}))
			before := fx.getAccount()
			fx.wantRefused(copied, c.kind, c.code)
			if after := fx.getAccount(); !reflect.DeepEqual(after, before) {
				t.Errorf("the account is %+v, was %+v", after, before)
			}
		})
	}
}

// TestPendingAuthenticatorsEnd checks that only the session that enrolled an authenticator can
// activate it, within 10 minutes.
func TestPendingAuthenticatorsEnd(t *testing.T) {
	fx := newFixture(t)
	one, other := fx.newSession("one", auth.FullTrust), fx.newSession("other", auth.FullTrust)
	e, err := fx.service.Enrol(t.Context(), one, auth.Password{})
	fx.mustSucceed(err)
	code := func() auth.OTP { return e.Secret.Code(auth.TOTPStep(fx.clock.Now())) }
	_, err = fx.service.Activate(t.Context(), other, code())
	fx.wantFault("another session", err, fault.Conflict, "")
	_, err = fx.people.ActivateMFA(t.Context(), anna, code())
	fx.wantFault("an operator", err, fault.Conflict, "")
	fx.clock.Advance(auth.EnrolmentTTL)
	_, err = fx.service.Activate(t.Context(), one, code())
	fx.wantFault("too late", err, fault.Conflict, "")

	secret, err := fx.people.EnrolMFA(t.Context(), anna)
	fx.mustSucceed(err)
	_, err = fx.service.Activate(t.Context(), one, secret.Code(auth.TOTPStep(fx.clock.Now())))
	fx.wantFault("what an operator enrolled", err, fault.Conflict, "")

	// An enrolment of a version that did not record it, for example one made at LIMITED_TRUST
	// before an upgrade.
	fx.mustSucceed(fx.ports.Accounts.Update(t.Context(), user, func(a *auth.Account) error {
		a.MFA.Enrolment = auth.Enrolment{}
		return nil
	}))
	for _, s := range []auth.Session{one, other} {
		_, err = fx.service.Activate(t.Context(), s, secret.Code(auth.TOTPStep(fx.clock.Now())))
		fx.wantFault("not recorded", err, fault.Conflict, "")
	}
	_, err = fx.people.ActivateMFA(t.Context(), anna, secret.Code(auth.TOTPStep(fx.clock.Now())))
	fx.wantFault("not recorded, an operator", err, fault.Conflict, "")
	if fx.getAccount().MFA.Active {
		t.Error("it is active")
	}
	fx.mustEnrol(fx.newSession("third", auth.FullTrust)) // replaces it
}

func TestAuthenticatorFromEnrolToDisable(t *testing.T) {
	fx := newFixture(t)
	caller := fx.newSession("s", auth.FullTrust)
	_, err := fx.service.Activate(t.Context(), caller, "000000")
	fx.wantFault("activate nothing", err, fault.Conflict, "")
	fx.wantFault("disable nothing", fx.service.Disable(t.Context(), caller, "000000"), fault.Conflict, "")

	first, err := fx.service.Enrol(t.Context(), caller, auth.Password{})
	fx.mustSucceed(err)
	second, err := fx.service.Enrol(t.Context(), caller, auth.Password{})
	fx.mustSucceed(err)
	if first.Secret == second.Secret {
		t.Error("enrolling again gives the same secret")
	}
	_, err = fx.service.Activate(t.Context(), caller, first.Secret.Code(auth.TOTPStep(fx.clock.Now())))
	fx.wantFault("a code of the replaced secret", err, fault.Unauthenticated, auth.CodeInvalidMFA)
	fx.addPendingLogin()
	_, codes := fx.mustEnrol(caller)
	fx.wantNoPendingLogin()
	if len(codes) != 10 || len(slices.Compact(slices.Sorted(slices.Values(codes)))) != 10 ||
		!fx.getAccount().MFA.Active {
		t.Errorf("recovery codes %d, account %+v", len(codes), fx.getAccount().MFA)
	}
	_, err = fx.service.Enrol(t.Context(), caller, auth.Password{})
	fx.wantFault("enrol while active", err, fault.Conflict, "")

	fx.wantFault("wrong code", fx.service.Disable(t.Context(), caller, "000000"), fault.Unauthenticated,
		auth.CodeInvalidMFA)
	fx.addPendingLogin()
	fx.mustSucceed(fx.service.Disable(t.Context(), caller, codes[3]))
	fx.wantNoPendingLogin()
	if got := fx.getAccount().MFA; got.Active || len(got.Secret) != 0 || len(got.Recovery) != 0 {
		t.Errorf("what stays is %+v", got)
	}
	secret, _ := fx.mustEnrol(caller)
	fx.mustSucceed(fx.service.Disable(t.Context(), caller, secret.Code(auth.TOTPStep(fx.clock.Now()))))
	actions := map[audit.Action]int{}
	for _, e := range fx.findEvents(audit.CredentialChange) {
		actions[e.Action()]++
	}
	if want := map[audit.Action]int{"mfa_enrol": 4, "mfa_activate": 2, "mfa_disable": 2}; !maps.Equal(actions, want) {
		t.Errorf("events %v, want %v", actions, want)
	}
}

// TestFurtherAuthenticators checks the acts on several authenticators: each needs a code, which counts
// once, and ends the other sessions if it changes an authenticator.
func TestFurtherAuthenticators(t *testing.T) {
	fx := newFixture(t)
	caller := fx.newSession("s", auth.FullTrust)
	_, err := fx.service.EnrolAnother(t.Context(), caller, "Tablet", "000000")
	fx.wantFault("without a first one", err, fault.Conflict, "")
	secret, _ := fx.mustEnrol(caller)
	code := func(s auth.TOTPSecret) auth.OTP {
		fx.clock.Advance(30 * time.Second)
		return s.Code(auth.TOTPStep(fx.clock.Now()))
	}
	other := fx.newSession("other", auth.FullTrust)
	ended := func() bool {
		s, err := fx.ports.Sessions.Get(t.Context(), other.ID)
		fx.mustSucceed(err)
		return !s.Active(fx.clock.Now())
	}
	_, err = fx.service.EnrolAnother(t.Context(), caller, " ", code(secret))
	fx.wantFault("no name", err, fault.Invalid, auth.CodeValidation)
	_, err = fx.service.EnrolAnother(t.Context(), caller, "Tablet", "000000")
	fx.wantFault("a wrong code", err, fault.Unauthenticated, auth.CodeInvalidMFA)
	_, err = fx.service.EnrolAnother(t.Context(), fx.newSession("low", auth.LimitedTrust), "Tablet", code(secret))
	fx.wantFault("little trust", err, fault.Forbidden, auth.CodeInsufficientTrust)
	second, err := fx.service.EnrolAnother(t.Context(), caller, "Tablet", code(secret))
	fx.mustSucceed(err)
	renewed, err := fx.service.RenewRecoveryCodes(t.Context(), caller, code(secret))
	fx.mustSucceed(err)
	if len(renewed) != auth.RecoveryCodes || ended() {
		t.Errorf("%d recovery codes, the other session is ended: %t", len(renewed), ended())
	}
	fx.wantFault("not activated", fx.service.Disable(t.Context(), caller, code(second.Secret)), fault.Unauthenticated,
		auth.CodeInvalidMFA)
	fx.mustSucceed(fx.service.ActivateAnother(t.Context(), caller, code(second.Secret)))
	if !ended() {
		t.Error("the other session has not ended")
	}
	apps := fx.getAccount().MFA
	first := apps.Authenticators()[0].ID()
	fx.wantFault("a wrong code", fx.service.RemoveAuthenticator(t.Context(), caller, first, "000000"),
		fault.Unauthenticated, auth.CodeInvalidMFA)
	fx.mustSucceed(fx.service.RemoveAuthenticator(t.Context(), caller, first, code(second.Secret)))
	fx.wantFault("of the removed one", fx.service.Disable(t.Context(), caller, code(secret)), fault.Unauthenticated,
		auth.CodeInvalidMFA)
	fx.mustSucceed(fx.service.Disable(t.Context(), caller, renewed[0]))
	if got := fx.getAccount().MFA; !reflect.DeepEqual(got, auth.MFA{}) {
		t.Errorf("what stays is %+v", got)
	}
	names := map[audit.Action]string{}
	for _, e := range fx.findEvents(audit.CredentialChange) {
		names[e.Action()] = cmp.Or(names[e.Action()], e.Details.Text("name"))
	}
	if want := map[audit.Action]string{
		"mfa_enrol": "Tablet", "mfa_activate": "", "mfa_add": "Tablet", "mfa_remove": "", "mfa_disable": "",
		"recovery_codes": "",
	}; !maps.Equal(names, want) {
		t.Errorf("events %v, want %v", names, want)
	}
}

func TestChangePassword(t *testing.T) {
	fx := newFixture(t)
	caller, other := fx.newSession("s", auth.FullTrust), fx.newSession("other", auth.FullTrust)
	fx.addPendingLogin()
	fx.wantFault("wrong",
		fx.service.ChangePassword(t.Context(), caller, fx.newPassword("Wrong Horse 9!"),
			fx.newPassword("Another-Horse-8")),
		fault.Unauthenticated, auth.CodeInvalidCredentials)
	for _, bad := range []string{"short", "Password123!"} {
		err := fx.service.ChangePassword(t.Context(), caller, fx.newPassword(present), fx.newPassword(bad))
		fx.wantFault(bad, err, fault.Invalid, auth.CodeValidation)
		if f, _ := fault.As(err); !strings.Contains(f.Message, "newPassword") {
			t.Errorf("%s: %v does not name the field", bad, err)
		}
	}
	fx.mustSucceed(fx.service.ChangePassword(t.Context(), caller, fx.newPassword(present),
		fx.newPassword("Another-Horse-8")))
	fx.wantNoPendingLogin()
	match, _, err := fx.hasher.Verify(t.Context(), fx.getAccount().PasswordHash, fx.newPassword("Another-Horse-8"))
	if err != nil || !match {
		t.Errorf("the new password does not match: %v", err)
	}
	living, _, err := fx.ports.Sessions.Active(t.Context(), user, fx.clock.Now(), auth.PageRequest{Limit: 10})
	if err != nil || len(living) != 1 || living[0].ID != caller.ID ||
		!slices.Equal(fx.cache.dropped, []auth.SessionID{other.ID}) {
		t.Errorf("living %+v, dropped %v, %v", living, fx.cache.dropped, err)
	}
	if s, err := fx.ports.Sessions.Get(t.Context(), other.ID); err != nil || s.EndReason != auth.EndPassword {
		t.Errorf("the other session %+v, %v", s, err)
	}
	if got := fx.findEvents(audit.CredentialChange); len(got) != 1 || got[0].Details.Text("action") != "password" ||
		got[0].Details.Text("trustLevel") != "FULL_TRUST" {
		t.Errorf("events %+v", got)
	}
}

// TestGuessingIsBounded checks that passwords and codes together are evaluated as often as the
// threshold, also in parallel, and that an operator can reset the count.
func TestGuessingIsBounded(t *testing.T) {
	fx := newFixture(t)
	caller := fx.newSession("s", auth.FullTrust)
	secret, _ := fx.mustEnrol(caller)
	var mu sync.Mutex
	var all sync.WaitGroup
	codes := map[fault.Code]int{}
	for i := range 50 {
		all.Go(func() {
			var err error
			if i%2 == 0 {
				err = fx.service.Disable(t.Context(), caller, "000000")
			} else {
				err = fx.service.ChangePassword(t.Context(), caller, fx.newPassword("Wrong Horse 9!"),
					fx.newPassword("Another-Horse-8"))
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
	right := secret.Code(auth.TOTPStep(fx.clock.Now()))
	fx.wantFault("a right code while locked", fx.service.Disable(t.Context(), caller, right), fault.Forbidden,
		auth.CodeAccountLocked)
	if n := len(fx.findEvents(audit.SuspiciousActivity)); n != 1 {
		t.Errorf("%d suspicious activities, want the lock", n)
	}
	fx.mustSucceed(fx.people.Unlock(t.Context(), anna))
	fx.mustSucceed(fx.service.Disable(t.Context(), caller, right))
}

// TestBusyHasherCountsNothing checks that a failure of the service is not counted for the person.
func TestBusyHasherCountsNothing(t *testing.T) {
	fx := newFixture(t)
	caller := fx.newSession("s", auth.FullTrust)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 10 {
		if err := fx.service.ChangePassword(ctx, caller, fx.newPassword(present),
			fx.newPassword("Another-Horse-8")); err == nil {
			t.Fatal("a cancelled change is made")
		}
	}
	for range 10 {
		fx.wantFault("nothing to disable", fx.service.Disable(t.Context(), caller, "000000"), fault.Conflict, "")
	}
	fx.mustSucceed(fx.service.ChangePassword(t.Context(), caller, fx.newPassword(present),
		fx.newPassword("Another-Horse-8")))
}

// TestOperator checks that an operator can remove the authenticator of a person who has lost it.
func TestOperator(t *testing.T) {
	fx := newFixture(t)
	nobody := auth.Email("nobody@example.com")
	_, err := fx.people.EnrolMFA(t.Context(), nobody)
	fx.wantFault("enrol nobody", err, fault.NotFound, auth.CodeNotFound)
	fx.wantFault("disable nothing", fx.people.DisableMFA(t.Context(), anna), fault.Conflict, "")
	secret, err := fx.people.EnrolMFA(t.Context(), anna)
	fx.mustSucceed(err)
	_, err = fx.people.ActivateMFA(t.Context(), anna, "000000")
	fx.wantFault("wrong code", err, fault.Unauthenticated, auth.CodeInvalidMFA)
	codes, err := fx.people.ActivateMFA(t.Context(), anna, secret.Code(auth.TOTPStep(fx.clock.Now())))
	if err != nil || len(codes) != 10 {
		t.Fatalf("%d recovery codes, %v", len(codes), err)
	}
	_, err = fx.people.EnrolMFA(t.Context(), anna)
	fx.wantFault("enrol while active", err, fault.Conflict, "")
	fx.addPendingLogin()
	fx.mustSucceed(fx.people.DisableMFA(t.Context(), anna))
	fx.wantNoPendingLogin()
	if got := fx.getAccount().MFA; got.Active || len(got.Secret) != 0 || len(got.Recovery) != 0 {
		t.Errorf("what stays is %+v", got)
	}
}

// TestReauthentication enrols with a password or code of each age. Only a recent one counts, or the
// present password in the request.
func TestReauthentication(t *testing.T) {
	fx, ctx := newFixture(t), context.Background()
	caller := fx.newSession("s", auth.FullTrust)
	enrol := func(present auth.Password) error {
		_, err := fx.service.Enrol(ctx, caller, present)
		return err
	}
	fx.clock.Advance(5 * time.Minute)
	fx.mustSucceed(enrol(auth.Password{}))
	fx.clock.Advance(time.Second)
	f, ok := fault.As(enrol(auth.Password{}))
	challenge := f.Details.Text("challenge")
	if !ok || f.Kind != fault.Forbidden || f.Code != auth.CodeInsufficientTrust || f.Details.Int("maxAge") != 300 ||
		!strings.Contains(challenge, `max_age="300"`) || !strings.Contains(challenge, `acr_values="FULL_TRUST"`) {
		t.Errorf("after more than five minutes: %v, %v", f, f.Details)
	}
	fx.wantFault("a wrong password", enrol(fx.newPassword("Wrong-Horse-7")), fault.Unauthenticated,
		auth.CodeInvalidCredentials)
	fx.mustSucceed(enrol(fx.newPassword(present)))
	fx.clock.Advance(5 * time.Minute)
	fx.mustSucceed(enrol(auth.Password{})) // the password of before still counts
	fx.clock.Advance(time.Minute)
	fx.wantFault("six minutes later", enrol(auth.Password{}), fault.Forbidden, auth.CodeInsufficientTrust)

	ahead := fx.clock.Now().Add(time.Hour) // written by an instance whose clock was ahead
	fx.mustSucceed(fx.ports.Sessions.Update(ctx, "s", func(s *auth.Session) error {
		s.ReauthenticatedAt = ahead
		return nil
	}))
	fx.wantFault("a code of the future", enrol(auth.Password{}), fault.Forbidden, auth.CodeInsufficientTrust)
	fx.mustSucceed(fx.service.ChangePassword(ctx, caller, fx.newPassword(present), fx.newPassword("Another-Horse-8")))
	fx.mustSucceed(enrol(auth.Password{}))
	for range 5 {
		fx.wantFault("guesses", enrol(fx.newPassword("Wrong-Horse-7")), fault.Unauthenticated,
			auth.CodeInvalidCredentials)
	}
	fx.wantFault("a sixth guess", enrol(fx.newPassword("Another-Horse-8")), fault.Forbidden, auth.CodeAccountLocked)
}

// TestChangedFactorEndsOtherSessions activates and disables an authenticator: the other sessions of
// the person end, and their copies are dropped.
func TestChangedFactorEndsOtherSessions(t *testing.T) {
	fx, ctx := newFixture(t), context.Background()
	caller := fx.newSession("s", auth.FullTrust)
	wantOnly := func(other auth.SessionID) {
		t.Helper()
		for id, reason := range map[auth.SessionID]auth.EndReason{"s": "", other: auth.EndSecondFactor} {
			s, err := fx.ports.Sessions.Get(ctx, id)
			if err != nil || s.EndReason != reason {
				t.Errorf("session %s ended by %q, want %q; error %v", id, s.EndReason, reason, err)
			}
		}
	}
	fx.newSession("before", auth.Unverified)
	secret, _ := fx.mustEnrol(caller)
	wantOnly("before")
	fx.newSession("after", auth.FullTrust)
	fx.mustSucceed(fx.service.Disable(ctx, caller, secret.Code(auth.TOTPStep(fx.clock.Now()))))
	wantOnly("after")
}
