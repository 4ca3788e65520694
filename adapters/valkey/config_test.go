package valkey

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/caarlos0/env/v11"

	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/testcert"
)

func validConfig() Config {
	return Config{URL: "localhost:6379", SocketType: "tcp", Type: Single, Timeout: time.Second, PoolSize: 10}
}

func TestTarget(t *testing.T) {
	for _, c := range []struct {
		url    string
		kind   Topology
		socket string
		want   target
	}{
		{"kv:6379", Single, "tcp", target{addresses: []string{"kv:6379"}}},
		{" [::1]:7 ", Single, "tcp", target{addresses: []string{"[::1]:7"}}},
		{"/run/kv.sock", Single, "tcp", target{addresses: []string{"/run/kv.sock"}, unix: true}},
		{"kv.sock", Single, "unix", target{addresses: []string{"kv.sock"}, unix: true}},
		{"redis://kv", Single, "tcp", target{addresses: []string{"kv:6379"}}},
		{"redis://[::1]/3", Single, "tcp", target{addresses: []string{"[::1]:6379"}, database: 3}},
		{"valkey://u:p%40@kv:1/", Single, "tcp", target{addresses: []string{"kv:1"}, auth: credentials{"u", "p@"}}},
		{"rediss://:p@kv:1", Single, "tcp", target{addresses: []string{"kv:1"}, auth: credentials{"", "p"}, tls: true}},
		{"valkeys://kv:1", Single, "tcp", target{addresses: []string{"kv:1"}, tls: true}},
		{
			"unix:///run/kv.sock?db=2", Single, "tcp", target{
				addresses: []string{"/run/kv.sock"}, unix: true, database: 2,
			},
		},
		{
			"unix://u:p@/run/kv.sock", Single, "tcp", target{
				addresses: []string{"/run/kv.sock"}, unix: true, auth: credentials{"u", "p"},
			},
		},
		{"main,a:1, b:2", Sentinel, "tcp", target{addresses: []string{"a:1", "b:2"}, master: "main"}},
		{"a:1,b:2", Cluster, "tcp", target{addresses: []string{"a:1", "b:2"}}},
		{
			"redis://kv:1?db=9&username=u&password=p", Single, "tcp", target{
				addresses: []string{"kv:1"}, auth: credentials{"u", "p"}, database: 9,
			},
		},
		{
			"redis://user:pass@kv:1/3?db=9&username=u&password=p", Single, "tcp", target{
				addresses: []string{"kv:1"}, auth: credentials{"user", "pass"}, database: 3,
			},
		},
		{
			"redis://u:p@a:1,redis://u:p@b:2", Cluster, "tcp", target{
				addresses: []string{"a:1", "b:2"}, auth: credentials{"u", "p"},
			},
		},
		{
			"redis://u:p@a:1, b:2,rediss://c", Cluster, "tcp", target{
				addresses: []string{"a:1", "b:2", "c:6379"}, auth: credentials{"u", "p"}, tls: true,
			},
		},
		{
			"main,redis://u:p@a:1,redis://u:p@b:2", Sentinel, "tcp", target{
				addresses: []string{"a:1", "b:2"}, master: "main", sentinel: credentials{"u", "p"},
			},
		},
	} {
		cfg := validConfig()
		cfg.URL, cfg.Type, cfg.SocketType = c.url, c.kind, c.socket
		got, err := cfg.parseTarget()
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s %q: %+v, %v, want %+v", c.kind, c.url, got, err, c.want)
		}
		if err := cfg.Validate(); err != nil {
			t.Errorf("%s %q: %v", c.kind, c.url, err)
		}
	}
}

func TestValidateNamesTheVariable(t *testing.T) {
	for _, c := range []struct {
		variable string
		change   func(*Config)
	}{
		{"KVSTORE_URL", func(c *Config) { c.URL = "localhost" }},
		{"KVSTORE_URL", func(c *Config) { c.URL = "localhost:0" }},
		{"KVSTORE_URL", func(c *Config) { c.URL = "localhost:65536" }},
		{"KVSTORE_URL", func(c *Config) { c.URL = ":6379" }},
		{"KVSTORE_URL", func(c *Config) { c.URL = "http://secret@kv" }},
		{"KVSTORE_URL", func(c *Config) { c.URL = "redis://secret@kv:x" }},
		{"KVSTORE_URL", func(c *Config) { c.URL = "redis://:secret@" }},
		{"KVSTORE_URL", func(c *Config) { c.URL = "redis://:secret@kv/nine" }},
		{"KVSTORE_URL", func(c *Config) { c.URL = "unix://" }},
		{"KVSTORE_URL", func(c *Config) { c.Type, c.URL = Sentinel, "main" }},
		{"KVSTORE_URL", func(c *Config) { c.Type, c.URL = Sentinel, ",a:1" }},
		{"KVSTORE_URL", func(c *Config) { c.Type, c.URL = Sentinel, "main,a" }},
		{"KVSTORE_URL", func(c *Config) { c.Type, c.URL = Cluster, "a:1,,b:1" }},
		{"KVSTORE_URL", func(c *Config) { c.Type, c.URL = Cluster, "redis://:secret@a:1,redis://:other@b:1" }},
		{"KVSTORE_URL", func(c *Config) { c.Type, c.URL = Cluster, "redis://:secret@a:1/2" }},
		{"KVSTORE_URL", func(c *Config) { c.Type, c.URL = Sentinel, "main,unix:///secret" }},
		{"KVSTORE_URL", func(c *Config) { c.URL = "redis://kv:1?db=secret" }},
		{"KVSTORE_SOCKET_TYPE", func(c *Config) { c.SocketType = "udp" }},
		{"KVSTORE_TYPE", func(c *Config) { c.Type = "many" }},
		{"KVSTORE_POOL_SIZE", func(c *Config) { c.PoolSize = 0 }},
		{"KVSTORE_POOL_SIZE", func(c *Config) { c.PoolSize = 1025 }},
		{"KVSTORE_PIPELINE_WINDOW", func(c *Config) { c.PipelineWindow = -1 }},
		{"KVSTORE_PIPELINE_WINDOW", func(c *Config) { c.PipelineWindow = time.Second }},
		{"KVSTORE_PIPELINE_LIMIT", func(c *Config) { c.PipelineLimit = -1 }},
		{"KVSTORE_TIMEOUT", func(c *Config) { c.Timeout = 0 }},
		{"KVSTORE_TIMEOUT", func(c *Config) { c.Timeout = -time.Second }},
		{"KVSTORE_TLS_CLIENT_CERT", func(c *Config) { c.TLS, c.TLSClientCert = true, "f" }},
		{"KVSTORE_TLS_CLIENT_CERT", func(c *Config) { c.TLS, c.TLSClientKey = true, "f" }},
		{"KVSTORE_PERSECOND_TYPE", func(c *Config) { c.prefix, c.Type = "KVSTORE_PERSECOND_", "many" }},
	} {
		cfg := validConfig()
		c.change(&cfg)
		err := cfg.Validate()
		if err == nil || !strings.HasPrefix(err.Error(), c.variable+" ") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: %v, want a sentence that begins with %s", cfg, err, c.variable)
		}
	}
}

func TestDefaultsAreValid(t *testing.T) {
	cfg, err := env.ParseAsWithOptions[Config](env.Options{Environment: map[string]string{}})
	must.Succeed(t, err)
	must.Succeed(t, cfg.Validate())
	second, err := env.ParseAsWithOptions[PerSecondConfig](env.Options{Environment: map[string]string{}})
	must.Succeed(t, err)
	must.Succeed(t, second.Validate())
	second.Enabled = true
	if err := second.Validate(); err == nil || !strings.HasPrefix(err.Error(), "KVSTORE_PERSECOND_URL ") {
		t.Errorf("enabled without a URL: %v", err)
	}
	second.URL = "kv:2"
	must.Succeed(t, second.Validate())
	cfg.URL, cfg.Auth, cfg.TLSCACert = "kv:1", "p", "ca"
	if got := second.Config(cfg); got.URL != "kv:2" || got.Auth != "" || got.TLSCACert != "ca" ||
		got.Timeout != cfg.Timeout || got.Validate() != nil {
		t.Errorf("settings of the second store: %+v", got)
	}
}

func TestTLSFilesThatAreMissing(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	empty := filepath.Join(t.TempDir(), "empty")
	write(t, empty, nil)
	for variable, cfg := range map[string]Config{
		"KVSTORE_TLS_CLIENT_CERT": {TLSClientCert: missing, TLSClientKey: missing},
		"KVSTORE_TLS_CACERT":      {TLSCACert: missing},
		"KVSTORE_TLS_CACERT: no":  {TLSCACert: empty},
	} {
		if _, err := cfg.tlsFiles().Config(); err == nil || !strings.HasPrefix(err.Error(), variable) {
			t.Errorf("%v, want a sentence that begins with %s", err, variable)
		}
	}
}

// TestTLSVerification checks that without verification of the host name, the authority is still
// verified.
func TestTLSVerification(t *testing.T) {
	ours, theirs := testcert.NewAuthority(t), testcert.NewAuthority(t)
	for _, c := range []struct {
		name   string
		server *testcert.Certificate
		host   string
		skip   bool
		want   bool
	}{
		{"right name", ours, "kv.test", false, true},
		{"wrong name", ours, "other.test", false, false},
		{"wrong name, not checked", ours, "other.test", true, true},
		{"wrong authority", theirs, "kv.test", false, false},
		{"wrong authority, name not checked", theirs, "kv.test", true, false},
	} {
		cfg := Config{TLSCACert: ours.CertFile, TLSSkipVerification: c.skip}
		options, err := cfg.tlsFiles().Config()
		must.Succeed(t, err)
		options.ServerName = "kv.test"
		conn, err := (&tls.Dialer{
			Config: options,
		}).DialContext(t.Context(), "tcp", listenTLS(t, c.server.Issue(t, c.host)))
		if (err == nil) != c.want {
			t.Errorf("%s: %v", c.name, err)
		}
		if err == nil {
			_ = conn.Close() // only the handshake is tested
		}
	}
}

// listenTLS returns the address of a server that closes each connection after the TLS handshake.
func listenTLS(t *testing.T, certificate *testcert.Certificate) string {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{certificate.Pair()}, MinVersion: tls.VersionTLS12,
	})
	must.Succeed(t, err)
	t.Cleanup(func() { _ = l.Close() }) // nothing to lose
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = conn.(*tls.Conn).Handshake() // the client returns the error
			_ = conn.Close()
		}
	}()
	return l.Addr().String()
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	must.Succeed(t, os.WriteFile(path, content, 0o600))
}

// TestEnvoyNames checks values that users of the Envoy rate limit service have in their settings.
func TestEnvoyNames(t *testing.T) {
	cfg, err := env.ParseAsWithOptions[Config](env.Options{Environment: map[string]string{"KVSTORE_TYPE": "SINGLE"}})
	if err != nil || cfg.Type != Single || cfg.Validate() != nil {
		t.Errorf("KVSTORE_TYPE=SINGLE is %q, %v", cfg.Type, err)
	}
	second := PerSecondConfig{
		Enabled: true, URL: "kv:2", SocketType: "tcp", Type: Single, PoolSize: 1, Timeout: time.Second,
	}
	if got := second.Config(cfg).Timeout; got != time.Second {
		t.Errorf("the second store waits %v, want its own timeout of 1s", got)
	}
	second.Timeout = time.Hour
	if err := second.Validate(); err == nil || !strings.HasPrefix(err.Error(), "KVSTORE_PERSECOND_TIMEOUT ") {
		t.Errorf("a timeout of an hour is accepted: %v", err)
	}
}
