package outages

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ratelimitpb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"

	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/adapters/system"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/core/ratelimit/reload"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/must"
)

// The limits of two configurations. In each, the second limit is the first plus one, so that a
// response shows whether both come from one configuration.
const (
	firstLimit  = 1_000_000_000
	secondLimit = 2_000_000_000
)

// grownAtMost is the allowed growth of the heap after the reloads, in bytes.
const grownAtMost = 4 << 20

// isWhole reports whether two limits come from the same configuration.
func isWhole(a, b uint32) bool {
	return (a == firstLimit || a == secondLimit) && b == a+1
}

type silent struct{}

func (silent) Report(any) {}

// newConfiguration returns two rules with limits, and further rules that make the set large enough
// to measure.
func newConfiguration(limit uint32) []ruleset.Source {
	at := ruleset.Position{File: "rules.yaml", Line: 1, Column: 1}
	descriptor := func(key, value string, count uint32) ruleset.Descriptor {
		return ruleset.Descriptor{
			At: at, Key: ruleset.Text{Value: key, At: at}, Value: ruleset.Text{Value: value, At: at},
			Limit: &ruleset.Limit{
				At: at, Unit: &ruleset.Text{Value: "day", At: at}, Requests: &ruleset.Requests{Count: count, At: at},
			},
		}
	}
	list := []ruleset.Descriptor{descriptor("a", "", limit), descriptor("b", "", limit+1)}
	for i := range 500 {
		list = append(list, descriptor("c", fmt.Sprint(i), limit))
	}
	return []ruleset.Source{{At: at, Domain: ruleset.Text{Value: "faults", At: at}, Descriptors: list}}
}

// TestReloads replaces rules while callers of the core run. No call fails, no call sees
// half of each set, and the memory of replaced sets is released.
func TestReloads(t *testing.T) {
	rules := reload.New(ruleset.Options{}, silent{})
	decider, err := decide.New(decide.Config{NearLimitRatio: 0.8, MaxSeries: 10}, decide.Ports{
		Rules: rules.Current, Counters: memory.NewCounters(system.Clock{}, memory.Config{MaxCounters: 100}),
		Clock: system.Clock{},
	})
	must.Succeed(t, err)
	must.Succeed(t, rules.Apply(newConfiguration(firstLimit)))
	before := heapSize()
	var stop atomic.Bool
	var calls atomic.Int64
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for !stop.Load() {
				calls.Add(1)
				decideOnce(t, decider)
				runtime.Gosched()
			}
		})
	}
	const reloads = 250
	for n := range reloads {
		must.Succeed(t, rules.Apply(newConfiguration([]uint32{secondLimit, firstLimit}[n%2])))
	}
	stop.Store(true)
	all.Wait()
	after := heapSize()
	t.Logf("%d calls, heap %d KiB before and %d KiB after", calls.Load(), before>>10, after>>10)
	if after > before+grownAtMost {
		t.Errorf("the heap grew from %d to %d bytes", before, after)
	}
	if rules.Loaded() != reloads+1 || calls.Load() < reloads {
		t.Errorf("%d configurations and %d calls", rules.Loaded(), calls.Load())
	}
	runtime.KeepAlive(decider)
}

func decideOnce(t *testing.T, d *decide.Decider) {
	decision, err := d.Decide(context.Background(),
		&ratelimit.Request{Domain: "faults", Descriptors: []ratelimit.Descriptor{
			{Entries: []ratelimit.Entry{{Key: "a", Value: "x"}}}, {Entries: []ratelimit.Entry{{Key: "b", Value: "x"}}},
		}})
	if err != nil {
		t.Error(err)
		return
	}
	if a, b := decision.Statuses[0].Limit.RequestsPerUnit,
		decision.Statuses[1].Limit.RequestsPerUnit; decision.Code != ratelimit.OK || !isWhole(a, b) {
		t.Errorf("%v with limits %d and %d", decision.Code, a, b)
	}
}

// heapSize returns the size of the live heap.
func heapSize() uint64 {
	runtime.GC()
	runtime.GC() // the first collection only moves the content of pools
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// TestFilesReloadUnderLoad replaces the rule file of a running service, as often as its debounce
// allows.
func TestFilesReloadUnderLoad(t *testing.T) {
	t.Parallel()
	s := startProcess(t, "ENVIRONMENT=embedded")
	file := func(limit int) string {
		return fmt.Sprintf("domain: faults\ndescriptors:\n"+
			"  - {key: a, rate_limit: {unit: day, requests_per_unit: %d}}\n"+
			"  - {key: b, rate_limit: {unit: day, requests_per_unit: %d}}\n", limit, limit+1)
	}
	loads := func() uint64 { return s.readStat("ratelimit.service.config_load_success") }
	replace := func(limit int) {
		before := loads()
		s.writeRules("rules.yaml", file(limit))
		await.Until(t, "a reload", func() bool { return loads() > before })
	}
	replace(firstLimit)
	before := s.liveHeap()
	var stop atomic.Bool
	var all sync.WaitGroup
	var calls atomic.Int64
	for _, conn := range dialService(t, callers, s.GRPC) {
		all.Go(func() { callUntil(t, &stop, &calls, conn) })
	}
	for n := range 20 {
		replace([]int{secondLimit, firstLimit}[n%2])
	}
	stop.Store(true)
	all.Wait()
	after := s.liveHeap()
	t.Logf("%d calls, heap %d KiB before and %d KiB after", calls.Load(), before>>10, after>>10)
	if after > before+grownAtMost {
		t.Errorf("the heap grew from %d to %d bytes", before, after)
	}
	if s.readStat("ratelimit.service.config_load_error") != 0 {
		t.Error("a configuration was refused")
	}
}

func callUntil(t *testing.T, stop *atomic.Bool, calls *atomic.Int64, conn *grpc.ClientConn) {
	c, request := ratelimitpb.NewRateLimitServiceClient(conn), newRequest("a", "x")
	request.Descriptors = append(request.Descriptors, newRequest("b", "x").Descriptors...)
	ticker := time.NewTicker(pace / 4)
	defer ticker.Stop()
	for ; !stop.Load(); calls.Add(1) {
		<-ticker.C
		r, err := c.ShouldRateLimit(context.Background(), request)
		if err != nil {
			t.Error(err)
			return
		}
		a, b := r.GetStatuses()[0].GetCurrentLimit().GetRequestsPerUnit(),
			r.GetStatuses()[1].GetCurrentLimit().GetRequestsPerUnit()
		if r.GetOverallCode() != ratelimitpb.RateLimitResponse_OK || !isWhole(a, b) {
			t.Errorf("%v with limits %d and %d", r.GetOverallCode(), a, b)
		}
	}
}

// liveHeap returns the size of the instance's live heap, after a garbage collection.
func (s *service) liveHeap() uint64 {
	s.t.Helper()
	for range 2 { // as in heapSize
		getPage(s.t, "http://"+s.Debug+"/debug/pprof/heap?gc=1")
	}
	return s.readMetric("go_memstats_heap_alloc_bytes")
}
