package valkey

import (
	"context"
	"crypto/tls"
	"math/bits"
	"net"
	"runtime"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/valkey-io/valkey-go"

	"github.com/tollgate-dev/tollgate/adapters/internal/tlsfiles"
)

const (
	// pingInterval is how long a connection may be idle before it is tested with a PING.
	pingInterval = time.Second
	// topologyRefresh is how often sentinels and cluster nodes are read again, in addition to every
	// sign of a change.
	topologyRefresh = 5 * time.Second
	// maxMoved is how often a command follows a slot that moved to another node.
	maxMoved   = 8
	bufferSize = 64 << 10
	// ringScale makes room on each connection for twice maxCalls. If the room were full of waiting
	// and abandoned calls, valkey-go would block callers beyond their deadline.
	ringScale = 11
	// coresEach is the number of cores whose calls one connection carries. With one connection for
	// two cores, instead of two, a call costs a tenth less of the service and half of the server.
	coresEach = 4
	// maxMultiplex is the maximum number of connections to a node, as a power of two.
	maxMultiplex   = 3
	maxConnections = 1 << maxMultiplex
)

// clientOptions returns the options of valkey-go. They are the same for all topologies, so that a
// dead connection is always detected within pingInterval and the timeout.
func (c Config) clientOptions(log *logrus.Entry) (valkey.ClientOption, error) {
	t, err := c.parseTarget()
	if err != nil {
		return valkey.ClientOption{}, err
	}
	if auth := parseAuth(c.Auth); auth != (credentials{}) {
		t.auth = auth
	}
	var secure *tls.Config
	var follow func() *tls.Config
	if c.TLS || t.tls {
		if follow, err = c.tlsFiles().Follow(log); err != nil {
			return valkey.ClientOption{}, err
		}
		secure = follow()
	}
	if sentinel := parseAuth(c.SentinelAuth); sentinel != (credentials{}) {
		t.sentinel = sentinel
	}
	dialer := net.Dialer{Timeout: c.Timeout, KeepAlive: pingInterval}
	o := valkey.ClientOption{
		InitAddress: t.addresses, SelectDB: t.database, TLSConfig: secure, Dialer: dialer,
		Username: t.auth.username, Password: t.auth.password,
		// No ClientName: proxies refuse CLIENT SETNAME, and valkey-go then closes the connection.
		// It ignores a refused CLIENT SETINFO.
		ClientSetInfo:      []string{"tollgate", "1"},
		ForceSingleClient:  c.Type == Single,
		ConnWriteTimeout:   c.Timeout,
		AlwaysPipelining:   true, // detects a connection that the server closed before it is used
		PipelineMultiplex:  c.multiplexExponent(),
		BlockingPoolSize:   c.PoolSize,
		MaxFlushDelay:      c.PipelineWindow,
		RingScaleEachConn:  ringScale,
		ReadBufferEachConn: bufferSize, WriteBufferEachConn: bufferSize,
		DisableCache: true,
		DisableRetry: true, // callWithRetries decides which commands may be repeated
		Sentinel: valkey.SentinelOption{
			MasterSet: t.master, Username: t.sentinel.username, Password: t.sentinel.password,
			Dialer: dialer, TLSConfig: secure, TopologyRefreshInterval: topologyRefresh,
		},
		ClusterOption: valkey.ClusterOption{ShardsRefreshInterval: topologyRefresh, MaxMovedRedirections: maxMoved},
	}
	connect := dialTCP
	switch {
	case t.unix:
		connect = func(ctx context.Context, path string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return d.DialContext(ctx, "unix", path)
		}
	case secure != nil: // each connection uses the current files
		connect = func(ctx context.Context, address string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return dialTCP(ctx, address, d, follow())
		}
	}
	o.DialCtxFn = guarded(connect)
	return o, nil
}

// multiplexExponent returns the number of connections to a node as a power of two: at most the pool
// size, and at most one for each coresEach cores, because more only make the pipelines smaller.
// valkey-go treats zero as its own default and a negative number as one connection.
func (c Config) multiplexExponent() int {
	n := bits.Len(uint(min(c.PoolSize, runtime.GOMAXPROCS(0)/coresEach))) - 1
	if n <= 0 {
		return -1
	}
	return min(n, maxMultiplex)
}

// tlsFiles returns the paths of the TLS files with the names of their settings.
func (c Config) tlsFiles() tlsfiles.ClientFiles {
	return tlsfiles.ClientFiles{
		Cert:    tlsfiles.ClientFile{Setting: "KVSTORE_TLS_CLIENT_CERT", Path: c.TLSClientCert},
		Key:     tlsfiles.ClientFile{Setting: "KVSTORE_TLS_CLIENT_KEY", Path: c.TLSClientKey},
		CA:      tlsfiles.ClientFile{Setting: "KVSTORE_TLS_CACERT", Path: c.TLSCACert},
		AnyHost: c.TLSSkipVerification,
	}
}
