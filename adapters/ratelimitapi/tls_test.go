package ratelimitapi_test

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc/credentials"

	ratelimitpb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/tollgate-dev/tollgate/adapters/ratelimitapi"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/testcert"
)

func writeFile(t *testing.T, path string, content []byte) {
	t.Helper()
	must.Succeed(t, os.WriteFile(path, content, 0o600))
}

// callOverTLS makes one call over a new connection.
func (b *fixture) callOverTLS(t *testing.T, trusted, client *testcert.Certificate) error {
	t.Helper()
	c := &tls.Config{RootCAs: trusted.Pool(), ServerName: "server", MinVersion: tls.VersionTLS12}
	if client != nil {
		c.Certificates = []tls.Certificate{client.Pair()}
	}
	_, err := ratelimitpb.NewRateLimitServiceClient(b.dialGRPC(t, credentials.NewTLS(c))).ShouldRateLimit(t.Context(),
		newRequest("k"))
	return err
}

func TestTLSFollowsItsFiles(t *testing.T) {
	dir := t.TempDir()
	c := newConfig()
	c.TLS = ratelimitapi.TLSConfig{Enabled: true, Cert: filepath.Join(dir, "cert"), Key: filepath.Join(dir, "key")}
	wantOpenError(t, c, "GRPC_SERVER_TLS_CERT")
	first, second := testcert.NewAuthority(t), testcert.NewAuthority(t)
	server := first.Issue(t, "server")
	writeFile(t, c.TLS.Cert, server.CertPEM)
	writeFile(t, c.TLS.Key, server.KeyPEM)
	b := openFixture(t, c, nil)
	b.loadRules(t)
	must.Succeed(t, b.callOverTLS(t, first, nil))
	old := &tls.Config{
		RootCAs: first.Pool(), ServerName: "server", MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12,
		NextProtos: []string{"h2"},
		CipherSuites: []uint16{
			tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA, tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA,
			tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA,
		},
	}
	if c, err := tls.Dial("tcp", b.server.GRPCAddr().String(), old); err == nil {
		_ = c.Close()
		t.Error("a suite without authenticated encryption is accepted")
	}
	writeFile(t, c.TLS.Cert, []byte("broken"))
	if err := b.callOverTLS(t, first, nil); err != nil {
		t.Errorf("while the files are broken: %v", err)
	}
	server = second.Issue(t, "server")
	writeFile(t, c.TLS.Cert, server.CertPEM)
	writeFile(t, c.TLS.Key, append(server.KeyPEM, '\n'))
	if err := b.callOverTLS(t, second, nil); err != nil {
		t.Errorf("after the change: %v", err)
	}
	if b.callOverTLS(t, first, nil) == nil {
		t.Error("the old certificate is still in use")
	}
}

func TestMutualTLS(t *testing.T) {
	dir := t.TempDir()
	ours, other := testcert.NewAuthority(t), testcert.NewAuthority(t)
	c := newConfig()
	c.TLS = ratelimitapi.TLSConfig{
		Enabled: true, Cert: filepath.Join(dir, "cert"), Key: filepath.Join(dir, "key"),
		ClientCA: filepath.Join(dir, "ca"), ClientSAN: "proxy",
	}
	server := ours.Issue(t, "server")
	writeFile(t, c.TLS.Cert, server.CertPEM)
	writeFile(t, c.TLS.Key, server.KeyPEM)
	writeFile(t, c.TLS.ClientCA, ours.CertPEM)
	b := openFixture(t, c, nil)
	b.loadRules(t)
	if err := b.callOverTLS(t, ours, ours.Issue(t, "proxy")); err != nil {
		t.Errorf("the right client: %v", err)
	}
	if b.callOverTLS(t, ours, nil) == nil || b.callOverTLS(t, ours, other.Issue(t, "proxy")) == nil ||
		b.callOverTLS(t, ours, ours.Issue(t, "stranger")) == nil {
		t.Error("a client without the right certificate is accepted")
	}
	writeFile(t, c.TLS.ClientCA, []byte("no certificate"))
	wantOpenError(t, c, "GRPC_CLIENT_TLS_CACERT")
}
