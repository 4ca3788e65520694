package settings

import (
	"fmt"
	"time"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
)

// The kinds of rule sources (contract L-37).
const (
	ConfigFromFiles  = "FILE"
	ConfigFromServer = "GRPC_XDS_SOTW"
)

// mostDescriptors is the greatest value of MAX_DESCRIPTORS.
const mostDescriptors = 1_000_000

// RateLimit holds the settings of rate limit decisions.
type RateLimit struct {
	ConfigType     string  `readBy:"ratelimit" env:"CONFIG_TYPE" envDefault:"FILE" desc:"source of the rules: FILE (the directory of RUNTIME_ROOT) or GRPC_XDS_SOTW (the management server of CONFIG_GRPC_XDS_SERVER_URL)"`
	Prefix         string  `env:"CACHE_KEY_PREFIX" desc:"prefix of every key in the counter store"`
	Backend        string  `env:"BACKEND_TYPE" envDefault:"kvstore" desc:"counter store: kvstore (KVSTORE_URL; in the process if it is not set) or memstore (memcached)"`
	NearLimitRatio float64 `env:"NEAR_LIMIT_RATIO" envDefault:"0.8" desc:"fraction of a limit, 0 to 1, above which hits count as near the limit"`
	Shadow         bool    `env:"SHADOW_MODE" envDefault:"false" desc:"decide as usual, but return OK"`
	QuotaMode      bool    `env:"QUOTA_MODE" envDefault:"false" desc:"put every descriptor into quota mode: a request fails only when all its quota descriptors are over their limit; a descriptor without a rule is within its quota"`
	StopWhenOver   bool    `env:"STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT" envDefault:"false" desc:"if a descriptor is over its limit, do not count the other descriptors of the request"`
	Leases         string  `readBy:"ratelimit" env:"COUNTER_LEASES" envDefault:"off" desc:"what a rule means that does not say lease: off, or auto (an instance holds a share of the limit of a hot key, and decides its requests without the counter store); for counters on Valkey and memcached"`
	JitterSeconds  int     `env:"EXPIRATION_JITTER_MAX_SECONDS" envDefault:"300" desc:"maximum number of seconds that a counter is kept after the end of its window"`
	FailureMode    string  `env:"KVSTORE_FAILURE_MODE" envDefault:"error" desc:"answer when the counter store fails: error, open, closed, or local (count in the process); with open and local the limits of the API (AUTH_RATE_LIMIT and the others) are counted in the process, with error and closed sign-in returns 503"`
	MaxSeries      int     `env:"STATS_MAX_SERIES" envDefault:"10000" desc:"maximum number of statistics series by value"`
	MaxDescriptors int     `readBy:"ratelimit" env:"MAX_DESCRIPTORS" envDefault:"1000" desc:"maximum number of descriptors of a rate limit request, 0 to 1000000; 0 = no limit, which is the default of 'tollgate ratelimit', because the Envoy rate limit service has none"`
	DisableStats   bool    `env:"DISABLE_STATS" envDefault:"false" desc:"keep no statistics of rules, and send no statistics"`
	MergeDomains   bool    `env:"MERGE_DOMAIN_CONFIG" envDefault:"false" desc:"allow several files with the same domain; their rules are merged"`

	// Alone means that the rate limit service runs alone, as a replacement for the Envoy rate limit
	// service (tollgate ratelimit).
	Alone bool `env:"-"`
}

// Validate returns an error that begins with the name of the first setting that is out of range.
func (r RateLimit) Validate() error {
	switch {
	case r.ConfigType != ConfigFromFiles && r.ConfigType != ConfigFromServer:
		return fmt.Errorf("CONFIG_TYPE: %q is neither %s nor %s", r.ConfigType, ConfigFromFiles, ConfigFromServer)
	case !ratelimit.ValidPrefix(r.Prefix):
		return fmt.Errorf("CACHE_KEY_PREFIX: more than %d characters, or not printable ASCII without spaces", ratelimit.MaxPrefix)
	case !(r.NearLimitRatio >= 0 && r.NearLimitRatio <= 1):
		return fmt.Errorf("NEAR_LIMIT_RATIO: %v is not in the range 0 to 1", r.NearLimitRatio)
	case r.JitterSeconds < 0:
		return fmt.Errorf("EXPIRATION_JITTER_MAX_SECONDS: %d is negative", r.JitterSeconds)
	case r.Leases != "auto" && r.Leases != "off":
		return fmt.Errorf("COUNTER_LEASES: %q is neither auto nor off", r.Leases)
	case r.MaxSeries < 0:
		return fmt.Errorf("STATS_MAX_SERIES: %d is negative", r.MaxSeries)
	case r.MaxDescriptors < 0 || r.MaxDescriptors > mostDescriptors:
		return fmt.Errorf("MAX_DESCRIPTORS: %d is not in the range 0 to %d", r.MaxDescriptors, mostDescriptors)
	}
	if err := checkBackend(r.Backend); err != nil {
		return err
	}
	if _, err := decide.ParseFailureMode(r.FailureMode); err != nil {
		return fmt.Errorf("KVSTORE_FAILURE_MODE: %q %w", r.FailureMode, err)
	}
	return nil
}

// CoversStore reports whether the API works while the counter store is unavailable: its own limits
// are then counted in the process.
func (r RateLimit) CoversStore() bool {
	mode := r.Decide().FailureMode
	return mode == decide.FailLocal || mode == decide.FailOpen
}

// Decide returns the configuration of decisions.
func (r RateLimit) Decide() decide.Config {
	mode, _ := decide.ParseFailureMode(r.FailureMode) // Validate accepts no other
	if r.DisableStats {
		r.MaxSeries = 0
	}
	return decide.Config{
		Prefix: r.Prefix, NearLimitRatio: r.NearLimitRatio, Shadow: r.Shadow, StopWhenOver: r.StopWhenOver, Quota: r.QuotaMode,
		JitterMax: time.Duration(r.JitterSeconds) * time.Second, FailureMode: mode, MaxSeries: r.MaxSeries,
		Leases: r.Leases == "auto", MaxDescriptors: r.MaxDescriptors,
	}
}
