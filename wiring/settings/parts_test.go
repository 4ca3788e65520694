package settings_test

import (
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// otherVariables are variables that the rate limit service does not read. Containers get them from
// their platform, or from a file that several containers share.
func otherVariables() []string {
	return []string{
		"ENVIRONMENT=staging", "SECRET_KEY=short", "DATABASE_URL=mysql://db", "TRUSTED_PROXIES=*",
		"SMTP_PORT=tcp://10.0.0.1:25",
		"TLS_CERT=/missing/cert.pem", "MAX_CONNECTIONS=none", "MIGRATE_ON_START=maybe", "ACCESS_TOKEN_TTL=soon",
		"PLUGIN_CALL_TIMEOUT=x",
		"OTP_EMAIL_PLUGIN=otp-email", "PACKAGE_REGISTRIES=/missing", "REGISTRY_WRITES=maybe", "AUTH_RATE_LIMIT=-1",
		"OTP_SMS_SETTINGS_FILE=/missing", "SECRET_KEY_FILE=/missing", "AUDIT_RETENTION=-1s", "OPENDATA_BASE_URL=ftp://x",
	}
}

// TestRateLimitServiceReadsItsOwnVariables requires that wrong variables of other parts are no
// error for the rate limit service.
func TestRateLimitServiceReadsItsOwnVariables(t *testing.T) {
	own := []string{"REDIS_URL=store:6379", "HOST=127.0.0.1", "PORT=9999", "GRPC_PORT=9998", "MERGE_DOMAIN_CONFIG=true"}
	for name, read := range map[string]func([]string) (settings.Settings, error){
		"tollgate ratelimit": settings.ReadRatelimit,
		"tollgate serve --only ratelimit": func(environ []string) (settings.Settings, error) {
			return settings.ReadParts(environ, []string{"ratelimit"})
		},
		"tollgate ratelimit check":    settings.ReadRules,
		"tollgate ratelimit simulate": settings.ReadSimulation,
	} {
		for _, variable := range append(otherVariables(), "all") {
			environ := append([]string{variable}, own...)
			if variable == "all" {
				environ = append(otherVariables(), own...)
			}
			s, err := read(environ)
			if err != nil {
				t.Errorf("%s with %s: %v", name, variable, err)
				continue
			}
			if !s.Rules.MergeDomains || len(s.Warnings) != 0 {
				t.Errorf("%s with %s: %+v, warnings %q", name, variable, s.RateLimit, s.Warnings)
			}
			if name == "tollgate ratelimit" &&
				(s.Valkey.URL != "store:6379" || s.RateLimitAPI.HTTP.Port != 9999 || s.RateLimitAPI.GRPC.Port != 9998) {
				t.Errorf("%s with %s: %+v %+v", name, variable, s.Valkey, s.RateLimitAPI)
			}
		}
		if _, err := read([]string{"MERGE_DOMAIN_CONFIG=maybe"}); err == nil ||
			!strings.Contains(err.Error(), "MERGE_DOMAIN_CONFIG") {
			t.Errorf("%s with a malformed variable of its own: %v", name, err)
		}
	}
}

// TestHashOfRecordedValuesReadsTheSecret requires that the rate limit service alone reads
// SECRET_KEY if recorded values are hashed, and only then.
func TestHashOfRecordedValuesReadsTheSecret(t *testing.T) {
	long := strings.Repeat("k", 32)
	for _, test := range []struct{ hash, secret, read, err string }{
		{"true", long, long, ""}, {"1", long, long, ""}, {"false", long, "", ""}, {"", "short", "", ""}, {
			"true", "", "", "",
		},
		{"true", "short", "", "SECRET_KEY: shorter than"}, {"maybe", "short", "", "RATELIMIT_RECORD_HASH"},
	} {
		environ := []string{"RATELIMIT_RECORD_HASH=" + test.hash, "SECRET_KEY=" + test.secret}
		s, err := settings.ReadRatelimit(environ)
		if test.err == "" && (err != nil || string(s.Service.SecretKey) != test.read) ||
			test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
			t.Errorf("%q: got %q, %v", environ, s.Service.SecretKey, err)
		}
		if s, err := settings.ReadRules(environ); err != nil || s.Service.SecretKey != "" {
			t.Errorf("%q: the check of rules reads the secret: %v", environ, err)
		}
	}
	if _, err := settings.ReadParts([]string{
		"RATELIMIT_RECORD_HASH=true", "RATELIMIT_RECORD_SAMPLE=0", "SECRET_KEY=" + long,
	}, []string{"methods"}); err != nil {
		t.Errorf("another part reads the settings of recordings: %v", err)
	}
}

// TestRuleCheckReadsRuleVariablesOnly requires that the check of rule files ignores the variables
// of listeners and stores.
func TestRuleCheckReadsRuleVariablesOnly(t *testing.T) {
	if _, err := settings.ReadRules([]string{
		"GRPC_PORT=99999", "BACKEND_TYPE=memcache", "REDIS_TYPE=ring", "LOG_LEVEL=loud",
	}); err != nil {
		t.Error(err)
	}
}

// TestPartsReadTheirOwnVariables requires that each part reads its own settings and those that it
// shares with other parts, and no others.
func TestPartsReadTheirOwnVariables(t *testing.T) {
	for variable, readers := range map[string]string{
		"GRPC_PORT=99999":          "ratelimit",
		"CONFIG_TYPE=REST":         "ratelimit",
		"STATS_FLUSH_INTERVAL=0s":  "ratelimit",
		"OPENDATA_BASE_URL=ftp:":   "methods",
		"REGISTRY_WRITES=maybe":    "registry",
		"OTP_ATTEMPTS=0":           "auth",
		"PLUGIN_CALL_TIMEOUT=x":    "registry auth",
		"ENVIRONMENT=staging":      "registry auth methods",
		"DATABASE_URL=mysql://x":   "registry auth methods",
		"AUDIT_RETENTION=-1s":      "registry auth methods",
		"KVSTORE_TYPE=ring":        "registry auth methods ratelimit",
		"DEBUG_PORT=99999":         "registry auth methods ratelimit",
		"TRACING_SAMPLING_RATE=-1": "registry auth methods ratelimit",
	} {
		for _, part := range []string{"registry", "auth", "methods", "ratelimit"} {
			_, err := settings.ReadParts([]string{variable}, []string{part})
			if reads := strings.Contains(readers, part); reads != (err != nil) {
				t.Errorf("%s with the part %s: %v, want it read: %t", variable, part, err, reads)
			}
		}
		if _, err := settings.ReadParts([]string{variable}, []string{
			"ratelimit", "methods", "auth", "registry",
		}); err == nil {
			t.Errorf("%s is accepted with all parts", variable)
		}
	}
}
