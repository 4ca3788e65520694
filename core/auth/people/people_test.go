package people_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/argon"
	"github.com/tollgate-dev/tollgate/adapters/inprocess"
	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/people"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/secrets/secretstest"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

type fixture struct {
	t       *testing.T
	service *people.Service
	ports   people.Ports
	log     *fakedb.AuditLog
	cache   *memory.Sessions
	clock   *clocktest.Manual
	hasher  *argon.Hasher
	grants  authority.Granter
}

var rootSecret = auth.RootSecret(strings.Repeat("r", 32))

func newFixture(t *testing.T) *fixture {
	t.Helper()
	hasher, err := argon.New(argon.Config{MemoryKiB: 64, Iterations: 1, Parallelism: 1, Queue: 8},
		&secretstest.Entropy{})
	must.Succeed(t, err)
	db := fakedb.New()
	fx := &fixture{
		t: t, hasher: hasher, clock: clocktest.NewManual(time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)),
		ports: people.Ports{
			Accounts: fakedb.NewAccounts(db), Devices: fakedb.NewDevices(db), Sessions: fakedb.NewSessions(db),
			Lockouts: fakedb.NewLockouts(db), Pending: fakedb.NewPendingLogins(db), Transaction: db,
			Operators: fakedb.NewDirectory(db), Links: fakedb.NewLinks(db), Directory: fakedb.NewDirectory(db),
		},
	}
	fx.log, fx.cache = fakedb.NewAuditLog(db), memory.NewSessions(fx.clock, memory.Config{MaxSessions: 10})
	fx.ports.Passwords, fx.ports.Cache, fx.ports.Trail = hasher, fx.cache,
		auditing.New(fx.log, fx.clock, &secretstest.Entropy{})
	fx.ports.Clock, fx.ports.Entropy, fx.ports.Root = fx.clock, &secretstest.Entropy{}, rootSecret
	fx.grants = inprocess.NewGranter(delegating.NewGrantOperator(delegating.GrantPorts{
		Transactions: db, Grants: fakedb.NewGrants(db), Operators: fakedb.NewDirectory(db), Recorder: fx.ports.Trail,
	}))
	fx.ports.Grants = fx.grants
	fx.startService()
	return fx
}

// startService creates the service again, with the present ports.
func (fx *fixture) startService() {
	fx.t.Helper()
	var err error
	fx.service, err = people.New(people.Config{
		InvitationTTL: time.Hour, Console: "https://tools.example.com/console/", Product: "Tools",
	}, fx.ports)
	must.Succeed(fx.t, err)
}

func (fx *fixture) newPassword(s string) auth.Password {
	fx.t.Helper()
	p, err := auth.NewPassword("password", s)
	must.Succeed(fx.t, err)
	return p
}

func (fx *fixture) newAnna() people.Person {
	return people.Person{
		Email: "anna@example.com", Name: " Anna ", Password: fx.newPassword("Right Horse 9!"), Phone: "+4930123456",
	}
}

// addAnna creates Anna with a session.
func (fx *fixture) addAnna() auth.Account {
	fx.t.Helper()
	ctx := context.Background()
	a, err := fx.service.Add(ctx, fx.newAnna())
	must.Succeed(fx.t, err)
	if _, _, err := fx.ports.Devices.Ensure(ctx, auth.Device{ID: "d", UserID: a.ID, Identity: "d"}); err != nil {
		fx.t.Fatal(err)
	}
	err = fx.ports.Sessions.Create(ctx, auth.Session{
		ID: "s", UserID: a.ID, DeviceID: "d", ExpiresAt: fx.clock.Now().Add(time.Hour),
		MaxExpiresAt: fx.clock.Now().Add(time.Hour),
	})
	must.Succeed(fx.t, err)
	return a
}

func (fx *fixture) accountState() auth.AccountState {
	fx.t.Helper()
	a, err := fx.service.ByEmail(context.Background(), "anna@example.com")
	must.Succeed(fx.t, err)
	return a.State
}

func (fx *fixture) sessionEndReason() auth.EndReason {
	fx.t.Helper()
	s, err := fx.ports.Sessions.Get(context.Background(), "s")
	must.Succeed(fx.t, err)
	return s.EndReason
}

func TestAdd(t *testing.T) {
	fx, ctx := newFixture(t), context.Background()
	a, err := fx.service.Add(ctx, fx.newAnna())
	if err != nil || a.Name != "Anna" || a.State != auth.AccountActive || a.Phone != "+4930123456" {
		t.Fatalf("account %+v, error %v", a, err)
	}
	match, _, err := fx.hasher.Verify(ctx, a.PasswordHash, fx.newPassword("Right Horse 9!"))
	if err != nil || !match {
		t.Errorf("match %v, error %v", match, err)
	}
	if _, err := fx.service.Add(ctx, fx.newAnna()); !fault.Is(err, fault.Conflict) {
		t.Errorf("the same address: %v, want fault.Conflict", err)
	}
}

func TestAddRefuses(t *testing.T) {
	fx := newFixture(t)
	for name, c := range map[string]struct {
		field string
		spoil func(*people.Person)
	}{
		"no name":          {"name", func(p *people.Person) { p.Name = " " }},
		"long name":        {"name", func(p *people.Person) { p.Name = strings.Repeat("x", 201) }},
		"control in name":  {"name", func(p *people.Person) { p.Name = "a\nb" }},
		"national number":  {"phone", func(p *people.Person) { p.Phone = "030123456" }},
		"words for number": {"phone", func(p *people.Person) { p.Phone = "+49 30" }},
		"weak password":    {"password", func(p *people.Person) { p.Password = fx.newPassword("weak") }},
		"common password":  {"password", func(p *people.Person) { p.Password = fx.newPassword("P@ssw0rd") }},
		"common, cased":    {"password", func(p *people.Person) { p.Password = fx.newPassword("pASSWORD123!") }},
	} {
		t.Run(name, func(t *testing.T) {
			p := fx.newAnna()
			c.spoil(&p)
			_, err := fx.service.Add(context.Background(), p)
			f, ok := fault.As(err)
			if !ok || f.Kind != fault.Invalid || f.Code != auth.CodeValidation {
				t.Fatalf("error %v, want validation_error", err)
			}
			if fields := f.Details.Inner("fields"); fields.Text(c.field) == "" {
				t.Errorf("details %v, want field %s", f.Details, c.field)
			}
			if _, err := fx.service.ByEmail(context.Background(), p.Email); !fault.Is(err, fault.NotFound) {
				t.Errorf("the account was made: %v", err)
			}
		})
	}
}

// TestContextWords checks passwords that somebody who knows the person guesses first.
func TestContextWords(t *testing.T) {
	rules := people.NewPasswordRules()
	for password, origin := range map[string]string{
		"Ann@example.com1": "e-mail", "Example.com-1234": "e-mail", "Ann.Marie-1815!": "e-mail",
		"Tollgate-1234":      "service",
		"TOLLGATE!tollgate1": "service", "Lovelace-1815!": "name", "Ångström-99!": "name",
		"Ann-Lovelace-Example-1": "e-mail",
		"Annual-Report-2031!":    "", "Correct-Horse-7-Battery": "", "My-Tollgate-Secret-9-Horses": "",
		"ann Has 3 Green Parrots!": "", "Com-fortable-9!": "",
	} {
		err := rules.Check("newPassword", mustPassword(t, password), "ann.marie@example.com", "Ann Lovelace Ångström")
		if (err == nil) != (origin == "") {
			t.Errorf("%s: %v", password, err)
		}
		if f, ok := fault.As(err); origin != "" && ok {
			if fields := f.Details.Inner("fields"); f.Code != auth.CodeValidation ||
				!strings.Contains(fields.Text("newPassword"), origin) {
				t.Errorf("%s: %v, %v; want %q", password, f, f.Details, origin)
			}
		}
	}
}

func mustPassword(t *testing.T, s string) auth.Password {
	t.Helper()
	p, err := auth.NewPassword("newPassword", s)
	must.Succeed(t, err)
	return p
}

func TestLockLeavesSessionsAndDisableEndsThem(t *testing.T) {
	fx, ctx := newFixture(t), context.Background()
	fx.addAnna()
	const email = "anna@example.com"
	if err := fx.service.Lock(ctx, email); err != nil || fx.accountState() != auth.AccountLocked ||
		fx.sessionEndReason() != "" {
		t.Errorf("lock: %v, state %s, session ended by %q", err, fx.accountState(), fx.sessionEndReason())
	}
	if err := fx.service.Enable(ctx, email); !fault.Is(err, fault.Conflict) {
		t.Errorf("enable a locked one: %v, want fault.Conflict", err)
	}
	if err := fx.service.Unlock(ctx, email); err != nil || fx.accountState() != auth.AccountActive {
		t.Errorf("unlock: %v, state %s", err, fx.accountState())
	}
	if err := fx.service.Disable(ctx, email); err != nil || fx.accountState() != auth.AccountDisabled ||
		fx.sessionEndReason() != auth.EndDisabled {
		t.Errorf("disable: %v, state %s, session ended by %q", err, fx.accountState(), fx.sessionEndReason())
	}
	for name, change := range map[string]func(context.Context, auth.Email) error{
		"lock": fx.service.Lock, "unlock": fx.service.Unlock,
	} {
		if err := change(ctx, email); !fault.Is(err, fault.Conflict) {
			t.Errorf("%s a disabled one: %v, want fault.Conflict", name, err)
		}
	}
	if err := fx.service.Enable(ctx, email); err != nil || fx.accountState() != auth.AccountActive {
		t.Errorf("enable: %v, state %s", err, fx.accountState())
	}
	if err := fx.service.Lock(ctx, "nobody@example.com"); !fault.Is(err, fault.NotFound) {
		t.Errorf("lock nobody: %v, want fault.NotFound", err)
	}
}

func TestUnlockLiftsLocksOfFailures(t *testing.T) {
	fx, ctx := newFixture(t), context.Background()
	fx.addAnna()
	key, err := rootSecret.Derive(auth.LockoutPurpose)
	must.Succeed(t, err)
	keys := []auth.LockoutKey{auth.EmailLockout(key, "anna@example.com"), auth.DeviceLockout("d")}
	for _, k := range keys {
		err := fx.ports.Lockouts.Update(ctx, k, func(l *auth.Lockout) error {
			l.Fail(auth.LockoutPolicy{Threshold: 1, Window: time.Hour, Duration: time.Hour}, fx.clock.Now())
			return nil
		})
		must.Succeed(t, err)
	}
	must.Succeed(t, fx.service.Unlock(ctx, "anna@example.com"))
	for _, k := range keys {
		if l, err := fx.ports.Lockouts.Get(ctx, k); err != nil || l.Locked(fx.clock.Now()) || len(l.Failures) != 0 {
			t.Errorf("lockout %+v, error %v", l, err)
		}
	}
}

func TestSetPasswordAndPhone(t *testing.T) {
	fx, ctx := newFixture(t), context.Background()
	waiting := auth.PendingLogin{UserID: fx.addAnna().ID, DeviceIdentity: "device", ExpiresAt: fx.clock.Now().Add(time.Hour)}
	must.Succeed(t, fx.ports.Pending.Put(ctx, waiting))
	if err := fx.service.SetPassword(ctx, "anna@example.com", fx.newPassword("weak")); !fault.Is(err, fault.Invalid) {
		t.Errorf("a weak password: %v", err)
	}
	must.Succeed(t, fx.service.SetPassword(ctx, "anna@example.com", fx.newPassword("Left Horse 8!")))
	a, err := fx.service.ByEmail(ctx, "anna@example.com")
	must.Succeed(t, err)
	if match, _, err := fx.hasher.Verify(ctx, a.PasswordHash, fx.newPassword("Left Horse 8!")); !match || err != nil {
		t.Errorf("match %v, error %v", match, err)
	}
	if fx.sessionEndReason() != auth.EndPassword {
		t.Errorf("session ended by %q", fx.sessionEndReason())
	}
	if _, err := fx.ports.Pending.Find(ctx, waiting.UserID, waiting.DeviceIdentity); !fault.Is(err, fault.NotFound) {
		t.Errorf("a login with the old password waits for its second factor: %v", err)
	}
	for phone, ok := range map[string]bool{"": true, "+15551234567": true, "5551234567": false, "+0123456789": false} {
		err := fx.service.SetProfile(ctx, "anna@example.com", people.Profile{Phone: &phone, Sure: true})
		a, _ := fx.service.ByEmail(ctx, "anna@example.com")
		if ok != (err == nil) || ok && a.Phone != phone || a.PhonePending { // an operator at the shell is believed
			t.Errorf("%q: %v", phone, err)
		}
	}
}

// TestChangesAreRecorded checks that each change writes one event, a refused change writes no
// event, and ended sessions are not cached.
func TestChangesAreRecorded(t *testing.T) {
	const email = "anna@example.com"
	fx, ctx := newFixture(t), context.Background()
	user := fx.addAnna().ID
	if found, _, err := fx.log.Search(ctx, authstore.AuditQuery{Limit: 2}); err != nil || len(found) != 1 ||
		found[0].Category != audit.AccountChange || found[0].Subject != "" ||
		found[0].Details.Text("userId") != string(user) || found[0].Details.Text("action") != "add" ||
		found[0].Details.Text("actor") != "operator" {
		t.Errorf("add: events %+v, error %v", found, err)
	}
	if _, err := fx.service.Add(ctx, fx.newAnna()); !fault.Is(err, fault.Conflict) {
		t.Errorf("add again: %v", err)
	}
	if _, total, err := fx.log.Search(ctx, authstore.AuditQuery{Limit: 1}); err != nil || total != 1 {
		t.Errorf("add again: %d events, error %v", total, err)
	}
	for _, c := range []struct {
		action string
		event  audit.Category
		do     func() error
	}{
		{"lock", audit.AccountChange, func() error { return fx.service.Lock(ctx, email) }},
		{"unlock", audit.AccountChange, func() error { return fx.service.Unlock(ctx, email) }},
		{"phone", audit.AccountChange, func() error { return fx.service.SetProfile(ctx, email, people.Profile{Phone: new(string)}) }},
		{"mfa_enrol", audit.CredentialChange, func() error { _, err := fx.service.EnrolMFA(ctx, email); return err }},
		{"mfa_disable", audit.CredentialChange, func() error { return fx.service.DisableMFA(ctx, email) }},
		{"disable", audit.AccountChange, func() error { return fx.service.Disable(ctx, email) }},
		{"enable", audit.AccountChange, func() error { return fx.service.Enable(ctx, email) }},
		{
			"password", audit.CredentialChange, func() error {
				return fx.service.SetPassword(ctx, email, fx.newPassword("Left Horse 8!"))
			},
		},
	} {
		living, err := fx.ports.Sessions.Get(ctx, "s")
		must.Succeed(t, err)
		fx.cache.Put(ctx, living, fx.clock.Now())
		fx.clock.Advance(time.Millisecond)
		if err := c.do(); err != nil {
			t.Fatalf("%s: %v", c.action, err)
		}
		found, _, err := fx.log.Search(ctx, authstore.AuditQuery{Limit: 1})
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: events %v, error %v", c.action, found, err)
		}
		e := found[0]
		if e.Category != c.event || e.Subject != audit.Subject(user) || !e.Success ||
			e.Details.Text("action") != c.action || e.Details.Text("actor") != "operator" {
			t.Errorf("%s: event %+v", c.action, e)
		}
		_, ends := e.Details["sessionsInvalidated"]
		if _, kept := fx.cache.Get(ctx, "s"); ends && living.EndedAt.IsZero() && kept {
			t.Errorf("%s: the copy of the session is kept", c.action)
		}
	}
	_, before, err := fx.log.Search(ctx, authstore.AuditQuery{Limit: 1})
	must.Succeed(t, err)
	if err := fx.service.DisableMFA(ctx, email); !fault.Is(err, fault.Conflict) {
		t.Errorf("disable-mfa without one: %v", err)
	}
	if _, after, err := fx.log.Search(ctx, authstore.AuditQuery{Limit: 1}); err != nil || after != before {
		t.Errorf("a refused change left an event: %d, then %d (%v)", before, after, err)
	}
}
