package signin_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/assessment"
	"github.com/tollgate-dev/tollgate/core/auth/authtest"
	"github.com/tollgate-dev/tollgate/core/auth/history"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
	"github.com/tollgate-dev/tollgate/core/auth/signin"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

var strangeAddress = netip.MustParseAddr("198.51.100.99")

// strangeInfo is a device that no one has.
func strangeInfo(t testing.TB) auth.DeviceInfo {
	t.Helper()
	d, err := auth.NewDeviceInfo(auth.DeviceFields{
		UserAgent: "Mozilla/5.0 (Windows NT 6.1; rv:60.0) Gecko/20100101 Firefox/60.0", ScreenResolution: "800x600",
		Timezone: "Asia/Tokyo", Language: "ja-JP",
	})
	must.Succeed(t, err)
	return d
}

func fromStrangeDevice(t testing.TB) func(*signin.Login) {
	return func(in *signin.Login) { in.Device, in.Address = strangeInfo(t), strangeAddress }
}

// seedHistory stores the counts of 40 sign-ins of the person from the laptop at home, one a day,
// and of 600 sign-ins of other people from there.
func (fx *fixture) seedHistory(user auth.UserID) {
	fx.t.Helper()
	all := history.Table{}
	signInAt := func(at time.Time, person history.Table) {
		o := history.Observe(homeAddress, laptopInfo(fx.t), risk.Signals{
			At: at, Location: fx.signals.places[homeAddress],
		})
		c := history.Counts{Person: person, Everyone: all}
		c.Apply(history.Learn(o, c), at)
	}
	for n := range 600 {
		signInAt(fx.clock.Now().Add(-time.Duration(n+1)*time.Hour), history.Table{})
	}
	own := history.Table{}
	for days := 40; days > 0; days-- {
		signInAt(fx.clock.Now().AddDate(0, 0, -days), own)
	}
	if err := fakedb.NewHistory(fx.db).Merge(context.Background(), user, history.Counts{
		Person: own, Everyone: all,
	}); err != nil {
		fx.t.Fatal(err)
	}
}

// signInsLearnt returns how many sign-ins were learnt from the person and from everybody.
func (fx *fixture) signInsLearnt(user auth.UserID) (own, all float64) {
	fx.t.Helper()
	store, total := fakedb.NewHistory(fx.db), []history.Value{{Feature: history.SignIns}}
	if _, err := store.Gather(context.Background()); err != nil {
		fx.t.Fatal(err)
	}
	counts, err := store.Read(context.Background(), user, total, total)
	must.Succeed(fx.t, err)
	return counts.Person[total[0]].Sum, counts.Everyone[total[0]].Sum
}

// lastEvaluation returns what the newest RISK_EVALUATION event says.
func (fx *fixture) lastEvaluation() assessment.Evaluation {
	fx.t.Helper()
	return assessment.ReadEvaluation(&fx.findEvents(audit.RiskEvaluation)[0])
}

func inMode(m assessment.HistoryMode) func(*signin.Config) {
	return func(c *signin.Config) { c.History = m }
}

func TestHistoryModes(t *testing.T) {
	for mode, c := range map[assessment.HistoryMode]struct {
		score int // of the sign-in from the strange device
		raise bool
		says  bool
	}{
		assessment.HistoryOff: {score: 30}, assessment.HistoryShadow: {score: 30, says: true}, assessment.HistoryOn: {
			raise: true, says: true,
		},
	} {
		t.Run(string(mode), func(t *testing.T) {
			fx := newFixture(t, inMode(mode))
			user := fx.mustAccount()
			fx.seedHistory(user)
			r := fx.mustLogin(fromStrangeDevice(t))
			session, e := fx.getSession(r.SessionID), fx.lastEvaluation()
			if session.RiskScore != e.Score || c.raise != (e.Score > 30) || !c.raise && e.Score != c.score {
				t.Errorf("the session has score %d, the event %d", session.RiskScore, e.Score)
			}
			h := e.History
			if says := h.Mode == mode && h.Silent == "" && h.Score > 30 && h.PointsScore == 30 &&
				len(h.Reasons) > 0; says != c.says {
				t.Errorf("the event says of the history %+v", h)
			}
			if _, written := fx.findEvents(audit.RiskEvaluation)[0].Details["history"]; written != c.says {
				t.Errorf("the event has a detail of the history: %t", written)
			}
			if c.raise && session.TrustLevel == auth.Unverified && e.Score > 60 {
				t.Errorf("a score of %d got %v", e.Score, session.TrustLevel)
			}
		})
	}
}

func (fx *fixture) mustAccount() auth.UserID {
	fx.t.Helper()
	a, err := fx.ports.Accounts.ByEmail(context.Background(), anna)
	must.Succeed(fx.t, err)
	return a.ID
}

// TestGoodHistoryBuysNoTrust signs in as always on a device that was never confirmed.
func TestGoodHistoryBuysNoTrust(t *testing.T) {
	fx := newFixture(t, inMode(assessment.HistoryOn))
	fx.seedHistory(fx.mustAccount())
	r := fx.mustLogin()
	if e := fx.lastEvaluation(); r.TrustLevel != auth.Unverified || e.Score != 30 || e.History.Silent != "" {
		t.Errorf("the session has %v, and the event %+v", r.TrustLevel, e)
	}
}

func TestSilentHistory(t *testing.T) {
	fx := newFixture(t, inMode(assessment.HistoryOn))
	fx.mustLogin()
	if e := fx.lastEvaluation(); e.Score != 30 || e.History.Silent != assessment.SilentInstallation {
		t.Errorf("of the first sign-in the event says %+v", e)
	}
	fx.seedHistory(fx.addAccount("bob@example.com"))
	fx.mustLogin()
	if e := fx.lastEvaluation(); e.History.Silent != assessment.SilentPerson {
		t.Errorf("of a new person the event says %+v", e)
	}
}

// TestLearningFromSessions checks from which sessions the service learns at once.
func TestLearningFromSessions(t *testing.T) {
	for name, c := range map[string]struct {
		mode  assessment.HistoryMode
		login func(fx *fixture)
		want  float64
	}{
		"a device that was never confirmed": {assessment.HistoryShadow, func(fx *fixture) { fx.mustLogin() }, 0},
		"a second factor":                   {assessment.HistoryShadow, func(fx *fixture) { fx.mustPassMFA() }, 1},
		"a second factor, if it is off":     {assessment.HistoryOff, func(fx *fixture) { fx.mustPassMFA() }, 0},
		"a confirmed device that shows its token": {
			assessment.HistoryShadow, func(fx *fixture) { fx.mustLoginAgain(true) }, 2,
		},
		"a confirmed device that shows no token": {
			assessment.HistoryShadow, func(fx *fixture) { fx.mustLoginAgain(false) }, 1,
		},
		"a sign-in soon after one of the same kind": {
			assessment.HistoryOn, func(fx *fixture) {
				fx.mustPassMFA()
				fx.clock.Advance(time.Hour)
				fx.mustPassMFA()
			}, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			fx := newFixture(t, inMode(c.mode))
			user := fx.mustAccount()
			c.login(fx)
			if own, all := fx.signInsLearnt(user); own != c.want || all != c.want {
				t.Errorf("%v sign-ins of the person and %v of everybody were learnt, want %v", own, all, c.want)
			}
		})
	}
}

// mustPassMFA signs in with a second factor, which confirms the device.
func (fx *fixture) mustPassMFA() signin.Result {
	fx.t.Helper()
	a, err := fx.ports.Accounts.ByEmail(context.Background(), anna)
	must.Succeed(fx.t, err)
	if !a.MFA.Active {
		fx.enrolAuthenticator()
	}
	return fx.loginMFA(a.ID)
}

// mustLoginAgain confirms the laptop, waits for a day, and signs in without a second factor.
func (fx *fixture) mustLoginAgain(showToken bool) {
	fx.t.Helper()
	confirmed := fx.mustPassMFA()
	fx.updateAccount(fx.mustAccount(), func(a *auth.Account) { a.MFA = auth.MFA{} })
	fx.clock.Advance(24 * time.Hour)
	fx.mustLogin(func(in *signin.Login) {
		if showToken {
			in.DeviceToken = confirmed.DeviceToken
		}
	})
}

// TestStolenPasswordDoesNotBecomeFamiliar signs in with a stolen password every day for 100 days.
// Neither the score of the attacker falls, nor does anything of the attacker get into the counts.
func TestStolenPasswordDoesNotBecomeFamiliar(t *testing.T) {
	fx := newFixture(t, inMode(assessment.HistoryOn))
	user := fx.mustAccount()
	fx.seedHistory(user)
	own, all := fx.signInsLearnt(user)
	fx.mustLogin(fromStrangeDevice(t))
	first := fx.lastEvaluation()
	for range 100 {
		fx.clock.Advance(24 * time.Hour)
		fx.mustLogin(fromStrangeDevice(t))
		e := fx.lastEvaluation()
		if e.History.Silent != "" || e.History.Score < first.History.Score-15 || e.TrustLevel == auth.FullTrust {
			t.Fatalf("on %v the event says %+v, on the first day %+v", fx.clock.Now(), e, first)
		}
	}
	if ownNow, allNow := fx.signInsLearnt(user); ownNow != own || allNow != all {
		t.Errorf("%v sign-ins of the person and %v of everybody were learnt, want %v and %v", ownNow, allNow, own, all)
	}
	o := history.Observe(strangeAddress, strangeInfo(t), risk.Signals{At: fx.clock.Now()})
	counts, err := fx.ports.Counts.Read(context.Background(), user, o.PersonValues(), o.EveryoneValues())
	must.Succeed(t, err)
	for v := range counts.Person {
		if v.Text != "" &&
			slices.Contains([]history.Feature{
				history.Address, history.Prefix, history.Network, history.Device, history.Browser,
			}, v.Feature) {
			t.Errorf("the person has the attacker's %v %q", v.Feature, v.Text)
		}
	}
}

var errCounts = errors.New("the table is gone")

// brokenCounts fail in one or both of its methods.
type brokenCounts struct {
	authstore.HistoryCounts
	read, write error
}

func (b brokenCounts) Read(
	ctx context.Context, user auth.UserID, person, everyone []history.Value,
) (history.Counts, error) {
	if b.read != nil {
		return history.Counts{}, b.read
	}
	return b.HistoryCounts.Read(ctx, user, person, everyone)
}

func (b brokenCounts) Add(ctx context.Context, user auth.UserID, additions []history.Addition, at time.Time) error {
	if b.write != nil {
		return b.write
	}
	return b.HistoryCounts.Add(ctx, user, additions, at)
}

// TestBrokenHistory checks that a sign-in goes on with the points if the counts cannot be read or
// written, and that its event says so.
func TestBrokenHistory(t *testing.T) {
	for name, broken := range map[string]brokenCounts{"read": {read: errCounts}, "write": {write: errCounts}} {
		t.Run(name, func(t *testing.T) {
			fx := newFixture(t, inMode(assessment.HistoryOn))
			user := fx.mustAccount()
			broken.HistoryCounts = fx.ports.Counts
			fx.ports.Counts = broken
			config := authtest.SignIn()
			config.History = assessment.HistoryOn
			fx.startService(config)
			fx.mustPassMFA()
			e := fx.findEvents(audit.RiskEvaluation)
			if len(e) != 1 || assessment.ReadEvaluation(&e[0]).History.Silent != assessment.SilentUnread {
				t.Fatalf("the events are %+v", e)
			}
			silent, _ := e[0].Details["unanswered"].(audit.List)
			if !slices.Contains(silent, audit.Value(audit.Text(assessment.SilentHistory))) {
				t.Errorf("the event does not name the history among the silent sources: %v", e[0].Details["unanswered"])
			}
			if own, _ := fx.signInsLearnt(user); own != 0 {
				t.Errorf("%v sign-ins were learnt", own)
			}
		})
	}
}

// awayTransactions are those of a database that is away.
type awayTransactions struct{}

func (awayTransactions) Atomically(context.Context, func(context.Context) error) error {
	return &assessment.HistoryError{Cause: fault.New(fault.Unavailable, "the database is not available")}
}

func TestDatabaseAwayWithHistory(t *testing.T) {
	fx := newFixture(t)
	fx.ports.Transaction = awayTransactions{}
	fx.startService(authtest.SignIn())
	if _, err := fx.tryLogin(password); !fault.Is(err, fault.Unavailable) {
		t.Errorf("login returns %v, want that the database is away", err)
	}
}
