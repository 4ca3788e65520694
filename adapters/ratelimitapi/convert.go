package ratelimitapi

import (
	"strings"
	"sync"
	"time"

	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	commonpb "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitpb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typepb "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

// coreRequest is a request in the types of the core. Its memory is reused by later calls.
type coreRequest struct {
	request   ratelimit.Request
	entries   []ratelimit.Entry // of all descriptors, in their order
	overrides []ratelimit.Limit // of all descriptors, in their order
	hits      []uint64          // of all descriptors that were read from bytes, in their order
}

// maxPooledEntries bounds the memory of a pooled request.
const maxPooledEntries = 256

// requestPool is a pool of coreRequest.
type requestPool struct{ pool sync.Pool }

// take returns an empty request. The caller must release it.
func (p *requestPool) take() *coreRequest {
	if q, ok := p.pool.Get().(*coreRequest); ok {
		return q
	}
	return &coreRequest{}
}

// convert converts a request. The caller must release the result.
func (p *requestPool) convert(m *ratelimitpb.RateLimitRequest) *coreRequest {
	q := p.take()
	q.request.Domain = ratelimit.Domain(m.GetDomain())
	q.request.Hits = m.GetHitsAddend()
	q.growLists(m)
	for _, d := range m.GetDescriptors() {
		q.addDescriptor(d)
	}
	return q
}

// release returns a request to the pool, unless it is too large.
func (p *requestPool) release(q *coreRequest) {
	if cap(q.entries) > maxPooledEntries || cap(q.request.Descriptors) > maxPooledEntries {
		return
	}
	clear(q.entries)
	clear(q.request.Descriptors)
	q.entries, q.overrides, q.hits = q.entries[:0], q.overrides[:0], q.hits[:0]
	q.request = ratelimit.Request{Descriptors: q.request.Descriptors[:0]}
	p.pool.Put(q)
}

// growLists allocates the lists in their full size, so that pointers into them stay valid.
func (q *coreRequest) growLists(m *ratelimitpb.RateLimitRequest) {
	entries, overrides := 0, 0
	for _, d := range m.GetDescriptors() {
		entries += len(d.GetEntries())
		if d.GetLimit() != nil {
			overrides++
		}
	}
	if cap(q.entries) < entries {
		q.entries = make([]ratelimit.Entry, 0, entries)
	}
	if cap(q.overrides) < overrides {
		q.overrides = make([]ratelimit.Limit, 0, overrides)
	}
}

func (q *coreRequest) addDescriptor(m *commonpb.RateLimitDescriptor) {
	from := len(q.entries)
	for _, e := range m.GetEntries() {
		q.entries = append(q.entries, ratelimit.Entry{Key: e.GetKey(), Value: e.GetValue()})
	}
	d := ratelimit.Descriptor{
		Entries:  q.entries[from:len(q.entries):len(q.entries)],
		GiveBack: m.GetIsNegativeHits(),
	}
	if hits := m.GetHitsAddend(); hits != nil {
		d.Hits = &hits.Value
	}
	if limit := m.GetLimit(); limit != nil {
		q.overrides = append(q.overrides, ratelimit.Limit{
			RequestsPerUnit: limit.GetRequestsPerUnit(), Unit: requestUnits[limit.GetUnit()],
		})
		d.Override = &q.overrides[len(q.overrides)-1]
	}
	q.request.Descriptors = append(q.request.Descriptors, d)
}

// requestUnits are the units of limits in requests, and responseUnits those of limits in responses.
// They have the names of ours, but other numbers.
var requestUnits = func() map[typepb.RateLimitUnit]ratelimit.Unit {
	units := map[typepb.RateLimitUnit]ratelimit.Unit{}
	for number, name := range typepb.RateLimitUnit_name {
		units[typepb.RateLimitUnit(number)], _ = ratelimit.ParseUnit(name) // UNKNOWN is no unit
	}
	return units
}()

var responseUnits = func() (units [ratelimit.Year + 1]ratelimitpb.RateLimitResponse_RateLimit_Unit) {
	for u := range units {
		name := strings.ToUpper(ratelimit.Unit(u).String())
		units[u] = ratelimitpb.RateLimitResponse_RateLimit_Unit(ratelimitpb.RateLimitResponse_RateLimit_Unit_value[name])
	}
	return units
}()

func codeToProto(c ratelimit.Code) ratelimitpb.RateLimitResponse_Code {
	if c == ratelimit.OverLimit {
		return ratelimitpb.RateLimitResponse_OVER_LIMIT
	}
	return ratelimitpb.RateLimitResponse_OK
}

// statusMessage is a status of a response with all messages that it points to, in one allocation.
type statusMessage struct {
	status ratelimitpb.RateLimitResponse_DescriptorStatus
	limit  ratelimitpb.RateLimitResponse_RateLimit
	reset  durationpb.Duration
}

// newResponse converts a decision to a response.
func newResponse(d *ratelimit.Decision, headers []headerField) *ratelimitpb.RateLimitResponse {
	replies := make([]statusMessage, len(d.Statuses))
	m := &ratelimitpb.RateLimitResponse{
		OverallCode: codeToProto(d.Code),
		Statuses:    make([]*ratelimitpb.RateLimitResponse_DescriptorStatus, len(d.Statuses)),
	}
	for i := range d.Statuses {
		replies[i].setStatus(&d.Statuses[i])
		m.Statuses[i] = &replies[i].status
	}
	for _, h := range headers {
		m.ResponseHeadersToAdd = append(m.ResponseHeadersToAdd, &corepb.HeaderValue{Key: h.name, Value: h.value})
	}
	return m
}

func (r *statusMessage) setStatus(from *ratelimit.Status) {
	r.status.Code = codeToProto(from.Code)
	r.status.LimitRemaining = from.Remaining
	if from.HasLimit() {
		r.limit.RequestsPerUnit = from.Limit.RequestsPerUnit
		r.limit.Unit = responseUnits[from.Limit.Unit]
		r.limit.Name = limitName(from)
		r.status.CurrentLimit = &r.limit
		r.reset.Seconds = wholeSeconds(from.UntilReset)
		r.status.DurationUntilReset = &r.reset
	}
}

// limitName returns the name of the rule with the limit; empty for a rule without a name and for a
// limit in the request.
func limitName(s *ratelimit.Status) string {
	if s.Rule == nil {
		return ""
	}
	return string(s.Rule.Name)
}

func wholeSeconds(d time.Duration) int64 { return int64(d / time.Second) }
