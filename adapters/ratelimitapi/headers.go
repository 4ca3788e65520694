package ratelimitapi

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"
	ratelimitpb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/sirupsen/logrus"
	"github.com/valyala/fasthttp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/tollgate-dev/tollgate/adapters/internal/httpconn"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/requestid"
)

// The headers of the IETF draft "RateLimit header fields for HTTP".
const (
	policyHeader = "RateLimit-Policy"
	draftHeader  = "RateLimit"
)

// The values of LIMIT_RESPONSE_HEADERS.
const (
	legacyForm = "legacy"
	draftForm  = "draft"
	bothForms  = "both"
)

// HeaderConfig holds the settings of the response headers.
type HeaderConfig struct {
	Enabled   bool   `env:"LIMIT_RESPONSE_HEADERS_ENABLED" envDefault:"false" desc:"add headers with limit, remaining hits and seconds until reset to responses"`
	Form      string `env:"LIMIT_RESPONSE_HEADERS" envDefault:"legacy" desc:"which headers LIMIT_RESPONSE_HEADERS_ENABLED adds: legacy (three headers about the descriptor closest to its limit), draft (RateLimit-Policy and RateLimit of the IETF draft, about every limit that was counted), or both"`
	Limit     string `env:"LIMIT_LIMIT_HEADER" envDefault:"RateLimit-Limit" desc:"name of the header with the limit"`
	Remaining string `env:"LIMIT_REMAINING_HEADER" envDefault:"RateLimit-Remaining" desc:"name of the header with the remaining hits"`
	Reset     string `env:"LIMIT_RESET_HEADER" envDefault:"RateLimit-Reset" desc:"name of the header with the seconds until reset"`
}

func (c HeaderConfig) validate() error {
	return errors.Join(
		c.checkForm(),
		c.checkName("LIMIT_LIMIT_HEADER", c.Limit),
		c.checkName("LIMIT_REMAINING_HEADER", c.Remaining),
		c.checkName("LIMIT_RESET_HEADER", c.Reset),
	)
}

func (c HeaderConfig) checkForm() error {
	switch c.Form {
	case "", legacyForm, draftForm, bothForms:
		return nil
	}
	return fmt.Errorf("LIMIT_RESPONSE_HEADERS: %q is not one of %s, %s, %s", c.Form, legacyForm, draftForm, bothForms)
}

// checkName checks the name of a legacy header, which must not be that of a header of the draft if
// a response has both.
func (c HeaderConfig) checkName(variable, name string) error {
	if err := checkHeaderName(variable, name); err != nil {
		return err
	}
	if c.Form == bothForms && (strings.EqualFold(name, policyHeader) || strings.EqualFold(name, draftHeader)) {
		return fmt.Errorf("%s: %q is a header of the draft, which LIMIT_RESPONSE_HEADERS=both adds too", variable, name)
	}
	return nil
}

type headerField struct{ name, value string }

// fields returns the headers of a decision about a request, or nil.
func (c HeaderConfig) fields(m *ratelimitpb.RateLimitRequest, d *ratelimit.Decision) []headerField {
	if !c.Enabled {
		return nil
	}
	switch c.Form {
	case draftForm:
		return draftFields(m, d)
	case bothForms:
		return append(c.legacyFields(d), draftFields(m, d)...)
	default:
		return c.legacyFields(d)
	}
}

// legacyFields returns the headers of the descriptor closest to its limit, with plain numbers
// (contract L-28). It returns nil when no descriptor has a limit.
func (c HeaderConfig) legacyFields(d *ratelimit.Decision) []headerField {
	s := d.Closest()
	if s == nil {
		return nil
	}
	return []headerField{
		{c.Limit, strconv.FormatUint(uint64(s.Limit.RequestsPerUnit), 10)},
		{c.Remaining, strconv.FormatUint(uint64(s.Remaining), 10)},
		{c.Reset, strconv.FormatInt(wholeSeconds(s.UntilReset), 10)},
	}
}

// draftFields returns the headers of the draft, structured fields (RFC 9651) with a member for
// every limit that was counted, in the order of the descriptors (contract L-65). It returns nil
// when there is none. The decision has resets in whole seconds, rounded up.
func draftFields(m *ratelimitpb.RateLimitRequest, d *ratelimit.Decision) []headerField {
	var policies, limits httpsfv.List
	for i := range d.Statuses {
		s := &d.Statuses[i]
		if !s.HasLimit() || s.Rule != nil && s.Rule.Shadow {
			continue
		}
		name := structuredString(policyName(m, s, i))
		policy, limit := httpsfv.NewItem(name), httpsfv.NewItem(name)
		policy.Params.Add("q", int64(s.Limit.RequestsPerUnit))
		policy.Params.Add("w", int64(s.Limit.Unit.Window()/time.Second))
		limit.Params.Add("r", int64(s.Remaining))
		limit.Params.Add("t", wholeSeconds(s.UntilReset))
		policies, limits = append(policies, policy), append(limits, limit)
	}
	if len(policies) == 0 {
		return nil
	}
	policy, policyErr := httpsfv.Marshal(policies)
	limit, limitErr := httpsfv.Marshal(limits)
	if policyErr != nil || limitErr != nil { // printable names and numbers below 10^15 always marshal
		return nil
	}
	return []headerField{{policyHeader, policy}, {draftHeader, limit}}
}

// policyName returns the name of the limit of a status: that of its rule, else the path of the
// rule; of a limit in the request the keys of the descriptor, without the values, which callers may
// not want in a response.
func policyName(m *ratelimitpb.RateLimitRequest, s *ratelimit.Status, descriptor int) string {
	if s.Rule != nil {
		if s.Rule.Name != "" {
			return string(s.Rule.Name)
		}
		return strings.Join(s.Rule.Written, ",")
	}
	var keys []string
	for _, e := range m.GetDescriptors()[descriptor].GetEntries() {
		keys = append(keys, e.GetKey())
	}
	return strings.Join(keys, ",")
}

// structuredString replaces each character that a structured string cannot have with a question
// mark (RFC 9651, 3.3.3).
func structuredString(name string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, name)
}

// The names of the request id.
const (
	fieldRequestID   = "request_id"   // in log lines
	grpcRequestIDKey = "x-request-id" // in gRPC metadata: requestid.Header as HTTP/2 writes it
)

// grpcRequestID returns the id that the caller sent; empty for no valid id. Envoy sends the id of
// the request that it checks.
func grpcRequestID(ctx context.Context) string {
	ids := metadata.ValueFromIncomingContext(ctx, grpcRequestIDKey)
	if len(ids) == 0 || !requestid.Valid(ids[0]) {
		return ""
	}
	return ids[0]
}

// grpcLog returns the log for lines about a gRPC call. It sets the request id in the line and in
// the response. Calls without log lines get no request id, because it would slow them down.
func (s *service) grpcLog(ctx context.Context) *logrus.Entry {
	id := requestid.FromContext(ctx)
	if id == "" {
		id = setCallID(ctx)
	}
	return s.log.WithContext(ctx).WithField(fieldRequestID, id)
}

// setCallID sets the request id in the response to a gRPC call and returns it: the id that the
// caller sent, or a random one.
func setCallID(ctx context.Context) string {
	id := httpconn.RequestID(grpcRequestID(ctx))
	_ = grpc.SetHeader(ctx, metadata.Pairs(grpcRequestIDKey, id)) // fails after the first message of a stream
	return id
}

// httpLog returns the log for lines about an HTTP request.
func (s *service) httpLog(c *fasthttp.RequestCtx) *logrus.Entry {
	return s.log.WithContext(contextOf(c)).WithField(fieldRequestID, httpconn.RequestIDOf(c))
}
