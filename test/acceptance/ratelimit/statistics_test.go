package ratelimit

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// metricsDaemon stores the packets that it receives.
type metricsDaemon struct {
	port    string
	packets chan string
}

func newMetricsDaemon(t *testing.T) *metricsDaemon {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	must.Succeed(t, err)
	t.Cleanup(func() { _ = conn.Close() }) // the test is over
	_, port, _ := net.SplitHostPort(conn.LocalAddr().String())
	d := &metricsDaemon{port, make(chan string, 10_000)}
	go func() {
		buffer := make([]byte, 1<<16)
		for {
			n, _, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			d.packets <- string(buffer[:n])
		}
	}()
	return d
}

// newStreamDaemon returns a metrics daemon on a TCP port, which stores each line as a packet.
func newStreamDaemon(t *testing.T) *metricsDaemon {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	t.Cleanup(func() { _ = l.Close() }) // the test is over
	_, port, _ := net.SplitHostPort(l.Addr().String())
	d := &metricsDaemon{port, make(chan string, 10_000)}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					d.packets <- lines.Text()
				}
			}()
		}
	}()
	return d
}

// awaitCounter reads packets until the sum of a counter reaches the expected value, and returns all
// lines. The counter is given with the text before and after its value.
func (d *metricsDaemon) awaitCounter(t *testing.T, name, suffix string, want int) string {
	t.Helper()
	var all strings.Builder
	for got := 0; got < want; {
		packet := await.Receive(t,
			fmt.Sprintf("a packet: %s…%s came to %d, want %d, in:\n%s", name, suffix, got, want, &all), d.packets)
		if len(packet) > 1432 {
			t.Errorf("a packet has %d bytes", len(packet))
		}
		all.WriteString(packet + "\n")
		got += sumCounter(packet, name, suffix)
	}
	return all.String()
}

// sumCounter returns the sum of the values in the lines of a counter.
func sumCounter(text, name, suffix string) int {
	sum := 0
	for line := range strings.Lines(text) {
		rest, begins := strings.CutPrefix(strings.TrimSuffix(line, "\n"), name+":")
		value, ends := strings.CutSuffix(rest, suffix)
		if by, err := strconv.Atoi(value); begins && ends && err == nil {
			sum += by
		}
	}
	return sum
}

// callPaid makes three calls under a limit of two.
func callPaid(t *testing.T, s *fixture.Service) {
	t.Helper()
	c := s.NewRateLimitClient(t)
	for _, want := range []ratelimit.RateLimitResponse_Code{
		ratelimit.RateLimitResponse_OK, ratelimit.RateLimitResponse_OK, ratelimit.RateLimitResponse_OVER_LIMIT,
	} {
		fixture.WantOverallCode(t, c, fixture.NewRateLimitRequest("shop", "tenant", "a", "path", "/pay"), want)
	}
}

// payPath is the path of the statistics of callPaid.
const payPath = "ratelimit.service.rate_limit.shop.tenant.path_/pay."

// TestStatsd checks that the service sends counts while it runs, and the rest when it stops.
func TestStatsd(t *testing.T) {
	t.Parallel()
	d := newMetricsDaemon(t)
	s := fixture.NewEnvironment(t, "embedded").Start(t,
		"METRICSD_HOST=127.0.0.1", "METRICSD_PORT="+d.port, "STATS_FLUSH_INTERVAL=50ms", "EXTRA_TAGS=zone:eu,build:7")
	const tags = ".__build=7.__zone=eu"
	callPaid(t, s)
	d.awaitCounter(t, payPath+"total_hits"+tags, "|c", 3)

	last := newMetricsDaemon(t)
	s = fixture.NewEnvironment(t, "embedded").Start(t, "METRICSD_HOST=127.0.0.1", "METRICSD_PORT="+last.port,
		"STATS_FLUSH_INTERVAL=30m")
	callPaid(t, s)
	s.Stop()
	all := last.awaitCounter(t, payPath+"total_hits", "|c", 3)
	for name, want := range map[string]int{
		payPath + "over_limit":                             1,
		payPath + "near_limit":                             1,
		payPath + "within_limit":                           2,
		"ratelimit_server.ShouldRateLimit.total_requests":  3,
		"ratelimit.service.config_load_success":            1,
		"ratelimit.service.call.should_rate_limit.unknown": 0,
	} {
		if got := sumCounter(all, name, "|c"); got != want {
			t.Errorf("%s is %d, want %d, in:\n%s", name, got, want, all)
		}
	}
	if n := strings.Count(all, "ratelimit_server.ShouldRateLimit.response_time:"); n != 3 {
		t.Errorf("%d response times of 3 calls in:\n%s", n, all)
	}
}

// TestStatsdOfThePeer uses the variables and mogrifiers that users of the Envoy rate limit service
// set.
func TestStatsdOfThePeer(t *testing.T) {
	t.Parallel()
	d := newMetricsDaemon(t)
	e := fixture.NewEnvironment(t, "embedded")
	e.Command = "ratelimit"
	s := e.Start(t,
		"USE_STATSD=false", "USE_DOG_STATSD=true", "STATSD_HOST=127.0.0.1", "STATSD_PORT="+d.port,
		"STATS_FLUSH_INTERVAL=50ms",
		"EXTRA_TAGS=zone:eu", "DD_ENV=prod", "DD_SERVICE=shop", "USE_DOG_STATSD_MOGRIFIERS=RULE",
		`DOG_STATSD_MOGRIFIER_RULE_PATTERN=^ratelimit\.service\.rate_limit\.([^.]+)\.(.+)\.([^.]+)$`,
		"DOG_STATSD_MOGRIFIER_RULE_NAME=ratelimit.service.rate_limit.$3",
		"DOG_STATSD_MOGRIFIER_RULE_TAGS=domain:$1,descriptor:$2",
		"USE_PROMETHEUS=true", "PROMETHEUS_ADDR=127.0.0.1:0", "PROMETHEUS_PATH=/own",
	)
	callPaid(t, s)
	d.awaitCounter(t, "ratelimit.service.rate_limit.over_limit",
		"|c|#env:prod,service:shop,zone:eu,domain:shop,descriptor:tenant.path_/pay", 1)
	metrics := string(apiclient.Call(t, "GET", "http://"+s.Process.Prometheus+"/own", nil).WantStatus(t,
		http.StatusOK).Body)
	if !strings.Contains(metrics, `ratelimit_service_should_rate_limit_error{err_type="redis_error"} 0`) {
		t.Errorf("store errors have no name of the Envoy service in:\n%s", metrics)
	}
	if strings.Contains(metrics, `err_type="store_error"`) {
		t.Errorf("store errors are counted twice in:\n%s", metrics)
	}
	apiclient.Call(t, "GET", "http://"+s.Process.Prometheus+"/metrics", nil).WantStatus(t, http.StatusNotFound)
}

// mapping maps names of statistics in the syntax that users of the Envoy rate limit service know.
const mapping = `mappings:
  - match: "ratelimit.service.rate_limit.*.*.*.over_limit"
    name: "limits_over"
    timer_type: "histogram"
    labels:
      domain: "$1"
      key1: "$2"
      key2: "$3"
  - match: "ratelimit_server.*.total_requests"
    name: "limits_calls"
    match_metric_type: counter
    labels:
      grpc_method: "$1"
  - match: "ratelimit_server.*.response_time"
    name: "limits_took"
    timer_type: histogram
    labels:
      grpc_method: "$1"
  - match: "."
    match_type: "regex"
    action: "drop"
    name: "dropped"
`

// TestNamesForPrometheus checks the mapped names of statistics on both listeners, which also have
// the metrics of the process.
func TestNamesForPrometheus(t *testing.T) {
	t.Parallel()
	e := fixture.NewEnvironment(t, "embedded")
	e.Command = "ratelimit"
	file := filepath.Join(e.Dir, "mapping.yaml")
	fixture.WriteFile(t, file, mapping)
	s := e.Start(t, "PROMETHEUS_MAPPER_YAML="+file, "USE_PROMETHEUS=true", "PROMETHEUS_ADDR=127.0.0.1:0",
		"USE_STATSD=false")
	callPaid(t, s)
	for _, address := range []string{"http://" + s.Process.Prometheus, s.Debug} {
		metrics := string(apiclient.Call(t, "GET", address+"/metrics", nil).WantStatus(t, http.StatusOK).Body)
		for _, line := range []string{
			`limits_over{domain="shop",key1="tenant",key2="path_/pay"} 1`,
			`limits_calls{grpc_method="ShouldRateLimit"} 3`,
			`limits_took_count{grpc_method="ShouldRateLimit"} 3`,
		} {
			if !strings.Contains(metrics, "\n"+line+"\n") {
				t.Errorf("%s has no line %s in\n%s", address, line, metrics)
			}
		}
		if strings.Contains(metrics, "ratelimit_service_") || !strings.Contains(metrics, "go_goroutines") {
			t.Errorf("%s has\n%s", address, metrics)
		}
	}
}

// TestMalformedNamesForPrometheus checks that an invalid mapping stops the start, with an error
// that names the setting.
func TestMalformedNamesForPrometheus(t *testing.T) {
	t.Parallel()
	e := fixture.NewEnvironment(t, "embedded")
	file := filepath.Join(e.Dir, "mapping.yaml")
	fixture.WriteFile(t, file, "mappings:\n  - {match: a.*}\n")
	for _, path := range []string{file, filepath.Join(e.Dir, "missing.yaml")} {
		e.Environ = append(e.Environ, "PROMETHEUS_MAPPER_YAML="+path)
		_, stderr, code := e.TryCommand(t, "", "ratelimit")
		if code == 0 || !strings.Contains(stderr, "PROMETHEUS_MAPPER_YAML: ") || !strings.Contains(stderr, path) {
			t.Errorf("%s: code %d, %s", path, code, stderr)
		}
	}
}

// TestResponseTimesInMilliseconds checks that the first bound is 50 µs.
func TestResponseTimesInMilliseconds(t *testing.T) {
	t.Parallel()
	s := fixture.NewEnvironment(t, "embedded").Start(t, "PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS=true")
	callPaid(t, s)
	for _, m := range s.ReadMetrics(
		"ratelimit_service_response_time_seconds")["ratelimit_service_response_time_seconds"].GetMetric() {
		if h := m.GetHistogram(); h.GetSampleCount() != 3 || h.GetBucket()[0].GetUpperBound() != 0.05 {
			t.Errorf("got %v", m)
		}
	}
}

// TestStatisticsOnStandardOutput checks that there is one line for each counter that grew.
func TestStatisticsOnStandardOutput(t *testing.T) {
	t.Parallel()
	s := fixture.NewEnvironment(t, "embedded").StartProcess(t, "USE_METRICSD=false", "STATS_FLUSH_INTERVAL=30m",
		"EXTRA_TAGS=zone:eu")
	callPaid(t, s)
	s.Stop()
	got := s.Process.Output()
	if sumCounter(got, payPath+"over_limit.__zone=eu", "|c") != 1 ||
		sumCounter(got, payPath+"total_hits.__zone=eu", "|c") != 3 {
		t.Errorf("standard output is:\n%s", got)
	}
	for line := range strings.Lines(got) {
		if !strings.HasSuffix(line, "|c\n") {
			t.Errorf("line %q", line)
		}
	}
}

// TestStatisticsDisabled checks that no statistics are sent, and that no page has statistics of
// rules.
func TestStatisticsDisabled(t *testing.T) {
	t.Parallel()
	d := newMetricsDaemon(t)
	s := fixture.NewEnvironment(t, "embedded").Start(t,
		"DISABLE_STATS=true", "METRICSD_HOST=127.0.0.1", "METRICSD_PORT="+d.port, "STATS_FLUSH_INTERVAL=10ms")
	callPaid(t, s)
	for _, path := range []string{"/stats", "/metrics"} {
		body := string(apiclient.Call(t, "GET", s.Debug+path, nil).WantStatus(t, http.StatusOK).Body)
		if strings.Contains(body, "total_hits") || !strings.Contains(body, "config_load_success") {
			t.Errorf("%s shows:\n%s", path, body)
		}
	}
	s.Stop()
	if len(d.packets) > 0 {
		t.Errorf("statistics were sent: %q", <-d.packets)
	}
}
