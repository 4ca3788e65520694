package ratelimit

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestTwoStores counts per-second limits in a second store and all others in the first. The service
// reaches the second store over a Unix socket, with a user and a password. Pipelines are on in both
// stores.
func TestTwoStores(t *testing.T) {
	t.Parallel()
	if !instance.ValkeyInstalled() {
		t.Skip("valkey-server is not installed")
	}
	dir := t.TempDir()
	socket, users := filepath.Join(dir, "s"), filepath.Join(dir, "users.acl")
	fixture.WriteFile(t, users, "user default on nopass ~* +ping +keys\nuser limits on >secret ~* +@all\n")
	main := instance.NewValkey(t.TempDir(), "--requirepass", "of-the-first")
	second := instance.NewValkey(t.TempDir(), "--unixsocket", socket, "--aclfile", users)
	for _, v := range []*instance.Valkey{main, second} {
		t.Cleanup(v.Kill)
		must.Succeed(t, v.Start())
	}
	e := fixture.NewEnvironment(t, "production")
	fixture.WriteFile(t, filepath.Join(e.RulesDir, "rules.yaml"), `domain: shop
descriptors:
  - {key: quick, rate_limit: {unit: second, requests_per_unit: 1000000}}
  - {key: slow, rate_limit: {unit: day, requests_per_unit: 1000000}}
`)
	s := e.Start(t, "ENVIRONMENT=production",
		"KVSTORE_URL="+main.Address, "KVSTORE_AUTH=of-the-first",
		"KVSTORE_PIPELINE_WINDOW=150us", "KVSTORE_PIPELINE_LIMIT=8",
		"KVSTORE_PERSECOND=true", "KVSTORE_PERSECOND_URL="+socket, "KVSTORE_PERSECOND_SOCKET_TYPE=unix",
		"KVSTORE_PERSECOND_AUTH=limits:secret", "KVSTORE_PERSECOND_POOL_SIZE=1",
		"KVSTORE_PERSECOND_PIPELINE_WINDOW=150us", "KVSTORE_PERSECOND_PIPELINE_LIMIT=2",
	)
	c := s.NewRateLimitClient(t)
	both := fixture.NewRateLimitRequest("shop", "quick", "one")
	both.Descriptors = append(both.Descriptors, fixture.NewRateLimitRequest("shop", "slow", "one").Descriptors...)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				if r, err := c.ShouldRateLimit(t.Context(), both); err != nil ||
					r.OverallCode != ratelimit.RateLimitResponse_OK {
					t.Errorf("%v, %v", r, err)
				}
			}
		})
	}
	all.Wait()
	r := fixture.WantOverallCode(t, c, fixture.NewRateLimitRequest("shop", "slow", "one"),
		ratelimit.RateLimitResponse_OK)
	if got := r.Statuses[0].LimitRemaining; got != 1_000_000-161 {
		t.Errorf("remaining is %d after 161 hits", got)
	}
	first, other := main.SendLines("AUTH of-the-first", "KEYS *"), second.SendLines("KEYS *")
	if strings.Contains(first, "quick") || !strings.Contains(first, "slow") {
		t.Errorf("the first store has %q", first)
	}
	if !strings.Contains(other, "quick") || strings.Contains(other, "slow") {
		t.Errorf("the store of per-second limits has %q", other)
	}
}
