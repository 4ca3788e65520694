package valkey

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// Topology is the arrangement of the servers at KVSTORE_URL.
type Topology string

// The topologies of a store (contract L-40).
const (
	Single   Topology = "single"
	Sentinel Topology = "sentinel"
	Cluster  Topology = "cluster"
)

// UnmarshalText accepts upper and lower case, because the Envoy rate limit service writes SINGLE.
func (t *Topology) UnmarshalText(text []byte) error {
	*t = Topology(strings.ToLower(string(text)))
	return nil
}

// Bounds of the settings.
const (
	MaxPoolSize = 1024 // connections to one node
	MinTimeout  = time.Millisecond
	MaxTimeout  = time.Minute
)

// DefaultTimeout is the value of KVSTORE_TIMEOUT if it is not set.
const DefaultTimeout = 500 * time.Millisecond

// Config contains the connection settings of the store (contract L-40).
type Config struct {
	URL        string   `env:"KVSTORE_URL" secret:"true" desc:"the counter store: host:port, the path of a socket, or a redis://, valkey:// or unix:// URL; sentinel: master name, then sentinels; cluster: all nodes, comma separated, each host:port or a URL; default: in the process"`
	SocketType string   `env:"KVSTORE_SOCKET_TYPE" envDefault:"tcp" desc:"tcp, or unix for the path of a socket"`
	Type       Topology `env:"KVSTORE_TYPE" envDefault:"single" desc:"single, sentinel or cluster"`

	Auth         string `env:"KVSTORE_AUTH" secret:"true" desc:"<PASSWORD> or <USERNAME>:<PASSWORD>"`
	SentinelAuth string `env:"KVSTORE_SENTINEL_AUTH" secret:"true" desc:"<PASSWORD> or <USERNAME>:<PASSWORD> of the sentinels"`

	TLS                 bool   `env:"KVSTORE_TLS" envDefault:"false" desc:"use TLS to the store"`
	TLSClientCert       string `env:"KVSTORE_TLS_CLIENT_CERT" desc:"file of the client certificate"`
	TLSClientKey        string `env:"KVSTORE_TLS_CLIENT_KEY" desc:"file of the client certificate's key"`
	TLSCACert           string `env:"KVSTORE_TLS_CACERT" desc:"file of CA certificates for checking the store's certificate, in addition to the system's"`
	TLSSkipVerification bool   `env:"KVSTORE_TLS_SKIP_HOSTNAME_VERIFICATION" envDefault:"false" desc:"do not check the host name in the store's certificate"`

	Timeout time.Duration `env:"KVSTORE_TIMEOUT" envDefault:"500ms" desc:"how long a call waits for the store"`

	PoolSize       int           `env:"KVSTORE_POOL_SIZE" envDefault:"10" desc:"maximum number of connections to a node; commands share connections, so the service opens at most one for four cores"`
	PipelineWindow time.Duration `env:"KVSTORE_PIPELINE_WINDOW" envDefault:"0" desc:"how long to collect commands before sending them; 0 = send at once"`
	PipelineLimit  int           `env:"KVSTORE_PIPELINE_LIMIT" envDefault:"0" desc:"how many commands of one request to send at a time; 0 = no limit"`

	// HealthNeedsConnection makes the health check call Client.Connected.
	HealthNeedsConnection bool `env:"KVSTORE_HEALTH_CHECK_ACTIVE_CONNECTION" envDefault:"false" desc:"report unhealthy if there is no working connection to the store"`

	prefix string // of the names of the variables; empty means KVSTORE_
}

// PerSecondConfig contains the connection settings of a second store that counts only per-second
// limits (contract L-41).
type PerSecondConfig struct {
	Enabled        bool          `env:"KVSTORE_PERSECOND" envDefault:"false" desc:"count per-second limits in a separate store"`
	URL            string        `env:"KVSTORE_PERSECOND_URL" secret:"true" desc:"as KVSTORE_URL"`
	SocketType     string        `env:"KVSTORE_PERSECOND_SOCKET_TYPE" envDefault:"tcp" desc:"as KVSTORE_SOCKET_TYPE"`
	Type           Topology      `env:"KVSTORE_PERSECOND_TYPE" envDefault:"single" desc:"as KVSTORE_TYPE"`
	Auth           string        `env:"KVSTORE_PERSECOND_AUTH" secret:"true" desc:"as KVSTORE_AUTH"`
	SentinelAuth   string        `env:"KVSTORE_PERSECOND_SENTINEL_AUTH" secret:"true" desc:"as KVSTORE_SENTINEL_AUTH"`
	TLS            bool          `env:"KVSTORE_PERSECOND_TLS" envDefault:"false" desc:"as KVSTORE_TLS; the files are the same"`
	Timeout        time.Duration `env:"KVSTORE_PERSECOND_TIMEOUT" desc:"as KVSTORE_TIMEOUT; default: the value of KVSTORE_TIMEOUT"`
	PoolSize       int           `env:"KVSTORE_PERSECOND_POOL_SIZE" envDefault:"10" desc:"as KVSTORE_POOL_SIZE"`
	PipelineWindow time.Duration `env:"KVSTORE_PERSECOND_PIPELINE_WINDOW" envDefault:"0" desc:"as KVSTORE_PIPELINE_WINDOW"`
	PipelineLimit  int           `env:"KVSTORE_PERSECOND_PIPELINE_LIMIT" envDefault:"0" desc:"as KVSTORE_PIPELINE_LIMIT"`
}

// Config returns the settings of the second store. The TLS files and the health setting are those
// of shared. So is the timeout if c has none.
func (c PerSecondConfig) Config(shared Config) Config {
	shared.URL, shared.SocketType, shared.Type = c.URL, c.SocketType, c.Type
	shared.Auth, shared.SentinelAuth, shared.TLS = c.Auth, c.SentinelAuth, c.TLS
	shared.PoolSize, shared.PipelineWindow, shared.PipelineLimit = c.PoolSize, c.PipelineWindow, c.PipelineLimit
	if c.Timeout != 0 {
		shared.Timeout = c.Timeout
	}
	shared.prefix = "KVSTORE_PERSECOND_"
	return shared
}

// Validate returns an error if a setting is malformed, also if the second store is not enabled.
func (c PerSecondConfig) Validate() error {
	own := c.Config(Config{Timeout: MaxTimeout})
	if c.Enabled && own.URL == "" {
		return own.invalidSetting("URL", "must be set when KVSTORE_PERSECOND is true")
	}
	return own.Validate()
}

// Validate returns an error that names the first malformed variable. An empty URL is valid and
// means that there is no store.
func (c Config) Validate() error {
	if c.URL != "" {
		if _, err := c.parseTarget(); err != nil {
			return err
		}
	}
	switch {
	case c.SocketType != "tcp" && c.SocketType != "unix":
		return c.invalidSetting("SOCKET_TYPE", `must be tcp or unix, not "`+c.SocketType+`"`)
	case c.Type != Single && c.Type != Sentinel && c.Type != Cluster:
		return c.invalidSetting("TYPE", `must be single, sentinel or cluster, not "`+string(c.Type)+`"`)
	case c.PoolSize < 1 || c.PoolSize > MaxPoolSize:
		return c.invalidSetting("POOL_SIZE", fmt.Sprintf("must be 1 to %d, not %d", MaxPoolSize, c.PoolSize))
	case c.PipelineWindow < 0:
		return c.invalidSetting("PIPELINE_WINDOW", "must not be negative")
	case c.PipelineLimit < 0:
		return c.invalidSetting("PIPELINE_LIMIT", "must not be negative")
	case c.Timeout < MinTimeout || c.Timeout > MaxTimeout:
		return c.invalidSetting("TIMEOUT", "must be 1ms to 1m")
	case c.PipelineWindow >= c.Timeout:
		return c.invalidSetting("PIPELINE_WINDOW", "must be shorter than the timeout")
	case c.usesTLS() && (c.TLSClientCert == "") != (c.TLSClientKey == ""):
		return errors.New("KVSTORE_TLS_CLIENT_CERT and KVSTORE_TLS_CLIENT_KEY must be set together")
	}
	return nil
}

// usesTLS reports whether KVSTORE_TLS or the scheme of the URL turns on TLS.
func (c Config) usesTLS() bool {
	t, err := c.parseTarget()
	return c.TLS || err == nil && t.tls
}

// invalidSetting returns an error that begins with the name of the variable.
func (c Config) invalidSetting(name, problem string) error {
	return errors.New(cmp.Or(c.prefix, "KVSTORE_") + name + " " + problem)
}

// target is a parsed URL.
type target struct {
	addresses []string
	master    string // the name by which the sentinels know the primary
	unix      bool
	tls       bool
	auth      credentials
	sentinel  credentials // of the sentinels, from their URLs
	database  int
}

type credentials struct{ username, password string }

// parseAuth parses <PASSWORD> or <USERNAME>:<PASSWORD>.
func parseAuth(s string) credentials {
	if username, password, ok := strings.Cut(s, ":"); ok {
		return credentials{username, password}
	}
	return credentials{password: s}
}

// parseTarget parses the URL. Its errors never repeat the URL, which may contain a password.
func (c Config) parseTarget() (target, error) {
	switch c.Type {
	case Sentinel:
		parts := strings.Split(c.URL, ",")
		master := strings.TrimSpace(parts[0])
		if len(parts) < 2 || master == "" {
			return target{}, c.invalidSetting("URL",
				"must be the master's name, then at least one host:port, for type sentinel")
		}
		t, err := c.parseAddresses(parts[1:])
		t.master, t.sentinel, t.auth = master, t.auth, credentials{}
		return t, err
	case Cluster:
		return c.parseAddresses(strings.Split(c.URL, ","))
	default:
		return c.parseSingleAddress()
	}
}

// parseAddresses parses the addresses of sentinels or cluster nodes, each host:port or a URL. All
// URLs must have the same user and password, because nodes that are discovered later have no URL.
func (c Config) parseAddresses(entries []string) (target, error) {
	var all target
	for i, entry := range entries {
		entry = strings.TrimSpace(entry)
		if strings.Contains(entry, "://") {
			one, err := c.parseURL(entry)
			switch {
			case err != nil:
				return target{}, err
			case one.unix || one.database != 0:
				return target{}, c.invalidSetting("URL",
					fmt.Sprintf("must name neither a socket nor a database for type %s, as number %d does",
						c.Type, i+1))
			case all.auth != (credentials{}) && one.auth != (credentials{}) && one.auth != all.auth:
				return target{}, c.invalidSetting("URL", "must have the same user and password in each of its URLs")
			case one.auth != (credentials{}):
				all.auth = one.auth
			}
			entry, all.tls = one.addresses[0], all.tls || one.tls
		}
		if !validAddress(entry) {
			return target{}, c.invalidSetting("URL",
				fmt.Sprintf("must list addresses as host:port for type %s; number %d is not one", c.Type, i+1))
		}
		all.addresses = append(all.addresses, entry)
	}
	return all, nil
}

func (c Config) parseSingleAddress() (target, error) {
	url := strings.TrimSpace(c.URL)
	switch {
	case strings.Contains(url, "://"):
		return c.parseURL(url)
	case strings.HasPrefix(url, "/") || strings.HasPrefix(url, "@") || c.SocketType == "unix":
		return target{addresses: []string{url}, unix: true}, nil
	case validAddress(url):
		return target{addresses: []string{url}}, nil
	default:
		return target{}, c.invalidSetting("URL",
			"must be host:port, a socket's path, or a redis://, rediss://, valkey://, valkeys:// or unix:// URL")
	}
}

func validAddress(s string) bool {
	host, port, err := net.SplitHostPort(s)
	if err != nil || host == "" {
		return false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}
