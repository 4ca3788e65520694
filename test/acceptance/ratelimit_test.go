package acceptance

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

const rules = `domain: shop
descriptors:
  - key: tenant
    descriptors:
      - key: path
        value: /pay
        rate_limit: {unit: hour, requests_per_unit: 2}
      - key: path
        rate_limit: {unit: hour, requests_per_unit: 100}
  - key: tenant
    value: blocked
    rate_limit: {unit: minute, requests_per_unit: 0}
  - key: tenant
    value: free
    rate_limit: {unlimited: true}
  - key: batch
    rate_limit: {unit: hour, requests_per_unit: 1000}
`

// TestRateLimit asks over gRPC and /json for nested descriptors with and
// without values.
func TestRateLimit(t *testing.T) {
	eachStore(t, func(t *testing.T, e *environment) {
		s := e.start(t)
		c := s.rateLimiter(t)
		pay := request("shop", "tenant", "a", "path", "/pay")
		for range 2 {
			wantOverall(t, c, pay, ratelimit.RateLimitResponse_OK)
		}
		r := wantOverall(t, c, pay, ratelimit.RateLimitResponse_OVER_LIMIT)
		if limit := r.Statuses[0].GetCurrentLimit(); limit.GetRequestsPerUnit() != 2 || limit.GetUnit() != ratelimit.RateLimitResponse_RateLimit_HOUR {
			t.Errorf("current limit is %v", limit)
		}
		r = wantOverall(t, c, request("shop", "tenant", "a", "path", "/browse"), ratelimit.RateLimitResponse_OK)
		if r.Statuses[0].LimitRemaining != 99 {
			t.Errorf("remaining is %d, want 99", r.Statuses[0].LimitRemaining)
		}
		wantOverall(t, c, request("shop", "tenant", "b", "path", "/pay"), ratelimit.RateLimitResponse_OK)
		wantOverall(t, c, request("shop", "tenant", "blocked"), ratelimit.RateLimitResponse_OVER_LIMIT)
		r = wantOverall(t, c, request("shop", "tenant", "free"), ratelimit.RateLimitResponse_OK)
		if r.Statuses[0].LimitRemaining != 1<<32-1 {
			t.Errorf("remaining of unlimited is %d", r.Statuses[0].LimitRemaining)
		}
		wantOverall(t, c, request("unknown", "tenant", "a"), ratelimit.RateLimitResponse_OK)
		_, err := c.ShouldRateLimit(t.Context(), request("", "tenant", "a"))
		if status.Code(err) != codes.InvalidArgument || status.Convert(err).Message() != "rate limit domain must not be empty" {
			t.Errorf("empty domain: %v", err)
		}
		overJSON(t, s)
	})
}

// overJSON asks the same of /json.
func overJSON(t *testing.T, s *service) {
	t.Helper()
	ask := map[string]any{"domain": "shop", "descriptors": []any{map[string]any{"entries": []any{
		map[string]string{"key": "tenant", "value": "json"}, map[string]string{"key": "path", "value": "/pay"},
	}}}}
	var got struct {
		OverallCode string
		Statuses    []struct {
			Code         string
			CurrentLimit struct {
				RequestsPerUnit int
				Unit            string
			}
			LimitRemaining int
		}
	}
	call(t, "POST", s.limitAPI+"/json", ask).want(t, http.StatusOK).decode(t, &got)
	if got.OverallCode != "OK" || got.Statuses[0].CurrentLimit.Unit != "HOUR" || got.Statuses[0].LimitRemaining != 1 {
		t.Errorf("/json answered %+v", got)
	}
	call(t, "POST", s.limitAPI+"/json", ask).want(t, http.StatusOK)
	call(t, "POST", s.limitAPI+"/json", ask).want(t, http.StatusTooManyRequests).decode(t, &got)
	if got.OverallCode != "OVER_LIMIT" {
		t.Errorf("/json answered %+v", got)
	}
	call(t, "POST", s.limitAPI+"/json", "{").want(t, http.StatusBadRequest)
	call(t, "GET", s.limitAPI+"/json", nil).want(t, http.StatusMethodNotAllowed)
}

// TestRateLimitTogether lets many callers press on one limit: exactly as many
// as it allows get through.
func TestRateLimitTogether(t *testing.T) {
	eachStore(t, func(t *testing.T, e *environment) {
		instances := []*service{e.start(t)}
		if e.shared {
			instances = append(instances, e.start(t))
		}
		var ok atomic.Int64
		var wg sync.WaitGroup
		for caller := range 64 {
			c := instances[caller%len(instances)].rateLimiter(t)
			wg.Go(func() {
				for range 50 {
					r, err := c.ShouldRateLimit(t.Context(), request("shop", "batch", "one"))
					if err != nil {
						t.Error(err)
						return
					}
					if r.OverallCode == ratelimit.RateLimitResponse_OK {
						ok.Add(1)
					}
				}
			})
		}
		wg.Wait()
		if got := ok.Load(); got != 1000 {
			t.Errorf("%d of 3200 calls got through a limit of 1000", got)
		}
	})
}

// rateLimiter returns a gRPC client of the instance.
func (s *service) rateLimiter(t *testing.T) ratelimit.RateLimitServiceClient {
	t.Helper()
	conn, err := grpc.NewClient(s.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // the test is over
	return ratelimit.NewRateLimitServiceClient(conn)
}

// request returns a request of one descriptor of keys and values in turn.
func request(domain string, entries ...string) *ratelimit.RateLimitRequest {
	d := &common.RateLimitDescriptor{}
	for i := 0; i+1 < len(entries); i += 2 {
		d.Entries = append(d.Entries, &common.RateLimitDescriptor_Entry{Key: entries[i], Value: entries[i+1]})
	}
	return &ratelimit.RateLimitRequest{Domain: domain, Descriptors: []*common.RateLimitDescriptor{d}}
}

func wantOverall(t *testing.T, c ratelimit.RateLimitServiceClient, ask *ratelimit.RateLimitRequest, want ratelimit.RateLimitResponse_Code) *ratelimit.RateLimitResponse {
	t.Helper()
	got, err := c.ShouldRateLimit(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	if got.OverallCode != want {
		t.Fatalf("%v is %v, want %v", ask, got.OverallCode, want)
	}
	return got
}
