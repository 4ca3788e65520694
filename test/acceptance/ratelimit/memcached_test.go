package ratelimit

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// onEachStore runs a test of rate limits with every store of counters: in every environment, and
// with the rate limit service alone on memcached.
func onEachStore(t *testing.T, test func(t *testing.T, e *fixture.Environment)) {
	fixture.InBothEnvironments(t, test)
	if address := os.Getenv("TEST_MEMCACHED_ADDR"); address != "" {
		t.Run("memcached", func(t *testing.T) { test(t, newMemcachedEnvironment(t, address)) })
	}
}

// newMemcachedEnvironment returns an environment of the rate limit service alone, with the
// variables that users of the Envoy rate limit service set.
func newMemcachedEnvironment(t *testing.T, address string) *fixture.Environment {
	t.Helper()
	e := fixture.NewEnvironment(t, "memcached")
	e.Shared, e.Command = true, "ratelimit"
	e.Environ = append(e.Environ,
		"BACKEND_TYPE=memcache", "MEMCACHE_HOST_PORT="+address,
		fmt.Sprintf("CACHE_KEY_PREFIX=t%d_%d_", os.Getpid(), time.Now().UnixNano()),
	)
	return e
}

// TestMemcachedAway kills memcached under services of all failure modes. Each service responds as
// its mode says and health reports the failure. After memcached has started again, decisions are
// correct without a restart of the service.
func TestMemcachedAway(t *testing.T) {
	t.Parallel()
	m := newMemcached(t)
	m.start()
	services := map[string]*fixture.Service{}
	for _, mode := range []string{"error", "open", "closed", "local"} {
		services[mode] = newMemcachedEnvironment(t, m.address).Start(t, "KVSTORE_FAILURE_MODE="+mode,
			"KVSTORE_TIMEOUT=300ms")
	}
	for mode, s := range services {
		fixture.WantOverallCode(t, s.NewRateLimitClient(t),
			fixture.NewRateLimitRequest("shop", "tenant", mode, "path", "/pay"), ratelimit.RateLimitResponse_OK)
	}
	for _, failure := range []struct {
		name      string
		goes, end func()
	}{
		{"killed", m.kill, m.start},
		{"frozen", m.freeze, m.thaw},
	} {
		failure.goes()
		for mode, s := range services {
			awaitHealth(t, s, http.StatusServiceUnavailable)
			wantFailure(t, s, mode, failure.name)
		}
		failure.end()
		for mode, s := range services {
			awaitHealth(t, s, http.StatusOK)
			wantCounting(t, s, mode+failure.name)
		}
	}
}

// wantFailure calls a service whose store does not run.
func wantFailure(t *testing.T, s *fixture.Service, mode, failure string) {
	t.Helper()
	c, ask := s.NewRateLimitClient(t), fixture.NewRateLimitRequest("shop", "tenant", failure, "path", "/pay")
	// This is much longer than the deadline of the store, so that the service responds before the
	// client gives up.
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var got []string
	for range 3 {
		r, err := c.ShouldRateLimit(ctx, ask)
		if err != nil {
			got = append(got, status.Code(err).String())
		} else {
			got = append(got, r.OverallCode.String())
		}
	}
	want := map[string]string{
		"error":  strings.Repeat(codes.Unavailable.String()+" ", 3),
		"open":   "OK OK OK ",
		"closed": "OVER_LIMIT OVER_LIMIT OVER_LIMIT ",
		"local":  "OK OK OVER_LIMIT ", // the limit is 2
	}[mode]
	if strings.Join(got, " ")+" " != want {
		t.Errorf("%s, mode %s: %q, want %q", failure, mode, got, want)
	}
}

// wantCounting calls a service whose store runs again.
func wantCounting(t *testing.T, s *fixture.Service, tenant string) {
	t.Helper()
	c := s.NewRateLimitClient(t)
	for _, want := range []ratelimit.RateLimitResponse_Code{
		ratelimit.RateLimitResponse_OK, ratelimit.RateLimitResponse_OK, ratelimit.RateLimitResponse_OVER_LIMIT,
	} {
		fixture.WantOverallCode(t, c, fixture.NewRateLimitRequest("shop", "tenant", tenant, "path", "/pay"), want)
	}
}

func awaitHealth(t *testing.T, s *fixture.Service, want int) {
	t.Helper()
	await.Until(t, fmt.Sprintf("health that is %d", want), func() bool {
		return apiclient.Call(t, "GET", s.RateLimitAPI+"/healthcheck", nil).Status == want
	})
}

// TestMemcachedAwayAtStart checks that the service starts while the store does not run.
func TestMemcachedAwayAtStart(t *testing.T) {
	t.Parallel()
	m := newMemcached(t)
	s := newMemcachedEnvironment(t, m.address).StartWithoutRules(t)
	awaitCode(t, s, codes.Unavailable) // and not the response of a service without rules
	awaitHealth(t, s, http.StatusServiceUnavailable)
	m.start()
	awaitHealth(t, s, http.StatusOK)
	wantCounting(t, s, "start")
}

func awaitCode(t *testing.T, s *fixture.Service, want codes.Code) {
	t.Helper()
	c := s.NewRateLimitClient(t)
	await.Until(t, "an answer with "+want.String(), func() bool {
		_, err := c.ShouldRateLimit(t.Context(), fixture.NewRateLimitRequest("shop", "batch", "any"))
		return status.Code(err) == want
	})
}

// TestReadinessTellsOfMemcached checks that the whole service reports memcached in its readiness.
func TestReadinessTellsOfMemcached(t *testing.T) {
	t.Parallel()
	m := newMemcached(t)
	m.start()
	e := newMemcachedEnvironment(t, m.address)
	e.Command = "serve"
	s := e.Start(t)
	apiclient.Call(t, "GET", s.API+"/ready", nil).WantStatus(t, http.StatusOK)
	apiclient.Call(t, "GET", s.API+"/v0.1/servers", nil).WantStatus(t, http.StatusOK)
	m.kill()
	awaitHealth(t, s, http.StatusServiceUnavailable)
	if a := apiclient.Call(t, "GET", s.API+"/ready", nil).WantStatus(t,
		http.StatusServiceUnavailable); !strings.Contains(string(a.Body), "counters") {
		t.Errorf("readiness does not name the counters: %s", a.Body)
	}
	m.start()
	awaitHealth(t, s, http.StatusOK)
	apiclient.Call(t, "GET", s.API+"/ready", nil).WantStatus(t, http.StatusOK)
}

// memcachedServer is a memcached process that belongs to one test.
type memcachedServer struct {
	t       *testing.T
	address string
	process *exec.Cmd
}

// newMemcached returns a memcached that is not started yet. It skips the test if memcached is not
// installed.
func newMemcached(t *testing.T) *memcachedServer {
	t.Helper()
	if _, err := exec.LookPath("memcached"); err != nil {
		t.Skip("memcached is not installed")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	m := &memcachedServer{t: t, address: l.Addr().String()}
	must.Succeed(t, l.Close())
	t.Cleanup(m.kill)
	return m
}

func (m *memcachedServer) start() {
	m.t.Helper()
	host, port, _ := net.SplitHostPort(m.address)
	args := []string{"-l", host, "-p", port, "-U", "0", "-m", "16", "-t", "1"}
	if os.Geteuid() == 0 {
		args = append(args, "-u", "nobody") // as root, memcached requires the name of an account to change to
	}
	m.process = exec.Command("memcached", args...)
	must.Succeed(m.t, m.process.Start())
	await.Until(m.t, "an answer of memcached", m.isReachable)
}

func (m *memcachedServer) isReachable() bool {
	c, err := net.DialTimeout("tcp", m.address, time.Second)
	if err != nil {
		return false
	}
	defer func() { _ = c.Close() }() // nothing is left to do about it
	_ = c.SetDeadline(time.Now().Add(time.Second))
	if _, err := io.WriteString(c, "version\r\n"); err != nil {
		return false
	}
	said, _ := bufio.NewReader(c).ReadString('\n') // the result does not depend on an error
	return strings.HasPrefix(said, "VERSION")
}

func (m *memcachedServer) kill() {
	if m.process == nil {
		return
	}
	_ = m.process.Process.Kill() // it may have ended by itself
	_ = m.process.Wait()         // it ends by a signal, which is an error
	m.process = nil
}

func (m *memcachedServer) freeze() { m.signal(syscall.SIGSTOP) }

func (m *memcachedServer) thaw() { m.signal(syscall.SIGCONT) }

func (m *memcachedServer) signal(s syscall.Signal) {
	m.t.Helper()
	must.Succeed(m.t, m.process.Process.Signal(s))
}
