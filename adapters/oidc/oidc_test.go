package oidc

import (
	"net/http"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/identity/identitytest"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/oidcissuer"
)

const audience = "https://tools.example.com"

func newClock() *clocktest.Manual {
	return clocktest.NewManual(time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC))
}

// newConfig returns a configuration with one issuer for both methods.
func newConfig(i *oidcissuer.Issuer) Config {
	return Config{Issuers: []string{i.URL}, GitHubIssuer: i.URL, CAFile: i.CAFile, PublicURL: audience}
}

func openVerifier(t *testing.T, c Config, clk *clocktest.Manual) *Verifier {
	t.Helper()
	v, err := New(c, clk)
	must.Succeed(t, err)
	return v
}

func TestContract(t *testing.T) {
	for name, start := range map[string]func(testing.TB) *oidcissuer.Issuer{
		"http": oidcissuer.Start, "https": oidcissuer.StartTLS,
	} {
		t.Run(name, func(t *testing.T) {
			own, github := start(t), oidcissuer.Start(t)
			rsa := github.AddKey(t, jose.RS256)
			identitytest.Run(t, func(t *testing.T) identitytest.Subject {
				own.Recover()
				clk := newClock()
				c := Config{
					Issuers: []string{own.URL}, GitHubIssuer: github.URL, CAFile: own.CAFile,
					PublicURL: audience + "/some/path",
				}
				off := c
				off.Issuers = nil
				return identitytest.Subject{
					Verifier: openVerifier(t, c, clk), Unconfigured: openVerifier(t, off, clk), Clock: clk,
					Audience: audience, OIDC: testIssuer(own, own.Key()), GitHub: testIssuer(github, rsa),
				}
			})
		})
	}
}

func testIssuer(i *oidcissuer.Issuer, key oidcissuer.Key) identitytest.Issuer {
	return identitytest.Issuer{URL: i.URL, Sign: key.Sign, Fail: func() { i.Fail(http.StatusServiceUnavailable) }}
}
