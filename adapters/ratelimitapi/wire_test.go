package ratelimitapi

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	commonpb "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitpb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typepb "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/adapters/internal/wire"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/test/must"
)

// sampleRequests are requests as bytes: usual ones, and those that only another writer would send.
func sampleRequests(t testing.TB) [][]byte {
	t.Helper()
	full, err := proto.Marshal(&ratelimitpb.RateLimitRequest{
		Domain: "d", HitsAddend: 3, Descriptors: []*commonpb.RateLimitDescriptor{
			{Entries: []*commonpb.RateLimitDescriptor_Entry{{Key: "k", Value: "v"}, {Key: "path", Value: "/a\u00e9"}}},
			{
				Entries: []*commonpb.RateLimitDescriptor_Entry{{Key: "k"}}, IsNegativeHits: true,
				Limit: &commonpb.RateLimitDescriptor_RateLimitOverride{
					RequestsPerUnit: 1 << 20, Unit: typepb.RateLimitUnit_HOUR, UnitMultiplier: wrapperspb.UInt32(2),
				},
				HitsAddend: wrapperspb.UInt64(1 << 40),
			},
		},
	})
	must.Succeed(t, err)
	field := func(number protowire.Number, kind protowire.Type, rest ...byte) []byte {
		return append(protowire.AppendTag(nil, number, kind), rest...)
	}
	nested := func(number protowire.Number, inner ...[]byte) []byte {
		return protowire.AppendBytes(field(number, protowire.BytesType), slices.Concat(inner...))
	}
	limit := func(inner ...[]byte) []byte { return nested(2, nested(2, inner...)) }
	long := nested(2, nested(1, nested(2, []byte(strings.Repeat("x", 3000)))))
	all := [][]byte{
		{}, full, slices.Concat(full, full), slices.Concat(full, long, full),
		nested(1, []byte("\xff")), nested(2, nested(1, nested(1, []byte("\xc3")))), // no UTF-8
		field(1, protowire.VarintType, 5), field(2, protowire.Fixed32Type, 1, 2, 3, 4), // other types
		field(3, protowire.BytesType, 1, 7), field(2, protowire.Fixed64Type, 1, 2, 3, 4, 5, 6, 7, 8),
		field(3, protowire.VarintType, 0x83, 0x80, 0x00), // 3 in three bytes
		field(3, protowire.VarintType, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1),
		field(3, protowire.VarintType, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2), // too large
		{0x8a, 0x80, 0x00, 1, 'x'},                       // the tag of the domain in three bytes
		{0x02, 0x00}, {0x00}, {0x07, 0x00}, {0x0e, 0x00}, // number 0, and types that do not exist
		field(9, protowire.StartGroupType, append(field(1, protowire.VarintType, 1), field(9, protowire.EndGroupType)...)...),
		field(9, protowire.StartGroupType, field(8, protowire.EndGroupType)...), field(9, protowire.EndGroupType),
		field(2, protowire.StartGroupType, field(2, protowire.EndGroupType)...),
		field(protowire.MaxValidNumber, protowire.VarintType, 1), field(1<<29, protowire.VarintType, 1), field(1<<30, protowire.VarintType, 1),
		limit(field(1, protowire.VarintType, 7)), // merged with the next
		slices.Concat(nested(2, nested(2, field(1, protowire.VarintType, 7)), nested(2, field(2, protowire.VarintType, 3)))),
		limit(field(2, protowire.VarintType, 0x83, 0x80, 0x80, 0x80, 0x10)), // a unit that is cut to 32 bits
		limit(nested(3, field(1, protowire.VarintType, 2))), limit(nested(3, []byte{1})), limit(nested(3, field(1, protowire.EndGroupType))),
		nested(2, nested(3), nested(3, field(1, protowire.VarintType, 4)), nested(3, field(2, protowire.VarintType, 4))),
		nested(2, field(4, protowire.VarintType, 2)), nested(2, nested(4)), nested(2), nested(2, nested(1)),
	}
	return all
}

// failer is a test.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkRequest checks that a request means what it means to protobuf, or is refused as there.
func checkRequest(t failer, data []byte) {
	t.Helper()
	var m ratelimitpb.RateLimitRequest
	var p requestPool
	want := proto.Unmarshal(data, &m)
	read := p.take()
	own := bytes.Clone(data)
	err := read.UnmarshalBinary(own)
	clear(own) // the bytes may change then
	if (err == nil) != (want == nil) {
		t.Fatalf("%x: error %v, protobuf has %v", data, err, want)
	}
	if err != nil {
		return
	}
	converted := p.convert(&m)
	a, b := read.request, converted.request
	if a.Domain != b.Domain || a.Hits != b.Hits || !slices.EqualFunc(a.Descriptors, b.Descriptors, equalDescriptors) {
		t.Fatalf("%x: %+v, protobuf has %+v", data, a, b)
	}
}

func equalDescriptors(a, b ratelimit.Descriptor) bool {
	return slices.Equal(a.Entries, b.Entries) && a.GiveBack == b.GiveBack && equalValues(a.Override, b.Override) && equalValues(a.Hits, b.Hits)
}

func equalValues[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

// TestRequestsFromBytes reads the samples, each of their beginnings, and the small ones with each byte
// changed.
func TestRequestsFromBytes(t *testing.T) {
	t.Parallel()
	for _, data := range sampleRequests(t) {
		checkRequest(t, data)
		for i := range min(len(data), 100) {
			checkRequest(t, data[:i])
			changed := bytes.Clone(data)
			for v := range 256 {
				changed[i] = byte(v)
				checkRequest(t, changed)
			}
		}
	}
}

// drawMessage draws a message with fields of any numbers and types, and messages in them.
func drawMessage(t *rapid.T, depth int) (b []byte) {
	for range rapid.IntRange(0, 4).Draw(t, "fields") {
		number := rapid.OneOf(rapid.Int32Range(1, 4), rapid.Int32Range(0, 1<<30)).Draw(t, "number")
		kind := rapid.SampledFrom([]protowire.Type{2, 2, 2, 2, 0, 0, 1, 3, 4, 5}).Draw(t, "type")
		b = protowire.AppendVarint(b, uint64(number)<<3|uint64(kind)) //nolint:gosec // it is not negative
		switch kind {
		case protowire.VarintType:
			b = protowire.AppendVarint(b, rapid.Uint64().Draw(t, "value"))
		case protowire.Fixed32Type:
			b = append(b, "four"...)
		case protowire.Fixed64Type:
			b = append(b, "eight..."...)
		case protowire.StartGroupType:
			b = protowire.AppendVarint(append(b, drawMessage(t, 0)...), uint64(number)<<3|uint64(protowire.EndGroupType)) //nolint:gosec // likewise
		case protowire.BytesType:
			inner := rapid.SampledFrom([]string{"", "a", "é", "\xff"}).Draw(t, "text")
			if depth > 0 && rapid.IntRange(0, 3).Draw(t, "nested") > 0 {
				inner = string(drawMessage(t, depth-1))
			}
			b = protowire.AppendString(b, inner)
		}
	}
	return b
}

// TestDrawnRequests reads requests of any form.
func TestDrawnRequests(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) { checkRequest(r, drawMessage(r, 3)) })
}

func FuzzRequestsFromBytes(f *testing.F) {
	for _, data := range sampleRequests(f) {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) { checkRequest(t, data) })
}

// checkResponse checks that a response has the bytes that protobuf writes.
func checkResponse(t *testing.T, d *ratelimit.Decision) {
	t.Helper()
	want, err := proto.Marshal(newResponse(d, nil))
	if err != nil {
		t.Skip("protobuf writes no text that is no UTF-8")
	}
	got, err := (&decidedCall{*d}).AppendBinary([]byte("before"))
	if err != nil || !bytes.Equal(got, append([]byte("before"), want...)) {
		t.Fatalf("%+v: %x, protobuf writes %x", d, got[len("before"):], want)
	}
}

func TestResponsesAsBytes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "a", strings.Repeat("n", 127), strings.Repeat("n", 20_000)} {
		rule := &ratelimit.Rule{Name: ratelimit.Name(name)}
		checkResponse(t, &ratelimit.Decision{Code: ratelimit.OverLimit, Statuses: []ratelimit.Status{
			{}, {Remaining: 1 << 31}, {
				Code: ratelimit.OverLimit, Limit: ratelimit.Limit{RequestsPerUnit: 1<<32 - 1, Unit: ratelimit.Year}, Rule: rule, UntilReset: time.Hour,
			},
			{Limit: ratelimit.Limit{Unit: ratelimit.Minute}}, {Limit: ratelimit.Limit{Unit: ratelimit.Minute}, UntilReset: -time.Second},
		}})
	}
	checkResponse(t, &ratelimit.Decision{})
}

func FuzzResponsesAsBytes(f *testing.F) {
	f.Add(uint8(1), uint32(10), uint8(3), "name", uint32(9), int64(time.Minute), uint8(3))
	f.Fuzz(func(t *testing.T, code uint8, requests uint32, unit uint8, name string, remaining uint32, reset int64, n uint8) {
		status := ratelimit.Status{
			Code: ratelimit.Code(code % 2), Limit: ratelimit.Limit{RequestsPerUnit: requests, Unit: ratelimit.Unit(unit) % (ratelimit.Year + 1)},
			Remaining: remaining, UntilReset: time.Duration(reset), Rule: &ratelimit.Rule{Name: ratelimit.Name(name)},
		}
		checkResponse(t, &ratelimit.Decision{Code: status.Code, Statuses: slices.Repeat([]ratelimit.Status{{}, status}, int(n%8))})
	})
}

// BenchmarkMessages reads a request into the types of the core and writes its response, by the generated
// types and from bytes.
func BenchmarkMessages(b *testing.B) {
	for _, n := range []int{1, 4} {
		m := ratelimitpb.RateLimitRequest{Domain: "bench"}
		d := ratelimit.Decision{Code: ratelimit.OK}
		for range n {
			m.Descriptors = append(m.Descriptors, &commonpb.RateLimitDescriptor{
				Entries: []*commonpb.RateLimitDescriptor_Entry{{Key: "key", Value: "v123"}, {Key: "path", Value: "/a/b/c"}},
			})
			d.Statuses = append(d.Statuses, ratelimit.Status{
				Limit: ratelimit.Limit{RequestsPerUnit: 1000, Unit: ratelimit.Hour}, Remaining: 999, UntilReset: time.Minute,
			})
		}
		data, err := proto.Marshal(&m)
		must.Succeed(b, err)
		var p requestPool
		b.Run(fmt.Sprintf("%d descriptors/generated", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var m ratelimitpb.RateLimitRequest
				must.Succeed(b, proto.Unmarshal(data, &m))
				p.release(p.convert(&m))
				if _, err := proto.Marshal(newResponse(&d, nil)); err != nil {
					b.Fatal(err)
				}
			}
		})
		codec := wire.NewCodec()
		b.Run(fmt.Sprintf("%d descriptors/bytes", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				q := p.take()
				must.Succeed(b, q.UnmarshalBinary(data))
				p.release(q)
				if _, err := codec.Marshal(&decidedCall{d}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
