package keysources

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"github.com/tollgate-dev/tollgate/adapters/internal/tlsfiles"
	"github.com/tollgate-dev/tollgate/ports/domainkeys"
)

// Config contains the settings of the proofs of domains (contract P-6, P-7).
type Config struct {
	Resolver string         `env:"PUBLISHER_DNS_RESOLVER" desc:"DNS server, host:port, that proofs of domains use; default: those of the system"`
	Networks []netip.Prefix `env:"PUBLISHER_PROOF_NETWORKS" desc:"networks whose addresses a domain may have when its page with keys is read, although they are not public"`
	CAFile   string         `env:"PUBLISHER_PROOF_CA" desc:"file of CA certificates for checking the certificate of a domain when its page with keys is read, in addition to the system's; read at the start"`
}

// Validate returns an error that names the variable whose value is malformed.
func (c Config) Validate() error {
	if c.Resolver != "" && !isHostPort(c.Resolver) {
		return fmt.Errorf("PUBLISHER_DNS_RESOLVER: %q is not host:port, for example 192.0.2.1:53", c.Resolver)
	}
	for _, network := range c.Networks {
		if !network.IsValid() {
			return fmt.Errorf("PUBLISHER_PROOF_NETWORKS: %v is not a network", network)
		}
	}
	return nil
}

func isHostPort(s string) bool {
	host, port, err := net.SplitHostPort(s)
	number, numberErr := strconv.ParseUint(port, 10, 16)
	return err == nil && numberErr == nil && host != "" && number > 0
}

// tlsFiles returns the path of the TLS file with the name of its setting.
func (c Config) tlsFiles() tlsfiles.ClientFiles {
	return tlsfiles.ClientFiles{CA: tlsfiles.ClientFile{Setting: "PUBLISHER_PROOF_CA", Path: c.CAFile}}
}

// New returns the sources of keys that domains have published.
func New(c Config) (domainkeys.Sources, error) {
	pages, err := NewPages(c)
	if err != nil {
		return domainkeys.Sources{}, err
	}
	return domainkeys.Sources{DNS: NewTXT(c), HTTP: pages}, nil
}
