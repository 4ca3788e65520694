// Package webhook sends events to webhooks over HTTP (contract C-51, C-53). It decides neither what
// is sent nor when it is sent again.
package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
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

// Sender sends events. It implements [eventsender.Sender].
type Sender struct {
	deadline time.Duration
	public   *http.Transport
	loopback *http.Transport // for URLs of loopback hosts
}

var _ eventsender.Sender = (*Sender)(nil)

// New returns a sender, and a function that closes its idle connections.
func New() (*Sender, func()) {
	s := newSender(config{Deadline: deadline})
	return s, s.close
}

// config has what differs in tests.
type config struct {
	Deadline time.Duration
	Resolver *net.Resolver  // nil means that of the system
	Allowed  []netip.Prefix // addresses that count as public
	TLS      *tls.Config    // nil means the certificates of the system
}

func newSender(c config) *Sender {
	public := publicdial.New(publicdial.Config{Resolver: c.Resolver, Allowed: c.Allowed, Timeout: c.Deadline})
	loopback := &net.Dialer{Timeout: c.Deadline, Resolver: c.Resolver, Control: requireLoopback}
	return &Sender{c.Deadline, newTransport(c, public), newTransport(c, loopback.DialContext)}
}

// newTransport returns a transport that connects with dial. It has no proxy, because a proxy would
// resolve the name itself.
func newTransport(c config, dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Transport {
	return &http.Transport{
		DialContext: dial, TLSClientConfig: c.TLS.Clone(), TLSHandshakeTimeout: c.Deadline, ForceAttemptHTTP2: true,
		IdleConnTimeout: idleTimeout, DisableCompression: true, MaxResponseHeaderBytes: maxResponseHeader,
		HTTP2: &http.HTTP2Config{SendPingTimeout: idleTimeout, PingTimeout: idleTimeout},
	}
}

// close closes the idle connections.
func (s *Sender) close() {
	s.public.CloseIdleConnections()
	s.loopback.CloseIdleConnections()
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
func (*Sender) Check(u event.URL) error {
	parsed, err := url.Parse(u.String())
	if err != nil {
		return fault.Wrap(fault.Invalid, "url is not a URL", err)
	}
	if host := parsed.Hostname(); !u.IsLoopback() && isPrivateAddress(host) {
		return fault.Newf(fault.Invalid, "url must have a public address: events are not sent to %s", host)
	}
	return nil
}

// isPrivateAddress reports whether a host is an address that is not public. Names are checked when
// they are used.
func isPrivateAddress(host string) bool {
	address, err := netip.ParseAddr(host)
	return err == nil && !publicdial.IsPublic(address)
}

// Send implements [eventsender.Sender].
func (s *Sender) Send(ctx context.Context, r eventsender.Request) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, s.deadline)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL.String(), bytes.NewReader(r.Body))
	if err != nil {
		return 0, fault.Wrap(fault.Unavailable, "the URL is not valid", err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", userAgent)
	request.Header.Set(signatureHeader, r.Signature)
	transport := s.public
	if r.URL.IsLoopback() {
		transport = s.loopback
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
	switch {
	case errors.As(err, &notPublic):
		return "the host has an address that is not public, to which the service does not connect"
	case errors.As(err, &notLoopback):
		return "the host has an address that is not loopback, to which the service does not connect"
	case errors.As(err, &certificate):
		return "the receiver has no valid certificate"
	case errors.As(err, &notTLS):
		return "the receiver does not use TLS"
	case isTimeout(err):
		return "there was no response in time"
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
