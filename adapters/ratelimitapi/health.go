package ratelimitapi

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	ratelimitpb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/tollgate-dev/tollgate/core/ratelimit/reload"
)

// Check is one component of health.
type Check struct {
	Name    string
	Healthy func() bool // cheap and safe for concurrent use
}

// Health is the health of the service. The service is healthy if all components are (contract
// L-30). It is safe for concurrent use.
type Health struct {
	checks   []Check
	draining atomic.Bool
	drained  chan struct{} // closed by Drain
}

// NewHealth returns the health of components. It adds the component "termination".
func NewHealth(checks ...Check) *Health {
	return &Health{checks: checks, drained: make(chan struct{})}
}

// ConfigurationCheck returns the component of the rules. It is healthy with at least one domain if
// AtLeastOneSet is true; else with any configuration, or always if ForceStart is true.
func ConfigurationCheck(c HealthConfig, rules *reload.Rules) Check {
	return Check{Name: "configuration", Healthy: func() bool {
		set := rules.Current()
		if c.AtLeastOneSet {
			return set != nil && set.DomainCount() > 0
		}
		return set != nil || c.ForceStart
	}}
}

// RulesReady returns a readiness check of the loaded rules. It fails while the configuration is
// unhealthy, so that an instance does not get calls before it has its rules, unless expected
// returns false: then there are no rules to wait for, and the other parts of the service work
// without them.
func RulesReady(c HealthConfig, rules *reload.Rules, expected func() bool) func(context.Context) error {
	loaded := ConfigurationCheck(c, rules).Healthy
	return func(context.Context) error {
		if loaded() || !expected() {
			return nil
		}
		return errors.New("no rate limit configuration is in force")
	}
}

// Drain makes the component "termination" unhealthy until the process ends.
func (h *Health) Drain() {
	if h.draining.CompareAndSwap(false, true) {
		close(h.drained)
	}
}

// Unhealthy returns the names of the components that are not healthy.
func (h *Health) Unhealthy() []string {
	var names []string
	for _, c := range h.checks {
		if !c.Healthy() {
			names = append(names, c.Name)
		}
	}
	if h.draining.Load() {
		names = append(names, "termination")
	}
	return names
}

// watchInterval is the time between two checks of a watched health.
const watchInterval = 500 * time.Millisecond

// healthService implements the gRPC health protocol.
type healthService struct {
	healthpb.UnimplementedHealthServer
	health *Health
}

// serviceNames returns the names of services in the health protocol (contract L-30).
func serviceNames() []string {
	return []string{"", "ratelimit", ratelimitpb.RateLimitService_ServiceDesc.ServiceName}
}

func (s *healthService) servingStatus(service string) healthpb.HealthCheckResponse_ServingStatus {
	for _, known := range serviceNames() {
		if known != service {
			continue
		}
		if len(s.health.Unhealthy()) > 0 {
			return healthpb.HealthCheckResponse_NOT_SERVING
		}
		return healthpb.HealthCheckResponse_SERVING
	}
	return healthpb.HealthCheckResponse_SERVICE_UNKNOWN
}

// Check implements the health protocol.
func (s *healthService) Check(
	_ context.Context, r *healthpb.HealthCheckRequest,
) (*healthpb.HealthCheckResponse, error) {
	found := s.servingStatus(r.GetService())
	if found == healthpb.HealthCheckResponse_SERVICE_UNKNOWN {
		return nil, status.Error(codes.NotFound, "unknown service")
	}
	return &healthpb.HealthCheckResponse{Status: found}, nil
}

// List implements the health protocol.
func (s *healthService) List(context.Context, *healthpb.HealthListRequest) (*healthpb.HealthListResponse, error) {
	list := &healthpb.HealthListResponse{Statuses: map[string]*healthpb.HealthCheckResponse{}}
	for _, name := range serviceNames() {
		list.Statuses[name] = &healthpb.HealthCheckResponse{Status: s.servingStatus(name)}
	}
	return list, nil
}

// Watch implements the health protocol. When the service drains, it sends the last status and ends,
// so that a watcher does not delay the shutdown.
func (s *healthService) Watch(
	r *healthpb.HealthCheckRequest, stream grpc.ServerStreamingServer[healthpb.HealthCheckResponse],
) error {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	sent := healthpb.HealthCheckResponse_UNKNOWN
	for {
		drained := s.health.draining.Load()
		if found := s.servingStatus(r.GetService()); found != sent {
			if err := stream.Send(&healthpb.HealthCheckResponse{Status: found}); err != nil {
				return fmt.Errorf("send health: %w", err)
			}
			sent = found
		}
		if drained {
			return status.Error(codes.Unavailable, "the service is terminating")
		}
		select {
		case <-stream.Context().Done():
			return status.FromContextError(stream.Context().Err()).Err()
		case <-s.health.drained:
		case <-ticker.C:
		}
	}
}
