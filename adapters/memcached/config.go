package memcached

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/internal/tlsfiles"
)

const (
	// maxNodes is the maximum number of nodes in a list or an SRV record.
	maxNodes = 256
	// MaxConnections is the maximum number of connections to one node.
	MaxConnections = 64
)

// Config contains the connection settings of the nodes (contract L-39).
type Config struct {
	HostPort   []string      `env:"MEMSTORE_HOST_PORT" desc:"the memcached nodes, each host:port, the same list on all instances; not together with MEMSTORE_SRV"`
	SRV        string        `env:"MEMSTORE_SRV" desc:"SRV record that lists the memcached nodes, for example _memcache._tcp.example.org; not together with MEMSTORE_HOST_PORT"`
	SRVRefresh time.Duration `env:"MEMSTORE_SRV_REFRESH" envDefault:"0" desc:"how often MEMSTORE_SRV is looked up again; 0 = once"`

	MaxIdleConns int `env:"MEMSTORE_MAX_IDLE_CONNS" envDefault:"2" desc:"number of connections that are kept to each memcached node, 1 to 64; all calls share them"`

	TLS                 bool   `env:"MEMSTORE_TLS" envDefault:"false" desc:"use TLS to memcached"`
	TLSClientCert       string `env:"MEMSTORE_TLS_CLIENT_CERT" desc:"file of the client certificate"`
	TLSClientKey        string `env:"MEMSTORE_TLS_CLIENT_KEY" desc:"file of the client certificate's key"`
	TLSCACert           string `env:"MEMSTORE_TLS_CACERT" desc:"file of CA certificates for checking memcached's certificate, in addition to the system's"`
	TLSSkipVerification bool   `env:"MEMSTORE_TLS_SKIP_HOSTNAME_VERIFICATION" envDefault:"false" desc:"do not check the host name in memcached's certificate"`

	// Timeout is the maximum time of a call: KVSTORE_TIMEOUT, which all counter stores share
	// (contract L-26).
	Timeout time.Duration

	// resolver looks up MEMSTORE_SRV; nil means the resolver of the system. Tests set their own.
	resolver *net.Resolver
}

// Configured reports whether the settings name any nodes.
func (c Config) Configured() bool { return len(c.HostPort) > 0 || c.SRV != "" }

// Validate returns an error that names the first malformed variable. An empty list of nodes is
// valid; a caller that selects memcached must also check Configured.
func (c Config) Validate() error {
	switch {
	case len(c.HostPort) > 0 && c.SRV != "":
		return errors.New("MEMSTORE_HOST_PORT and MEMSTORE_SRV are both set: give one")
	case len(c.HostPort) > maxNodes:
		return fmt.Errorf("MEMSTORE_HOST_PORT lists %d nodes; the maximum is %d", len(c.HostPort), maxNodes)
	case strings.ContainsAny(c.SRV, " \t,:/"):
		return fmt.Errorf(
			"MEMSTORE_SRV must be the name of one record, for example _memcache._tcp.example.org, not %q", c.SRV)
	case c.SRVRefresh < 0:
		return errors.New("MEMSTORE_SRV_REFRESH must not be negative")
	case c.MaxIdleConns < 1 || c.MaxIdleConns > MaxConnections:
		return fmt.Errorf("MEMSTORE_MAX_IDLE_CONNS must be 1 to %d, not %d", MaxConnections, c.MaxIdleConns)
	case c.TLS && (c.TLSClientCert == "") != (c.TLSClientKey == ""):
		return errors.New("MEMSTORE_TLS_CLIENT_CERT and MEMSTORE_TLS_CLIENT_KEY must be set together")
	}
	_, err := c.nodeNames()
	return err
}

// nodeNames returns the nodes of MEMSTORE_HOST_PORT by the names that determine which keys they
// have.
func (c Config) nodeNames() ([]string, error) {
	list := make([]string, len(c.HostPort))
	seen := make(map[string]bool, len(list))
	for i, given := range c.HostPort {
		host, port, err := net.SplitHostPort(strings.TrimSpace(given))
		n, wrong := strconv.ParseUint(port, 10, 16)
		if err != nil || host == "" || wrong != nil || n == 0 {
			return nil, fmt.Errorf("MEMSTORE_HOST_PORT must list addresses as host:port; number %d is not one", i+1)
		}
		list[i] = nodeName(host, uint16(n))
		if seen[list[i]] {
			return nil, fmt.Errorf("MEMSTORE_HOST_PORT lists %s twice", list[i])
		}
		seen[list[i]] = true
	}
	return list, nil
}

// nodeName returns the address of a node in the form that all instances must agree on.
func nodeName(host string, port uint16) string {
	return net.JoinHostPort(strings.ToLower(strings.TrimSuffix(host, ".")), strconv.Itoa(int(port)))
}

// tlsFiles returns the paths of the TLS files with the names of their settings.
func (c Config) tlsFiles() tlsfiles.ClientFiles {
	return tlsfiles.ClientFiles{
		Cert:    tlsfiles.ClientFile{Setting: "MEMSTORE_TLS_CLIENT_CERT", Path: c.TLSClientCert},
		Key:     tlsfiles.ClientFile{Setting: "MEMSTORE_TLS_CLIENT_KEY", Path: c.TLSClientKey},
		CA:      tlsfiles.ClientFile{Setting: "MEMSTORE_TLS_CACERT", Path: c.TLSCACert},
		AnyHost: c.TLSSkipVerification,
	}
}
