// Package webhook sends events to webhooks over HTTP (contract C-51, C-53). It decides neither what
// is sent nor when it is sent again.
package webhook

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/wire"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/plugins/sdk/publicdial"
	"github.com/tollgate-dev/tollgate/ports/eventsender"
)

// Set provides the sender.
var Set = wire.NewSet(New, wire.Bind(new(eventsender.Sender), new(*Sender)))

const (
	deadline          = 10 * time.Second // of everything from the DNS lookup to the end of the response
	maxResponse       = 64 << 10         // bytes of the body of a response that are read
	maxResponseHeader = 16 << 10         // bytes of the header of a response
	// idleTimeout is short, because a receiver that closes a connection just before it is used
	// again makes an attempt fail.
	idleTimeout = 3 * time.Second
	userAgent   = "tollgate"
)

// signatureHeader is the header with the signature of a request (contract C-53).
const signatureHeader = "X-Tollgate-Signature"

// purgeHeader has the keys of a purge, with a space between two of them. Caches that purge by key
// read it (Fastly and the vmod xkey of Varnish), so that they need not read the body.
const purgeHeader = "Surrogate-Key"

// purgeKeys returns the keys in the body of a purge; empty without them.
func purgeKeys(body []byte) string {
	var purge struct {
		Data struct {
			Keys []string `json:"keys"`
		} `json:"data"`
	}
	_ = json.Unmarshal(body, &purge) // a body without keys purges nothing
	return strings.Join(purge.Data.Keys, " ")
}

// lookupTime bounds the DNS lookup that chooses the way to a receiver.
const lookupTime = time.Second

// Sender sends events. It implements [eventsender.Sender].
type Sender struct {
	config

	direct   *http.Transport
	loopback *http.Transport // for URLs of loopback hosts
	through  *http.Transport // by the proxy; nil without one
}

var _ eventsender.Sender = (*Sender)(nil)

// New returns a sender, and a function that closes its idle connections.
func New(c Config) (*Sender, func()) {
	s := newSender(config{Config: c, Deadline: deadline})
	return s, s.close
}

// config is a Config with what differs in tests.
type config struct {
	Config

	Deadline time.Duration
	Resolver *net.Resolver // nil means that of the system
	TLS      *tls.Config   // nil means the certificates of the system
}

func newSender(c config) *Sender {
	guarded := publicdial.New(publicdial.Config{Resolver: c.Resolver, Allowed: c.Networks, Timeout: c.Deadline})
	loopback := &net.Dialer{Timeout: c.Deadline, Resolver: c.Resolver, Control: requireLoopback}
	s := &Sender{config: c, direct: newTransport(c, guarded), loopback: newTransport(c, loopback.DialContext)}
	if proxy := c.proxyURL(); proxy != nil {
		plain := &net.Dialer{Timeout: c.Deadline, Resolver: c.Resolver} // the operator chose the proxy
		s.through = newTransport(c, plain.DialContext)
		s.through.Proxy = http.ProxyURL(proxy)
		s.through.OnProxyConnectResponse = checkProxy
	}
	return s
}

// newTransport returns a transport that connects with dial, without a proxy.
func newTransport(c config, dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Transport {
	return &http.Transport{
		DialContext: dial, TLSClientConfig: c.TLS.Clone(), TLSHandshakeTimeout: c.Deadline, ForceAttemptHTTP2: true,
		IdleConnTimeout: idleTimeout, DisableCompression: true, MaxResponseHeaderBytes: maxResponseHeader,
		HTTP2: &http.HTTP2Config{SendPingTimeout: idleTimeout, PingTimeout: idleTimeout},
	}
}

// close closes the idle connections.
func (s *Sender) close() {
	for _, t := range []*http.Transport{s.direct, s.loopback, s.through} {
		if t != nil {
			t.CloseIdleConnections()
		}
	}
}

// notLoopbackError is the error of a name of this machine that has another address.
type notLoopbackError struct{}

// Error returns a sentence.
func (notLoopbackError) Error() string { return "the address of a loopback host is not loopback" }

// requireLoopback is the control function of a dialer. It refuses addresses that are not loopback.
func requireLoopback(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !at.Addr().Unmap().IsLoopback() {
		return notLoopbackError{}
	}
	return nil
}

// Check implements [eventsender.Sender].
func (s *Sender) Check(ctx context.Context, u event.URL) error {
	_, err := s.choose(ctx, u)
	if refused := (*publicdial.RefusedError)(nil); errors.As(err, &refused) {
		return fault.Newf(fault.Invalid, "url must have a public address, or one in WEBHOOK_NETWORKS: events are not sent to %s",
			refused.Address)
	}
	return err
}

// choose returns the transport for a URL. Loopback hosts and hosts with an address in
// WEBHOOK_NETWORKS are connected to directly, others by the proxy if there is one. The proxy
// resolves their names itself, so every address that the name has here must be public. The error is
// a publicdial.RefusedError.
func (s *Sender) choose(ctx context.Context, u event.URL) (*http.Transport, error) {
	if u.IsLoopback() {
		return s.loopback, nil
	}
	host := u.Hostname()
	known := s.resolve(ctx, host)
	isInside := func(a netip.Addr) bool {
		return slices.ContainsFunc(s.Networks, func(n netip.Prefix) bool { return n.Contains(a.Unmap()) })
	}
	isPrivate := func(a netip.Addr) bool { return !publicdial.IsPublic(a) }
	private := slices.IndexFunc(known, isPrivate)
	switch {
	case slices.ContainsFunc(known, isInside):
		return s.direct, nil
	case private >= 0 && (s.through != nil || !slices.ContainsFunc(known, publicdial.IsPublic)):
		return nil, &publicdial.RefusedError{Address: known[private].String()}
	case s.through == nil:
		return s.direct, nil
	case !publicdial.IsPublicHost(host):
		return nil, &publicdial.RefusedError{Address: host}
	}
	return s.through, nil
}

// resolve returns the addresses of a host, or nil if its name cannot be resolved here.
func (s *Sender) resolve(ctx context.Context, host string) []netip.Addr {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	known, _ := cmp.Or(s.Resolver, net.DefaultResolver).LookupNetIP(ctx, "ip", host) // the proxy may resolve it
	return known
}

// Send implements [eventsender.Sender].
func (s *Sender) Send(ctx context.Context, r eventsender.Request) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Deadline)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL.String(), bytes.NewReader(r.Body))
	if err != nil {
		return 0, fault.Wrap(fault.Unavailable, "the URL is not valid", err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", userAgent)
	request.Header.Set(signatureHeader, r.Signature)
	if r.Type == event.Purge {
		request.Header.Set(purgeHeader, purgeKeys(r.Body))
	}
	transport, err := s.choose(ctx, r.URL)
	if err != nil {
		return 0, fault.New(fault.Unavailable, failureReason(err))
	}
	response, err := transport.RoundTrip(request) // unlike a client, it does not follow redirects
	if err != nil {
		return 0, fault.New(fault.Unavailable, failureReason(err)) // without its cause, which has addresses
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusSwitchingProtocols {
		// What is left of a longer body is not read: the connection closes. The status counts in
		// any case.
		_, _ = io.CopyN(io.Discard, response.Body, maxResponse)
	}
	return response.StatusCode, nil
}

// failureReason returns a clause that says why there was no response. It contains neither
// addresses, which may be internal, nor the path of the URL, which may be secret.
func failureReason(err error) string {
	var notPublic *publicdial.RefusedError
	var notLoopback notLoopbackError
	var certificate *tls.CertificateVerificationError
	var notTLS tls.RecordHeaderError
	var lookup *net.DNSError
	var connect *net.OpError
	var proxy proxyError
	switch {
	case errors.As(err, &notPublic):
		return "the host has an address that is not public, to which the service does not connect"
	case errors.As(err, &notLoopback):
		return "the host has an address that is not loopback, to which the service does not connect"
	case errors.As(err, &certificate):
		return "the receiver has no valid certificate"
	case errors.As(err, &notTLS):
		return "the receiver does not use TLS"
	case errors.As(err, &proxy):
		return proxy.Error()
	case isTimeout(err):
		return "there was no response in time"
	case errors.As(err, &connect) && connect.Op == "proxyconnect":
		return "the connection to the proxy failed"
	case errors.As(err, &lookup):
		return "the DNS lookup failed"
	case errors.As(err, &connect) && connect.Op == "dial":
		return "the connection failed"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE):
		return "the connection ended without a response"
	}
	return "the receiver sent no valid response"
}

// isTimeout reports whether a response did not arrive in time, or the caller stopped waiting for
// it.
func isTimeout(err error) bool {
	var e net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) ||
		errors.As(err, &e) && e.Timeout()
}

// Config contains the settings of requests to webhooks (contract C-53).
type Config struct {
	Networks []netip.Prefix `env:"WEBHOOK_NETWORKS" desc:"networks in which receivers of webhooks may be, although they are not public; they are connected to without HTTPS_PROXY"`
	Proxy    string         `env:"HTTPS_PROXY" secret:"true" desc:"the http or https URL of a proxy for requests to webhooks; the plugins have their own (docs/plugins.md)"`
}

// Validate returns an error that names the variable whose value is malformed. It does not show the
// URL of the proxy, which may have a password.
func (c Config) Validate() error {
	for _, network := range c.Networks {
		if !network.IsValid() {
			return fmt.Errorf("WEBHOOK_NETWORKS: %v is not a network", network)
		}
	}
	if c.Proxy != "" && c.proxyURL() == nil {
		return errors.New("HTTPS_PROXY must be the http or https URL of a proxy")
	}
	return nil
}

// proxyURL returns the URL of the proxy; nil without one. Its scheme may be left out.
func (c Config) proxyURL() *url.URL {
	text := c.Proxy
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil
	}
	return u
}

// proxyError is the status with which a proxy has refused to connect to a receiver.
type proxyError int

// Error returns a sentence.
func (e proxyError) Error() string {
	return fmt.Sprintf("the proxy refused the connection with the status %d", int(e))
}

// checkProxy returns an error unless a proxy has connected.
func checkProxy(_ context.Context, _ *url.URL, _ *http.Request, response *http.Response) error {
	if response.StatusCode != http.StatusOK {
		return proxyError(response.StatusCode)
	}
	return nil
}
