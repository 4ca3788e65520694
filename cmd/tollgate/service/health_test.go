package service

import (
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/rest"
)

// TestHealthAddress checks that the health check turns the listen address of the settings into an
// address that it can call.
func TestHealthAddress(t *testing.T) {
	for want, c := range map[string]rest.Config{
		"http://127.0.0.1:3000/ready":  {Host: "0.0.0.0", Port: 3000},
		"http://[::1]:1/ready":         {Host: "::", Port: 1},
		"http://192.0.2.7:2/ready":     {Host: "192.0.2.7", Port: 2},
		"http://[2001:db8::1]:3/ready": {Host: "2001:db8::1", Port: 3},
		"http://localhost:4/ready":     {Host: "localhost", Port: 4},
		"https://127.0.0.1:443/ready":  {Port: 443, TLS: rest.TLSConfig{Cert: "tls.crt"}},
	} {
		got, err := localTarget(c)
		if err != nil || got.URL.String() != want || (got.TLS != nil) != (c.TLS.Cert != "") {
			t.Errorf("%+v: %v (%v), want %s", c, got.URL, err, want)
		}
	}
	if _, err := localTarget(rest.Config{Host: "0.0.0.0"}); err == nil || !strings.Contains(err.Error(), "--url") {
		t.Errorf("an unknown port: %v", err)
	}
}
