package outages

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
)

// enough is the number of calls after which the behaviour of the service is clear.
const enough = 300

// mode is a failure mode and the behaviour that an operator expects of it.
type mode struct {
	name      string
	outcome   string // outcome of calls without the store
	statistic string // the metric that counts them
}

func failureModes() []mode {
	const fallback = "ratelimit.service.store_fallback."
	return []mode{
		{"error", "Unavailable", "ratelimit.service.call.should_rate_limit.store_error"},
		{"open", open, fallback + "failed_open"},
		{"closed", over, fallback + "failed_closed"},
		{"local", counted, fallback + "counted_locally"},
	}
}

// TestStoreFails freezes and kills the store under load, in each failure mode.
func TestStoreFails(t *testing.T) {
	t.Parallel()
	for _, m := range failureModes() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			v := startValkey(t)
			s := startService(t, "KVSTORE_URL="+v.Address, "KVSTORE_FAILURE_MODE="+m.name,
				"KVSTORE_HEALTH_CHECK_ACTIVE_CONNECTION=true", impatient)
			l := startLoad(t, dialService(t, callers, s.GRPC), func(caller int) *ratelimit.RateLimitRequest {
				return newRequest("steady", fmt.Sprint(caller))
			})
			outage := outage{service: s, mode: m, load: l, store: v}
			outage.runOutage("frozen", v.Freeze, v.Thaw)
			outage.runOutage("killed", func() error { v.Kill(); return nil }, v.Start)
		})
	}
}

// outage is a period without the store.
type outage struct {
	*service
	mode  mode
	load  *load
	store *instance.Valkey
}

// runOutage stops the store and starts it again, and checks the responses before, during and after.
func (o *outage) runOutage(name string, begin, end func() error) {
	o.t.Helper()
	o.load.awaitOutcomes(enough, counted)
	o.wantStored(name + "-before")
	before := o.readStat(o.mode.statistic)
	must.Succeed(o.t, begin())
	o.load.resetTally()
	await.Until(o.t, "answers of the failure mode", func() bool {
		return o.readStat(o.mode.statistic) >= before+enough
	})
	o.checkDuring(name)
	must.Succeed(o.t, end())
	o.load.awaitOutcomes(enough, counted)
	await.Until(o.t, "calls that are counted in the store", func() bool {
		before := o.readStat("ratelimit.service.call.should_rate_limit.store_error")
		o.load.awaitOutcomes(enough, counted)
		return o.readStat("ratelimit.service.call.should_rate_limit.store_error") == before
	})
	o.wantStored(name + "-after")
	o.wantHealth(http.StatusOK)
}

// checkDuring checks the service while its store is unavailable.
func (o *outage) checkDuring(name string) {
	o.t.Helper()
	if got := o.load.presentTally(); !got.hasOnly(o.mode.outcome, counted) {
		o.t.Errorf("%s: %v, want only %s", name, got, o.mode.outcome)
	}
	o.t.Logf("%s: %v", name, o.load.resetTally())
	o.load.awaitOutcomes(enough, o.mode.outcome)
	if o.readStat("ratelimit.service.call.should_rate_limit.store_error") == 0 {
		o.t.Errorf("%s: no failure of the store is counted", name)
	}
	o.wantHealth(http.StatusServiceUnavailable)
	o.wantReadiness()
	if o.mode.name == "local" {
		o.wantLocalCounts(name)
	}
}

// wantHealth checks the health over HTTP and over gRPC.
func (o *outage) wantHealth(want int) {
	o.t.Helper()
	await.Until(o.t, fmt.Sprintf("the store on /ready, and /healthcheck with %d", want), func() bool {
		_, state := getPage(o.t, "http://"+o.API+"/ready")
		healthy, _ := getPage(o.t, "http://"+o.RateLimitHTTP+"/healthcheck")
		return healthy == want && strings.Contains(state, `"counters":"ok"`) == (want == http.StatusOK)
	})
}

// wantReadiness checks /ready while the store is unavailable. The instance is not ready only if the
// failure mode does not cover the limits of the API.
func (o *outage) wantReadiness() {
	o.t.Helper()
	want, status := http.StatusServiceUnavailable, "unavailable"
	if o.mode.name == "open" || o.mode.name == "local" {
		want, status = http.StatusOK, "degraded"
	}
	if got, state := getPage(o.t, "http://"+o.API+"/ready"); got != want ||
		!strings.Contains(state, `"status":"`+status+`"`) {
		o.t.Errorf("/ready: %d %s, want %d %s", got, state, want, status)
	}
}

// wantLocalCounts checks that the process alone counts a limit of five.
func (o *outage) wantLocalCounts(name string) {
	o.t.Helper()
	c := newRateLimitClient(o.t, o.service)
	for n := 1; n <= 7; n++ {
		got := formatOutcome(c.ShouldRateLimit(o.t.Context(), newRequest("few", name)))
		if want := map[bool]string{true: counted, false: over}[n <= 5]; got != want {
			o.t.Errorf("%s: call %d of a limit of 5 is %s", name, n, got)
		}
	}
}

// wantStored checks that a new counter is in the store, with its first hit.
func (o *outage) wantStored(value string) {
	o.t.Helper()
	r, err := newRateLimitClient(o.t, o.service).ShouldRateLimit(o.t.Context(), newRequest("few", value))
	if err != nil || r.GetStatuses()[0].GetLimitRemaining() != 4 {
		o.t.Errorf("a new counter: %v, %v", r, err)
	}
	if answer := o.store.SendLine("KEYS *" + value + "*"); !strings.HasPrefix(answer, "*1") {
		o.t.Errorf("the store has %q of %s", answer, value)
	}
}

// TestStoreAwayAtStart checks that the service starts without the store, reports it and recovers.
func TestStoreAwayAtStart(t *testing.T) {
	t.Parallel()
	v := newValkey(t)
	s := startService(t, "KVSTORE_URL="+v.Address, impatient)
	l := startLoad(t, dialService(t, callers, s.GRPC), func(int) *ratelimit.RateLimitRequest {
		return newRequest("steady", "one")
	})
	l.awaitOutcomes(enough, "Unavailable")
	if ready, state := getPage(t, "http://"+s.API+"/ready"); ready != http.StatusServiceUnavailable ||
		strings.Contains(state, `"counters":"ok"`) {
		t.Errorf("/ready: %d %s", ready, state)
	}
	// Health does not depend on the store by default.
	if healthy, _ := getPage(t, "http://"+s.RateLimitHTTP+"/healthcheck"); healthy != http.StatusOK {
		t.Errorf("/healthcheck: %d", healthy)
	}
	must.Succeed(t, v.Start())
	l.awaitOutcomes(enough, counted)
}
