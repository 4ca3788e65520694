package rest_test

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/testcert"
)

// newCertificate returns the files of a certificate for 127.0.0.1, and the settings of a client
// that trusts it.
func newCertificate(t *testing.T) (rest.TLSConfig, *tls.Config) {
	t.Helper()
	authority := testcert.NewAuthority(t)
	own := authority.Issue(t, "127.0.0.1")
	return rest.TLSConfig{Cert: own.CertFile, Key: own.KeyFile},
		&tls.Config{RootCAs: authority.Pool(), ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12}
}

// serveTLS is serveWith over TLS.
func serveTLS(t *testing.T, cfg rest.Config, d rest.Ports) (*service, *tls.Config) {
	t.Helper()
	files, trusting := newCertificate(t)
	cfg.TLS.Cert, cfg.TLS.Key = files.Cert, files.Key
	s := serveOn(t, cfg, openListener(t, cfg, d.Metrics), d)
	s.url = "https://" + s.address
	return s, trusting
}

// getOver sends a GET request on a connection and returns header and body of the response.
func getOver(t *testing.T, c net.Conn, path string) (http.Header, string) {
	t.Helper()
	must.Succeed(t, c.SetDeadline(time.Now().Add(30*time.Second)))
	if _, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	must.Succeed(t, err)
	defer func() { _ = r.Body.Close() }() // all of it was read
	body, err := io.ReadAll(r.Body)
	must.Succeed(t, err)
	return r.Header, string(body)
}

func TestTLS(t *testing.T) {
	cfg := config()
	cfg.TLS.HSTSMaxAge = 90 * time.Minute
	s, trusting := serveTLS(t, cfg, rest.Ports{})
	c, err := tls.Dial("tcp", s.address, trusting)
	must.Succeed(t, err)
	defer c.Close()
	header, body := getOver(t, c, "/v0.1/echo")
	if !strings.Contains(body, `"secure":"true"`) {
		t.Errorf("echo is %s", body)
	}
	if got := header.Get("Strict-Transport-Security"); got != "max-age=5400" {
		t.Errorf("Strict-Transport-Security is %q", got)
	}
	old := trusting.Clone()
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	if c, err := tls.Dial("tcp", s.address, old); err == nil {
		c.Close()
		t.Error("TLS 1.1 is accepted")
	}
	blocks := trusting.Clone()
	blocks.MaxVersion = tls.VersionTLS12
	for _, suites := range [][]uint16{
		{
			tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA, tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA,
			tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256,
		},
		{
			tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA, tls.TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA,
			tls.TLS_RSA_WITH_AES_128_CBC_SHA, tls.TLS_RSA_WITH_AES_128_GCM_SHA256,
		},
	} {
		blocks.CipherSuites = suites
		if c, err := tls.Dial("tcp", s.address, blocks); err == nil {
			c.Close()
			t.Errorf("the suite %s is accepted", tls.CipherSuiteName(c.ConnectionState().CipherSuite))
		}
	}
	blocks.CipherSuites = nil
	if c, err := tls.Dial("tcp", s.address, blocks); err != nil {
		t.Errorf("TLS 1.2: %v", err)
	} else {
		c.Close()
	}
	other := trusting.Clone()
	other.NextProtos = []string{"h2"}
	if c, err := tls.Dial("tcp", s.address, other); err == nil {
		c.Close()
		t.Error("a client with only HTTP/2 is accepted")
	}
}

// TestTLSOfAFullServer opens one connection too many, on which the client sends nothing, and then
// closes the first one. The server must accept the next connection.
func TestTLSOfAFullServer(t *testing.T) {
	cfg := config()
	cfg.MaxConnections = 1
	s, trusting := serveTLS(t, cfg, rest.Ports{})
	first, err := tls.Dial("tcp", s.address, trusting)
	must.Succeed(t, err)
	getOver(t, first, "/v0.1/echo")
	silent, err := net.Dial("tcp", s.address)
	must.Succeed(t, err)
	defer silent.Close()
	must.Succeed(t, silent.SetDeadline(time.Now().Add(20*time.Second)))
	if n, err := silent.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the refused client read %d bytes, %v; want a closed connection", n, err)
	}
	first.Close()
	for deadline := time.Now().Add(20 * time.Second); ; {
		again, err := tls.DialWithDialer(&net.Dialer{Deadline: deadline}, "tcp", s.address, trusting)
		if err == nil {
			getOver(t, again, "/v0.1/echo")
			again.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no connection after another one was closed: %v", err)
		}
	}
}

func TestTLSConfig(t *testing.T) {
	pair, _ := newCertificate(t)
	for name, c := range map[string]rest.TLSConfig{
		"TLS_KEY:":              {Cert: pair.Cert},
		"TLS_CERT:":             {Key: pair.Key},
		"HSTS_MAX_AGE:":         {HSTSMaxAge: -time.Second},
		"TLS_CERT and TLS_KEY:": {Cert: pair.Key, Key: pair.Cert},
	} {
		cfg := config()
		cfg.TLS = c
		err := cfg.Validate()
		if err == nil {
			_, err = rest.Listen(t.Context(), cfg, logrus.NewEntry(logrus.New()), prometheus.NewRegistry())
		}
		if err == nil || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
