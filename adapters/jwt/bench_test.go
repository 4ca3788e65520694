package jwt

import (
	"context"
	"io"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/ports/secrets/secretstest"
)

// BenchmarkVerifyAgain is what every request with a token pays; BenchmarkVerifyFirst what the first
// one pays.
func BenchmarkVerifyAgain(b *testing.B) { benchmark(b, func(*Issuer) {}) }

func BenchmarkVerifyFirst(b *testing.B) { benchmark(b, func(i *Issuer) { i.verified.forgetAll() }) }

func benchmark(b *testing.B, before func(*Issuer)) {
	clk, ctx := secretstest.NewClock(), context.Background()
	log := logrus.New()
	log.SetOutput(io.Discard)
	c := Config{Issuer: "tollgate", Audience: "tollgate", DataDir: b.TempDir()}
	i, cleanup, err := Open(ctx, c, ring(), clk, logrus.NewEntry(log))
	if err != nil {
		b.Fatal(err)
	}
	defer cleanup()
	token, err := i.Sign(ctx, secretstest.SampleClaims(clk))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		before(i)
		if _, err := i.Verify(ctx, token); err != nil {
			b.Fatal(err)
		}
	}
}
