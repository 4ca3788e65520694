// Package settings reads the environment variables of the process once and returns the settings of
// each part of the service. It has no state, and does not use the settings itself.
package settings

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/adapters/argon"
	"github.com/tollgate-dev/tollgate/adapters/clientdocs"
	"github.com/tollgate-dev/tollgate/adapters/debugapi"
	"github.com/tollgate-dev/tollgate/adapters/decideapi"
	"github.com/tollgate-dev/tollgate/adapters/iplists"
	"github.com/tollgate-dev/tollgate/adapters/jwt"
	"github.com/tollgate-dev/tollgate/adapters/keysources"
	"github.com/tollgate-dev/tollgate/adapters/maxmind"
	"github.com/tollgate-dev/tollgate/adapters/memcached"
	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/adapters/oidc"
	"github.com/tollgate-dev/tollgate/adapters/otlp"
	"github.com/tollgate-dev/tollgate/adapters/pluginhost"
	"github.com/tollgate-dev/tollgate/adapters/ratelimitapi"
	"github.com/tollgate-dev/tollgate/adapters/relational"
	"github.com/tollgate-dev/tollgate/adapters/relational/registryrecords"
	"github.com/tollgate-dev/tollgate/adapters/requestbody"
	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/methodsapi"
	"github.com/tollgate-dev/tollgate/adapters/rest/readcache"
	"github.com/tollgate-dev/tollgate/adapters/rest/registryapi"
	"github.com/tollgate-dev/tollgate/adapters/rest/responsebody"
	"github.com/tollgate-dev/tollgate/adapters/runtimedir"
	"github.com/tollgate-dev/tollgate/adapters/statsd"
	"github.com/tollgate-dev/tollgate/adapters/toollist"
	"github.com/tollgate-dev/tollgate/adapters/traffic"
	"github.com/tollgate-dev/tollgate/adapters/valkey"
	"github.com/tollgate-dev/tollgate/adapters/webhook"
	"github.com/tollgate-dev/tollgate/adapters/xds"
	"github.com/tollgate-dev/tollgate/core/access/deciding"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/authorizing"
	"github.com/tollgate-dev/tollgate/core/auth/cookies"
	"github.com/tollgate-dev/tollgate/core/auth/credentials"
	"github.com/tollgate-dev/tollgate/core/auth/federating"
	"github.com/tollgate-dev/tollgate/core/auth/passkeys"
	"github.com/tollgate-dev/tollgate/core/auth/people"
	"github.com/tollgate-dev/tollgate/core/auth/retention"
	"github.com/tollgate-dev/tollgate/core/auth/signin"
	"github.com/tollgate-dev/tollgate/core/auth/stepup"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/core/ratelimit/statistics"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/core/registry/mirroring"
	"github.com/tollgate-dev/tollgate/core/registry/permit"
	"github.com/tollgate-dev/tollgate/core/registry/publishing"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/core/registry/viewing"
	"github.com/tollgate-dev/tollgate/core/registry/watching"
	"github.com/tollgate-dev/tollgate/plugins/couriersettings"
)

// Settings holds the settings of all parts of the service. The tag part is the section of the
// reference that lists a group. The tag readBy of a group or a field names the parts that read it:
// registry, auth, methods, ratelimit, console, or api for any but ratelimit. The variables are read
// only if one of these parts runs. Without the tag they are always read. The tag readWith of a
// field names a variable; the field is also read if that one is read, and true. The fields of
// groups with the tag env "-" are set by the bindings.
type Settings struct {
	Service         Service                   `part:"Service"`
	REST            rest.Config               `part:"API" readBy:"api"`
	Answers         responsebody.Config       `env:"-"`
	Bodies          requestbody.Config        `part:"API"`
	Methods         methodsapi.Config         `part:"Methods listing" readBy:"methods"`
	Publishing      publishing.Config         `part:"Registry" readBy:"registry" env:"-"`
	Reviewing       reviewing.Config          `part:"Registry" readBy:"registry" env:"-"`
	Mirroring       mirroring.Config          `env:"-"`
	Reading         viewing.Config            `part:"Registry" readBy:"registry console" env:"-"`
	WriteTrust      auth.TrustLevel           `part:"Registry" readBy:"registry" env:"-"`
	Servers         registryrecords.Config    `part:"Registry" readBy:"registry"`
	ReadCache       readcache.Config          `part:"Registry" readBy:"registry"`
	Serving         registryapi.Serving       `part:"Registry" readBy:"registry"`
	Packages        Packages                  `part:"Registry" readBy:"registry"`
	Delegating      permit.Config             `part:"Publishers" readBy:"registry" env:"-"`
	Recheck         delegating.RecheckConfig  `part:"Publishers" readBy:"registry" env:"-"`
	PublisherLimits PublisherLimits           `part:"Publishers" readBy:"registry"`
	DomainKeys      keysources.Config         `part:"Publishers" readBy:"registry"`
	IDTokens        oidc.Config               `part:"Publishers" readBy:"registry"`
	Deliveries      event.Schedule            `part:"Webhooks" readBy:"registry" env:"-"`
	Receivers       webhook.Config            `part:"Webhooks" readBy:"registry"`
	Watching        watching.Config           `part:"Tool lists" readBy:"registry" env:"-"`
	ToolServers     toollist.Config           `part:"Tool lists" readBy:"registry"`
	Access          deciding.Config           `part:"Access" readBy:"api" env:"-"`
	Proxies         decideapi.Config          `part:"Access" readBy:"api"`
	OAuth           authorizing.Config        `part:"Authorization server" readBy:"auth" env:"-"`
	ClientDocuments clientdocs.Config         `part:"Authorization server" readBy:"auth"`
	Console         Console                   `part:"Console" readBy:"console"`
	Administration  Administration            `part:"Administration" readBy:"api"`
	SignIn          signin.Config             `part:"Authentication" readBy:"auth" env:"-"`
	Risk            Risk                      `part:"Authentication" readBy:"auth"`
	People          people.Config             `part:"Authentication" readBy:"auth" env:"-"`
	Companies       federating.Config         `env:"-"`
	Passkeys        passkeys.Config           `part:"Authentication" readBy:"auth" env:"-"`
	StepUp          stepup.Config             `part:"Authentication" readBy:"auth" env:"-"`
	Credentials     credentials.Config        `part:"Authentication" readBy:"auth" env:"-"`
	Cookies         cookies.Config            `env:"-"`
	Couriers        Couriers                  `part:"Authentication" readBy:"auth"`
	Retention       retention.Config          `part:"Retention" readBy:"api" env:"-"`
	Places          maxmind.Config            `part:"Signals of risk" readBy:"auth"`
	IPLists         iplists.Config            `part:"Signals of risk" readBy:"auth"`
	Limits          Limits                    `part:"Limits of the API" readBy:"api"`
	Passwords       argon.Config              `part:"Authentication" readBy:"api"`
	Tokens          jwt.Config                `part:"Authentication" readBy:"api"`
	Plugins         pluginhost.Config         `part:"Plugins" readBy:"registry auth"`
	Brand           couriersettings.Brand     `part:"Authentication" readBy:"auth"`
	Records         relational.Config         `part:"Database" readBy:"api"`
	Valkey          valkey.Config             `part:"Valkey"`
	PerSecond       valkey.PerSecondConfig    `part:"Valkey"`
	Memcached       memcached.Config          `part:"memcached"`
	Memory          memory.Config             `part:"Memory"`
	RateLimit       RateLimit                 `part:"Rate limits"`
	Decide          decide.Config             `part:"Rate limits" env:"-"`
	Rules           ruleset.Options           `part:"Rate limits" env:"-"`
	Statistics      statistics.Options        `part:"Rate limits" env:"-"`
	RuleFiles       runtimedir.Config         `part:"Rate limit rules in files" readBy:"ratelimit"`
	RuleServer      xds.Config                `part:"Rate limit rules from a management server" readBy:"ratelimit"`
	RateLimitAPI    ratelimitapi.Config       `part:"Rate limits" readBy:"ratelimit"`
	Record          traffic.Config            `part:"Rate limits" readBy:"ratelimit"`
	Debug           debugapi.Config           `part:"Debug listener"`
	Prometheus      debugapi.PrometheusConfig `part:"Statistics"`
	Statsd          statsd.Config             `part:"Statistics" readBy:"ratelimit"`
	Tracing         otlp.Config               `part:"Tracing"`

	// Warnings are sentences about settings that are valid, but look wrong.
	Warnings []string `env:"-"`
}

// Read reads the settings from an environment in the form of os.Environ. If variables cannot be
// parsed, the error has a sentence for each of them. If values are out of range, it has a sentence
// for the first of them. A sentence begins with the name of the variable.
func Read(environ []string) (Settings, error) { return ReadParts(environ, nil) }

// ReadParts is Read for a service that runs only the parts with the given names, as in ParseParts.
// No names mean all parts. The settings of the other parts keep their defaults: their variables are
// not read, so a wrong value in them is not an error.
func ReadParts(environ, parts []string) (Settings, error) {
	return readVariables(environ, readsOf(parts), false)
}

// ReadRatelimit is Read for the rate limit service alone. HOST and PORT are then the address of its
// HTTP listener (contract O-2).
func ReadRatelimit(environ []string) (Settings, error) {
	s, err := readVariables(environ, readsOf([]string{ratelimitPart}), true)
	s.Statistics.PeerNames = true
	return s, err
}

// ReadRules is Read for checking rate limit rules without a service. It reads only the variables
// that define how rules are read.
func ReadRules(environ []string) (Settings, error) {
	return readVariables(environ, func(v Variable) bool { return slices.Contains(ruleVariables, v.Name) }, true)
}

// ReadSimulation is Read for deciding recorded requests without a service. It also reads the
// variables that define how hits are counted in the process.
func ReadSimulation(environ []string) (Settings, error) {
	return readVariables(environ, func(v Variable) bool {
		return slices.Contains(ruleVariables, v.Name) || slices.Contains(countVariables, v.Name)
	}, true)
}

var countVariables = []string{"STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT", "COUNTERS_IN_PROCESS_MAX"}

var ruleVariables = []string{"RUNTIME_IGNOREDOTFILES", "MERGE_DOMAIN_CONFIG", "QUOTA_MODE", "CACHE_KEY_PREFIX"}

func readVariables(environ []string, reads func(Variable) bool, alone bool) (Settings, error) {
	vars := variables()
	e := newEnvironment(environ, alone)
	e.keepOnly(vars, func(v Variable) bool { return reads(v) || e.isReadWith(v, vars, reads) })
	if err := e.readSecretFiles(vars); err != nil {
		return Settings{}, err
	}
	e.fitPeerValues()
	if err := e.refuseRemoved(reads); err != nil {
		return Settings{}, err
	}
	return e.parseSettings(vars)
}

// parseSettings returns the settings of the environment. Its error also has the other names by
// which variables were given.
func (e environment) parseSettings(vars []Variable) (Settings, error) {
	s, err := e.parseAndValidate(vars)
	return s, e.addGivenNames(err)
}

func (e environment) parseAndValidate(vars []Variable) (Settings, error) {
	var s Settings
	if err := e.parse(&s, vars); err != nil {
		return Settings{}, err
	}
	if err := s.readRiskPolicy(); err != nil {
		return Settings{}, err
	}
	s.Warnings = e.warnings
	s.Plugins.Variable = e.pluginVariable(vars)
	s.Statsd.ReadMogrifiers(func(variable string) string { return e.values[variable] })
	if err := s.complete(); err != nil {
		return Settings{}, err
	}
	if e.alone {
		s.forgetPartsOff()
	}
	if err := s.validate(); err != nil {
		return s, errors.New(err.Error()) // of a fault, only the message would be printed, without the variable
	}
	return s, nil
}

// bindings returns the settings of use cases. The settings of adapters are the fields of their own
// Configs, with tags.
func (s *Settings) bindings() []binding {
	return slices.Concat(s.authBindings(), s.registryBindings(), s.rateLimitBindings(), s.consoleBindings(), s.accessBindings(), s.oauthBindings())
}

// Describe returns all variables with the values that the service uses, ordered by name. Secrets
// are masked. It returns the errors of Read.
func Describe(environ []string) ([]Variable, error) {
	vars := variables()
	e := newEnvironment(environ, false)
	if err := e.readSecretFiles(vars); err != nil {
		return nil, err
	}
	e.fitPeerValues()
	if _, err := e.parseSettings(vars); err != nil {
		return nil, err
	}
	for i := range vars {
		value, set := e.values[vars[i].Name]
		switch {
		case !set:
			vars[i].Value = vars[i].Default
		case vars[i].Secret:
			vars[i].Value = masked
		default:
			vars[i].Value = value
		}
	}
	return vars, nil
}

// complete sets the defaults that depend on other settings or on the path of the program.
func (s *Settings) complete() error {
	if s.Service.Environment == "" {
		s.Service.Environment = Embedded
		if !s.Records.InFile() || s.Valkey.URL != "" || s.RateLimit.Backend == Memstore {
			s.Service.Environment = Production
		}
	}
	if s.Plugins.Dir == "" {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("PLUGIN_DIR: its default is next to the program, which cannot be found: %w", err)
		}
		s.Plugins.Dir = filepath.Join(filepath.Dir(self), "plugins")
	}
	s.Memcached.Timeout = s.Valkey.Timeout
	s.Answers.InFlight = 4 * s.Bodies.InFlight
	s.Service.LogFormat = strings.ToLower(s.Service.LogFormat)
	s.warnOfUnusedStores()
	s.warnOfUnusedTLS()
	s.warnOfIssuers()
	s.Tokens.DataDir = s.Records.SQLite.Dir
	s.completeAuth()
	s.completeOAuth()
	s.completeRegistry()
	s.completeRateLimit()
	var err error
	if s.Plugins.Env, err = s.Packages.environment(); err != nil {
		return err
	}
	s.Plugins.Shared = map[string]string{"PRODUCT_NAME": s.Brand.Name, "PLUGIN_CALL_TIMEOUT": s.Plugins.CallTimeout.String()}
	return nil
}

// validate validates all groups, in the order of their fields. DATABASE_URL, KVSTORE_URL and
// BACKEND_TYPE=memstore are errors in the embedded environment, which does not use them.
func (s *Settings) validate() error {
	if s.Service.Environment == Embedded {
		switch {
		case !s.Records.InFile():
			return fmt.Errorf("ENVIRONMENT: embedded does not use DATABASE_URL, which is set")
		case s.Valkey.URL != "":
			return fmt.Errorf("ENVIRONMENT: embedded does not use KVSTORE_URL, which is set")
		case s.RateLimit.Backend == Memstore:
			return fmt.Errorf("ENVIRONMENT: embedded does not use memcached, which BACKEND_TYPE selects")
		}
	}
	if err := s.validateStores(); err != nil {
		return err
	}
	if err := s.validateOAuth(); err != nil {
		return err
	}
	v := reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		group, ok := v.Field(i).Interface().(interface{ Validate() error })
		if !ok {
			continue
		}
		err := group.Validate()
		switch {
		case err == nil:
		case v.Type().Field(i).Tag.Get("env") == "-":
			return s.named(v.Field(i), err)
		default:
			return err
		}
	}
	return nil
}

// The kinds of counter store (contract L-39).
const (
	// Kvstore is Valkey if KVSTORE_URL is set, else counters in the process.
	Kvstore = "kvstore"
	// Memstore is memcached.
	Memstore = "memstore"
)

func checkBackend(b string) error {
	if b != Kvstore && b != Memstore {
		return fmt.Errorf("BACKEND_TYPE: %q is neither kvstore (redis) nor memstore (memcache)", b)
	}
	return nil
}

// validateStores validates settings that depend on the kind of counter store.
func (s *Settings) validateStores() error {
	if s.RateLimit.Backend == Memstore && !s.Memcached.Configured() {
		return errors.New("MEMSTORE_HOST_PORT: BACKEND_TYPE=memstore needs it, or MEMSTORE_SRV")
	}
	return nil
}

// warnOfUnusedStores warns of a counter store that is configured and not used.
func (s *Settings) warnOfUnusedStores() {
	memcached := s.RateLimit.Backend == Memstore
	if s.Memcached.Configured() && !memcached {
		s.Warnings = append(s.Warnings,
			"MEMSTORE_HOST_PORT or MEMSTORE_SRV is set and BACKEND_TYPE is not memstore: memcached is not used")
	}
	if s.PerSecond.Enabled && memcached {
		s.Warnings = append(s.Warnings,
			"KVSTORE_PERSECOND is set and BACKEND_TYPE is memstore: all limits are counted on memcached")
	}
}

// warnOfUnusedTLS warns of settings for client certificates if the gRPC listener does not use TLS.
func (s *Settings) warnOfUnusedTLS() {
	t := s.RateLimitAPI.TLS
	if !t.Enabled && (t.ClientCA != "" || t.ClientSAN != "") {
		s.Warnings = append(s.Warnings,
			"GRPC_CLIENT_TLS_CACERT and GRPC_CLIENT_TLS_SAN are not used: GRPC_SERVER_USE_TLS is not true, so no certificate of a client is checked")
	}
}
