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
	"github.com/tollgate-dev/tollgate/adapters/relational"
	"github.com/tollgate-dev/tollgate/adapters/relational/postgres"
	"github.com/tollgate-dev/tollgate/adapters/relational/sqlite"
	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/methodsapi"
	"github.com/tollgate-dev/tollgate/adapters/runtimedir"
	"github.com/tollgate-dev/tollgate/adapters/statsd"
	"github.com/tollgate-dev/tollgate/adapters/valkey"
	"github.com/tollgate-dev/tollgate/adapters/xds"
	"github.com/tollgate-dev/tollgate/plugins/setup"
)

// Settings are all settings of the service, each part's own.
type Settings struct {
	Service      Service
	REST         rest.Config
	Methods      methodsapi.Config
	Registry     Registry
	Servers      relational.Config
	Packages     Packages
	Auth         Auth
	Retention    Retention
	Places       maxmind.Config
	IPLists      iplists.Config
	Limits       Limits
	Passwords    argon.Config
	Tokens       jwt.Config
	Plugins      pluginhost.Config
	Email        setup.Email
	SMS          setup.SMS
	Postgres     postgres.Config
	SQLite       sqlite.Config
	Valkey       valkey.Config
	PerSecond    valkey.PerSecondConfig
	Memcached    memcached.Config
	Memory       memory.Config
	RateLimit    RateLimit
	RuleFiles    runtimedir.Config
	RuleServer   xds.Config
	RateLimitAPI ratelimitapi.Config
	Debug        debugapi.Config
	Prometheus   debugapi.PrometheusConfig
	Statsd       statsd.Config
	Tracing      otlp.Config

	// Warnings are sentences about settings that are taken, but look wrong.
	Warnings []string `env:"-"`
}

// Read reads the settings from an environment such as os.Environ returns. Its
// error is one sentence for each variable that is malformed or out of range,
// beginning with the variable's name.
func Read(environ []string) (Settings, error) {
	vars := variables(Settings{})
	e, err := newEnvironment(environ, vars)
	if err != nil {
		return Settings{}, err
	}
	return e.settings(vars)
}

// ReadRatelimit is Read for the rate limit service alone, where HOST and PORT
// mean its HTTP listener (decisions 0).
func ReadRatelimit(environ []string) (Settings, error) {
	vars := variables(Settings{})
	e, err := newEnvironment(environ, vars)
	if err != nil {
		return Settings{}, err
	}
	for _, name := range []string{"HOST", "PORT"} {
		if value, ok := e.values[name]; ok {
			e.values["RATELIMIT_HTTP_"+name] = value
			delete(e.values, name)
		}
	}
	s, err := e.settings(vars)
	s.RateLimit.Alone = true
	return s, err
}

func (e environment) settings(vars []Variable) (Settings, error) {
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
	vars := variables(Settings{})
	e, err := newEnvironment(environ, vars)
	if err != nil {
		return nil, err
	}
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
			return fmt.Errorf("PLUGIN_DIR: its default is beside the program, which cannot be found: %w", err)
		}
		s.Plugins.Dir = filepath.Join(filepath.Dir(self), "plugins")
	}
	s.Memcached.Timeout = s.Valkey.Timeout
	s.warnOfUnusedStores()
	s.Tokens.DataDir = s.SQLite.Dir
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
