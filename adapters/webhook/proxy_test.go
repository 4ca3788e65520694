package webhook

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/eventsender"
	"github.com/tollgate-dev/tollgate/test/dnsserver"
)

// tunnel is a proxy that connects to one server, whatever host is named, or refuses.
type tunnel struct {
	*httptest.Server

	to     string
	refuse int // a status; 0 to connect

	mu    sync.Mutex
	named []string
}

func newTunnel(t *testing.T, to string) *tunnel {
	t.Helper()
	p := &tunnel{to: to}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

// ServeHTTP implements [http.Handler].
func (p *tunnel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.named = append(p.named, r.Method+" "+r.Host+" "+r.Header.Get("Proxy-Authorization"))
	p.mu.Unlock()
	if p.refuse != 0 {
		w.WriteHeader(p.refuse)
		return
	}
	far, err := net.Dial("tcp", p.to)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer far.Close()
	near, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer near.Close()
	_, _ = io.WriteString(near, "HTTP/1.1 200 OK\r\n\r\n") // the copies see what fails
	go func() {
		defer far.Close()
		_, _ = io.Copy(far, near)
	}()
	_, _ = io.Copy(near, far)
}

func (p *tunnel) requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.named)
}

// TestProxy checks which receivers are reached by the proxy, which has a private address itself.
func TestProxy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		networks []string
		host     string // "" for hook.example
		has      []string
		failure  dnsserver.Failure
		reached  bool
		proxied  bool
	}{
		"a public name":                {has: []string{"203.0.113.7"}, reached: true, proxied: true},
		"a name that only it resolves": {failure: dnsserver.ServerFailure, reached: true, proxied: true},
		"a name inside":                {networks: []string{"127.0.0.0/8"}, has: []string{"127.0.0.1"}, reached: true},
		"a private name":               {has: []string{"10.1.2.3"}},
		"one private address":          {has: []string{"203.0.113.7", "10.1.2.3"}},
		"a private address":            {host: "10.1.2.3"},
		"a name of inner networks":     {host: "hook.internal"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startSecure(t, "hook.example")
			proxy := newTunnel(t, strings.TrimPrefix(s.url, "https://hook.example"))
			s.config.Networks = nil
			for _, n := range c.networks {
				s.config.Networks = append(s.config.Networks, netip.MustParsePrefix(n))
			}
			var addresses []netip.Addr
			for _, a := range c.has {
				addresses = append(addresses, netip.MustParseAddr(a))
			}
			s.dns.SetAddresses("hook.example", addresses...)
			s.dns.SetFailure("hook.example", c.failure)
			s.config.Proxy = strings.Replace(proxy.URL, "http://", "http://us:pa@", 1)
			u := parseURL(t, s.url+"/in")
			if c.host != "" {
				u = parseURL(t, "https://"+c.host+"/in")
			}
			sender := open(t, s.config)
			if err := sender.Check(t.Context(), u); (err == nil) != c.reached || err != nil && !fault.Is(err, fault.Invalid) {
				t.Errorf("Check = %v, want success %t", err, c.reached)
			}
			status, err := sender.Send(t.Context(), eventsender.Request{URL: u, Body: []byte("{}")})
			if (status == 204) != c.reached || (err == nil) != c.reached {
				t.Errorf("Send = %d, %v, want success %t", status, err, c.reached)
			}
			got, want := proxy.requests(), []string(nil)
			if c.proxied {
				want = []string{"CONNECT " + strings.TrimPrefix(s.url, "https://") + " Basic dXM6cGE="}
			}
			if !slices.Equal(got, want) || len(s.requests()) > 0 != c.reached {
				t.Errorf("the proxy got %q, want %q, the receiver %d requests", got, want, len(s.requests()))
			}
		})
	}
}

func TestProxyThatRefuses(t *testing.T) {
	t.Parallel()
	s := startSecure(t, "hook.example")
	proxy := newTunnel(t, strings.TrimPrefix(s.url, "https://hook.example"))
	proxy.refuse = http.StatusForbidden
	s.config.Networks, s.config.Proxy = nil, strings.TrimPrefix(proxy.URL, "http://")
	s.dns.SetAddresses("hook.example", netip.MustParseAddr("203.0.113.7"))
	expectReason(t, open(t, s.config), s.url+"/hook", "the proxy refused the connection with the status 403")
	proxy.refuse, proxy.to = 0, "127.0.0.1:1"
	expectReason(t, open(t, s.config), s.url+"/hook", "the proxy refused the connection with the status 502")
	_, plain := start(t, nil)
	proxy.to = plain.Listener.Addr().String()
	expectReason(t, open(t, s.config), s.url+"/hook", "the receiver does not use TLS")
	proxy.Close()
	expectReason(t, open(t, s.config), s.url+"/hook", "the connection to the proxy failed")
}

// TestLoopbackNeedsNoProxy checks that a receiver on this machine is connected to.
func TestLoopbackNeedsNoProxy(t *testing.T) {
	t.Parallel()
	r, server := start(t, nil)
	c := config{Config: Config{Proxy: "proxy.example:1"}, Deadline: patience}
	if status, err := open(t, c).Send(t.Context(), eventsender.Request{URL: parseURL(t, server.URL)}); status != 204 ||
		err != nil || len(r.requests()) != 1 {
		t.Errorf("Send = %d, %v", status, err)
	}
}

func TestCheckOfNames(t *testing.T) {
	t.Parallel()
	s := startSecure(t, "hook.example")
	s.config.Networks = []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}
	sender, u := open(t, s.config), parseURL(t, s.url+"/secret")
	for text, good := range map[string]bool{
		"203.0.113.7": true, "203.0.113.7 10.2.0.1": true, "10.1.2.3": true, "10.2.0.1": false, "127.0.0.1": false,
		"10.2.0.1 fd00::1": false, "169.254.169.254": false,
	} {
		var addresses []netip.Addr
		for _, a := range strings.Fields(text) {
			addresses = append(addresses, netip.MustParseAddr(a))
		}
		s.dns.SetAddresses("hook.example", addresses...)
		err := sender.Check(t.Context(), u)
		if (err == nil) != good || err != nil && (!fault.Is(err, fault.Invalid) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("Check of a name with %s = %v, want success %t", text, err, good)
		}
	}
	s.dns.SetFailure("hook.example", dnsserver.Silence)
	began := time.Now()
	if err := sender.Check(t.Context(), u); err != nil || time.Since(began) > deadline {
		t.Errorf("Check without an answer = %v after %s", err, time.Since(began))
	}
}

// TestAddressThatChanges checks that an address counts when it is connected to: the name was good
// before.
func TestAddressThatChanges(t *testing.T) {
	t.Parallel()
	s := startSecure(t, "hook.example")
	loopback, other := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("10.0.0.1")
	s.config.Networks = []netip.Prefix{netip.PrefixFrom(other, 32)}
	s.dns.SetAddressSequence("hook.example", []netip.Addr{other}, []netip.Addr{loopback})
	expectReason(t, open(t, s.config), s.url+"/hook",
		"the host has an address that is not public, to which the service does not connect")
	if n := len(s.requests()); n != 0 {
		t.Errorf("%d requests arrived at a private address", n)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for proxy, good := range map[string]bool{
		"": true, "proxy.example:3128": true, "http://proxy": true, "https://u:p@proxy:1": true,
		"socks5://secret:1": false, "http://": false, "http://secret\x00": false,
	} {
		err := Config{Proxy: proxy}.Validate()
		if (err == nil) != good || err != nil && (!strings.HasPrefix(err.Error(), "HTTPS_PROXY") ||
			strings.Contains(err.Error(), "secret")) {
			t.Errorf("HTTPS_PROXY=%s: %v", proxy, err)
		}
	}
	if err := (Config{Networks: []netip.Prefix{{}}}).Validate(); err == nil {
		t.Error("the zero network is accepted")
	}
}
