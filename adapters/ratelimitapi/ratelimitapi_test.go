package ratelimitapi_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	commonpb "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitpb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typepb "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/adapters/ratelimitapi"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/core/ratelimit/reload"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/test/must"
)

// now is ten seconds after the start of a minute.
var now = time.Unix(1_700_000_000/60*60+10, 0)

// noopReporter ignores all reports.
type noopReporter struct{}

func (noopReporter) Report(any) {}

// callCounter counts the calls that were measured.
type callCounter struct{ calls atomic.Int64 }

func (c *callCounter) RecordCall(time.Duration) { c.calls.Add(1) }

func newFailingDecider(err error) decide.Func {
	return func(context.Context, *ratelimit.Request) (ratelimit.Decision, error) {
		return ratelimit.Decision{}, err
	}
}

func newText(s string) ruleset.Text { return ruleset.Text{Value: s} }

func perMinute(n uint32) *ruleset.Limit {
	return &ruleset.Limit{Unit: &ruleset.Text{Value: "minute"}, Requests: &ruleset.Requests{Count: n}}
}

// fixture contains both listeners. They use a real decider, unless a test passes another.
type fixture struct {
	rules  *reload.Rules
	health *ratelimitapi.Health
	server *ratelimitapi.Server
	meter  *callCounter
	url    string
}

func newConfig() ratelimitapi.Config {
	return ratelimitapi.Config{
		GRPC: ratelimitapi.GRPCConfig{Host: "127.0.0.1", MaxConnections: 100},
		HTTP: ratelimitapi.HTTPConfig{Host: "127.0.0.1"},
		Headers: ratelimitapi.HeaderConfig{
			Limit: "RateLimit-Limit", Remaining: "RateLimit-Remaining", Reset: "RateLimit-Reset",
		},
	}
}

// openFixture opens both listeners with a log that is discarded. If d is nil, they use a real
// decider.
func openFixture(t testing.TB, c ratelimitapi.Config, d decide.Func) *fixture {
	t.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	return openWithPorts(t, c, ratelimitapi.Ports{Decide: d, Log: logrus.NewEntry(log)})
}

// openWithPorts opens both listeners with the given ports.
func openWithPorts(t testing.TB, c ratelimitapi.Config, d ratelimitapi.Ports) *fixture {
	t.Helper()
	b := &fixture{rules: reload.New(ruleset.Options{}, noopReporter{}), meter: &callCounter{}}
	if d.Decide == nil {
		decider, err := decide.New(decide.Config{NearLimitRatio: 0.8}, decide.Ports{
			Rules: b.rules.Current, Clock: clocktest.NewManual(now),
			Counters: memory.NewCounters(clocktest.NewManual(now), memory.Config{MaxCounters: 10_000}),
		})
		must.Succeed(t, err)
		d.Decide = decider.Decide
	}
	b.health = ratelimitapi.NewHealth(ratelimitapi.ConfigurationCheck(c.Health, b.rules))
	d.RecordCall, d.Health, d.Metrics = b.meter.RecordCall, b.health, prometheus.NewRegistry()
	s, cleanup, err := ratelimitapi.Open(context.Background(), c, d)
	must.Succeed(t, err)
	b.server, b.url = s, "http://"+s.HTTPAddr().String()
	ended := make(chan error, 1)
	go func() { ended <- s.Serve() }()
	t.Cleanup(func() {
		cleanup()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *fixture) loadRules(t testing.TB) {
	t.Helper()
	err := b.rules.Apply([]ruleset.Source{{Domain: newText("d"), Descriptors: []ruleset.Descriptor{
		{Key: newText("k"), Limit: perMinute(2)},
		{Key: newText("zero"), Limit: perMinute(0)},
		{Key: newText("free"), Limit: &ruleset.Limit{Unlimited: true}},
	}}})
	must.Succeed(t, err)
}

func (b *fixture) dialGRPC(t testing.TB, creds credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	target := b.server.GRPCAddr().String()
	if b.server.GRPCAddr().Network() == "unix" {
		target = "unix:" + target
	}
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(creds))
	must.Succeed(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func (b *fixture) newClient(t testing.TB) ratelimitpb.RateLimitServiceClient {
	t.Helper()
	return ratelimitpb.NewRateLimitServiceClient(b.dialGRPC(t, insecure.NewCredentials()))
}

func newRequest(keys ...string) *ratelimitpb.RateLimitRequest {
	r := &ratelimitpb.RateLimitRequest{Domain: "d"}
	for _, key := range keys {
		r.Descriptors = append(r.Descriptors, &commonpb.RateLimitDescriptor{
			Entries: []*commonpb.RateLimitDescriptor_Entry{{Key: key, Value: "v"}},
		})
	}
	return r
}

const (
	okCode   = ratelimitpb.RateLimitResponse_OK
	overCode = ratelimitpb.RateLimitResponse_OVER_LIMIT
)

func newStatus(
	code ratelimitpb.RateLimitResponse_Code, limit, remaining uint32,
) *ratelimitpb.RateLimitResponse_DescriptorStatus {
	return &ratelimitpb.RateLimitResponse_DescriptorStatus{
		Code: code,
		CurrentLimit: &ratelimitpb.RateLimitResponse_RateLimit{
			RequestsPerUnit: limit, Unit: ratelimitpb.RateLimitResponse_RateLimit_MINUTE,
		},
		LimitRemaining:     remaining,
		DurationUntilReset: &durationpb.Duration{Seconds: 50},
	}
}

func TestShouldRateLimit(t *testing.T) {
	b := openFixture(t, newConfig(), nil)
	b.loadRules(t)
	got, err := b.newClient(t).ShouldRateLimit(t.Context(), newRequest("k", "zero", "free", "none"))
	must.Succeed(t, err)
	want := &ratelimitpb.RateLimitResponse{
		OverallCode: overCode,
		Statuses: []*ratelimitpb.RateLimitResponse_DescriptorStatus{
			newStatus(okCode, 2, 1), newStatus(overCode, 0, 0),
			{Code: okCode, LimitRemaining: 4294967295}, {Code: okCode},
		},
	}
	if !proto.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	if b.meter.calls.Load() != 1 {
		t.Errorf("%d calls were measured, want 1", b.meter.calls.Load())
	}
}

func TestRequestIsConvertedWhole(t *testing.T) {
	var got ratelimit.Request
	b := openFixture(t, newConfig(),
		decide.Func(func(_ context.Context, r *ratelimit.Request) (ratelimit.Decision, error) {
			got = ratelimit.Request{Domain: r.Domain, Hits: r.Hits}
			for _, d := range r.Descriptors {
				d.Entries = append([]ratelimit.Entry(nil), d.Entries...)
				if d.Override != nil {
					limit := *d.Override
					d.Override = &limit
				}
				got.Descriptors = append(got.Descriptors, d)
			}
			return ratelimit.Decision{Code: ratelimit.OK}, nil
		}))
	r := newRequest("a", "b", "c")
	r.HitsAddend = 3
	r.Descriptors[1].HitsAddend, r.Descriptors[1].IsNegativeHits = wrapperspb.UInt64(7), true
	r.Descriptors[0].Limit = &commonpb.RateLimitDescriptor_RateLimitOverride{
		RequestsPerUnit: 1, Unit: typepb.RateLimitUnit_YEAR,
	}
	r.Descriptors[2].Limit = &commonpb.RateLimitDescriptor_RateLimitOverride{
		RequestsPerUnit: 2, Unit: typepb.RateLimitUnit(99),
	}
	r.Descriptors[2].Entries = append(r.Descriptors[2].Entries, &commonpb.RateLimitDescriptor_Entry{
		Key: "x", Value: "y",
	})
	if _, err := b.newClient(t).ShouldRateLimit(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	d := got.Descriptors
	if got.Domain != "d" || got.Hits != 3 || len(d) != 3 {
		t.Fatalf("got %+v", got)
	}
	if *d[0].Override != (ratelimit.Limit{RequestsPerUnit: 1, Unit: ratelimit.Year}) ||
		*d[2].Override != (ratelimit.Limit{RequestsPerUnit: 2}) {
		t.Errorf("overrides %v, %v", *d[0].Override, *d[2].Override)
	}
	if d[0].Hits != nil || *d[1].Hits != 7 || !d[1].GiveBack || d[0].GiveBack {
		t.Errorf("hits %+v", d)
	}
	if len(d[2].Entries) != 2 || d[2].Entries[1] != (ratelimit.Entry{Key: "x", Value: "y"}) ||
		d[1].Entries[0].Key != "b" {
		t.Errorf("entries %+v", d)
	}
}

func TestFailures(t *testing.T) {
	tests := map[string]struct {
		err     error
		grpc    codes.Code
		http    int
		message string
	}{
		"invalid request": {fault.New(fault.Invalid, "bad words"), codes.InvalidArgument, 400, "bad words"},
		"no configuration": {
			fault.New(fault.Unavailable, "none yet").WithCode(decide.CodeNoConfiguration), codes.FailedPrecondition,
			503, "none yet",
		},
		"unreachable store": {
			fault.Wrap(fault.Unavailable, "the store is unreachable", errors.New("secret")), codes.Unavailable, 503,
			"the store is unreachable",
		},
		"slow store": {
			fault.Wrap(fault.Unavailable, "the store is unreachable", context.DeadlineExceeded), codes.Unavailable, 503,
			"the store is unreachable",
		},
		"overload": {fault.New(fault.Exhausted, "full"), codes.ResourceExhausted, 503, "full"},
		"deadline of the call": {
			context.DeadlineExceeded, codes.DeadlineExceeded, 503, "the call's deadline has passed",
		},
		"canceled call":    {context.Canceled, codes.Canceled, 503, "the call was canceled"},
		"unexpected error": {errors.New("secret"), codes.Internal, 500, "internal error"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := openFixture(t, newConfig(), newFailingDecider(test.err))
			_, err := b.newClient(t).ShouldRateLimit(t.Context(), newRequest("k"))
			if status.Code(err) != test.grpc || status.Convert(err).Message() != test.message {
				t.Errorf("gRPC: %v", err)
			}
			_, body := b.postJSON(t, `{"domain":"d"}`, test.http)
			if body != `{"error":"`+test.message+`"}` {
				t.Errorf("HTTP: %s", body)
			}
		})
	}
}

func TestPanicsReturnInternal(t *testing.T) {
	b := openFixture(t, newConfig(),
		decide.Func(func(context.Context, *ratelimit.Request) (ratelimit.Decision, error) { panic("secret") }))
	_, err := b.newClient(t).ShouldRateLimit(t.Context(), newRequest("k"))
	if status.Code(err) != codes.Internal || strings.Contains(err.Error(), "secret") {
		t.Errorf("gRPC: %v", err)
	}
	if _, body := b.postJSON(t, `{"domain":"d"}`, 500); body != `{"error":"internal error"}` {
		t.Errorf("HTTP: %s", body)
	}
}

func (b *fixture) postJSON(t testing.TB, body string, want int) (http.Header, string) {
	t.Helper()
	r, err := http.Post(b.url+"/json", "application/json", strings.NewReader(body))
	must.Succeed(t, err)
	return readAnswer(t, r, want)
}

func readAnswer(t testing.TB, r *http.Response, want int) (http.Header, string) {
	t.Helper()
	defer func() { _ = r.Body.Close() }()
	body, err := io.ReadAll(r.Body)
	must.Succeed(t, err)
	if r.StatusCode != want {
		t.Errorf("status %d, want %d: %s", r.StatusCode, want, body)
	}
	return r.Header, string(body)
}

func TestJSON(t *testing.T) {
	b := openFixture(t, newConfig(), nil)
	_, body := b.postJSON(t, `{"domain":"d","descriptors":[{}]}`, 503)
	if !strings.HasPrefix(body, `{"error":"`) {
		t.Errorf("before a configuration is loaded: got %s, want an error", body)
	}
	b.loadRules(t)
	const k = `{"entries":[{"key":"k","value":"v"}]}`
	tests := []struct {
		body   string
		status int
		want   string
	}{
		{`{"domain":"d","descriptors":[` + k + `]}`, 200,
			`{"overallCode":"OK","statuses":[{"code":"OK","currentLimit":{"requestsPerUnit":2,"unit":"MINUTE"},"limitRemaining":1,"durationUntilReset":"50s"}]}`},
		{`{"domain":"d","descriptors":[` + k + `],"hits_addend":2}`, 429,
			`{"overallCode":"OVER_LIMIT","statuses":[{"code":"OVER_LIMIT","currentLimit":{"requestsPerUnit":2,"unit":"MINUTE"},"durationUntilReset":"50s"}]}`},
		{`{"domain":"d","hitsAddend":1,"descriptors":[{"entries":[{"key":"zero"}]},{"entries":[{"key":"free"}]},{"entries":[{"key":"none"}]}]}`, 429,
			`{"overallCode":"OVER_LIMIT","statuses":[{"code":"OVER_LIMIT","currentLimit":{"unit":"MINUTE"},"durationUntilReset":"50s"},{"code":"OK","limitRemaining":4294967295},{"code":"OK"}]}`},
		{`{"domain":"unknown","descriptors":[` + k + `]}`, 200, `{"overallCode":"OK","statuses":[{"code":"OK"}]}`},
		{`{"descriptors":[` + k + `]}`, 400, `{"error":"rate limit domain must not be empty"}`},
		{`{"domain":"d"}`, 400, `{"error":"rate limit descriptor list must not be empty"}`},
	}
	for _, test := range tests {
		if _, body := b.postJSON(t, test.body, test.status); body != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", test.body, body, test.want)
		}
	}
	for _, bad := range []string{``, `{`, `[]`, `{"domian":"d"}`, `{"domain":1}`, `{"domain":"d"} x`, "\x00"} {
		if h, body := b.postJSON(t, bad, 400); !strings.HasPrefix(body, `{"error":"malformed request: `) ||
			h.Get("Content-Type") != "application/json" {
			t.Errorf("%q: %s", bad, body)
		}
	}
}

// TestByteOrderMark checks that the error names the byte order mark.
func TestByteOrderMark(t *testing.T) {
	b := openFixture(t, newConfig(), nil)
	if _, body := b.postJSON(t, "\ufeff{}", 400); !strings.Contains(body, "begins with a byte order mark") {
		t.Error(body)
	}
}

// TestJSONMatchesGRPC checks that the protobuf library reads the JSON response as the response that
// gRPC returns.
func TestJSONMatchesGRPC(t *testing.T) {
	c := newConfig()
	c.Headers.Enabled = true
	b := openFixture(t, c, nil)
	b.loadRules(t)
	r := newRequest("k", "zero", "free", "none")
	sent, err := protojson.Marshal(r)
	must.Succeed(t, err)
	var overJSON ratelimitpb.RateLimitResponse
	_, body := b.postJSON(t, string(sent), 429)
	must.Succeed(t, protojson.Unmarshal([]byte(body), &overJSON))
	r.Descriptors[0].HitsAddend = wrapperspb.UInt64(0)
	overGRPC, err := b.newClient(t).ShouldRateLimit(t.Context(), r)
	must.Succeed(t, err)
	if !proto.Equal(&overJSON, overGRPC) {
		t.Errorf("JSON %v\ngRPC %v", &overJSON, overGRPC)
	}
}

// TestLimitHasNameOfRule checks that the current limit has the name of its rule over both
// transports, and that the headers contain only numbers.
func TestLimitHasNameOfRule(t *testing.T) {
	c := newConfig()
	c.Headers.Enabled = true
	b := openFixture(t, c, nil)
	names := map[string]ratelimit.Name{"plain": "per-customer", "quoted": "a \"b\" \\ <c> \u00e9\u2028\n", "none": ""}
	var list []ruleset.Descriptor
	for key, name := range names {
		limit := perMinute(9)
		limit.Name = name
		list = append(list, ruleset.Descriptor{Key: newText(key), Limit: limit})
	}
	must.Succeed(t, b.rules.Apply([]ruleset.Source{{Domain: newText("d"), Descriptors: list}}))
	for key, name := range names {
		r := newRequest(key, key)
		r.Descriptors[1].Limit = &commonpb.RateLimitDescriptor_RateLimitOverride{
			RequestsPerUnit: 7, Unit: typepb.RateLimitUnit_HOUR,
		}
		answer, err := b.newClient(t).ShouldRateLimit(t.Context(), r)
		must.Succeed(t, err)
		sent, err := protojson.Marshal(r)
		must.Succeed(t, err)
		h, body := b.postJSON(t, string(sent), 200)
		var fromJSON ratelimitpb.RateLimitResponse
		if err := protojson.Unmarshal([]byte(body), &fromJSON); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		for _, got := range []*ratelimitpb.RateLimitResponse{answer, &fromJSON} {
			if n := got.GetStatuses()[0].GetCurrentLimit().GetName(); n != string(name) {
				t.Errorf("%s: the limit is named %q, want %q", key, n, name)
			}
			if n := got.GetStatuses()[1].GetCurrentLimit().GetName(); n != "" {
				t.Errorf("%s: the limit of the request has the name %q, want no name", key, n)
			}
		}
		if _, err := strconv.Atoi(h.Get("RateLimit-Limit")); err != nil {
			t.Errorf("the header RateLimit-Limit is %q, want a number", h.Get("RateLimit-Limit"))
		}
		if name == "" && strings.Contains(body, "name") {
			t.Errorf("the response for a rule without a name contains a name: %s", body)
		}
	}
}

func TestHeaders(t *testing.T) {
	c := newConfig()
	c.Headers.Enabled = true
	c.Headers.Reset = "X-Reset"
	b := openFixture(t, c, nil)
	b.loadRules(t)
	h, body := b.postJSON(t,
		`{"domain":"d","descriptors":[{"entries":[{"key":"free"}]},{"entries":[{"key":"k"}]}]}`, 200)
	if h.Get("RateLimit-Limit") != "2" || h.Get("RateLimit-Remaining") != "1" || h.Get("X-Reset") != "50" {
		t.Errorf("headers %v", h)
	}
	const want = `"responseHeadersToAdd":[{"key":"RateLimit-Limit","value":"2"},{"key":"RateLimit-Remaining","value":"1"},{"key":"X-Reset","value":"50"}]`
	if !strings.Contains(body, want) {
		t.Errorf("body %s", body)
	}
	if h, body = b.postJSON(t, `{"domain":"d","descriptors":[{"entries":[{"key":"free"}]}]}`,
		200); h.Get("RateLimit-Limit") != "" || strings.Contains(body, "Headers") {
		t.Errorf("the response without a limit has headers: %v %s", h, body)
	}
}

// TestHeaderNamesKeepTheirCase checks that header names are written as configured. It reads the
// bytes, because the HTTP client of Go changes the case.
func TestHeaderNamesKeepTheirCase(t *testing.T) {
	c := newConfig()
	c.Headers.Enabled = true
	b := openFixture(t, c, nil)
	b.loadRules(t)
	conn, err := net.Dial("tcp", b.server.HTTPAddr().String())
	must.Succeed(t, err)
	defer func() { _ = conn.Close() }()
	const body = `{"domain":"d","descriptors":[{"entries":[{"key":"k"}]}]}`
	if _, err := fmt.Fprintf(conn,
		"POST /json HTTP/1.1\r\nHost: h\r\nConnection: close\r\ncontent-length: %d\r\n\r\n%s", len(body),
		body); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	must.Succeed(t, err)
	if !strings.Contains(string(got), "\r\nRateLimit-Limit: 2\r\n") {
		t.Errorf("got %s", got)
	}
}

func TestHTTPStatusCodes(t *testing.T) {
	b := openFixture(t, newConfig(), nil)
	b.loadRules(t)
	tests := []struct {
		method, path, body string
		status             int
		allow              string
	}{
		{"GET", "/json", "", 405, "POST"},
		{"PUT", "/json", "{}", 405, "POST"},
		{"BREW", "/json", "", 405, "POST"},
		{"POST", "/healthcheck", "", 405, "GET, HEAD"},
		{"HEAD", "/healthcheck", "", 200, ""},
		{"GET", "/nothing", "", 404, ""},
		{"POST", "/json", strings.Repeat(" ", 1<<20+1), 413, ""},
		{
			"POST", "/json",
			`{"domain":"d","descriptors":[{"entries":[{"key":"k","value":"` + strings.Repeat("v", 900_000) + `"}]}]}`,
			200, "",
		},
	}
	for _, test := range tests {
		r, err := http.NewRequestWithContext(t.Context(), test.method, b.url+test.path, strings.NewReader(test.body))
		must.Succeed(t, err)
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatalf("%s %s: %v", test.method, test.path, err)
		}
		if h, _ := readAnswer(t, got, test.status); h.Get("Allow") != test.allow {
			t.Errorf("%s %s: allows %q, want %q", test.method, test.path, h.Get("Allow"), test.allow)
		}
	}
}

func TestGRPCRefusesLargeMessages(t *testing.T) {
	b := openFixture(t, newConfig(), nil)
	b.loadRules(t)
	r := newRequest("k")
	r.Descriptors[0].Entries[0].Value = strings.Repeat("v", 1<<20)
	if _, err := b.newClient(t).ShouldRateLimit(t.Context(), r); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("got %v", err)
	}
}

func TestReflection(t *testing.T) {
	b := openFixture(t, newConfig(), nil)
	stream, err := reflectionpb.NewServerReflectionClient(b.dialGRPC(t, insecure.NewCredentials())).
		ServerReflectionInfo(t.Context())
	must.Succeed(t, err)
	err = stream.Send(&reflectionpb.ServerReflectionRequest{
		MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{},
	})
	must.Succeed(t, err)
	r, err := stream.Recv()
	must.Succeed(t, err)
	if !strings.Contains(r.String(), "envoy.service.ratelimit.v3.RateLimitService") {
		t.Errorf("got %v", r)
	}
}

func (b *fixture) wantHealthcheck(t *testing.T, status int, want string) {
	t.Helper()
	r, err := http.Get(b.url + "/healthcheck")
	must.Succeed(t, err)
	if _, body := readAnswer(t, r, status); body != want {
		t.Errorf("got %q, want %q", body, want)
	}
}

func TestHealth(t *testing.T) {
	b := openFixture(t, newConfig(), nil)
	health := healthpb.NewHealthClient(b.dialGRPC(t, insecure.NewCredentials()))
	check := func(want healthpb.HealthCheckResponse_ServingStatus) {
		t.Helper()
		for _, name := range []string{"", "ratelimit", "envoy.service.ratelimit.v3.RateLimitService"} {
			r, err := health.Check(t.Context(), &healthpb.HealthCheckRequest{Service: name})
			if err != nil || r.GetStatus() != want {
				t.Errorf("%q: %v, %v; want %v", name, r, err, want)
			}
		}
	}
	b.wantHealthcheck(t, 503, "unhealthy: configuration")
	check(healthpb.HealthCheckResponse_NOT_SERVING)
	watch, err := health.Watch(t.Context(), &healthpb.HealthCheckRequest{})
	must.Succeed(t, err)
	expect := func(want healthpb.HealthCheckResponse_ServingStatus) {
		t.Helper()
		if r, err := watch.Recv(); err != nil || r.GetStatus() != want {
			t.Errorf("watched %v, %v; want %v", r, err, want)
		}
	}
	expect(healthpb.HealthCheckResponse_NOT_SERVING)
	b.loadRules(t)
	b.wantHealthcheck(t, 200, "OK")
	check(healthpb.HealthCheckResponse_SERVING)
	expect(healthpb.HealthCheckResponse_SERVING)
	list, err := health.List(t.Context(), &healthpb.HealthListRequest{})
	if err != nil || len(list.GetStatuses()) != 3 {
		t.Errorf("listed %v, %v", list, err)
	}
	if _, err := health.Check(t.Context(), &healthpb.HealthCheckRequest{
		Service: "other",
	}); status.Code(err) != codes.NotFound {
		t.Errorf("an unknown service: %v, want the code NotFound", err)
	}
	b.health.Drain()
	b.health.Drain()
	b.wantHealthcheck(t, 503, "unhealthy: termination")
	check(healthpb.HealthCheckResponse_NOT_SERVING)
	expect(healthpb.HealthCheckResponse_NOT_SERVING)
	if _, err := watch.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("the watch after Drain: %v, want the code Unavailable", err)
	}
	if _, err := b.newClient(t).ShouldRateLimit(t.Context(), newRequest("k")); err != nil {
		t.Errorf("a call while the service drains: %v", err)
	}
}

// TestDrainEndsConnections checks that every response closes its connection while the service
// drains, so that a client does not send on a connection that is about to be closed.
func TestDrainEndsConnections(t *testing.T) {
	b := openFixture(t, newConfig(), nil)
	b.loadRules(t)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for _, draining := range []bool{false, true} {
		for path, body := range map[string]string{
			"/json": `{"domain":"d","descriptors":[{"entries":[{"key":"k"}]}]}`, "/healthcheck": "",
		} {
			r, err := client.Post(b.url+path, "", strings.NewReader(body))
			must.Succeed(t, err)
			must.Succeed(t, r.Body.Close())
			if r.Close != draining {
				t.Errorf("draining is %t: the response of %s closes the connection: %t", draining, path, r.Close)
			}
		}
		b.health.Drain()
	}
}

func TestConfigurationCheck(t *testing.T) {
	rules := reload.New(ruleset.Options{}, noopReporter{})
	healthy := func(c ratelimitapi.HealthConfig) bool { return ratelimitapi.ConfigurationCheck(c, rules).Healthy() }
	forced, atLeastOne := ratelimitapi.HealthConfig{ForceStart: true}, ratelimitapi.HealthConfig{
		ForceStart: true, AtLeastOneSet: true,
	}
	if healthy(ratelimitapi.HealthConfig{}) || !healthy(forced) || healthy(atLeastOne) {
		t.Error("wrong health before a configuration is loaded")
	}
	must.Succeed(t, rules.Apply(nil))
	if !healthy(ratelimitapi.HealthConfig{}) || !healthy(forced) || healthy(atLeastOne) {
		t.Error("wrong health with an empty configuration")
	}
	must.Succeed(t, rules.Apply([]ruleset.Source{{Domain: newText("d")}}))
	if !healthy(atLeastOne) {
		t.Error("a configuration with a domain is not healthy")
	}
}
