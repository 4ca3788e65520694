package rest

import (
	"cmp"
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"
)

// probeTimeout bounds one check of one dependency.
const probeTimeout = 2 * time.Second

// Probe checks one dependency, or reports whether a part works with old data. It has Check, or
// State, or both.
type Probe struct {
	Name  string
	Check func(context.Context) error
	// State returns the state of a part that works with data that may be outdated, because a dependency
	// is down; empty if it is not. Without Check, the part is named only then.
	State func() string
	// Covered means that the service still works while the dependency is down, because a failure
	// mode replaces it. The service is then degraded, but ready.
	Covered bool
	// Unused means that the service does not use the dependency. Its state is then "not used".
	Unused func() bool
}

// healthPaths are the paths of /health: its own, and those of the publishing client (contract
// P-22).
var healthPaths = []string{"/health", "/v0.1/health", "/v0/health"}

// Health serves /health, which reports whether the process is alive, and /ready, which reports
// whether it can do its work. It is safe for concurrent use.
type Health struct {
	probes   []Probe
	draining atomic.Bool

	requests, errors window
	refused          atomic.Int64 // when the limit of sign-ins has refused a request, in Unix seconds
}

// Add adds dependencies. It must be called before the first request.
func (h *Health) Add(probes ...Probe) { h.probes = append(h.probes, probes...) }

// Drain makes /health and /ready report that the service is terminating, so that load balancers
// send no new requests. The service still serves all requests (contract O-18).
func (h *Health) Drain() { h.draining.Store(true) }

// isDraining reports whether Drain was called. A nil Health is not draining.
func (h *Health) isDraining() bool { return h != nil && h.draining.Load() }

func (h *Health) addRoutes(r fiber.Router) {
	for _, path := range healthPaths {
		r.Get(path, h.sendHealth)
	}
	r.Get("/ready", h.sendReadiness)
}

type healthResponse struct {
	Status string `json:"status"`
}

type readyResponse struct {
	Status       string            `json:"status"`
	Dependencies map[string]string `json:"dependencies"` // empty while draining
}

func (h *Health) sendHealth(c *fiber.Ctx) error {
	c.Set(fiber.HeaderCacheControl, "no-store")
	if h.isDraining() {
		return c.Status(http.StatusServiceUnavailable).JSON(healthResponse{Status: "terminating"})
	}
	return c.JSON(healthResponse{Status: "ok"})
}

func (h *Health) sendReadiness(c *fiber.Ctx) error {
	c.Set(fiber.HeaderCacheControl, "no-store")
	if h.isDraining() { // without checking the dependencies
		return c.Status(http.StatusServiceUnavailable).JSON(readyResponse{"terminating", map[string]string{}})
	}
	response := h.newReadyResponse(h.checkDependencies(c.UserContext()))
	if response.Status == "unavailable" {
		c.Status(http.StatusServiceUnavailable)
	}
	return c.JSON(response)
}

// States returns what /ready says: the status, and the state of each dependency.
func (h *Health) States(ctx context.Context) (status string, states map[string]string) {
	r := h.newReadyResponse(h.checkDependencies(ctx))
	return r.Status, r.Dependencies
}

// newReadyResponse returns the response for the errors of the checks by dependency.
func (h *Health) newReadyResponse(errs map[string]error) readyResponse {
	response := readyResponse{"ok", map[string]string{}}
	for _, p := range h.probes {
		state := ""
		if p.State != nil {
			state = p.State()
		}
		if p.Check == nil {
			if state != "" {
				response.Dependencies[p.Name] = state
			}
			continue
		}
		response.Dependencies[p.Name] = cmp.Or(state, "ok")
		switch {
		case p.Unused != nil && p.Unused():
			response.Dependencies[p.Name] = "not used"
			continue
		case errs[p.Name] == nil:
			continue
		case !p.Covered:
			response.Status = "unavailable"
		case response.Status == "ok":
			response.Status = "degraded"
		}
		response.Dependencies[p.Name] = cmp.Or(state, "down")
	}
	return response
}

// checkDependencies checks all dependencies concurrently and returns the errors by dependency.
func (h *Health) checkDependencies(ctx context.Context) map[string]error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	errs := make(map[string]error, len(h.probes))
	for _, p := range h.probes {
		if p.Check == nil {
			continue
		}
		wg.Go(func() {
			err := p.Check(ctx)
			mu.Lock()
			defer mu.Unlock()
			errs[p.Name] = err
		})
	}
	wg.Wait()
	return errs
}
