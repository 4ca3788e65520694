package retention_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/history"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/auth/retention"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

const day = 24 * time.Hour

var noon = time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)

// fixture holds records of one person with different ages.
type fixture struct {
	t       *testing.T
	db      *fakedb.Database
	stores  retention.Ports
	devices *fakedb.Devices
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	db := fakedb.New()
	fx := &fixture{t: t, db: db, devices: fakedb.NewDevices(db)}
	fx.stores = retention.Ports{
		Audit: fakedb.NewAuditLog(db), Sessions: fakedb.NewSessions(db), RefreshTokens: fakedb.NewRefreshTokens(db),
		Challenges: fakedb.NewChallenges(db), Pending: fakedb.NewPendingLogins(db), Lockouts: fakedb.NewLockouts(db),
		Devices:   fx.devices,
		Companies: fakedb.NewLogins(db), Counts: fakedb.NewHistory(db), Tokens: fakedb.NewAPITokens(db), Links: fakedb.NewLinks(db),
		Requests: fakedb.NewRequests(db), Families: fakedb.NewFamilies(db), Consents: fakedb.NewConsents(db),
	}
	fx.mustSucceed(fakedb.NewAccounts(db).Create(t.Context(), auth.Account{
		ID: "anna", Email: "anna@example.com", State: auth.AccountActive,
	}))
	fx.mustSucceed(fakedb.NewIdentities(db).Add(t.Context(), company.Identity{ID: "anna", UserID: "anna"}))
	return fx
}

func (fx *fixture) mustSucceed(err error) {
	fx.t.Helper()
	must.Succeed(fx.t, err)
}

// addSignIn stores an unconfirmed device, and on it a session that expired age ago, with a token, a
// challenge and an audit event.
func (fx *fixture) addSignIn(name string, age time.Duration) {
	fx.t.Helper()
	ctx, end := fx.t.Context(), noon.Add(-age)
	_, _, err := fx.devices.Ensure(ctx, auth.Device{
		ID: auth.DeviceID(name), UserID: "anna", Identity: auth.DeviceIdentity(name), LastSeen: end,
	})
	fx.mustSucceed(err)
	fx.mustSucceed(fakedb.NewSessions(fx.db).Create(ctx, auth.Session{
		ID: auth.SessionID(name), UserID: "anna", DeviceID: auth.DeviceID(name), CreatedAt: end.Add(-day),
		ExpiresAt: end,
	}))
	fx.mustSucceed(fx.stores.RefreshTokens.Add(ctx, auth.RefreshToken{
		Hash: sha256.Sum256([]byte(name)), SessionID: auth.SessionID(name),
	}))
	fx.mustSucceed(fx.stores.Challenges.Create(ctx, auth.Challenge{
		ID: auth.ChallengeID(name), SessionID: auth.SessionID(name), UserID: "anna", ExpiresAt: end,
	}))
	fx.mustSucceed(fx.stores.Pending.Put(ctx, auth.PendingLogin{
		UserID: "anna", DeviceIdentity: auth.DeviceIdentity(name), CreatedAt: end.Add(-time.Minute), ExpiresAt: end,
	}))
	fx.mustSucceed(fx.stores.Companies.Add(ctx, company.Login{ID: company.LoginID(name), IdentityID: "anna", AnsweredAt: end}))
	fx.mustSucceed(fx.stores.Companies.Add(ctx, company.Login{
		ID: company.LoginID(name + " "), IdentityID: "anna", SessionID: auth.SessionID(name), AnsweredAt: end,
	}))
	fx.mustSucceed(fx.stores.Links.Put(ctx, auth.Link{
		Hash: sha256.Sum256([]byte(name)), Purpose: auth.LinkReset, UserID: "anna", ExpiresAt: end,
	}))
	fx.mustSucceed(fx.stores.Requests.Add(ctx, oauth.Request{ID: sha256.Sum256([]byte(name)), ExpiresAt: end}))
	fx.mustSucceed(fx.stores.Families.Add(ctx, oauth.Family{
		ID: oauth.FamilyID(name), UserID: "anna", ExpiresAt: end.Add(day), EndedAt: end,
	}))
	fx.mustSucceed(fx.stores.Families.Add(ctx, oauth.Family{ID: oauth.FamilyID(name + " "), UserID: "anna", ExpiresAt: end}))
	fx.mustSucceed(fx.stores.Consents.Put(ctx, oauth.Consent{UserID: "anna", Host: name, ExpiresAt: end}))
	fx.mustSucceed(fx.stores.Lockouts.Update(ctx, auth.LockoutKey(name), func(l *auth.Lockout) error {
		l.Fail(auth.LockoutPolicy{Threshold: 5, Window: time.Minute, Duration: time.Minute}, end)
		return nil
	}))
	value := history.Addition{Value: history.Value{Feature: history.Browser, Text: name}, Person: true, Weight: 1}
	fx.mustSucceed(fx.stores.Counts.Add(ctx, "anna", []history.Addition{value}, end))
	fx.mustSucceed(fx.stores.Audit.Append(ctx, audit.Event{
		ID: audit.EventID(name), Time: end, Category: audit.LoginAttempt, Subject: "anna",
	}))
}

func (fx *fixture) mustSweep(c retention.Config) []retention.Removed {
	fx.t.Helper()
	removed, err := retention.New(c, fx.stores, clocktest.NewManual(noon)).Sweep(fx.t.Context())
	fx.mustSucceed(err)
	return removed
}

func TestSweep(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	fx.addSignIn("now", -time.Hour)
	fx.addSignIn("yesterday", 25*time.Hour)
	fx.addSignIn("old", 40*day)
	fx.addSignIn("very old", history.Lifetime+time.Second)
	fx.addSignIn("nearly as old", history.Lifetime-time.Second)
	c := retention.Config{Audit: 30 * day, Sessions: 30 * day, Lockout: 15 * time.Minute}
	want := []retention.Removed{
		{retention.RefreshTokens, 4}, {retention.Challenges, 4}, {retention.PendingLogins, 4}, {retention.CompanyLogins, 4},
		{retention.Links, 4}, {retention.Lockouts, 4},
		{retention.Counts, 1}, {retention.Requests, 4}, {retention.Families, 8}, {retention.Consents, 4},
		{retention.Sessions, 3}, {retention.Devices, 3}, {retention.AuditEvents, 3},
	}
	if got := fx.mustSweep(c); !slices.Equal(got, want) {
		t.Errorf("a sweep removed %v, want %v", got, want)
	}
	if got := fx.mustSweep(c); len(got) != 0 {
		t.Errorf("the next one removed %v", got)
	}
	if _, err := fx.devices.Get(t.Context(), "old"); !fault.Is(err, fault.NotFound) {
		t.Errorf("the device of the old session: %v", err)
	}
}

// TestForEver checks that zero keeps all records.
func TestForEver(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	fx.addSignIn("old", 4000*day)
	want := []retention.Removed{
		{retention.RefreshTokens, 1}, {retention.Challenges, 1}, {retention.PendingLogins, 1}, {retention.CompanyLogins, 1},
		{retention.Links, 1}, {retention.Lockouts, 1},
		{retention.Counts, 1}, {retention.Requests, 1}, {retention.Families, 2}, {retention.Consents, 1},
	}
	if got := fx.mustSweep(retention.Config{Lockout: time.Hour}); !slices.Equal(got, want) {
		t.Errorf("a sweep removed %v, want %v", got, want)
	}
}

// brokenLog fails.
type brokenLog struct{ *fakedb.AuditLog }

var errAway = errors.New("away")

func (brokenLog) DeleteBefore(context.Context, time.Time, int) (int, error) { return 0, errAway }

// brokenLockouts fail.
type brokenLockouts struct{ *fakedb.Lockouts }

func (brokenLockouts) DeleteBefore(context.Context, time.Time) (int, error) { return 0, errAway }

func TestOneFailureDoesNotStopTheOthers(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	fx.addSignIn("old", 40*day)
	fx.stores.Lockouts = brokenLockouts{}
	fx.stores.Audit = brokenLog{}
	removed, err := retention.New(retention.Config{Audit: day, Sessions: day}, fx.stores, clocktest.NewManual(noon)).
		Sweep(t.Context())
	want := []retention.Removed{
		{retention.RefreshTokens, 1}, {retention.Challenges, 1}, {retention.PendingLogins, 1},
		{retention.CompanyLogins, 1}, {retention.Links, 1},
		{retention.Requests, 1}, {retention.Families, 2}, {retention.Consents, 1}, {retention.Sessions, 1}, {retention.Devices, 1},
	}
	if !errors.Is(err, errAway) || !slices.Equal(removed, want) {
		t.Errorf("a sweep removed %v, %v, want %v and both failures", removed, err, want)
	}
}

func TestTheEndOfTheContextStops(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if removed, err := retention.New(retention.Config{}, fx.stores, clocktest.NewManual(noon)).
		Sweep(ctx); !errors.Is(err, context.Canceled) || len(removed) != 0 {
		t.Errorf("a sweep under a cancelled context removed %v, %v", removed, err)
	}
}

// countingLog is an audit log with a number of uncounted hours.
type countingLog struct {
	authstore.AuditLog
	left  int
	until []time.Time
}

func (h *countingLog) CountHour(_ context.Context, until time.Time) (bool, error) {
	h.until = append(h.until, until)
	h.left--
	return h.left >= 0, nil
}

func TestSweepCountsAuditEvents(t *testing.T) {
	fx := newFixture(t)
	log := &countingLog{AuditLog: fx.stores.Audit, left: 3}
	fx.stores.Audit = log
	fx.mustSweep(retention.Config{})
	if want := noon.Add(-auditing.ClockSkew); len(log.until) != 4 || !log.until[0].Equal(want) {
		t.Errorf("counted until %v, want four times %v", log.until, want)
	}
}
