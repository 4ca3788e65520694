package ratelimit

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestRateLimit sends nested descriptors with and without values over gRPC and /json.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t)
		c := s.NewRateLimitClient(t)
		pay := fixture.NewRateLimitRequest("shop", "tenant", "a", "path", "/pay")
		for range 2 {
			fixture.WantOverallCode(t, c, pay, ratelimit.RateLimitResponse_OK)
		}
		r := fixture.WantOverallCode(t, c, pay, ratelimit.RateLimitResponse_OVER_LIMIT)
		if limit := r.Statuses[0].GetCurrentLimit(); limit.GetRequestsPerUnit() != 2 ||
			limit.GetUnit() != ratelimit.RateLimitResponse_RateLimit_HOUR {
			t.Errorf("current limit is %v", limit)
		}
		r = fixture.WantOverallCode(t, c, fixture.NewRateLimitRequest("shop", "tenant", "a", "path", "/browse"),
			ratelimit.RateLimitResponse_OK)
		if r.Statuses[0].LimitRemaining != 99 {
			t.Errorf("remaining is %d, want 99", r.Statuses[0].LimitRemaining)
		}
		fixture.WantOverallCode(t, c, fixture.NewRateLimitRequest("shop", "tenant", "b", "path", "/pay"),
			ratelimit.RateLimitResponse_OK)
		fixture.WantOverallCode(t, c, fixture.NewRateLimitRequest("shop", "tenant", "blocked"),
			ratelimit.RateLimitResponse_OVER_LIMIT)
		r = fixture.WantOverallCode(t, c, fixture.NewRateLimitRequest("shop", "tenant", "free"),
			ratelimit.RateLimitResponse_OK)
		if r.Statuses[0].LimitRemaining != 1<<32-1 {
			t.Errorf("remaining of unlimited is %d", r.Statuses[0].LimitRemaining)
		}
		fixture.WantOverallCode(t, c, fixture.NewRateLimitRequest("unknown", "tenant", "a"),
			ratelimit.RateLimitResponse_OK)
		_, err := c.ShouldRateLimit(t.Context(), fixture.NewRateLimitRequest("", "tenant", "a"))
		if status.Code(err) != codes.InvalidArgument ||
			status.Convert(err).Message() != "rate limit domain must not be empty" {
			t.Errorf("empty domain: %v", err)
		}
		checkJSON(t, s)
	})
}

// checkJSON sends the same requests to /json.
func checkJSON(t *testing.T, s *fixture.Service) {
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
	apiclient.Call(t, "POST", s.RateLimitAPI+"/json", ask).WantStatus(t, http.StatusOK).Decode(t, &got)
	if got.OverallCode != "OK" || got.Statuses[0].CurrentLimit.Unit != "HOUR" || got.Statuses[0].LimitRemaining != 1 {
		t.Errorf("/json answered %+v", got)
	}
	apiclient.Call(t, "POST", s.RateLimitAPI+"/json", ask).WantStatus(t, http.StatusOK)
	apiclient.Call(t, "POST", s.RateLimitAPI+"/json", ask).WantStatus(t, http.StatusTooManyRequests).Decode(t, &got)
	if got.OverallCode != "OVER_LIMIT" {
		t.Errorf("/json answered %+v", got)
	}
	apiclient.Call(t, "POST", s.RateLimitAPI+"/json", "{").WantStatus(t, http.StatusBadRequest)
	apiclient.Call(t, "GET", s.RateLimitAPI+"/json", nil).WantStatus(t, http.StatusMethodNotAllowed)
}

// TestRateLimitTogether sends calls of many clients to one limit. Exactly as many as the limit
// allows must pass.
func TestRateLimitTogether(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, e *fixture.Environment) {
		instances := []*fixture.Service{e.Start(t)}
		if e.Shared {
			instances = append(instances, e.Start(t))
		}
		var ok atomic.Int64
		var wg sync.WaitGroup
		for caller := range 64 {
			c := instances[caller%len(instances)].NewRateLimitClient(t)
			wg.Go(func() {
				for range 50 {
					r, err := c.ShouldRateLimit(t.Context(), fixture.NewRateLimitRequest("shop", "batch", "one"))
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
