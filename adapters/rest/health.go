package rest

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"
)

// probeTimeout bounds one look at one dependency.
const probeTimeout = 2 * time.Second

// Probe looks at one dependency.
type Probe struct {
	Name  string
	Check func(context.Context) error
	// Covered means that the service still does its work while the dependency is down, because a
	// failure mode says how: it is then degraded, and still ready.
	Covered bool
}

// Health answers whether the process lives and whether it can do its work.
type Health struct {
	probes   []Probe
	draining atomic.Bool
}

// NewHealth returns the health of a service with the given dependencies.
func NewHealth(probes ...Probe) *Health { return &Health{probes: probes} }

// Drain makes health and readiness unhealthy, so that no new callers are sent here while everything
// is still answered (contract O-18).
func (h *Health) Drain() { h.draining.Store(true) }

// drains reports whether Drain was called; a nil health never drains.
func (h *Health) drains() bool { return h != nil && h.draining.Load() }

func (h *Health) mount(r fiber.Router) {
	r.Get("/health", h.alive)
	r.Get("/ready", h.ready)
}

type healthAnswer struct {
	Status string `json:"status"`
}

type readyAnswer struct {
	Status       string            `json:"status"`
	Dependencies map[string]string `json:"dependencies"` // none while draining
}

func (h *Health) alive(c *fiber.Ctx) error {
	c.Set(fiber.HeaderCacheControl, "no-store")
	if h.drains() {
		return c.Status(http.StatusServiceUnavailable).JSON(healthAnswer{Status: "terminating"})
	}
	return c.JSON(healthAnswer{Status: "ok"})
}

func (h *Health) ready(c *fiber.Ctx) error {
	c.Set(fiber.HeaderCacheControl, "no-store")
	if h.drains() { // whatever the dependencies say
		return c.Status(http.StatusServiceUnavailable).JSON(readyAnswer{"terminating", map[string]string{}})
	}
	answer := h.readiness(h.look(c.UserContext()))
	if answer.Status == "unavailable" {
		c.Status(http.StatusServiceUnavailable)
	}
	return c.JSON(answer)
}

// readiness returns the answer for what was found of each dependency.
func (h *Health) readiness(found map[string]error) readyAnswer {
	answer := readyAnswer{"ok", map[string]string{}}
	for _, p := range h.probes {
		answer.Dependencies[p.Name] = "ok"
		switch {
		case found[p.Name] == nil:
			continue
		case !p.Covered:
			answer.Status = "unavailable"
		case answer.Status == "ok":
			answer.Status = "degraded"
		}
		answer.Dependencies[p.Name] = "down"
	}
	return answer
}

// look probes all dependencies at once.
func (h *Health) look(ctx context.Context) map[string]error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	found := make(map[string]error, len(h.probes))
	for _, p := range h.probes {
		wg.Go(func() {
			err := p.Check(ctx)
			mu.Lock()
			defer mu.Unlock()
			found[p.Name] = err
		})
	}
	wg.Wait()
	return found
}
