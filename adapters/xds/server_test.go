package xds

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"testing"

	discoverypb "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	configpb "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
)

// manager is a management server. It uses the implementation of go-control-plane and real gRPC.
type manager struct {
	t       *testing.T
	cache   cache.SnapshotCache
	version int
	address string
	stop    func()

	mu       sync.Mutex
	headers  []metadata.MD // of each stream
	requests []*discoverypb.DiscoveryRequest
}

func newManager(t *testing.T, options ...grpc.ServerOption) *manager {
	t.Helper()
	m := &manager{t: t, cache: cache.NewSnapshotCache(false, cache.IDHash{}, nil)}
	m.start("127.0.0.1:"+instance.FreePort(), options...) // no client takes the port while the server is stopped
	return m
}

// start starts the server. It runs until stop is called, or until the test ends.
func (m *manager) start(address string, options ...grpc.ServerOption) {
	m.t.Helper()
	listener, err := net.Listen("tcp", address)
	must.Succeed(m.t, err)
	m.address = listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	g := grpc.NewServer(options...)
	discoverypb.RegisterAggregatedDiscoveryServiceServer(g, server.NewServer(ctx, m.cache, server.CallbackFuncs{
		StreamOpenFunc: m.streamOpened, StreamRequestFunc: m.requestReceived,
	}))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = g.Serve(listener)
	}()
	m.stop = sync.OnceFunc(func() { g.Stop(); cancel(); <-ended })
	m.t.Cleanup(m.stop)
}

func (m *manager) streamOpened(ctx context.Context, _ int64, _ string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	md, _ := metadata.FromIncomingContext(ctx)
	m.headers = append(m.headers, md)
	return nil
}

func (m *manager) requestReceived(_ int64, r *discoverypb.DiscoveryRequest) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests = append(m.requests, r)
	return nil
}

// offerSet makes the resources the current set, with the next version, which it returns.
func (m *manager) offerSet(resources ...types.Resource) string {
	m.t.Helper()
	m.version++
	version := "v" + strconv.Itoa(m.version)
	snapshot, err := cache.NewSnapshot(version, map[resource.Type][]types.Resource{
		resource.RateLimitConfigType: resources,
	})
	must.Succeed(m.t, err)
	must.Succeed(m.t, m.cache.SetSnapshot(context.Background(), "default", snapshot))
	return version
}

// offerAccepted offers a set, waits until the source has acknowledged it, and returns its version.
func (m *manager) offerAccepted(resources ...types.Resource) string {
	m.t.Helper()
	version := m.offerSet(resources...)
	m.waitForRequest("acknowledgement of "+version, isAcknowledgement(version))
	return version
}

// waitForRequest returns the first request for which wanted returns true, even if it was received
// before the call.
func (m *manager) waitForRequest(
	what string, wanted func(*discoverypb.DiscoveryRequest) bool,
) *discoverypb.DiscoveryRequest {
	m.t.Helper()
	return m.waitForRequestAfter(0, what, wanted)
}

// waitForRequestAfter is waitForRequest without the first count requests.
func (m *manager) waitForRequestAfter(
	count int, what string, wanted func(*discoverypb.DiscoveryRequest) bool,
) *discoverypb.DiscoveryRequest {
	m.t.Helper()
	var found *discoverypb.DiscoveryRequest
	await.Until(m.t, what, func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		requests := m.requests[min(count, len(m.requests)):]
		i := slices.IndexFunc(requests, wanted)
		if i >= 0 {
			found = requests[i]
		}
		return i >= 0
	})
	return found
}

// requestCount returns how many requests were received.
func (m *manager) requestCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.requests)
}

func isAcknowledgement(version string) func(*discoverypb.DiscoveryRequest) bool {
	return func(r *discoverypb.DiscoveryRequest) bool {
		return r.GetVersionInfo() == version && r.GetResponseNonce() != "" && r.GetErrorDetail() == nil
	}
}

func isRefusal(r *discoverypb.DiscoveryRequest) bool { return r.GetErrorDetail() != nil }

// domainResource is a resource with one descriptor "k" of ten requests a minute.
func domainResource(name string) *configpb.RateLimitConfig {
	return &configpb.RateLimitConfig{
		Name: name, Domain: name,
		Descriptors: []*configpb.RateLimitDescriptor{{Key: "k", RateLimit: perMinute(10)}},
	}
}

func perMinute(count uint32) *configpb.RateLimitPolicy {
	return &configpb.RateLimitPolicy{Unit: configpb.RateLimitUnit_MINUTE, RequestsPerUnit: count}
}

func domainResources(names ...string) []types.Resource {
	list := make([]types.Resource, len(names))
	for i, name := range names {
		list[i] = domainResource(name)
	}
	return list
}

func largeResource(count int) *configpb.RateLimitConfig {
	c := &configpb.RateLimitConfig{Name: "large", Domain: "large"}
	for i := range count {
		c.Descriptors = append(c.Descriptors, &configpb.RateLimitDescriptor{
			Key: "k", Value: fmt.Sprintf("value %0200d", i), RateLimit: perMinute(1),
		})
	}
	return c
}

// pairResource is a domain with two equal rules.
func pairResource(count uint32) *configpb.RateLimitConfig {
	return &configpb.RateLimitConfig{Name: "pair", Domain: "pair", Descriptors: []*configpb.RateLimitDescriptor{
		{Key: "one", RateLimit: perMinute(count)}, {Key: "two", RateLimit: perMinute(count)},
	}}
}

// startServer runs a management server until the test ends, and returns its address.
func startServer(t *testing.T, s discoverypb.AggregatedDiscoveryServiceServer) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	g := grpc.NewServer()
	discoverypb.RegisterAggregatedDiscoveryServiceServer(g, s)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = g.Serve(listener)
	}()
	t.Cleanup(func() { g.Stop(); <-ended })
	return listener.Addr().String()
}
