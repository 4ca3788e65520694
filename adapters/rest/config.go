package rest

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"
)

// Config holds the settings of the API listener.
type Config struct {
	Host             string         `env:"HOST" envDefault:"0.0.0.0" desc:"address that the API listens on"`
	Port             int            `env:"PORT" envDefault:"3000" desc:"port that the API listens on; 0 = any free port"`
	TrustedProxies   []netip.Prefix `env:"TRUSTED_PROXIES" desc:"networks of proxies whose X-Forwarded-For, X-Forwarded-Host and X-Forwarded-Proto are used"`
	ClientIPv6Prefix int            `env:"CLIENT_IPV6_PREFIX" envDefault:"64" desc:"number of leading bits of an IPv6 address, 1 to 128, that identify one client for the limits per address and for the usage in the methods listing: one customer usually has all addresses with the same prefix"`
	ReadTimeout      time.Duration  `env:"READ_TIMEOUT" envDefault:"30s" desc:"how long a client may take to send a request; it may take twice as long to receive a response, and leave a connection idle four times as long"`
	MaxConnections   int            `env:"MAX_CONNECTIONS" envDefault:"10000" desc:"maximum number of open connections"`
	TLS              TLSConfig

	MaxConnectionsPerAddress int `env:"MAX_CONNECTIONS_PER_ADDRESS" envDefault:"1000" desc:"maximum number of open connections of one address, or of one IPv6 network (CLIENT_IPV6_PREFIX), and at most half of MAX_CONNECTIONS; for a further connection the oldest idle one of the address is closed, and if none is idle the new one gets 503; does not apply to TRUSTED_PROXIES; 0 = no such bound"`
}

// TLSConfig holds the settings of TLS.
type TLSConfig struct {
	Cert       string        `env:"TLS_CERT" desc:"file with the certificate chain of the API listener, which then accepts only TLS; reloaded on change"`
	Key        string        `env:"TLS_KEY" desc:"file with the private key of TLS_CERT; reloaded on change"`
	HSTSMaxAge time.Duration `env:"HSTS_MAX_AGE" envDefault:"8760h" desc:"how long browsers must use only TLS with this host, on every port (Strict-Transport-Security in responses over TLS, also behind a trusted proxy); 0 = no header"`
}

func (c TLSConfig) validate() error {
	switch {
	case c.Cert != "" && c.Key == "":
		return errors.New("TLS_KEY: it must be set if TLS_CERT is set")
	case c.Key != "" && c.Cert == "":
		return errors.New("TLS_CERT: it must be set if TLS_KEY is set")
	case c.HSTSMaxAge < 0:
		return fmt.Errorf("HSTS_MAX_AGE: %v is negative", c.HSTSMaxAge)
	}
	return nil
}

// hstsHeader returns the value of Strict-Transport-Security (RFC 6797, 6.1); empty for no header.
func (c TLSConfig) hstsHeader() string {
	if c.HSTSMaxAge < time.Second {
		return ""
	}
	return "max-age=" + strconv.FormatInt(int64(c.HSTSMaxAge/time.Second), 10)
}

// Validate returns an error that names the first setting that is out of range.
func (c Config) Validate() error {
	if c.Port < 0 || c.Port > 65535 {
		return fmt.Errorf("PORT: %d is not a port number from 0 to 65535", c.Port)
	}
	if c.ClientIPv6Prefix < 1 || c.ClientIPv6Prefix > 128 {
		return fmt.Errorf("CLIENT_IPV6_PREFIX: %d is not a prefix length from 1 to 128", c.ClientIPv6Prefix)
	}
	for _, network := range c.TrustedProxies {
		if !network.IsValid() { // the form of an empty item
			return errors.New("TRUSTED_PROXIES: it has an empty item")
		}
	}
	if c.MaxConnections < 1 {
		return fmt.Errorf("MAX_CONNECTIONS: %d is less than 1", c.MaxConnections)
	}
	if c.MaxConnectionsPerAddress < 0 {
		return fmt.Errorf("MAX_CONNECTIONS_PER_ADDRESS: %d is negative", c.MaxConnectionsPerAddress)
	}
	if c.ReadTimeout <= 0 {
		return fmt.Errorf("READ_TIMEOUT: %v is not a positive duration", c.ReadTimeout)
	}
	return c.TLS.validate()
}

// Address returns host:port.
func (c Config) Address() string { return net.JoinHostPort(c.Host, strconv.Itoa(c.Port)) }

// The maximum sizes of a request in bytes (contract O-11).
const (
	MaxListBody   = 1<<20 + 64<<10 // the body of a request with a tool list; no body is larger
	MaxBody       = 1 << 20        // the body of a request with a server document
	MaxRecordBody = 32 << 10       // the body of a request with a token, a comment or another record
	MaxSecretBody = 16 << 10       // the body of a request that anybody may send to sign in, and of the like
	maxHeader     = 16 << 10
)
