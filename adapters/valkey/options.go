package valkey

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"math/bits"
	"net"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/valkey-io/valkey-go"

	"github.com/tollgate-dev/tollgate/adapters/internal/deadline"
	"github.com/tollgate-dev/tollgate/adapters/internal/tlsfiles"
	"github.com/tollgate-dev/tollgate/ports/counter"
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

// defaultPort is used if a URL has no port.
const defaultPort = "6379"

// parseURL parses a URL with the scheme redis, rediss, valkey or valkeys, which may contain user,
// password and database number, or with the scheme unix and the path of a socket. The query may
// contain ?username=, ?password= and ?db=; the other parts of the URL take precedence.
func (c Config) parseURL(s string) (target, error) {
	u, err := url.Parse(s)
	if err != nil {
		// the cause would repeat the URL, which may contain a password
		return target{}, c.invalidSetting("URL", "is not a URL")
	}
	query := u.Query()
	t := target{auth: credentials{username: query.Get("username"), password: query.Get("password")}}
	if name := u.User.Username(); name != "" {
		t.auth.username = name
	}
	if password, ok := u.User.Password(); ok {
		t.auth.password = password
	}
	switch u.Scheme {
	case "redis", "valkey":
	case "rediss", "valkeys":
		t.tls = true
	case "unix":
		return c.parseSocket(u, t)
	default:
		return target{}, c.invalidSetting("URL", "has a scheme that is not redis, rediss, valkey, valkeys or unix")
	}
	address := net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), defaultPort))
	if !validAddress(address) {
		return target{}, c.invalidSetting("URL", "must name a host, and a port from 1 to 65535")
	}
	t.addresses = []string{address}
	t.database, err = c.parseDatabase(cmp.Or(strings.Trim(u.Path, "/"), query.Get("db")))
	return t, err
}

func (c Config) parseSocket(u *url.URL, t target) (target, error) {
	path := u.Host + u.Path
	if u.User != nil { // unix://user:password@/path
		path = u.Path
	}
	if path == "" {
		return target{}, c.invalidSetting("URL", "must name the socket's path")
	}
	t.addresses, t.unix = []string{path}, true
	var err error
	t.database, err = c.parseDatabase(u.Query().Get("db"))
	return t, err
}

func (c Config) parseDatabase(s string) (int, error) {
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil {
		return 0, c.invalidSetting("URL", "must have a number from 0 to 65535 as its database")
	}
	return int(n), nil
}

// Pair counts per-second limits in one store and all other limits in another (KVSTORE_PERSECOND).
// A call in the mode AllOrNone that needs both stores is not atomic: it first reads both, with the
// effect on contract L-10 that contract L-42 describes.
type Pair struct {
	second, other counter.Store
	deadlines     *deadline.Source
}

// NewPair returns a store that sends hits with a window of a second to second, and all others to
// other. All calls for the hits of a request together have the timeout.
func NewPair(second, other counter.Store, timeout time.Duration) *Pair {
	return &Pair{second, other, deadline.NewSource(timeout)}
}

// Count implements counter.Store. It calls both stores at the same time.
func (p *Pair) Count(ctx context.Context, hits []counter.Hit, results []counter.Result, m counter.Mode) error {
	b := batch{hits, results}
	if err := b.validate(); err != nil || len(hits) == 0 {
		return err
	}
	var seconds, others []int
	for i := range hits {
		if isPerSecond(&hits[i]) {
			seconds = append(seconds, i)
		} else {
			others = append(others, i)
		}
	}
	if len(seconds) == 0 || len(others) == 0 {
		return p.countInOne(ctx, b, m)
	}
	g := groups{b, [][]int{seconds, others}, 2, p.countInOne}
	ctx = p.deadlines.Bound(ctx)
	if m == counter.AllOrNone {
		return g.countAllOrNone(ctx)
	}
	return g.countEach(ctx, m)
}

// countInOne counts hits of one store.
func (p *Pair) countInOne(ctx context.Context, b batch, m counter.Mode) error {
	if isPerSecond(&b.hits[0]) {
		return p.second.Count(ctx, b.hits, b.results, m)
	}
	return p.other.Count(ctx, b.hits, b.results, m)
}

// Ping implements counter.Store. It fails if either store does not answer.
func (p *Pair) Ping(ctx context.Context) error {
	return errors.Join(p.second.Ping(ctx), p.other.Ping(ctx))
}

func isPerSecond(h *counter.Hit) bool { return h.Window == time.Second }
