package authentication

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/otlp/otlptest"
	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestUnknownPersonLooksLikeAnother checks that the refusal of a person without an account, or with
// a disabled one, is the same as for a wrong password: the same bytes, one password hash, and the
// same database statements. `go run ./test/load refusals` measures that the time is the same too.
func TestUnknownPersonLooksLikeAnother(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		collector := otlptest.Start(t)
		t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "50") // which the exporter reads in the process of the service, this one
		s := e.Start(t,
			"TRACING_ENABLED=true", "TRACING_EXPORTER_PROTOCOL=http", "TRACING_SAMPLING_RATE=0",
			"OTEL_EXPORTER_OTLP_ENDPOINT="+collector.Endpoint("http"))
		known := e.NewPerson(t, "ada@example.com")
		e.NewPerson(t, "gone@example.com")
		e.RunCommand(t, "", "user", "disable", "--email", "gone@example.com")
		hashes := s.Metric("tollgate_password_hashes_total")
		for try := range 6 { // for the sixth, the account is locked
			want := readRefusal(t, s, collector, known.Email, try, known.Device)
			for _, email := range []string{"eve@example.com", "gone@example.com"} {
				if got := readRefusal(t, s, collector, email, try, known.Device); got != want {
					t.Errorf("try %d: %s is refused by\n%s\nbut %s by\n%s", try, email, got, known.Email, want)
				}
			}
		}
		if n := s.Metric("tollgate_password_hashes_total", "outcome", "done") - hashes; n != 3*5 {
			t.Errorf("%v passwords were hashed for three people with five tries each", n)
		}
	})
}

// readRefusal tries a wrong password and returns everything that distinguishes refusals: the
// response, and the sequence of database statements.
func readRefusal(
	t *testing.T, s *fixture.Service, collector *otlptest.Collector, email string, try int, device map[string]string,
) string {
	t.Helper()
	trace := newTraceID(email, try)
	a := apiclient.Call(t, "POST", s.API+"/auth/login", map[string]any{
		"email": email, "password": "wrong", "deviceInfo": device,
	},
		"traceparent", "00-"+trace+"-00f067aa0ba902b7-01")
	status, code := http.StatusUnauthorized, "invalid_credentials"
	if try == 5 {
		status, code = http.StatusForbidden, "account_locked"
	}
	apiclient.WantAuthError(t, a.WantStatus(t, status), code)
	body := string(a.Body)
	if status == http.StatusForbidden {
		body = "" // the body has the end of the lock, which differs
	}
	of := func(span otlptest.Span) bool { return hex.EncodeToString(span.GetTraceId()) == trace }
	// The span of the request ends last, so that all spans below it have arrived before it.
	collector.Await(t, func(span otlptest.Span) bool { return of(span) && span.GetName() == "POST /auth/login" })
	spans := slices.DeleteFunc(collector.Spans(), func(span otlptest.Span) bool { return !of(span) })
	slices.SortFunc(spans, func(a, b otlptest.Span) int {
		return cmp.Compare(a.GetStartTimeUnixNano(), b.GetStartTimeUnixNano())
	})
	var did []string
	for _, span := range spans {
		did = append(did, span.GetName())
	}
	if len(did) < 3 {
		t.Errorf("only %v was traced", did)
	}
	return visibleHeader(a.Header) + body + "\n" + strings.Join(did, "\n")
}

// newTraceID returns the id of a trace for one try of a person.
func newTraceID(email string, try int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", email, try))
	return hex.EncodeToString(sum[:16])
}

// visibleHeader returns the headers of a response, except those that differ in each response.
func visibleHeader(h http.Header) string {
	h = h.Clone()
	for _, name := range []string{
		"Date", "X-Request-Id", "Content-Length", "X-Ratelimit-Remaining", "X-Ratelimit-Reset",
	} {
		h.Del(name)
	}
	return fmt.Sprint(h)
}
