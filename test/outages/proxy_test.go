package outages

import (
	"net/http"
	"strings"
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestStoreBehindProxy reaches the counter store through proxies that do not support HELLO and
// CLIENT, like Envoy's. The service counts calls from the start, and again after the server was
// killed and started.
func TestStoreBehindProxy(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]string{
		"unknown command":     "-ERR unknown command '%s'",
		"unsupported command": "-ERR unsupported command '%s'",
		"no name":             "-ERR invalid request%.0s",
		"closed connection":   "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := startValkey(t)
			proxy, err := instance.NewRedisProxy(v.Address, refusal)
			must.Succeed(t, err)
			t.Cleanup(proxy.Close)
			s := startService(t, "KVSTORE_URL="+proxy.Address, impatient)
			l := startLoad(t, dialService(t, callers, s.GRPC), func(int) *ratelimit.RateLimitRequest {
				return newRequest("steady", "one")
			})
			outage := outage{service: s, load: l, store: v}
			l.awaitOutcomes(enough, counted)
			outage.wantStored("before")
			v.Kill()
			l.awaitOutcomes(enough, "Unavailable")
			must.Succeed(t, v.Start())
			l.awaitOutcomes(enough, counted)
			outage.wantStored("after")
			if status, state := getPage(t, "http://"+s.API+"/ready"); status != http.StatusOK ||
				!strings.Contains(state, `"counters":"ok"`) {
				t.Errorf("/ready: %d %s", status, state)
			}
		})
	}
}
