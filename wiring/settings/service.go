package settings

import (
	"fmt"
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
