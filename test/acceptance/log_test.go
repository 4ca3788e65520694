package acceptance

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// TestLogLines reads the log of a service whose counter store is away, in JSON: each line has its
// message, time and level (contract O-19), and each failure names its request as the answer does,
// in every transport, whether or not the caller gave it a name.
func TestLogLines(t *testing.T) {
	s := production(t).start(t, "KVSTORE_URL=127.0.0.1:1", "LOG_FORMAT=json", "LOG_LEVEL=debug")
	var asked []string
	for _, given := range []string{"", "of-a-caller"} {
		api, limit := given, given
		if given != "" {
			api, limit = given+"-api", given+"-json"
		}
		a := call(t, "POST", s.api+"/auth/refresh", map[string]string{"refreshToken": "x"}, "X-Request-Id", api).want(t, http.StatusServiceUnavailable)
		j := call(t, "POST", s.limitAPI+"/json", map[string]string{"domain": ""}, "X-Request-Id", limit).want(t, http.StatusBadRequest)
		asked = append(asked, a.header.Get("X-Request-Id"), j.header.Get("X-Request-Id"), s.failByGRPC(t, given))
	}
	slices.Sort(asked)
	if named := len(slices.Compact(asked)); named != len(asked) || asked[0] == "" {
		t.Fatalf("%d of 6 requests have a name of their own: %q", named, asked)
	}
	s.stop()
	logged := map[string]bool{}
	for line := range strings.Lines(s.process.Log()) {
		fields := logLine(t, line)
		id, _ := fields["request_id"].(string)
		logged[id] = true
	}
	for _, id := range asked {
		if !logged[id] {
			t.Errorf("no line of the log names %s", id)
		}
	}
}

// failByGRPC makes a call that is refused and returns its id.
func (s *service) failByGRPC(t *testing.T, id string) string {
	t.Helper()
	ctx := t.Context()
	if id != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "x-request-id", id+"-grpc")
	}
	var header metadata.MD
	if _, err := s.rateLimiter(t).ShouldRateLimit(ctx, request(""), grpc.Header(&header)); err == nil {
		t.Fatal("an empty domain is no mistake")
	}
	return strings.Join(header.Get("x-request-id"), " ")
}

// logLine reads a line of the log and checks what every line has.
func logLine(t *testing.T, line string) map[string]any {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal([]byte(line), &fields); err != nil {
		t.Fatalf("%q is not JSON: %v", line, err)
	}
	message, _ := fields["@message"].(string)
	at, _ := fields["@timestamp"].(string)
	level, _ := fields["level"].(string)
	if _, err := time.Parse(time.RFC3339Nano, at); err != nil || message == "" || !slices.Contains([]string{"debug", "info", "warning", "error"}, level) {
		t.Errorf("line %q", line)
	}
	for _, name := range []string{"msg", "time"} { // what the library would call them
		if _, there := fields[name]; there {
			t.Errorf("line %q has a field %s", line, name)
		}
	}
	return fields
}
