package outages

import (
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/health" // lets the clients watch the servers' health
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"github.com/tollgate-dev/tollgate/test/await"
)

// watchful makes a client choose among the servers that report themselves healthy.
const watchful = `{"loadBalancingConfig":[{"round_robin":{}}],"healthCheckConfig":{"serviceName":"ratelimit"}}`

// TestStopsWithoutAFailedCall stops one of two instances under load of clients that watch the
// health of the servers. No call fails.
func TestStopsWithoutAFailedCall(t *testing.T) {
	t.Parallel()
	v := startValkey(t)
	going := startService(t, "KVSTORE_URL="+v.Address, "SHUTDOWN_DRAIN=1500ms")
	staying := startService(t, "KVSTORE_URL="+v.Address)
	servers := manual.NewBuilderWithScheme("faults")
	servers.InitialState(resolver.State{Addresses: []resolver.Address{{Addr: going.GRPC}, {Addr: staying.GRPC}}})
	conns := dialService(t, callers, "faults:///both", grpc.WithResolvers(servers),
		grpc.WithDefaultServiceConfig(watchful))
	l := startLoad(t, conns, func(int) *ratelimit.RateLimitRequest { return newRequest("steady", "one") })
	await.Until(t, "calls on both instances", func() bool {
		const calls = "ratelimit_server.ShouldRateLimit.total_requests"
		return going.readStat(calls) > enough && staying.readStat(calls) > enough
	})
	l.resetTally()
	failOnError(t, going.Stop())
	l.awaitCalls(enough)
	l.stop()
	if got := l.presentTally(); !got.hasOnly(counted) {
		t.Errorf("calls while an instance stopped: %v", got)
	}
}

// TestStopsWithOneInstance checks that a client that ignores the drain gets responses until the
// listeners close.
func TestStopsWithOneInstance(t *testing.T) {
	t.Parallel()
	s := startService(t, "ENVIRONMENT=embedded", "SHUTDOWN_DRAIN=1s")
	l := startLoad(t, dialService(t, callers, s.GRPC), func(int) *ratelimit.RateLimitRequest {
		return newRequest("steady", "one")
	})
	l.awaitOutcomes(enough, counted)
	l.resetTally()
	ended := make(chan error, 1)
	go func() { ended <- s.Stop() }()
	await.Until(t, "health reports the drain", func() bool {
		healthy, _ := getPage(t, "http://"+s.RateLimitHTTP+"/healthcheck")
		return healthy == 503
	})
	l.awaitCalls(enough / 2)
	if got := l.presentTally(); !got.hasOnly(counted) {
		t.Errorf("calls of a service that drains: %v", got)
	}
	failOnError(t, <-ended)
}
