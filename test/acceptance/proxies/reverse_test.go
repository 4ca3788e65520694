package proxies

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/proxyserver"
	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/testcert"
)

const (
	ratelimitHost = "ratelimit.example.com"
	// clientAddress is not that of the proxy, which is 127.0.0.1 for Tollgate.
	clientAddress = "127.0.0.2"
	maxDocument   = 1 << 20
)

// front is a reverse proxy in front of a service, and a client of it.
type front struct {
	*site
	authority       *testcert.Certificate
	address, limits string // of the proxy: for the API, and for rate limits over gRPC
	client          *http.Client
}

// TestReverseProxies runs nginx and Caddy with their examples in front of the service, and uses it
// under its public URL.
func TestReverseProxies(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"nginx", "caddy"} {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			proxyserver.Need(t, program)
			e := fixture.NewEnvironment(t, "embedded")
			s := &site{environment: e, Service: e.Start(t, append(settings(), "TRUSTED_PROXIES=127.0.0.1/32", "MCP=on", "DECIDE_NETWORKS=127.0.0.0/8")...)}
			f := s.startFront(t, program)
			s.operator = e.NewPerson(t, "olga@example.com", "operate *", "publish *")
			f.signsIn(t)
			s.operator.StepUp(t, e, s.Service)
			f.publishes(t)
			f.showsConsole(t)
			f.servesMCP(t)
			f.decides(t)
			f.keepsDecisions(t)
			for _, path := range []string{"/debug/pprof/", "/metrics", "/rlconfig"} {
				if a := f.send(t, "GET", path, ""); a.status != http.StatusNotFound {
					t.Errorf("%s of the debug listener: %d", path, a.status)
				}
			}
		})
	}
}

// startFront runs a proxy with its example until the test ends.
func (s *site) startFront(t *testing.T, program string) *front {
	t.Helper()
	f := &front{
		site: s, authority: testcert.NewAuthority(t),
		address: net.JoinHostPort("127.0.0.1", instance.FreePort()), limits: net.JoinHostPort("127.0.0.1", instance.FreePort()),
	}
	host := strings.TrimPrefix(publicURL, "https://")
	public, limits := f.authority.Issue(t, host), f.authority.Issue(t, ratelimitHost)
	tlsOf := func(c *testcert.Certificate) string {
		return " {\n\tbind 127.0.0.1\n\ttls " + c.CertFile + " " + c.KeyFile
	}
	_, port, _ := net.SplitHostPort(f.address)
	_, limitsPort, _ := net.SplitHostPort(f.limits)
	config := strings.NewReplacer(
		"tollgate.internal:8081", s.GRPC,
		"listen 80;", "listen 127.0.0.1:"+instance.FreePort()+";", "listen 443", "listen "+f.address, "listen 8443", "listen "+f.limits,
		"/etc/nginx/tls/"+host+".crt", public.CertFile, "/etc/nginx/tls/"+host+".key", public.KeyFile,
		"/etc/nginx/tls/"+ratelimitHost+".crt", limits.CertFile, "/etc/nginx/tls/"+ratelimitHost+".key", limits.KeyFile,
		"admin off", "admin off\n\tauto_https off", "\n"+host+" {", "\nhttps://"+host+":"+port+tlsOf(public),
		"\n"+ratelimitHost+":8443 {", "\nhttps://"+ratelimitHost+":"+limitsPort+tlsOf(limits),
	).Replace(s.readExample(t, "reverse/"+proxyserver.File(program), "", ""))
	proxyserver.Start(t, program, f.address, config)
	f.client = f.newClient(t)
	return f
}

// newClient returns a client that keeps cookies, has an address of its own, and finds the public
// host at the proxy.
func (f *front) newClient(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	must.Succeed(t, err)
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(clientAddress)}}
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: f.authority.Pool()}, ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, f.address)
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Jar: jar, Transport: transport}
}

// send sends a request to the public host.
func (f *front) send(t *testing.T, method, path, body string, header ...string) reply {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, publicURL+path, strings.NewReader(body))
	must.Succeed(t, err)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := f.client.Do(r)
	must.Succeed(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must.Succeed(t, err)
	if response.Request.URL.Scheme != "https" || "https://"+response.Request.URL.Host != publicURL {
		t.Errorf("%s led to %s", path, response.Request.URL)
	}
	return reply{response.StatusCode, response.Header, string(text)}
}

// forgedHeaders are what a client must not be believed.
func forgedHeaders(more ...string) []string {
	return append(more, "X-Forwarded-For", "203.0.113.66", "X-Forwarded-Host", "evil.example", "X-Forwarded-Proto", "http",
		"Forwarded", "for=203.0.113.66;host=evil.example", "X-Real-IP", "203.0.113.66")
}

// signsIn checks the address of a session.
func (f *front) signsIn(t *testing.T) {
	t.Helper()
	login, err := json.Marshal(object{"email": f.operator.Email, "password": fixture.Password, "deviceInfo": f.operator.Device})
	must.Succeed(t, err)
	for _, header := range [][]string{{"Content-Type", "application/json"}, forgedHeaders("Content-Type", "application/json")} {
		var tokens struct{ AccessToken string }
		fixture.DecodeJSON(t, f.send(t, "POST", "/auth/login", string(login), header...).want(t, http.StatusOK).body, &tokens)
		f.operator.AccessToken = tokens.AccessToken
		var session struct{ IPAddress string }
		fixture.DecodeJSON(t, f.send(t, "GET", "/auth/session", "", f.operator.Bearer()...).want(t, http.StatusOK).body, &session)
		if session.IPAddress != clientAddress {
			t.Errorf("the address of the session with %v is %q", header, session.IPAddress)
		}
	}
}

// publishes publishes a document of nearly the maximum size, and what is larger than Tollgate, and
// than the proxy, accept.
func (f *front) publishes(t *testing.T) {
	t.Helper()
	document, err := json.Marshal(fixture.NewServerDocument(weather, "1.0.0"))
	must.Succeed(t, err)
	header := f.operator.Bearer()
	header = append(header, "Content-Type", "application/json")
	large := func(size int) string { return string(document) + strings.Repeat(" ", size-len(document)) }
	if a := f.send(t, "POST", "/v0.1/publish", large(maxDocument), header...); a.status != http.StatusOK {
		t.Errorf("a large document: %d %s", a.status, a.body)
	}
	if a := f.send(t, "POST", "/v0.1/publish", large(maxDocument+1), header...); a.status != http.StatusRequestEntityTooLarge ||
		!strings.Contains(a.body, fmt.Sprintf("body is larger than %d bytes", maxDocument)) {
		t.Errorf("a document that is too large: %d %s", a.status, a.body)
	}
	if a := f.send(t, "GET", itemPath, ""); a.status != http.StatusOK || !strings.Contains(a.body, weather) {
		t.Errorf("a path with an encoded slash: %d %s", a.status, a.body)
	}
	if a := f.send(t, "POST", "/v0.1/publish", large(3*maxDocument), header...); a.status != http.StatusRequestEntityTooLarge {
		t.Errorf("a document that is far too large: %d %s", a.status, a.body)
	}
}

// showsConsole signs in at the console, whose cookies are for TLS only, and is led to a page.
func (f *front) showsConsole(t *testing.T) {
	t.Helper()
	if a := f.send(t, "GET", "/console/account", ""); !strings.Contains(a.body, `name="password"`) || a.header.Get("Strict-Transport-Security") == "" {
		t.Errorf("the page of sign-in: %d %v %s", a.status, a.header, a.body)
	}
	form := url.Values{"email": {f.operator.Email}, "password": {fixture.Password}, "next": {"/console/account"}}
	a := f.send(t, "POST", "/console/sign-in", form.Encode(), forgedHeaders(
		"Content-Type", "application/x-www-form-urlencoded", "Origin", publicURL, "Sec-Fetch-Site", "same-origin")...)
	if a.status != http.StatusOK || !strings.Contains(a.body, f.operator.Email) {
		t.Errorf("after sign-in: %d %s", a.status, a.body)
	}
	address, err := url.Parse(publicURL + "/console/")
	must.Succeed(t, err)
	plain, err := url.Parse("http" + strings.TrimPrefix(publicURL, "https") + "/console/")
	must.Succeed(t, err)
	if jar := f.client.Jar; len(jar.Cookies(address)) == 0 || len(jar.Cookies(plain)) > 0 {
		t.Errorf("the cookies are %v, without TLS %v", jar.Cookies(address), jar.Cookies(plain))
	}
}

// servesMCP calls the registry as an MCP server, which refuses other hosts.
func (f *front) servesMCP(t *testing.T) {
	t.Helper()
	const search = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_servers","arguments":{"query":"weather"}}}`
	a := f.send(t, "POST", "/mcp", search, forgedHeaders("Content-Type", "application/json", "Accept", "application/json, text/event-stream")...)
	if a.status != http.StatusOK || !strings.Contains(a.body, weather) {
		t.Errorf("/mcp: %d %s", a.status, a.body)
	}
	if a := f.send(t, "GET", "/mcp/server.json", "", forgedHeaders()...); !strings.Contains(a.body, publicURL+"/mcp") {
		t.Errorf("the file of /mcp: %s", a.body)
	}
}

// keepsDecisions checks that strangers cannot ask through the proxy which servers are listed, though its address is one
// of DECIDE_NETWORKS: every spelling of the path is unknown.
func (f *front) keepsDecisions(t *testing.T) {
	t.Helper()
	for server, status := range map[string]int{weather: http.StatusUnauthorized, "com.example/no-such": http.StatusForbidden} {
		question := forgedHeaders("X-Original-Method", "GET", "X-Original-URL", weatherURL, "x-tollgate-server", server)
		apiclient.Call(t, "GET", f.API+"/decide/http", nil, question...).WantStatus(t, status) // the proxy itself may ask
		for _, path := range []string{
			"/decide/http", "/decide/http?x=/", "/decide/http/", "/DECIDE/Http", "/%64ecide/http", "/decide%2Fhttp", "//decide/http", "/decide//http",
			"/x/../decide/http", "/./decide/http", "/decide/%68ttp", "/decide/./http", "/%2e/decide/http",
		} {
			if a := f.send(t, "GET", path, "", question...); a.status != http.StatusNotFound || a.header.Get("WWW-Authenticate") != "" {
				t.Errorf("%s about %s: %d %s", path, server, a.status, a.body)
			}
		}
	}
}

// decides sends rate limit requests over gRPC.
func (f *front) decides(t *testing.T) {
	t.Helper()
	connection, err := grpc.NewClient("passthrough:///"+ratelimitHost,
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: f.authority.Pool()})),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", f.limits)
		}))
	must.Succeed(t, err)
	t.Cleanup(func() { _ = connection.Close() }) // the test is over
	c, ask := ratelimit.NewRateLimitServiceClient(connection), fixture.NewRateLimitRequest("shop", "tenant", "a", "path", "/pay")
	for _, want := range []ratelimit.RateLimitResponse_Code{
		ratelimit.RateLimitResponse_OK, ratelimit.RateLimitResponse_OK, ratelimit.RateLimitResponse_OVER_LIMIT,
	} {
		fixture.WantOverallCode(t, c, ask, want)
	}
}
