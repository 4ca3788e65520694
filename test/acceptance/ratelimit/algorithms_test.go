package ratelimit

import (
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// algorithmRules have units of a year, so that no window turns during a test, and a bucket that
// fills fast.
const algorithmRules = `domain: calls
descriptors:
  - key: sliding
    rate_limit: {unit: year, requests_per_unit: 5, algorithm: sliding_window, name: slide}
  - key: bucket
    rate_limit: {unit: year, requests_per_unit: 5, algorithm: token_bucket, burst: 3}
  - key: fast
    rate_limit: {unit: second, requests_per_unit: 100, algorithm: token_bucket, burst: 10}
  - key: fixed
    rate_limit: {unit: year, requests_per_unit: 5}
`

// callAlgorithm sends hits for one descriptor and returns its status.
func callAlgorithm(
	t *testing.T, c ratelimit.RateLimitServiceClient, key, value string, hits uint64,
) *ratelimit.RateLimitResponse_DescriptorStatus {
	t.Helper()
	r := fixture.NewRateLimitRequest("calls", key, value)
	r.Descriptors[0].HitsAddend = wrapperspb.UInt64(hits)
	answer, err := c.ShouldRateLimit(t.Context(), r)
	must.Succeed(t, err)
	return answer.GetStatuses()[0]
}

// TestAlgorithms checks what each algorithm counts, what remains and when it resets, on every
// store, from two instances that share it.
func TestAlgorithms(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, e *fixture.Environment) {
		fixture.WriteFile(t, filepath.Join(e.RulesDir, "calls.yaml"), algorithmRules)
		one := e.Start(t).NewRateLimitClient(t)
		two := one
		if e.Shared {
			two = e.Start(t).NewRateLimitClient(t)
		}
		const year = 365 * 24 * time.Hour
		for _, step := range []struct {
			key       string
			hits      uint64
			code      ratelimit.RateLimitResponse_Code
			remaining uint32
			name      string
		}{
			{"sliding", 0, ratelimit.RateLimitResponse_OK, 5, "slide"},
			{"sliding", 4, ratelimit.RateLimitResponse_OK, 1, "slide"},
			{"sliding", 2, ratelimit.RateLimitResponse_OVER_LIMIT, 1, "slide"},
			{"sliding", 1, ratelimit.RateLimitResponse_OK, 0, "slide"},
			{"sliding", 1, ratelimit.RateLimitResponse_OVER_LIMIT, 0, "slide"},
			{"bucket", 2, ratelimit.RateLimitResponse_OK, 1, ""},
			{"bucket", 4, ratelimit.RateLimitResponse_OVER_LIMIT, 1, ""},
			{"bucket", 1, ratelimit.RateLimitResponse_OK, 0, ""},
			{"bucket", 1, ratelimit.RateLimitResponse_OVER_LIMIT, 0, ""},
		} {
			s := callAlgorithm(t, one, step.key, "a", step.hits)
			one, two = two, one
			if s.GetCode() != step.code || s.GetLimitRemaining() != step.remaining ||
				s.GetCurrentLimit().GetName() != step.name || s.GetCurrentLimit().GetRequestsPerUnit() != 5 {
				t.Errorf("%s by %d: %v, want %v and %d", step.key, step.hits, s, step.code, step.remaining)
			}
		}
		if s := callAlgorithm(t, one, "bucket", "a", 1); s.GetDurationUntilReset().AsDuration() > year/5+time.Minute ||
			s.GetDurationUntilReset().AsDuration() < year/5-time.Hour {
			t.Errorf("one hit of five a year fits after %v", s.GetDurationUntilReset().AsDuration())
		}
		if s := callAlgorithm(t, one, "bucket", "b", 4); s.GetDurationUntilReset().AsDuration() != year {
			t.Errorf("more hits than the burst reset after %v", s.GetDurationUntilReset().AsDuration())
		}
		admitted := admitInParallel(t, one, two)
		if took := time.Since(admitted.began); float64(admitted.hits.Load()) > 10+100*(took.Seconds()+1) ||
			admitted.hits.Load() < 10 {
			t.Errorf("a bucket of 10 and 100 a second admits %d hits in %v", admitted.hits.Load(), took)
		}
	})
}

type parallelHits struct {
	began time.Time
	hits  atomic.Int64
}

// admitInParallel sends hits from many callers to two instances, and counts those that are
// admitted.
func admitInParallel(t *testing.T, one, two ratelimit.RateLimitServiceClient) *parallelHits {
	t.Helper()
	p := &parallelHits{began: time.Now()}
	var all sync.WaitGroup
	for worker := range 16 {
		client := one
		if worker%2 == 1 {
			client = two
		}
		all.Go(func() {
			for range 50 {
				answer, err := client.ShouldRateLimit(t.Context(), fixture.NewRateLimitRequest("calls", "fast", "x"))
				if err != nil {
					t.Error(err)
					return
				}
				if answer.GetOverallCode() == ratelimit.RateLimitResponse_OK {
					p.hits.Add(1)
				}
			}
		})
	}
	all.Wait()
	return p
}
