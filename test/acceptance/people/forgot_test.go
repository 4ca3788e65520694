package people

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"encoding/hex"

	"github.com/tollgate-dev/tollgate/adapters/otlp/otlptest"
	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// mailsPerHour is the number of links that an address gets in an hour.
const mailsPerHour = 3

// TestForgottenPasswordMails requests more links than an address gets in an hour: the response stays
// the same, without a mail. Other addresses get theirs.
func TestForgottenPasswordMails(t *testing.T) {
	inSite(t, func(t *testing.T, s *site) {
		first := string(s.forgot(t, "nobody@example.com").Body)
		refused := func() float64 { return s.Metric("tollgate_throttled_total", "scope", "reset") }
		for try := 0; ; try++ {
			email, before, hour := fmt.Sprintf("ada%d@example.com", try), refused(), time.Now().Truncate(time.Hour)
			s.add(t, email)
			for _, spelling := range []string{email, strings.ToUpper(email), email, email, " " + email} {
				if got := string(s.forgot(t, spelling).Body); got != first {
					t.Errorf("the response is %s, at first it was %s", got, first)
				}
			}
			await.Until(t, "all requests", func() bool {
				return len(s.links(t, email))+int(refused()-before) == mailsPerHour+2
			})
			if sent := len(s.links(t, email)); sent == mailsPerHour {
				break
			} else if time.Now().Truncate(time.Hour).Equal(hour) || try == 1 {
				t.Fatalf("%d links were sent in an hour", sent)
			} // the hour ended meanwhile
		}
		s.add(t, "bob@example.com")
		s.forgot(t, "bob@example.com")
		s.awaitLink(t, "bob@example.com", 1)
	})
}

// TestForgottenPasswordOfAnybody checks that a request for a link does the same for every address,
// with an account or without: the same response, the same statements, and no hash of a password.
func TestForgottenPasswordOfAnybody(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		collector := otlptest.Start(t)
		e.Environ = append(e.Environ, "TRACING_ENABLED=true", "TRACING_EXPORTER_PROTOCOL=http", "TRACING_SAMPLING_RATE=0",
			"OTEL_EXPORTER_OTLP_ENDPOINT="+collector.Endpoint("http"), "OTEL_BSP_SCHEDULE_DELAY=50")
		s := startSite(t, e)
		s.invite(t, "invited@example.com")
		s.add(t, "active@example.com")
		for _, state := range []string{"lock", "disable"} {
			s.want(t, http.StatusOK, "POST", people+"/"+s.add(t, state+"@example.com")+"/"+state, nil)
		}
		hashes := s.Metric("tollgate_password_hashes_total")
		var first string
		for i, name := range []string{"active", "nobody", "invited", "lock", "disable"} {
			got := s.traceForgot(t, collector, name+"@example.com", i)
			if first == "" {
				first = got
			}
			if got != first {
				t.Errorf("%s:\n%s\nactive:\n%s", name, got, first)
			}
		}
		if n := s.Metric("tollgate_password_hashes_total") - hashes; n != 0 {
			t.Errorf("%v passwords were hashed", n)
		}
		s.awaitLink(t, "active@example.com", 1)
		s.awaitLink(t, "lock@example.com", 1)
		s.Stop()
		for _, name := range []string{"nobody", "disable"} {
			if n := len(s.links(t, name+"@example.com")); n > 0 {
				t.Errorf("%s got %d links", name, n)
			}
		}
		if n := len(s.links(t, "invited@example.com")); n != 1 { // of the invitation
			t.Errorf("the invited person got %d links", n)
		}
	})
}

// traceForgot requests a link, and returns all of the response and of its trace that could tell
// addresses apart.
func (s *site) traceForgot(t *testing.T, collector *otlptest.Collector, email string, n int) string {
	t.Helper()
	trace := fmt.Sprintf("%032x", n+1)
	a := apiclient.Call(t, "POST", s.API+"/auth/password/forgot", object{"email": email},
		"traceparent", "00-"+trace+"-00f067aa0ba902b7-01").WantStatus(t, http.StatusOK)
	of := func(span otlptest.Span) bool { return hex.EncodeToString(span.GetTraceId()) == trace }
	collector.Await(t, func(span otlptest.Span) bool { return of(span) && span.GetName() == "POST /auth/password/forgot" })
	names := []string{string(a.Body)}
	for _, span := range collector.Spans() {
		if of(span) {
			names = append(names, span.GetName())
		}
	}
	slices.Sort(names[1:])
	header := a.Header.Clone()
	for _, name := range []string{"Date", "X-Request-Id", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"} {
		header.Del(name)
	}
	return fmt.Sprintf("%v\n%s", header, strings.Join(names, "\n"))
}

// TestForgottenPasswordRefusals sends requests that are no address, and more than a client may.
func TestForgottenPasswordRefusals(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		bodies := map[string]any{
			"invalid_input": object{}, "invalid_input ": object{"email": 1}, " invalid_input": object{"email": ""},
			"validation_error": object{"email": "ada"}, "validation_error ": object{"email": "ada@example.com\n@"},
		}
		const allowed = 2
		e.Environ = append(e.Environ, fmt.Sprintf("AUTH_RATE_LIMIT=%d", len(bodies)+allowed))
		s := startEmpty(t, e)
		for code, body := range bodies {
			a := apiclient.Call(t, "POST", s.API+"/auth/password/forgot", body).WantStatus(t, http.StatusBadRequest)
			details := apiclient.WantAuthError(t, a, strings.TrimSpace(code))
			if fields, _ := details["fields"].(object); fields["email"] == nil {
				t.Errorf("%v: the details are %v", body, details)
			}
		}
		for range allowed {
			s.forgot(t, "ada@example.com")
		}
		a := apiclient.Call(t, "POST", s.API+"/auth/password/forgot", object{"email": "bob@example.com"})
		apiclient.WantAuthError(t, a.WantStatus(t, http.StatusTooManyRequests), "rate_limit_exceeded")
		a = s.reset(t, "code=x", newPassword)
		apiclient.WantAuthError(t, a.WantStatus(t, http.StatusTooManyRequests), "rate_limit_exceeded")
		for _, page := range []string{"/console/forgot-password", "/console/reset-password", "/console/invitation", "/console/setup"} {
			status := s.newBrowser(t).submit(t, page, "email", "bob@example.com")
			if status != http.StatusTooManyRequests {
				t.Errorf("the form of %s answers %d", page, status)
			}
		}
	})
}
