package ratelimitapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"golang.org/x/net/http/httpguts"
)

// Config holds the settings of the rate limit listeners.
type Config struct {
	GRPC    GRPCConfig
	TLS     TLSConfig
	HTTP    HTTPConfig
	Headers HeaderConfig
	Health  HealthConfig
	// DynamicMetadata adds metadata to responses (contract L-18).
	DynamicMetadata bool `env:"RESPONSE_DYNAMIC_METADATA" envDefault:"false" desc:"return in the dynamic metadata of responses the request, the metadata of rules that were not exceeded, and the quota descriptors that were exceeded"`
}

// GRPCConfig holds the settings of the gRPC listener (contract L-31, L-32).
type GRPCConfig struct {
	Host                  string        `env:"GRPC_HOST" envDefault:"0.0.0.0" desc:"address that the rate limit gRPC service listens on"`
	Port                  int           `env:"GRPC_PORT" envDefault:"8081" desc:"port that the rate limit gRPC service listens on; 0 = any free port"`
	MaxConnections        int           `env:"RATELIMIT_MAX_CONNECTIONS" envDefault:"10000" desc:"maximum number of open connections of each rate limit listener; further connections are closed at once, over HTTP after a 503"`
	Socket                string        `env:"GRPC_UDS" desc:"path of a Unix socket to listen on instead of GRPC_HOST and GRPC_PORT"`
	MaxConnectionAge      time.Duration `env:"GRPC_MAX_CONNECTION_AGE" desc:"age, plus or minus 10%, after which a connection gets GOAWAY; 0 = never"`
	MaxConnectionAgeGrace time.Duration `env:"GRPC_MAX_CONNECTION_AGE_GRACE" desc:"how long a connection may stay open after GOAWAY; 0 = forever"`
}

// TLSConfig holds the settings of TLS on the gRPC listener (contract L-32).
type TLSConfig struct {
	Enabled   bool   `env:"GRPC_SERVER_USE_TLS" envDefault:"false" desc:"serve gRPC over TLS"`
	Cert      string `env:"GRPC_SERVER_TLS_CERT" desc:"file with the certificate chain of the gRPC listener; reloaded on change"`
	Key       string `env:"GRPC_SERVER_TLS_KEY" desc:"file with the private key of the gRPC listener; reloaded on change"`
	ClientCA  string `env:"GRPC_CLIENT_TLS_CACERT" desc:"file with the CA certificates for client certificates, which are then required; reloaded on change"`
	ClientSAN string `env:"GRPC_CLIENT_TLS_SAN" desc:"DNS name that client certificates must contain"`
}

// HTTPConfig holds the settings of the HTTP listener.
type HTTPConfig struct {
	Host string `env:"RATELIMIT_HTTP_HOST" envDefault:"0.0.0.0" desc:"address that the rate limit HTTP endpoint listens on"`
	Port int    `env:"RATELIMIT_HTTP_PORT" envDefault:"8080" desc:"port that the rate limit HTTP endpoint listens on; 0 = any free port"`
}

// HealthConfig defines how health depends on the rate limit configuration.
type HealthConfig struct {
	ForceStart    bool `env:"FORCE_START_WITHOUT_INITIAL_CONFIG" envDefault:"false" desc:"be healthy even before a first rate limit configuration is in force"`
	AtLeastOneSet bool `env:"HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED" envDefault:"false" desc:"be healthy only with at least one rate limit domain loaded"`
}

// Validate returns an error that names every setting that is out of range.
func (c Config) Validate() error {
	return errors.Join(
		checkPort("GRPC_PORT", c.GRPC.Port),
		checkPort("RATELIMIT_HTTP_PORT", c.HTTP.Port),
		checkPositive("RATELIMIT_MAX_CONNECTIONS", c.GRPC.MaxConnections),
		checkDuration("GRPC_MAX_CONNECTION_AGE", c.GRPC.MaxConnectionAge),
		checkDuration("GRPC_MAX_CONNECTION_AGE_GRACE", c.GRPC.MaxConnectionAgeGrace),
		c.Headers.validate(),
		c.TLS.validate(),
	)
}

func (c TLSConfig) validate() error {
	switch {
	case !c.Enabled:
		return nil
	case c.ClientSAN != "" && c.ClientCA == "":
		return errors.New("GRPC_CLIENT_TLS_SAN: it requires GRPC_CLIENT_TLS_CACERT")
	case c.Cert == "":
		return errors.New("GRPC_SERVER_TLS_CERT: it must be set if GRPC_SERVER_USE_TLS is true")
	case c.Key == "":
		return errors.New("GRPC_SERVER_TLS_KEY: it must be set if GRPC_SERVER_USE_TLS is true")
	}
	return nil
}

func checkPort(variable string, n int) error {
	if n < 0 || n > 65535 {
		return fmt.Errorf("%s: %d is not a port number from 0 to 65535", variable, n)
	}
	return nil
}

func checkPositive(variable string, n int) error {
	if n < 1 {
		return fmt.Errorf("%s: %d is less than 1", variable, n)
	}
	return nil
}

func checkDuration(variable string, d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("%s: %v is negative", variable, d)
	}
	return nil
}

func checkHeaderName(variable, name string) error {
	if !httpguts.ValidHeaderFieldName(name) {
		return fmt.Errorf("%s: %q is not a valid header name", variable, name)
	}
	return nil
}

func (c GRPCConfig) openListener(ctx context.Context) (net.Listener, error) {
	if c.Socket != "" {
		return listenOnSocket(ctx, c.Socket)
	}
	return listenTCP(ctx, "GRPC_HOST and GRPC_PORT", c.Host, c.Port)
}

func (c HTTPConfig) openListener(ctx context.Context) (net.Listener, error) {
	return listenTCP(ctx, "RATELIMIT_HTTP_HOST and RATELIMIT_HTTP_PORT", c.Host, c.Port)
}

func listenTCP(ctx context.Context, variables, host string, port int) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", variables, err)
	}
	return l, nil
}

// listenOnSocket replaces a socket that a stopped process has left. It returns an error if another
// process listens on the socket.
func listenOnSocket(ctx context.Context, path string) (net.Listener, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "unix", path)
	if err == nil {
		return l, nil
	}
	if c, dialErr := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", path); dialErr == nil {
		_ = c.Close() // another process listens
		return nil, fmt.Errorf("GRPC_UDS: %w", err)
	}
	if removeErr := removeUnixSocket(path); removeErr != nil {
		return nil, fmt.Errorf("GRPC_UDS: %w", err)
	}
	if l, err = config.Listen(ctx, "unix", path); err != nil {
		return nil, fmt.Errorf("GRPC_UDS: %w", err)
	}
	return l, nil
}
