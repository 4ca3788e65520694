package monitoring

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestLogLines reads the JSON log of a service without its counter store. Each line has its
// message, time and level (contract O-19), and each failure has the request id of its response, in
// every transport, with and without an id from the caller.
func TestLogLines(t *testing.T) {
	s := fixture.NewProduction(t).Start(t, "KVSTORE_URL=127.0.0.1:1", "LOG_FORMAT=json", "LOG_LEVEL=debug")
	var asked []string
	for _, given := range []string{"", "of-a-caller"} {
		api, limit := given, given
		if given != "" {
			api, limit = given+"-api", given+"-json"
		}
		a := apiclient.Call(t, "POST", s.API+"/auth/refresh", map[string]string{"refreshToken": "x"}, "X-Request-Id",
			api).WantStatus(t, http.StatusServiceUnavailable)
		j := apiclient.Call(t, "POST", s.RateLimitAPI+"/json", map[string]string{"domain": ""}, "X-Request-Id", limit).
			WantStatus(t, http.StatusBadRequest)
		asked = append(asked, a.Header.Get("X-Request-Id"), j.Header.Get("X-Request-Id"), failByGRPC(t, s, given))
	}
	slices.Sort(asked)
	if named := len(slices.Compact(asked)); named != len(asked) || asked[0] == "" {
		t.Fatalf("%d of 6 requests have a name of their own: %q", named, asked)
	}
	s.Stop()
	logged := map[string]bool{}
	for line := range strings.Lines(s.Process.Log()) {
		fields := fixture.ParseLogLine(t, line)
		id, _ := fields["request_id"].(string)
		logged[id] = true
	}
	for _, id := range asked {
		if !logged[id] {
			t.Errorf("no line of the log names %s", id)
		}
	}
}

// failByGRPC makes a refused call and returns its request id.
func failByGRPC(t *testing.T, s *fixture.Service, id string) string {
	t.Helper()
	ctx := t.Context()
	if id != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "x-request-id", id+"-grpc")
	}
	var header metadata.MD
	if _, err := s.NewRateLimitClient(t).ShouldRateLimit(ctx, fixture.NewRateLimitRequest(""),
		grpc.Header(&header)); err == nil {
		t.Fatal("an empty domain is no mistake")
	}
	return strings.Join(header.Get("x-request-id"), " ")
}
