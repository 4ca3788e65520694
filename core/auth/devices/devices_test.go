package devices_test

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/adapters/memory/records"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/audit"
	"github.com/tollgate-dev/tollgate/core/auth/devices"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
)

type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

type dice struct{}

func (dice) Fill(p []byte) { _, _ = rand.Read(p) } // never fails

type world struct {
	service *devices.Service
	ports   devices.Ports
	log     *records.AuditLog
	cache   *memory.Sessions
	clock   *clock
}

// newWorld has two people, each with a session on a device.
func newWorld(t *testing.T) *world {
	t.Helper()
	db, ctx := records.New(), context.Background()
	w := &world{
		log: records.NewAuditLog(db), clock: &clock{time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)},
		ports: devices.Ports{
			Devices: records.NewDevices(db), DeviceTokens: records.NewDeviceTokens(db), Sessions: records.NewSessions(db), Levels: records.NewSessions(db),
			Transaction: db,
		},
	}
	w.cache = memory.NewSessions(w.clock, memory.Config{MaxSessions: 10})
	w.ports.Cache, w.ports.Trail, w.ports.Clock = w.cache, audit.New(w.log, w.clock, dice{}), w.clock
	w.service = devices.New(w.ports)
	for _, name := range []string{"anna", "bert"} {
		user := auth.UserID(name)
		if err := records.NewAccounts(db).Create(ctx, auth.Account{ID: user, Email: auth.Email(name)}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := w.ports.Devices.Ensure(ctx, auth.Device{ID: auth.DeviceID(name), UserID: user, Identity: "d", TrustStatus: auth.DevicePending}); err != nil {
			t.Fatal(err)
		}
		if err := w.ports.DeviceTokens.Add(ctx, auth.DeviceToken{Hash: auth.TokenHash{name[0]}, DeviceID: auth.DeviceID(name)}, 5); err != nil {
			t.Fatal(err)
		}
		err := w.ports.Sessions.Create(ctx, auth.Session{
			ID: auth.SessionID(name), UserID: user, DeviceID: auth.DeviceID(name), TrustLevel: auth.Unverified,
			CreatedAt: w.clock.now, ExpiresAt: w.clock.now.Add(time.Hour), MaxExpiresAt: w.clock.now.Add(time.Hour),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func anna(level auth.TrustLevel) auth.Session {
	return auth.Session{ID: "anna", UserID: "anna", DeviceID: "anna", TrustLevel: level}
}

func (w *world) changes(t *testing.T) []auth.Event {
	t.Helper()
	events, _, err := w.log.Search(context.Background(), authstore.AuditQuery{Type: auth.DeviceChange, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func TestHighRiskSeesNothing(t *testing.T) {
	w, ctx, s := newWorld(t), context.Background(), anna(auth.HighRisk)
	_, _, list := w.service.Devices(ctx, s, firstPage)
	_, _, sessions := w.service.Sessions(ctx, s, firstPage)
	_, mark := w.service.Mark(ctx, s, "anna", auth.DeviceTrusted)
	_, revoke := w.service.Revoke(ctx, s, "anna")
	for name, err := range map[string]error{"devices": list, "sessions": sessions, "mark": mark, "revoke": revoke} {
		if f, ok := fault.As(err); !ok || f.Code != auth.CodeInsufficientTrust {
			t.Errorf("%s: %v, want insufficient_trust", name, err)
		}
	}
}

var firstPage = auth.PageRequest{Limit: auth.MaxPage}

func TestPagesOutOfRangeAreRefused(t *testing.T) {
	w, ctx := newWorld(t), context.Background()
	for _, page := range []auth.PageRequest{{}, {Limit: -1}, {Limit: auth.MaxPage + 1}, {Limit: 1, Offset: -1}} {
		_, _, devices := w.service.Devices(ctx, anna(auth.Unverified), page)
		_, _, sessions := w.service.Sessions(ctx, anna(auth.Unverified), page)
		for _, err := range []error{devices, sessions} {
			if f, ok := fault.As(err); !ok || f.Code != auth.CodeValidation {
				t.Errorf("page %+v: %v, want validation_error", page, err)
			}
		}
	}
}

func TestPeopleSeeTheirOwn(t *testing.T) {
	w, ctx := newWorld(t), context.Background()
	list, total, err := w.service.Devices(ctx, anna(auth.Unverified), firstPage)
	if err != nil || total != 1 || len(list) != 1 || list[0].ID != "anna" {
		t.Errorf("devices %v, error %v", list, err)
	}
	sessions, total, err := w.service.Sessions(ctx, anna(auth.Unverified), firstPage)
	if err != nil || total != 1 || len(sessions) != 1 || sessions[0].ID != "anna" {
		t.Errorf("sessions %v, error %v", sessions, err)
	}
}

func TestOthersDevices(t *testing.T) {
	w, ctx, s := newWorld(t), context.Background(), anna(auth.FullTrust)
	for id, code := range map[auth.DeviceID]fault.Code{"bert": auth.CodeAccessDenied, "nobody": auth.CodeNotFound} {
		_, mark := w.service.Mark(ctx, s, id, auth.DeviceTrusted)
		_, revoke := w.service.Revoke(ctx, s, id)
		for _, err := range []error{mark, revoke} {
			if f, ok := fault.As(err); !ok || f.Code != code {
				t.Errorf("%s: %v, want code %s", id, err, code)
			}
		}
	}
	if d, err := w.ports.Devices.Get(ctx, "bert"); err != nil || d.Revoked || d.TrustStatus != auth.DevicePending {
		t.Errorf("device %+v, error %v", d, err)
	}
}

func TestMark(t *testing.T) {
	w, ctx := newWorld(t), context.Background()
	d, err := w.service.Mark(ctx, anna(auth.Unverified), "anna", auth.DeviceTrusted)
	if err != nil || d.TrustStatus != auth.DeviceTrusted || d.Confirmed {
		t.Errorf("device %+v, error %v", d, err)
	}
	events := w.changes(t)
	if len(events) != 1 || events[0].Details["action"] != "trust" || events[0].Details["trustStatus"] != "TRUSTED" ||
		events[0].Details["previousTrustStatus"] != "PENDING" || events[0].UserID != "anna" {
		t.Errorf("events %+v", events)
	}
}

func TestRevoke(t *testing.T) {
	w, ctx := newWorld(t), context.Background()
	for n, want := range []int{1, 0} {
		ended, err := w.service.Revoke(ctx, anna(auth.Unverified), "anna")
		if err != nil || ended != want {
			t.Errorf("call %d ended %d, error %v; want %d", n, ended, err, want)
		}
	}
	if s, err := w.ports.Sessions.Get(ctx, "anna"); err != nil || s.EndReason != auth.EndDeviceRevoked {
		t.Errorf("session %+v, error %v", s, err)
	}
	if s, err := w.ports.Sessions.Get(ctx, "bert"); err != nil || !s.EndedAt.IsZero() {
		t.Errorf("another person's session %+v, error %v", s, err)
	}
	if _, err := w.ports.DeviceTokens.Find(ctx, auth.TokenHash{'a'}); !fault.Is(err, fault.NotFound) {
		t.Errorf("device token: %v, want it gone", err)
	}
	if list, _, err := w.service.Devices(ctx, anna(auth.Unverified), firstPage); err != nil || len(list) != 1 || !list[0].Revoked {
		t.Errorf("devices %v, error %v; want the revoked one listed", list, err)
	}
	if n := len(w.changes(t)); n != 1 {
		t.Errorf("%d device changes, want one", n)
	}
}

// operated runs something as operator while Anna's session is copied, and wants
// the copy gone and one event that names the operator.
func (w *world) operated(t *testing.T, event auth.EventType, action string, do func(context.Context, *devices.Operator) (int, error)) {
	t.Helper()
	ctx := context.Background()
	living, err := w.ports.Sessions.Get(ctx, "anna")
	if err != nil {
		t.Fatal(err)
	}
	w.cache.Put(ctx, living, w.clock.now)
	w.clock.now = w.clock.now.Add(time.Millisecond)
	if ended, err := do(ctx, devices.NewOperator(w.service)); err != nil || ended != 1 {
		t.Errorf("%s ended %d, error %v; want one", action, ended, err)
	}
	if _, kept := w.cache.Get(ctx, "anna"); kept {
		t.Errorf("%s keeps the copy of the session", action)
	}
	events, _, err := w.log.Search(ctx, authstore.AuditQuery{Limit: 100})
	if err != nil || len(events) != 1 {
		t.Fatalf("%s: events %+v, error %v", action, events, err)
	}
	e := events[0]
	if e.Type != event || e.UserID != "anna" || e.Details["action"] != action || e.Details["actor"] != "operator" || e.Details["sessionsInvalidated"] != 1.0 {
		t.Errorf("%s: event %+v", action, e)
	}
}

func TestOperatorRevokes(t *testing.T) {
	w := newWorld(t)
	w.operated(t, auth.DeviceChange, "revoke", func(ctx context.Context, o *devices.Operator) (int, error) {
		if list, err := o.Devices(ctx, "anna"); err != nil || len(list) != 1 {
			t.Errorf("devices %v, error %v", list, err)
		}
		return o.Revoke(ctx, "anna", "anna")
	})
}

func TestOperatorEndsAllSessions(t *testing.T) {
	w := newWorld(t)
	w.operated(t, auth.AccountChange, "end_sessions", func(ctx context.Context, o *devices.Operator) (int, error) {
		return o.EndAll(ctx, "anna")
	})
	if s, err := w.ports.Sessions.Get(context.Background(), "bert"); err != nil || !s.EndedAt.IsZero() {
		t.Errorf("another person's session %+v, error %v", s, err)
	}
}

func TestOperatorEndsOneSession(t *testing.T) {
	w := newWorld(t)
	w.operated(t, auth.AccountChange, "end_sessions", func(ctx context.Context, o *devices.Operator) (int, error) {
		return 1, o.End(ctx, "anna", "anna")
	})
	ctx, o := context.Background(), devices.NewOperator(w.service)
	if s, err := w.ports.Sessions.Get(ctx, "anna"); err != nil || s.EndReason != auth.EndOperator {
		t.Errorf("session %+v, error %v", s, err)
	}
	for id, kind := range map[auth.SessionID]fault.Kind{"anna": fault.NotFound, "nobody": fault.NotFound, "bert": fault.Forbidden} {
		if err := o.End(ctx, "anna", id); !fault.Is(err, kind) {
			t.Errorf("%s: %v, want kind %v", id, err, kind)
		}
	}
	if list, err := o.Sessions(ctx, "anna"); err != nil || len(list) != 0 {
		t.Errorf("sessions %v, error %v", list, err)
	}
}

// TestUntrustedLowersSessions wants the mark UNTRUSTED to lower the living sessions on the device, on this instance at once, and no
// others, and no other mark to change a session.
func TestUntrustedLowersSessions(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	session := func(id auth.SessionID) auth.Session {
		t.Helper()
		s, err := w.ports.Sessions.Get(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	add := func(id auth.SessionID, user auth.UserID, level auth.TrustLevel) {
		t.Helper()
		s := session(auth.SessionID(user))
		s.ID, s.TrustLevel = id, level
		if err := w.ports.Sessions.Create(ctx, s); err != nil {
			t.Fatal(err)
		}
		w.cache.Put(ctx, s, w.clock.now)
	}
	add("full", "anna", auth.FullTrust)
	add("limited", "anna", auth.LimitedTrust)
	add("high", "anna", auth.HighRisk)
	add("other", "bert", auth.FullTrust)
	caller := session("full")
	for _, mark := range []auth.TrustStatus{auth.DeviceTrusted, auth.DevicePending, auth.DeviceUntrusted} {
		w.clock.now = w.clock.now.Add(time.Millisecond) // events are ordered by time
		if _, err := w.service.Mark(ctx, caller, "anna", mark); err != nil {
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
	if _, copied := w.cache.Get(ctx, "full"); copied {
		t.Error("a copy of the session at FULL_TRUST is left")
	}
	for id, want := range map[auth.SessionID]auth.TrustLevel{
		"anna": auth.Unverified, "limited": auth.LimitedTrust, "high": auth.HighRisk, "other": auth.FullTrust,
	} {
		if got := session(id).TrustLevel; got != want {
			t.Errorf("session %s is at %s, want %s", id, got, want)
		}
	}
	if d := w.changes(t)[0].Details; d["sessionsLowered"] != 1.0 {
		t.Errorf("the event has %v", d)
	}
	if _, err := w.service.Mark(ctx, session("other"), "anna", auth.DeviceUntrusted); !fault.Is(err, fault.Forbidden) {
		t.Errorf("another person's device: %v", err)
	}
}
