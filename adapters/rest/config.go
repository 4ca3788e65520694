package rest

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"
)

// The bounds of a request (decisions 0).
const (
	MaxBody   = 1 << 20
	maxHeader = 16 << 10
)

// Config is what an operator may set of the API listener.
type Config struct {
	Host           string         `env:"HOST" envDefault:"0.0.0.0" desc:"address the API listens on"`
	Port           int            `env:"PORT" envDefault:"3000" desc:"port the API listens on; 0 takes a free one"`
	TrustedProxies []netip.Prefix `env:"TRUSTED_PROXIES" desc:"networks of proxies whose X-Forwarded-For and X-Forwarded-Proto count"`
	ReadTimeout    time.Duration  `env:"READ_TIMEOUT" envDefault:"30s" desc:"how long a client may take to send a request"`
	WriteTimeout   time.Duration  `env:"WRITE_TIMEOUT" envDefault:"60s" desc:"how long a client may take to read an answer"`
	IdleTimeout    time.Duration  `env:"IDLE_TIMEOUT" envDefault:"120s" desc:"how long an idle connection stays open"`
	MaxConnections int            `env:"MAX_CONNECTIONS" envDefault:"10000" desc:"most connections at once"`
}

// Validate names the first setting that is out of range.
func (c Config) Validate() error {
	if c.Port < 0 || c.Port > 65535 {
		return fmt.Errorf("PORT: %d is not a port, 0 to 65535", c.Port)
	}
	if c.MaxConnections < 1 {
		return fmt.Errorf("MAX_CONNECTIONS: %d is less than 1", c.MaxConnections)
	}
	for name, d := range map[string]time.Duration{
		"READ_TIMEOUT": c.ReadTimeout, "WRITE_TIMEOUT": c.WriteTimeout, "IDLE_TIMEOUT": c.IdleTimeout,
	} {
		if d <= 0 {
			return fmt.Errorf("%s: %v is not a positive duration", name, d)
		}
	}
	return nil
}

// Address returns host and port as a listener takes them.
func (c Config) Address() string { return net.JoinHostPort(c.Host, strconv.Itoa(c.Port)) }
