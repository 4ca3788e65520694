package faults

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/tollgate-dev/tollgate/test/instance"
)

// enough is how many calls show how the service answers.
const enough = 300

// mode is what an operator expects of a failure mode.
type mode struct {
	name      string
	outcome   string // of calls while the store is away
	statistic string // that counts them
}

func modes() []mode {
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
	for _, m := range modes() {
		t.Run(m.name, func(t *testing.T) {
			v := startValkey(t)
			s := start(t, "KVSTORE_URL="+v.Address, "KVSTORE_FAILURE_MODE="+m.name, "KVSTORE_HEALTH_CHECK_ACTIVE_CONNECTION=true")
			l := press(t, dial(t, callers, s.GRPC), func(caller int) *ratelimit.RateLimitRequest {
				return asking("steady", fmt.Sprint(caller))
			})
			outage := outage{service: s, mode: m, load: l, store: v}
			outage.pass("frozen", v.Freeze, v.Thaw)
			outage.pass("killed", func() error { v.Kill(); return nil }, v.Start)
			s.wantQuick()
		})
	}
}

// outage is one time in which the store is away.
type outage struct {
	*service
	mode  mode
	load  *load
	store *instance.Valkey
}

// pass takes the store away and back, and looks at the answers before, within and after.
func (o *outage) pass(name string, begin, end func() error) {
	o.t.Helper()
	o.load.settles(enough, counted)
	o.inStore(name + "-before")
	before := o.stat(o.mode.statistic)
	must(o.t, begin())
	o.load.reset()
	eventually(o.t, "answers of the failure mode", func() bool { return o.stat(o.mode.statistic) >= before+enough })
	o.within(name)
	must(o.t, end())
	o.load.settles(enough, counted)
	eventually(o.t, "calls that are counted in the store", func() bool {
		before := o.stat("ratelimit.service.call.should_rate_limit.store_error")
		o.load.settles(enough, counted)
		return o.stat("ratelimit.service.call.should_rate_limit.store_error") == before
	})
	o.inStore(name + "-after")
	o.health(http.StatusOK)
}

// within looks at a service whose store is away.
func (o *outage) within(name string) {
	o.t.Helper()
	if got := o.load.sofar(); !got.only(o.mode.outcome, counted) {
		o.t.Errorf("%s: %v, want only %s", name, got, o.mode.outcome)
	}
	o.t.Logf("%s: %v", name, o.load.reset())
	o.load.settles(enough, o.mode.outcome)
	if o.stat("ratelimit.service.call.should_rate_limit.store_error") == 0 {
		o.t.Errorf("%s: no failure of the store is counted", name)
	}
	o.health(http.StatusServiceUnavailable)
	o.readiness()
	if o.mode.name == "local" {
		o.countsLocally(name)
	}
}

// health looks at both of the service's words about the store.
func (o *outage) health(want int) {
	o.t.Helper()
	eventually(o.t, fmt.Sprintf("the store on /ready, and /healthcheck with %d", want), func() bool {
		_, state := get(o.t, "http://"+o.API+"/ready")
		healthy, _ := get(o.t, "http://"+o.RateLimitHTTP+"/healthcheck")
		return healthy == want && strings.Contains(state, `"counters":"ok"`) == (want == http.StatusOK)
	})
}

// readiness looks at /ready while the store is away: the instance is taken out only where the failure mode does not cover
// the limits of the API.
func (o *outage) readiness() {
	o.t.Helper()
	want, status := http.StatusServiceUnavailable, "unavailable"
	if o.mode.name == "open" || o.mode.name == "local" {
		want, status = http.StatusOK, "degraded"
	}
	if got, state := get(o.t, "http://"+o.API+"/ready"); got != want || !strings.Contains(state, `"status":"`+status+`"`) {
		o.t.Errorf("/ready: %d %s, want %d %s", got, state, want, status)
	}
}

// countsLocally finds a limit of five kept by the process alone.
func (o *outage) countsLocally(name string) {
	o.t.Helper()
	c := limiter(o.t, o.service)
	for n := 1; n <= 7; n++ {
		got := outcome(c.ShouldRateLimit(o.t.Context(), asking("few", name)))
		if want := map[bool]string{true: counted, false: over}[n <= 5]; got != want {
			o.t.Errorf("%s: call %d of a limit of 5 is %s", name, n, got)
		}
	}
}

// inStore finds a new counter where it belongs, with its first hit.
func (o *outage) inStore(value string) {
	o.t.Helper()
	r, err := limiter(o.t, o.service).ShouldRateLimit(o.t.Context(), asking("few", value))
	if err != nil || r.GetStatuses()[0].GetLimitRemaining() != 4 {
		o.t.Errorf("a new counter: %v, %v", r, err)
	}
	if answer := o.store.Ask("KEYS *" + value + "*"); !strings.HasPrefix(answer, "*1") {
		o.t.Errorf("the store has %q of %s", answer, value)
	}
}

// TestStoreAwayAtStart checks that the service starts without the store, reports it and recovers.
func TestStoreAwayAtStart(t *testing.T) {
	v := newValkey(t)
	s := start(t, "KVSTORE_URL="+v.Address)
	l := press(t, dial(t, callers, s.GRPC), func(int) *ratelimit.RateLimitRequest { return asking("steady", "one") })
	l.settles(enough, "Unavailable")
	if ready, state := get(t, "http://"+s.API+"/ready"); ready != http.StatusServiceUnavailable || strings.Contains(state, `"counters":"ok"`) {
		t.Errorf("/ready: %d %s", ready, state)
	}
	// Health does not depend on the store by default.
	if healthy, _ := get(t, "http://"+s.RateLimitHTTP+"/healthcheck"); healthy != http.StatusOK {
		t.Errorf("/healthcheck: %d", healthy)
	}
	must(t, v.Start())
	l.settles(enough, counted)
	s.wantQuick()
}
