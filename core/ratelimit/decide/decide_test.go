package decide_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/test/must"
)

const (
	ok   = ratelimit.OK
	over = ratelimit.OverLimit
)

// now is ten seconds into a minute.
var now = time.Unix(1_700_000_000/60*60+10, 0)

// rules returns a function that returns the set.
func rules(set *ruleset.Set) func() *ruleset.Set { return func() *ruleset.Set { return set } }

// failingStore is a store that always fails.
type failingStore struct{ counter.Store }

var errAway = fault.New(fault.Unavailable, "the counter store does not answer")

func (failingStore) Count(context.Context, []counter.Hit, []counter.Result, counter.Mode) error {
	return errAway
}

// recorder keeps the hits that it lets through.
type recorder struct {
	counter.Store
	hits []counter.Hit
}

func (r *recorder) Count(ctx context.Context, hits []counter.Hit, results []counter.Result, m counter.Mode) error {
	r.hits = append(r.hits, hits...)
	return r.Store.Count(ctx, hits, results, m)
}

type rule = ruleset.Descriptor

func text(s string) ruleset.Text { return ruleset.Text{Value: s} }

func perMinute(n uint32) *ruleset.Limit {
	return &ruleset.Limit{Unit: &ruleset.Text{Value: "minute"}, Requests: &ruleset.Requests{Count: n}}
}

func withName(l *ruleset.Limit, name ratelimit.Name, replaces ...string) *ruleset.Limit {
	l.Name = name
	for _, r := range replaces {
		l.Replaces = append(l.Replaces, text(r))
	}
	return l
}

func keyRule(key string, limit *ruleset.Limit, changes ...func(*rule)) rule {
	r := rule{Key: text(key), Limit: limit}
	for _, change := range changes {
		change(&r)
	}
	return r
}

func inShadow(r *rule) { on := true; r.Shadow = &on }
func quota(r *rule)    { r.QuotaMode = true }
func detailed(r *rule) { r.DetailedMetric = true }

func stopWhenOver(c *decide.Config, _ *decide.Ports) { c.StopWhenOver = true }

// fixture is a Decider and its dependencies.
type fixture struct {
	*decide.Decider
	set   *ruleset.Set
	clock *clocktest.Manual
	store *recorder
}

func newFixture(t testing.TB, change func(*decide.Config, *decide.Ports), list ...rule) *fixture {
	t.Helper()
	set, err := ruleset.Compile([]ruleset.Source{{Domain: text("d"), Descriptors: list}}, ruleset.Options{})
	must.Succeed(t, err)
	b := &fixture{set: set, clock: clocktest.NewManual(now)}
	b.store = &recorder{Store: memory.NewCounters(b.clock, memory.Config{MaxCounters: 10_000})}
	config := decide.Config{NearLimitRatio: 0.8, JitterMax: 300 * time.Second, MaxSeries: 100}
	ports := decide.Ports{Rules: rules(set), Counters: b.store, Clock: b.clock}
	if change != nil {
		change(&config, &ports)
	}
	if b.Decider, err = decide.New(config, ports); err != nil {
		t.Fatal(err)
	}
	return b
}

// newRequest returns a request with one descriptor for each path of "key=value" pairs.
func newRequest(paths ...string) *ratelimit.Request {
	r := &ratelimit.Request{Domain: "d"}
	for _, p := range paths {
		var d ratelimit.Descriptor
		for pair := range strings.SplitSeq(p, ",") {
			key, value, _ := strings.Cut(pair, "=")
			d.Entries = append(d.Entries, ratelimit.Entry{Key: key, Value: value})
		}
		r.Descriptors = append(r.Descriptors, d)
	}
	return r
}

func (b *fixture) mustDecide(t testing.TB, r *ratelimit.Request) ratelimit.Decision {
	t.Helper()
	d, err := b.Decide(t.Context(), r)
	must.Succeed(t, err)
	return d
}

// checkCodes checks the overall code and those of the statuses.
func checkCodes(t testing.TB, d ratelimit.Decision, overall ratelimit.Code, statuses ...ratelimit.Code) {
	t.Helper()
	wantEqual(t, d.Code, overall, "overall code")
	if len(d.Statuses) != len(statuses) {
		t.Fatalf("%d statuses, want %d", len(d.Statuses), len(statuses))
	}
	for i, want := range statuses {
		wantEqual(t, d.Statuses[i].Code, want, "status %d: code", i)
	}
}

func TestLimit(t *testing.T) {
	b := newFixture(t, nil, keyRule("k", perMinute(2)))
	for i, want := range []struct {
		code      ratelimit.Code
		remaining uint32
	}{{ok, 1}, {ok, 0}, {over, 0}} {
		d := b.mustDecide(t, newRequest("k=v"))
		checkCodes(t, d, want.code, want.code)
		s := d.Statuses[0]
		if s.Remaining != want.remaining || s.UntilReset != 50*time.Second ||
			s.Limit != (ratelimit.Limit{RequestsPerUnit: 2, Unit: ratelimit.Minute}) {
			t.Errorf("call %d: %+v", i, s)
		}
	}
	checkCodes(t, b.mustDecide(t, newRequest("k=other")), ok, ok)
	b.clock.Advance(50 * time.Second)
	checkCodes(t, b.mustDecide(t, newRequest("k=v")), ok, ok)
}

func TestNoRule(t *testing.T) {
	b := newFixture(t, nil, keyRule("k", perMinute(0)), keyRule("open", nil))
	d := b.mustDecide(t, newRequest("k=v,k=v", "open=x", "none=x"))
	checkCodes(t, d, ok, ok, ok, ok)
	for _, s := range d.Statuses {
		if s != (ratelimit.Status{Code: ok}) {
			t.Errorf("%+v is more than a code", s)
		}
	}
	r := newRequest("k=v")
	r.Domain = "unknown"
	checkCodes(t, b.mustDecide(t, r), ok, ok)
}

func TestZeroBlocksEvenLooks(t *testing.T) {
	b := newFixture(t, nil, keyRule("k", perMinute(0)))
	checkCodes(t, b.mustDecide(t, newRequest("k=v")), over, over)
	r := newRequest("k=v")
	r.Descriptors[0].Hits = new(uint64)
	checkCodes(t, b.mustDecide(t, r), over, over)
}

func TestHits(t *testing.T) {
	b := newFixture(t, nil, keyRule("k", perMinute(10)))
	remaining := func(want uint32, change func(*ratelimit.Request)) {
		t.Helper()
		r := newRequest("k=v")
		change(r)
		wantEqual(t, b.mustDecide(t, r).Statuses[0].Remaining, want, "the remaining requests")
	}
	hits := func(n uint64) *uint64 { return &n }
	remaining(9, func(*ratelimit.Request) {})
	remaining(6, func(r *ratelimit.Request) { r.Hits = 3 })
	remaining(4, func(r *ratelimit.Request) { r.Hits, r.Descriptors[0].Hits = 9, hits(2) })
	remaining(4, func(r *ratelimit.Request) { r.Descriptors[0].Hits = hits(0) })
	remaining(6, func(r *ratelimit.Request) { r.Descriptors[0].Hits, r.Descriptors[0].GiveBack = hits(2), true })
	r := newRequest("k=v")
	r.Hits = 7
	checkCodes(t, b.mustDecide(t, r), over, over)
	r.Descriptors[0].Hits = hits(0)
	checkCodes(t, b.mustDecide(t, r), over, over)
	for range b.set.Rules() {
		for rule := range b.set.Rules() {
			wantEqual(t, rule.Hits.Total(), 1+3+2+7, "hits in all")
		}
	}
}

func TestUnlimited(t *testing.T) {
	b := newFixture(t, nil, keyRule("k", &ruleset.Limit{Unlimited: true}))
	d := b.mustDecide(t, newRequest("k=v"))
	checkCodes(t, d, ok, ok)
	wantEqual(t, d.Statuses[0], (ratelimit.Status{Code: ok, Remaining: 4294967295}), "the result")
	if len(b.store.hits) != 0 {
		t.Error("the store was called")
	}
	for rule := range b.set.Rules() {
		if rule.Hits.Total() != 1 || rule.Hits.Within.Load() != 1 {
			t.Error("the hit does not show in the statistics")
		}
	}
}

func TestReplaces(t *testing.T) {
	b := newFixture(t, nil,
		keyRule("a", withName(perMinute(0), "a")),
		keyRule("b", withName(perMinute(5), "b", "a")),
		keyRule("free", withName(&ruleset.Limit{Unlimited: true}, "free", "b")),
		keyRule("c", withName(perMinute(5), "c", "free")),
	)
	d := b.mustDecide(t, newRequest("a=1", "b=1"))
	checkCodes(t, d, ok, ok, ok)
	if d.Statuses[0].HasLimit() || len(b.store.hits) != 1 {
		t.Errorf("the replaced limit shows: %+v, %d hits", d.Statuses[0], len(b.store.hits))
	}
	checkCodes(t, b.mustDecide(t, newRequest("a=1")), over, over)
	d = b.mustDecide(t, newRequest("free=1", "b=1", "c=1"))
	if d.Statuses[0].Remaining != ratelimit.Unlimited || d.Statuses[1].HasLimit() || !d.Statuses[2].HasLimit() {
		t.Errorf("an unlimited limit replaces and is not replaced: %+v", d.Statuses)
	}
}

// TestReplacesAmongMany resolves one request of the greatest size: work for each pair of its
// descriptors would take minutes.
func TestReplacesAmongMany(t *testing.T) {
	b := newFixture(t, nil, keyRule("a", withName(perMinute(5), "a", "b")), keyRule("b", withName(perMinute(5), "b")))
	paths := make([]string, 100_000)
	for i := range paths {
		paths[i] = "a=1"
	}
	paths[len(paths)-1] = "b=1"
	d := b.mustDecide(t, newRequest(paths...))
	if last := &d.Statuses[len(paths)-1]; last.HasLimit() || !d.Statuses[0].HasLimit() {
		t.Errorf("first %+v, last %+v", d.Statuses[0], *last)
	}
}

func TestShadow(t *testing.T) {
	b := newFixture(t, nil, keyRule("k", perMinute(1), inShadow))
	b.mustDecide(t, newRequest("k=v"))
	d := b.mustDecide(t, newRequest("k=v"))
	checkCodes(t, d, ok, ok)
	for rule := range b.set.Rules() {
		if rule.Hits.Shadow.Load() != 1 || rule.Hits.Over.Load() != 1 {
			t.Errorf("shadow %d, over %d", rule.Hits.Shadow.Load(), rule.Hits.Over.Load())
		}
	}
	b = newFixture(t, func(c *decide.Config, _ *decide.Ports) { c.Shadow = true }, keyRule("k", perMinute(0)))
	checkCodes(t, b.mustDecide(t, newRequest("k=v")), ok, over)
	if b.Stats().GlobalShadow.Load() != 1 {
		t.Error("global shadow mode does not show in the statistics")
	}
}

func TestQuota(t *testing.T) {
	b := newFixture(t, nil, keyRule("a", perMinute(0), quota), keyRule("b", perMinute(1), quota),
		keyRule("c", perMinute(0)))
	checkCodes(t, b.mustDecide(t, newRequest("a=1", "b=1")), ok, over, ok)
	checkCodes(t, b.mustDecide(t, newRequest("a=1", "b=1")), over, over, over)
	checkCodes(t, b.mustDecide(t, newRequest("a=1")), over, over)
	checkCodes(t, b.mustDecide(t, newRequest("b=2", "c=1")), over, ok, over)
}

// TestQuotaWithoutALimit: an unlimited descriptor has no quota. One without a rule, and one whose
// rule is replaced, are within theirs with QUOTA_MODE, and have no quota otherwise.
func TestQuotaWithoutALimit(t *testing.T) {
	free, spent := keyRule("free", &ruleset.Limit{Unlimited: true}, quota), keyRule("spent", perMinute(0), quota)
	gone := keyRule("gone", withName(perMinute(5), "gone"), quota)
	instead := keyRule("instead", withName(perMinute(0), "", "gone"), quota)
	tests := []struct {
		name   string
		ask    []string
		codes  []ratelimit.Code
		global ratelimit.Code // with QUOTA_MODE
		each   ratelimit.Code // with quota_mode of the rules
	}{
		{"unlimited", []string{"spent=1", "free=1"}, []ratelimit.Code{over, ok}, over, over},
		{"unlimited first", []string{"free=1", "spent=1"}, []ratelimit.Code{ok, over}, over, over},
		{"unlimited alone", []string{"free=1"}, []ratelimit.Code{ok}, ok, ok},
		{"no rule", []string{"spent=1", "nobody=1"}, []ratelimit.Code{over, ok}, ok, over},
		{"replaced", []string{"gone=1", "instead=1"}, []ratelimit.Code{ok, over}, ok, over},
		{"no rule and unlimited", []string{"spent=1", "nobody=1", "free=1"}, []ratelimit.Code{over, ok, ok}, ok, over},
		{"no rule alone", []string{"nobody=1"}, []ratelimit.Code{ok}, ok, ok},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newFixture(t, nil, free, spent, gone, instead)
			checkCodes(t, b.mustDecide(t, newRequest(test.ask...)), test.each, test.codes...)
			b = newFixture(t, func(c *decide.Config, _ *decide.Ports) { c.Quota = true }, free, spent, gone, instead)
			checkCodes(t, b.mustDecide(t, newRequest(test.ask...)), test.global, test.codes...)
		})
	}
}

func TestOverride(t *testing.T) {
	b := newFixture(t, nil, keyRule("k", perMinute(0)))
	r := newRequest("k=v")
	r.Descriptors[0].Override = &ratelimit.Limit{RequestsPerUnit: 3, Unit: ratelimit.Hour}
	d := b.mustDecide(t, r)
	checkCodes(t, d, ok, ok)
	if d.Statuses[0].Remaining != 2 || d.Statuses[0].Limit.Unit != ratelimit.Hour {
		t.Errorf("%+v", d.Statuses[0])
	}
	r.Domain = "unknown"
	if d = b.mustDecide(t, r); d.Statuses[0].HasLimit() {
		t.Error("an override counts in an unknown domain")
	}
	r.Descriptors[0].Override.Unit = ratelimit.NoUnit
	if _, err := b.Decide(t.Context(), r); !fault.Is(err, fault.Invalid) {
		t.Errorf("an override without a unit: %v", err)
	}
}

func TestStopWhenOver(t *testing.T) {
	b := newFixture(t, stopWhenOver, keyRule("a", perMinute(5)), keyRule("b", perMinute(1)))
	checkCodes(t, b.mustDecide(t, newRequest("a=1", "b=1")), ok, ok, ok)
	d := b.mustDecide(t, newRequest("a=1", "b=1"))
	checkCodes(t, d, over, ok, over)
	wantEqual(t, d.Statuses[0].Remaining, 4, "remain of the other limit")
	wantEqual(t, b.mustDecide(t, newRequest("a=1")).Statuses[0].Remaining, 3, "remain afterwards")
	// A limit of zero is over also for who only looks, so nothing else is counted.
	b = newFixture(t, stopWhenOver, keyRule("a", perMinute(5)), keyRule("b", perMinute(0)))
	look := newRequest("a=1", "b=1")
	look.Descriptors[1].Hits = new(uint64)
	checkCodes(t, b.mustDecide(t, look), over, ok, over)
	wantEqual(t, b.mustDecide(t, newRequest("a=1")).Statuses[0].Remaining, 4, "remain")
}

func TestRefuses(t *testing.T) {
	b := newFixture(t, func(c *decide.Config, _ *decide.Ports) {
		c.MaxDescriptors, c.MaxDescriptorsName = 2, "MAX_DESCRIPTORS"
	}, keyRule("k", perMinute(1)))
	tests := map[string]struct {
		change func(*ratelimit.Request)
		want   string
	}{
		"empty domain": {func(r *ratelimit.Request) { r.Domain = "" }, "rate limit domain must not be empty"},
		"no descriptors": {
			func(r *ratelimit.Request) { r.Descriptors = nil }, "rate limit descriptor list must not be empty",
		},
		"too many descriptors": {func(r *ratelimit.Request) {
			r.Descriptors = newRequest("k=1", "k=2", "k=3").Descriptors
		},
			"the request has 3 descriptors, more than the 2 that MAX_DESCRIPTORS allows; send several requests"},
		"too many hits": {func(r *ratelimit.Request) {
			n := uint64(1 << 32)
			r.Descriptors[0].Hits = &n
		}, "hits_addend of a descriptor must be at most 4294967295"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRequest("k=v")
			test.change(r)
			_, err := b.Decide(t.Context(), r)
			if !fault.Is(err, fault.Invalid) || err.Error() != test.want {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
	wantEqual(t, b.Stats().ServiceErrors.Load(), uint64(len(tests)), "service errors")
}

func TestBeforeAnyConfiguration(t *testing.T) {
	b := newFixture(t, func(_ *decide.Config, p *decide.Ports) { p.Rules = rules(nil) })
	_, err := b.Decide(t.Context(), newRequest("k=v"))
	if f, isFault := fault.As(err); !isFault || f.Code != decide.CodeNoConfiguration {
		t.Errorf("got %v", err)
	}
}

func TestFailureModes(t *testing.T) {
	list := []rule{keyRule("k", perMinute(1)), keyRule("free", &ruleset.Limit{Unlimited: true})}
	with := func(m decide.FailureMode) *fixture {
		return newFixture(t, func(c *decide.Config, p *decide.Ports) {
			c.FailureMode, p.Local, p.Counters = m, p.Counters, failingStore{}
		}, list...)
	}
	if _, err := with(decide.FailError).Decide(t.Context(), newRequest("k=v")); !errors.Is(err, errAway) {
		t.Errorf("error: got %v", err)
	}
	b := with(decide.FailOpen)
	checkCodes(t, b.mustDecide(t, newRequest("k=v", "none=x")), ok, ok, ok)
	if b.Stats().FailedOpen.Load() != 1 || b.Stats().StoreErrors.Load() != 1 {
		t.Error("open: the statistics do not count it")
	}
	checkCodes(t, with(decide.FailClosed).mustDecide(t, newRequest("k=v", "none=x", "free=x")), over, over, ok, ok)
	b = with(decide.FailLocal)
	checkCodes(t, b.mustDecide(t, newRequest("k=v")), ok, ok)
	checkCodes(t, b.mustDecide(t, newRequest("k=v")), over, over)
	checkCodes(t, with(decide.FailError).mustDecide(t, newRequest("none=x")), ok, ok)
}

func TestNewRefuses(t *testing.T) {
	ports := decide.Ports{Rules: rules(nil), Counters: failingStore{}, Clock: clocktest.NewManual(time.Time{})}
	tests := map[string]decide.Config{
		"ratio":      {NearLimitRatio: 1.1},
		"prefix":     {Prefix: "a b"},
		"jitter":     {JitterMax: -1},
		"local":      {FailureMode: decide.FailLocal},
		"max series": {MaxSeries: -1},
	}
	for name, config := range tests {
		if _, err := decide.New(config, ports); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := decide.New(decide.Config{}, decide.Ports{}); err == nil {
		t.Error("no ports: accepted")
	}
}

// TestCallerGoesAway: a call that its caller cancelled is no failure of the store; one whose
// deadline passed while the store did not answer is.
func TestCallerGoesAway(t *testing.T) {
	b := newFixture(t, func(c *decide.Config, p *decide.Ports) {
		p.Counters, c.FailureMode = failingStore{}, decide.FailOpen
	}, keyRule("k", perMinute(5)))
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Decide(cancelled, newRequest("k=v")); err == nil {
		t.Error("a cancelled call is answered")
	}
	if n := b.Stats().StoreErrors.Load() + b.Stats().FailedOpen.Load(); n != 0 {
		t.Errorf("a cancelled call counts as %d failures", n)
	}
	late, stop := context.WithTimeout(t.Context(), 0)
	defer stop()
	if _, err := b.Decide(late, newRequest("k=v")); err != nil {
		t.Error(err)
	}
	wantEqual(t, b.Stats().StoreErrors.Load(), 1, "store errors")
}

// wantEqual checks that both are deeply equal.
func wantEqual[V any](t testing.TB, got, want V, what string, args ...any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf(what+": got %v, want %v", append(args, got, want)...)
	}
}
