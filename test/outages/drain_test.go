package outages

import (
	"net/http"
	"syscall"
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/health" // lets the clients watch the servers' health
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/must"
)

// watchful makes a client choose among the servers that report themselves healthy.
const watchful = `{"loadBalancingConfig":[{"round_robin":{}}],"healthCheckConfig":{"serviceName":"ratelimit"}}`

// forever is a drain that does not end while a test waits for what callers do meanwhile.
const forever = "SHUTDOWN_DRAIN=1h"

// TestStopsWithoutAFailedCall stops one of two instances under load of clients that watch the
// health of the servers. The clients leave it, so that not even its sudden end fails a call.
func TestStopsWithoutAFailedCall(t *testing.T) {
	t.Parallel()
	v := startValkey(t)
	going := startProcess(t, "KVSTORE_URL="+v.Address, forever)
	staying := startService(t, "KVSTORE_URL="+v.Address)
	servers := manual.NewBuilderWithScheme("faults")
	servers.InitialState(resolver.State{Addresses: []resolver.Address{{Addr: going.GRPC}, {Addr: staying.GRPC}}})
	conns := dialService(t, callers, "faults:///both", grpc.WithResolvers(servers),
		grpc.WithDefaultServiceConfig(watchful))
	l := startLoad(t, conns, func(int) *ratelimit.RateLimitRequest { return newRequest("steady", "one") })
	const calls = "ratelimit_server.ShouldRateLimit.total_requests"
	await.Until(t, "calls on both instances", func() bool {
		return going.readStat(calls) > enough && staying.readStat(calls) > enough
	})
	l.resetTally()
	must.Succeed(t, syscall.Kill(going.PID(), syscall.SIGTERM))
	await.Until(t, "calls on the other instance only", func() bool {
		before := going.readStat(calls)
		l.awaitCalls(enough)
		return going.readStat(calls) == before
	})
	going.Kill()
	l.awaitCalls(enough)
	l.stop()
	if got := l.presentTally(); !got.hasOnly(counted) {
		t.Errorf("calls while an instance stopped: %v", got)
	}
}

// TestStopsWithOneInstance checks that a client that ignores the drain gets responses while it
// lasts.
func TestStopsWithOneInstance(t *testing.T) {
	t.Parallel()
	s := startProcess(t, "ENVIRONMENT=embedded", forever)
	l := startLoad(t, dialService(t, callers, s.GRPC), func(int) *ratelimit.RateLimitRequest {
		return newRequest("steady", "one")
	})
	l.awaitOutcomes(enough, counted)
	l.resetTally()
	must.Succeed(t, syscall.Kill(s.PID(), syscall.SIGTERM))
	await.Until(t, "health reports the drain", func() bool {
		healthy, _ := getPage(t, "http://"+s.RateLimitHTTP+"/healthcheck")
		return healthy == http.StatusServiceUnavailable
	})
	l.awaitCalls(enough)
	l.stop()
	if got := l.presentTally(); !got.hasOnly(counted) {
		t.Errorf("calls of a service that drains: %v", got)
	}
	s.Kill()
}
