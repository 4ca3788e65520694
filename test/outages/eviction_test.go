package outages

import (
	"fmt"
	"sync"
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
)

// TestFloodKeepsLimitsInForce fills the counters in the process many times over while limits are in
// force. A caller over a limit must stay over it.
func TestFloodKeepsLimitsInForce(t *testing.T) {
	t.Parallel()
	const limited, floods, each = 50, 8, 500
	s := startService(t, "ENVIRONMENT=embedded", "COUNTERS_IN_PROCESS_MAX=1000")
	spend := func() (wrong int) {
		c := newRateLimitClient(t, s)
		for n := range limited {
			if got := formatOutcome(c.ShouldRateLimit(t.Context(),
				newRequest("few", fmt.Sprint("limited-", n)))); got != over {
				wrong++
			}
		}
		return wrong
	}
	for range 5 {
		spend()
	}
	if wrong := spend(); wrong != 0 {
		t.Fatalf("%d of %d callers are not over their limit of 5 at the start", wrong, limited)
	}
	var all sync.WaitGroup
	for flood, conn := range dialService(t, floods, s.GRPC) {
		all.Go(func() {
			c := ratelimit.NewRateLimitServiceClient(conn)
			for n := range each {
				if got := formatOutcome(c.ShouldRateLimit(t.Context(),
					newRequest("few", fmt.Sprint("flood-", flood, "-", n)))); got != counted {
					t.Errorf("a new caller: %s", got)
					return
				}
			}
		})
	}
	all.Go(func() {
		for range 20 {
			if wrong := spend(); wrong != 0 {
				t.Errorf("%d of %d callers are let through again meanwhile", wrong, limited)
				return
			}
		}
	})
	all.Wait()
	if wrong := spend(); wrong != 0 {
		t.Errorf("%d of %d callers are let through again", wrong, limited)
	}
	if evicted := s.readMetric(`tollgate_counters_evicted_total{store="ratelimit"}`); evicted < floods*each-1000 {
		t.Errorf("%d counters were evicted of %d", evicted, floods*each)
	}
}
