package xds

import (
	"crypto/tls"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/tollgate-dev/tollgate/core/ratelimit/reload"
	"github.com/tollgate-dev/tollgate/test/testcert"
)

// secured runs a management server over TLS, which wants client certificates of
// an authority, where one is given.
func secured(t *testing.T, own, clients *testcert.Certificate) *manager {
	t.Helper()
	c := &tls.Config{Certificates: []tls.Certificate{own.Pair()}, MinVersion: tls.VersionTLS12}
	if clients != nil {
		c.ClientCAs = clients.Pool()
		c.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return newManager(t, grpc.Creds(credentials.NewTLS(c)))
}

// followRefused follows a source that cannot connect, and returns once it has
// said so.
func followRefused(t *testing.T, m *manager, c Config) *reload.Rules {
	t.Helper()
	told := make(failures, 1000)
	log := logrus.New()
	log.SetOutput(told)
	s, cleanup, err := Open(c, logrus.NewEntry(log))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cleanup)
	rules := follow(t, s)
	select {
	case line := <-told:
		if !strings.Contains(line, "cannot be reached") && !strings.Contains(line, "ended") {
			t.Fatalf("told %q", line)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("nothing is told of a server that cannot be reached")
	}
	if m.seen() > 0 {
		t.Fatal("the server was asked all the same")
	}
	return rules
}

// failures takes the lines of a log.
type failures chan string

func (f failures) Write(line []byte) (int, error) {
	f <- string(line)
	return len(line), nil
}

func TestTLS(t *testing.T) {
	ca := testcert.NewAuthority(t)
	m := secured(t, ca.Issue(t, "localhost"), nil)
	c := settings(strings.Replace(m.address, "127.0.0.1", "localhost", 1))
	c.TLS = TLSConfig{Enabled: true, CACert: ca.CertFile}
	rules := follow(t, open(t, c))
	m.await("acknowledgement", acknowledges(m.offer(domains("secure")...)))
	wantDomains(t, rules, "secure")
}

func TestTLSWithAnotherName(t *testing.T) {
	ca := testcert.NewAuthority(t)
	m := secured(t, ca.Issue(t, "control.example"), nil)
	c := settings(m.address)
	c.TLS = TLSConfig{Enabled: true, CACert: ca.CertFile, SAN: "control.example"}
	rules := follow(t, open(t, c))
	m.await("acknowledgement", acknowledges(m.offer(domains("secure")...)))
	wantDomains(t, rules, "secure")
}

// TestMutualTLS begins with a client certificate that the server does not trust
// and renews it, with the file of the authorities, while the service runs.
func TestMutualTLS(t *testing.T) {
	ca := testcert.NewAuthority(t)
	m := secured(t, ca.Issue(t, "control.example"), ca)
	other := testcert.NewAuthority(t)
	stranger := other.Issue(t, "client")
	c := settings(m.address)
	c.TLS = TLSConfig{
		Enabled: true, CACert: other.CertFile, Cert: stranger.CertFile, Key: stranger.KeyFile, SAN: "control.example",
	}
	rules := followRefused(t, m, c)
	good := ca.Issue(t, "client")
	rename(t, good.KeyFile, stranger.KeyFile)
	rename(t, good.CertFile, stranger.CertFile)
	rename(t, ca.CertFile, c.TLS.CACert)
	m.await("acknowledgement", acknowledges(m.offer(domains("secure")...)))
	wantDomains(t, rules, "secure")
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// TestTLSRefuses wants each server that must not be trusted left alone.
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
			m := secured(t, own, nil)
			wrong := settings(m.address)
			wrong.TLS = c
			if rules := followRefused(t, m, wrong); rules.Current() != nil {
				t.Error("rules are in force")
			}
		})
	}
}
