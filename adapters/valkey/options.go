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
	// pingGap is how long a connection may be silent before it is tried.
	pingGap = time.Second
	// topologyRefresh is how often sentinels and cluster nodes are asked who is the master, besides on every sign of a
	// change.
	topologyRefresh = 5 * time.Second
	// maxMoved bounds how often a command follows the slots of a cluster that is being rearranged.
	maxMoved   = 8
	bufferSize = 64 << 10
	// ringScale makes room on each connection for twice maxCalls: valkey-go would hold callers beyond their deadline when
	// the room is filled, by those that wait and those that gave up waiting.
	ringScale = 11
	// maxMultiplex is the greatest number of connections to a node, as a power of two.
	maxMultiplex   = 3
	maxConnections = 1 << maxMultiplex
)

// options returns the client's options. They are the same for all topologies, so that a dead connection is noticed within
// pingGap and the deadline, whoever uses it.
func (c Config) options(log *logrus.Entry) (valkey.ClientOption, error) {
	t, err := c.target()
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
	dialer := net.Dialer{Timeout: c.Timeout, KeepAlive: pingGap}
	o := valkey.ClientOption{
		InitAddress: t.addresses, SelectDB: t.database, TLSConfig: secure, Dialer: dialer,
		Username: t.auth.username, Password: t.auth.password,
		// No ClientName: valkey-go gives a connection up when CLIENT SETNAME is refused, as proxies do. It forgives CLIENT SETINFO.
		ClientSetInfo:      []string{"tollgate", "1"},
		ForceSingleClient:  c.Type == Single,
		ConnWriteTimeout:   c.Timeout,
		AlwaysPipelining:   true, // a connection that the server closed is then known before it is used
		PipelineMultiplex:  c.multiplex(),
		BlockingPoolSize:   c.PoolSize,
		MaxFlushDelay:      c.PipelineWindow,
		RingScaleEachConn:  ringScale,
		ReadBufferEachConn: bufferSize, WriteBufferEachConn: bufferSize,
		DisableCache: true,
		DisableRetry: true, // retrying is decided here, by what a repeated command does
		Sentinel: valkey.SentinelOption{
			MasterSet: t.master, Username: t.sentinel.username, Password: t.sentinel.password,
			Dialer: dialer, TLSConfig: secure, TopologyRefreshInterval: topologyRefresh,
		},
		ClusterOption: valkey.ClusterOption{ShardsRefreshInterval: topologyRefresh, MaxMovedRedirections: maxMoved},
	}
	if secure != nil { // the files are read for each connection
		o.DialCtxFn = func(ctx context.Context, address string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return dialTCP(ctx, address, d, follow())
		}
	}
	if t.unix {
		o.DialCtxFn = func(ctx context.Context, path string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return d.DialContext(ctx, "unix", path)
		}
	}
	return o, nil
}

// multiplex returns the connections to a node as a power of two: at most the pool's size, and at most one per core, since
// more of them only make for smaller pipelines. valkey-go takes zero as "decide yourself" and a negative as one.
func (c Config) multiplex() int {
	n := bits.Len(uint(min(c.PoolSize, runtime.GOMAXPROCS(0)))) - 1
	if n <= 0 {
		return -1
	}
	return min(n, maxMultiplex)
}

// tlsFiles are the files of TLS.
func (c Config) tlsFiles() tlsfiles.ClientFiles {
	return tlsfiles.ClientFiles{
		Cert:    tlsfiles.ClientFile{Setting: "KVSTORE_TLS_CLIENT_CERT", Path: c.TLSClientCert},
		Key:     tlsfiles.ClientFile{Setting: "KVSTORE_TLS_CLIENT_KEY", Path: c.TLSClientKey},
		CA:      tlsfiles.ClientFile{Setting: "KVSTORE_TLS_CACERT", Path: c.TLSCACert},
		AnyHost: c.TLSSkipVerification,
	}
}
