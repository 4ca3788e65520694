package faults

import (
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/health" // lets the clients watch the servers' health
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
)

// watchful makes a client take turns among the servers whose health is good.
const watchful = `{"loadBalancingConfig":[{"round_robin":{}}],"healthCheckConfig":{"serviceName":"ratelimit"}}`

// TestStopsWithoutAFailedCall stops one of two instances under load of clients that mind health: no call fails.
func TestStopsWithoutAFailedCall(t *testing.T) {
	v := startValkey(t)
	going := start(t, "KVSTORE_URL="+v.Address, "SHUTDOWN_DRAIN=1500ms")
	staying := start(t, "KVSTORE_URL="+v.Address)
	servers := manual.NewBuilderWithScheme("faults")
	servers.InitialState(resolver.State{Addresses: []resolver.Address{{Addr: going.GRPC}, {Addr: staying.GRPC}}})
	conns := dial(t, callers, "faults:///both", grpc.WithResolvers(servers), grpc.WithDefaultServiceConfig(watchful))
	l := press(t, conns, func(int) *ratelimit.RateLimitRequest { return asking("steady", "one") })
	eventually(t, "calls on both instances", func() bool {
		const calls = "ratelimit_server.ShouldRateLimit.total_requests"
		return going.stat(calls) > enough && staying.stat(calls) > enough
	})
	l.reset()
	must(t, going.Stop())
	l.more(enough)
	l.stop()
	if got := l.sofar(); !got.only(counted) {
		t.Errorf("calls while an instance stopped: %v", got)
	}
}

// TestStopsWithOneInstance checks that a client that ignores the drain gets responses until the
// listeners close.
func TestStopsWithOneInstance(t *testing.T) {
	s := start(t, "ENVIRONMENT=embedded", "SHUTDOWN_DRAIN=1s")
	l := press(t, dial(t, callers, s.GRPC), func(int) *ratelimit.RateLimitRequest { return asking("steady", "one") })
	l.settles(enough, counted)
	l.reset()
	ended := make(chan error, 1)
	go func() { ended <- s.Stop() }()
	eventually(t, "health reports the drain", func() bool {
		healthy, _ := get(t, "http://"+s.RateLimitHTTP+"/healthcheck")
		return healthy == 503
	})
	l.more(enough / 2)
	if got := l.sofar(); !got.only(counted) {
		t.Errorf("calls of a service that drains: %v", got)
	}
	must(t, <-ended)
}
