package delegating_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/core/scope"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/domainkeys"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

const (
	interval      = 24 * time.Hour
	unprovenAfter = 72 * time.Hour
)

// recheckFixture is a runner with its dependencies in memory. It is also the source of keys, the
// publishers and the reporter.
type recheckFixture struct {
	runner  *delegating.Rechecker
	ports   delegating.RecheckPorts
	config  delegating.RecheckConfig
	store   *racingPolicies
	clock   *clocktest.Manual
	texts   []string
	err     error
	during  func()
	lookups []string
	events  []authority.ProofAttempt
	notices []authority.PublisherNotice
	failed  []error
	waits   []time.Duration
	until   int // number of waits after which the waiter ends
}

func newRecheckFixture(t *testing.T) *recheckFixture {
	t.Helper()
	db := fakedb.New()
	fx := &recheckFixture{store: &racingPolicies{Policies: fakedb.NewPolicies(db)}, clock: clocktest.NewManual(epoch)}
	fx.config = delegating.RecheckConfig{Mode: publisher.ByPolicies, Interval: interval, UnprovenAfter: unprovenAfter}
	fx.ports = delegating.RecheckPorts{
		Transactions: db, Policies: fx.store, Keys: domainkeys.Sources{DNS: fx, HTTP: fx}, Publishers: fx,
		Clock: fx.clock, Waiter: fx, Reporter: fx,
	}
	fx.runner = delegating.NewRechecker(fx.config, fx.ports)
	return fx
}

func (fx *recheckFixture) Texts(_ context.Context, d publisher.Domain) ([]string, error) {
	fx.lookups = append(fx.lookups, d.String())
	if during := fx.during; during != nil {
		fx.during = nil
		during()
	}
	return fx.texts, fx.err
}

func (*recheckFixture) IssueToken(context.Context, authority.Publisher) (string, time.Time, error) {
	return "", time.Time{}, errors.New("a check issues no tokens")
}

func (*recheckFixture) IssueServiceToken(context.Context, string, scope.Set) (string, time.Time, error) {
	return "", time.Time{}, errors.New("a check issues no tokens")
}

func (fx *recheckFixture) RecordProof(_ context.Context, a authority.ProofAttempt) error {
	fx.events = append(fx.events, a)
	return nil
}

func (fx *recheckFixture) NotifyMaker(n authority.PublisherNotice) {
	fx.notices = append(fx.notices, n)
}

func (fx *recheckFixture) Report(event any) {
	fx.failed = append(fx.failed, event.(delegating.RecheckFailed).Err)
}

func (fx *recheckFixture) Wait(ctx context.Context, d time.Duration) bool {
	fx.waits = append(fx.waits, d)
	fx.clock.Advance(d)
	return ctx.Err() == nil && len(fx.waits) < fx.until
}

func (fx *recheckFixture) addPolicy(t *testing.T, id registry.PolicyID, changes ...func(*publisher.Policy)) {
	t.Helper()
	p, err := publisher.NewPolicy(publisher.Draft{Method: "dns", Domain: "example.com", Pattern: "com.example/*"},
		publisher.Rules{}, fx.clock.Now())
	must.Succeed(t, err)
	p.ID, p.CreatedBy = id, "ada"
	for _, change := range changes {
		change(&p)
	}
	must.Succeed(t, fx.store.Add(t.Context(), p))
}

func (fx *recheckFixture) policy(t *testing.T, id registry.PolicyID) publisher.Policy {
	t.Helper()
	found, err := fx.store.Policies.Find(t.Context(), registrystore.PolicyQuery{IDs: []registry.PolicyID{id}})
	if err != nil || len(found) != 1 {
		t.Fatalf("policy %s: %+v, error %v", id, found, err)
	}
	return found[0]
}

// check checks after an interval.
func (fx *recheckFixture) check(t *testing.T) {
	t.Helper()
	fx.clock.Advance(interval + time.Second)
	fx.checkNow(t)
}

func (fx *recheckFixture) checkNow(t *testing.T) {
	t.Helper()
	must.Succeed(t, fx.runner.CheckDue(t.Context()))
}

func (fx *recheckFixture) requireState(t *testing.T, what string, want publisher.State) {
	t.Helper()
	p := fx.policy(t, "p1")
	wantEqual(t, p.State(fx.clock.Now(), unprovenAfter), want, "%s: the policy", what)
}

func TestDuePoliciesAreChecked(t *testing.T) {
	t.Parallel()
	fx := newRecheckFixture(t)
	record := newSigner(1).record()
	fx.texts = []string{record}
	fx.addPolicy(t, "p1")
	fx.addPolicy(t, "p2", func(p *publisher.Policy) { p.Method, p.Issuer = publisher.OIDC, "https://ci.example" })
	fx.clock.Advance(interval)
	fx.checkNow(t)
	if len(fx.lookups) != 0 {
		t.Errorf("looked up %q before an interval is over", fx.lookups)
	}
	fx.clock.Advance(time.Second)
	fx.checkNow(t)
	fx.checkNow(t)
	if len(fx.lookups) != 1 || !fx.policy(t, "p1").CheckedAt.Equal(fx.clock.Now()) {
		t.Errorf("looked up %q, last check %s", fx.lookups, fx.policy(t, "p1").CheckedAt)
	}
	if len(fx.events)+len(fx.notices) != 0 {
		t.Errorf("a key that is there caused %+v and %+v", fx.events, fx.notices)
	}
}

func TestManyPoliciesAreCheckedInBatches(t *testing.T) {
	t.Parallel()
	fx := newRecheckFixture(t)
	for i := range 250 {
		fx.addPolicy(t, registry.PolicyID(fmt.Sprintf("p%03d", i)))
	}
	fx.check(t)
	wantEqual(t, len(fx.lookups), 250, "lookups")
}

// TestKeyIsGone follows a policy whose key disappears and comes back (contract P-14).
func TestKeyIsGone(t *testing.T) {
	t.Parallel()
	fx := newRecheckFixture(t)
	record, key := newSigner(1).record(), newSigner(1).parsed(t)
	other := newSigner(2).record()
	fx.addPolicy(t, "p1", func(p *publisher.Policy) { p.LastUsedAt, p.UsedKey = epoch, key.String() })
	fx.err = fault.New(fault.Unauthenticated, "the domain does not exist")
	fx.check(t)
	gone := fx.clock.Now()
	fx.requireState(t, "gone for the first time", publisher.Active)
	wantEvent := authority.ProofAttempt{
		Method: publisher.DNS, Domain: "example.com", Policies: []registry.PolicyID{"p1"},
		Reason: "the domain no longer publishes the key of the policy",
	}
	if len(fx.events) != 1 || fx.events[0].Reason != wantEvent.Reason || fx.events[0].Domain != wantEvent.Domain ||
		!slices.Equal(fx.events[0].Policies, wantEvent.Policies) {
		t.Errorf("the events are %+v, want %+v", fx.events, wantEvent)
	}
	if len(fx.notices) != 1 || fx.notices[0].Maker != "ada" || !fx.notices[0].Failed ||
		fx.notices[0].Subject != "example.com" {
		t.Errorf("the notices are %+v", fx.notices)
	}
	fx.err = nil // no records at all
	fx.check(t)
	fx.check(t)
	fx.requireState(t, "gone for two days", publisher.Active)
	fx.check(t)
	fx.requireState(t, "gone for three days", publisher.Unproven)
	if p := fx.policy(t, "p1"); !p.GoneSince.Equal(gone) {
		t.Errorf("gone since %s, want %s", p.GoneSince, gone)
	}
	fx.texts = []string{other}
	fx.check(t)
	fx.requireState(t, "another key after that", publisher.Unproven)
	if len(fx.events) != 1 || len(fx.notices) != 1 {
		t.Errorf("events %+v and notices %+v without a change", fx.events, fx.notices)
	}
	fx.texts = []string{other, record}
	fx.check(t)
	fx.requireState(t, "its own key", publisher.Active)
	if len(fx.events) != 2 || fx.events[1].Reason != "" || len(fx.notices) != 1 {
		t.Errorf("events %+v, notices %+v", fx.events, fx.notices)
	}
}

func TestWhichKeyCounts(t *testing.T) {
	t.Parallel()
	record, key := newSigner(1).record(), newSigner(1).parsed(t)
	other, otherKey := newSigner(2).record(), newSigner(2).parsed(t)
	unproven := func(p *publisher.Policy) { p.GoneSince = epoch.Add(-unprovenAfter) }
	pinned := func(p *publisher.Policy) {
		f, err := publisher.ParseFingerprint(key.Fingerprint())
		must.Succeed(t, err)
		p.Fingerprint = f
	}
	for name, test := range map[string]struct {
		texts   []string
		changes []func(*publisher.Policy)
		found   bool
	}{
		"any key while it is proven": {
			[]string{other}, []func(*publisher.Policy){func(p *publisher.Policy) { p.UsedKey = key.String() }}, true,
		},
		"the pinned key":          {[]string{record}, []func(*publisher.Policy){pinned}, true},
		"another key, pinned":     {[]string{other}, []func(*publisher.Policy){pinned}, false},
		"unproven and never used": {[]string{other}, []func(*publisher.Policy){unproven}, true},
		"unproven, pinned": {
			[]string{record}, []func(*publisher.Policy){
				unproven, pinned, func(p *publisher.Policy) { p.UsedKey = otherKey.String() },
			}, true,
		},
		"a broken record and the key": {
			[]string{"v=MCPv1; k=ed25519", record}, []func(*publisher.Policy){pinned}, true,
		},
		"a broken record only": {[]string{"v=MCPv1; k=ed25519"}, nil, false},
		"unproven, with the key of its use": {
			[]string{record}, []func(*publisher.Policy){
				unproven, func(p *publisher.Policy) { p.UsedKey = key.String() },
			}, true,
		},
		"unproven, with another than its use": {
			[]string{other}, []func(*publisher.Policy){
				unproven, func(p *publisher.Policy) { p.UsedKey = key.String() },
			}, false,
		},
	} {
		fx := newRecheckFixture(t)
		fx.addPolicy(t, "p1", test.changes...)
		fx.texts = test.texts
		fx.check(t)
		if p := fx.policy(t, "p1"); p.GoneSince.IsZero() != test.found {
			t.Errorf("%s: gone since %s, want found = %v", name, p.GoneSince, test.found)
		}
	}
}

func TestNoAnswerChangesNothingAndIsTriedEarlier(t *testing.T) {
	t.Parallel()
	for name, goneSince := range map[string]time.Time{"there": {}, "gone": epoch.Add(-time.Hour)} {
		fx := newRecheckFixture(t)
		fx.addPolicy(t, "p1", func(p *publisher.Policy) { p.GoneSince = goneSince })
		fx.err = fault.New(fault.Unavailable, "no answer")
		fx.check(t)
		if p := fx.policy(t, "p1"); !p.GoneSince.Equal(goneSince) || len(fx.events)+len(fx.notices) != 0 {
			t.Errorf("%s: gone since %s, events %+v, notices %+v", name, p.GoneSince, fx.events, fx.notices)
		}
		fx.clock.Advance(59 * time.Minute)
		fx.checkNow(t)
		if len(fx.lookups) != 1 {
			t.Errorf("%s: looked up again before an hour is over", name)
		}
		fx.clock.Advance(2 * time.Minute)
		fx.checkNow(t)
		if len(fx.lookups) != 2 {
			t.Errorf("%s: not looked up again after an hour", name)
		}
	}
}

func TestPolicyOfAnOperatorHasNoNotice(t *testing.T) {
	t.Parallel()
	fx := newRecheckFixture(t)
	fx.addPolicy(t, "p1", func(p *publisher.Policy) { p.CreatedBy = "" })
	fx.check(t)
	if len(fx.events) != 1 || len(fx.notices) != 0 {
		t.Errorf("events %+v, notices %+v", fx.events, fx.notices)
	}
}

// TestTwoRunnersLookUpOnce runs a second instance while the first one waits for a domain, or after
// the first one has found the policy.
func TestTwoRunnersLookUpOnce(t *testing.T) {
	t.Parallel()
	for name, interrupt := range map[string]func(fx *recheckFixture, other func()){
		"during the lookup": func(fx *recheckFixture, other func()) { fx.during = other },
		"before the lookup": func(fx *recheckFixture, other func()) { fx.store.between = other },
	} {
		fx := newRecheckFixture(t)
		fx.addPolicy(t, "p1")
		interrupt(fx, func() {
			if err := delegating.NewRechecker(fx.config, fx.ports).CheckDue(t.Context()); err != nil {
				t.Error(err)
			}
		})
		fx.check(t)
		if len(fx.lookups) != 1 || len(fx.events) != 1 {
			t.Errorf("%s: %d lookups, events %+v", name, len(fx.lookups), fx.events)
		}
	}
}

func TestPolicyIsRemovedDuringItsCheck(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{"no key": nil, "no answer": fault.New(fault.Unavailable, "no answer")} {
		fx := newRecheckFixture(t)
		fx.addPolicy(t, "p1")
		fx.err = failure
		fx.during = func() {
			if err := fx.store.Remove(t.Context(), "p1"); err != nil {
				t.Error(err)
			}
		}
		fx.check(t)
		if len(fx.events)+len(fx.notices) != 0 {
			t.Errorf("%s: events %+v, notices %+v", name, fx.events, fx.notices)
		}
	}
}

// TestRun starts with a policy that is due, and ends after three waits or with its context.
func TestRun(t *testing.T) {
	t.Parallel()
	ended, end := context.WithCancel(t.Context())
	end()
	for name, test := range map[string]struct {
		ctx                     context.Context
		mode                    publisher.Mode
		err                     error // of the store
		waits, lookups, reports int
	}{
		"works":    {t.Context(), publisher.ByPolicies, nil, 3, 1, 0},
		"ended":    {ended, publisher.ByPolicies, nil, 1, 0, 0},
		"fails":    {t.Context(), publisher.ByPolicies, fault.New(fault.Unavailable, "away"), 3, 0, 3},
		"switched": {t.Context(), publisher.Off, nil, 0, 0, 0},
	} {
		fx := newRecheckFixture(t)
		fx.addPolicy(t, "p1", func(p *publisher.Policy) { p.CheckedAt = epoch.Add(-interval).Add(-time.Second) })
		fx.until, fx.config.Mode, fx.store.err = 3, test.mode, test.err
		delegating.NewRechecker(fx.config, fx.ports).Run(test.ctx)
		if len(fx.lookups) != test.lookups || len(fx.failed) != test.reports ||
			!slices.Equal(fx.waits, slices.Repeat([]time.Duration{time.Minute}, test.waits)) {
			t.Errorf("%s: lookups %q, failures %v, waits %v", name, fx.lookups, fx.failed, fx.waits)
		}
		for _, err := range fx.failed {
			wantFault(t, err, fault.Unavailable, "%s: the report", name)
		}
	}
}
