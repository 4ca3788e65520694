package ratelimit

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	discoverypb "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	configpb "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestManagementServer runs the rate limit service alone with a management server that starts late,
// changes the rules, sends invalid rules, and stops.
func TestManagementServer(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	s := startOnServer(t, fixture.NewEnvironment(t, "embedded"), address, "ratelimit")
	c := s.NewRateLimitClient(t)
	ask := fixture.NewRateLimitRequest("shop", "tenant", "a")

	if got := apiclient.Call(t, "GET", s.RateLimitAPI+"/healthcheck",
		nil); got.Status != http.StatusServiceUnavailable {
		t.Errorf("health without a configuration is %d", got.Status)
	}
	if _, err := c.ShouldRateLimit(t.Context(), ask); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("a call without a configuration ends with %v", err)
	}

	m := newManagementServer(t, address)
	m.offer(t, "1", newShopRules(7, configpb.RateLimitUnit_HOUR))
	s.AwaitRules()
	wantRule(t, c, ask, 7)

	m.offer(t, "2", newShopRules(9, configpb.RateLimitUnit_HOUR))
	m.awaitVersion(t, "2")
	wantRule(t, c, ask, 9)

	m.offer(t, "3", newShopRules(11, configpb.RateLimitUnit_UNKNOWN))
	refusal := m.awaitRequest(t, func(r *discoverypb.DiscoveryRequest) bool { return r.GetErrorDetail() != nil })
	if refusal.GetVersionInfo() != "2" ||
		!strings.Contains(refusal.GetErrorDetail().GetMessage(), "shop: descriptors[0]: unit is missing") {
		t.Errorf("refused with %v", refusal)
	}
	wantRule(t, c, ask, 9)
	if got := apiclient.Call(t, "GET", s.Debug+"/stats", nil); !strings.Contains(string(got.Body),
		"config_load_error: 1\n") {
		t.Errorf("statistics are\n%s", got.Body)
	}

	m.stop()
	wantRule(t, c, ask, 9)
	again := newManagementServer(t, address)
	again.offer(t, "4", newShopRules(13, configpb.RateLimitUnit_HOUR))
	again.awaitVersion(t, "4")
	wantRule(t, c, ask, 13)
}

// startOnServer runs a command with rules from a management server.
func startOnServer(t *testing.T, e *fixture.Environment, address, command string) *fixture.Service {
	t.Helper()
	return fixture.Launch(t, command, append(append([]string{}, e.Environ...),
		"CONFIG_TYPE=GRPC_XDS_SOTW", "CONFIG_GRPC_XDS_SERVER_URL="+address,
		"CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL=20ms", "XDS_CLIENT_BACKOFF_INITIAL_INTERVAL=20ms",
	))
}

func wantRule(t *testing.T, c ratelimit.RateLimitServiceClient, ask *ratelimit.RateLimitRequest, want uint32) {
	t.Helper()
	r := fixture.WantOverallCode(t, c, ask, ratelimit.RateLimitResponse_OK)
	if got := r.Statuses[0].GetCurrentLimit().GetRequestsPerUnit(); got != want {
		t.Errorf("the limit is %d, want %d", got, want)
	}
}

func newShopRules(count uint32, unit configpb.RateLimitUnit) *configpb.RateLimitConfig {
	return &configpb.RateLimitConfig{Name: "shop", Domain: "shop", Descriptors: []*configpb.RateLimitDescriptor{
		{Key: "tenant", RateLimit: &configpb.RateLimitPolicy{Unit: unit, RequestsPerUnit: count}},
	}}
}

// freeAddress returns an address on which no process listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	defer func() { _ = l.Close() }() // only the port number is used
	return l.Addr().String()
}

// managementServer is a management server of go-control-plane, over gRPC.
type managementServer struct {
	cache    cache.SnapshotCache
	address  string
	requests chan *discoverypb.DiscoveryRequest
	stop     func()
}

func newManagementServer(t *testing.T, address string, options ...grpc.ServerOption) *managementServer {
	t.Helper()
	l, err := net.Listen("tcp", address)
	must.Succeed(t, err)
	m := &managementServer{
		cache:    cache.NewSnapshotCache(false, cache.IDHash{}, nil),
		address:  address,
		requests: make(chan *discoverypb.DiscoveryRequest, 1000),
	}
	ctx, cancel := context.WithCancel(context.Background())
	g := grpc.NewServer(options...)
	discoverypb.RegisterAggregatedDiscoveryServiceServer(g, server.NewServer(ctx, m.cache, server.CallbackFuncs{
		StreamRequestFunc: func(_ int64, r *discoverypb.DiscoveryRequest) error {
			m.requests <- r
			return nil
		},
	}))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = g.Serve(l) // Serve returns when the server is stopped
	}()
	m.stop = sync.OnceFunc(func() { g.Stop(); cancel(); <-ended })
	t.Cleanup(m.stop)
	return m
}

func (m *managementServer) offer(t *testing.T, version string, set ...types.Resource) {
	t.Helper()
	m.offerTo(t, "default", version, set...)
}

// offerTo offers a set of rules to the node with an id.
func (m *managementServer) offerTo(t *testing.T, node, version string, set ...types.Resource) {
	t.Helper()
	snapshot, err := cache.NewSnapshot(version, map[resource.Type][]types.Resource{resource.RateLimitConfigType: set})
	must.Succeed(t, err)
	must.Succeed(t, m.cache.SetSnapshot(t.Context(), node, snapshot))
}

// awaitRequest returns the next request that matches.
func (m *managementServer) awaitRequest(
	t *testing.T, wanted func(*discoverypb.DiscoveryRequest) bool,
) *discoverypb.DiscoveryRequest {
	t.Helper()
	for {
		if r := await.Receive(t, "the request that is wanted", m.requests); wanted(r) {
			return r
		}
	}
}

// awaitVersion waits until the client acknowledges a version.
func (m *managementServer) awaitVersion(t *testing.T, version string) {
	t.Helper()
	m.awaitRequest(t, func(r *discoverypb.DiscoveryRequest) bool {
		return r.GetVersionInfo() == version && r.GetErrorDetail() == nil
	})
}
