package delegating_test

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/core/scope"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/domainkeys"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/test/fakedb"
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
	store   *fakedb.Policies
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
	fx := &recheckFixture{store: fakedb.NewPolicies(db), clock: clocktest.NewManual(epoch)}
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

// newRecord returns the record of a key that depends on the seed only, and the key.
func newRecord(t *testing.T, seed string) (string, publisher.Key) {
	t.Helper()
	public, _ := ed25519.NewKeyFromSeed([]byte(strings.Repeat(seed, ed25519.SeedSize))).Public().(ed25519.PublicKey)
	text := base64.StdEncoding.EncodeToString(public)
	key, err := publisher.ParseKey(publisher.Ed25519, text)
	if err != nil {
		t.Fatal(err)
	}
	return "v=MCPv1; k=ed25519; p=" + text, key
}

func (fx *recheckFixture) addPolicy(t *testing.T, id publisher.PolicyID, changes ...func(*publisher.Policy)) {
	t.Helper()
	p, err := publisher.NewPolicy(publisher.Draft{Method: "dns", Domain: "example.com", Pattern: "com.example/*"},
		publisher.Rules{}, fx.clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	p.ID, p.CreatedBy = id, "ada"
	for _, change := range changes {
		change(&p)
	}
	if err := fx.store.Add(t.Context(), p); err != nil {
		t.Fatal(err)
	}
}

func (fx *recheckFixture) policy(t *testing.T, id publisher.PolicyID) publisher.Policy {
	t.Helper()
	found, err := fx.store.Find(t.Context(), registrystore.PolicyQuery{IDs: []publisher.PolicyID{id}})
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
	if err := fx.runner.CheckDue(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (fx *recheckFixture) requireState(t *testing.T, what string, want publisher.State) {
	t.Helper()
	p := fx.policy(t, "p1")
	if got := p.State(fx.clock.Now(), unprovenAfter); got != want {
		t.Errorf("%s: the policy is %s, want %s", what, got, want)
	}
}

func TestDuePoliciesAreChecked(t *testing.T) {
	t.Parallel()
	fx := newRecheckFixture(t)
	record, _ := newRecord(t, "a")
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
		fx.addPolicy(t, publisher.PolicyID(fmt.Sprintf("p%03d", i)))
	}
	fx.check(t)
	if len(fx.lookups) != 250 {
		t.Errorf("%d lookups, want one for each of 250 policies", len(fx.lookups))
	}
}

// TestKeyIsGone follows a policy whose key disappears and comes back (contract P-14).
func TestKeyIsGone(t *testing.T) {
	t.Parallel()
	fx := newRecheckFixture(t)
	record, key := newRecord(t, "a")
	other, _ := newRecord(t, "b")
	fx.addPolicy(t, "p1", func(p *publisher.Policy) { p.LastUsedAt, p.UsedKey = epoch, key.String() })
	fx.err = fault.New(fault.Unauthenticated, "the domain does not exist")
	fx.check(t)
	gone := fx.clock.Now()
	fx.requireState(t, "gone for the first time", publisher.Active)
	wantEvent := authority.ProofAttempt{
		Method: publisher.DNS, Domain: "example.com", Policies: []publisher.PolicyID{"p1"},
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
	record, key := newRecord(t, "a")
	other, otherKey := newRecord(t, "b")
	unproven := func(p *publisher.Policy) { p.GoneSince = epoch.Add(-unprovenAfter) }
	pinned := func(p *publisher.Policy) {
		f, err := publisher.ParseFingerprint(key.Fingerprint())
		if err != nil {
			t.Fatal(err)
		}
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

// TestTwoRunnersLookUpOnce runs a second instance while the first one waits for a domain.
func TestTwoRunnersLookUpOnce(t *testing.T) {
	t.Parallel()
	fx := newRecheckFixture(t)
	fx.addPolicy(t, "p1")
	other := delegating.NewRechecker(fx.config, fx.ports)
	fx.during = func() {
		if err := other.CheckDue(t.Context()); err != nil {
			t.Error(err)
		}
	}
	fx.check(t)
	if len(fx.lookups) != 1 || len(fx.events) != 1 {
		t.Errorf("%d lookups, events %+v", len(fx.lookups), fx.events)
	}
}

// changingPolicies calls a function after the first search, before the caller takes a policy.
type changingPolicies struct {
	registrystore.Policies
	between func()
}

func (p *changingPolicies) Find(ctx context.Context, q registrystore.PolicyQuery) ([]publisher.Policy, error) {
	found, err := p.Policies.Find(ctx, q)
	if between := p.between; between != nil {
		p.between = nil
		between()
	}
	return found, err
}

// TestTwoRunnersFindThePolicy lets a second instance check a policy after the first one has found
// it.
func TestTwoRunnersFindThePolicy(t *testing.T) {
	t.Parallel()
	fx := newRecheckFixture(t)
	fx.addPolicy(t, "p1")
	first := fx.ports
	first.Policies = &changingPolicies{fx.store, func() { fx.checkNow(t) }}
	fx.clock.Advance(interval + time.Second)
	if err := delegating.NewRechecker(fx.config, first).CheckDue(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(fx.lookups) != 1 || len(fx.events) != 1 {
		t.Errorf("%d lookups, events %+v", len(fx.lookups), fx.events)
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

func TestRun(t *testing.T) {
	t.Parallel()
	fx := newRecheckFixture(t)
	fx.addPolicy(t, "p1", func(p *publisher.Policy) { p.CheckedAt = epoch.Add(-interval).Add(-time.Second) })
	fx.until = 3
	fx.runner.Run(t.Context())
	if len(fx.lookups) != 1 || len(fx.failed) != 0 ||
		!slices.Equal(fx.waits, []time.Duration{time.Minute, time.Minute, time.Minute}) {
		t.Errorf("lookups %q, failures %v, waits %v", fx.lookups, fx.failed, fx.waits)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	fx := newRecheckFixture(t)
	fx.until = 1000
	ctx, stop := context.WithCancel(t.Context())
	stop()
	fx.runner.Run(ctx)
	if len(fx.waits) != 1 || len(fx.failed) != 0 {
		t.Errorf("%d waits, failures %v", len(fx.waits), fx.failed)
	}
}

// awayPolicies cannot be searched.
type awayPolicies struct{ registrystore.Policies }

func (awayPolicies) Find(context.Context, registrystore.PolicyQuery) ([]publisher.Policy, error) {
	return nil, fault.New(fault.Unavailable, "the database is away")
}

func TestRunReportsFailures(t *testing.T) {
	t.Parallel()
	fx := newRecheckFixture(t)
	fx.until, fx.ports.Policies = 2, awayPolicies{}
	delegating.NewRechecker(fx.config, fx.ports).Run(t.Context())
	if len(fx.failed) != 2 || !fault.Is(fx.failed[0], fault.Unavailable) {
		t.Errorf("failures %v, want one for each run", fx.failed)
	}
}

func TestRunDoesNothingWhileProofsAreOff(t *testing.T) {
	t.Parallel()
	fx := newRecheckFixture(t)
	fx.config.Mode = publisher.Off
	fx.addPolicy(t, "p1", func(p *publisher.Policy) { p.CheckedAt = time.Time{} })
	delegating.NewRechecker(fx.config, fx.ports).Run(t.Context())
	if len(fx.waits)+len(fx.lookups) != 0 {
		t.Errorf("%d waits, lookups %q", len(fx.waits), fx.lookups)
	}
}
