package rest_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/ports/throttle"
)

// slowPart is a part whose handler waits until leave is closed.
type slowPart struct {
	part
	entered, leave chan struct{}
}

func (s slowPart) Mount(r fiber.Router) {
	r.Get(s.prefix+"/wait", func(c *fiber.Ctx) error {
		close(s.entered)
		<-s.leave
		return c.SendString("done")
	})
}

func TestShutdownWaitsForCalls(t *testing.T) {
	waiting := slowPart{part{"/slow", throttle.APIAddress}, make(chan struct{}), make(chan struct{})}
	s := serve(t, config(), nil, waiting)
	responses := make(chan response, 1)
	go func() { responses <- s.call(t, http.MethodGet, "/slow/wait", nil) }()
	<-waiting.entered

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- s.server.Shutdown(ctx) }()
	select {
	case err := <-ended:
		t.Fatalf("Shutdown did not wait for the request in flight: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(waiting.leave)
	if a := <-responses; a.status != 200 || a.body != "done" {
		t.Errorf("the request in flight: %d %s", a.status, a.body)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestShutdownClosesUnusedConnections expects Shutdown not to wait for connections without a
// request or with half a header, and not to log them as failed requests.
func TestShutdownClosesUnusedConnections(t *testing.T) {
	s := serve(t, config(), nil)
	for _, begun := range []string{"", "GET /v0.1/ec"} {
		var dial net.Dialer
		c, err := dial.DialContext(t.Context(), "tcp", s.address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write([]byte(begun)); err != nil {
			t.Fatal(err)
		}
	}
	if a := s.call(t, http.MethodGet, "/v0.1/echo", nil); a.status != http.StatusOK {
		t.Fatal(a.status)
	}
	ctx, cancel := context.WithTimeout(t.Context(), config().ReadTimeout/2)
	defer cancel()
	if err := s.server.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	if log := s.log.String(); strings.Contains(log, "request failed") {
		t.Errorf("logged:\n%s", log)
	}
}

// TestDrainClosesConnections expects every response to close its connection while the service
// drains.
func TestDrainClosesConnections(t *testing.T) {
	health := rest.NewHealth()
	s := serve(t, config(), health)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	isClosed := func(path string) bool {
		t.Helper()
		r, err := client.Get(s.url + path)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Body.Close(); err != nil {
			t.Fatal(err)
		}
		return r.Close
	}
	for _, draining := range []bool{false, true} {
		for _, path := range []string{"/v0.1/echo", "/v0.1/plain", "/v0.1/panic", "/nothing", "/ready"} {
			if got := isClosed(path); got != draining {
				t.Errorf("draining %t: the response of %s closes the connection: %t", draining, path, got)
			}
		}
		health.Drain()
	}
}
