package ratelimit

import (
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/valkey-io/valkey-go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/testcert"
)

// dialService returns a connection that is closed after the test.
func dialService(t *testing.T, target string, creds credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(creds))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // the test is over
	return conn
}

// callOnce makes one call and returns its error.
func callOnce(t *testing.T, conn *grpc.ClientConn) error {
	t.Helper()
	_, err := ratelimit.NewRateLimitServiceClient(conn).ShouldRateLimit(t.Context(),
		fixture.NewRateLimitRequest("d", "ten", "x"))
	return err
}

func TestRateLimitOnASocket(t *testing.T) {
	t.Parallel()
	e := newRulesEnvironment(t, fmt.Sprintf(settingRules, "d"))
	socket := filepath.Join(e.Dir, "s")
	e.Start(t, "GRPC_UDS="+socket)
	if err := callOnce(t, dialService(t, "unix:"+socket, insecure.NewCredentials())); err != nil {
		t.Error(err)
	}
}

// TestRateLimitConnectionAge checks that the service closes an old connection, and that the next
// call opens another one.
func TestRateLimitConnectionAge(t *testing.T) {
	t.Parallel()
	s := newRulesEnvironment(t, fmt.Sprintf(settingRules, "d")).Start(t, "GRPC_MAX_CONNECTION_AGE=200ms",
		"GRPC_MAX_CONNECTION_AGE_GRACE=10s")
	conn := dialService(t, s.GRPC, insecure.NewCredentials())
	for range 2 {
		if err := callOnce(t, conn); err != nil {
			t.Fatal(err)
		}
		await.Until(t, "the connection ends", func() bool { return conn.GetState() != connectivity.Ready })
	}
}

// TestRateLimitMutualTLS checks that the service accepts only clients with a certificate of the
// authority and the right name, and that it uses a new server certificate without a restart.
func TestRateLimitMutualTLS(t *testing.T) {
	t.Parallel()
	e := newRulesEnvironment(t, fmt.Sprintf(settingRules, "d"))
	first, second := testcert.NewAuthority(t), testcert.NewAuthority(t)
	file := func(name string) string { return filepath.Join(e.Dir, name) }
	serve := func(by *testcert.Certificate) {
		id := by.Issue(t, "server")
		fixture.WriteFile(t, file("key"), string(id.KeyPEM))
		fixture.WriteFile(t, file("cert"), string(id.CertPEM))
	}
	serve(first)
	fixture.WriteFile(t, file("ca"), string(first.CertPEM))
	s := e.Start(t, "GRPC_SERVER_USE_TLS=true", "GRPC_SERVER_TLS_CERT="+file("cert"),
		"GRPC_SERVER_TLS_KEY="+file("key"),
		"GRPC_CLIENT_TLS_CACERT="+file("ca"), "GRPC_CLIENT_TLS_SAN=proxy")
	as := func(trusted, client *testcert.Certificate) error {
		c := &tls.Config{RootCAs: trusted.Pool(), ServerName: "server", MinVersion: tls.VersionTLS12}
		if client != nil {
			c.Certificates = []tls.Certificate{client.Pair()}
		}
		return callOnce(t, dialService(t, s.GRPC, credentials.NewTLS(c)))
	}
	proxy := first.Issue(t, "proxy")
	if err := as(first, proxy); err != nil {
		t.Fatal(err)
	}
	for name, client := range map[string]*testcert.Certificate{
		"no certificate": nil, "another name": first.Issue(t, "other"), "another authority": second.Issue(t, "proxy"),
	} {
		if as(first, client) == nil {
			t.Errorf("%s: served", name)
		}
	}
	if err := callOnce(t, dialService(t, s.GRPC, insecure.NewCredentials())); err == nil {
		t.Error("served without TLS")
	}
	serve(second)
	await.Until(t, "the new certificate is served", func() bool { return as(second, proxy) == nil })
}

// TestRateLimitJitter reads the time to live of a counter in Valkey. It is an hour, plus one second
// for differences between clocks, plus the jitter.
func TestRateLimitJitter(t *testing.T) {
	t.Parallel()
	e := fixture.NewProduction(t)
	fixture.WriteFile(t, filepath.Join(e.RulesDir, "rules.yaml"), fmt.Sprintf(settingRules, "d"))
	store, err := valkey.NewClient(valkey.ClientOption{
		InitAddress: []string{os.Getenv("TEST_VALKEY_URL")}, DisableCache: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for jitter, most := range map[int]int64{0: 3601, 100_000_000: 100_003_601} {
		prefix := fmt.Sprintf("jitter%d_%d_", jitter, time.Now().UnixNano())
		s := e.Start(t, "CACHE_KEY_PREFIX="+prefix, fmt.Sprint("EXPIRATION_JITTER_MAX_SECONDS=", jitter))
		followSteps(t, newTransports(s)["grpc"], "d", []callStep{newStep("OK: OK 2/HOUR 1", "two=x")})
		found, err := store.Do(t.Context(), store.B().Keys().Pattern(prefix+"*").Build()).AsStrSlice()
		if err != nil || len(found) != 1 {
			t.Fatalf("keys %q, %v", found, err)
		}
		ttl, err := store.Do(t.Context(), store.B().Ttl().Key(found[0]).Build()).AsInt64()
		if err != nil || ttl > most || ttl < 3500 || jitter > 0 && ttl <= 3601 {
			t.Errorf("with a jitter of %d s a counter lives %d s, %v", jitter, ttl, err)
		}
	}
}
