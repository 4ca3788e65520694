package toollist

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/plugins/sdk/publicdial"
)

// Remote is a remote, and how to read its list.
type Remote struct {
	URL     string
	Header  map[string]string // sent with each request to the host of the URL, and to no other
	Timeout time.Duration     // RemoteTimeout, unless a test cannot wait so long

	// dial connects in place of the dialler of the person, and without a proxy, if it is not nil. Errors then have no
	// addresses, which may be internal.
	dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// ReadRemote reads the list of a remote: by streamable HTTP, then with server-sent events if that cannot connect. It
// returns fault.Invalid for what is no address, or that would get headers without TLS, and fault.Unavailable, with
// a sentence that names the remote, for a server whose list cannot be read.
func ReadRemote(ctx context.Context, r Remote) (tools.List, error) {
	address, err := url.Parse(r.URL)
	if err != nil || address.Host == "" || address.User != nil || address.Scheme != "https" && address.Scheme != "http" {
		return tools.List{}, fault.New(fault.Invalid, "the address of a remote has the form https://host/path")
	}
	if len(r.Header) > 0 && address.Scheme == "http" && !publicdial.IsLoopback(address.Hostname()) {
		return tools.List{}, fault.New(fault.Invalid, "headers are sent by https only: others on the network path could read them")
	}
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	pool := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxResponseHeaderBytes: 64 << 10}
	if r.dial != nil {
		pool.Proxy, pool.DialContext = nil, r.dial
	}
	defer pool.CloseIdleConnections()
	guard := &hostGuard{next: pool, address: address, header: r.Header, ended: ctx.Err, guarded: r.dial != nil}
	guard.left.Store(maxBytes)
	client := &http.Client{Transport: guard, Timeout: r.Timeout}
	streamable := &tap{Transport: &mcp.StreamableClientTransport{
		Endpoint: r.URL, HTTPClient: client, MaxRetries: -1, DisableStandaloneSSE: true, MaxEventSize: maxBytes,
	}}
	guard.version = streamable.protocolVersion
	session, err := connect(ctx, streamable)
	if err == nil {
		defer func() { _ = session.Close() }() // everything was read, or it fails anyway
		list, err := readSession(ctx, session, streamable)
		return list, explain(ctx, r.URL, r.Timeout, guard.reason(err))
	}
	if ctx.Err() == nil && guard.broken.Load() == nil {
		events := &tap{Transport: &mcp.SSEClientTransport{Endpoint: r.URL, HTTPClient: client, MaxEventSize: maxBytes}}
		guard.version = events.protocolVersion
		list, second := readList(ctx, events)
		if second == nil {
			return list, nil
		}
	}
	return tools.List{}, explain(ctx, r.URL, r.Timeout, guard.reason(err))
}

// What a server may not do.
var (
	errOtherHost = errors.New("it leads to another host")
	errTooMuch   = errors.New("it sends more than 4 MiB")
	errNotPublic = errors.New("its address is neither public nor in TOOLS_NETWORKS")
)

// hostGuard sends requests to one host only, with headers, and bounds what all answers have together.
type hostGuard struct {
	next    http.RoundTripper
	address *url.URL
	header  map[string]string
	version func() string // of the protocol; empty before it is known
	ended   func() error  // whether the read has
	guarded bool          // errors have no addresses
	left    atomic.Int64  // bytes
	broken  atomic.Pointer[error]
}

// RoundTrip implements [http.RoundTripper].
func (g *hostGuard) RoundTrip(r *http.Request) (*http.Response, error) {
	err := g.ended()
	if err == nil && (r.URL.Scheme != g.address.Scheme || r.URL.Host != g.address.Host) {
		err = errOtherHost
		g.broken.Store(&errOtherHost)
	}
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // it is not sent
		}
		return nil, err
	}
	r = r.Clone(r.Context())
	for name, value := range g.header {
		r.Header.Set(name, value)
	}
	const versionHeader = "Mcp-Protocol-Version"
	if v := g.version(); v != "" && r.Header.Get(versionHeader) == "" {
		r.Header.Set(versionHeader, v)
	}
	resp, err := g.next.RoundTrip(r)
	if err != nil {
		return nil, g.describe(err)
	}
	resp.Body = guardedBody{resp.Body, g}
	return resp, nil
}

// describe returns the error of a connection. That of a guarded one has no addresses.
func (g *hostGuard) describe(err error) error {
	var (
		refused *publicdial.RefusedError
		lookup  *net.DNSError
		dial    *net.OpError
	)
	switch {
	case !g.guarded:
	case errors.As(err, &refused):
		g.broken.Store(&errNotPublic)
		return errNotPublic
	case errors.As(err, &lookup):
		return errors.New("its name cannot be resolved")
	case errors.As(err, &dial):
		return errors.New("it accepts no connection")
	}
	return err
}

// reason returns the rule that a server broke, or else the error.
func (g *hostGuard) reason(err error) error {
	if broken := g.broken.Load(); err != nil && broken != nil {
		return *broken
	}
	return err
}

// guardedBody is the body of an answer.
type guardedBody struct {
	io.ReadCloser

	guard *hostGuard
}

// Read implements [io.Reader].
func (b guardedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.guard.left.Add(-int64(n)) < 0 {
		b.guard.broken.Store(&errTooMuch)
		return 0, errTooMuch
	}
	return n, err
}
