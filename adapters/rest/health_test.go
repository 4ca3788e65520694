package rest_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/test/must"
)

func TestHealth(t *testing.T) {
	var broken, spare error
	checks := 0
	health := new(rest.Health)
	health.Add(
		rest.Probe{Name: "database", Check: func(context.Context) error { checks++; return nil }},
		rest.Probe{Name: "spare", Check: func(context.Context) error { return spare }, Covered: true},
		rest.Probe{Name: "store", Check: func(context.Context) error { return broken }},
	)
	s := serve(t, config(), health)
	checkResponse := func(path string, status int, body string) {
		t.Helper()
		a := s.call(t, http.MethodGet, path, nil)
		if a.status != status || a.body != body || a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %s, want %d %s", path, a.status, a.body, status, body)
		}
	}
	for _, path := range []string{"/health", "/v0.1/health", "/v0/health"} { // contract P-22
		checkResponse(path, 200, `{"status":"ok"}`)
	}
	checkResponse("/ready", 200, `{"status":"ok","dependencies":{"database":"ok","spare":"ok","store":"ok"}}`)

	broken = errors.New("internal detail")
	checkResponse("/health", 200, `{"status":"ok"}`)
	checkResponse("/ready", 503,
		`{"status":"unavailable","dependencies":{"database":"ok","spare":"ok","store":"down"}}`)

	broken = nil
	spare = errors.New("unavailable")
	checkResponse("/ready", 200, `{"status":"degraded","dependencies":{"database":"ok","spare":"down","store":"ok"}}`)
	broken = spare
	checkResponse("/ready", 503,
		`{"status":"unavailable","dependencies":{"database":"ok","spare":"down","store":"down"}}`)
	broken, spare = nil, nil

	health.Drain()
	before := checks
	for _, path := range []string{"/health", "/v0.1/health", "/v0/health"} {
		checkResponse(path, 503, `{"status":"terminating"}`)
	}
	checkResponse("/ready", 503, `{"status":"terminating","dependencies":{}}`)
	if checks != before {
		t.Error("while draining, /ready checks the dependencies")
	}
	if a := s.call(t, http.MethodGet, "/v0.1/echo", nil); a.status != 200 {
		t.Errorf("while draining, a request has status %d", a.status)
	}
	if got := s.throttle.keys(); len(got) != 1 {
		t.Errorf("requests for health are counted against a limit: %v", got)
	}
}

func TestConfigValidate(t *testing.T) {
	for name, change := range map[string]func(*rest.Config){
		"PORT":                        func(c *rest.Config) { c.Port = 65536 },
		"MAX_CONNECTIONS":             func(c *rest.Config) { c.MaxConnections = 0 },
		"MAX_CONNECTIONS_PER_ADDRESS": func(c *rest.Config) { c.MaxConnectionsPerAddress = -1 },
		"READ_TIMEOUT":                func(c *rest.Config) { c.ReadTimeout = 0 },
	} {
		c := config()
		must.Succeed(t, c.Validate())
		change(&c)
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), name+":") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
