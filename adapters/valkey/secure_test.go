package valkey

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/testcert"
)

// secureServer is a server with a TLS port and a plain port.
type secureServer struct {
	ours, theirs   *testcert.Certificate // authorities; the server trusts only the first
	client, bad    *testcert.Certificate // client certificates of these authorities
	address, plain string                // host:port with TLS (the certificate is for localhost) and without
}

// newSecureServer starts a server. Mutual is "yes" if clients need a certificate, otherwise "no".
func newSecureServer(t *testing.T, mutual string) secureServer {
	t.Helper()
	if !instance.ValkeyInstalled() {
		t.Skip("valkey-server is not installed")
	}
	s := secureServer{ours: testcert.NewAuthority(t), theirs: testcert.NewAuthority(t)}
	s.client, s.bad = s.ours.Issue(t, "tollgate"), s.theirs.Issue(t, "tollgate")
	certificate := s.ours.Issue(t, "localhost")
	port := instance.FreePort()
	v := instance.NewValkey(t.TempDir(), "--tls-port", port, "--tls-cert-file", certificate.CertFile, "--tls-key-file",
		certificate.KeyFile,
		"--tls-ca-cert-file", s.ours.CertFile, "--tls-auth-clients", mutual)
	t.Cleanup(v.Kill)
	must.Succeed(t, v.Start())
	s.address, s.plain = net.JoinHostPort("localhost", port), v.Address
	return s
}

// checkCounting checks whether a hit is counted, on a busy machine too if it should be.
func checkCounting(t *testing.T, what string, cfg Config, want bool) {
	t.Helper()
	if want {
		cfg.Timeout = await.Timeout
	}
	log := logrus.New()
	log.SetOutput(io.Discard)
	c, end, err := Open(t.Context(), cfg, logrus.NewEntry(log))
	must.Succeed(t, err)
	defer end()
	after := make([]counter.Result, 1)
	hit := counter.Hit{Key: "k", Addend: 1, Limit: 9, Window: time.Minute, TTL: time.Minute}
	if err := c.Count(t.Context(), []counter.Hit{hit}, after, counter.Each); (err == nil) != want {
		t.Errorf("%s: %v", what, err)
	}
}

func TestTLS(t *testing.T) {
	s := newSecureServer(t, "no")
	_, port, _ := net.SplitHostPort(s.address)
	for _, c := range []struct {
		name   string
		change func(*Config)
		want   bool
	}{
		{"right", func(*Config) {}, true},
		{"by URL", func(c *Config) { c.URL, c.TLS = "rediss://"+s.address, false }, true},
		{"plain", func(c *Config) { c.TLS = false }, false},
		{"other authority", func(c *Config) { c.TLSCACert = s.theirs.CertFile }, false},
		{"other name", func(c *Config) { c.URL = "127.0.0.1:" + port }, false},
		{"other name, not checked", func(c *Config) { c.URL, c.TLSSkipVerification = "127.0.0.1:"+port, true }, true},
		{"to a server that speaks none", func(c *Config) { c.URL = s.plain }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := validConfig()
			cfg.URL, cfg.TLS, cfg.TLSCACert = s.address, true, s.ours.CertFile
			c.change(&cfg)
			checkCounting(t, c.name, cfg, c.want)
		})
	}
}

// TestRenewedFilesAreUsed replaces certificate files that the server refuses. The client must then
// connect.
func TestRenewedFilesAreUsed(t *testing.T) {
	s := newSecureServer(t, "yes")
	cfg := validConfig()
	cfg.URL, cfg.TLS, cfg.TLSCACert = s.address, true, filepath.Join(t.TempDir(), "authority.pem")
	cfg.TLSClientCert, cfg.TLSClientKey = s.bad.CertFile, s.bad.KeyFile
	copyFile(t, s.theirs.CertFile, cfg.TLSCACert)
	log := logrus.New()
	log.SetOutput(io.Discard)
	c, end, err := Open(t.Context(), cfg, logrus.NewEntry(log))
	must.Succeed(t, err)
	defer end()
	if c.Ping(t.Context()) == nil {
		t.Fatal("connected with files of another authority")
	}
	copyFile(t, s.ours.CertFile, cfg.TLSCACert)
	copyFile(t, s.client.CertFile, cfg.TLSClientCert)
	copyFile(t, s.client.KeyFile, cfg.TLSClientKey)
	await.Until(t, "the use of the renewed files", func() bool { return c.Ping(t.Context()) == nil })
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	must.Succeed(t, err)
	write(t, to, content)
}

func TestMutualTLS(t *testing.T) {
	s := newSecureServer(t, "yes")
	for _, c := range []struct {
		name             string
		certificate, key string
		want             bool
	}{
		{"right", s.client.CertFile, s.client.KeyFile, true},
		{"none", "", "", false},
		{"other authority", s.bad.CertFile, s.bad.KeyFile, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := validConfig()
			cfg.URL, cfg.TLS, cfg.TLSCACert, cfg.TLSClientCert, cfg.TLSClientKey = s.address, true, s.ours.CertFile,
				c.certificate, c.key
			checkCounting(t, c.name, cfg, c.want)
		})
	}
}

// TestMinimalUser counts as a user with only the necessary permissions.
func TestMinimalUser(t *testing.T) {
	if !instance.ValkeyInstalled() {
		t.Skip("valkey-server is not installed")
	}
	users := filepath.Join(t.TempDir(), "users.acl")
	write(t, users,
		[]byte("user default off\nuser limits on >secret ~shop_* ~k resetchannels +@connection +get +set +incrby +pexpire +exists +eval +evalsha\n"))
	v := instance.NewValkey(t.TempDir(), "--aclfile", users)
	t.Cleanup(v.Kill)
	must.Succeed(t, v.Start())
	for auth, want := range map[string]bool{"limits:secret": true, "limits:wrong": false, "secret": false, "": false} {
		cfg := validConfig()
		cfg.URL, cfg.Auth = v.Address, auth
		checkCounting(t, auth, cfg, want)
	}
}
