// Package settings reads the process's environment once and hands each part of
// the service its own settings. It keeps nothing between calls and knows no
// part's work.
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
	"github.com/tollgate-dev/tollgate/adapters/debugapi"
	"github.com/tollgate-dev/tollgate/adapters/iplists"
	"github.com/tollgate-dev/tollgate/adapters/jwt"
	"github.com/tollgate-dev/tollgate/adapters/maxmind"
	"github.com/tollgate-dev/tollgate/adapters/memcached"
	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/adapters/otlp"
	"github.com/tollgate-dev/tollgate/adapters/pluginhost"
	"github.com/tollgate-dev/tollgate/adapters/ratelimitapi"
	"github.com/tollgate-dev/tollgate/adapters/relational/postgres"
	"github.com/tollgate-dev/tollgate/adapters/relational/registryrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/sqlite"
	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/methodsapi"
	"github.com/tollgate-dev/tollgate/adapters/rest/responsebody"
	"github.com/tollgate-dev/tollgate/adapters/runtimedir"
	"github.com/tollgate-dev/tollgate/adapters/statsd"
	"github.com/tollgate-dev/tollgate/adapters/valkey"
	"github.com/tollgate-dev/tollgate/adapters/xds"
	"github.com/tollgate-dev/tollgate/plugins/couriersettings"
)

// Settings are all settings of the service, each part's own. The reference lists
// them by the part that a tag names. The tag readBy names the parts that must run
// for a group, or a field of one, to be read: registry, auth, methods, ratelimit,
// or api for any of the first three. Without it, settings are always read.
type Settings struct {
	Service      Service                   `part:"Service"`
	REST         rest.Config               `part:"API" readBy:"api"`
	Answers      responsebody.Config       `part:"API" readBy:"api"`
	Methods      methodsapi.Config         `part:"Methods listing" readBy:"methods"`
	Registry     Registry                  `part:"Registry" readBy:"registry"`
	Servers      registryrecords.Config    `part:"Registry" readBy:"registry"`
	Packages     Packages                  `part:"Registry" readBy:"registry"`
	Auth         Auth                      `part:"Authentication" readBy:"auth"`
	Retention    Retention                 `part:"Retention" readBy:"api"`
	Places       maxmind.Config            `part:"Signals of risk" readBy:"auth"`
	IPLists      iplists.Config            `part:"Signals of risk" readBy:"auth"`
	Limits       Limits                    `part:"Limits of the API" readBy:"api"`
	Passwords    argon.Config              `part:"Authentication" readBy:"api"`
	Tokens       jwt.Config                `part:"Authentication" readBy:"api"`
	Plugins      pluginhost.Config         `part:"Plugins" readBy:"registry auth"`
	Email        couriersettings.Email     `part:"Delivery of codes" readBy:"auth"`
	SMS          couriersettings.SMS       `part:"Delivery of codes" readBy:"auth"`
	Postgres     postgres.Config           `part:"Database" readBy:"api"`
	SQLite       sqlite.Config             `part:"Database" readBy:"api"`
	Valkey       valkey.Config             `part:"Valkey"`
	PerSecond    valkey.PerSecondConfig    `part:"Valkey"`
	Memcached    memcached.Config          `part:"memcached"`
	Memory       memory.Config             `part:"Memory"`
	RateLimit    RateLimit                 `part:"Rate limits"`
	RuleFiles    runtimedir.Config         `part:"Rate limit rules in files" readBy:"ratelimit"`
	RuleServer   xds.Config                `part:"Rate limit rules from a management server" readBy:"ratelimit"`
	RateLimitAPI ratelimitapi.Config       `part:"Rate limits" readBy:"ratelimit"`
	Debug        debugapi.Config           `part:"Debug listener"`
	Prometheus   debugapi.PrometheusConfig `part:"Statistics"`
	Statsd       statsd.Config             `part:"Statistics" readBy:"ratelimit"`
	Tracing      otlp.Config               `part:"Tracing"`

	// Warnings are sentences about settings that are taken, but look wrong.
	Warnings []string `env:"-"`
}

// Read reads the settings from an environment such as os.Environ returns. Its
// error is one sentence for each variable that is malformed or out of range,
// beginning with the variable's name.
func Read(environ []string) (Settings, error) { return ReadParts(environ, nil) }

// ReadParts is Read for a service that runs only some of its parts, by the names
// that the flag --only takes; none means all. The settings of the other parts keep
// their defaults: their variables are not read, so nothing in them can be wrong.
func ReadParts(environ, parts []string) (Settings, error) {
	return readAs(environ, readsOf(parts), false)
}

// ReadRatelimit is Read for the rate limit service alone, where HOST and PORT are those of its HTTP
// listener (contract O-2).
func ReadRatelimit(environ []string) (Settings, error) {
	s, err := readAs(environ, readsOf([]string{ratelimitPart}), true)
	s.RateLimit.Alone = true
	return s, err
}

// ReadRules is Read for a look at rate limit rules without a service: it reads
// only the variables that say how rules are read.
func ReadRules(environ []string) (Settings, error) {
	return readAs(environ, func(v Variable) bool { return slices.Contains(ruleVariables, v.Name) }, true)
}

var ruleVariables = []string{"RUNTIME_IGNOREDOTFILES", "MERGE_DOMAIN_CONFIG", "QUOTA_MODE"}

func readAs(environ []string, reads func(Variable) bool, alone bool) (Settings, error) {
	vars := variables()
	e := newEnvironment(environ, alone)
	e.keepOnly(vars, reads)
	if err := e.readSecretFiles(vars); err != nil {
		return Settings{}, err
	}
	e.fitPeerValues()
	return e.settings(vars)
}

func (e environment) settings(vars []Variable) (Settings, error) {
	s, err := e.read(vars)
	return s, e.named(err)
}

func (e environment) read(vars []Variable) (Settings, error) {
	var s Settings
	if err := e.parse(&s, vars); err != nil {
		return Settings{}, err
	}
	s.Warnings = e.warnings
	s.Statsd.ReadMogrifiers(func(variable string) string { return e.values[variable] })
	if err := s.complete(); err != nil {
		return Settings{}, err
	}
	return s, s.validate()
}

// Describe returns every variable with its value in force, ordered by name.
// Secrets are masked.
func Describe(environ []string) ([]Variable, error) {
	vars := variables()
	e := newEnvironment(environ, false)
	if err := e.readSecretFiles(vars); err != nil {
		return nil, err
	}
	e.fitPeerValues()
	if _, err := e.settings(vars); err != nil {
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

// complete fills in the defaults that depend on other settings or on where the
// program is.
func (s *Settings) complete() error {
	if s.Service.Environment == "" {
		s.Service.Environment = Embedded
		if s.Postgres.URL != "" || s.Valkey.URL != "" || s.RateLimit.Backend == Memstore {
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
	s.Service.LogFormat = strings.ToLower(s.Service.LogFormat)
	s.warnOfUnusedStores()
	s.warnOfUnusedTLS()
	s.Tokens.DataDir, s.Tokens.TokenLife = s.SQLite.Dir, s.Auth.AccessTokenTTL
	var err error
	if s.Plugins.Env, err = s.Packages.environment(); err != nil {
		return err
	}
	s.tellCouriers()
	return nil
}

// validate asks every group that can tell. In the embedded environment what
// DATABASE_URL, KVSTORE_URL and BACKEND_TYPE name is not used, so naming it is
// a mistake.
func (s *Settings) validate() error {
	if s.Service.Environment == Embedded {
		switch {
		case s.Postgres.URL != "":
			return fmt.Errorf("ENVIRONMENT: embedded does not use DATABASE_URL, which is set")
		case s.Valkey.URL != "":
			return fmt.Errorf("ENVIRONMENT: embedded does not use KVSTORE_URL, which is set")
		case s.RateLimit.Backend == Memstore:
			return fmt.Errorf("ENVIRONMENT: embedded does not use memcached, which BACKEND_TYPE selects")
		}
	}
	if err := errors.Join(s.validateStores(), s.validateCouriers()); err != nil {
		return err
	}
	v := reflect.ValueOf(*s)
	for i := range v.NumField() {
		group, ok := v.Field(i).Interface().(interface{ Validate() error })
		if _, unused := group.(postgres.Config); !ok || unused && s.Postgres.URL == "" {
			continue
		}
		if err := group.Validate(); err != nil {
			return err
		}
	}
	return nil
}
