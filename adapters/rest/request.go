package rest

import (
	"bytes"
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/internal/httpconn"
	"github.com/tollgate-dev/tollgate/adapters/internal/pause"
	"github.com/tollgate-dev/tollgate/adapters/internal/socket"
	"github.com/tollgate-dev/tollgate/adapters/rest/responsebody"
	"github.com/tollgate-dev/tollgate/core/auth"
)

// fieldRequestID is the field of the request id in log lines and spans.
const fieldRequestID = "request_id"

// RequestID returns the id of the request, which the response and every log line contain.
func RequestID(c *fiber.Ctx) string { return httpconn.RequestIDOf(c.Context()) }

// Operation returns the method of the request and the path of its route, like
// "PUT /devices/:id/trust".
func Operation(c *fiber.Ctx) string { return strings.Clone(c.Method()) + " " + c.Route().Path }

// Log returns the log for lines about a request. They contain its id, and its trace if it has one.
func Log(c *fiber.Ctx, log *logrus.Entry) *logrus.Entry {
	return log.WithContext(c.UserContext()).WithField(fieldRequestID, RequestID(c))
}

// securityHeaders are headers for browsers: they must not guess the content type, and a response
// that they show as a page may not load anything, be in a frame or send a Referer. A handler of a
// real page sets its own policy.
var securityHeaders = responsebody.NewHeaders(
	fiber.HeaderXContentTypeOptions, "nosniff",
	fiber.HeaderContentSecurityPolicy, "default-src 'none'; frame-ancestors 'none'",
	fiber.HeaderReferrerPolicy, "no-referrer",
)

// Proxies are the networks of proxies whose forwarding headers are trusted.
type Proxies []netip.Prefix

func (p Proxies) trusts(a netip.Addr) bool { return containsAddress(p, a) }

func containsAddress(networks []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(a) })
}

// origin is the client of a request.
type origin struct {
	address netip.Addr
	client  netip.Prefix // the addresses that count as this client
	secure  bool         // the client uses TLS
	proxied bool         // the peer is a trusted proxy
}

// Close implements io.Closer. The server calls it at the end of the request.
func (o *origin) Close() error {
	origins.Put(o)
	return nil
}

// origins holds origins that are not used.
var origins = sync.Pool{New: func() any { return new(origin) }}

type originKey struct{}

// setOrigin sets the origin of the request. The client is the peer of the connection, or, if that
// is a trusted proxy, the last address of X-Forwarded-For that is not a trusted proxy (contract
// O-10).
func setOrigin(c *fiber.Ctx, proxies Proxies, v6Bits int) *origin {
	peer, _ := netip.AddrFromSlice(c.Context().RemoteIP())
	peer = peer.Unmap()
	client, secure := peer, c.Context().IsTLS()
	proxied := proxies.trusts(peer)
	if proxied {
		client = proxies.clientAddress(peer, wholeHeader(c, fiber.HeaderXForwardedFor))
		secure = secure || lastElement(wholeHeader(c, fiber.HeaderXForwardedProto)) == "https"
	}
	o, _ := origins.Get().(*origin)
	*o = origin{client, clientOf(client, v6Bits), secure, proxied}
	c.Context().SetUserValue(originKey{}, o)
	return o
}

// originOf returns what setOrigin has set.
func originOf(c *fiber.Ctx) origin {
	if o, ok := c.Context().UserValue(originKey{}).(*origin); ok {
		return *o
	}
	return origin{}
}

// wholeHeader returns the joined lines of a header (RFC 9110, 5.3). A proxy may add its value on a
// second line, after a line that the client has forged.
func wholeHeader(c *fiber.Ctx, name string) string {
	return string(bytes.Join(c.Request().Header.PeekAll(name), []byte(",")))
}

func lastElement(list string) string {
	return strings.TrimSpace(list[strings.LastIndexByte(list, ',')+1:])
}

// clientAddress reads X-Forwarded-For from the right. It returns the first address that is not a
// trusted proxy, or the last trusted proxy before a malformed address or the end.
func (p Proxies) clientAddress(peer netip.Addr, header string) netip.Addr {
	client := peer
	for header != "" {
		element := lastElement(header)
		header = header[:max(strings.LastIndexByte(header, ','), 0)]
		a, err := parseForwarded(element)
		if err != nil {
			return client
		}
		client = a
		if !p.trusts(a) {
			return client
		}
	}
	return client
}

// parseForwarded parses an address with or without a port.
func parseForwarded(s string) (netip.Addr, error) {
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return ap.Addr().Unmap().WithZone(""), nil
	}
	a, err := netip.ParseAddr(strings.Trim(s, "[]"))
	return a.Unmap().WithZone(""), err
}

// Address returns the address of the client.
func Address(c *fiber.Ctx) netip.Addr { return originOf(c).address }

// Client returns the address under which the requests of the client are counted: its own, or the
// first address of its network if the whole network counts as one client (CLIENT_IPV6_PREFIX).
func Client(c *fiber.Ctx) netip.Addr { return originOf(c).client.Addr() }

// translated are the prefixes of IPv6 addresses that contain an IPv4 address: the well-known prefix
// (RFC 6052, 2.1) and the one for use within a site (RFC 8215). All clients share the prefix and
// differ in the last bits.
var translated = []netip.Prefix{netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48")}

// clientOf returns the addresses that count as one client with an address: an IPv4 address alone,
// an IPv6 address with all others of the same prefix. A site gets at least a /64 (RFC 6177, 2) and
// could send each request from another address of it.
func clientOf(a netip.Addr, v6Bits int) netip.Prefix {
	bits := v6Bits
	if a.Is4() || containsAddress(translated, a) {
		bits = a.BitLen()
	}
	client, _ := a.Prefix(bits) // Config.Validate checks the number of bits
	return client
}

// limitKey returns the key of the counters of a client.
func limitKey(client netip.Prefix) string {
	if client.IsSingleIP() {
		return client.Addr().String()
	}
	return client.String()
}

// Secure reports whether the client uses TLS, to the service or to a trusted proxy.
func Secure(c *fiber.Ctx) bool { return originOf(c).secure }

// Host returns the host, with or without a port, that the client asked for: of X-Forwarded-Host if
// a trusted proxy sent it, else of Host. Fiber's own method believes X-Forwarded-Host from
// everybody.
func Host(c *fiber.Ctx) string {
	if originOf(c).proxied {
		if host := lastElement(wholeHeader(c, fiber.HeaderXForwardedHost)); host != "" {
			return host
		}
	}
	return string(c.Request().Host())
}

// BearerToken returns the token of the Authorization header; empty without one (RFC 6750, 2.1). The
// case of the scheme does not matter.
func BearerToken(c *fiber.Ctx) string {
	scheme, token, _ := strings.Cut(c.Get(fiber.HeaderAuthorization), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.Clone(strings.TrimSpace(token))
}

// JSONBody returns a copy of the request body. It does not check the syntax. It returns an error of
// status 415 for another content type than JSON; a missing content type counts as JSON (contract
// O-12).
func JSONBody(c *fiber.Ctx) ([]byte, error) { return Body(c, "application/json", IsJSON) }

// Body is JSONBody for the content types that accepts accepts; wanted names them in the error.
func Body(c *fiber.Ctx, wanted string, accepts func(contentType string) bool) ([]byte, error) {
	if t := c.Get(fiber.HeaderContentType); t != "" && !accepts(t) {
		return nil, fiber.NewError(fiber.StatusUnsupportedMediaType, "content type must be "+wanted)
	}
	if e := c.Get(fiber.HeaderContentEncoding); e != "" && !strings.EqualFold(e, "identity") {
		return nil, fiber.NewError(fiber.StatusUnsupportedMediaType,
			"content encoding is not supported; send the body without one")
	}
	return append([]byte(nil), c.Context().Request.Body()...), nil
}

// IsJSON reports whether a content type is JSON.
func IsJSON(contentType string) bool {
	media, _, _ := strings.Cut(contentType, ";")
	media = strings.ToLower(strings.TrimSpace(media))
	return media == "application/json" ||
		strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json")
}

// The names of the cookie with the device token (contract A-37). Browsers accept a name with the
// prefix __Secure- only over TLS, so that no one who reads or writes plain HTTP of a sibling domain
// can put another value in its place (RFC 6265bis, 4.1.3.1).
const (
	secureDeviceCookie = "__Secure-tollgate_device"
	plainDeviceCookie  = "tollgate_device" // over plain HTTP, and from versions that had no other name
)

// DeviceCookieName returns the name of the cookie for a device token in the response to a request.
func DeviceCookieName(c *fiber.Ctx) string {
	if Secure(c) {
		return secureDeviceCookie
	}
	return plainDeviceCookie
}

// DeviceCookie returns the device token in the cookies of a request; empty without one. The plain
// name counts only without the other one.
func DeviceCookie(c *fiber.Ctx) auth.DeviceSecret {
	token := c.Cookies(secureDeviceCookie)
	if token == "" {
		token = c.Cookies(plainDeviceCookie)
	}
	return auth.DeviceSecret(strings.Clone(token))
}

// clientInterval is how often WatchClient looks whether the client is there.
const clientInterval = 250 * time.Millisecond

// WatchClient returns the context of a request, which ends when the client closes its connection,
// and a function that ends the watch. The handler must call it before it returns. It is for
// requests that may wait for long: the server itself notices the end of a connection only when it
// writes.
func WatchClient(c *fiber.Ctx) (ctx context.Context, end func()) {
	ctx, cancel := context.WithCancel(c.UserContext())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		cancelWhenGone(ctx, c.Context().Conn(), cancel)
	}()
	return ctx, func() {
		cancel()
		<-stopped
	}
}

func cancelWhenGone(ctx context.Context, conn net.Conn, gone context.CancelFunc) {
	for pause.For(ctx, clientInterval) {
		if socket.Peek(conn) == socket.Closed {
			gone()
		}
	}
}
