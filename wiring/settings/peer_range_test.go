package settings_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// TestValuesOfEnvoyService requires that each value that the Envoy rate limit service accepts
// becomes the wanted value, with a warning that names the variable, the given value and the used
// value.
func TestValuesOfEnvoyService(t *testing.T) {
	long := strings.Repeat("x", 120)
	for _, test := range []struct {
		variable string
		value    func(settings.Settings) any
		want     string
	}{
		{"REDIS_POOL_SIZE=2000", func(s settings.Settings) any { return s.Valkey.PoolSize }, "1024"},
		{"REDIS_POOL_SIZE=0", func(s settings.Settings) any { return s.Valkey.PoolSize }, "1"},
		{"REDIS_PERSECOND_POOL_SIZE=5000", func(s settings.Settings) any { return s.PerSecond.PoolSize }, "1024"},
		{"REDIS_TIMEOUT=0", func(s settings.Settings) any { return s.Valkey.Timeout }, "1m0s"},
		{"REDIS_TIMEOUT=2m", func(s settings.Settings) any { return s.Valkey.Timeout }, "1m0s"},
		{"REDIS_TIMEOUT=10us", func(s settings.Settings) any { return s.Valkey.Timeout }, "1ms"},
		{"REDIS_PIPELINE_WINDOW=600ms", func(s settings.Settings) any { return s.Valkey.PipelineWindow }, "250ms"},
		{
			"REDIS_PERSECOND_PIPELINE_WINDOW=2s", func(s settings.Settings) any {
				return s.PerSecond.PipelineWindow
			}, "250ms",
		},
		{"REDIS_PIPELINE_LIMIT=-1", func(s settings.Settings) any { return s.Valkey.PipelineLimit }, "0"},
		{"REDIS_SOCKET_TYPE=tcp4", func(s settings.Settings) any { return s.Valkey.SocketType }, "tcp"},
		{"MEMCACHE_MAX_IDLE_CONNS=100", func(s settings.Settings) any { return s.Memcached.MaxIdleConns }, "64"},
		{"MEMCACHE_MAX_IDLE_CONNS=0", func(s settings.Settings) any { return s.Memcached.MaxIdleConns }, "2"},
		{
			"EXPIRATION_JITTER_MAX_SECONDS=-1", func(s settings.Settings) any {
				return int(s.Decide.JitterMax.Seconds())
			}, "0",
		},
		{"STATS_FLUSH_INTERVAL=1h", func(s settings.Settings) any { return s.Statsd.FlushInterval }, "30m0s"},
		{"STATS_FLUSH_INTERVAL=1ms", func(s settings.Settings) any { return s.Statsd.FlushInterval }, "10ms"},
		{
			"XDS_CLIENT_BACKOFF_RANDOM_FACTOR=2", func(s settings.Settings) any {
				return s.RuleServer.Backoff.RandomFactor
			}, "1",
		},
		{
			"XDS_CLIENT_BACKOFF_INITIAL_INTERVAL=0s", func(s settings.Settings) any {
				return s.RuleServer.Backoff.Initial
			}, "100ms",
		},
		{
			"XDS_CLIENT_BACKOFF_MAX_INTERVAL=0s", func(s settings.Settings) any {
				return s.RuleServer.Backoff.Max
			}, "10s",
		},
		{
			"XDS_CLIENT_BACKOFF_MAX_INTERVAL=48h", func(s settings.Settings) any {
				return s.RuleServer.Backoff.Max
			}, "24h0m0s",
		},
		{
			"XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES=2147483647", func(s settings.Settings) any {
				return s.RuleServer.MaxMessage
			}, "1073741824",
		},
		{
			"CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL=0s", func(s settings.Settings) any {
				return s.RuleServer.RetryInterval
			}, "10ms",
		},
		{"CONFIG_GRPC_XDS_NODE_METADATA=abc", func(s settings.Settings) any { return s.RuleServer.Node.Metadata }, ""},
		{
			"CONFIG_GRPC_XDS_NODE_METADATA=abc,a=b", func(s settings.Settings) any {
				return s.RuleServer.Node.Metadata
			}, "a=b",
		},
		{"NEAR_LIMIT_RATIO=1.5", func(s settings.Settings) any { return s.Decide.NearLimitRatio }, "1"},
		{"NEAR_LIMIT_RATIO=-1", func(s settings.Settings) any { return s.Decide.NearLimitRatio }, "0"},
		{"LOCAL_CACHE_SIZE_IN_BYTES=-1", func(s settings.Settings) any { return s.Memory.OverLimitBytes }, "0"},
		{"REDIS_TIMEOUT=-1s", func(s settings.Settings) any { return s.Valkey.Timeout }, "1ms"},
		{"REDIS_PERSECOND_TIMEOUT=-1s", func(s settings.Settings) any { return s.PerSecond.Timeout }, "1ms"},
		{"REDIS_PIPELINE_WINDOW=-1ms", func(s settings.Settings) any { return s.Valkey.PipelineWindow }, "0s"},
		{
			"REDIS_PERSECOND_PIPELINE_WINDOW=-1ms", func(s settings.Settings) any {
				return s.PerSecond.PipelineWindow
			}, "0s",
		},
		{"TRACING_SAMPLING_RATE=2", func(s settings.Settings) any { return s.Tracing.SamplingRate }, "1"},
		{
			"XDS_CLIENT_BACKOFF_INITIAL_INTERVAL=-1s", func(s settings.Settings) any {
				return s.RuleServer.Backoff.Initial
			}, "100ms",
		},
		{
			"XDS_CLIENT_BACKOFF_MAX_INTERVAL=-1s", func(s settings.Settings) any {
				return s.RuleServer.Backoff.Max
			}, "10s",
		},
		{
			"XDS_CLIENT_BACKOFF_RANDOM_FACTOR=-1", func(s settings.Settings) any {
				return s.RuleServer.Backoff.RandomFactor
			}, "0",
		},
		{"XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES=-1", func(s settings.Settings) any { return s.RuleServer.MaxMessage }, "0"},
		{
			"CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL=-3s", func(s settings.Settings) any {
				return s.RuleServer.RetryInterval
			}, "10ms",
		},
		{"EXTRA_TAGS=a:b,c:d,a:e", func(s settings.Settings) any { return s.Statsd.ExtraTags }, "[c:d a:e]"},
		{
			"CACHE_KEY_PREFIX=my prefix", func(s settings.Settings) any { return s.Decide.Prefix },
			"my_prefix_47904a0a6292a8f1_",
		},
		{"CACHE_KEY_PREFIX=" + long, func(s settings.Settings) any { return len(s.Decide.Prefix) }, "68"},
	} {
		name, given, _ := strings.Cut(test.variable, "=")
		environ := []string{"REDIS_URL=store:6379", "CONFIG_TYPE=GRPC_XDS_SOTW", "TRACING_ENABLED=true", test.variable}
		if strings.HasPrefix(name, "MEMCACHE_") {
			environ = append(environ, "BACKEND_TYPE=memcache", "MEMCACHE_HOST_PORT=a:1")
		}
		s, err := settings.ReadRatelimit(environ)
		if err != nil {
			t.Errorf("%s: %v", test.variable, err)
			continue
		}
		if got := fmt.Sprint(test.value(s)); got != test.want {
			t.Errorf("%s: %q is used, want %q", test.variable, got, test.want)
		}
		if len(s.Warnings) != 1 ||
			!strings.HasPrefix(s.Warnings[0], fmt.Sprintf("%s: %q is out of range, ", name, given)) {
			t.Errorf("%s: warnings %q", test.variable, s.Warnings)
		}
	}
}

// TestNegativeValuesOfServe requires that values which only a service in place of the Envoy rate
// limit service accepts are mistakes of tollgate serve.
func TestNegativeValuesOfServe(t *testing.T) {
	for _, variable := range []string{
		"NEAR_LIMIT_RATIO=1.5", "TRACING_SAMPLING_RATE=2", "LOCAL_CACHE_SIZE_IN_BYTES=-1", "REDIS_TIMEOUT=-1s",
		"REDIS_PIPELINE_WINDOW=-1ms",
		"XDS_CLIENT_BACKOFF_INITIAL_INTERVAL=-1s", "XDS_CLIENT_BACKOFF_MAX_INTERVAL=-1s",
		"XDS_CLIENT_BACKOFF_RANDOM_FACTOR=-1", "EXTRA_TAGS=a:b,a:c",
	} {
		if _, err := settings.Read([]string{"REDIS_URL=store:6379", variable}); err == nil {
			t.Errorf("tollgate serve accepts %s", variable)
		}
	}
}

// TestPartsThatAreOff requires that the settings of a part that is off do not prevent the start, as
// in the Envoy rate limit service, and that they do when it is on.
func TestPartsThatAreOff(t *testing.T) {
	for variable, on := range map[string]string{
		"STATSD_PORT=0":                             "USE_STATSD=true",
		"STATSD_PROTOCOL=x":                         "USE_STATSD=true",
		"PROMETHEUS_ADDR=x":                         "USE_PROMETHEUS=true",
		"PROMETHEUS_PATH=x":                         "USE_PROMETHEUS=true",
		"USE_DOG_STATSD_MOGRIFIERS=x":               "USE_DOG_STATSD=true",
		"MEMCACHE_HOST_PORT=a":                      "BACKEND_TYPE=memcache",
		"MEMSTORE_MAX_IDLE_CONNS=0":                 "BACKEND_TYPE=memcache MEMCACHE_HOST_PORT=a:1",
		"CONFIG_GRPC_XDS_SERVER_URL=localhost":      "CONFIG_TYPE=GRPC_XDS_SOTW",
		"CONFIG_GRPC_XDS_CLIENT_TLS_CERT=/cert.pem": "CONFIG_TYPE=GRPC_XDS_SOTW CONFIG_GRPC_XDS_SERVER_USE_TLS=true",
		"TRACING_EXPORTER_PROTOCOL=x":               "TRACING_ENABLED=true",
	} {
		name, _, _ := strings.Cut(variable, "=")
		if _, err := settings.ReadRatelimit([]string{"USE_STATSD=false", variable}); err != nil {
			t.Errorf("%s of a part that is off: %v", variable, err)
		}
		if _, err := settings.ReadRatelimit(append(strings.Fields(on), variable)); err == nil ||
			!strings.Contains(err.Error(), name) {
			t.Errorf("%s with %s: %v", variable, on, err)
		}
	}
	// TLS to the management server alone may be off.
	if _, err := settings.ReadRatelimit([]string{
		"CONFIG_TYPE=GRPC_XDS_SOTW", "CONFIG_GRPC_XDS_CLIENT_TLS_CERT=/cert.pem",
	}); err != nil {
		t.Error(err)
	}
}

// TestValuesThatNeedNoWarning requires that these values are accepted without a warning.
func TestValuesThatNeedNoWarning(t *testing.T) {
	for _, variable := range []string{
		"LOG_FORMAT=JSON", "LOG_FORMAT=Text", "REDIS_TLS_CLIENT_CERT=/missing", "MEMCACHE_TLS_CLIENT_KEY=/missing",
		"REDIS_TYPE=SINGLE",
		"REDIS_POOL_SIZE=1024", "REDIS_TIMEOUT=1m", "STATS_FLUSH_INTERVAL=30m", "CACHE_KEY_PREFIX=p_",
		"REDIS_URL=redis://u:p@h:1?db=9",
		"CONFIG_GRPC_XDS_NODE_METADATA={\"a\": 1}",
	} {
		s, err := settings.ReadRatelimit([]string{variable})
		if err != nil || len(s.Warnings) != 0 {
			t.Errorf("%s: %v, warnings %q", variable, err, s.Warnings)
		}
		if strings.HasPrefix(variable, "LOG_FORMAT=J") && s.Service.LogFormat != "json" {
			t.Errorf("%s: the format is %q", variable, s.Service.LogFormat)
		}
	}
}

// TestClientCertificatesWithoutTLS requires a warning that client certificates are not checked.
func TestClientCertificatesWithoutTLS(t *testing.T) {
	for _, variable := range []string{"GRPC_CLIENT_TLS_CACERT=/ca", "GRPC_CLIENT_TLS_SAN=envoy"} {
		s, err := settings.ReadRatelimit([]string{variable})
		if err != nil || len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "GRPC_SERVER_USE_TLS is not true") {
			t.Errorf("%s: %v, warnings %q", variable, err, s.Warnings)
		}
	}
}

// TestListsOfStoreURLs requires that the lists that Envoy Gateway accepts are accepted here.
func TestListsOfStoreURLs(t *testing.T) {
	for kind, url := range map[string]string{
		"sentinel": "main,redis://user:pass@s1:26379,redis://user:pass@s2:26379",
		"CLUSTER":  "redis://user:pass@n1:6379,redis://user:pass@n2:6379",
	} {
		if _, err := settings.ReadRatelimit([]string{"REDIS_TYPE=" + kind, "REDIS_URL=" + url}); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
