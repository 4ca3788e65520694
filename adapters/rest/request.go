package rest

import (
	"bytes"
	"crypto/rand"
	"net/netip"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/core/requestid"
)

type localKey int

const (
	requestIDKey localKey = iota
	originKey
)

// fieldRequestID names a request in log lines and spans.
const fieldRequestID = "request_id"

// nameRequest gives the request its id: the client's, if that can be taken, or
// a random one. It stands in the answer and in every log line.
func nameRequest(c *fiber.Ctx) {
	id := strings.Clone(c.Get(requestid.Header))
	if !requestid.Valid(id) {
		var random [12]byte
		_, _ = rand.Read(random[:]) // never fails (crypto/rand)
		id = requestid.Of(random)
	}
	c.Locals(requestIDKey, id)
	c.Set(requestid.Header, id)
}

// RequestID returns the id of the request.
func RequestID(c *fiber.Ctx) string {
	id, _ := c.Locals(requestIDKey).(string)
	return id
}

// Log returns the log for lines about a request: they name it, and its trace
// where it has one.
func Log(c *fiber.Ctx, log *logrus.Entry) *logrus.Entry {
	return log.WithContext(c.UserContext()).WithField(fieldRequestID, RequestID(c))
}

// setSecurityHeaders sets what every answer carries: it is what it says it is,
// and where a browser shows it as a page, that page loads nothing, stands in no
// frame and tells no other site where it was. Pages that show something loosen
// the policy themselves.
func setSecurityHeaders(c *fiber.Ctx) {
	c.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	c.Set(fiber.HeaderContentSecurityPolicy, "default-src 'none'; frame-ancestors 'none'")
	c.Set(fiber.HeaderReferrerPolicy, "no-referrer")
}

// Proxies are the networks whose forwarding headers count.
type Proxies []netip.Prefix

func (p Proxies) trusts(a netip.Addr) bool { return within(p, a) }

func within(networks []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(a) })
}

// origin is where a request came from.
type origin struct {
	address netip.Addr
	client  netip.Prefix // whom it is counted for
	secure  bool         // it came over TLS
}

// setOrigin finds the client of the request: the peer of the connection, or, if that is a trusted
// proxy, the last address of X-Forwarded-For that is not one (contract O-10).
func setOrigin(c *fiber.Ctx, proxies Proxies, v6Bits int) {
	peer, _ := netip.AddrFromSlice(c.Context().RemoteIP())
	peer = peer.Unmap()
	client, secure := peer, c.Context().IsTLS()
	if proxies.trusts(peer) {
		client = proxies.forwarded(peer, wholeHeader(c, fiber.HeaderXForwardedFor))
		secure = secure || lastWord(wholeHeader(c, fiber.HeaderXForwardedProto)) == "https"
	}
	c.Locals(originKey, origin{client, clientOf(client, v6Bits), secure})
}

// wholeHeader joins the lines of a header (RFC 9110, 5.3): a proxy may add its
// word on a line of its own, below the one that the client made up.
func wholeHeader(c *fiber.Ctx, name string) string {
	return string(bytes.Join(c.Request().Header.PeekAll(name), []byte(",")))
}

func lastWord(list string) string {
	return strings.TrimSpace(list[strings.LastIndexByte(list, ',')+1:])
}

// forwarded reads X-Forwarded-For from the right and stops at the first
// address that is not a trusted proxy's, or not an address at all.
func (p Proxies) forwarded(peer netip.Addr, header string) netip.Addr {
	client := peer
	for header != "" {
		word := lastWord(header)
		header = header[:max(strings.LastIndexByte(header, ','), 0)]
		a, err := parseForwarded(word)
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

// parseForwarded reads an address with or without a port.
func parseForwarded(s string) (netip.Addr, error) {
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return ap.Addr().Unmap().WithZone(""), nil
	}
	a, err := netip.ParseAddr(strings.Trim(s, "[]"))
	return a.Unmap().WithZone(""), err
}

func originOf(c *fiber.Ctx) origin {
	o, _ := c.Locals(originKey).(origin)
	return o
}

// Address returns the client's address.
func Address(c *fiber.Ctx) netip.Addr { return originOf(c).address }

// Client returns the address by which the client's requests are counted: its
// own, or the first one of its network where all of that is one client
// (CLIENT_IPV6_PREFIX).
func Client(c *fiber.Ctx) netip.Addr { return originOf(c).client.Addr() }

// translated are the prefixes of IPv4 addresses that a translator writes as IPv6
// ones: the one that all know (RFC 6052, 2.1), and those for a site's own use
// (RFC 8215), from which nobody sends outside of it. The last bits are the
// client, the others are everybody's.
var translated = []netip.Prefix{netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48")}

// clientOf returns whom the requests of an address are counted for: an IPv4
// address alone, an IPv6 address together with all that begin alike. A site is
// given a whole /64 at least (RFC 6177, 2), so whoever has one address can send
// each request from another.
func clientOf(a netip.Addr, v6Bits int) netip.Prefix {
	bits := v6Bits
	if a.Is4() || within(translated, a) {
		bits = a.BitLen()
	}
	client, _ := a.Prefix(bits) // Config.Validate knows how many bits there are
	return client
}

// limitKey returns what the requests of a client are counted by.
func limitKey(client netip.Prefix) string {
	if client.IsSingleIP() {
		return client.Addr().String()
	}
	return client.String()
}

// Secure reports whether the client came over TLS, to us or to a trusted proxy.
func Secure(c *fiber.Ctx) bool { return originOf(c).secure }

// BearerToken returns the token of the Authorization header, empty when there
// is none (RFC 6750, 2.1; the scheme in any case).
func BearerToken(c *fiber.Ctx) string {
	scheme, token, _ := strings.Cut(c.Get(fiber.HeaderAuthorization), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.Clone(strings.TrimSpace(token))
}

// JSONBody returns a copy of the request's body. A content type other than JSON is 415; none counts
// as JSON (contract O-12). It does not check the syntax.
func JSONBody(c *fiber.Ctx) ([]byte, error) {
	if t := c.Get(fiber.HeaderContentType); t != "" && !isJSON(t) {
		return nil, fiber.NewError(fiber.StatusUnsupportedMediaType, "content type must be application/json")
	}
	if e := c.Get(fiber.HeaderContentEncoding); e != "" && !strings.EqualFold(e, "identity") {
		return nil, fiber.NewError(fiber.StatusUnsupportedMediaType, "content encoding is not supported")
	}
	return append([]byte(nil), c.Context().Request.Body()...), nil
}

func isJSON(contentType string) bool {
	media, _, _ := strings.Cut(contentType, ";")
	media = strings.ToLower(strings.TrimSpace(media))
	return media == "application/json" ||
		strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json")
}
