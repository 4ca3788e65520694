package ratelimit

import (
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
	"github.com/tollgate-dev/tollgate/test/must"
)

// dialService returns a connection that is closed after the test.
func dialService(t *testing.T, target string, creds credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(creds))
	must.Succeed(t, err)
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

// TestRateLimitConnectionAge checks that the service closes an old connection, and that the next
// call opens another one.
func TestRateLimitConnectionAge(t *testing.T) {
	t.Parallel()
	s := newRulesEnvironment(t, fmt.Sprintf(settingRules, "d")).Start(t, "GRPC_MAX_CONNECTION_AGE=200ms",
		"GRPC_MAX_CONNECTION_AGE_GRACE=10s")
	conn := dialService(t, s.GRPC, insecure.NewCredentials())
	for range 2 {
		must.Succeed(t, callOnce(t, conn))
		await.Until(t, "the connection ends", func() bool { return conn.GetState() != connectivity.Ready })
	}
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
	must.Succeed(t, err)
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
