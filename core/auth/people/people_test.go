package people_test

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/argon"
	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/adapters/memory/records"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/audit"
	"github.com/tollgate-dev/tollgate/core/auth/people"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
)

type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

type dice struct{}

func (dice) Fill(p []byte) { _, _ = rand.Read(p) } // never fails

type world struct {
	t       *testing.T
	service *people.Service
	ports   people.Ports
	log     *records.AuditLog
	cache   *memory.Sessions
	clock   *clock
	hasher  *argon.Hasher
}

var root = auth.RootSecret(strings.Repeat("r", 32))

func newWorld(t *testing.T) *world {
	t.Helper()
	hasher, err := argon.New(argon.Config{MemoryKiB: 64, Iterations: 1, Parallelism: 1, Queue: 8}, dice{})
	if err != nil {
		t.Fatal(err)
	}
	db := records.New()
	w := &world{
		t: t, hasher: hasher, clock: &clock{time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)},
		ports: people.Ports{
			Accounts: records.NewAccounts(db), Devices: records.NewDevices(db), Sessions: records.NewSessions(db),
			Lockouts: records.NewLockouts(db), Pending: records.NewPendingLogins(db), Transaction: db,
		},
	}
	w.log, w.cache = records.NewAuditLog(db), memory.NewSessions(w.clock, memory.Config{MaxSessions: 10})
	w.ports.Passwords, w.ports.Cache, w.ports.Trail = hasher, w.cache, audit.New(w.log, w.clock, dice{})
	w.ports.Clock, w.ports.Entropy, w.ports.Root = w.clock, dice{}, root
	w.service, err = people.New(w.ports)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) password(s string) auth.Password {
	w.t.Helper()
	p, err := auth.NewPassword("password", s)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

func (w *world) anna() people.Person {
	return people.Person{Email: "anna@example.com", Name: " Anna ", Password: w.password("Right Horse 9!"), Phone: "+4930123456"}
}

// add makes Anna with a session.
func (w *world) add() auth.Account {
	w.t.Helper()
	ctx := context.Background()
	a, err := w.service.Add(ctx, w.anna())
	if err != nil {
		w.t.Fatal(err)
	}
	if _, _, err := w.ports.Devices.Ensure(ctx, auth.Device{ID: "d", UserID: a.ID, Identity: "d"}); err != nil {
		w.t.Fatal(err)
	}
	err = w.ports.Sessions.Create(ctx, auth.Session{
		ID: "s", UserID: a.ID, DeviceID: "d", ExpiresAt: w.clock.now.Add(time.Hour), MaxExpiresAt: w.clock.now.Add(time.Hour),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

func (w *world) state() auth.AccountState {
	w.t.Helper()
	a, err := w.service.ByEmail(context.Background(), "anna@example.com")
	if err != nil {
		w.t.Fatal(err)
	}
	return a.State
}

func (w *world) endReason() auth.EndReason {
	w.t.Helper()
	s, err := w.ports.Sessions.Get(context.Background(), "s")
	if err != nil {
		w.t.Fatal(err)
	}
	return s.EndReason
}

func TestAdd(t *testing.T) {
	w, ctx := newWorld(t), context.Background()
	a, err := w.service.Add(ctx, w.anna())
	if err != nil || a.Name != "Anna" || a.State != auth.AccountActive || a.Phone != "+4930123456" {
		t.Fatalf("account %+v, error %v", a, err)
	}
	match, _, err := w.hasher.Verify(ctx, a.PasswordHash, w.password("Right Horse 9!"))
	if err != nil || !match {
		t.Errorf("match %v, error %v", match, err)
	}
	if _, err := w.service.Add(ctx, w.anna()); !fault.Is(err, fault.Conflict) {
		t.Errorf("the same address: %v, want fault.Conflict", err)
	}
}

func TestAddRefuses(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		field string
		spoil func(*people.Person)
	}{
		"no name":          {"name", func(p *people.Person) { p.Name = " " }},
		"long name":        {"name", func(p *people.Person) { p.Name = strings.Repeat("x", 201) }},
		"control in name":  {"name", func(p *people.Person) { p.Name = "a\nb" }},
		"national number":  {"phone", func(p *people.Person) { p.Phone = "030123456" }},
		"words for number": {"phone", func(p *people.Person) { p.Phone = "+49 30" }},
		"weak password":    {"password", func(p *people.Person) { p.Password = w.password("weak") }},
		"common password":  {"password", func(p *people.Person) { p.Password = w.password("P@ssw0rd") }},
		"common, cased":    {"password", func(p *people.Person) { p.Password = w.password("pASSWORD123!") }},
	} {
		t.Run(name, func(t *testing.T) {
			p := w.anna()
			c.spoil(&p)
			_, err := w.service.Add(context.Background(), p)
			f, ok := fault.As(err)
			if !ok || f.Kind != fault.Invalid || f.Code != auth.CodeValidation {
				t.Fatalf("error %v, want validation_error", err)
			}
			if fields, _ := f.Details["fields"].(map[string]string); fields[c.field] == "" {
				t.Errorf("details %v, want field %s", f.Details, c.field)
			}
			if _, err := w.service.ByEmail(context.Background(), p.Email); !fault.Is(err, fault.NotFound) {
				t.Errorf("the account was made: %v", err)
			}
		})
	}
}

func TestLockLeavesSessionsAndDisableEndsThem(t *testing.T) {
	w, ctx := newWorld(t), context.Background()
	w.add()
	const email = "anna@example.com"
	if err := w.service.Lock(ctx, email); err != nil || w.state() != auth.AccountLocked || w.endReason() != "" {
		t.Errorf("lock: %v, state %s, session ended by %q", err, w.state(), w.endReason())
	}
	if err := w.service.Enable(ctx, email); !fault.Is(err, fault.Conflict) {
		t.Errorf("enable a locked one: %v, want fault.Conflict", err)
	}
	if err := w.service.Unlock(ctx, email); err != nil || w.state() != auth.AccountActive {
		t.Errorf("unlock: %v, state %s", err, w.state())
	}
	if err := w.service.Disable(ctx, email); err != nil || w.state() != auth.AccountDisabled || w.endReason() != auth.EndDisabled {
		t.Errorf("disable: %v, state %s, session ended by %q", err, w.state(), w.endReason())
	}
	for name, change := range map[string]func(context.Context, auth.Email) error{"lock": w.service.Lock, "unlock": w.service.Unlock} {
		if err := change(ctx, email); !fault.Is(err, fault.Conflict) {
			t.Errorf("%s a disabled one: %v, want fault.Conflict", name, err)
		}
	}
	if err := w.service.Enable(ctx, email); err != nil || w.state() != auth.AccountActive {
		t.Errorf("enable: %v, state %s", err, w.state())
	}
	if err := w.service.Lock(ctx, "nobody@example.com"); !fault.Is(err, fault.NotFound) {
		t.Errorf("lock nobody: %v, want fault.NotFound", err)
	}
}

func TestUnlockLiftsLocksOfFailures(t *testing.T) {
	w, ctx := newWorld(t), context.Background()
	w.add()
	key, err := root.Derive(auth.LockoutPurpose)
	if err != nil {
		t.Fatal(err)
	}
	keys := []auth.LockoutKey{auth.EmailLockout(key, "anna@example.com"), auth.DeviceLockout("d")}
	for _, k := range keys {
		err := w.ports.Lockouts.Update(ctx, k, func(l *auth.Lockout) error {
			l.Fail(auth.LockoutPolicy{Threshold: 1, Window: time.Hour, Duration: time.Hour}, w.clock.now)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.service.Unlock(ctx, "anna@example.com"); err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		if l, err := w.ports.Lockouts.Get(ctx, k); err != nil || l.Locked(w.clock.now) || len(l.Failures) != 0 {
			t.Errorf("lockout %+v, error %v", l, err)
		}
	}
}

func TestSetPasswordAndPhone(t *testing.T) {
	w, ctx := newWorld(t), context.Background()
	w.add()
	if err := w.service.SetPassword(ctx, "anna@example.com", w.password("weak")); !fault.Is(err, fault.Invalid) {
		t.Errorf("a weak password: %v", err)
	}
	if err := w.service.SetPassword(ctx, "anna@example.com", w.password("Left Horse 8!")); err != nil {
		t.Fatal(err)
	}
	a, err := w.service.ByEmail(ctx, "anna@example.com")
	if err != nil {
		t.Fatal(err)
	}
	if match, _, err := w.hasher.Verify(ctx, a.PasswordHash, w.password("Left Horse 8!")); !match || err != nil {
		t.Errorf("match %v, error %v", match, err)
	}
	if w.endReason() != auth.EndPassword {
		t.Errorf("session ended by %q", w.endReason())
	}
	for phone, ok := range map[string]bool{"": true, "+15551234567": true, "5551234567": false, "+0123456789": false} {
		if err := w.service.SetPhone(ctx, "anna@example.com", phone); ok != (err == nil) {
			t.Errorf("%q: %v", phone, err)
		}
	}
}

// TestWhatAnOperatorDoesIsRecorded wants one event of each change, none of one
// that was refused, and no copies of sessions that ended.
func TestWhatAnOperatorDoesIsRecorded(t *testing.T) {
	const email = "anna@example.com"
	w, ctx := newWorld(t), context.Background()
	user := w.add().ID
	if found, _, err := w.log.Search(ctx, authstore.AuditQuery{Limit: 2}); err != nil || len(found) != 1 ||
		found[0].Type != auth.AccountChange || found[0].UserID != "" || found[0].Details["userId"] != string(user) || found[0].Details["action"] != "add" || found[0].Details["actor"] != "operator" {
		t.Errorf("add: events %+v, error %v", found, err)
	}
	if _, err := w.service.Add(ctx, w.anna()); !fault.Is(err, fault.Conflict) {
		t.Errorf("add again: %v", err)
	}
	if _, total, err := w.log.Search(ctx, authstore.AuditQuery{Limit: 1}); err != nil || total != 1 {
		t.Errorf("add again: %d events, error %v", total, err)
	}
	for _, c := range []struct {
		action string
		event  auth.EventType
		do     func() error
	}{
		{"lock", auth.AccountChange, func() error { return w.service.Lock(ctx, email) }},
		{"unlock", auth.AccountChange, func() error { return w.service.Unlock(ctx, email) }},
		{"phone", auth.AccountChange, func() error { return w.service.SetPhone(ctx, email, "") }},
		{"mfa_enrol", auth.CredentialChange, func() error { _, err := w.service.EnrolMFA(ctx, email); return err }},
		{"mfa_disable", auth.CredentialChange, func() error { return w.service.DisableMFA(ctx, email) }},
		{"disable", auth.AccountChange, func() error { return w.service.Disable(ctx, email) }},
		{"enable", auth.AccountChange, func() error { return w.service.Enable(ctx, email) }},
		{"password", auth.CredentialChange, func() error { return w.service.SetPassword(ctx, email, w.password("Left Horse 8!")) }},
	} {
		living, err := w.ports.Sessions.Get(ctx, "s")
		if err != nil {
			t.Fatal(err)
		}
		w.cache.Put(ctx, living, w.clock.now)
		w.clock.now = w.clock.now.Add(time.Millisecond)
		if err := c.do(); err != nil {
			t.Fatalf("%s: %v", c.action, err)
		}
		found, _, err := w.log.Search(ctx, authstore.AuditQuery{Limit: 1})
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: events %v, error %v", c.action, found, err)
		}
		e := found[0]
		if e.Type != c.event || e.UserID != user || !e.Success || e.Details["action"] != c.action || e.Details["actor"] != "operator" {
			t.Errorf("%s: event %+v", c.action, e)
		}
		_, ends := e.Details["sessionsInvalidated"]
		if _, kept := w.cache.Get(ctx, "s"); ends && living.EndedAt.IsZero() && kept {
			t.Errorf("%s: the copy of the session is kept", c.action)
		}
	}
	_, before, err := w.log.Search(ctx, authstore.AuditQuery{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.service.DisableMFA(ctx, email); !fault.Is(err, fault.Conflict) {
		t.Errorf("disable-mfa without one: %v", err)
	}
	if _, after, err := w.log.Search(ctx, authstore.AuditQuery{Limit: 1}); err != nil || after != before {
		t.Errorf("a refused change left an event: %d, then %d (%v)", before, after, err)
	}
}
