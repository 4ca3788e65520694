package outages

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/must"
)

const (
	spareDescriptors = 8  // number of file descriptors that the service may open in addition
	idleConnections  = 40 // number of connections that use them up
)

const changedRules = `domain: faults
descriptors:
  - key: few
    rate_limit: {unit: day, requests_per_unit: %d}
`

// TestDescriptorsUsedUp floods each listener in turn with idle connections until the service has no
// file descriptors left, and changes the rules meanwhile. The service must go on: once the
// connections are closed, every listener answers, and the changed rules come into force without
// another change.
func TestDescriptorsUsedUp(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "grpc.sock")
	for name, listener := range map[string]struct {
		environ []string
		address func(*service) string
	}{
		"api":            {nil, func(s *service) string { return s.API }},
		"ratelimit_http": {nil, func(s *service) string { return s.RateLimitHTTP }},
		"grpc":           {nil, func(s *service) string { return s.GRPC }},
		"debug":          {nil, func(s *service) string { return s.Debug }},
		"socket": {
			[]string{"GRPC_UDS=" + socket}, func(s *service) string { s.GRPC = "unix:" + socket; return s.GRPC },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startProcess(t, append(listener.environ, "ENVIRONMENT=embedded")...)
			target := listener.address(s)
			s.wantResponses(t)
			s.useUpDescriptors()
			free := s.openConnections(target)
			s.writeRules("rules.yaml", fmt.Sprintf(changedRules, 77))
			await.Until(t, "rules that cannot be read", func() bool {
				return strings.Contains(s.Log(), "cannot be accepted") &&
					strings.Contains(s.Log(), "cannot be read: too many open files")
			})
			free()
			s.wantResponses(t)
			client := newRateLimitClient(t, s) // one for all attempts: each client needs a descriptor of the service
			await.Until(t, "the changed rules", func() bool {
				r, err := client.ShouldRateLimit(t.Context(), newRequest("few", name))
				return err == nil && r.GetStatuses()[0].GetCurrentLimit().GetRequestsPerUnit() == 77
			})
			label := strings.Replace(name, "socket", "grpc", 1)
			if s.readMetric(`tollgate_listener_accept_errors_total{listener="`+label+`"}`) == 0 {
				t.Error("no failed accept is counted")
			}
			if n := strings.Count(s.Log(), "cannot be accepted"); n > 5 {
				t.Errorf("failed accepts are logged %d times", n)
			}
		})
	}
}

// wantResponses checks that every listener responds.
func (s *service) wantResponses(t *testing.T) {
	t.Helper()
	for _, url := range []string{
		"http://" + s.API + "/health", "http://" + s.RateLimitHTTP + "/healthcheck", "http://" + s.Debug + "/stats",
	} {
		await.Until(t, url, func() bool {
			r, err := http.Get(url) //nolint:gosec // the instance's own
			if err != nil {
				return false
			}
			_ = r.Body.Close() // only the status matters
			return r.StatusCode == http.StatusOK
		})
	}
	client := newRateLimitClient(t, s)
	await.Until(t, "a gRPC answer", func() bool {
		_, err := client.ShouldRateLimit(t.Context(), newRequest("steady", "descriptors"))
		return err == nil
	})
}

// useUpDescriptors limits the service to a few more file descriptors than it has open.
func (s *service) useUpDescriptors() {
	s.t.Helper()
	http.DefaultClient.CloseIdleConnections()
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.PID()))
	if err != nil {
		s.t.Skip("the descriptors of a process cannot be counted here")
	}
	limit := uint64(len(open) + spareDescriptors)
	must.Succeed(s.t, unix.Prlimit(s.PID(), unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit, Max: limit}, nil))
}

// openConnections opens idle connections and returns a function that closes them.
func (s *service) openConnections(target string) (free func()) {
	s.t.Helper()
	network := "tcp"
	if path, isSocket := strings.CutPrefix(target, "unix:"); isSocket {
		network, target = "unix", path
	}
	conns := make([]net.Conn, idleConnections)
	for i := range conns {
		c, err := net.Dial(network, target)
		must.Succeed(s.t, err)
		conns[i] = c
	}
	return func() {
		for _, c := range conns {
			_ = c.Close() // no data was sent on it
		}
	}
}
