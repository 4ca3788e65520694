package xds

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/test/must"
)

func TestConfigRefuses(t *testing.T) {
	must.Succeed(t, testConfig("localhost:1").Validate())
	for variable, change := range map[string]func(*Config){
		"CONFIG_GRPC_XDS_SERVER_URL":                      func(c *Config) { c.Server = "localhost" },
		"CONFIG_GRPC_XDS_NODE_ID":                         func(c *Config) { c.Node.ID = "" },
		"CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL":   func(c *Config) { c.RetryInterval = 0 },
		"XDS_CLIENT_BACKOFF_INITIAL_INTERVAL":             func(c *Config) { c.Backoff.Initial = -time.Second },
		"XDS_CLIENT_BACKOFF_MAX_INTERVAL":                 func(c *Config) { c.Backoff.Max = 0 },
		"XDS_CLIENT_BACKOFF_RANDOM_FACTOR":                func(c *Config) { c.Backoff.RandomFactor = 1.1 },
		"XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES":                func(c *Config) { c.MaxMessage = -1 },
		"CONFIG_GRPC_XDS_CLIENT_TLS_CERT and CONFIG_GRPC": func(c *Config) { c.TLS.Cert = "x" },
	} {
		c := testConfig("localhost:1")
		change(&c)
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), variable) {
			t.Errorf("%s: error is %v", variable, err)
		}
	}
}

func TestParseHeaders(t *testing.T) {
	for _, wrong := range []string{
		"plain", "a:b,plain", "a:b,", ":v", "a b:v", "grpc-timeout:1S", ":path:x", "a:v\x01", "a:ü",
	} {
		c := testConfig("localhost:1")
		c.Headers = wrong
		err := c.Validate()
		if err == nil || !strings.HasPrefix(err.Error(), "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS") {
			t.Errorf("%q: error is %v", wrong, err)
		} else if strings.Contains(err.Error(), wrong) {
			t.Errorf("%q: the error %q contains the setting, which may be secret", wrong, err)
		}
	}
	c := Config{Headers: "K1:v1, k2 : v:2,k1:v3,empty:"}
	md, err := c.parseHeaders()
	must.Succeed(t, err)
	if got := strings.Join(md["k1"], ";"); got != "v1;v3" {
		t.Errorf("k1 is %q", got)
	}
	if len(md["k2"]) != 1 || md["k2"][0] != "v:2" || len(md["empty"]) != 1 {
		t.Errorf("headers are %v", md)
	}
}

func TestNodeMetadata(t *testing.T) {
	for text, want := range map[string]string{
		``:                        `map[]`,
		`{}`:                      `map[]`,
		`{"a": {"b": [1, true]}}`: `map[a:map[b:[1 true]]]`,
		`key1=val1, key2 = v=2`:   `map[key1:val1 key2:v=2]`,
		// the Envoy service parses the last line in the same way
		`key1:val1,key2=val2,k:a=b`: `map[k:a:b key1:val1 key2:val2]`,
	} {
		s, err := (NodeConfig{Metadata: text}).parseMetadata()
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := fmt.Sprint(s.AsMap()); got != want {
			t.Errorf("%s is parsed as %s, want %s", text, got, want)
		}
	}
	for _, wrong := range []string{`{`, `{"a": }`, `plain`, `a=b,`, `=v`, `{} x`} {
		if err := (Config{
			Node: NodeConfig{ID: "x", Metadata: wrong},
		}).Validate(); err == nil || !strings.Contains(err.Error(), "CONFIG_GRPC_XDS_NODE_METADATA") {
			t.Errorf("%s: error is %v", wrong, err)
		}
	}
}

// TestOpenNamesTheSetting checks that Open refuses files that cannot be read and invalid addresses.
func TestOpenNamesTheSetting(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.crt")
	must.Succeed(t, os.WriteFile(empty, nil, 0o600))
	log := logrus.New()
	log.SetOutput(io.Discard)
	for variable, change := range map[string]func(*Config){
		"CONFIG_GRPC_XDS_SERVER_URL": func(c *Config) { c.Server = "x://\x01" },
		"CONFIG_GRPC_XDS_SERVER_TLS_CACERT: no": func(c *Config) {
			c.TLS = TLSConfig{Enabled: true, CACert: empty}
		},
		"CONFIG_GRPC_XDS_SERVER_TLS_CACERT: open": func(c *Config) {
			c.TLS = TLSConfig{Enabled: true, CACert: empty + ".none"}
		},
		"CONFIG_GRPC_XDS_CLIENT_TLS_CERT": func(c *Config) {
			c.TLS = TLSConfig{Enabled: true, Cert: empty, Key: empty}
		},
		"CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS": func(c *Config) { c.Headers = "plain" },
		"CONFIG_GRPC_XDS_NODE_METADATA":             func(c *Config) { c.Node.Metadata = "plain" },
	} {
		c := testConfig("localhost:1")
		change(&c)
		if _, _, err := Open(c, logrus.NewEntry(log)); err == nil || !strings.HasPrefix(err.Error(), variable) {
			t.Errorf("%s: error is %v", variable, err)
		}
	}
}

func TestServerAddresses(t *testing.T) {
	for server, good := range map[string]bool{
		"localhost:18000": true, "[::1]:1": true, "unix:/run/x.sock": true, "dns:///control:1": true,
		"": false, "host": false, "host:": false, "a:b:c": false,
	} {
		if err := testConfig(server).Validate(); (err == nil) != good {
			t.Errorf("%q: error is %v", server, err)
		}
	}
}
