package outages

import (
	"context"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/must"
)

const (
	// instances is the number of instances that share a store.
	instances = 3
	// kills is how often an instance is killed.
	kills = 3
	// callsBetweenKills is the number of calls before a kill, and again before the instance is
	// back.
	callsBetweenKills = 400
)

// killLimits are the limits of the keys in killRules, by the value of the descriptor.
var killLimits = map[string]killLimit{
	"fixed_second":   {unit: time.Second, limit: 30},
	"fixed_minute":   {unit: time.Minute, limit: 600},
	"sliding_second": {unit: time.Second, limit: 30, sliding: true},
	"sliding_minute": {unit: time.Minute, limit: 600, sliding: true},
	"bucket_second":  {unit: time.Second, limit: 30, burst: 10},
	"bucket_minute":  {unit: time.Minute, limit: 600, burst: 200},
}

const killRules = `domain: kills
descriptors:
  - {key: key, value: fixed_second, rate_limit: {unit: second, requests_per_unit: 30}}
  - {key: key, value: fixed_minute, rate_limit: {unit: minute, requests_per_unit: 600}}
  - {key: key, value: sliding_second, rate_limit: {unit: second, requests_per_unit: 30, algorithm: sliding_window}}
  - {key: key, value: sliding_minute, rate_limit: {unit: minute, requests_per_unit: 600, algorithm: sliding_window}}
  - {key: key, value: bucket_second, rate_limit: {unit: second, requests_per_unit: 30, algorithm: token_bucket, burst: 10}}
  - {key: key, value: bucket_minute, rate_limit: {unit: minute, requests_per_unit: 600, algorithm: token_bucket, burst: 200}}
`

// TestKilledInstances kills instances that share a store, one after the other, under load. No limit
// admits more than its bound, and none admits fewer hits than the limit while it refuses others,
// but for the hits whose responses were lost.
//
// With TEST_KILL_EVERY, for example 1m, an instance is killed at that interval.
func TestKilledInstances(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		environ []string
		// lost is the part of the limit of a fixed window that is held or lost by other instances.
		lost float64
	}{
		"each hit in the store": {nil, 0},
		"with leases":           {[]string{"COUNTER_LEASES=auto"}, (kills + instances - 1) * 0.05}, // contract L-70
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := startValkey(t)
			g := startReplicas(t, append(c.environ, "KVSTORE_URL="+v.Address)...)
			calls := g.loadAndKill()
			outcomes := map[string]int{}
			for key, limit := range killLimits {
				events := calls[key]
				for _, e := range events {
					outcomes[key+" "+e.outcome]++
				}
				limit.checkMost(t, key, events)
				lost := c.lost
				if limit.sliding || limit.burst > 0 { // these have no leases
					lost = 0
				}
				limit.checkLeast(t, key, events, lost)
			}
			for _, key := range slices.Sorted(maps.Keys(outcomes)) {
				t.Logf("%s: %d", key, outcomes[key])
			}
		})
	}
}

// replicas are the instances that share a store. Instances come and go while callers use it.
type replicas struct {
	t       *testing.T
	environ []string
	members [instances]atomic.Pointer[replica]
}

type replica struct {
	*service
	client ratelimit.RateLimitServiceClient
}

func startReplicas(t *testing.T, environ ...string) *replicas {
	t.Helper()
	g := &replicas{t: t, environ: environ}
	for i := range g.members {
		g.startReplica(i)
	}
	return g
}

func (g *replicas) startReplica(i int) {
	s := startProcess(g.t, g.environ...)
	s.writeRules("kills.yaml", killRules)
	await.Until(g.t, "the rules of the test in force", func() bool {
		return s.readStat("ratelimit.service.config_load_success") > 1
	})
	g.members[i].Store(&replica{s, ratelimit.NewRateLimitServiceClient(dialService(g.t, 1, s.GRPC)[0])})
}

// killEvent is a call of one key: when it began and ended on the clock of the machine, which all
// instances and the store share, and the outcome.
type killEvent struct {
	began, ended time.Time
	outcome      string
}

// failed is the outcome of a call without a response. Its hits may have been counted.
const failed = "failed"

// loadAndKill calls all instances without a pause, kills each in turn, starts it again, and returns
// the calls of each key.
func (g *replicas) loadAndKill() map[string][]killEvent {
	g.t.Helper()
	var (
		made    atomic.Int64
		stopped atomic.Bool
		all     sync.WaitGroup
		results [callers]map[string][]killEvent
	)
	for caller := range callers {
		results[caller] = map[string][]killEvent{}
		all.Go(func() {
			ticker := time.NewTicker(pace)
			defer ticker.Stop()
			for n := caller; !stopped.Load(); n++ {
				g.call(n, results[caller])
				made.Add(1)
				<-ticker.C
			}
		})
	}
	finish := sync.OnceFunc(func() { stopped.Store(true); all.Wait() })
	defer finish() // also if the test fails
	wait := func() {
		before := made.Load()
		await.Until(g.t, "further calls", func() bool { return made.Load() >= before+callsBetweenKills })
	}
	if every := os.Getenv("TEST_KILL_EVERY"); every != "" {
		interval, err := time.ParseDuration(every)
		must.Succeed(g.t, err)
		wait = func() { <-time.After(interval / 2) }
	}
	for n := range kills {
		wait()
		dead := g.members[n%instances].Load()
		dead.Kill()
		g.members[n%instances].Store(nil)
		wait()
		g.startReplica(n % instances)
	}
	finish()
	calls := map[string][]killEvent{}
	for _, r := range results {
		for key, events := range r {
			calls[key] = append(calls[key], events...)
		}
	}
	return calls
}

// call makes one call for all keys, to the instance whose turn it is, or to the next one that runs.
func (g *replicas) call(n int, calls map[string][]killEvent) {
	keys := slices.Sorted(maps.Keys(killLimits))
	r := &ratelimit.RateLimitRequest{Domain: "kills"}
	for _, key := range keys {
		r.Descriptors = append(r.Descriptors, &common.RateLimitDescriptor{
			Entries: []*common.RateLimitDescriptor_Entry{{Key: "key", Value: key}},
		})
	}
	m := g.members[n%instances].Load()
	for ; m == nil; n++ {
		m = g.members[n%instances].Load()
	}
	began := time.Now()
	answer, err := m.client.ShouldRateLimit(context.Background(), r)
	for i, key := range keys {
		e := killEvent{began, time.Now(), failed}
		switch {
		case err != nil:
		case answer.GetStatuses()[i].GetCode() == ratelimit.RateLimitResponse_OVER_LIMIT:
			e.outcome = over
		case answer.GetStatuses()[i].GetCurrentLimit() == nil:
			e.outcome = open
		default:
			e.outcome = counted
		}
		calls[key] = append(calls[key], e)
	}
}

// killLimit is a limit of the test.
type killLimit struct {
	unit    time.Duration
	limit   int
	sliding bool
	burst   int // of a token bucket; 0 for windows
}

// checkMost checks that not more than the bound is admitted. A call was decided at some time from
// its begin to its end, so a time contains those calls for certain that lie in it whole.
func (l killLimit) checkMost(t *testing.T, key string, events []killEvent) {
	t.Helper()
	admitted := newTimeline(events, counted)
	if len(admitted.began) == 0 || len(newTimeline(events, over).began) == 0 ||
		len(newTimeline(events, open).began) > 0 {
		t.Errorf("%s: calls are not both admitted and refused, or have no limit", key)
		return
	}
	first, last := admitted.began[0], admitted.ended[len(admitted.ended)-1]
	if l.burst > 0 {
		const step = 250 * time.Millisecond
		for from := first; from.Before(last); from = from.Add(step) {
			for to := from.Add(step); to.Before(last.Add(step)); to = to.Add(step) {
				most := float64(l.burst) + float64(l.limit)*to.Sub(from).Seconds()/l.unit.Seconds()
				if n := admitted.countWithin(from, to); float64(n) > most {
					t.Errorf("%s: %d hits are admitted within %v, want at most %.1f", key, n, to.Sub(from), most)
				}
			}
		}
		return
	}
	for from := first.Truncate(l.unit); from.Before(last); from = from.Add(l.unit) {
		for n, to := 1, from.Add(l.unit); to.Before(last.Add(l.unit)); n, to = n+1, to.Add(l.unit) {
			if got := admitted.countWithin(from, to); got > n*l.limit {
				t.Errorf("%s: %d hits are admitted in %d windows from %v, want at most %d", key, got, n,
					from, n*l.limit)
			}
		}
	}
	for from := first; l.sliding && from.Before(last); from = from.Add(l.unit / 20) {
		if got := admitted.countWithin(from, from.Add(l.unit)); got >= 2*l.limit {
			t.Errorf("%s: %d hits are admitted within %v, want less than %d", key, got, l.unit, 2*l.limit)
		}
	}
}

// checkLeast checks that a limit refuses no hit before it has admitted what it should. A hit of a
// call that failed may have been counted, and the part lost of a limit may be lost with killed
// instances.
func (l killLimit) checkLeast(t *testing.T, key string, events []killEvent, lost float64) {
	t.Helper()
	admitted, refused, unknown := newTimeline(events, counted), newTimeline(events, over), newTimeline(events, failed)
	if l.burst > 0 { // between two refusals the bucket lets in its rate, less one hit
		from, to := refused.began[0], refused.ended[len(refused.ended)-1]
		full := l.unit * time.Duration(l.burst) / time.Duration(l.limit)
		var filled time.Duration // a bucket that is full, because no one calls for so long, takes no more
		for i, at := range refused.began[1:] {
			filled += min(at.Sub(refused.began[i]), full)
		}
		least := float64(l.limit)*(filled-longestOf(events, over)*2).Seconds()/l.unit.Seconds() - 1
		if n := admitted.countTouching(from, to) + unknown.countTouching(from, to); float64(n) < least {
			t.Errorf("%s: %d hits are admitted in %v, want at least %.0f", key, n, to.Sub(from), least)
		}
		return
	}
	for _, e := range events {
		if e.outcome != over {
			continue
		}
		from, to := e.began.Truncate(l.unit), e.ended
		if !e.ended.Before(from.Add(l.unit)) {
			continue // it may have been refused in either window
		}
		if l.sliding {
			from = from.Add(-l.unit)
		}
		if n := admitted.countTouching(from, to) + unknown.countTouching(from, to); n < int((1-lost)*float64(l.limit)) {
			t.Errorf("%s: a hit is refused after %d were admitted, want %d", key, n, l.limit)
			return
		}
	}
}

func longestOf(events []killEvent, outcome string) (longest time.Duration) {
	for _, e := range events {
		if e.outcome == outcome {
			longest = max(longest, e.ended.Sub(e.began))
		}
	}
	return longest
}

// timeline is when calls of one outcome began and ended, each list in order.
type timeline struct{ began, ended []time.Time }

func newTimeline(events []killEvent, outcome string) (t timeline) {
	for _, e := range events {
		if e.outcome == outcome {
			t.began, t.ended = append(t.began, e.began), append(t.ended, e.ended)
		}
	}
	slices.SortFunc(t.began, time.Time.Compare)
	slices.SortFunc(t.ended, time.Time.Compare)
	return t
}

// countWithin returns at most the number of calls that began and ended in a time.
func (t timeline) countWithin(from, to time.Time) int {
	return max(countBefore(t.ended, to)-countBefore(t.began, from), 0)
}

// countTouching returns the number of calls of which a part lies in a time.
func (t timeline) countTouching(from, to time.Time) int {
	return countBefore(t.began, to) - countBefore(t.ended, from)
}

// countBefore returns how many times of an ordered list are before another.
func countBefore(times []time.Time, limit time.Time) int {
	n, _ := slices.BinarySearchFunc(times, limit, time.Time.Compare)
	return n
}
