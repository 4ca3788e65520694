package httpapi

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// surface is an HTTP listener, with a path that returns 200 for GET.
type surface struct{ name, address, path string }

func listSurfaces(s *fixture.Service) []surface {
	return []surface{
		{"API", s.Process.API, "/v0.1/servers"},
		{"rate limit", s.Process.RateLimitHTTP, "/healthcheck"},
		{"debug", s.Process.Debug, "/stats"},
	}
}

// sendRaw sends bytes over a new connection and returns all responses until the server closes it,
// which it must do.
func (l surface) sendRaw(t *testing.T, text string) []apiclient.Response {
	t.Helper()
	c, err := net.Dial("tcp", l.address)
	must.Succeed(t, err)
	defer c.Close()
	must.Succeed(t, c.SetDeadline(time.Now().Add(30*time.Second)))
	go func() { _, _ = io.WriteString(c, text) }() // the server may close before it has read all
	return readResponses(t, l.name, c)
}

func readResponses(t *testing.T, name string, c io.Reader) []apiclient.Response {
	t.Helper()
	var all []apiclient.Response
	for r := bufio.NewReader(c); ; {
		if _, err := r.Peek(1); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("%s: the connection stays open", name)
			}
			return all
		}
		response, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, apiclient.Response{Status: response.StatusCode, Header: response.Header, Body: body})
	}
}

// TestSurface sends malformed and hostile requests to every HTTP listener.
func TestSurface(t *testing.T) {
	s := fixture.NewEnvironment(t, "embedded").Start(t)
	for _, l := range listSurfaces(s) {
		t.Run(l.name, func(t *testing.T) {
			t.Run("refused", func(t *testing.T) { checkRefused(t, l) })
			if l.name != "debug" { // the standard library accepts it, as RFC 9112 allows; it changes nothing
				t.Run("no smuggling", func(t *testing.T) { checkSmuggling(t, l) })
			}
			t.Run("methods", func(t *testing.T) { checkStrangeMethods(t, l) })
			t.Run("paths", func(t *testing.T) { checkStrangePaths(t, l) })
			t.Run("headers", func(t *testing.T) { checkHeaders(t, l) })
		})
	}
}

// checkRefused sends requests that are malformed or too large. Each gets one response with 4xx or
// 5xx, and the connection is closed.
func checkRefused(t *testing.T, l surface) {
	begin := "GET " + l.path + " HTTP/1.1\r\nHost: a\r\n"
	for name, c := range map[string]struct {
		text     string
		statuses []int
	}{
		"no request":           {"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03\r\n\r\n", []int{400}},
		"no host":              {"GET " + l.path + " HTTP/1.1\r\n\r\n", []int{400}},
		"two hosts":            {begin + "Host: b\r\n\r\n", []int{400}},
		"another version":      {"GET " + l.path + " HTTP/7.0\r\nHost: a\r\n\r\n", []int{400, 505}},
		"a space in the path":  {"GET " + l.path + " x HTTP/1.1\r\nHost: a\r\n\r\n", []int{400, 505}},
		"NUL in the path":      {"GET " + l.path + "\x00 HTTP/1.1\r\nHost: a\r\n\r\n", []int{400}},
		"NUL in a header":      {begin + "X-A: a\x00b\r\n\r\n", []int{400}},
		"CR in a header":       {begin + "X-A: a\rb\r\n\r\n", []int{400}},
		"a header with spaces": {begin + "X A: b\r\n\r\n", []int{400}},
		"a header without end": {begin + strings.Repeat("X-A: "+strings.Repeat("b", 1000)+"\r\n", 40), []int{431}},
		"a long query": {
			"GET " + l.path + "?a=" + strings.Repeat("b", 40_000) + " HTTP/1.1\r\nHost: a\r\n\r\n", []int{431},
		},
		"negative length": {"POST " + l.path + " HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", []int{400}},
	} {
		got := l.sendRaw(t, c.text)
		if len(got) != 1 {
			t.Errorf("%s: %d answers, want one", name, len(got))
			continue
		}
		fits := false
		for _, status := range c.statuses {
			fits = fits || got[0].Status == status
		}
		if !fits || bytes.Contains(got[0].Body, []byte("goroutine")) {
			t.Errorf("%s: %d %s, want %v", name, got[0].Status, got[0].Body, c.statuses)
		}
	}
}

// checkSmuggling sends requests with two contradicting lengths. The service must not treat any part
// of the body as another request, whatever it responds.
func checkSmuggling(t *testing.T, l surface) {
	hidden := "GET " + l.path + "?hidden HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
	chunked := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(hidden), hidden)
	for name, text := range map[string]string{
		"length and chunks": fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n%s",
			len(hidden)+5, hidden),
		"chunks and length":    "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n" + chunked + hidden,
		"two lengths":          fmt.Sprintf("Content-Length: %d\r\nContent-Length: 0\r\n\r\n%s", len(hidden), hidden),
		"two lengths the same": "Content-Length: 0\r\nContent-Length: 0\r\n\r\n" + hidden,
		"unknown coding": fmt.Sprintf("Transfer-Encoding: xchunked\r\nContent-Length: %d\r\n\r\n0\r\n\r\n%s",
			len(hidden)+5, hidden),
		"unknown coding alone":   "Transfer-Encoding: gzip\r\n\r\n0\r\n\r\n" + hidden,
		"two codings":            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + hidden,
		"identity":               fmt.Sprintf("Transfer-Encoding: identity\r\nContent-Length: %d\r\n\r\n%s", 0, hidden),
		"space before the colon": "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + hidden,
		"folded coding":          "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n" + hidden,
		"length with a sign":     "Content-Length: +0\r\n\r\n" + hidden,
		"bad size of a chunk":    "Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n" + hidden,
		"huge size of a chunk":   "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n\r\n" + hidden,
	} {
		got := l.sendRaw(t, "POST "+l.path+" HTTP/1.1\r\nHost: a\r\n"+text)
		if len(got) != 1 || got[0].Status < 400 || got[0].Status > 501 {
			t.Errorf("%s: %d answers, want one refusal: %+v", name, len(got), got)
		}
	}
}

// TestSmugglingOverTheLimit makes the same checks when the limit refuses the first request.
func TestSmugglingOverTheLimit(t *testing.T) {
	s := fixture.NewEnvironment(t, "embedded").Start(t, "REGISTRY_RATE_LIMIT=1")
	apiclient.Call(t, "GET", s.API+"/v0.1/servers", nil).WantStatus(t, http.StatusOK)
	checkSmuggling(t, listSurfaces(s)[0])
}

// checkStrangeMethods checks that the methods of proxies and debuggers are refused.
func checkStrangeMethods(t *testing.T, l surface) {
	for _, request := range []string{
		"TRACE " + l.path, "TRACK " + l.path, "CONNECT example.com:443", "CONNECT " + l.path, "DEBUG " + l.path,
		"PRI *", "get " + l.path,
	} {
		got := l.sendRaw(t, request+" HTTP/1.1\r\nHost: a\r\nX-Secret: hidden\r\nConnection: close\r\n\r\n")
		if len(got) != 1 || got[0].Status < 400 || got[0].Status > 501 ||
			bytes.Contains(got[0].Body, []byte("hidden")) {
			t.Errorf("%s: %+v", request, got)
		}
	}
}

// checkStrangePaths checks that no path reaches a file outside the listener's own pages.
func checkStrangePaths(t *testing.T, l surface) {
	for _, path := range []string{
		"/../etc/passwd", "/..%2f..%2fetc%2fpasswd", "/docs/../../etc/passwd", "//etc/passwd",
		"/%2e%2e/%2e%2e/etc/passwd",
		"/..%5c..%5cwindows", "/.env", "/.git/config", "/%00", "/%", "/%zz", "/\xff\xfe",
		"http://elsewhere.example/etc/passwd",
	} {
		got := l.sendRaw(t, "GET "+path+" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		if len(got) == 1 && got[0].Status/100 == 3 {
			where := got[0].Header.Get("Location") // net/http cleans paths
			if !strings.HasPrefix(where, "/") || strings.HasPrefix(where, "//") {
				t.Errorf("%s sends elsewhere: %s", path, where)
			}
			continue
		}
		if len(got) != 1 || got[0].Status != 404 && got[0].Status != 400 ||
			bytes.Contains(got[0].Body, []byte("root:")) {
			t.Errorf("%s: %+v", path, got)
		}
	}
}

// checkHeaders checks the headers of successful responses and errors.
func checkHeaders(t *testing.T, l surface) {
	for _, path := range []string{l.path, "/nothing/here"} {
		a := apiclient.Call(t, "GET", "http://"+l.address+path, nil, "Origin", "https://evil.example")
		if got := a.Header.Get("X-Content-Type-Options"); got != "nosniff" {
			t.Errorf("%s: X-Content-Type-Options is %q", path, got)
		}
		for _, telling := range []string{"Server", "X-Powered-By", "Access-Control-Allow-Credentials"} {
			if got := a.Header.Get(telling); got != "" {
				t.Errorf("%s: %s is %q", path, telling, got)
			}
		}
		if got := a.Header.Get("Access-Control-Allow-Origin"); got != "" && l.path != "/v0.1/servers" {
			t.Errorf("%s: any origin may read it: %q", path, got)
		}
	}
}

// TestAPIHeaders checks that pages of other origins can read only what is public, and that a
// browser never shows a response of the API as an active page.
func TestAPIHeaders(t *testing.T) {
	s := fixture.NewEnvironment(t, "embedded").Start(t)
	for path, public := range map[string]bool{
		"/v0.1/servers": true, "/v0/servers": true, "/openapi.json": true, "/docs": false, "/health": false,
		"/ready":        false,
		"/auth/session": false, "/devices": false, "/sessions": false, "/audit-logs": false,
		"/.well-known/jwks.json": false,
		"/v2/api/methods.json":   false, "/nothing": false,
	} {
		a := apiclient.Call(t, "GET", s.API+path, nil, "Origin", "https://evil.example")
		if got := a.Header.Get("Access-Control-Allow-Origin"); (got == "*") != public || got != "" && got != "*" {
			t.Errorf("%s: Access-Control-Allow-Origin is %q", path, got)
		}
		if got := a.Header.Get("Referrer-Policy"); got != "no-referrer" {
			t.Errorf("%s: Referrer-Policy is %q", path, got)
		}
		policy := a.Header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") ||
			strings.Contains(policy, "unsafe") {
			t.Errorf("%s: Content-Security-Policy is %q", path, policy)
		}
		if a.Header.Get("Strict-Transport-Security") != "" {
			t.Errorf("%s: Strict-Transport-Security without TLS", path)
		}
	}
	for _, path := range []string{
		"/auth/login", "/auth/refresh", "/auth/session", "/devices", "/sessions", "/audit-logs", "/nothing/of/auth",
	} {
		a := apiclient.Call(t, "OPTIONS", s.API+path, nil, "Origin", "https://evil.example",
			"Access-Control-Request-Method", "POST")
		for name := range a.Header {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("%s: a page of another origin can read %s", path, name)
			}
		}
		if a.Status/100 == 2 {
			t.Errorf("%s: a preflight is answered %d", path, a.Status)
		}
	}
	for _, path := range []string{
		"/auth/session", "/devices", "/sessions", "/audit-logs", "/auth/login", "/health", "/ready",
	} {
		if a := apiclient.Call(t, "GET", s.API+path, nil); a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: Cache-Control is %q", path, a.Header.Get("Cache-Control"))
		}
	}
}

// TestSlowClients sends a byte now and then, in the header and in the body. The service closes the
// connections when the time of a request is over, and serves other clients meanwhile.
func TestSlowClients(t *testing.T) {
	s := fixture.NewEnvironment(t, "embedded").Start(t, "READ_TIMEOUT=1s")
	for name, begin := range map[string]string{
		"silent": "", "header": "GET /health HTTP/1.1\r\nHost: a\r\nX-Slow: ",
		"body": "POST /auth/login HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := net.Dial("tcp", s.Process.API)
			must.Succeed(t, err)
			defer c.Close()
			must.Succeed(t, c.SetDeadline(time.Now().Add(30*time.Second)))
			ended := make(chan struct{})
			go sendSlowly(c, begin, ended)
			got := readResponses(t, name, c)
			close(ended)
			if len(got) > 1 || len(got) == 1 && got[0].Status != http.StatusRequestTimeout {
				t.Errorf("%+v", got)
			}
			apiclient.Call(t, "GET", s.API+"/health", nil).WantStatus(t, http.StatusOK)
		})
	}
}

// sendSlowly sends the beginning of a request and then one byte after the other, until the test
// ends or the service closes the connection.
func sendSlowly(c io.Writer, begin string, ended <-chan struct{}) {
	if _, err := io.WriteString(c, begin); err != nil || begin == "" {
		return
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
			if _, err := io.WriteString(c, "a"); err != nil {
				return
			}
		}
	}
}

// TestByteOrderMark checks that every part that reads JSON refuses a body with a byte order mark,
// with an error that names the mark.
func TestByteOrderMark(t *testing.T) {
	e := fixture.NewEnvironment(t, "embedded")
	s := e.Start(t)
	ada := e.NewPerson(t, "ada@example.com", "publish *")
	ada.Login(t, s)
	for _, address := range []string{
		s.API + "/auth/login", s.API + "/v0.1/validate", s.API + "/v0.1/publish", s.RateLimitAPI + "/json",
	} {
		a := apiclient.Call(t, "POST", address, "\ufeff{}", ada.Bearer()...).WantStatus(t, http.StatusBadRequest)
		if !strings.Contains(string(a.Body), "byte order mark") {
			t.Errorf("%s: %s", address, a.Body)
		}
	}
}

// TestForwardedHost checks that a header that anybody can send does not make the console believe
// that a browser on another machine is on this one, which would send a password and a cookie
// without TLS.
func TestForwardedHost(t *testing.T) {
	l := listSurfaces(fixture.NewEnvironment(t, "embedded").Start(t))[0]
	for host, want := range map[string]bool{"tools.example.com": false, "localhost": true} {
		got := l.sendRaw(t,
			"GET /console/sign-in HTTP/1.1\r\nHost: "+host+
				"\r\nX-Forwarded-Host: localhost\r\nConnection: close\r\n\r\n")
		if len(got) != 1 || bytes.Contains(got[0].Body, []byte(`type="password"`)) != want {
			t.Errorf("%s: %d answers, want a form: %t", host, len(got), want)
		}
	}
}

// TestRequestsAreNotLogged sends malformed requests with secrets to every HTTP listener. At no
// level may the log contain any of their bytes.
func TestRequestsAreNotLogged(t *testing.T) {
	const secret = "CANARY"
	s := fixture.NewEnvironment(t, "embedded").Start(t, "LOG_LEVEL=trace", "READ_TIMEOUT=2s")
	sent := "Connection: close\r\nAuthorization: Bearer " + secret + "\r\nCookie: a=" + secret +
		"\r\nX-Device-Token: " + secret + "\r\n"
	for _, l := range listSurfaces(s) {
		for name, text := range map[string]string{
			"bad name":   "POST /a HTTP/1.1\r\nHost: a\r\nBad Key: x\r\n" + sent + "\r\n" + secret,
			"bad line":   secret + "\r\n" + sent + "\r\n",
			"bad length": "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: " + secret + "\r\n" + sent + "\r\n",
			"bad chunk": "POST /json HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n" + sent + "\r\nx" +
				secret + "\r\n" + secret,
			"large header": "POST /a HTTP/1.1\r\nHost: a\r\n" + sent + "X-A: " + strings.Repeat(secret,
				4_000) + "\r\n\r\n",
		} {
			if got := l.sendRaw(t, text); len(got) == 0 || got[0].Status < 400 {
				t.Errorf("%s, %s: %+v", l.name, name, got)
			}
		}
	}
	s.AwaitLog("error when serving connection")
	s.Stop() // writes what is still to be logged
	if log := s.Process.Log(); strings.Contains(log, secret) {
		t.Errorf("the log has bytes of requests:\n%s", log)
	}
}
