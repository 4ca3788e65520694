package ratelimitapi

import (
	"strconv"
	"sync"
	"time"

	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	commonpb "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitpb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typepb "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

// question is a request in the core's form. Its memory is used again by later
// calls.
type question struct {
	request   ratelimit.Request
	entries   []ratelimit.Entry // of all descriptors, one behind the other
	overrides []ratelimit.Limit // likewise
}

// keepAtMost bounds the memory that a call leaves to later ones, in entries.
const keepAtMost = 256

// questions is a pool of question.
type questions struct{ pool sync.Pool }

// ask converts a request. What it returns must be given back.
func (p *questions) ask(m *ratelimitpb.RateLimitRequest) *question {
	q, _ := p.pool.Get().(*question)
	if q == nil {
		q = &question{}
	}
	q.request.Domain = ratelimit.Domain(m.GetDomain())
	q.request.Hits = m.GetHitsAddend()
	q.reserve(m)
	for _, d := range m.GetDescriptors() {
		q.add(d)
	}
	return q
}

func (p *questions) giveBack(q *question) {
	if cap(q.entries) > keepAtMost || cap(q.request.Descriptors) > keepAtMost {
		return
	}
	clear(q.entries)
	clear(q.request.Descriptors)
	q.entries, q.overrides = q.entries[:0], q.overrides[:0]
	q.request.Descriptors = q.request.Descriptors[:0]
	p.pool.Put(q)
}

// reserve makes room, so that what points into the lists stays good.
func (q *question) reserve(m *ratelimitpb.RateLimitRequest) {
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

func (q *question) add(m *commonpb.RateLimitDescriptor) {
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
			RequestsPerUnit: limit.GetRequestsPerUnit(), Unit: unitOf(limit.GetUnit()),
		})
		d.Override = &q.overrides[len(q.overrides)-1]
	}
	q.request.Descriptors = append(q.request.Descriptors, d)
}

func unitOf(u typepb.RateLimitUnit) ratelimit.Unit {
	switch u {
	case typepb.RateLimitUnit_SECOND:
		return ratelimit.Second
	case typepb.RateLimitUnit_MINUTE:
		return ratelimit.Minute
	case typepb.RateLimitUnit_HOUR:
		return ratelimit.Hour
	case typepb.RateLimitUnit_DAY:
		return ratelimit.Day
	case typepb.RateLimitUnit_MONTH:
		return ratelimit.Month
	case typepb.RateLimitUnit_YEAR:
		return ratelimit.Year
	default:
		return ratelimit.NoUnit
	}
}

func unitTo(u ratelimit.Unit) ratelimitpb.RateLimitResponse_RateLimit_Unit {
	switch u {
	case ratelimit.Second:
		return ratelimitpb.RateLimitResponse_RateLimit_SECOND
	case ratelimit.Minute:
		return ratelimitpb.RateLimitResponse_RateLimit_MINUTE
	case ratelimit.Hour:
		return ratelimitpb.RateLimitResponse_RateLimit_HOUR
	case ratelimit.Day:
		return ratelimitpb.RateLimitResponse_RateLimit_DAY
	case ratelimit.Week:
		return ratelimitpb.RateLimitResponse_RateLimit_WEEK
	case ratelimit.Month:
		return ratelimitpb.RateLimitResponse_RateLimit_MONTH
	case ratelimit.Year:
		return ratelimitpb.RateLimitResponse_RateLimit_YEAR
	default:
		return ratelimitpb.RateLimitResponse_RateLimit_UNKNOWN
	}
}

func codeTo(c ratelimit.Code) ratelimitpb.RateLimitResponse_Code {
	if c == ratelimit.OverLimit {
		return ratelimitpb.RateLimitResponse_OVER_LIMIT
	}
	return ratelimitpb.RateLimitResponse_OK
}

// reply is one status of an answer with all that it points to, made at once.
type reply struct {
	status ratelimitpb.RateLimitResponse_DescriptorStatus
	limit  ratelimitpb.RateLimitResponse_RateLimit
	reset  durationpb.Duration
}

// toMessage converts a decision.
func toMessage(d *ratelimit.Decision, headers []pair) *ratelimitpb.RateLimitResponse {
	replies := make([]reply, len(d.Statuses))
	m := &ratelimitpb.RateLimitResponse{
		OverallCode: codeTo(d.Code),
		Statuses:    make([]*ratelimitpb.RateLimitResponse_DescriptorStatus, len(d.Statuses)),
	}
	for i := range d.Statuses {
		replies[i].fill(&d.Statuses[i])
		m.Statuses[i] = &replies[i].status
	}
	for _, h := range headers {
		m.ResponseHeadersToAdd = append(m.ResponseHeadersToAdd, &corepb.HeaderValue{Key: h.name, Value: h.value})
	}
	return m
}

func (r *reply) fill(from *ratelimit.Status) {
	r.status.Code = codeTo(from.Code)
	r.status.LimitRemaining = from.Remaining
	if from.HasLimit() {
		r.limit.RequestsPerUnit = from.Limit.RequestsPerUnit
		r.limit.Unit = unitTo(from.Limit.Unit)
		r.limit.Name = limitName(from)
		r.status.CurrentLimit = &r.limit
		r.reset.Seconds = seconds(from.UntilReset)
		r.status.DurationUntilReset = &r.reset
	}
}

// limitName returns the name of the rule that set the limit; empty for a rule without a name and for
// a limit that the request brought.
func limitName(s *ratelimit.Status) string {
	if s.Rule == nil {
		return ""
	}
	return string(s.Rule.Name)
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }

// pair is a header.
type pair struct{ name, value string }

// of returns the headers of a decision: those of the descriptor closest to its limit, with plain
// numbers (contract L-28). It returns nil when no descriptor has a limit.
func (c HeaderConfig) of(d *ratelimit.Decision) []pair {
	if !c.Enabled {
		return nil
	}
	s := d.Closest()
	if s == nil {
		return nil
	}
	return []pair{
		{c.Limit, strconv.FormatUint(uint64(s.Limit.RequestsPerUnit), 10)},
		{c.Remaining, strconv.FormatUint(uint64(s.Remaining), 10)},
		{c.Reset, strconv.FormatInt(seconds(s.UntilReset), 10)},
	}
}
