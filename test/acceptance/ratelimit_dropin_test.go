package acceptance

import (
	"path/filepath"
	"strings"
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/tollgate-dev/tollgate/test/instance"
)

// foreignVariables mean nothing to the rate limit service. Deployments set them for
// other programs, or for all containers alike.
var foreignVariables = []string{
	"ENVIRONMENT=staging", "SECRET_KEY=short", "DATABASE_URL=mysql://db/app", "TRUSTED_PROXIES=*", "SMTP_PORT=tcp://10.0.0.1:25",
	"TLS_CERT=/missing/cert.pem", "MAX_CONNECTIONS=many", "SECRET_KEY_FILE=/missing/key", "GEOIP_CITY_DB=/missing/city.mmdb",
}

// TestRateLimitBesideForeignVariables starts the rate limit service alone with
// variables that are meant for others, and checks rules with them.
func TestRateLimitBesideForeignVariables(t *testing.T) {
	e := only(t, limitOf(3))
	environ := append(e.environ, foreignVariables...)
	for _, args := range [][]string{{"ratelimit"}, {"serve", "--only", "ratelimit"}} {
		process, err := instance.Start(filepath.Join(built, "tollgate"), environ, args...)
		if err != nil {
			t.Errorf("%s: %v", strings.Join(args, " "), err)
			continue
		}
		s := &service{t: t, process: process, grpc: process.GRPC, limitAPI: "http://" + process.RateLimitHTTP, debug: "http://" + process.Debug}
		undescribed.Store(process.RateLimitHTTP, nil)
		t.Cleanup(s.stop)
		s.awaitRules()
		wantOverall(t, s.rateLimiter(t), request("d", "k", "x"), ratelimit.RateLimitResponse_OK)
	}
	e.environ = environ
	if shown := e.tollgate(t, "", "ratelimit", "check", e.rules); !strings.Contains(shown, "d") {
		t.Errorf("check shows\n%s", shown)
	}
}
