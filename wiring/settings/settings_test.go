package settings_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

func TestDefaultSettings(t *testing.T) {
	s, err := settings.Read(nil)
	must.Succeed(t, err)
	if s.Service.Environment != settings.Embedded || s.REST.Port != 3000 || s.RateLimitAPI.GRPC.Port != 8081 ||
		s.RateLimitAPI.HTTP.Port != 8080 || s.Debug.Port != 6070 {
		t.Errorf("listeners are %+v %+v %+v", s.REST, s.RateLimitAPI, s.Debug)
	}
	if s.SignIn.AccessTokenTTL != 15*time.Minute || s.SignIn.Lockout.Threshold != 5 || s.Limits.Auth != 100 ||
		s.Limits.API != 1000 || s.Limits.Registry != 10000 || s.Limits.Window != 15*time.Minute {
		t.Errorf("limits are %+v %+v", s.SignIn, s.Limits)
	}
	if !strings.HasSuffix(s.Plugins.Dir, "plugins") {
		t.Errorf("the plugin folder is %q", s.Plugins.Dir)
	}
}

func TestServersSelectProduction(t *testing.T) {
	for _, variable := range []string{"DATABASE_URL=postgres://u:p@localhost:1/d", "KVSTORE_URL=localhost:1"} {
		s, err := settings.Read([]string{variable})
		must.Succeed(t, err)
		if s.Service.Environment != settings.Production {
			t.Errorf("%s: environment is %s", variable, s.Service.Environment)
		}
	}
}

// TestWrongValues requires that each wrong value is an error that names its variable and contains
// no secret.
func TestWrongValues(t *testing.T) {
	for _, variable := range []string{
		"PORT=70000", "PORT=x", "DEBUG_PORT=-1", "GRPC_PORT=99999", "RATELIMIT_HTTP_PORT=65536",
		"ACCESS_TOKEN_TTL=-15m", "ACCESS_TOKEN_TTL=soon", "SHUTDOWN_DRAIN=-1s", "SHUTDOWN_TIMEOUT=-1s",
		"KVSTORE_TIMEOUT=-1s",
		"NEAR_LIMIT_RATIO=1.1", "NEAR_LIMIT_RATIO=NaN", "LIMIT_LIMIT_HEADER=a b", "TRUSTED_PROXIES=10.0.0.0/33",
		"CLIENT_IPV6_PREFIX=0", "CLIENT_IPV6_PREFIX=129", "CLIENT_IPV6_PREFIX=-1", "CLIENT_IPV6_PREFIX=/64",
		"ENVIRONMENT=staging", "LOG_LEVEL=loud", "LOG_FORMAT=xml", "KVSTORE_PIPELINE_WINDOW=600ms",
		"REGISTRY_WRITES=maybe", "REGISTRY_WRITE_TRUST=SOME", "TOOLS_ON_CHANGE=maybe",
		"DEVICE_BINDING=maybe", "NOTICES=maybe", "MFA_POLICY=never", "MFA_PENDING_TTL=10ms",
		"OTP_ATTEMPTS=0", "LOCKOUT_THRESHOLD=0", "LOCKOUT_THRESHOLD=101", "RATE_LIMIT_WINDOW=500ms",
		"STEP_UP_WINDOW=1500ms",
		"RISK_DEVICE_UNKNOWN=30", "MFA_ISSUER=x", "GRPC_MAX_CONNECTIONS=1", "WRITE_TIMEOUT=1m", "RISK_POLICY=/none", "HIGH_RISK_COUNTRIES=de", "HIGH_RISK_COUNTRIES=12",
		"KVSTORE_FAILURE_MODE=maybe",
		"OPENDATA_BASE_URL=ftp://x", "SECRET_KEY=tiny", "DATABASE_URL=mysql://x", "KVSTORE_TYPE=ring",
		"BACKEND_TYPE=memory",
		"BACKEND_TYPE=Memstore", "MEMSTORE_HOST_PORT=localhost", "MEMSTORE_SRV=a:1", "MEMSTORE_SRV_REFRESH=-1s",
		"MEMSTORE_SRV_REFRESH=often",
		"MEMSTORE_MAX_IDLE_CONNS=0", "MEMSTORE_TLS=maybe",
		"KVSTORE_POOL_SIZE=2000", "KVSTORE_TIMEOUT=2m", "KVSTORE_SOCKET_TYPE=tcp4", "MIGRATE_ON_START=maybe",
		"MAX_CONNECTIONS=0",
		"READ_TIMEOUT=0s", "METRICSD_PORT=0", "STATS_FLUSH_INTERVAL=-10s", "STATS_FLUSH_INTERVAL=0s", "EXTRA_TAGS=a",
		"PROMETHEUS_ADDR=localhost", "PROMETHEUS_ADDR=:65536", "PROMETHEUS_PATH=metrics", "USE_METRICSD=maybe",
		"DISABLE_STATS=maybe", "STATS_MAX_SERIES=-1", "MAX_DESCRIPTORS=-1", "MAX_DESCRIPTORS=1000001",
		"CONFIG_TYPE=REST", "CONFIG_GRPC_XDS_SERVER_URL=nowhere", "CONFIG_GRPC_XDS_NODE_METADATA={plain",
		"CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS=plain", "CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL=-3s",
		"XDS_CLIENT_BACKOFF_RANDOM_FACTOR=-1", "XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES=-1",
	} {
		name, value, _ := strings.Cut(variable, "=")
		_, err := settings.Read([]string{variable})
		if err == nil {
			t.Errorf("%s is accepted", variable)
			continue
		}
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %q does not name the variable", variable, err)
		}
		if f, ok := fault.As(err); ok { // the command would print only its message
			t.Errorf("%s: %q does not name the variable", variable, f.Message)
		}
		if name == "SECRET_KEY" && strings.Contains(err.Error(), value) {
			t.Errorf("%q shows a secret", err)
		}
	}
}

func TestAllMalformedAtOnce(t *testing.T) {
	_, err := settings.Read([]string{"PORT=x", "READ_TIMEOUT=y"})
	if err == nil || !strings.Contains(err.Error(), "PORT") || !strings.Contains(err.Error(), "READ_TIMEOUT") {
		t.Errorf("error is %v", err)
	}
}

func TestEmbeddedRefusesServers(t *testing.T) {
	_, err := settings.Read([]string{"ENVIRONMENT=embedded", "DATABASE_URL=postgres://u:p@localhost/d"})
	if err == nil || !strings.Contains(err.Error(), "DATABASE_URL") {
		t.Errorf("error is %v", err)
	}
}

func TestPeerNames(t *testing.T) {
	s, err := settings.Read([]string{"REDIS_URL=peer:1", "REDIS_PERSECOND=true", "REDIS_PERSECOND_URL=second:1"})
	must.Succeed(t, err)
	if s.Valkey.URL != "peer:1" || !s.PerSecond.Enabled || s.PerSecond.URL != "second:1" || len(s.Warnings) != 0 {
		t.Errorf("store is %+v %+v, warnings %v", s.Valkey, s.PerSecond, s.Warnings)
	}
	s, err = settings.Read([]string{"REDIS_URL=peer:1", "KVSTORE_URL=ours:1"})
	must.Succeed(t, err)
	if s.Valkey.URL != "ours:1" || len(s.Warnings) != 1 {
		t.Errorf("store is %s, warnings %v", s.Valkey.URL, s.Warnings)
	}
}

// TestWrongValuesAreReportedByGivenName requires that an error also has the name by which a
// variable was given.
func TestWrongValuesAreReportedByGivenName(t *testing.T) {
	for given, want := range map[string]string{
		"REDIS_TYPE=ring":    "KVSTORE_TYPE was given as REDIS_TYPE",
		"REDIS_POOL_SIZE=x":  "KVSTORE_POOL_SIZE was given as REDIS_POOL_SIZE",
		"USE_STATSD=maybe":   "USE_METRICSD was given as USE_STATSD",
		"STATSD_PORT=100000": "METRICSD_PORT was given as STATSD_PORT",
		"PORT=100000":        "RATELIMIT_HTTP_PORT was given as PORT",
	} {
		_, err := settings.ReadRatelimit([]string{given, "REDIS_URL=peer:1"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", given, err, want)
		}
	}
	if _, err := settings.Read([]string{"KVSTORE_URL=ours:1", "KVSTORE_TYPE=ring"}); err == nil ||
		strings.Contains(err.Error(), "given as") {
		t.Errorf("%v, want no other name in it", err)
	}
}

// TestPeerNamesOfStatistics requires that all of them are read as ours, also those of mogrifiers.
func TestPeerNamesOfStatistics(t *testing.T) {
	s, err := settings.Read([]string{
		"USE_STATSD=false", "USE_DOG_STATSD=true", "STATSD_HOST=metrics", "STATSD_PORT=9125",
		"USE_DOG_STATSD_MOGRIFIERS=ONE,TWO",
		"DOG_STATSD_MOGRIFIER_ONE_PATTERN=^a(.*)$", "DOG_STATSD_MOGRIFIER_ONE_NAME=b",
		"DOG_STATSD_MOGRIFIER_ONE_TAGS=rest:$1,x:y",
		"TAGGED_METRICSD_MOGRIFIER_TWO_PATTERN=c", "TAGGED_METRICSD_MOGRIFIER_TWO_NAME=d",
		"USE_PROMETHEUS=true", "PROMETHEUS_ADDR=:9091", "PROMETHEUS_PATH=/m", "PROMETHEUS_MAPPER_YAML=/etc/mapper.yaml",
		"PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS=true", "GOSTATS_PRUNE_IDLE_SECONDS=60",
	})
	must.Succeed(t, err)
	c := s.Statsd
	if c.Daemon || !c.Tagged || c.Host != "metrics" || c.Port != 9125 || len(c.Mogrifiers) != 2 ||
		c.Mogrifiers[0].Pattern != "^a(.*)$" || c.Mogrifiers[0].Tags != "rest:$1,x:y" || c.Mogrifiers[1].Name != "d" {
		t.Errorf("statsd is %+v", c)
	}
	if p := s.Prometheus; !p.Enabled || p.Address != ":9091" || p.Path != "/m" || p.Mapper != "/etc/mapper.yaml" ||
		!p.Milliseconds {
		t.Errorf("Prometheus is %+v", p)
	}
	if len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "GOSTATS_PRUNE_IDLE_SECONDS") {
		t.Errorf("warnings are %q", s.Warnings)
	}
}

// TestIncompleteMogrifier requires that the error names the missing variable.
func TestIncompleteMogrifier(t *testing.T) {
	_, err := settings.Read([]string{"TAGGED_METRICSD_MOGRIFIERS=ONE", "TAGGED_METRICSD_MOGRIFIER_ONE_PATTERN=a"})
	if err == nil || !strings.HasPrefix(err.Error(), "TAGGED_METRICSD_MOGRIFIER_ONE_NAME: ") {
		t.Errorf("error is %v", err)
	}
}

// TestUnusedPeerNames requires a warning of each, and no warning of variables of the platform that
// have the same prefix.
func TestUnusedPeerNames(t *testing.T) {
	unused := []string{
		"GOSTATS_FLUSH_INTERVAL_SECONDS=5", "REDIS_CLUSTER_PIPELINE_PARALLELISM=0",
		"REDIS_PERSECOND_POOL_ON_EMPTY_BEHAVIOR=CREATE",
		"REDIS_POOL_ON_EMPTY_BEHAVIOR=WAIT", "REDIS_USE_EXPLICIT_PIPELINE=true",
	}
	s, err := settings.ReadRatelimit(append([]string{
		"LOG_LEVEL=WARN", "REDIS_TYPE=SINGLE", "REDIS_TIMEOUT=10s", "REDIS_PERSECOND_TIMEOUT=2s",
		"REDIS_PORT=tcp://10.0.0.1:6379", "REDIS_SERVICE_HOST=10.0.0.1",
	}, unused...))
	must.Succeed(t, err)
	if s.Valkey.Type != "single" || s.Valkey.Timeout != 10*time.Second || s.PerSecond.Timeout != 2*time.Second {
		t.Errorf("store is %+v, %+v", s.Valkey, s.PerSecond)
	}
	for i, variable := range unused {
		name, _, _ := strings.Cut(variable, "=")
		if len(s.Warnings) != len(unused) || !strings.HasPrefix(s.Warnings[i], name+" is not used: ") {
			t.Fatalf("warnings are %q, want one of each of %q", s.Warnings, unused)
		}
	}
}

// TestProtocolOfMetricsDaemon requires UDP by default, and TCP if variables of the Envoy rate limit
// service configure the daemon.
func TestProtocolOfMetricsDaemon(t *testing.T) {
	for environ, want := range map[string]struct {
		tcp      bool
		warnings int
	}{
		"":                                        {false, 0},
		"METRICSD_HOST=a":                         {false, 0},
		"STATSD_HOST=a":                           {true, 0},
		"STATSD_PORT=9":                           {true, 0},
		"USE_STATSD=true":                         {true, 0},
		"STATSD_PROTOCOL=tcp":                     {true, 0},
		"METRICSD_PROTOCOL=tcp":                   {true, 0},
		"STATSD_HOST=a STATSD_PROTOCOL=udp":       {false, 0},
		"STATSD_HOST=a METRICSD_PORT=9":           {false, 0},
		"STATSD_HOST=a METRICSD_HOST=b":           {false, 1}, // ours is used
		"STATSD_HOST=a USE_DOG_STATSD=true":       {false, 0},
		"STATSD_PROTOCOL=tcp USE_DOG_STATSD=true": {false, 1},
		"STATSD_PROTOCOL=tcp USE_DOG_STATSD=1":    {false, 1},
	} {
		s, err := settings.ReadRatelimit(strings.Fields(environ))
		if err != nil || s.Statsd.UsesTCP() != want.tcp || len(s.Warnings) != want.warnings {
			t.Errorf("%s: TCP is %v, %v, warnings %q", environ, s.Statsd.UsesTCP(), err, s.Warnings)
		}
	}
	if _, err := settings.Read([]string{"STATSD_PROTOCOL=unix"}); err == nil ||
		!strings.Contains(err.Error(), "METRICSD_PROTOCOL was given as STATSD_PROTOCOL") {
		t.Errorf("an unknown protocol: %v", err)
	}
}

func TestSecretFromFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	secret := strings.Repeat("k", 40)
	must.Succeed(t, os.WriteFile(path, []byte(secret+"\n"), 0o600))
	s, err := settings.Read([]string{"SECRET_KEY_FILE=" + path})
	if err != nil || string(s.Service.SecretKey) != secret {
		t.Errorf("secret is %q, error %v", s.Service.SecretKey, err)
	}
	for _, environ := range [][]string{
		{"SECRET_KEY_FILE=" + path, "SECRET_KEY=" + secret},
		{"SECRET_KEY_FILE=" + path + ".none"},
	} {
		if _, err := settings.Read(environ); err == nil || !strings.Contains(err.Error(), "SECRET_KEY_FILE") {
			t.Errorf("%v: error is %v", environ[0], err)
		}
	}
}

func TestRatelimitAlone(t *testing.T) {
	s, err := settings.ReadRatelimit([]string{"HOST=127.0.0.1", "PORT=9999"})
	must.Succeed(t, err)
	if s.RateLimitAPI.HTTP.Host != "127.0.0.1" || s.RateLimitAPI.HTTP.Port != 9999 {
		t.Errorf("HTTP listener is %+v", s.RateLimitAPI.HTTP)
	}
}

// TestMaxDescriptors requires a limit by default, except for a service that takes the place of the
// Envoy rate limit service, which has none.
func TestMaxDescriptors(t *testing.T) {
	for _, test := range []struct {
		read    func([]string) (settings.Settings, error)
		environ []string
		want    int
	}{
		{settings.Read, nil, 1000},
		{settings.Read, []string{"MAX_DESCRIPTORS=0"}, 0},
		{settings.ReadRatelimit, nil, 0},
		{settings.ReadRatelimit, []string{"MAX_DESCRIPTORS=50"}, 50},
	} {
		s, err := test.read(test.environ)
		if got := s.Decide.MaxDescriptors; err != nil || got != test.want {
			t.Errorf("%q: %d, %v; want %d", test.environ, got, err, test.want)
		}
	}
}

func TestDescribe(t *testing.T) {
	vars, err := settings.Describe([]string{"SECRET_KEY=" + strings.Repeat("k", 40), "PORT=3001"})
	must.Succeed(t, err)
	seen := map[string]settings.Variable{}
	for _, v := range vars {
		if v.Name == "-" || v.Meaning == "" {
			t.Errorf("%q has the meaning %q", v.Name, v.Meaning)
		}
		if _, twice := seen[v.Name]; twice {
			t.Errorf("%s is listed twice", v.Name)
		}
		seen[v.Name] = v
	}
	if v := seen["SECRET_KEY"].Value; strings.Contains(v, "k") {
		t.Errorf("a secret is shown as %q", v)
	}
	if v := seen["PORT"]; v.Default != "3000" || v.Value != "3001" {
		t.Errorf("PORT is %+v", v)
	}
}
