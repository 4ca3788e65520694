package settings

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/relational/authrecords"
)

// The environments (contract O-4).
const (
	Embedded   = "embedded"
	Production = "production"
)

// Service holds the settings of the whole process.
type Service struct {
	Environment     string                `readBy:"api" env:"ENVIRONMENT" desc:"embedded or production; default: production if DATABASE_URL, KVSTORE_URL or BACKEND_TYPE=memstore is set, else embedded"`
	LogLevel        string                `env:"LOG_LEVEL" envDefault:"info" desc:"trace, debug, info, warn or error"`
	LogFormat       string                `env:"LOG_FORMAT" envDefault:"text" desc:"text, or json for lines with @message, @timestamp and level"`
	SecretKey       authrecords.SecretKey `readBy:"api" readWith:"RATELIMIT_RECORD_HASH" env:"SECRET_KEY" secret:"true" desc:"root secret of at least 32 characters, the same on all instances; default: created at the first start and kept in the database; the rate limit service alone reads it only with RATELIMIT_RECORD_HASH=true"`
	ShutdownDrain   time.Duration         `env:"SHUTDOWN_DRAIN" envDefault:"5s" desc:"how long the service still answers, but reports itself as unhealthy, after SIGTERM"`
	ShutdownTimeout time.Duration         `env:"SHUTDOWN_TIMEOUT" envDefault:"30s" desc:"how long calls in progress may take to finish after SHUTDOWN_DRAIN"`
}

// minSecretKey is the least length of SECRET_KEY, in bytes.
const minSecretKey = 32

// Validate returns an error that begins with the name of the first setting that is wrong.
func (s Service) Validate() error {
	switch {
	case s.Environment != Embedded && s.Environment != Production:
		return fmt.Errorf("ENVIRONMENT: %q is neither embedded nor production", s.Environment)
	case s.LogFormat != "text" && s.LogFormat != "json":
		return fmt.Errorf("LOG_FORMAT: %q is neither text nor json", s.LogFormat)
	case s.SecretKey != "" && len(s.SecretKey) < minSecretKey:
		return fmt.Errorf("SECRET_KEY: shorter than %d characters", minSecretKey)
	case s.ShutdownDrain < 0:
		return fmt.Errorf("SHUTDOWN_DRAIN: %v is negative", s.ShutdownDrain)
	case s.ShutdownTimeout < 0:
		return fmt.Errorf("SHUTDOWN_TIMEOUT: %v is negative", s.ShutdownTimeout)
	}
	return checkLogLevel(s.LogLevel)
}

// checkLogLevel returns an error if the log does not know the level. It accepts all names that the
// Envoy rate limit service accepts: also in capital letters, and also rarer levels like panic.
func checkLogLevel(level string) error {
	if _, err := logrus.ParseLevel(level); err == nil {
		return nil
	}
	return fmt.Errorf("LOG_LEVEL: %q is not trace, debug, info, warn or error", level)
}

// Console holds the settings of the console.
type Console struct {
	On bool `env:"-"`
	// Announce makes the log name the address of the console. It is not a setting: the command that
	// serves sets it, if its log is a terminal.
	Announce bool `env:"-"`
}

// Administration holds the settings of the administration API.
type Administration struct {
	On bool `env:"-"`
}

func (s *Settings) consoleBindings() []binding {
	return []binding{
		s.bind(&s.Administration.On, "ADMIN_API", "on", "on, or off: there is nothing below /admin/v1").as("text",
			oneOf(&s.Administration.On, "on", "off")),
		s.bind(&s.Console.On, "CONSOLE", "on", "on, or off: there are no pages below /console/").as("text",
			oneOf(&s.Console.On, "on", "off")),
	}
}

// The names of the parts of the service, as the flag --only takes them. The tag readBy also takes
// apiPart, which is any part on the API listener.
const (
	registryPart  = "registry"
	authPart      = "auth"
	methodsPart   = "methods"
	ratelimitPart = "ratelimit"
	consolePart   = "console"
	apiPart       = "api"
)

// Parts says which parts of the service run.
type Parts struct {
	Registry  bool
	Auth      bool
	Methods   bool
	RateLimit bool
	Console   bool // it needs the registry; without authentication it is the catalogue alone
}

// ParseParts returns the parts with the given names. No names mean all parts.
func ParseParts(names []string) (Parts, error) {
	all := []string{registryPart, authPart, methodsPart, ratelimitPart, consolePart}
	if len(names) == 0 {
		names = all
	}
	for _, name := range names {
		if !slices.Contains(all, name) {
			return Parts{}, fmt.Errorf("--only: unknown part %q; the parts are %s", name, strings.Join(all, ", "))
		}
	}
	if slices.Contains(names, consolePart) && !slices.Contains(names, registryPart) {
		return Parts{}, fmt.Errorf("--only: the part %s needs the part %s", consolePart, registryPart)
	}
	return Parts{
		Registry:  slices.Contains(names, registryPart),
		Auth:      slices.Contains(names, authPart),
		Methods:   slices.Contains(names, methodsPart),
		RateLimit: slices.Contains(names, ratelimitPart),
		Console:   slices.Contains(names, consolePart),
	}, nil
}

// API reports whether any part uses the API listener.
func (p Parts) API() bool { return p.Registry || p.Auth || p.Methods }

// readsOf returns a function that reports whether a variable is read if the given parts run. No
// parts mean all parts.
func readsOf(parts []string) func(Variable) bool {
	return func(v Variable) bool {
		if len(parts) == 0 || len(v.readBy) == 0 {
			return true
		}
		return slices.ContainsFunc(parts, func(part string) bool {
			return slices.Contains(v.readBy, part) || part != ratelimitPart && slices.Contains(v.readBy, apiPart)
		})
	}
}
