package xds

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

// Config holds how to reach the management server, and what to send it (contract L-38).
type Config struct {
	Server        string        `env:"CONFIG_GRPC_XDS_SERVER_URL" envDefault:"localhost:18000" desc:"the management server, host:port; used with CONFIG_TYPE=GRPC_XDS_SOTW"`
	RetryInterval time.Duration `env:"CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL" envDefault:"3s" desc:"wait between attempts to connect to the management server"`
	Node          NodeConfig
	TLS           TLSConfig
	Headers       string `env:"CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS" secret:"true" desc:"headers for the management server, key:value, comma separated"`
	MaxMessage    int    `env:"XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES" envDefault:"0" desc:"largest accepted message from the management server; 0 = 16 MiB"`
	Backoff       BackoffConfig
}

// NodeConfig is who the service says it is.
type NodeConfig struct {
	ID       string `env:"CONFIG_GRPC_XDS_NODE_ID" envDefault:"default" desc:"node id under which the management server knows this service"`
	Metadata string `env:"CONFIG_GRPC_XDS_NODE_METADATA" desc:"node metadata for the management server: key=value, comma separated, or a JSON object"`
}

// TLSConfig is TLS towards the management server. The files are read for each
// connection, so that renewed ones are taken.
type TLSConfig struct {
	Enabled bool   `env:"CONFIG_GRPC_XDS_SERVER_USE_TLS" envDefault:"false" desc:"use TLS to the management server"`
	Cert    string `env:"CONFIG_GRPC_XDS_CLIENT_TLS_CERT" desc:"file of the client certificate for the management server"`
	Key     string `env:"CONFIG_GRPC_XDS_CLIENT_TLS_KEY" desc:"file of the client certificate's key"`
	CACert  string `env:"CONFIG_GRPC_XDS_SERVER_TLS_CACERT" desc:"file of CA certificates for checking the management server's certificate, in addition to the system's"`
	SAN     string `env:"CONFIG_GRPC_XDS_SERVER_TLS_SAN" desc:"name that the management server's certificate must contain, instead of its host"`
}

// BackoffConfig is how long to wait after a stream of the management server has
// ended, longer each time until it delivers again.
type BackoffConfig struct {
	Initial      time.Duration `env:"XDS_CLIENT_BACKOFF_INITIAL_INTERVAL" envDefault:"10s" desc:"first wait after the management server ended the stream"`
	Max          time.Duration `env:"XDS_CLIENT_BACKOFF_MAX_INTERVAL" envDefault:"60s" desc:"longest wait after the management server ended the stream, before jitter"`
	RandomFactor float64       `env:"XDS_CLIENT_BACKOFF_RANDOM_FACTOR" envDefault:"0.5" desc:"maximum fraction of a wait that jitter adds or removes, 0 to 1"`
	Jitter       bool          `env:"XDS_CLIENT_BACKOFF_JITTER" envDefault:"true" desc:"vary the waits randomly"`
}

// Bounds of the settings.
const (
	MinWait           = 10 * time.Millisecond
	MaxWait           = 24 * time.Hour
	MaxMessageSize    = 1 << 30
	defaultMaxMessage = 16 << 20
)

// Validate tells which setting is malformed or out of range.
func (c Config) Validate() error {
	_, headers := c.headers()
	_, described := c.Node.metadata()
	return errors.Join(
		c.addressed(),
		wait("CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL", c.RetryInterval),
		wait("XDS_CLIENT_BACKOFF_INITIAL_INTERVAL", c.Backoff.Initial),
		wait("XDS_CLIENT_BACKOFF_MAX_INTERVAL", c.Backoff.Max),
		headers,
		c.Node.validate(), described,
		c.bounded(),
		c.TLS.validate(),
	)
}

func (c Config) addressed() error {
	if strings.HasPrefix(c.Server, "unix:") || strings.Contains(c.Server, "://") {
		return nil // a target of gRPC's own form
	}
	if _, port, err := net.SplitHostPort(c.Server); err != nil || port == "" {
		return fmt.Errorf("CONFIG_GRPC_XDS_SERVER_URL: %q is not host:port", c.Server)
	}
	return nil
}

func (c NodeConfig) validate() error {
	if c.ID == "" {
		return errors.New("CONFIG_GRPC_XDS_NODE_ID must not be empty")
	}
	return nil
}

func (c Config) bounded() error {
	if c.MaxMessage < 0 || c.MaxMessage > MaxMessageSize {
		return fmt.Errorf("XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES: %d is not 0 to %d", c.MaxMessage, MaxMessageSize)
	}
	if !(c.Backoff.RandomFactor >= 0 && c.Backoff.RandomFactor <= 1) {
		return fmt.Errorf("XDS_CLIENT_BACKOFF_RANDOM_FACTOR: %v is not 0 to 1", c.Backoff.RandomFactor)
	}
	return nil
}

func wait(variable string, d time.Duration) error {
	if d < MinWait || d > MaxWait {
		return fmt.Errorf("%s: %v is not %v to %v", variable, d, MinWait, MaxWait)
	}
	return nil
}

func (c TLSConfig) validate() error {
	if (c.Cert == "") != (c.Key == "") {
		return errors.New("CONFIG_GRPC_XDS_CLIENT_TLS_CERT and CONFIG_GRPC_XDS_CLIENT_TLS_KEY must be set together")
	}
	return nil
}

// factor is the part of a wait that may be added or taken away.
func (c BackoffConfig) factor() float64 {
	if !c.Jitter {
		return 0
	}
	return c.RandomFactor
}

func (c Config) maxMessage() int {
	if c.MaxMessage == 0 {
		return defaultMaxMessage
	}
	return c.MaxMessage
}

// headers reads <k1:v1>,<k2:v2>. Errors repeat no value, which may be a secret.
func (c Config) headers() (metadata.MD, error) {
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
			return nil, fmt.Errorf("CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: header %d has no name that may be sent", i+1)
		case !printable(value):
			return nil, fmt.Errorf("CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: the value of header %d is not printable ASCII", i+1)
		}
		md.Append(key, value)
	}
	return md, nil
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// metadata reads a JSON object, or key=value pairs as the Envoy service has
// them, also with a colon, as its description shows them.
func (c NodeConfig) metadata() (*structpb.Struct, error) {
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
