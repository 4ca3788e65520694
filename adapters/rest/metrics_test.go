package rest_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/throttle"
	"github.com/tollgate-dev/tollgate/test/must"
)

// measuredService is a listener with metrics.
type measuredService struct {
	*service
	metrics *prometheus.Registry
}

func serveMeasured(t *testing.T, more ...rest.Part) measuredService {
	t.Helper()
	r := prometheus.NewRegistry()
	return measuredService{serveWith(t, config(), rest.Ports{Metrics: r, Health: new(rest.Health), Parts: more}), r}
}

// samples returns the values of a metric, by the values of the labels in the order of their names.
// The value of a histogram is its count.
func (m measuredService) samples(t *testing.T, name string) map[string]float64 {
	t.Helper()
	families, err := m.metrics.Gather()
	must.Succeed(t, err)
	all := map[string]float64{}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, sample := range family.GetMetric() {
			var labels []string
			for _, l := range sample.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			all[strings.Join(labels,
				" ")] = sample.GetCounter().GetValue() + sample.GetGauge().GetValue() +
				float64(sample.GetHistogram().GetSampleCount())
		}
	}
	return all
}

// TestRequestsAreCounted expects each request to be counted and timed once, by status, method, part
// and route.
func TestRequestsAreCounted(t *testing.T) {
	tooLarge := func() io.Reader { return strings.NewReader(strings.Repeat("a", rest.MaxBody+1)) }
	for name, c := range map[string]struct {
		method, path string
		body         io.Reader
		header       []string
		want         string
	}{
		"route": {"GET", "/auth/echo", nil, nil, "200 GET auth /auth/echo"},
		"query": {"GET", "/auth/echo?a=b", nil, nil, "200 GET auth /auth/echo"},
		"head":  {"HEAD", "/auth/echo", nil, nil, "200 HEAD auth /auth/echo"},
		"failure": {
			"GET", "/v0.1/fault/" + fmt.Sprint(int(fault.NotFound)), nil, nil,
			"404 GET v0.1 /v0.1/fault/" + fmt.Sprint(int(fault.NotFound)),
		},
		"panic":               {"GET", "/auth/panic", nil, nil, "500 GET auth /auth/panic"},
		"no part":             {"GET", "/health", nil, nil, "200 GET service /health"},
		"no route":            {"GET", "/nothing/at/all", nil, nil, "404 GET service none"},
		"no route of a part":  {"POST", "/auth/nothing", nil, nil, "404 POST auth none"},
		"wrong method":        {"DELETE", "/auth/echo", nil, nil, "405 DELETE auth none"},
		"unknown method":      {"BREW", "/auth/echo", nil, nil, "405 other auth none"},
		"body over the bound": {"POST", "/auth/body", tooLarge(), nil, "413 POST auth none"},
		"header over the bound": {
			"GET", "/auth/echo", nil, []string{"X-Long", strings.Repeat("a", 20<<10)}, "431 GET service none",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveMeasured(t)
			before := s.samples(t, "tollgate_http_requests_total")
			s.call(t, c.method, c.path, c.body, c.header...)
			after := s.samples(t, "tollgate_http_requests_total")
			var got []string
			for labels, value := range after {
				if grown := value - before[labels]; grown != 0 {
					got = append(got, fmt.Sprint(labels, " ", grown))
				}
			}
			if !slices.Equal(got, []string{c.want + " 1"}) {
				t.Errorf("counted %q, want %q once", got, c.want)
			}
			_, untimed, _ := strings.Cut(c.want, " ")
			if n := s.samples(t, "tollgate_http_request_duration_seconds")[untimed]; n != 1 {
				t.Errorf("timed %v times, want once", n)
			}
		})
	}
}

// TestRefusedByLimit expects requests over the limit to be counted for their part.
func TestRefusedByLimit(t *testing.T) {
	s := serveMeasured(t)
	s.throttle.limit = 1
	for range 3 {
		s.call(t, "GET", "/auth/echo", nil)
	}
	got := s.samples(t, "tollgate_http_requests_total")
	if got["200 GET auth /auth/echo"] != 1 || got["429 GET auth none"] != 2 {
		t.Errorf("the metrics are %v", got)
	}
}

// waitingPart is a part whose handler waits until leave is closed.
type waitingPart struct {
	part
	arrived, leave chan struct{}
}

func (w waitingPart) Mount(r fiber.Router) {
	r.Get("/wait/:here/*", func(*fiber.Ctx) error {
		w.arrived <- struct{}{}
		<-w.leave
		return nil
	})
}

// TestInFlight expects a request to be in flight, and its connection to be open, until the
// response. The label of the route has no values of parameters.
func TestInFlight(t *testing.T) {
	w := waitingPart{part{"/wait", throttle.APIAddress}, make(chan struct{}), make(chan struct{})}
	s := serveMeasured(t, w)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		s.call(t, "GET", "/wait/a-name/and/more", nil)
	}()
	<-w.arrived
	for _, name := range []string{"tollgate_http_requests_in_flight", "tollgate_http_connections"} {
		if got := s.samples(t, name)[""]; got != 1 {
			t.Errorf("%s is %v, want 1", name, got)
		}
	}
	close(w.leave)
	<-finished
	if got := s.samples(t, "tollgate_http_requests_in_flight")[""]; got != 0 {
		t.Errorf("%v requests are in flight after the last response", got)
	}
	if got := s.samples(t, "tollgate_http_requests_total"); got["200 GET wait /wait/{here}/{path}"] != 1 {
		t.Errorf("the metrics are %v", got)
	}
}

// TestNoConnections expects 0 connections, not -1, before Serve.
func TestNoConnections(t *testing.T) {
	r := prometheus.NewRegistry()
	rest.New(config(), rest.Ports{Metrics: r, Throttle: &stubThrottle{}, Clock: clocktest.NewManual(now)})
	if got, present := (measuredService{metrics: r}).samples(t, "tollgate_http_connections")[""]; got != 0 || !present {
		t.Errorf("%v connections are open (present: %v), want 0", got, present)
	}
}

// TestTooManyConnections expects a full server to refuse further connections and to count each of
// them once, with and without TLS. Without TLS the client gets a response.
func TestTooManyConnections(t *testing.T) {
	for name, listen := range map[string]func(*testing.T, rest.Config, *prometheus.Registry) *service{
		"plain": func(t *testing.T, cfg rest.Config, r *prometheus.Registry) *service {
			return serveWith(t, cfg, rest.Ports{Metrics: r})
		},
		"tls": func(t *testing.T, cfg rest.Config, r *prometheus.Registry) *service {
			s, _ := serveTLS(t, cfg, rest.Ports{Metrics: r})
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, r := config(), prometheus.NewRegistry()
			cfg.MaxConnections = 2
			s := measuredService{listen(t, cfg, r), r}
			for range cfg.MaxConnections {
				openConn(t, s.address)
			}
			const refused, tooMany = "tollgate_http_connections_refused_total", 3
			if got := s.samples(t, refused)[""]; got != 0 {
				t.Errorf("%v are refused before the limit", got)
			}
			for range tooMany {
				received, err := io.ReadAll(openConn(t, s.address))
				if errors.Is(err, os.ErrDeadlineExceeded) {
					t.Fatal("the connection beyond the limit is not closed")
				}
				if name == "plain" {
					checkRefusal(t, received)
				}
			}
			if got := s.samples(t, refused)[""]; got != tooMany {
				t.Errorf("%v are refused, want %d", got, tooMany)
			}
		})
	}
}

// checkRefusal expects one complete response and no further bytes.
func checkRefusal(t *testing.T, received []byte) {
	t.Helper()
	r := bufio.NewReader(bytes.NewReader(received))
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatalf("%q is not an HTTP response: %v", received, err)
	}
	defer func() { _ = resp.Body.Close() }() // nothing more is read
	body, err := io.ReadAll(resp.Body)
	h := resp.Header
	if err != nil || resp.StatusCode != http.StatusServiceUnavailable ||
		string(body) != `{"error":"too many connections"}` ||
		h.Get("Retry-After") != "1" || h.Get("Content-Type") != "application/json" || !resp.Close || r.Buffered() > 0 {
		t.Errorf("got %q, %v", received, err)
	}
}

// openConn opens a connection without sending a request.
func openConn(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	must.Succeed(t, err)
	t.Cleanup(func() { _ = c.Close() })
	must.Succeed(t, c.SetDeadline(time.Now().Add(30*time.Second)))
	return c
}

// TestDurationsAreSeconds expects durations from the arrival of the request.
func TestDurationsAreSeconds(t *testing.T) {
	s := serveMeasured(t)
	for _, path := range []string{"/auth/echo", "/nothing"} {
		s.call(t, "GET", path, nil)
	}
	s.call(t, "POST", "/auth/body", strings.NewReader(strings.Repeat("a", rest.MaxBody+1)))
	families, err := s.metrics.Gather()
	must.Succeed(t, err)
	timed := 0
	for _, family := range families {
		for _, sample := range family.GetMetric() {
			if h := sample.GetHistogram(); h.GetSampleCount() > 0 {
				timed++
				if h.GetSampleSum() <= 0 || h.GetSampleSum() > 3600 {
					t.Errorf("%v took %v seconds", sample.GetLabel(), h.GetSampleSum())
				}
			}
		}
	}
	if timed != 3 {
		t.Errorf("%d requests were timed, want 3", timed)
	}
}

// TestRequestsAddNoSeries expects the same number of series for any requests.
func TestRequestsAddNoSeries(t *testing.T) {
	s := serveMeasured(t)
	seriesAfter := func(n int) int {
		for _, method := range []string{"GET", fmt.Sprint("BREW", n)} {
			s.call(t, method, fmt.Sprint("/nothing/", n), nil)
			s.call(t, method, fmt.Sprint("/auth/", n), nil, "User-Agent", fmt.Sprint(n))
		}
		return len(s.samples(t, "tollgate_http_requests_total"))
	}
	first := seriesAfter(0)
	for n := range 20 {
		if got := seriesAfter(n); got != first {
			t.Fatalf("there are %d series, want %d as before", got, first)
		}
	}
}
