package xds

import (
	"crypto/tls"
	"os"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/tollgate-dev/tollgate/core/ratelimit/reload"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/testcert"
)

// newTLSManager runs a management server over TLS. If clients is set, the server requires client
// certificates of that authority.
func newTLSManager(t *testing.T, own, clients *testcert.Certificate) *manager {
	t.Helper()
	c := &tls.Config{Certificates: []tls.Certificate{own.Pair()}, MinVersion: tls.VersionTLS12}
	if clients != nil {
		c.ClientCAs = clients.Pool()
		c.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return newManager(t, grpc.Creds(credentials.NewTLS(c)))
}

// followRefused follows a source that cannot connect, and returns after the first log line about
// it.
func followRefused(t *testing.T, m *manager, c Config) *reload.Rules {
	t.Helper()
	lines := make(logLines, 1000)
	log := logrus.New()
	log.SetOutput(lines)
	s, cleanup, err := Open(c, logrus.NewEntry(log))
	must.Succeed(t, err)
	t.Cleanup(cleanup)
	rules := followSource(t, s)
	line := await.Receive(t, "a log line about a server that cannot be reached", lines)
	if !strings.Contains(line, "cannot be reached") && !strings.Contains(line, "ended") {
		t.Fatalf("the log line is %q", line)
	}
	if m.requestCount() > 0 {
		t.Fatal("the server received a request")
	}
	return rules
}

// logLines sends the lines of a log.
type logLines chan string

func (f logLines) Write(line []byte) (int, error) {
	f <- string(line)
	return len(line), nil
}

func TestTLS(t *testing.T) {
	ca := testcert.NewAuthority(t)
	m := newTLSManager(t, ca.Issue(t, "localhost"), nil)
	c := testConfig(strings.Replace(m.address, "127.0.0.1", "localhost", 1))
	c.TLS = TLSConfig{Enabled: true, CACert: ca.CertFile}
	rules := followSource(t, openSource(t, c))
	m.offerAccepted(domainResources("secure")...)
	wantDomains(t, rules, "secure")
}

func TestTLSWithAnotherName(t *testing.T) {
	ca := testcert.NewAuthority(t)
	m := newTLSManager(t, ca.Issue(t, "control.example"), nil)
	c := testConfig(m.address)
	c.TLS = TLSConfig{Enabled: true, CACert: ca.CertFile, SAN: "control.example"}
	rules := followSource(t, openSource(t, c))
	m.offerAccepted(domainResources("secure")...)
	wantDomains(t, rules, "secure")
}

// TestMutualTLS starts with a client certificate that the server does not trust. It then replaces
// the certificate and the file of authorities while the source runs.
func TestMutualTLS(t *testing.T) {
	ca := testcert.NewAuthority(t)
	m := newTLSManager(t, ca.Issue(t, "control.example"), ca)
	other := testcert.NewAuthority(t)
	stranger := other.Issue(t, "client")
	c := testConfig(m.address)
	c.TLS = TLSConfig{
		Enabled: true, CACert: other.CertFile, Cert: stranger.CertFile, Key: stranger.KeyFile, SAN: "control.example",
	}
	rules := followRefused(t, m, c)
	good := ca.Issue(t, "client")
	renameFile(t, good.KeyFile, stranger.KeyFile)
	renameFile(t, good.CertFile, stranger.CertFile)
	renameFile(t, ca.CertFile, c.TLS.CACert)
	m.offerAccepted(domainResources("secure")...)
	wantDomains(t, rules, "secure")
}

func renameFile(t *testing.T, from, to string) {
	t.Helper()
	must.Succeed(t, os.Rename(from, to))
}

// TestTLSRefuses checks that the source sends nothing to a server that it must not trust.
func TestTLSRefuses(t *testing.T) {
	ca, other := testcert.NewAuthority(t), testcert.NewAuthority(t)
	own := ca.Issue(t, "control.example")
	for name, c := range map[string]TLSConfig{
		"another authority": {Enabled: true, CACert: other.CertFile, SAN: "control.example"},
		"another name":      {Enabled: true, CACert: ca.CertFile, SAN: "else.example"},
		"the host's name":   {Enabled: true, CACert: ca.CertFile},
		"no TLS":            {},
	} {
		t.Run(name, func(t *testing.T) {
			m := newTLSManager(t, own, nil)
			wrong := testConfig(m.address)
			wrong.TLS = c
			if rules := followRefused(t, m, wrong); rules.Current() != nil {
				t.Error("rules are in force")
			}
		})
	}
}
