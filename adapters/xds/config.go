package xds

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/tollgate-dev/tollgate/adapters/internal/tlsfiles"
)

// Config contains the address of the management server and what to send to it (contract L-38).
type Config struct {
	Server        string        `env:"CONFIG_GRPC_XDS_SERVER_URL" envDefault:"localhost:18000" desc:"the management server, host:port; used with CONFIG_TYPE=GRPC_XDS_SOTW"`
	RetryInterval time.Duration `env:"CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL" envDefault:"3s" desc:"wait between attempts to connect to the management server"`
	Node          NodeConfig
	TLS           TLSConfig
	Headers       string `env:"CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS" secret:"true" desc:"headers for the management server, key:value, comma separated"`
	MaxMessage    int    `env:"XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES" envDefault:"0" desc:"largest accepted message from the management server; 0 = 16 MiB"`
	Backoff       BackoffConfig
}

// NodeConfig is the identity that the service sends to the management server.
type NodeConfig struct {
	ID       string `env:"CONFIG_GRPC_XDS_NODE_ID" envDefault:"default" desc:"node id under which the management server knows this service"`
	Metadata string `env:"CONFIG_GRPC_XDS_NODE_METADATA" desc:"node metadata for the management server: key=value, comma separated, or a JSON object"`
}

// TLSConfig configures TLS to the management server. The files are read for each connection, so
// that renewed files take effect.
type TLSConfig struct {
	Enabled bool   `env:"CONFIG_GRPC_XDS_SERVER_USE_TLS" envDefault:"false" desc:"use TLS to the management server"`
	Cert    string `env:"CONFIG_GRPC_XDS_CLIENT_TLS_CERT" desc:"file of the client certificate for the management server"`
	Key     string `env:"CONFIG_GRPC_XDS_CLIENT_TLS_KEY" desc:"file of the client certificate's key"`
	CACert  string `env:"CONFIG_GRPC_XDS_SERVER_TLS_CACERT" desc:"file of CA certificates for checking the management server's certificate, in addition to the system's"`
	SAN     string `env:"CONFIG_GRPC_XDS_SERVER_TLS_SAN" desc:"name that the management server's certificate must contain, instead of its host"`
}

// BackoffConfig configures the wait after a stream has ended. The wait grows until the management
// server delivers a configuration again.
type BackoffConfig struct {
	Initial      time.Duration `env:"XDS_CLIENT_BACKOFF_INITIAL_INTERVAL" envDefault:"10s" desc:"first wait after the management server ended the stream"`
	Max          time.Duration `env:"XDS_CLIENT_BACKOFF_MAX_INTERVAL" envDefault:"60s" desc:"longest wait after the management server ended the stream, before jitter"`
	RandomFactor float64       `env:"XDS_CLIENT_BACKOFF_RANDOM_FACTOR" envDefault:"0.5" desc:"maximum fraction of a wait that jitter adds or removes, 0 to 1"`
	Jitter       bool          `env:"XDS_CLIENT_BACKOFF_JITTER" envDefault:"true" desc:"vary the waits randomly"`
}

// Limits of the settings.
const (
	MinWait           = 10 * time.Millisecond
	MaxWait           = 24 * time.Hour
	MaxMessageSize    = 1 << 30
	defaultMaxMessage = 16 << 20
)

// Validate returns an error that names each setting that is malformed or out of range.
func (c Config) Validate() error {
	_, headers := c.parseHeaders()
	_, described := c.Node.parseMetadata()
	return errors.Join(
		c.validateServer(),
		validateWait("CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL", c.RetryInterval),
		validateWait("XDS_CLIENT_BACKOFF_INITIAL_INTERVAL", c.Backoff.Initial),
		validateWait("XDS_CLIENT_BACKOFF_MAX_INTERVAL", c.Backoff.Max),
		headers,
		c.Node.validateID(), described,
		c.validateBounds(),
		c.TLS.validateKeyPair(),
	)
}

func (c Config) validateServer() error {
	if strings.HasPrefix(c.Server, "unix:") || strings.Contains(c.Server, "://") {
		return nil // a target in the syntax of gRPC
	}
	if _, port, err := net.SplitHostPort(c.Server); err != nil || port == "" {
		return fmt.Errorf("CONFIG_GRPC_XDS_SERVER_URL: %q is not host:port", c.Server)
	}
	return nil
}

func (c NodeConfig) validateID() error {
	if c.ID == "" {
		return errors.New("CONFIG_GRPC_XDS_NODE_ID must not be empty")
	}
	return nil
}

// validateBounds checks the settings that are numbers.
func (c Config) validateBounds() error {
	if c.MaxMessage < 0 || c.MaxMessage > MaxMessageSize {
		return fmt.Errorf("XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES: %d is not in the range 0 to %d", c.MaxMessage,
			MaxMessageSize)
	}
	if !(c.Backoff.RandomFactor >= 0 && c.Backoff.RandomFactor <= 1) {
		return fmt.Errorf("XDS_CLIENT_BACKOFF_RANDOM_FACTOR: %v is not in the range 0 to 1", c.Backoff.RandomFactor)
	}
	return nil
}

// validateWait checks that a duration is from MinWait to MaxWait.
func validateWait(variable string, d time.Duration) error {
	if d < MinWait || d > MaxWait {
		return fmt.Errorf("%s: %v is not in the range %v to %v", variable, d, MinWait, MaxWait)
	}
	return nil
}

// validateKeyPair checks that a certificate and its key are set together.
func (c TLSConfig) validateKeyPair() error {
	if (c.Cert == "") != (c.Key == "") {
		return errors.New("CONFIG_GRPC_XDS_CLIENT_TLS_CERT and CONFIG_GRPC_XDS_CLIENT_TLS_KEY must be set together")
	}
	return nil
}

// jitterFactor returns the maximum fraction of a wait that jitter adds or removes.
func (c BackoffConfig) jitterFactor() float64 {
	if !c.Jitter {
		return 0
	}
	return c.RandomFactor
}

// maxMessageSize returns the maximum size of a message in bytes.
func (c Config) maxMessageSize() int {
	return cmp.Or(c.MaxMessage, defaultMaxMessage)
}

// parseHeaders parses key:value pairs, separated by commas. Errors contain no value, because a
// value may be secret.
func (c Config) parseHeaders() (metadata.MD, error) {
	md := metadata.MD{}
	if c.Headers == "" {
		return md, nil
	}
	for i, header := range strings.Split(c.Headers, ",") {
		key, value, ok := strings.Cut(header, ":")
		key, value = strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(value)
		switch {
		case !ok:
			return nil, fmt.Errorf("CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: header %d has no colon", i+1)
		case !httpguts.ValidHeaderFieldName(key) || strings.HasPrefix(key, "grpc-"):
			return nil, fmt.Errorf("CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: header %d has an invalid name", i+1)
		case !isPrintable(value):
			return nil, fmt.Errorf(
				"CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: the value of header %d is not printable ASCII", i+1)
		}
		md.Append(key, value)
	}
	return md, nil
}

// isPrintable reports whether a string is printable ASCII.
func isPrintable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// parseMetadata parses a JSON object, or key=value pairs as the Envoy rate limit service does. It
// also accepts key:value, which that service's description shows.
func (c NodeConfig) parseMetadata() (*structpb.Struct, error) {
	s := &structpb.Struct{}
	text := strings.TrimSpace(c.Metadata)
	if strings.HasPrefix(text, "{") {
		if err := protojson.Unmarshal([]byte(text), s); err != nil {
			return nil, errors.New("CONFIG_GRPC_XDS_NODE_METADATA is not a JSON object")
		}
		return s, nil
	}
	if text == "" {
		return nil, nil
	}
	s.Fields = map[string]*structpb.Value{}
	for i, entry := range strings.Split(text, ",") {
		key, value, ok := strings.Cut(entry, "=")
		if !ok {
			key, value, ok = strings.Cut(entry, ":")
		}
		if key = strings.TrimSpace(key); !ok || key == "" {
			return nil, fmt.Errorf("CONFIG_GRPC_XDS_NODE_METADATA: entry %d is not key=value", i+1)
		}
		s.Fields[key] = structpb.NewStringValue(strings.TrimSpace(value))
	}
	return s, nil
}

// transportCredentials returns the security of connections. It loads the files once to report
// errors in them.
func (c TLSConfig) transportCredentials() (credentials.TransportCredentials, error) {
	if !c.Enabled {
		return insecure.NewCredentials(), nil
	}
	loaded, err := c.loadConfig()
	if err != nil {
		return nil, err
	}
	return reloadingCredentials{TransportCredentials: credentials.NewTLS(loaded), config: c}, nil
}

// reloadingCredentials are TLS credentials that load their files for each connection.
type reloadingCredentials struct {
	credentials.TransportCredentials
	config TLSConfig
}

func (f reloadingCredentials) ClientHandshake(
	ctx context.Context, authority string, conn net.Conn,
) (net.Conn, credentials.AuthInfo, error) {
	loaded, err := f.config.loadConfig()
	if err != nil {
		return nil, nil, err
	}
	//nolint:wrapcheck // gRPC recognizes temporary errors by their type
	return credentials.NewTLS(loaded).ClientHandshake(ctx, authority, conn)
}

func (f reloadingCredentials) Clone() credentials.TransportCredentials {
	return reloadingCredentials{TransportCredentials: f.TransportCredentials.Clone(), config: f.config}
}

func (c TLSConfig) loadConfig() (*tls.Config, error) {
	t, err := tlsfiles.ClientFiles{
		Cert: tlsfiles.ClientFile{Setting: "CONFIG_GRPC_XDS_CLIENT_TLS_CERT", Path: c.Cert},
		Key:  tlsfiles.ClientFile{Setting: "CONFIG_GRPC_XDS_CLIENT_TLS_KEY", Path: c.Key},
		CA:   tlsfiles.ClientFile{Setting: "CONFIG_GRPC_XDS_SERVER_TLS_CACERT", Path: c.CACert},
	}.Config()
	if err != nil {
		return nil, err
	}
	t.ServerName = c.SAN
	return t, nil
}
