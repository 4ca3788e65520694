package ratelimit

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	types "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tollgate-dev/tollgate/test/fixture"
)

// ruleFile holds one rule of each kind, for a domain.
const ruleFile = `domain: %s
descriptors:
  - key: order
    value: exact
    rate_limit: {unit: hour, requests_per_unit: 11}
  - key: order
    value: "ex*"
    rate_limit: {unit: hour, requests_per_unit: 12}
  - key: order
    value: "e*t*"
    rate_limit: {unit: hour, requests_per_unit: 13}
  - key: order
    value: "*-end"
    rate_limit: {unit: hour, requests_per_unit: 14}
  - key: order
    rate_limit: {unit: hour, requests_per_unit: 15}
  - key: deep
    rate_limit: {unit: hour, requests_per_unit: 20}
    descriptors:
      - key: deeper
        rate_limit: {unit: hour, requests_per_unit: 21}
  - key: placeholder
    descriptors:
      - key: below
        rate_limit: {unit: hour, requests_per_unit: 1}
  - key: whitelisted
    value: yes
  - key: whitelisted
    rate_limit: {unit: hour, requests_per_unit: 0}
  - key: blocked
    rate_limit: {unit: hour, requests_per_unit: 0}
  - key: two
    rate_limit: {unit: hour, requests_per_unit: 2}
  - key: ten
    rate_limit: {unit: hour, requests_per_unit: 10}
  - key: free
    rate_limit: {unlimited: true, name: free, replaces: [{name: base}]}
  - key: base
    rate_limit: {unit: hour, requests_per_unit: 1, name: base}
  - key: middle
    rate_limit: {unit: hour, requests_per_unit: 5, name: middle, replaces: [{name: base}]}
  - key: top
    rate_limit: {unit: hour, requests_per_unit: 6, name: top, replaces: [{name: middle}, {name: free}]}
  - key: shadow
    value: inside
    rate_limit: {unit: hour, requests_per_unit: 1, shadow_mode: true}
  - key: shadow
    value: beside
    shadow_mode: true
    rate_limit: {unit: hour, requests_per_unit: 1}
  - key: share
    value: "/a/*"
    share_threshold: true
    rate_limit: {unit: hour, requests_per_unit: 2}
  - key: apart
    value: "/a/*"
    rate_limit: {unit: hour, requests_per_unit: 2}
  - key: quota
    value: small
    quota_mode: true
    rate_limit: {unit: hour, requests_per_unit: 1}
  - key: quota
    value: large
    quota_mode: true
    rate_limit: {unit: hour, requests_per_unit: 2}
  - key: unit
    value: second
    rate_limit: {unit: Second, requests_per_unit: 1000}
  - key: unit
    value: minute
    rate_limit: {unit: MINUTE, requests_per_unit: 1000}
  - key: unit
    value: day
    rate_limit: {unit: day, requests_per_unit: 1000}
  - key: unit
    value: week
    rate_limit: {unit: week, requests_per_unit: 1000}
  - key: unit
    value: month
    rate_limit: {unit: month, requests_per_unit: 1000}
  - key: unit
    value: year
    rate_limit: {unit: year, requests_per_unit: 1000}
`

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

// ruleSteps returns the rules of contract L-1 to L-20, each with a sequence of calls.
func ruleSteps() map[string][]callStep {
	return map[string][]callStep{
		"exact value first": {newStep("OK: OK 11/HOUR 10", "order=exact")},
		"then wildcards, by the file": {
			newStep("OK: OK 12/HOUR 11", "order=exit"), newStep("OK: OK 13/HOUR 12", "order=east"),
		},
		"a star anywhere": {
			newStep("OK: OK 14/HOUR 13", "order=the-end"), newStep("OK: OK 14/HOUR 13", "order=-end"),
		},
		"then the key alone": {
			newStep("OK: OK 15/HOUR 14", "order=other"), newStep("OK: OK 15/HOUR 14", "order="),
		},
		"keys are case-sensitive": {newStep("OK: OK", "Order=exact")},
		"depth": {
			newStep("OK: OK 20/HOUR 19", "deep=x"), newStep("OK: OK 21/HOUR 20", "deep=x,deeper=y"),
			newStep("OK: OK", "deep=x,deeper=y,deepest=z"), newStep("OK: OK", "deep=x,other=y"),
		},
		"placeholder": {
			newStep("OK: OK", "placeholder=x"), newStep("OK: OK 1/HOUR 0", "placeholder=x,below=y"),
			newStep("OVER: OVER 1/HOUR 0", "placeholder=x,below=y"),
			newStep("OK: OK 1/HOUR 0", "placeholder=other,below=y"),
		},
		"whitelisted": {
			newStep("OK: OK", "whitelisted=yes"), newStep("OVER: OVER 0/HOUR 0", "whitelisted=no"),
		},
		"zero blocks, looks too": {
			newStep("OVER: OVER 0/HOUR 0", "blocked=x"), withOwnHits(0, newStep("OVER: OVER 0/HOUR 0", "blocked=y")),
		},
		"any over is over": {
			newStep("OVER: OK 2/HOUR 1 | OVER 0/HOUR 0 | OK", "two=or", "blocked=or", "none=or"),
		},
		"each value counts by itself": {
			newStep("OK: OK 2/HOUR 1 | OK 2/HOUR 1 | OK 2/HOUR 0", "two=a", "two=b", "two=a"),
		},
		"unlimited": {newStep("OK: OK ∞", "free=x")},
		"replaced": {
			newStep("OK: OK | OK 5/HOUR 4", "base=r", "middle=r"), newStep("OK: OK 1/HOUR 0", "base=r"),
			newStep("OVER: OVER 1/HOUR 0", "base=r"),
		},
		"replaced in a chain": {
			newStep("OK: OK | OK | OK 6/HOUR 5", "base=c", "middle=c", "top=c"), newStep("OK: OK 1/HOUR 0", "base=c"),
		},
		"unlimited replaces": {
			newStep("OK: OK | OK ∞", "base=u", "free=u"), newStep("OK: OK 1/HOUR 0", "base=u"),
		},
		"unlimited is not replaced": {newStep("OK: OK ∞ | OK 6/HOUR 5", "free=n", "top=n")},
		"shadow inside": {
			newStep("OK: OK 1/HOUR 0", "shadow=inside"), newStep("OK: OK 1/HOUR 0", "shadow=inside"),
		},
		"shadow beside": {
			newStep("OK: OK 1/HOUR 0", "shadow=beside"), newStep("OK: OK 1/HOUR 0", "shadow=beside"),
		},
		"shared threshold": {
			newStep("OK: OK 2/HOUR 1 | OK 2/HOUR 0", "share=/a/1", "share=/a/2"),
			newStep("OVER: OVER 2/HOUR 0", "share=/a/3"), newStep("OK: OK 2/HOUR 1", "apart=/a/1"),
			newStep("OK: OK 2/HOUR 1", "apart=/a/2"),
		},
		"quota mode": {
			newStep("OK: OK 1/HOUR 0 | OK 2/HOUR 1", "quota=small", "quota=large"),
			newStep("OK: OVER 1/HOUR 0 | OK 2/HOUR 0", "quota=small", "quota=large"),
			newStep("OVER: OVER 1/HOUR 0 | OVER 2/HOUR 0", "quota=small", "quota=large"),
			newStep("OVER: OVER 1/HOUR 0 | OVER 0/HOUR 0", "quota=small", "blocked=q"),
		},
		"units": {
			newStep(
				"OK: OK 1000/SECOND 999 | OK 1000/MINUTE 999 | OK 1000/DAY 999 | OK 1000/WEEK 999 | OK 1000/MONTH 999 | OK 1000/YEAR 999", "unit=second", "unit=minute", "unit=day", "unit=week", "unit=month", "unit=year"),
		},
		"hits of the request": {
			withHits(3, newStep("OK: OK 10/HOUR 7", "ten=r")), withHits(8, newStep("OVER: OVER 10/HOUR 0", "ten=r")),
			newStep("OVER: OVER 10/HOUR 0", "ten=r"),
		},
		"hits of the descriptor": {withHits(9, withOwnHits(2, newStep("OK: OK 10/HOUR 8", "ten=d")))},
		"no hits look": {
			withOwnHits(0, newStep("OK: OK 10/HOUR 10", "ten=l")),
			withOwnHits(10, newStep("OK: OK 10/HOUR 0", "ten=l")), withOwnHits(0, newStep("OK: OK 10/HOUR 0", "ten=l")),
			newStep("OVER: OVER 10/HOUR 0", "ten=l"), withOwnHits(0, newStep("OVER: OVER 10/HOUR 0", "ten=l")),
		},
		"hits given back": {
			withOwnHits(10, newStep("OK: OK 10/HOUR 0", "ten=b")),
			withNegativeHits(withOwnHits(4, newStep("OK: OK 10/HOUR 4", "ten=b"))),
			newStep("OK: OK 10/HOUR 3", "ten=b"),
		},
		"override": {
			withOwnLimit(3, types.RateLimitUnit_DAY, newStep("OK: OK 3/DAY 2", "blocked=o")),
			withOwnLimit(3, types.RateLimitUnit_DAY, withOwnHits(3, newStep("OVER: OVER 3/DAY 0", "blocked=o"))),
			withOwnLimit(4, types.RateLimitUnit_MONTH, newStep("OK: OK 4/MONTH 3", "unheard=of")),
		},
	}
}

// TestRateLimitRules checks the rules over gRPC and /json, each in its own domain.
func TestRateLimitRules(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, e *fixture.Environment) {
		for transport := range newTransports(nil) {
			fixture.WriteFile(t, filepath.Join(e.RulesDir, transport+".yaml"), fmt.Sprintf(ruleFile, transport))
		}
		s := e.Start(t)
		for transport, ask := range newTransports(s) {
			for name, steps := range ruleSteps() {
				t.Run(transport+"/"+name, func(t *testing.T) { followSteps(t, ask, transport, steps) })
			}
		}
	})
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
			if err != nil {
				t.Fatal(err)
			}
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
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, s.RateLimitAPI+"/json",
		strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }() // the body was read
	got, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
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
