package xds

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	discoverypb "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	configpb "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// manager is a management server: go-control-plane's own, over real gRPC.
type manager struct {
	t       *testing.T
	cache   cache.SnapshotCache
	version int
	address string
	stop    func()

	mu       sync.Mutex
	headers  []metadata.MD // of each stream
	requests []*discoverypb.DiscoveryRequest
	changed  chan struct{} // closed and made anew with each request
}

func newManager(t *testing.T, options ...grpc.ServerOption) *manager {
	t.Helper()
	m := &manager{t: t, cache: cache.NewSnapshotCache(false, cache.IDHash{}, nil), changed: make(chan struct{})}
	m.start("127.0.0.1:0", options...)
	return m
}

// start serves until stop, at the latest until the test ends.
func (m *manager) start(address string, options ...grpc.ServerOption) {
	m.t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		m.t.Fatal(err)
	}
	m.address = listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	g := grpc.NewServer(options...)
	discoverypb.RegisterAggregatedDiscoveryServiceServer(g, server.NewServer(ctx, m.cache, server.CallbackFuncs{
		StreamOpenFunc: m.opened, StreamRequestFunc: m.requested,
	}))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = g.Serve(listener)
	}()
	m.stop = sync.OnceFunc(func() { g.Stop(); cancel(); <-ended })
	m.t.Cleanup(m.stop)
}

func (m *manager) opened(ctx context.Context, _ int64, _ string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	md, _ := metadata.FromIncomingContext(ctx)
	m.headers = append(m.headers, md)
	return nil
}

func (m *manager) requested(_ int64, r *discoverypb.DiscoveryRequest) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests = append(m.requests, r)
	close(m.changed)
	m.changed = make(chan struct{})
	return nil
}

// offer makes the resources the present set, under the next version, which it
// returns.
func (m *manager) offer(resources ...types.Resource) string {
	m.t.Helper()
	m.version++
	version := "v" + strconv.Itoa(m.version)
	snapshot, err := cache.NewSnapshot(version, map[resource.Type][]types.Resource{resource.RateLimitConfigType: resources})
	if err != nil {
		m.t.Fatal(err)
	}
	if err := m.cache.SetSnapshot(context.Background(), "default", snapshot); err != nil {
		m.t.Fatal(err)
	}
	return version
}

// await returns the first request that is wanted, also one that came before.
func (m *manager) await(what string, wanted func(*discoverypb.DiscoveryRequest) bool) *discoverypb.DiscoveryRequest {
	m.t.Helper()
	return m.awaitAfter(0, what, wanted)
}

// awaitAfter leaves out the first so many requests.
func (m *manager) awaitAfter(count int, what string, wanted func(*discoverypb.DiscoveryRequest) bool) *discoverypb.DiscoveryRequest {
	m.t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		m.mu.Lock()
		requests, changed := m.requests[min(count, len(m.requests)):], m.changed
		m.mu.Unlock()
		for _, r := range requests {
			if wanted(r) {
				return r
			}
		}
		select {
		case <-changed:
		case <-deadline:
			m.t.Fatalf("the server has seen no %s, but %v", what, requests)
		}
	}
}

// seen returns how many requests have come.
func (m *manager) seen() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.requests)
}

func acknowledges(version string) func(*discoverypb.DiscoveryRequest) bool {
	return func(r *discoverypb.DiscoveryRequest) bool {
		return r.GetVersionInfo() == version && r.GetResponseNonce() != "" && r.GetErrorDetail() == nil
	}
}

func refuses(r *discoverypb.DiscoveryRequest) bool { return r.GetErrorDetail() != nil }

// domain is a resource with one descriptor "k" of ten requests a minute.
func domain(name string) *configpb.RateLimitConfig {
	return &configpb.RateLimitConfig{
		Name: name, Domain: name,
		Descriptors: []*configpb.RateLimitDescriptor{{Key: "k", RateLimit: perMinute(10)}},
	}
}

func perMinute(count uint32) *configpb.RateLimitPolicy {
	return &configpb.RateLimitPolicy{Unit: configpb.RateLimitUnit_MINUTE, RequestsPerUnit: count}
}

func domains(names ...string) []types.Resource {
	list := make([]types.Resource, len(names))
	for i, name := range names {
		list[i] = domain(name)
	}
	return list
}

func large(count int) *configpb.RateLimitConfig {
	c := &configpb.RateLimitConfig{Name: "large", Domain: "large"}
	for i := range count {
		c.Descriptors = append(c.Descriptors, &configpb.RateLimitDescriptor{
			Key: "k", Value: fmt.Sprintf("value %d", i), RateLimit: perMinute(1),
		})
	}
	return c
}

// pair is a domain with two equal rules.
func pair(count uint32) *configpb.RateLimitConfig {
	return &configpb.RateLimitConfig{Name: "pair", Domain: "pair", Descriptors: []*configpb.RateLimitDescriptor{
		{Key: "one", RateLimit: perMinute(count)}, {Key: "two", RateLimit: perMinute(count)},
	}}
}

// serve runs a management server until the test ends and returns its address.
func serve(t *testing.T, s discoverypb.AggregatedDiscoveryServiceServer) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
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
