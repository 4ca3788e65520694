package rest_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/apidocs"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/throttle"
	"github.com/tollgate-dev/tollgate/test/must"
)

// checkLimitHeaders checks the headers of a limit of 100.
func checkLimitHeaders(t *testing.T, a response, remaining string) {
	t.Helper()
	for name, want := range map[string]string{
		"X-RateLimit-Limit": "100", "X-RateLimit-Remaining": remaining, "X-RateLimit-Reset": "1800000900",
	} {
		if got := a.header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestEveryKindHasItsStatus(t *testing.T) {
	s := serve(t, config(), nil)
	for kind, status := range map[fault.Kind]int{
		fault.Internal: 500, fault.Invalid: 400, fault.Unauthenticated: 401, fault.Forbidden: 403, fault.NotFound: 404,
		fault.Conflict: 409, fault.Stale: 412, fault.Exhausted: 429, fault.Unsupported: 501, fault.Unavailable: 503,
	} {
		a := s.call(t, http.MethodGet, fmt.Sprintf("/v0.1/fault/%d", kind), nil)
		if a.status != status || a.field(t, "part") != "/v0.1" {
			t.Errorf("%v: %d %s, want %d in the part's form", kind, a.status, a.body, status)
		}
		wantSentence := "a sentence"
		if kind == fault.Internal {
			wantSentence = "internal error"
		}
		if got := a.field(t, "sentence"); got != wantSentence {
			t.Errorf("%v: sentence %q, want %q", kind, got, wantSentence)
		}
		retries := kind == fault.Exhausted || kind == fault.Unavailable || kind == fault.Unauthenticated
		if got := a.header.Get("Retry-After"); retries != (got == "2") || !retries && got != "" {
			t.Errorf("%v: Retry-After %q", kind, got)
		}
		if got := a.header.Get("WWW-Authenticate"); (kind == fault.Unauthenticated) != (got == "Bearer") {
			t.Errorf("%v: WWW-Authenticate %q", kind, got)
		}
		if got := a.header.Get("X-RateLimit-Limit"); got != "100" {
			t.Errorf("%v: X-RateLimit-Limit %q", kind, got)
		}
	}
}

func TestExhaustedHasTheHeadersOfItsOwnLimit(t *testing.T) {
	s := serve(t, config(), nil)
	a := s.call(t, http.MethodGet, "/auth/usedup", nil)
	if got := a.header.Get("X-RateLimit-Limit"); got != "5" {
		t.Errorf("X-RateLimit-Limit is %q, want the limit that was exceeded", got)
	}
}

func TestExhaustedHasNothingRemaining(t *testing.T) {
	s := serve(t, config(), nil)
	a := s.call(t, http.MethodGet, fmt.Sprintf("/auth/fault/%d", fault.Exhausted), nil)
	if a.header.Get("X-RateLimit-Remaining") != "0" || a.header.Get("X-RateLimit-Reset") != "1800000002" {
		t.Errorf("headers of an exceeded limit: %v", a.header)
	}
	s.throttle.limit = 0
	a = s.call(t, http.MethodGet, fmt.Sprintf("/auth/fault/%d", fault.Exhausted), nil)
	for _, name := range []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"} {
		if a.header.Get(name) == "" {
			t.Errorf("%s is missing if the part has no limit", name)
		}
	}
}

func TestChallengeOfAFault(t *testing.T) {
	a := serve(t, config(), nil).call(t, http.MethodGet, "/v0.1/challenge", nil)
	if got := a.header.Get("WWW-Authenticate"); a.status != 403 ||
		got != `Bearer error="insufficient_user_authentication"` {
		t.Errorf("%d %q", a.status, got)
	}
}

func TestInternalErrorsAreLoggedAndNotSent(t *testing.T) {
	s := serve(t, config(), nil)
	for _, path := range []string{"/v0.1/panic", "/v0.1/plain"} {
		a := s.call(t, http.MethodGet, path, nil, "X-Request-Id", "request-of"+strings.ReplaceAll(path, "/", "."))
		if a.status != 500 || a.body != `{"part":"/v0.1","sentence":"internal error"}` {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
		checkLimitHeaders(t, a, a.header.Get("X-RateLimit-Remaining"))
		for _, want := range []string{"internal detail", "request-of" + strings.ReplaceAll(path, "/", ".")} {
			if !strings.Contains(s.log.String(), want) {
				t.Errorf("%s: the log does not contain %q", path, want)
			}
		}
	}
}

func TestRequestID(t *testing.T) {
	s := serve(t, config(), nil)
	for sent, kept := range map[string]bool{
		"abc-DEF_1.2": true, "a/b=c:\"d\"": true, strings.Repeat("a", 128): true,
		strings.Repeat("a", 129): false, "with space": false, "umlaut-ü": false, "": false,
	} {
		a := s.call(t, http.MethodGet, "/v0.1/echo", nil, "X-Request-Id", sent)
		got := a.header.Get("X-Request-Id")
		if (got == sent) != kept || !kept && len(got) != 24 || a.field(t, "id") != got {
			t.Errorf("sent %q, got %q, the handler got %q", sent, got, a.field(t, "id"))
		}
	}
}

// TestUnknownPathsPointToThePages expects a 404 outside all parts, and no other error, to point to
// the pages.
func TestUnknownPathsPointToThePages(t *testing.T) {
	s := serveWith(t, config(), rest.Ports{Docs: apidocs.New()})
	for path, want := range map[string]struct {
		status int
		body   string
	}{
		"/":             {404, `{"error":"no such path; the API is described at /docs"}`},
		"/nothing":      {404, `{"error":"no such path; the API is described at /docs"}`},
		"/v0.1/nothing": {404, `{"part":"/v0.1","sentence":"no such path"}`},
	} {
		if a := s.call(t, http.MethodGet, path, nil); a.status != want.status || a.body != want.body {
			t.Errorf("%s: %d %s, want %v", path, a.status, a.body, want)
		}
	}
	if a := s.call(t, http.MethodPost, "/docs", nil); a.status != 405 || strings.Contains(a.body, "described") {
		t.Errorf("wrong method: %d %s", a.status, a.body)
	}
}

func TestUnknownPaths(t *testing.T) {
	s := serve(t, config(), nil)
	a := s.call(t, http.MethodGet, "/v0.1/nothing", nil)
	if a.status != 404 || a.body != `{"part":"/v0.1","sentence":"no such path"}` {
		t.Errorf("below a part: %d %s", a.status, a.body)
	}
	checkLimitHeaders(t, a, "99")
	a = s.call(t, http.MethodGet, "/nothing", nil)
	if a.status != 404 || a.body != `{"error":"no such path"}` || a.header.Get("Content-Type") != "application/json" {
		t.Errorf("outside all parts: %d %s", a.status, a.body)
	}
	for _, path := range []string{"/V0.1/echo", "/v0.1/echo/"} {
		if a := s.call(t, http.MethodGet, path, nil); a.status != 404 {
			t.Errorf("%s: %d", path, a.status)
		}
	}
}

func TestWrongMethods(t *testing.T) {
	s := serve(t, config(), nil)
	for _, c := range []struct{ method, path, allow string }{
		{"DELETE", "/v0.1/echo", "GET, HEAD"},
		{"TRACE", "/v0.1/echo", "GET, HEAD"},
		{"PROPFIND", "/v0.1/echo", "GET, HEAD"},
		{"get", "/v0.1/echo", "GET, HEAD"},
		{"GET", "/v0.1/body", "POST"},
	} {
		a := s.call(t, c.method, c.path, nil)
		if a.status != 405 || !sameMethods(a.header.Get("Allow"), c.allow) {
			t.Errorf("%s %s: %d, Allow %q, want 405, %q", c.method, c.path, a.status, a.header.Get("Allow"), c.allow)
		}
		if a.field(t, "part") != "/v0.1" || a.field(t, "sentence") != "method not allowed" {
			t.Errorf("%s %s: %s", c.method, c.path, a.body)
		}
		if a.header.Get("X-RateLimit-Limit") != "100" || a.header.Get("X-Request-Id") == "" {
			t.Errorf("%s %s: headers %v", c.method, c.path, a.header)
		}
	}
}

func sameMethods(got, want string) bool {
	words := strings.Split(got, ", ")
	for _, w := range strings.Split(want, ", ") {
		if !strings.Contains(got, w) {
			return false
		}
	}
	return len(words) == len(strings.Split(want, ", "))
}

func TestHeadHasTheHeadersOfGet(t *testing.T) {
	s := serve(t, config(), nil)
	get := s.call(t, http.MethodGet, "/v0.1/echo", nil, "X-Request-Id", "same")
	head := s.call(t, http.MethodHead, "/v0.1/echo", nil, "X-Request-Id", "same")
	if head.status != 200 || head.body != "" || head.header.Get("Content-Type") != get.header.Get("Content-Type") ||
		head.header.Get("Content-Length") != get.header.Get("Content-Length") {
		t.Errorf("HEAD: %d %q %v, GET: %v", head.status, head.body, head.header, get.header)
	}
}

func TestBodies(t *testing.T) {
	s := serve(t, config(), nil)
	for name, c := range map[string]struct {
		body    string
		headers []string
		status  int
	}{
		"json":             {`{}`, []string{"Content-Type", "application/json"}, 200},
		"json with params": {`{}`, []string{"Content-Type", "Application/JSON; charset=utf-8"}, 200},
		"json suffix":      {`{}`, []string{"Content-Type", "application/merge-patch+json"}, 200},
		"no type":          {`{}`, nil, 200},
		"text":             {`{}`, []string{"Content-Type", "text/plain"}, 415},
		"form":             {"a=b", []string{"Content-Type", "application/x-www-form-urlencoded"}, 415},
		"multipart":        {"--x\r\n", []string{"Content-Type", "multipart/form-data; boundary=x"}, 415},
		"compressed":       {"\x1f\x8b", []string{"Content-Type", "application/json", "Content-Encoding", "gzip"}, 415},
		"at the bound":     {strings.Repeat("a", rest.MaxBody), nil, 200},
		"over the bound":   {strings.Repeat("a", rest.MaxBody+1), nil, 413},
		"far over":         {strings.Repeat("a", 8*rest.MaxBody), nil, 413},
	} {
		t.Run(name, func(t *testing.T) {
			a := s.call(t, http.MethodPost, "/v0.1/body", strings.NewReader(c.body), c.headers...)
			if a.status != c.status {
				t.Fatalf("status %d, want %d: %s", a.status, c.status, a.body)
			}
			if a.status == 200 && a.body != c.body {
				t.Error("the handler got another body")
			}
			if a.status != 200 && a.field(t, "part") != "/v0.1" {
				t.Errorf("body %s", a.body)
			}
			checkLimitHeaders(t, a, a.header.Get("X-RateLimit-Remaining"))
			if a.header.Get("X-Request-Id") == "" {
				t.Error("the response has no request id")
			}
		})
	}
}

func TestBodyInChunksOverTheBound(t *testing.T) {
	s := serve(t, config(), nil)
	chunked := io.MultiReader(bytes.NewReader(make([]byte, 4*rest.MaxBody))) // of unknown length
	if a := s.call(t, http.MethodPost, "/auth/body", chunked); a.status != 413 || a.field(t, "part") != "/auth" {
		t.Errorf("%d %s", a.status, a.body)
	}
	if got := s.throttle.keys(); len(got) != 1 || got[0] != "auth 127.0.0.1" {
		t.Errorf("the throttle counted %v", got)
	}
}

func TestHeaderOverTheBound(t *testing.T) {
	s := serve(t, config(), nil)
	a := s.call(t, http.MethodGet, "/v0.1/echo", nil, "X-Long", strings.Repeat("a", 17<<10))
	if a.status != 431 || a.field(t, "error") == "" {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := s.call(t, http.MethodGet, "/v0.1/echo", nil, "X-Long", strings.Repeat("a", 15<<10)); a.status != 200 {
		t.Errorf("a header below the bound: %d", a.status)
	}
}

func TestLimit(t *testing.T) {
	s := serve(t, config(), nil)
	s.throttle.limit = 2
	for remaining := 1; remaining >= 0; remaining-- {
		a := s.call(t, http.MethodGet, "/auth/echo", nil)
		if a.status != 200 || a.header.Get("X-RateLimit-Remaining") != fmt.Sprint(remaining) {
			t.Fatalf("%d %v", a.status, a.header)
		}
	}
	a := s.call(t, http.MethodGet, "/auth/anything", nil)
	if a.status != 429 || a.field(t, "part") != "/auth" || a.field(t, "sentence") != "too many requests" {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a.header.Get("Retry-After") != "900" || a.header.Get("X-RateLimit-Remaining") != "0" ||
		a.header.Get("X-RateLimit-Reset") != "1800000900" {
		t.Errorf("headers %v", a.header)
	}
	if log := s.log.String(); strings.Count(log, "an address has used up its limit") != 1 || !strings.Contains(log, "client=127.0.0.1") {
		t.Errorf("the log is %s", log)
	}
	if a := s.call(t, http.MethodGet, "/v0.1/echo", nil); a.status != 200 {
		t.Errorf("a request of another limit: %d", a.status)
	}
	s.throttle.limit = 0
	if a := s.call(t, http.MethodGet, "/auth/echo", nil); a.status != 200 || a.header.Get("X-RateLimit-Limit") != "" {
		t.Errorf("without a limit: %d %v", a.status, a.header)
	}
}

// TestLargeBodiesHaveTheirOwnLimit expects requests with large bodies, with a length or in chunks,
// to be refused above a limit of their own, whose headers they have, while others pass.
func TestLargeBodiesHaveTheirOwnLimit(t *testing.T) {
	s := serve(t, config(), nil)
	s.throttle.limits = map[throttle.Scope]uint64{throttle.LargeBodies: 2}
	large := strings.Repeat("a", 64<<10+1)
	bodies := []io.Reader{strings.NewReader(large), io.MultiReader(strings.NewReader(large)), strings.NewReader(large)}
	for i, want := range []int{200, 200, 429} {
		a := s.call(t, http.MethodPost, "/v0.1/body", bodies[i])
		if a.status != want {
			t.Errorf("large body %d: %d, want %d", i+1, a.status, want)
		}
		if want == 429 &&
			(a.header.Get("X-RateLimit-Limit") != "2" || a.header.Get("X-RateLimit-Remaining") != "0" ||
				a.header.Get("Retry-After") == "") {
			t.Errorf("headers %v", a.header)
		}
	}
	if a := s.call(t, http.MethodPost, "/v0.1/body", strings.NewReader(large[1:])); a.status != 200 {
		t.Errorf("a smaller body: %d", a.status)
	}
}

func TestCounterStoreUnavailable(t *testing.T) {
	s := serve(t, config(), nil)
	s.throttle.away = true
	if a := s.call(t, http.MethodGet, "/auth/echo", nil); a.status != 503 || a.field(t, "part") != "/auth" ||
		a.header.Get("Retry-After") == "" {
		t.Errorf("below /auth: %d %s", a.status, a.body)
	}
	if a := s.call(t, http.MethodGet, "/v0.1/echo", nil); a.status != 200 {
		t.Errorf("elsewhere: %d %s", a.status, a.body)
	}
	for _, path := range []string{"/auth/echo", "/v0.1/echo"} {
		h := s.call(t, http.MethodGet, path, nil).header
		if h.Get("X-RateLimit-Limit") != "7" || h.Get("X-RateLimit-Remaining") != "7" ||
			h.Get("X-RateLimit-Reset") == "" {
			t.Errorf("%s: headers %v without the limit", path, h)
		}
	}
}

// exchange sends bytes and returns the response.
func (s *service) exchange(t *testing.T, request string) (status int, body string) {
	t.Helper()
	c, err := net.Dial("tcp", s.address)
	must.Succeed(t, err)
	defer c.Close()
	_, err = io.WriteString(c, request)
	must.Succeed(t, err)
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	must.Succeed(t, err)
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(text)
}

func TestSlowClientGetsAResponse(t *testing.T) {
	cfg := config()
	cfg.ReadTimeout = 50 * time.Millisecond
	s := serve(t, cfg, nil)
	status, body := s.exchange(t, "POST /v0.1/body HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc")
	if status != 408 || !strings.Contains(body, `"part":"/v0.1"`) {
		t.Errorf("%d %s", status, body)
	}
}

func TestMalformedRequest(t *testing.T) {
	s := serve(t, config(), nil)
	status, body := s.exchange(t, "GET\r\n\r\n")
	if status != 400 || body != `{"error":"bad request"}` {
		t.Errorf("%d %s", status, body)
	}
}

func TestShutdownReturnsAtTheDeadline(t *testing.T) {
	s := serve(t, config(), nil)
	c, err := net.Dial("tcp", s.address)
	must.Succeed(t, err)
	// Shutdown waits for this request, which never ends.
	if _, err := c.Write([]byte("POST /v0.1/body HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc")); err != nil {
		t.Fatal(err)
	}
	if a := s.call(t, http.MethodGet, "/v0.1/echo", nil); a.status != 200 {
		t.Fatal(a.status)
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.server.Shutdown(done); err == nil {
		t.Error("Shutdown returned no error while a request was in flight")
	}
	c.Close()
}
