package devices_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/inprocess"
	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/devices"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/secrets/secretstest"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

type fixture struct {
	service *devices.Service
	ports   devices.Ports
	log     *fakedb.AuditLog
	cache   *memory.Sessions
	clock   *clocktest.Manual
}

// newFixture returns a service with two people, each with a session on a device.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	db, ctx := fakedb.New(), context.Background()
	fx := &fixture{
		log:   fakedb.NewAuditLog(db),
		clock: clocktest.NewManual(time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)),
		ports: devices.Ports{
			Devices: fakedb.NewDevices(db), DeviceTokens: fakedb.NewDeviceTokens(db), Sessions: fakedb.NewSessions(db),
			Levels:      fakedb.NewSessions(db),
			Transaction: db,
		},
	}
	fx.cache = memory.NewSessions(fx.clock, memory.Config{MaxSessions: 10})
	fx.ports.Cache, fx.ports.Trail, fx.ports.Clock = fx.cache,
		auditing.New(fx.log, fx.clock, &secretstest.Entropy{}), fx.clock
	unlimited, err := inprocess.NewThrottle(inprocess.ThrottleConfig{}, nil, fx.clock)
	must.Succeed(t, err)
	fx.ports.Refusals = auditing.NewRefusals(fx.ports.Trail, unlimited)
	fx.service = devices.New(fx.ports)
	for _, name := range []string{"anna", "bert"} {
		user := auth.UserID(name)
		must.Succeed(t, fakedb.NewAccounts(db).Create(ctx, auth.Account{ID: user, Email: auth.Email(name)}))
		if _, _, err := fx.ports.Devices.Ensure(ctx, auth.Device{
			ID: auth.DeviceID(name), UserID: user, Identity: "d", TrustStatus: auth.DevicePending,
		}); err != nil {
			t.Fatal(err)
		}
		if err := fx.ports.DeviceTokens.Add(ctx, auth.DeviceToken{
			Hash: auth.TokenHash{name[0]}, DeviceID: auth.DeviceID(name),
		}, 5); err != nil {
			t.Fatal(err)
		}
		err := fx.ports.Sessions.Create(ctx, auth.Session{
			ID: auth.SessionID(name), UserID: user, DeviceID: auth.DeviceID(name), TrustLevel: auth.Unverified,
			CreatedAt: fx.clock.Now(), ExpiresAt: fx.clock.Now().Add(time.Hour),
			MaxExpiresAt: fx.clock.Now().Add(time.Hour),
		})
		must.Succeed(t, err)
	}
	return fx
}

func annaSession(level auth.TrustLevel) auth.Session {
	return auth.Session{ID: "anna", UserID: "anna", DeviceID: "anna", TrustLevel: level}
}

func (fx *fixture) findChanges(t *testing.T) []audit.Event {
	t.Helper()
	events, _, err := fx.log.Search(context.Background(), authstore.AuditQuery{
		Category: audit.DeviceChange, Limit: 100,
	})
	must.Succeed(t, err)
	return events
}

func TestHighRiskIsRefused(t *testing.T) {
	fx, ctx, s := newFixture(t), context.Background(), annaSession(auth.HighRisk)
	_, _, list := fx.service.ListDevices(ctx, s, firstPage)
	_, _, sessions := fx.service.ListSessions(ctx, s, firstPage)
	_, mark := fx.service.SetTrust(ctx, s, "anna", auth.DeviceTrusted)
	_, revoke := fx.service.Revoke(ctx, s, "anna")
	_, rename := fx.service.Rename(ctx, s, "anna", "mine")
	for name, err := range map[string]error{
		"devices": list, "sessions": sessions, "mark": mark, "revoke": revoke, "rename": rename,
	} {
		if f, ok := fault.As(err); !ok || f.Code != auth.CodeInsufficientTrust {
			t.Errorf("%s: %v, want insufficient_trust", name, err)
		}
	}
}

var firstPage = auth.PageRequest{Limit: auth.MaxPage}

func TestPagesOutOfRangeAreRefused(t *testing.T) {
	fx, ctx := newFixture(t), context.Background()
	for _, page := range []auth.PageRequest{{}, {Limit: -1}, {Limit: auth.MaxPage + 1}, {Limit: 1, Offset: -1}} {
		_, _, devices := fx.service.ListDevices(ctx, annaSession(auth.Unverified), page)
		_, _, sessions := fx.service.ListSessions(ctx, annaSession(auth.Unverified), page)
		for _, err := range []error{devices, sessions} {
			if f, ok := fault.As(err); !ok || f.Code != auth.CodeValidation {
				t.Errorf("page %+v: %v, want validation_error", page, err)
			}
		}
	}
}

func TestPeopleSeeTheirOwn(t *testing.T) {
	fx, ctx := newFixture(t), context.Background()
	list, total, err := fx.service.ListDevices(ctx, annaSession(auth.Unverified), firstPage)
	if err != nil || total != 1 || len(list) != 1 || list[0].ID != "anna" {
		t.Errorf("devices %v, error %v", list, err)
	}
	sessions, total, err := fx.service.ListSessions(ctx, annaSession(auth.Unverified), firstPage)
	if err != nil || total != 1 || len(sessions) != 1 || sessions[0].ID != "anna" {
		t.Errorf("sessions %v, error %v", sessions, err)
	}
}

func TestOthersDevices(t *testing.T) {
	fx, ctx, s := newFixture(t), context.Background(), annaSession(auth.FullTrust)
	for id, code := range map[auth.DeviceID]fault.Code{"bert": auth.CodeAccessDenied, "nobody": auth.CodeNotFound} {
		_, mark := fx.service.SetTrust(ctx, s, id, auth.DeviceTrusted)
		_, revoke := fx.service.Revoke(ctx, s, id)
		_, rename := fx.service.Rename(ctx, s, id, "mine")
		for _, err := range []error{mark, revoke, rename} {
			if f, ok := fault.As(err); !ok || f.Code != code {
				t.Errorf("%s: %v, want code %s", id, err, code)
			}
		}
	}
	if d, err := fx.ports.Devices.Get(ctx, "bert"); err != nil || d.Revoked || d.TrustStatus != auth.DevicePending {
		t.Errorf("device %+v, error %v", d, err)
	}
	events, _, err := fx.log.Search(ctx, authstore.AuditQuery{Limit: 100})
	if err != nil || len(events) != 3 {
		t.Fatalf("events %+v, error %v, want one of each refusal", events, err)
	}
	for i := range events {
		e := &events[i]
		if e.Category != audit.AccessRefused || e.Success || e.Subject != "anna" ||
			e.Details.Text("targetDeviceId") != "bert" {
			t.Errorf("event %+v", e)
		}
	}
}

func TestMark(t *testing.T) {
	fx, ctx := newFixture(t), context.Background()
	d, err := fx.service.SetTrust(ctx, annaSession(auth.Unverified), "anna", auth.DeviceTrusted)
	if err != nil || d.TrustStatus != auth.DeviceTrusted || d.Confirmed {
		t.Errorf("device %+v, error %v", d, err)
	}
	events := fx.findChanges(t)
	if len(events) != 1 || events[0].Details.Text("action") != "trust" ||
		events[0].Details.Text("trustStatus") != "TRUSTED" ||
		events[0].Details.Text("previousTrustStatus") != "PENDING" || events[0].Subject != "anna" {
		t.Errorf("events %+v", events)
	}
}

// TestTrustedNeedsFullTrust marks a device as trusted at each level. Below FULL_TRUST the mark
// counts after the next code on the device; the level is that of the stored session, not that of a
// cached copy.
func TestTrustedNeedsFullTrust(t *testing.T) {
	for level, counts := range map[auth.TrustLevel]bool{
		auth.Unverified: false, auth.LimitedTrust: false, auth.FullTrust: true,
	} {
		fx, ctx := newFixture(t), context.Background()
		stale := annaSession(auth.FullTrust + auth.Unverified - level) // FULL_TRUST if the session is at UNVERIFIED
		stale.TrustLevel = max(stale.TrustLevel, auth.Unverified)
		mark := func(status auth.TrustStatus) auth.Device {
			t.Helper()
			// the mark UNTRUSTED has lowered it
			setLevel := func(s *auth.Session) error { s.TrustLevel = level; return nil }
			must.Succeed(t, fx.ports.Sessions.Update(ctx, "anna", setLevel))
			d, err := fx.service.SetTrust(ctx, stale, "anna", status)
			if err != nil || d.TrustStatus != status {
				t.Fatalf("SetTrust returned %+v, %v", d, err)
			}
			return d
		}
		if d := mark(auth.DeviceTrusted); d.Trusted() != counts {
			t.Errorf("at %s the mark counts: %v", level, d.Trusted())
		}
		confirmation := devices.Confirmation{
			Devices: fx.ports.Devices, Tokens: fx.ports.DeviceTokens, Entropy: &secretstest.Entropy{},
			Trail: fx.ports.Trail,
		}
		session := annaSession(level)
		if _, err := devices.Confirm(ctx, confirmation, &session, false, fx.clock.Now()); err != nil {
			t.Fatal(err)
		}
		if d := mark(auth.DeviceTrusted); !d.Trusted() {
			t.Errorf("at %s the mark does not count after a code, set once more", level)
		}
		mark(auth.DeviceUntrusted)
		if d := mark(auth.DeviceTrusted); d.Trusted() != counts {
			t.Errorf("at %s the mark counts after UNTRUSTED: %v", level, d.Trusted())
		}
		mark(auth.DevicePending)
		if d := mark(auth.DeviceTrusted); d.Trusted() != counts {
			t.Errorf("at %s the mark counts after PENDING: %v", level, d.Trusted())
		}
	}
}

// TestRename: a name is stored without spaces around it, and only a new one is an event.
func TestRename(t *testing.T) {
	fx, ctx, s := newFixture(t), context.Background(), annaSession(auth.Unverified)
	for _, name := range []string{" Büro ", "Büro", ""} {
		fx.clock.Advance(time.Minute) // events of one time have no order
		d, err := fx.service.Rename(ctx, s, "anna", name)
		if stored, _ := fx.ports.Devices.Get(ctx, "anna"); err != nil || d.Name != strings.TrimSpace(name) ||
			stored.Name != d.Name {
			t.Errorf("%q: device %+v, stored %+v, error %v", name, d, stored, err)
		}
	}
	events := fx.findChanges(t)
	if len(events) != 2 || events[0].Details.Text("action") != "rename" ||
		events[0].Details.Text("previousName") != "Büro" || events[0].Details.Text("name") != "" {
		t.Errorf("events %+v", events)
	}
	for _, wrong := range []string{strings.Repeat("é", auth.MaxDeviceName+1), "a\x00", "a\nb", "a\u202eb", "\xff"} {
		if _, err := fx.service.Rename(ctx, s, "anna", wrong); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	if _, err := fx.service.Rename(ctx, s, "anna", strings.Repeat("é", auth.MaxDeviceName)); err != nil {
		t.Errorf("the longest name: %v", err)
	}
}

func TestRevoke(t *testing.T) {
	fx, ctx := newFixture(t), context.Background()
	for n, want := range []int{1, 0} {
		ended, err := fx.service.Revoke(ctx, annaSession(auth.Unverified), "anna")
		if err != nil || ended != want {
			t.Errorf("call %d ended %d, error %v; want %d", n, ended, err, want)
		}
	}
	if s, err := fx.ports.Sessions.Get(ctx, "anna"); err != nil || s.EndReason != auth.EndDeviceRevoked {
		t.Errorf("session %+v, error %v", s, err)
	}
	if s, err := fx.ports.Sessions.Get(ctx, "bert"); err != nil || !s.EndedAt.IsZero() {
		t.Errorf("another person's session %+v, error %v", s, err)
	}
	if _, err := fx.ports.DeviceTokens.Find(ctx, auth.TokenHash{'a'}); !fault.Is(err, fault.NotFound) {
		t.Errorf("device token: %v, want it gone", err)
	}
	if list, _, err := fx.service.ListDevices(ctx, annaSession(auth.Unverified),
		firstPage); err != nil || len(list) != 1 || !list[0].Revoked {
		t.Errorf("devices %v, error %v; want the revoked one listed", list, err)
	}
	if n := len(fx.findChanges(t)); n != 1 {
		t.Errorf("%d device changes, want one", n)
	}
}

// runAsOperator calls do as operator while Anna's session is cached, and checks that the session is
// removed from the cache and that one event names the operator.
func (fx *fixture) runAsOperator(
	t *testing.T, event audit.Category, action string, do func(context.Context, *devices.Operator) (int, error),
) {
	t.Helper()
	ctx := context.Background()
	living, err := fx.ports.Sessions.Get(ctx, "anna")
	must.Succeed(t, err)
	fx.cache.Put(ctx, living, fx.clock.Now())
	fx.clock.Advance(time.Millisecond)
	if ended, err := do(ctx, devices.NewOperator(fx.service)); err != nil || ended != 1 {
		t.Errorf("%s ended %d, error %v; want one", action, ended, err)
	}
	if _, kept := fx.cache.Get(ctx, "anna"); kept {
		t.Errorf("%s keeps the copy of the session", action)
	}
	events, _, err := fx.log.Search(ctx, authstore.AuditQuery{Limit: 100})
	if err != nil || len(events) != 1 {
		t.Fatalf("%s: events %+v, error %v", action, events, err)
	}
	e := events[0]
	if e.Category != event || e.Subject != "anna" || e.Details.Text("action") != action ||
		e.Details.Text("actor") != "operator" || e.Details.Number("sessionsInvalidated") != 1.0 {
		t.Errorf("%s: event %+v", action, e)
	}
	if e.Details.Text(audit.DetailKind) == "" || e.Details.Text(audit.DetailKey) == "" {
		t.Errorf("%s: the event does not name the object: %v", action, e.Details)
	}
}

// person is the person whose sessions an operator ends.
var person = auth.Account{ID: "anna", Email: "anna@example.com"}

func TestOperatorRevokes(t *testing.T) {
	fx := newFixture(t)
	fx.runAsOperator(t, audit.DeviceChange, "revoke", func(ctx context.Context, o *devices.Operator) (int, error) {
		if list, err := o.ListDevices(ctx, "anna"); err != nil || len(list) != 1 {
			t.Errorf("devices %v, error %v", list, err)
		}
		return o.Revoke(ctx, "anna", "anna")
	})
}

func TestOperatorEndsAllSessions(t *testing.T) {
	fx := newFixture(t)
	fx.runAsOperator(t, audit.AccountChange, "end_sessions",
		func(ctx context.Context, o *devices.Operator) (int, error) {
			return o.EndAllSessions(ctx, &person)
		})
	if s, err := fx.ports.Sessions.Get(context.Background(), "bert"); err != nil || !s.EndedAt.IsZero() {
		t.Errorf("another person's session %+v, error %v", s, err)
	}
}

func TestOperatorEndsOneSession(t *testing.T) {
	fx := newFixture(t)
	fx.runAsOperator(t, audit.AccountChange, "end_sessions",
		func(ctx context.Context, o *devices.Operator) (int, error) {
			return 1, o.EndSession(ctx, &person, "anna")
		})
	ctx, o := context.Background(), devices.NewOperator(fx.service)
	if s, err := fx.ports.Sessions.Get(ctx, "anna"); err != nil || s.EndReason != auth.EndOperator {
		t.Errorf("session %+v, error %v", s, err)
	}
	for id, kind := range map[auth.SessionID]fault.Kind{
		"anna": fault.NotFound, "nobody": fault.NotFound, "bert": fault.Forbidden,
	} {
		if err := o.EndSession(ctx, &person, id); !fault.Is(err, kind) {
			t.Errorf("%s: %v, want kind %v", id, err, kind)
		}
	}
	if list, err := o.ListSessions(ctx, "anna"); err != nil || len(list) != 0 {
		t.Errorf("sessions %v, error %v", list, err)
	}
}

// TestUntrustedLowersSessions checks that UNTRUSTED lowers the active sessions on the device and no
// others, on this instance at once, and that the other marks change no session.
func TestUntrustedLowersSessions(t *testing.T) {
	fx, ctx := newFixture(t), t.Context()
	session := func(id auth.SessionID) auth.Session {
		t.Helper()
		s, err := fx.ports.Sessions.Get(ctx, id)
		must.Succeed(t, err)
		return s
	}
	add := func(id auth.SessionID, user auth.UserID, level auth.TrustLevel) {
		t.Helper()
		s := session(auth.SessionID(user))
		s.ID, s.TrustLevel = id, level
		must.Succeed(t, fx.ports.Sessions.Create(ctx, s))
		fx.cache.Put(ctx, s, fx.clock.Now())
	}
	add("full", "anna", auth.FullTrust)
	add("limited", "anna", auth.LimitedTrust)
	add("high", "anna", auth.HighRisk)
	add("other", "bert", auth.FullTrust)
	caller := session("full")
	for _, mark := range []auth.TrustStatus{auth.DeviceTrusted, auth.DevicePending, auth.DeviceUntrusted} {
		fx.clock.Advance(time.Millisecond) // events are ordered by time
		if _, err := fx.service.SetTrust(ctx, caller, "anna", mark); err != nil {
			t.Fatal(err)
		}
		want := auth.FullTrust
		if mark == auth.DeviceUntrusted {
			want = auth.LimitedTrust
		}
		if got := session("full").TrustLevel; got != want {
			t.Errorf("marked %s a session is at %s, want %s", mark, got, want)
		}
	}
	if _, copied := fx.cache.Get(ctx, "full"); copied {
		t.Error("a copy of the session at FULL_TRUST is left")
	}
	for id, want := range map[auth.SessionID]auth.TrustLevel{
		"anna": auth.Unverified, "limited": auth.LimitedTrust, "high": auth.HighRisk, "other": auth.FullTrust,
	} {
		if got := session(id).TrustLevel; got != want {
			t.Errorf("session %s is at %s, want %s", id, got, want)
		}
	}
	if d := fx.findChanges(t)[0].Details; d.Number("sessionsLowered") != 1 {
		t.Errorf("the event has %v", d)
	}
	if _, err := fx.service.SetTrust(ctx, session("other"), "anna", auth.DeviceUntrusted); !fault.Is(err,
		fault.Forbidden) {
		t.Errorf("another person's device: %v", err)
	}
}
