package decideapi

import (
	"bytes"
	"encoding"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"

	"github.com/tollgate-dev/tollgate/adapters/internal/wire"
	"github.com/tollgate-dev/tollgate/core/access"
)

// checkRequest is what matters of a CheckRequest.
type checkRequest struct {
	isHTTP        bool
	asked         request // the call without headers and body
	headers       sentHeaders
	rawBody, body []byte
	metadata      *corepb.Metadata // what filters of Envoy have found out; nil without it
}

func newCheckRequest() encoding.BinaryUnmarshaler { return &checkRequest{} }

// request returns the request that Envoy describes.
func (c *checkRequest) request() *request {
	r := &c.asked
	r.authorization = c.headers.authorization
	if r.call.Body = c.rawBody; len(c.rawBody) == 0 {
		r.call.Body = c.body
	}
	r.call.Known, r.call.Cut, r.call.Coded = knownCall(c.metadata), c.headers.isCut(len(r.call.Body)), c.headers.coded
	r.call.Upgrades = c.headers.upgrade
	r.call.Cut = r.call.Cut || r.call.Method != "POST" && c.headers.longest > 0 // Envoy may have sent nothing of it
	r.call.HeaderMethod, r.call.HeaderName = strings.Join(c.headers.method, ","), strings.Join(c.headers.name, ",")
	return r
}

// serverExtension is the context extension by which a route names its server.
const serverExtension = "tollgate.server"

// The fields of requests.
const (
	checkAttributes = 1<<3 | wire.Bytes

	attributesSource     = 1<<3 | wire.Bytes
	attributesRequest    = 4<<3 | wire.Bytes
	attributesExtensions = 10<<3 | wire.Bytes
	attributesMetadata   = 11<<3 | wire.Bytes

	peerAddress   = 1<<3 | wire.Bytes
	addressSocket = 1<<3 | wire.Bytes
	socketAddress = 2<<3 | wire.Bytes

	requestHTTP = 2<<3 | wire.Bytes

	callMethod    = 2<<3 | wire.Bytes
	callHeaders   = 3<<3 | wire.Bytes
	callPath      = 4<<3 | wire.Bytes
	callHost      = 5<<3 | wire.Bytes
	callScheme    = 6<<3 | wire.Bytes
	callBody      = 11<<3 | wire.Bytes
	callRawBody   = 12<<3 | wire.Bytes
	callHeaderMap = 13<<3 | wire.Bytes

	mapHeaders = 1<<3 | wire.Bytes
	headerRaw  = 3<<3 | wire.Bytes
)

// UnmarshalBinary implements [encoding.BinaryUnmarshaler].
func (c *checkRequest) UnmarshalBinary(data []byte) error {
	r := wire.NewReader(data)
	var metadata []byte
	for r.Next() {
		if r.Tag() != checkAttributes {
			r.Skip()
			continue
		}
		outer := r.Enter()
		for r.Next() {
			switch r.Tag() {
			case attributesSource:
				c.readSource(&r)
			case attributesRequest:
				c.readRequest(&r)
			case attributesExtensions:
				if name, value := readPair(&r, pairValue); string(name) == serverExtension {
					c.asked.server = string(value)
				}
			case attributesMetadata:
				metadata = append(metadata, r.Bytes()...) // what is there twice is merged
			default:
				r.Skip()
			}
		}
		r.Leave(outer)
	}
	if metadata != nil {
		c.metadata = &corepb.Metadata{}
		if err := proto.Unmarshal(metadata, c.metadata); err != nil {
			return fmt.Errorf("metadata_context: %w", err)
		}
	}
	return r.Err()
}

// readSource reads the address of the client. One that is no IP address matches no network.
func (c *checkRequest) readSource(r *wire.Reader) {
	within(r, peerAddress, func() {
		within(r, addressSocket, func() {
			within(r, socketAddress, func() { c.asked.from, _ = netip.ParseAddr(r.Text()) })
		})
	})
}

func (c *checkRequest) readRequest(r *wire.Reader) {
	within(r, requestHTTP, func() {
		c.isHTTP = true
		c.readHTTP(r)
	})
}

// within reads a message, calls read for the fields with a tag, and skips the others.
func within(r *wire.Reader, tag uint64, read func()) {
	outer := r.Enter()
	for r.Next() {
		if r.Tag() == tag {
			read()
		} else {
			r.Skip()
		}
	}
	r.Leave(outer)
}

// readHTTP reads the description of a request of HTTP. Envoy sends its headers as a map, or as a list
// with encode_raw_headers.
func (c *checkRequest) readHTTP(r *wire.Reader) {
	outer := r.Enter()
	for r.Next() {
		switch r.Tag() {
		case callMethod:
			c.asked.call.Method = usualText(r.RawText())
		case callHeaders:
			name, value := readPair(r, pairValue)
			c.headers.add(name, value)
		case callPath:
			c.asked.address.Path = r.Text()
		case callHost:
			c.asked.address.Host = r.Text()
		case callScheme:
			c.asked.address.Scheme = usualText(r.RawText())
		case callBody:
			c.body = bytes.Clone(r.RawText())
		case callRawBody:
			c.rawBody = bytes.Clone(r.Bytes())
		case callHeaderMap:
			within(r, mapHeaders, func() {
				name, value := readPair(r, headerRaw)
				c.headers.add(bytes.ToLower(name), value)
			})
		default:
			r.Skip()
		}
	}
	r.Leave(outer)
}

// usualText returns a text, the usual ones without a copy.
func usualText(b []byte) string {
	for _, s := range [...]string{"POST", "GET", "https", "http"} {
		if string(b) == s {
			return s
		}
	}
	return string(b)
}

// readPair reads an entry of a map, or a header, whose value may be in another field, for any bytes.
func readPair(r *wire.Reader, other uint64) (name, value []byte) {
	var raw []byte
	outer := r.Enter()
	for r.Next() {
		switch r.Tag() {
		case pairKey:
			name = r.RawText()
		case pairValue:
			value = r.RawText()
		case other:
			raw = r.Bytes()
		default:
			r.Skip()
		}
	}
	r.Leave(outer)
	if len(raw) > 0 {
		value = raw
	}
	return name, value
}

// sentHeaders are the headers of a request that matter: those of the token and the call with all their
// values.
type sentHeaders struct {
	authorization, method, name []string

	cut     bool  // Envoy says so, or the length cannot be read
	coded   bool  // another reader may decode the body otherwise
	upgrade bool  // to another protocol
	types   int   // values of content-type
	longest int64 // length of the body
}

// The headers of a request, as Envoy writes their names.
const (
	headerMethod  = "mcp-method"
	headerName    = "mcp-name"
	headerLength  = "content-length"
	headerType    = "content-type"
	headerCoding  = "content-encoding"
	headerUpgrade = "upgrade"
	headerPartial = "x-envoy-auth-partial-body" // Envoy removes those of clients
)

func (h *sentHeaders) add(name, value []byte) {
	switch string(name) {
	case headerAuthorization:
		h.authorization = append(h.authorization, string(value))
	case headerMethod:
		h.method = append(h.method, string(value))
	case headerName:
		h.name = append(h.name, string(value))
	case headerType:
		h.types++
		h.coded = h.coded || h.types > 1 || !access.IsPlainType(string(value))
	case headerCoding:
		h.coded = h.coded || !access.IsPlainCoding(string(value))
	case headerUpgrade:
		h.upgrade = true
	case headerPartial:
		h.cut = h.cut || string(value) != "false"
	case headerLength:
		n, err := strconv.ParseInt(string(value), 10, 64)
		h.cut, h.longest = h.cut || err != nil, max(h.longest, n)
	}
}

// isCut reports whether Envoy has sent a part of the body only.
func (h *sentHeaders) isCut(size int) bool { return h.cut || size > 0 && h.longest > int64(size) }
