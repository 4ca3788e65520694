package methodsapi_test

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/methodsapi"
	"github.com/tollgate-dev/tollgate/adapters/rest/resttest"
	"github.com/tollgate-dev/tollgate/core/catalogue"
	"github.com/tollgate-dev/tollgate/core/catalogue/usage"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/ports/methodstore"
	"github.com/tollgate-dev/tollgate/ports/throttle"
	"github.com/tollgate-dev/tollgate/test/must"
)

// stubThrottle allows all requests, or no request if it is over.
type stubThrottle struct{ over bool }

func (l *stubThrottle) Try(_ context.Context, scope throttle.Scope, _ string) (throttle.Verdict, error) {
	if scope != throttle.RegistryAddress {
		return throttle.Verdict{}, fault.New(fault.Internal, "wrong scope")
	}
	return throttle.Verdict{
		Allowed: !l.over, Limit: 10_000, Remaining: 9_999, ResetAt: time.Unix(1_800_000_900, 0),
	}, nil
}

func (l *stubThrottle) GiveBack(context.Context, throttle.Scope, string, throttle.Verdict) error {
	return nil
}

// stubStore lists methods.
type stubStore struct {
	methodstore.Store
	methods []catalogue.Method
	err     error
}

func (s *stubStore) List(context.Context) ([]catalogue.Method, error) { return s.methods, s.err }

// counters are in memory, and fail if err is set.
type counters struct {
	*memory.Counters
	err error
}

func (c *counters) Count(ctx context.Context, hits []counter.Hit, results []counter.Result, m counter.Mode) error {
	if c.err != nil {
		return c.err
	}
	return c.Counters.Count(ctx, hits, results, m)
}

func methods() []catalogue.Method {
	return []catalogue.Method{
		{ID: 1097, Path: "/api/usage.{format}", ServiceID: 223, ServiceName: "api", Parameters: []string{"format"}},
		{
			ID: 1103, Path: "/api/methods.{format}", ServiceID: 223, ServiceName: "api & more", Parameters: []string{
				"format",
			},
		},
		{
			ID: 1200, Path: "/buildings/{building}.{format}", ServiceID: 5, ServiceName: "buildings",
			Parameters: []string{"building", "format"},
		},
		{ID: 1201, Path: "/buildings/list.{format}", ServiceID: 5, ServiceName: "buildings", Parameters: nil},
	}
}

type service struct {
	*stubStore
	counters *counters
	usage    *usage.Counter
	throttle *stubThrottle
	url      string
}

// used returns how many requests of a client are counted.
func (s *service) used(t *testing.T, client string) uint64 {
	t.Helper()
	n, err := s.usage.Today(t.Context(), netip.MustParseAddr(client))
	must.Succeed(t, err)
	return n
}

func serve(t *testing.T, cfg methodsapi.Config, proxies ...netip.Prefix) *service {
	t.Helper()
	at := clocktest.NewManual(time.Unix(1_800_000_000, 0))
	s := &service{
		stubStore: &stubStore{methods: methods()}, throttle: &stubThrottle{}, counters: &counters{
			Counters: memory.NewCounters(at, memory.Config{MaxCounters: 100}),
		},
	}
	s.usage = usage.New(s.counters, at, "")
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	log := logrus.NewEntry(logger)
	server := rest.New(resttest.Config(proxies...), rest.Ports{
		Parts:    []rest.Part{methodsapi.New(cfg, s, s.usage, at, log)},
		Throttle: s.throttle, Clock: at, Log: log,
	})
	s.url = resttest.Serve(t, server)
	return s
}

type response struct {
	status int
	header http.Header
	body   string
}

func (s *service) call(t *testing.T, method, path string, headers ...string) response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, nil)
	must.Succeed(t, err)
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Add(headers[i], headers[i+1])
	}
	got, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	must.Succeed(t, err)
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	must.Succeed(t, err)
	a := response{got.StatusCode, got.Header, string(text)}
	if a.header.Get("Cache-Control") != "no-store" || a.header.Get("X-Content-Type-Options") != "nosniff" ||
		a.header.Get("X-RateLimit-Limit") != "10000" {
		t.Errorf("%s %s: headers %v", method, path, a.header)
	}
	return a
}

const list = `{"meta":{"requests":0,"timestamp":1800000000,"status":200,"message":"Request successful","method_id":1103,"version":2.07,"method":{}},` +
	`"data":[{"method_id":1097,"method_url":"https://api.example/v2/api/usage.{format}","service_id":223,"service_name":"api","parameters":["format"]},` +
	`{"method_id":1103,"method_url":"https://api.example/v2/api/methods.{format}","service_id":223,"service_name":"api \u0026 more","parameters":["format"]},` +
	`{"method_id":1200,"method_url":"https://api.example/v2/buildings/{building}.{format}","service_id":5,"service_name":"buildings","parameters":["building","format"]},` +
	`{"method_id":1201,"method_url":"https://api.example/v2/buildings/list.{format}","service_id":5,"service_name":"buildings","parameters":[]}]}`

func configured() methodsapi.Config { return methodsapi.Config{BaseURL: "https://api.example/v2/"} }

func TestJSON(t *testing.T) {
	s := serve(t, configured())
	for _, path := range []string{
		"/v2/api/methods.json", "/v2/api/methods.json?callback=", "/v2/api/methods.json?other=1",
	} {
		a := s.call(t, "GET", path)
		if a.status != 200 || a.body != list || a.header.Get("Content-Type") != "application/json; charset=utf-8" {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	if head := s.call(t, "HEAD", "/v2/api/methods.json"); head.status != 200 || head.body != "" {
		t.Errorf("HEAD: %d %s", head.status, head.body)
	}
	s.methods = nil
	if a := s.call(t, "GET", "/v2/api/methods.json"); !strings.HasSuffix(a.body, `"data":[]}`) {
		t.Errorf("without methods: %s", a.body)
	}
}

func TestXML(t *testing.T) {
	s := serve(t, configured())
	a := s.call(t, "GET", "/v2/api/methods.xml")
	const begin = `<?xml version="1.0" encoding="UTF-8"?>` + "\n" +
		`<response><meta><requests>0</requests><timestamp>1800000000</timestamp><status>200</status>` +
		`<message>Request successful</message><method_id>1103</method_id><version>2.07</version><method></method></meta>` +
		`<data><item><method_id>1097</method_id><method_url>https://api.example/v2/api/usage.{format}</method_url>` +
		`<service_id>223</service_id><service_name>api</service_name><parameters><item>format</item></parameters></item>` +
		`<item><method_id>1103</method_id>`
	if a.status != 200 || !strings.HasPrefix(a.body, begin) || !strings.Contains(a.body, "api &amp; more") ||
		!strings.HasSuffix(a.body, "</item></data></response>") ||
		a.header.Get("Content-Type") != "application/xml; charset=utf-8" {
		t.Errorf("%d %s %s", a.status, a.header.Get("Content-Type"), a.body)
	}
	s.methods = nil
	if a := s.call(t, "GET", "/v2/api/methods.xml"); !strings.HasSuffix(a.body, "</meta><data></data></response>") {
		t.Errorf("without methods: %s", a.body)
	}
}

func TestCallback(t *testing.T) {
	s := serve(t, configured())
	for _, name := range []string{"f", "$.a_1", strings.Repeat("x", 64)} {
		a := s.call(t, "GET", "/v2/api/methods.json?callback="+name)
		if a.status != 200 || a.body != "/**/"+name+"("+list+");" ||
			!strings.HasPrefix(a.header.Get("Content-Type"), "application/javascript") {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	for _, path := range []string{
		"json?callback=1f", "json?callback=a-b", "json?callback=alert(1)", "json?callback=" + strings.Repeat("x", 65),
		"json?callback=%C3%A9", "json?callback=%00",
	} {
		a := s.call(t, "GET", "/v2/api/methods."+path)
		e := a.parseEnvelope(t)
		if a.status != 400 || e.Status != 400 || e.MethodID == nil || *e.MethodID != 1103 ||
			a.header.Get("Content-Type") != "application/json; charset=utf-8" {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	if a := s.call(t, "GET", "/v2/api/methods.xml?callback=f"); a.status != 400 ||
		!strings.Contains(a.body, "<status>400</status>") {
		t.Errorf("xml: %d %s", a.status, a.body)
	}
}

type meta struct {
	Requests *uint64 `json:"requests" xml:"requests"`
	Status   int     `json:"status" xml:"status"`
	Message  string  `json:"message" xml:"message"`
	MethodID *int    `json:"method_id" xml:"method_id"`
}

// parseEnvelope parses the envelope of a response without data.
func (a response) parseEnvelope(t *testing.T) meta {
	t.Helper()
	var e struct {
		Meta meta              `json:"meta" xml:"meta"`
		Data []json.RawMessage `json:"data" xml:"-"`
	}
	read := func() error { return json.Unmarshal([]byte(a.body), &e) }
	if strings.HasPrefix(a.body, "<") {
		read = func() error { return xml.Unmarshal([]byte(a.body), &e) }
	}
	if err := read(); err != nil || len(e.Data) != 0 || e.Meta.Message == "" {
		t.Fatalf("%s: %v", a.body, err)
	}
	return e.Meta
}

func TestOtherPaths(t *testing.T) {
	s := serve(t, configured())
	for i, c := range []struct {
		method, path string
		status, id   int
		xml          bool
	}{
		{"GET", "/v2", 404, 0, false},
		{"GET", "/v2/", 404, 0, false},
		{"GET", "/v2/api/methods", 404, 0, false},
		{"GET", "/v2/api/methods.csv", 404, 0, false},
		{"GET", "/v2/nothing.xml", 404, 0, true},
		{"GET", "/v2/api/usage.json", 501, 1097, false},
		{"GET", "/v2/api/usage.xml", 501, 1097, true},
		{"GET", "/v2/buildings/MC.json", 501, 1200, false},
		{"GET", "/v2/buildings/list.json", 501, 1201, false},
		{"POST", "/v2/api/usage.json", 405, 0, false},
		{"DELETE", "/v2/nothing.xml", 405, 0, true},
	} {
		a := s.call(t, c.method, c.path)
		e := a.parseEnvelope(t)
		if a.status != c.status || e.Status != c.status || strings.HasPrefix(a.body, "<") != c.xml {
			t.Errorf("%s %s: %d %s", c.method, c.path, a.status, a.body)
		}
		if (e.MethodID == nil) != (c.id == 0) || c.id != 0 && *e.MethodID != c.id {
			t.Errorf("%s %s: method %s", c.method, c.path, a.body)
		}
		if e.Requests == nil || *e.Requests != uint64(i+1) || s.used(t, "127.0.0.1") != uint64(i+1) {
			t.Errorf("%s %s is not counted as usage: %s", c.method, c.path, a.body)
		}
		if c.status == 405 && a.header.Get("Allow") == "" {
			t.Errorf("%s %s: no Allow", c.method, c.path)
		}
	}
	before := s.used(t, "127.0.0.1")
	s.call(t, "GET", "/v2/api/methods.json")
	s.call(t, "GET", "/v2/api/methods.xml?callback=x")
	s.call(t, "POST", "/v2/api/methods.json")
	if s.used(t, "127.0.0.1") != before {
		t.Error("the listing is counted as usage")
	}
}

// TestOneClient expects usage to be counted by client, like the limits: by IPv4 address, and by the
// network of an IPv6 address.
func TestOneClient(t *testing.T) {
	s := serve(t, methodsapi.Config{}, netip.MustParsePrefix("127.0.0.0/8"))
	for address, client := range map[string]string{
		"203.0.113.9": "203.0.113.9", "2001:db8:1:2::7": "2001:db8:1:2::", "2001:db8:1:2:ffff::8": "2001:db8:1:2::",
		"2001:db8:1:3::7": "2001:db8:1:3::",
	} {
		before := s.used(t, client)
		s.call(t, "GET", "/v2/nothing.json", "X-Forwarded-For", address)
		if s.used(t, client) != before+1 {
			t.Errorf("%s is not counted as %s", address, client)
		}
	}
}

func TestFailures(t *testing.T) {
	s := serve(t, configured())
	s.err = fault.New(fault.Unavailable, "the database is unavailable")
	if a := s.call(t, "GET", "/v2/api/methods.xml"); a.status != 503 || a.parseEnvelope(t).Status != 503 {
		t.Errorf("database unavailable: %d %s", a.status, a.body)
	}
	s.err = nil
	s.counters.err = fault.New(fault.Unavailable, "the counter store is unavailable")
	if a := s.call(t, "GET", "/v2/api/methods.json"); a.status != 200 || !strings.Contains(a.body, `"requests":null`) {
		t.Errorf("counters unavailable: %d %s", a.status, a.body)
	}
	s.counters.err = nil
	s.throttle.over = true
	a := s.call(t, "GET", "/v2/api/methods.json")
	if e := a.parseEnvelope(t); a.status != 429 || e.Status != 429 || a.header.Get("Retry-After") != "900" {
		t.Errorf("over the limit: %d %s", a.status, a.body)
	}
}

func TestBaseURLOfTheRequest(t *testing.T) {
	for name, c := range map[string]struct {
		service *service
		want    string
	}{
		"plain": {serve(t, methodsapi.Config{}), "http://open.example:8000/v2/api/usage.{format}"},
		"TLS proxy": {
			serve(t, methodsapi.Config{}, netip.MustParsePrefix("127.0.0.1/32")),
			"https://open.example:8000/v2/api/usage.{format}",
		},
	} {
		a := c.service.call(t, "GET", "/v2/api/methods.json", "Host", "open.example:8000", "X-Forwarded-Proto", "https")
		if !strings.Contains(a.body, `"method_url":"`+c.want+`"`) {
			t.Errorf("%s: %s", name, a.body)
		}
	}
}

func TestConfig(t *testing.T) {
	for url, good := range map[string]bool{
		"": true, "https://api.example/v2": true, "http://h": true, "api.example/v2": false, "ftp://h/v2": false,
		"https://": false, "://": false,
	} {
		err := methodsapi.Config{BaseURL: url}.Validate()
		if (err == nil) != good || err != nil && !strings.HasPrefix(err.Error(), "OPENDATA_BASE_URL:") {
			t.Errorf("%q: %v", url, err)
		}
	}
}
