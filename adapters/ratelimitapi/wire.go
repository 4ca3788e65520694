package ratelimitapi

import (
	"context"
	"encoding"

	ratelimitpb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typepb "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc"

	"github.com/tollgate-dev/tollgate/adapters/internal/wire"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

// The fields of requests.
const (
	requestDomain      = 1<<3 | wire.Bytes
	requestDescriptors = 2<<3 | wire.Bytes
	requestHits        = 3<<3 | wire.Varint

	descriptorEntries  = 1<<3 | wire.Bytes
	descriptorLimit    = 2<<3 | wire.Bytes
	descriptorHits     = 3<<3 | wire.Bytes
	descriptorGiveBack = 4<<3 | wire.Varint

	entryKey   = 1<<3 | wire.Bytes
	entryValue = 2<<3 | wire.Bytes

	overrideRequests   = 1<<3 | wire.Varint
	overrideUnit       = 2<<3 | wire.Varint
	overrideMultiplier = 3<<3 | wire.Bytes // does not count

	hitsValue = 1<<3 | wire.Varint
)

// UnmarshalBinary implements [encoding.BinaryUnmarshaler].
func (q *coreRequest) UnmarshalBinary(data []byte) error {
	r := wire.NewReader(data)
	for r.Next() {
		switch r.Tag() {
		case requestDomain:
			q.request.Domain = ratelimit.Domain(r.Text())
		case requestDescriptors:
			q.readDescriptor(&r)
		case requestHits:
			q.request.Hits = uint32(r.Varint()) //nolint:gosec // as protobuf cuts it
		default:
			r.Skip()
		}
	}
	return r.Err()
}

// readDescriptor reads a descriptor. What is there twice is merged, as protobuf does.
func (q *coreRequest) readDescriptor(r *wire.Reader) {
	var d ratelimit.Descriptor
	var limit ratelimit.Limit
	var hits uint64
	var hasLimit, hasHits bool
	from, outer := len(q.entries), r.Enter()
	for r.Next() {
		switch r.Tag() {
		case descriptorEntries:
			q.entries = append(q.entries, readEntry(r))
		case descriptorLimit:
			hasLimit = true
			readOverride(r, &limit)
		case descriptorHits:
			hasHits = true
			readHits(r, &hits)
		case descriptorGiveBack:
			d.GiveBack = r.Varint() != 0
		default:
			r.Skip()
		}
	}
	r.Leave(outer)
	d.Entries = q.entries[from:len(q.entries):len(q.entries)]
	if hasLimit {
		q.overrides = append(q.overrides, limit)
		d.Override = &q.overrides[len(q.overrides)-1]
	}
	if hasHits {
		q.hits = append(q.hits, hits)
		d.Hits = &q.hits[len(q.hits)-1]
	}
	q.request.Descriptors = append(q.request.Descriptors, d)
}

func readEntry(r *wire.Reader) (e ratelimit.Entry) {
	outer := r.Enter()
	for r.Next() {
		switch r.Tag() {
		case entryKey:
			e.Key = r.Text()
		case entryValue:
			e.Value = r.Text()
		default:
			r.Skip()
		}
	}
	r.Leave(outer)
	return e
}

func readOverride(r *wire.Reader, limit *ratelimit.Limit) {
	outer := r.Enter()
	for r.Next() {
		switch r.Tag() {
		case overrideRequests:
			limit.RequestsPerUnit = uint32(r.Varint()) //nolint:gosec // as protobuf cuts it
		case overrideUnit:
			limit.Unit = requestUnits[typepb.RateLimitUnit(r.Varint())] //nolint:gosec // likewise
		case overrideMultiplier:
			r.SkipMessage()
		default:
			r.Skip()
		}
	}
	r.Leave(outer)
}

func readHits(r *wire.Reader, hits *uint64) {
	outer := r.Enter()
	for r.Next() {
		if r.Tag() == hitsValue {
			*hits = r.Varint()
		} else {
			r.Skip()
		}
	}
	r.Leave(outer)
}

// The fields of responses.
const (
	responseCode     = 1<<3 | wire.Varint
	responseStatuses = 2<<3 | wire.Bytes

	statusCode      = 1<<3 | wire.Varint
	statusLimit     = 2<<3 | wire.Bytes
	statusRemaining = 3<<3 | wire.Varint
	statusReset     = 4<<3 | wire.Bytes

	limitRequests = 1<<3 | wire.Varint
	limitUnit     = 2<<3 | wire.Varint
	limitText     = 3<<3 | wire.Bytes

	resetSeconds = 1<<3 | wire.Varint
)

// decidedCall is a response without headers and metadata.
type decidedCall struct{ ratelimit.Decision }

// AppendBinary implements [encoding.BinaryAppender].
func (c *decidedCall) AppendBinary(dst []byte) ([]byte, error) {
	dst = wire.AppendVarint(dst, responseCode, uint64(codeToProto(c.Code))) //nolint:gosec // is not negative
	for i := range c.Statuses {
		dst = writeStatus(dst, &c.Statuses[i])
	}
	return dst, nil
}

func writeStatus(dst []byte, s *ratelimit.Status) []byte {
	dst, start := wire.Begin(dst, responseStatuses)
	dst = wire.AppendVarint(dst, statusCode, uint64(codeToProto(s.Code))) //nolint:gosec // is not negative
	if s.HasLimit() {
		var inner int
		dst, inner = wire.Begin(dst, statusLimit)
		dst = wire.AppendVarint(dst, limitRequests, uint64(s.Limit.RequestsPerUnit))
		dst = wire.AppendVarint(dst, limitUnit, uint64(responseUnits[s.Limit.Unit])) //nolint:gosec // is not negative
		dst = wire.AppendText(dst, limitText, limitName(s))
		dst = wire.End(dst, inner)
	}
	dst = wire.AppendVarint(dst, statusRemaining, uint64(s.Remaining))
	if s.HasLimit() {
		var inner int
		dst, inner = wire.Begin(dst, statusReset)
		dst = wire.AppendVarint(dst, resetSeconds, uint64(wholeSeconds(s.UntilReset))) //nolint:gosec // a negative one has ten bytes in protobuf too
		dst = wire.End(dst, inner)
	}
	return wire.End(dst, start)
}

// register adds the service to a gRPC server. Without headers and metadata, requests and responses need
// no generated types.
func (s *service) register(server *grpc.Server) {
	desc := &ratelimitpb.RateLimitService_ServiceDesc
	if !s.headers.Enabled && !s.dynamicMetadata {
		desc = wire.Replace(*desc, "ShouldRateLimit", func() encoding.BinaryUnmarshaler { return s.requests.take() }, s.decideCall)
	}
	server.RegisterService(desc, s)
}

// decideCall is a handler of gRPC for a coreRequest.
func (s *service) decideCall(ctx context.Context, request any) (any, error) {
	q, _ := request.(*coreRequest) // of register
	ctx = s.withRequestID(ctx)
	d, err := s.decideRequest(ctx, q)
	if err != nil {
		return nil, s.grpcError(ctx, err)
	}
	return &decidedCall{d}, nil
}
