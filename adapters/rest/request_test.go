package rest_test

import (
	"net/http"
	"net/netip"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/rest"
)

func TestClientAddress(t *testing.T) {
	trusted := config()
	trusted.TrustedProxies = rest.Proxies{
		netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8"),
	}
	for name, c := range map[string]struct {
		cfg     rest.Config
		headers []string
		want    string
	}{
		"without trusted proxies": {config(), []string{"X-Forwarded-For", "203.0.113.9"}, "127.0.0.1"},
		"without the header":      {trusted, nil, "127.0.0.1"},
		"one proxy":               {trusted, []string{"X-Forwarded-For", "203.0.113.9"}, "203.0.113.9"},
		"the last address counts": {
			trusted, []string{"X-Forwarded-For", "198.51.100.1, 203.0.113.9"}, "203.0.113.9",
		},
		"several proxies": {
			trusted, []string{"X-Forwarded-For", "198.51.100.1, 203.0.113.9, 10.1.2.3,fd00::1"}, "203.0.113.9",
		},
		"only proxies":                     {trusted, []string{"X-Forwarded-For", "10.1.2.3, 10.1.2.4"}, "10.1.2.3"},
		"malformed address":                {trusted, []string{"X-Forwarded-For", "203.0.113.9, unknown"}, "127.0.0.1"},
		"malformed address before a proxy": {trusted, []string{"X-Forwarded-For", "unknown, 10.1.2.3"}, "10.1.2.3"},
		"empty":                            {trusted, []string{"X-Forwarded-For", ""}, "127.0.0.1"},
		"with port":                        {trusted, []string{"X-Forwarded-For", "203.0.113.9:4711"}, "203.0.113.9"},
		"IPv6":                             {trusted, []string{"X-Forwarded-For", "2001:db8::1"}, "2001:db8::1"},
		"IPv6 in brackets":                 {trusted, []string{"X-Forwarded-For", "[2001:db8::1]"}, "2001:db8::1"},
		"IPv6 with port":                   {trusted, []string{"X-Forwarded-For", "[2001:db8::1]:4711"}, "2001:db8::1"},
		"IPv4 mapped to IPv6":              {trusted, []string{"X-Forwarded-For", "::ffff:203.0.113.9"}, "203.0.113.9"},
		"zone and port":                    {trusted, []string{"X-Forwarded-For", "[fe80::1%eth0]:80"}, "fe80::1"},
		"zone":                             {trusted, []string{"X-Forwarded-For", "fe80::1%eth0"}, "fe80::1"},
		"two lines": {
			trusted, []string{"X-Forwarded-For", "198.51.100.1", "X-Forwarded-For", "203.0.113.9"}, "203.0.113.9",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := serve(t, c.cfg, nil).call(t, http.MethodGet, "/v0.1/echo", nil, c.headers...)
			if got := a.field(t, "address"); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestEachClientHasItsLimit(t *testing.T) {
	cfg := config()
	cfg.TrustedProxies = rest.Proxies{netip.MustParsePrefix("127.0.0.1/32")}
	s := serve(t, cfg, nil)
	s.throttle.limit = 1
	for _, c := range []struct {
		address string
		status  int
	}{
		{"203.0.113.9", 200},
		{"203.0.113.10", 200},
		{"::ffff:203.0.113.10", 429},
		{"2001:db8:1:2::1", 200},
		{"2001:db8:1:3::1", 200},
		{"2001:db8:1:2:a:b:c:d", 429}, // in the network of the first IPv6 address
	} {
		if a := s.call(t, http.MethodGet, "/auth/echo", nil, "X-Forwarded-For", c.address); a.status != c.status {
			t.Errorf("%s: %d, want %d", c.address, a.status, c.status)
		}
	}
}

func TestSecure(t *testing.T) {
	trusted := config()
	trusted.TrustedProxies = rest.Proxies{netip.MustParsePrefix("127.0.0.1/32")}
	for name, c := range map[string]struct {
		cfg     rest.Config
		headers []string
		want    string
	}{
		"plain":                     {trusted, nil, "false"},
		"trusted proxy sends https": {trusted, []string{"X-Forwarded-Proto", "https"}, "true"},
		"trusted proxy sends http last": {
			trusted, []string{"X-Forwarded-Proto", "https", "X-Forwarded-Proto", "http"}, "false",
		},
		"untrusted peer sends https": {config(), []string{"X-Forwarded-Proto", "https"}, "false"},
	} {
		t.Run(name, func(t *testing.T) {
			a := serve(t, c.cfg, nil).call(t, http.MethodGet, "/v0.1/echo", nil, c.headers...)
			if got := a.field(t, "secure"); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestBearerToken(t *testing.T) {
	s := serve(t, config(), nil)
	for header, want := range map[string]string{
		"Bearer abc.def": "abc.def", "bearer abc": "abc", "BEARER   abc ": "abc",
		"Basic abc": "", "Bearer": "", "Bearer ": "", "": "", "abc": "",
	} {
		if got := s.call(t, http.MethodGet, "/v0.1/echo", nil, "Authorization", header).field(t, "token"); got != want {
			t.Errorf("%q: got %q, want %q", header, got, want)
		}
	}
}
