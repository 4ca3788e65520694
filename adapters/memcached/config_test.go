package memcached

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/caarlos0/env/v11"

	"github.com/tollgate-dev/tollgate/test/must"
)

func TestDefaultsAreValid(t *testing.T) {
	cfg, err := env.ParseAsWithOptions[Config](env.Options{Environment: map[string]string{}})
	must.Succeed(t, err)
	if err := cfg.Validate(); err != nil || cfg.Configured() || cfg.MaxIdleConns != 2 {
		t.Errorf("%+v: %v", cfg, err)
	}
	cfg, err = env.ParseAsWithOptions[Config](env.Options{Environment: map[string]string{
		"MEMSTORE_HOST_PORT": "A.example.:11211, [::1]:1,10.0.0.1:011211", "MEMSTORE_SRV_REFRESH": "250ms",
	}})
	if err != nil || cfg.Validate() != nil || !cfg.Configured() {
		t.Fatalf("%+v: %v, %v", cfg, err, cfg.Validate())
	}
	got, _ := cfg.nodeNames()
	if want := []string{"a.example:11211", "[::1]:1", "10.0.0.1:11211"}; !reflect.DeepEqual(got, want) {
		t.Errorf("nodes %q, want %q", got, want)
	}
}

func TestValidateNamesTheVariable(t *testing.T) {
	for _, c := range []struct {
		variable string
		change   func(*Config)
	}{
		{"MEMSTORE_HOST_PORT", func(c *Config) { c.SRV = "_memcache._tcp.example.org" }},
		{"MEMSTORE_HOST_PORT", func(c *Config) { c.HostPort = []string{"localhost"} }},
		{"MEMSTORE_HOST_PORT", func(c *Config) { c.HostPort = []string{"localhost:0"} }},
		{"MEMSTORE_HOST_PORT", func(c *Config) { c.HostPort = []string{"localhost:65536"} }},
		{"MEMSTORE_HOST_PORT", func(c *Config) { c.HostPort = []string{":11211"} }},
		{"MEMSTORE_HOST_PORT", func(c *Config) { c.HostPort = []string{"a:1", ""} }},
		{"MEMSTORE_HOST_PORT", func(c *Config) { c.HostPort = []string{"a:1", "A:1"} }},
		{"MEMSTORE_HOST_PORT", func(c *Config) { c.HostPort = make([]string, maxNodes+1) }},
		{"MEMSTORE_SRV", func(c *Config) { c.HostPort, c.SRV = nil, "a:1,b:1" }},
		{"MEMSTORE_SRV_REFRESH", func(c *Config) { c.SRVRefresh = -1 }},
		{"MEMSTORE_MAX_IDLE_CONNS", func(c *Config) { c.MaxIdleConns = 0 }},
		{"MEMSTORE_MAX_IDLE_CONNS", func(c *Config) { c.MaxIdleConns = 65 }},
		{"MEMSTORE_TLS_CLIENT_CERT", func(c *Config) { c.TLS, c.TLSClientCert = true, "f" }},
		{"MEMSTORE_TLS_CLIENT_CERT", func(c *Config) { c.TLS, c.TLSClientKey = true, "f" }},
	} {
		cfg := Config{HostPort: []string{"localhost:11211"}, MaxIdleConns: 2, Timeout: time.Second}
		c.change(&cfg)
		if err := cfg.Validate(); err == nil || !strings.HasPrefix(err.Error(), c.variable+" ") {
			t.Errorf("%+v: %v, want an error that begins with %s", cfg, err, c.variable)
		}
	}
}
