package jwt

import (
	"context"
	"io"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/secrets/secretstest"
	"github.com/tollgate-dev/tollgate/test/must"
)

// BenchmarkVerifyAgain measures the verification of a token that was verified before.
func BenchmarkVerifyAgain(b *testing.B) {
	benchmarkVerify(b, secretstest.SampleClaims, func(*Issuer) {})
}

// BenchmarkVerifyFirst measures the first verification of a token.
func BenchmarkVerifyFirst(b *testing.B) {
	benchmarkVerify(b, secretstest.SampleClaims, func(i *Issuer) { i.verified.forgetAll() })
}

// BenchmarkVerifyGrantAgain measures the verification of a token of a grant that was verified before.
func BenchmarkVerifyGrantAgain(b *testing.B) {
	benchmarkVerify(b, secretstest.GrantClaims, func(*Issuer) {})
}

// benchmarkVerify measures Verify, and calls before ahead of each call.
func benchmarkVerify(b *testing.B, sample func(*clocktest.Manual) secrets.TokenClaims, before func(*Issuer)) {
	clk, ctx := secretstest.NewClock(), context.Background()
	log := logrus.New()
	log.SetOutput(io.Discard)
	c := Config{Issuer: "tollgate", Audience: "tollgate", DataDir: b.TempDir(), OAuthIssuer: grantIssuer}
	i, cleanup, err := Open(ctx, c, newRing(), clk, logrus.NewEntry(log))
	must.Succeed(b, err)
	defer cleanup()
	token, err := i.Sign(ctx, sample(clk))
	must.Succeed(b, err)
	b.ReportAllocs()
	for b.Loop() {
		before(i)
		if _, err := i.Verify(ctx, token); err != nil {
			b.Fatal(err)
		}
	}
}
