package ratelimit

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	types "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// peerRules use the features that the examples of the Envoy rate limit service use.
const peerRules = `---
domain: %s
descriptors:
  - key: from
    value: proxy
    descriptors:
      - key: to
        value: mock
        rate_limit: {unit: hour, requests_per_unit: 1}
      - key: to
        value: partner
        rate_limit: {unit: hour, requests_per_unit: 2, replaces: [{name: banned}]}
  - key: header
    rate_limit: {unit: hour, requests_per_unit: 2}
    descriptors:
      - key: also
        rate_limit: {unit: hour, requests_per_unit: 3}
      - key: also
        value: banned
        rate_limit: {name: banned, unit: hour, requests_per_unit: 0}
      - key: often
        rate_limit: {unit: SECOND, requests_per_unit: 100000}
      - key: free
        rate_limit: {unlimited: true}
      - key: also
        value: trial
        rate_limit: {unit: hour, requests_per_unit: 1}
        shadow_mode: true
  - key: told
    detailed_metric: true
    rate_limit: {unit: hour, requests_per_unit: 2}
  - key: path
    value: /api/*
    rate_limit: {unit: day, requests_per_unit: 1}
  - key: ten
    rate_limit: {unit: hour, requests_per_unit: 10}
  - key: share
    value: "/a/*"
    share_threshold: true
    rate_limit: {unit: hour, requests_per_unit: 2}
  - key: model
    value: small
    quota_mode: true
    rate_limit: {unit: hour, requests_per_unit: 1}
  - key: model
    value: large
    quota_mode: true
    rate_limit: {unit: hour, requests_per_unit: 2}
`

// peerSteps make the calls of that service's integration tests.
func peerSteps() map[string][]callStep {
	return map[string][]callStep{
		"nested": {
			newStep("OK: OK 1/HOUR 0", "from=proxy,to=mock"), newStep("OVER: OVER 1/HOUR 0", "from=proxy,to=mock"),
		},
		"one header": {
			newStep("OK: OK 2/HOUR 1", "header=a"), newStep("OK: OK 2/HOUR 0", "header=a"),
			newStep("OVER: OVER 2/HOUR 0", "header=a"), newStep("OK: OK 2/HOUR 1", "header=b"),
		},
		"banned": {
			newStep("OK: OK 3/HOUR 2", "header=c,also=d"), newStep("OVER: OVER 0/HOUR 0", "header=c,also=banned"),
		},
		"replaced": {
			newStep("OVER: OVER 0/HOUR 0 | OK", "header=r,also=banned", "from=proxy,to=nobody"),
			newStep("OK: OK | OK 2/HOUR 1", "header=r,also=banned", "from=proxy,to=partner"),
			newStep("OK: OK | OK 2/HOUR 0", "header=r,also=banned", "from=proxy,to=partner"),
			newStep("OVER: OK | OVER 2/HOUR 0", "header=r,also=banned", "from=proxy,to=partner"),
		},
		"per second": {newStep("OK: OK 100000/SECOND 99999", "header=e,often=f")},
		"unlimited":  {newStep("OK: OK ∞", "header=e,free=f")},
		"shadow": {
			newStep("OK: OK 1/HOUR 0", "header=e,also=trial"), newStep("OK: OK 1/HOUR 0", "header=e,also=trial"),
		},
		"detailed": {
			newStep("OK: OK 2/HOUR 1", "told=x"), newStep("OK: OK 2/HOUR 0", "told=x"),
			newStep("OVER: OVER 2/HOUR 0", "told=x"),
		},
		"wildcard": {
			newStep("OK: OK 1/DAY 0 | OK 1/DAY 0", "path=/api/a", "path=/api/b"), newStep("OK: OK", "path=/other"),
		},
		"quota": {
			newStep("OK: OK 1/HOUR 0 | OK 2/HOUR 1", "model=small", "model=large"),
			newStep("OK: OVER 1/HOUR 0 | OK 2/HOUR 0", "model=small", "model=large"),
			newStep("OVER: OVER 1/HOUR 0 | OVER 2/HOUR 0", "model=small", "model=large"),
		},
		"unknown": {newStep("OK: OK", "nobody=knows")},
		"hits": {
			withHits(3, newStep("OK: OK 10/HOUR 7", "ten=r")), withOwnHits(0, newStep("OK: OK 10/HOUR 7", "ten=r")),
			withHits(8, newStep("OVER: OVER 10/HOUR 0", "ten=r")),
			withNegativeHits(withOwnHits(4, newStep("OK: OK 10/HOUR 3", "ten=r"))),
			newStep("OK: OK 10/HOUR 2", "ten=r"),
		},
		"shared": {
			newStep("OK: OK 2/HOUR 1 | OK 2/HOUR 0", "share=/a/1", "share=/a/2"),
			newStep("OVER: OVER 2/HOUR 0", "share=/a/3"),
		},
		"override": {
			withOwnLimit(3, types.RateLimitUnit_DAY, newStep("OK: OK 3/DAY 2", "ten=o")),
			withOwnLimit(4, types.RateLimitUnit_MONTH, newStep("OK: OK 4/MONTH 3", "unheard=of")),
		},
	}
}

// peerStores are the stores of the Envoy rate limit service, with its own variables.
func peerStores() map[string][]string {
	stores := map[string][]string{}
	if address := os.Getenv("TEST_VALKEY_URL"); address != "" {
		stores["redis"] = []string{
			"BACKEND_TYPE=redis", "REDIS_TYPE=SINGLE", "REDIS_SOCKET_TYPE=tcp", "REDIS_URL=" + address,
			"REDIS_POOL_SIZE=4", "REDIS_TIMEOUT=10s",
			"REDIS_PIPELINE_WINDOW=150us", "REDIS_PIPELINE_LIMIT=8", "REDIS_TLS=false",
			"REDIS_HEALTH_CHECK_ACTIVE_CONNECTION=true",
			"REDIS_PERSECOND=true", "REDIS_PERSECOND_SOCKET_TYPE=tcp", "REDIS_PERSECOND_URL=" + address,
			"REDIS_PERSECOND_TIMEOUT=5s",
			"REDIS_POOL_ON_EMPTY_BEHAVIOR=WAIT",
		}
	}
	if address := os.Getenv("TEST_MEMCACHED_ADDR"); address != "" {
		stores["memcache"] = []string{
			"BACKEND_TYPE=memcache", "MEMCACHE_HOST_PORT=" + address, "MEMCACHE_MAX_IDLE_CONNS=2",
			"MEMCACHE_SRV_REFRESH=0", "MEMCACHE_TLS=false",
		}
	}
	return stores
}

// peerEnvironment is the environment of that service's examples. The only variable of Tollgate in
// it is SHUTDOWN_DRAIN, so that the test does not wait at the end.
func peerEnvironment(dir, statsdPort string) []string {
	return []string{
		"USE_STATSD=true", "STATSD_HOST=127.0.0.1", "STATSD_PORT=" + statsdPort, "STATS_FLUSH_INTERVAL=50ms",
		"EXTRA_TAGS=",
		"LOG_LEVEL=DEBUG", "LOG_FORMAT=json", "CONFIG_TYPE=FILE", "FORCE_START_WITHOUT_INITIAL_CONFIG=false",
		"HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED=true",
		"RUNTIME_ROOT=" + dir, "RUNTIME_SUBDIRECTORY=ratelimit", "RUNTIME_WATCH_ROOT=false",
		"RUNTIME_IGNOREDOTFILES=true", "MERGE_DOMAIN_CONFIG=false",
		"HOST=127.0.0.1", "PORT=0", "GRPC_HOST=127.0.0.1", "GRPC_PORT=0", "DEBUG_HOST=127.0.0.1", "DEBUG_PORT=0",
		"GRPC_MAX_CONNECTION_AGE=24h", "GRPC_MAX_CONNECTION_AGE_GRACE=1h", "GRPC_SERVER_USE_TLS=false",
		"NEAR_LIMIT_RATIO=0.8", "EXPIRATION_JITTER_MAX_SECONDS=300", "LOCAL_CACHE_SIZE_IN_BYTES=65536",
		"SHADOW_MODE=false",
		"STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT=false", "LIMIT_RESPONSE_HEADERS_ENABLED=true",
		"RESPONSE_DYNAMIC_METADATA=false",
		"TRACING_ENABLED=false",
		fmt.Sprintf("CACHE_KEY_PREFIX=p%d_%d_", os.Getpid(), time.Now().UnixNano()),
		"SHUTDOWN_DRAIN=0s",
	}
}

// TestInPlaceOfThePeer starts the service with the rules and the environment of a user of the Envoy
// rate limit service, on each of its stores. It uses everything that this user has: gRPC, /json,
// health, statsd over TCP, the debug port and reloading.
func TestInPlaceOfThePeer(t *testing.T) {
	t.Parallel()
	for store, environ := range peerStores() {
		t.Run(store, func(t *testing.T) {
			dir, d := t.TempDir(), newStreamDaemon(t)
			config := filepath.Join(dir, "ratelimit", "config")
			must.Succeed(t, os.MkdirAll(config, 0o700))
			for transport := range newTransports(nil) {
				fixture.WriteFile(t, filepath.Join(config, transport+".yaml"), fmt.Sprintf(peerRules, transport))
			}
			s := fixture.Launch(t, "ratelimit", append(peerEnvironment(dir, d.port), environ...))
			s.AwaitRules()
			for transport, ask := range newTransports(s) {
				for name, steps := range peerSteps() {
					t.Run(transport+"/"+name, func(t *testing.T) { followSteps(t, ask, transport, steps) })
				}
			}
			wantPeerNames(t, s, d)
			wantUnusedReported(t, s, environ)
			fixture.WriteFile(t, filepath.Join(config, "grpc.yaml"), newLimitRules(7))
			awaitLimit(t, s, 7)
		})
	}
}

// wantPeerNames checks that the metrics, pages and logs have the names that the Envoy rate limit
// service uses.
func wantPeerNames(t *testing.T, s *fixture.Service, d *metricsDaemon) {
	t.Helper()
	for name, want := range map[string]int{
		"grpc.header.also_banned.over_limit": 2, "json.header.also_trial.shadow_mode": 1, "grpc.told_x.over_limit": 1,
		"json.from_proxy.to_partner.total_hits": 3, "grpc.header.free.total_hits": 1,
	} {
		name = "ratelimit.service.rate_limit." + name
		if got := readStats(t, s)[name]; got != fmt.Sprint(want) {
			t.Errorf("/stats: %s is %q, want %d", name, got, want)
		}
	}
	d.awaitCounter(t, "ratelimit.service.rate_limit.grpc.told_x.over_limit", "|c", 1)
	for path, holds := range map[string]string{
		"/": "/rlconfig", "/debug/pprof/": "goroutine",
		"/rlconfig": "grpc.header.also_trial: unit=HOUR requests_per_unit=1, shadow_mode: true, quota_mode: false\n",
	} {
		if body := string(apiclient.Call(t, "GET", s.Debug+path, nil).WantStatus(t,
			http.StatusOK).Body); !strings.Contains(body, holds) {
			t.Errorf("%s holds no %q:\n%s", path, holds, body)
		}
	}
	if body := string(apiclient.Call(t, "GET", s.RateLimitAPI+"/healthcheck", nil).WantStatus(t,
		http.StatusOK).Body); body != "OK" {
		t.Errorf("/healthcheck says %q", body)
	}
	health, err := healthpb.NewHealthClient(dialService(t, s.GRPC, insecure.NewCredentials())).
		Check(t.Context(), &healthpb.HealthCheckRequest{Service: "ratelimit"})
	if err != nil || health.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("gRPC health is %v, %v", health, err)
	}
	answer := fixture.WantOverallCode(t, s.NewRateLimitClient(t),
		fixture.NewRateLimitRequest("grpc", "header", "headers"), ratelimit.RateLimitResponse_OK)
	if h := answer.GetResponseHeadersToAdd(); len(h) != 3 || h[0].GetKey() != "RateLimit-Limit" ||
		h[0].GetValue() != "2" {
		t.Errorf("headers are %v", h)
	}
}

// wantUnusedReported checks that the log names the variables that have no effect.
func wantUnusedReported(t *testing.T, s *fixture.Service, environ []string) {
	t.Helper()
	unused := []string{}
	if strings.Contains(strings.Join(environ, " "), "REDIS_") {
		unused = append(unused, "REDIS_POOL_ON_EMPTY_BEHAVIOR")
	}
	log := s.Process.Log()
	for _, name := range unused {
		if !strings.Contains(log, `"@message":"`+name+" is not used: ") {
			t.Errorf("the log does not name %s", name)
		}
	}
	if n := strings.Count(log, " is not used: "); n != len(unused) {
		t.Errorf("the log names %d variables, want %d", n, len(unused))
	}
}
