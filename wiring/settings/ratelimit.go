package settings

import (
	"fmt"
	"time"

	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
)

// The kinds of rule sources (contract L-37).
const (
	ConfigFromFiles  = "FILE"
	ConfigFromServer = "GRPC_XDS_SOTW"
)

// RateLimit says where the rules and the counters of rate limits are.
type RateLimit struct {
	ConfigType string `readBy:"ratelimit" env:"CONFIG_TYPE" envDefault:"FILE" desc:"source of the rules: FILE (the directory of RUNTIME_ROOT) or GRPC_XDS_SOTW (the management server of CONFIG_GRPC_XDS_SERVER_URL)"`
	Backend    string `env:"BACKEND_TYPE" envDefault:"kvstore" desc:"counter store: kvstore (KVSTORE_URL; in the process if it is not set) or memstore (memcached)"`
}

// Validate returns an error that begins with the name of the first setting that is out of range.
func (r RateLimit) Validate() error {
	if r.ConfigType != ConfigFromFiles && r.ConfigType != ConfigFromServer {
		return fmt.Errorf("CONFIG_TYPE: %q is neither %s nor %s", r.ConfigType, ConfigFromFiles, ConfigFromServer)
	}
	return checkBackend(r.Backend)
}

// The names of settings that are in errors of calls and rules.
const (
	maxDescriptors = "MAX_DESCRIPTORS"
	mergeDomains   = "MERGE_DOMAIN_CONFIG"
)

// rateLimitBindings returns the settings of rate limit decisions, rules and statistics.
func (s *Settings) rateLimitBindings() []binding {
	d := &s.Decide
	return []binding{
		s.bind(&d.Prefix, "CACHE_KEY_PREFIX", "", "prefix of every key in the counter store"),
		s.bind(&d.NearLimitRatio, "NEAR_LIMIT_RATIO", "0.8",
			"fraction of a limit, 0 to 1, above which hits count as near the limit"),
		s.bind(&d.Shadow, "SHADOW_MODE", "false", "decide as usual, but return OK"),
		s.bind(&d.Quota, "QUOTA_MODE", "false",
			"put every descriptor into quota mode: a request fails only when all its quota descriptors are over "+
				"their limit; a descriptor without a rule is within its quota"),
		s.bind(&d.StopWhenOver, "STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT", "false",
			"if a descriptor is over its limit, do not count the other descriptors of the request"),
		s.bind(&d.Leases, "COUNTER_LEASES", "off",
			"what a rule means that does not say lease: off, or auto (an instance holds a share of the limit of "+
				"a hot key, and decides its requests without the counter store); for counters on Valkey and "+
				"memcached").onlyIn(ratelimitPart).as("text", oneOf(&d.Leases, "auto", "off")),
		s.bind(&d.JitterMax, "EXPIRATION_JITTER_MAX_SECONDS", "300",
			"maximum number of seconds that a counter is kept after the end of its window").
			as("a whole number", seconds(&d.JitterMax)),
		s.bind(&d.FailureMode, "KVSTORE_FAILURE_MODE", "error",
			"answer when the counter store fails: error, open, closed, or local (count in the process); with "+
				"open and local the limits of the API (AUTH_RATE_LIMIT and the others) are counted in the process, "+
				"with error and closed sign-in returns 503").
			as("text", word(&d.FailureMode, decide.ParseFailureMode, "error, open, closed or local")),
		s.bind(&d.MaxSeries, "STATS_MAX_SERIES", "10000", "maximum number of statistics series by value"),
		s.bind(&d.MaxDescriptors, maxDescriptors, "1000",
			"maximum number of descriptors of a rate limit request, 0 to 1000000; 0 = no limit, which is the "+
				"default of 'tollgate ratelimit', because the Envoy rate limit service has none").onlyIn(ratelimitPart),
		s.bind(&s.Statistics.WithoutRules, "DISABLE_STATS", "false",
			"keep no statistics of rules, and send no statistics"),
		s.bind(&s.Rules.MergeDomains, mergeDomains, "false",
			"allow several files with the same domain; their rules are merged"),
	}
}

// completeRateLimit sets what the parts of the rate limit service take from settings of others.
func (s *Settings) completeRateLimit() {
	if s.Statistics.WithoutRules && s.Decide.MaxSeries > 0 {
		s.Decide.MaxSeries = 0
	}
	s.Rules.QuotaMode = s.Decide.Quota
	s.Decide.MaxDescriptorsName, s.Rules.MergeName = maxDescriptors, mergeDomains
}

// seconds returns a function that sets a field to a whole number of seconds.
func seconds(field *time.Duration) func(string) error {
	return func(text string) error {
		var n int
		err := parseField(&n, text, "a whole number")
		*field = time.Duration(n) * time.Second
		return err
	}
}
