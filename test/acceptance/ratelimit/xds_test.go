package ratelimit

import (
	"context"
	"fmt"
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
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
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

// TestManagementServerSwapsUnderLoad replaces 200 sets of rules while callers make calls. No call
// fails, and each decision comes from an offered set.
func TestManagementServerSwapsUnderLoad(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	m := newManagementServer(t, address)
	m.offer(t, "0", newShopRules(1_000_000, configpb.RateLimitUnit_DAY))
	s := startOnServer(t, fixture.NewEnvironment(t, "embedded"), address, "serve")
	s.AwaitRules()
	ctx, stop := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	for caller := range 4 {
		c := s.NewRateLimitClient(t)
		callers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				r, err := c.ShouldRateLimit(t.Context(),
					fixture.NewRateLimitRequest("shop", "tenant", fmt.Sprint(caller, n%16)))
				if err != nil || r.OverallCode != ratelimit.RateLimitResponse_OK {
					t.Errorf("a call during a swap: %v, %v", r, err)
					return
				}
				if got := r.Statuses[0].GetCurrentLimit().GetRequestsPerUnit(); got < 1_000_000 || got > 1_000_200 {
					t.Errorf("a call during a swap saw the limit %d", got)
					return
				}
			}
		})
	}
	for i := range uint32(200) {
		version := fmt.Sprint(i + 1)
		m.offer(t, version, newShopRules(1_000_000+i+1, configpb.RateLimitUnit_DAY))
		m.awaitVersion(t, version)
	}
	stop()
	callers.Wait()
	wantRule(t, s.NewRateLimitClient(t), fixture.NewRateLimitRequest("shop", "tenant", "last"), 1_000_200)
}

// TestManagementServerQuotaAndMetadata requires that a soft quota and the metadata of a descriptor,
// of a unit that older management servers do not have, work as in a file.
func TestManagementServerQuotaAndMetadata(t *testing.T) {
	t.Parallel()
	m := newManagementServer(t, freeAddress(t))
	metadata, err := structpb.NewStruct(map[string]any{"tier": "gold"})
	if err != nil {
		t.Fatal(err)
	}
	rules := newShopRules(1, configpb.RateLimitUnit_WEEK)
	rules.Descriptors[0].QuotaMode, rules.Descriptors[0].Metadata = true, metadata
	rules.Descriptors = append(rules.Descriptors, &configpb.RateLimitDescriptor{
		Key: "user", QuotaMode: true, RateLimit: &configpb.RateLimitPolicy{
			Unit: configpb.RateLimitUnit_YEAR, RequestsPerUnit: 9,
		},
	})
	m.offer(t, "1", rules)
	e := fixture.NewEnvironment(t, "embedded")
	e.Environ = append(e.Environ, "RESPONSE_DYNAMIC_METADATA=true")
	s := startOnServer(t, e, m.address, "ratelimit")
	s.AwaitRules()
	c := s.NewRateLimitClient(t)
	ask := fixture.NewRateLimitRequest("shop", "tenant", "a")
	ask.Descriptors = append(ask.Descriptors, fixture.NewRateLimitRequest("shop", "user", "b").Descriptors...)
	r := fixture.WantOverallCode(t, c, ask, ratelimit.RateLimitResponse_OK)
	if got := r.GetDynamicMetadata().GetFields()["metadata"].GetStructValue().
		GetFields()["tier"].GetStringValue(); got != "gold" {
		t.Errorf("the dynamic metadata is %v", r.GetDynamicMetadata())
	}
	r = fixture.WantOverallCode(t, c, ask, ratelimit.RateLimitResponse_OK)
	if r.Statuses[0].Code != ratelimit.RateLimitResponse_OVER_LIMIT ||
		r.Statuses[0].GetCurrentLimit().GetUnit() != ratelimit.RateLimitResponse_RateLimit_WEEK {
		t.Errorf("the status of the exceeded quota is %v", r.Statuses[0])
	}
}

// TestManagementServerSettings checks that a malformed header stops the start with an error that
// names the variable.
func TestManagementServerSettings(t *testing.T) {
	t.Parallel()
	e := fixture.NewEnvironment(t, "embedded")
	e.Environ = append(e.Environ, "CONFIG_TYPE=GRPC_XDS_SOTW", "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS=a:b,secret")
	_, stderr, code := e.TryCommand(t, "", "ratelimit")
	if code == 0 || !strings.Contains(stderr, "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: header 2 has no colon") ||
		strings.Contains(stderr, "secret") {
		t.Errorf("ends with %d and %q", code, stderr)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	if err := m.cache.SetSnapshot(t.Context(), node, snapshot); err != nil {
		t.Fatal(err)
	}
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
