package ratelimit

import (
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	configpb "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/testcert"
)

// foreignVariables do not belong to the rate limit service. Deployments set them for other
// programs, or for all containers.
var foreignVariables = []string{
	"ENVIRONMENT=staging", "SECRET_KEY=short", "DATABASE_URL=mysql://db/app", "TRUSTED_PROXIES=*",
	"SMTP_PORT=tcp://10.0.0.1:25",
	"TLS_CERT=/missing/cert.pem", "MAX_CONNECTIONS=many", "SECRET_KEY_FILE=/missing/key",
	"GEOIP_CITY_DB=/missing/city.mmdb",
}

// TestRateLimitBesideForeignVariables starts the rate limit service alone with variables of other
// programs, and checks rules with the same variables.
func TestRateLimitBesideForeignVariables(t *testing.T) {
	t.Parallel()
	e := newRulesEnvironment(t, newLimitRules(3))
	environ := append(e.Environ, foreignVariables...)
	for _, args := range [][]string{{"ratelimit"}, {"serve", "--only", "ratelimit"}} {
		process, err := instance.Start(filepath.Join(fixture.BinDir, "tollgate"), environ, args...)
		if err != nil {
			t.Errorf("%s: %v", strings.Join(args, " "), err)
			continue
		}
		s := &fixture.Service{
			T: t, Process: process, GRPC: process.GRPC, RateLimitAPI: "http://" + process.RateLimitHTTP,
			Debug: "http://" + process.Debug,
		}
		apiclient.OtherListeners.Store(process.RateLimitHTTP, nil)
		t.Cleanup(s.Stop)
		s.AwaitRules()
		fixture.WantOverallCode(t, s.NewRateLimitClient(t), fixture.NewRateLimitRequest("d", "k", "x"),
			ratelimit.RateLimitResponse_OK)
	}
	e.Environ = environ
	if shown := e.RunCommand(t, "", "ratelimit", "check", e.RulesDir); !strings.Contains(shown, "d") {
		t.Errorf("check shows\n%s", shown)
	}
}

// TestAsEnvoyGatewayRunsIt starts the service with the program name and the environment of Envoy
// Gateway. The management server accepts TLS 1.3 only and requires client certificates.
func TestAsEnvoyGatewayRunsIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	authority := testcert.NewAuthority(t)
	manager, own := authority.Issue(t, "localhost"), authority.Issue(t, "envoy-ratelimit")
	address := freeAddress(t)
	m := newManagementServer(t, address, grpc.Creds(credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{manager.Pair()}, ClientCAs: authority.Pool(),
		ClientAuth: tls.RequireAndVerifyClientCert,
	})))
	_, port, err := net.SplitHostPort(address)
	must.Succeed(t, err)
	program := filepath.Join(dir, "ratelimit")
	must.Succeed(t, os.Symlink(filepath.Join(fixture.BinDir, "tollgate"), program))
	ca, cert, key := authority.CertFile, own.CertFile, own.KeyFile
	environ := []string{
		"RUNTIME_ROOT=/data", "RUNTIME_SUBDIRECTORY=ratelimit", "RUNTIME_IGNOREDOTFILES=true",
		"RUNTIME_WATCH_ROOT=false",
		"LOG_LEVEL=info", "LOG_FORMAT=JSON", "USE_STATSD=false", "CONFIG_TYPE=GRPC_XDS_SOTW",
		"CONFIG_GRPC_XDS_SERVER_URL=localhost:" + port, "CONFIG_GRPC_XDS_NODE_ID=envoy-ratelimit",
		"CONFIG_GRPC_XDS_SERVER_USE_TLS=true", "CONFIG_GRPC_XDS_CLIENT_TLS_CERT=" + cert,
		"CONFIG_GRPC_XDS_CLIENT_TLS_KEY=" + key,
		"CONFIG_GRPC_XDS_SERVER_TLS_CACERT=" + ca, "FORCE_START_WITHOUT_INITIAL_CONFIG=true",
		"GRPC_SERVER_USE_TLS=true", "GRPC_SERVER_TLS_CERT=" + cert, "GRPC_SERVER_TLS_KEY=" + key,
		"GRPC_SERVER_TLS_CA_CERT=" + ca,
		"USE_PROMETHEUS=true", "PROMETHEUS_ADDR=127.0.0.1:0", "PROMETHEUS_PATH=/metrics", "ENVIRONMENT=staging",
		"HOST=127.0.0.1", "PORT=0", "GRPC_HOST=127.0.0.1", "GRPC_PORT=0", "DEBUG_HOST=127.0.0.1", "DEBUG_PORT=0",
		"SHUTDOWN_DRAIN=0s",
	}
	if store := os.Getenv("TEST_VALKEY_URL"); store != "" {
		environ = append(environ, "REDIS_SOCKET_TYPE=tcp", "REDIS_URL="+store, "CACHE_KEY_PREFIX=eg_"+port+"_")
	}
	process, err := instance.Start(program, environ)
	must.Succeed(t, err)
	s := &fixture.Service{
		T: t, Process: process, GRPC: process.GRPC, RateLimitAPI: "http://" + process.RateLimitHTTP,
		Debug: "http://" + process.Debug,
	}
	apiclient.OtherListeners.Store(process.RateLimitHTTP, nil)
	t.Cleanup(s.Stop)
	apiclient.Call(t, "GET", s.RateLimitAPI+"/healthcheck", nil).WantStatus(t, http.StatusOK)

	m.offerTo(t, "envoy-ratelimit", "1", newShopRules(2, configpb.RateLimitUnit_HOUR))
	m.awaitVersion(t, "1")
	secure := credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: authority.Pool(), ServerName: "envoy-ratelimit",
	})
	c := ratelimit.NewRateLimitServiceClient(dialService(t, s.GRPC, secure))
	for _, want := range []ratelimit.RateLimitResponse_Code{
		ratelimit.RateLimitResponse_OK, ratelimit.RateLimitResponse_OK, ratelimit.RateLimitResponse_OVER_LIMIT,
	} {
		fixture.WantOverallCode(t, c, fixture.NewRateLimitRequest("shop", "tenant", "a"), want)
	}
}

// TestRuleDirectoryOfOtherNames checks that the log and the command that checks rules list the
// files that the service ignores because of their names.
func TestRuleDirectoryOfOtherNames(t *testing.T) {
	t.Parallel()
	e := newRulesEnvironment(t, newLimitRules(3))
	other := filepath.Join(e.RulesDir, "more.conf")
	fixture.WriteFile(t, other, newLimitRules(4))
	e.Start(t).AwaitLog(other) // the service logs it after the rules are in force
	check := func() (int, string) {
		stdout, stderr, code := e.TryCommand(t, "", "ratelimit", "check", e.RulesDir)
		return code, stdout + stderr
	}
	if code, out := check(); code != 0 || !strings.Contains(out, "warning: ") || !strings.Contains(out, other) {
		t.Errorf("check ended with %d: %s", code, out)
	}
	must.Succeed(t, os.Remove(filepath.Join(e.RulesDir, "rules.yaml")))
	if code, out := check(); code != 1 || !strings.Contains(out, other) {
		t.Errorf("check of a directory without a rule file ended with %d: %s", code, out)
	}
}
