package ratelimit

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	types "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// callStep is one request and its expected response, in a short form.
type callStep struct {
	ask  []*common.RateLimitDescriptor
	hits uint32
	want string // the overall code, and for each descriptor its code, limit and remaining hits
}

// newDescriptor is a descriptor, written as "key=value,key=value".
func newDescriptor(path string) *common.RateLimitDescriptor {
	d := &common.RateLimitDescriptor{}
	for pair := range strings.SplitSeq(path, ",") {
		key, value, _ := strings.Cut(pair, "=")
		d.Entries = append(d.Entries, &common.RateLimitDescriptor_Entry{Key: key, Value: value})
	}
	return d
}

func newStep(want string, paths ...string) callStep {
	s := callStep{want: want}
	for _, p := range paths {
		s.ask = append(s.ask, newDescriptor(p))
	}
	return s
}

// withOwnHits sets the hits of all descriptors of a step.
func withOwnHits(hits uint64, s callStep) callStep {
	for _, d := range s.ask {
		d.HitsAddend = wrapperspb.UInt64(hits)
	}
	return s
}

func withHits(hits uint32, s callStep) callStep { s.hits = hits; return s }

// withOwnLimit sets the limit of all descriptors of a step.
func withOwnLimit(limit uint32, unit types.RateLimitUnit, s callStep) callStep {
	for _, d := range s.ask {
		d.Limit = &common.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: limit, Unit: unit}
	}
	return s
}

func withNegativeHits(s callStep) callStep {
	for _, d := range s.ask {
		d.IsNegativeHits = true
	}
	return s
}

// followSteps makes the calls of the steps in a domain, one after the other.
func followSteps(t *testing.T, ask transport, domain string, steps []callStep) {
	t.Helper()
	for i, s := range steps {
		answer := ask(t, &ratelimit.RateLimitRequest{Domain: domain, Descriptors: s.ask, HitsAddend: s.hits})
		if got := formatResponse(answer); got != s.want {
			t.Fatalf("call %d: %s, want %s", i, got, s.want)
		}
		for _, status := range answer.Statuses {
			if limited := status.CurrentLimit != nil; limited != (status.DurationUntilReset.GetSeconds() > 0) {
				t.Errorf("call %d: %v", i, status)
			}
		}
	}
}

// transport requests a decision over one transport.
type transport func(*testing.T, *ratelimit.RateLimitRequest) *ratelimit.RateLimitResponse

// newTransports returns the ways to call a service, by name.
func newTransports(s *fixture.Service) map[string]transport {
	return map[string]transport{
		"grpc": func(t *testing.T, r *ratelimit.RateLimitRequest) *ratelimit.RateLimitResponse {
			t.Helper()
			answer, err := s.NewRateLimitClient(t).ShouldRateLimit(t.Context(), r)
			must.Succeed(t, err)
			return answer
		},
		"json": func(t *testing.T, r *ratelimit.RateLimitRequest) *ratelimit.RateLimitResponse {
			t.Helper()
			status, body := postRateLimitJSON(t, s, r)
			answer := &ratelimit.RateLimitResponse{}
			if err := protojson.Unmarshal(body, answer); err != nil {
				t.Fatalf("%s: %v", body, err)
			}
			if over := answer.OverallCode ==
				ratelimit.RateLimitResponse_OVER_LIMIT; over != (status == http.StatusTooManyRequests) ||
				!over && status != http.StatusOK {
				t.Errorf("%v with status %d", answer.OverallCode, status)
			}
			return answer
		},
	}
}

// postRateLimitJSON sends a request to /json and returns the status and the body.
func postRateLimitJSON(t *testing.T, s *fixture.Service, r *ratelimit.RateLimitRequest) (int, []byte) {
	t.Helper()
	body, err := protojson.Marshal(r)
	must.Succeed(t, err)
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, s.RateLimitAPI+"/json",
		strings.NewReader(string(body)))
	must.Succeed(t, err)
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	must.Succeed(t, err)
	defer func() { _ = answer.Body.Close() }() // the body was read
	got, err := io.ReadAll(answer.Body)
	must.Succeed(t, err)
	return answer.StatusCode, got
}

// formatResponse formats a response in the short form of the steps.
func formatResponse(r *ratelimit.RateLimitResponse) string {
	short := func(c ratelimit.RateLimitResponse_Code) string { return strings.TrimSuffix(c.String(), "_LIMIT") }
	statuses := make([]string, len(r.Statuses))
	for i, s := range r.Statuses {
		statuses[i] = short(s.Code)
		switch limit := s.CurrentLimit; {
		case limit != nil:
			statuses[i] += fmt.Sprintf(" %d/%s %d", limit.RequestsPerUnit, limit.Unit, s.LimitRemaining)
		case s.LimitRemaining == 1<<32-1:
			statuses[i] += " ∞"
		case s.LimitRemaining != 0:
			statuses[i] += fmt.Sprintf(" %d", s.LimitRemaining)
		}
	}
	return short(r.OverallCode) + ": " + strings.Join(statuses, " | ")
}
