package rest_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gofiber/fiber/v2"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/resttest"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/throttle"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/must"
)

// slowPart is a part whose handler waits until leave is closed.
type slowPart struct {
	part
	entered, leave chan struct{}
	left           *atomic.Bool
}

func (s slowPart) Mount(r fiber.Router) {
	r.Get(s.prefix+"/wait", func(c *fiber.Ctx) error {
		close(s.entered)
		<-s.leave
		s.left.Store(true)
		return c.SendString("done")
	})
}

func TestShutdownWaitsForCalls(t *testing.T) {
	waiting := slowPart{part{"/slow", throttle.APIAddress}, make(chan struct{}), make(chan struct{}), new(atomic.Bool)}
	s := serve(t, config(), nil, waiting)
	responses := make(chan response, 1)
	go func() { responses <- s.call(t, http.MethodGet, "/slow/wait", nil) }()
	await.Closed(t, "the request", waiting.entered)

	ctx, cancel := context.WithTimeout(t.Context(), await.Timeout)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		err := s.server.Shutdown(ctx)
		if !waiting.left.Load() {
			err = errors.Join(err, errors.New("it did not wait for the request in flight"))
		}
		ended <- err
	}()
	await.Until(t, "the end of the listener", func() bool {
		c, err := net.Dial("tcp", s.address)
		if err == nil {
			_ = c.Close() // the listener is still there
		}
		return err != nil
	})
	close(waiting.leave)
	if a := await.Receive(t, "the response", responses); a.status != 200 || a.body != "done" {
		t.Errorf("the request in flight: %d %s", a.status, a.body)
	}
	must.Succeed(t, await.Receive(t, "the end of Shutdown", ended))
}

// TestShutdownClosesUnusedConnections expects Shutdown not to wait for connections without a
// request or with half a header, and not to log them as failed requests.
func TestShutdownClosesUnusedConnections(t *testing.T) {
	s := serve(t, config(), nil)
	for _, begun := range []string{"", "GET /v0.1/ec"} {
		var dial net.Dialer
		c, err := dial.DialContext(t.Context(), "tcp", s.address)
		must.Succeed(t, err)
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
	must.Succeed(t, s.server.Shutdown(ctx))
	if log := s.log.String(); strings.Contains(log, "request failed") {
		t.Errorf("logged:\n%s", log)
	}
}

// TestDrainClosesConnections expects every response to close its connection while the service
// drains.
func TestDrainClosesConnections(t *testing.T) {
	health := new(rest.Health)
	s := serve(t, config(), health)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	isClosed := func(path string) bool {
		t.Helper()
		r, err := client.Get(s.url + path)
		must.Succeed(t, err)
		must.Succeed(t, r.Body.Close())
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

// TestShutdownAsItBegins expects Serve to return however close Shutdown is to it.
func TestShutdownAsItBegins(t *testing.T) {
	t.Parallel()
	log := logrus.New()
	log.SetOutput(io.Discard)
	for range 100 {
		s := rest.New(resttest.Config(), rest.Ports{Throttle: new(stubThrottle), Clock: clocktest.NewManual(now), Log: logrus.NewEntry(log)})
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must.Succeed(t, err)
		served := make(chan error, 1)
		go func() { served <- s.Serve(l) }()
		must.Succeed(t, s.Shutdown(t.Context()))
		must.Succeed(t, await.Receive(t, "the end of Serve", served))
	}
}
