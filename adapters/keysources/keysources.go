// Package keysources reads the public keys that domains have published: TXT reads TXT records from
// a DNS server, and Pages reads a page of the domain over https. Neither parses a key.
package keysources

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/internal/flight"
	"github.com/tollgate-dev/tollgate/adapters/internal/tlsfiles"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/ports/domainkeys"
)

// attemptTimeout is the time limit of one DNS question over UDP. It is shorter than the deadlines,
// so that one lost packet or one broken server of several does not make a lookup fail.
const attemptTimeout = 2 * time.Second

// newResolver returns a resolver that calls the DNS server, or the servers of the system if server
// is empty. It makes another attempt if there is no answer within the time limit.
func newResolver(server string, attempt time.Duration) *net.Resolver {
	dialer := new(net.Dialer)
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		if server != "" {
			address = server
		}
		conn, err := dialer.DialContext(ctx, network, address)
		if datagrams, ok := conn.(*net.UDPConn); ok && err == nil {
			return &attemptConn{UDPConn: datagrams, timeout: attempt}, nil
		}
		return conn, err
	}}
}

// attemptConn is a connection whose deadlines are at most a timeout away. It embeds *net.UDPConn,
// because a resolver uses the format of UDP only on a [net.PacketConn].
type attemptConn struct {
	*net.UDPConn
	timeout time.Duration
}

// SetDeadline implements [net.Conn].
func (c *attemptConn) SetDeadline(t time.Time) error {
	if soonest := time.Now().Add(c.timeout); t.IsZero() || soonest.Before(t) {
		t = soonest
	}
	return c.UDPConn.SetDeadline(t)
}

// isNotFound reports whether a DNS server has answered that the name or its records do not exist.
func isNotFound(err error) bool {
	var e *net.DNSError
	return errors.As(err, &e) && e.IsNotFound
}

// isTimeout reports whether an answer did not arrive in time, or the caller stopped waiting for it.
func isTimeout(err error) bool {
	var e net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) ||
		errors.As(err, &e) && e.Timeout()
}

// absoluteName returns the name with a dot at its end, so that a resolver does not try it below the
// search domains of the system.
func absoluteName(host string) string { return host + "." }

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

// sharedRead reads what a domain has published once for all callers that wait for it at the same time.
type sharedRead struct {
	flight flight.Group[[]string]
	read   func(ctx context.Context, d publisher.Domain) ([]string, error)
}

// join returns the result of a read, in memory of its own.
func (s *sharedRead) join(ctx context.Context, d publisher.Domain) ([]string, error) {
	texts, err := s.flight.Join(ctx, d.String(), func(ctx context.Context) ([]string, error) { return s.read(ctx, d) })
	return slices.Clone(texts), err
}

// The bounds of TXT records (contract P-6). A record with keys is much shorter, and a domain has
// other records too.
const (
	txtDeadline = 5 * time.Second
	maxTexts    = 64
	maxText     = 4096 // bytes
)

// TXT reads the TXT records of domains. It implements
// [github.com/tollgate-dev/tollgate/ports/domainkeys.Source].
type TXT struct {
	resolver *net.Resolver
	shared   sharedRead
}

// NewTXT returns a source that calls the DNS server of the settings.
func NewTXT(c Config) *TXT { return txtWithin(c, txtDeadline, attemptTimeout) }

func txtWithin(c Config, deadline, attempt time.Duration) *TXT {
	t := &TXT{resolver: newResolver(c.Resolver, attempt)}
	t.shared.flight.Deadline, t.shared.read = deadline, t.lookup
	return t
}

// Texts returns the TXT records of the domain: at most 64, without those of more than 4096 bytes.
// It returns an empty list if the domain does not exist or has no TXT records, and
// fault.Unavailable after any other failure.
func (t *TXT) Texts(ctx context.Context, d publisher.Domain) ([]string, error) {
	texts, err := t.shared.join(ctx, d)
	switch {
	case err == nil:
		return texts, nil
	case isNotFound(err):
		return nil, nil
	}
	reason := "the DNS lookup failed"
	if isTimeout(err) {
		reason = "the DNS server did not answer in time"
	}
	return nil, fault.Wrap(fault.Unavailable,
		fmt.Sprintf("the TXT records of %s cannot be read now: %s; try again later", d, reason), err)
}

func (t *TXT) lookup(ctx context.Context, d publisher.Domain) ([]string, error) {
	records, err := t.resolver.LookupTXT(ctx, absoluteName(d.String()))
	if err != nil {
		return nil, fmt.Errorf("look up TXT records: %w", err)
	}
	var texts []string
	for _, record := range records {
		if len(record) <= maxText && len(texts) < maxTexts {
			texts = append(texts, record)
		}
	}
	return texts, nil
}
