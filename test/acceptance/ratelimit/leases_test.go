package ratelimit

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
)

// leaseRules have units of a year, so that no window turns during a test.
const leaseRules = `domain: calls
descriptors:
  - key: auto
    rate_limit: {unit: year, requests_per_unit: 6000}
  - key: off
    rate_limit: {unit: year, requests_per_unit: 6000, lease: off}
  - key: large
    rate_limit: {unit: year, requests_per_unit: 1000000}
`

// onSharedStores runs a test on a Valkey of its own, and on memcached.
func onSharedStores(t *testing.T, test func(t *testing.T, e *fixture.Environment, v *instance.Valkey)) {
	if instance.ValkeyInstalled() {
		t.Run("valkey", func(t *testing.T) {
			v := instance.NewValkey(t.TempDir())
			t.Cleanup(v.Kill)
			must.Succeed(t, v.Start())
			e := fixture.NewEnvironment(t, "embedded")
			e.Command = "ratelimit"
			e.Environ = append(e.Environ, "KVSTORE_URL="+v.Address, "COUNTER_LEASES=auto")
			test(t, e, v)
		})
	}
	if address := os.Getenv("TEST_MEMCACHED_ADDR"); address != "" {
		t.Run("memcached", func(t *testing.T) {
			e := newMemcachedEnvironment(t, address)
			e.Environ = append(e.Environ, "COUNTER_LEASES=auto")
			test(t, e, nil)
		})
	}
}

// callTogether makes calls of one descriptor on all instances in parallel, and returns how many of
// them were admitted.
func callTogether(t *testing.T, key string, calls int, all ...*fixture.Service) uint32 {
	t.Helper()
	const callers = 8
	var admitted atomic.Uint32
	var done sync.WaitGroup
	for _, s := range all {
		c := s.NewRateLimitClient(t)
		for range callers {
			done.Go(func() {
				for range calls / callers / len(all) {
					r, err := c.ShouldRateLimit(t.Context(), fixture.NewRateLimitRequest("calls", key, "k"))
					if err != nil {
						t.Error(err)
						return
					}
					if r.GetOverallCode() == ratelimit.RateLimitResponse_OK {
						admitted.Add(1)
					}
				}
			})
		}
	}
	done.Wait()
	return admitted.Load()
}

// commands returns how many commands that count a server has executed.
func commands(v *instance.Valkey) (n int) {
	for _, found := range regexp.MustCompile(`cmdstat_(?:incrby|set|get|eval):calls=(\d+)`).
		FindAllStringSubmatch(v.SendLines("INFO commandstats"), -1) {
		calls, _ := strconv.Atoi(found[1]) // digits
		n += calls
	}
	return n
}

// TestLeases checks that two instances admit a hot key exactly up to its limit, or a little less,
// with few commands, and that a rule with lease: off is counted with a command for each call or for
// several calls in flight.
func TestLeases(t *testing.T) {
	t.Parallel()
	onSharedStores(t, func(t *testing.T, e *fixture.Environment, v *instance.Valkey) {
		fixture.WriteFile(t, filepath.Join(e.RulesDir, "calls.yaml"), leaseRules)
		one, two := e.Start(t), e.Start(t)
		for key, least := range map[string]uint32{"auto": 5400, "off": 6000} {
			if n := callTogether(t, key, 9600, one, two); n > 6000 || n < least {
				t.Errorf("%s: %d calls are admitted, want at most 6000 and at least %d", key, n, least)
			}
		}
		if v == nil {
			return
		}
		before := commands(v)
		callTogether(t, "large", 9600, one, two)
		if n := commands(v) - before; n > 9600/20 {
			t.Errorf("%d commands for 9600 calls of a hot key", n)
		}
		before = commands(v)
		callTogether(t, "off", 1600, one)
		if n := commands(v) - before; n < 1600/8 {
			t.Errorf("%d commands for 1600 calls of a key without a lease", n)
		}
	})
}

// TestSharesAreGivenBack checks that an instance that stops gives back what it holds, and that one
// which is killed leaves no more behind than a share.
func TestSharesAreGivenBack(t *testing.T) {
	t.Parallel()
	onSharedStores(t, func(t *testing.T, e *fixture.Environment, _ *instance.Valkey) {
		fixture.WriteFile(t, filepath.Join(e.RulesDir, "calls.yaml"), leaseRules)
		left := func(of *fixture.Service) uint32 {
			return callAlgorithm(t, of.NewRateLimitClient(t), "large", "k", 0).GetLimitRemaining()
		}
		one, two := e.Start(t), e.StartProcess(t)
		callTogether(t, "large", 4000, one)
		one.Stop()
		if got := left(two); got != 996_000 {
			t.Errorf("%d of 1000000 are left after 4000 calls and a stop", got)
		}
		callTogether(t, "large", 4000, two)
		two.Process.Kill()
		if got := left(e.Start(t)); got > 992_000 || got < 992_000-50_000 {
			t.Errorf("%d of 1000000 are left after 8000 calls and a kill", got)
		}
	})
}
