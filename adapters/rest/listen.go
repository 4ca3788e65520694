package rest

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/internal/httpconn"
	"github.com/tollgate-dev/tollgate/adapters/internal/tlsfiles"
)

// Listen opens the listener for Serve, which closes it. The listener refuses connections beyond
// MAX_CONNECTIONS and MAX_CONNECTIONS_PER_ADDRESS, with TLS before the handshake. With TLS_CERT and
// TLS_KEY it accepts HTTP/1.1 over TLS 1.2 and later, and it uses changed files without a restart.
// A metric shows when the certificate expires.
func Listen(ctx context.Context, c Config, log *logrus.Entry, metrics prometheus.Registerer) (net.Listener, error) {
	secure, err := c.TLS.followFiles(log)
	if err != nil {
		return nil, err
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", c.Address())
	if err != nil {
		return nil, fmt.Errorf("HOST and PORT: %w", err)
	}
	o := httpconn.ListenerOptions{
		Name: "api", Max: c.MaxConnections, Metrics: metrics, Log: log, Refused: newRefusedCounter(metrics),
	}
	if c.MaxConnectionsPerAddress > 0 {
		o.PerClient, o.ClientOf = c.connectionsPerClient(), c.boundedClient
	}
	if secure == nil {
		o.Refusal = httpconn.TooManyConnections
	}
	l = httpconn.NewListener(l, o)
	if secure != nil {
		tlsfiles.ShowExpiry(metrics, "api", secure)
		return tls.NewListener(l, secure), nil
	}
	return l, nil
}

// connectionsPerClient returns how many connections one client may have open. Half of all stays
// free for others.
func (c Config) connectionsPerClient() int {
	return max(1, min(c.MaxConnectionsPerAddress, c.MaxConnections/2))
}

// boundedClient returns the client with an address. It returns false for a trusted proxy, whose
// connections are those of many clients.
func (c Config) boundedClient(a netip.Addr) (netip.Prefix, bool) {
	return clientOf(a, c.ClientIPv6Prefix), !Proxies(c.TrustedProxies).trusts(a)
}

// newRefusedCounter returns the counter of refused connections.
func newRefusedCounter(metrics prometheus.Registerer) prometheus.Counter {
	refused := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "tollgate_http_connections_refused_total",
		Help: "Connections that were closed at once because MAX_CONNECTIONS or MAX_CONNECTIONS_PER_ADDRESS was reached.",
	})
	metrics.MustRegister(refused)
	return refused
}

// followFiles returns the TLS configuration, or nil if TLS is off.
func (c TLSConfig) followFiles(log *logrus.Entry) (*tls.Config, error) {
	if c.Cert == "" {
		return nil, nil
	}
	return tlsfiles.FollowFiles(log, c.loadFiles, c.Cert, c.Key)
}

func (c TLSConfig) loadFiles() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, fmt.Errorf("TLS_CERT and TLS_KEY: %w", err)
	}
	return tlsfiles.ServerConfig(pair, "http/1.1"), nil
}

// Listening is a Server with its listener.
type Listening struct {
	*Server
	listener net.Listener
}

// Open returns New with the listener of Listen. The cleanup closes it.
func Open(ctx context.Context, c Config, d Ports) (*Listening, func(), error) {
	s := New(c, d)
	l, err := Listen(ctx, c, d.Log, d.Metrics)
	if err != nil {
		return nil, nil, err
	}
	return &Listening{s, l}, func() { _ = l.Close() }, nil // closed already if it was served
}

// Addresses returns the address of the listener by its name.
func (l *Listening) Addresses() logrus.Fields { return logrus.Fields{"api": l.Addr().String()} }

// Serve serves requests until Shutdown.
func (l *Listening) Serve() error { return l.Server.Serve(l.listener) }

// Addr returns the address of the listener.
func (l *Listening) Addr() net.Addr { return l.listener.Addr() }
