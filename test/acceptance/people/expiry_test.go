package people

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// age makes a time pass for the links of a purpose that are stored now.
func (s *site) age(t *testing.T, purpose string, by time.Duration) {
	t.Helper()
	earlier := fmt.Sprintf(" - %d", by.Microseconds())
	if s.e.Shared {
		earlier = fmt.Sprintf(" - interval '%d microseconds'", by.Microseconds())
	}
	if _, err := s.e.OpenDatabase(t).ExecContext(t.Context(), "UPDATE links SET created_at = created_at"+earlier+
		", expires_at = expires_at"+earlier+" WHERE purpose = '"+purpose+"'"); err != nil {
		t.Fatal(err)
	}
}

// setupLink returns the link to the setup that the service has logged.
func (s *site) setupLink(t *testing.T) string {
	t.Helper()
	s.AwaitLog("/console/setup?code=")
	return regexp.MustCompile(`"setup":"([^"]+)"`).FindStringSubmatch(s.Process.Log())[1]
}

// TestSetupLinks starts an empty service again and again: all codes of the last 24 hours are good,
// and all are dead once there is an account.
func TestSetupLinks(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startEmpty(t, e)
		old := s.setupLink(t)
		s.age(t, "setup", 24*time.Hour-time.Minute)
		s.wantGood(t, "the code of 24 hours ago", old)
		s.age(t, "setup", time.Minute)
		s.wantDead(t, "the code of more than 24 hours ago", old)
		links := map[string]string{}
		for _, start := range []string{"first", "second"} {
			s.Stop()
			s = startEmpty(t, e)
			links["the code of the "+start+" start"] = s.setupLink(t)
		}
		links["the code of the command"] = strings.TrimSpace(
			regexp.MustCompile(`http\S+`).FindString(e.RunCommand(t, "", "setup-link")))
		s.age(t, "setup", 23*time.Hour)
		for what, link := range links {
			s.wantGood(t, what, link)
		}
		if links["the code of the first start"] == links["the code of the second start"] {
			t.Error("two starts have one code")
		}
		s.wantDead(t, "an old code", old)
		link := links["the code of the first start"]
		status := s.newBrowser(t).submit(t, link, "email", "olga@example.com", "name", "Olga", "password", fixture.Password)
		if status != http.StatusOK {
			t.Fatalf("the form answers %d", status)
		}
		for what, link := range links {
			s.wantDead(t, what, link)
		}
		if _, stderr, code := e.TryCommand(t, "", "setup-link"); code != 1 || !strings.Contains(stderr, "there is an account") {
			t.Errorf("setup-link ends with %d: %s", code, stderr)
		}
		s.Stop()
		s = startEmpty(t, e)
		s.login(t, "olga@example.com", fixture.Password).WantStatus(t, http.StatusOK)
		if strings.Contains(s.Process.Log(), "setup") {
			t.Errorf("a start with an account logs a setup: %s", s.Process.Log())
		}
	})
}

// TestLinkLifetimes makes the time of invitations and of links for a password pass.
func TestLinkLifetimes(t *testing.T) {
	inSite(t, func(t *testing.T, s *site) {
		id, first := s.invite(t, "ivy@example.com")
		ada := s.add(t, "ada@example.com")
		s.forgot(t, "ada@example.com")
		links := map[string]string{"sent": s.awaitLink(t, "ada@example.com", 1), "handed over": s.makeResetLink(t, ada)}

		s.age(t, "invitation", 2*time.Hour-time.Minute)
		s.wantGood(t, "the invitation before its end", first)
		s.age(t, "invitation", time.Minute)
		s.wantDead(t, "the invitation after its end", first)
		again := s.want(t, http.StatusOK, "POST", people+"/"+id+"/invitation", nil)
		wantEnd(t, again["expiresAt"], 2*time.Hour)
		link, _ := again["url"].(string)
		s.wantGood(t, "another invitation", link)

		s.age(t, "reset", 29*time.Minute)
		for what, link := range links {
			s.wantGood(t, what+" before its end", link)
		}
		s.age(t, "reset", time.Minute)
		for what, link := range links {
			s.wantDead(t, what+" after its end", link)
			details := apiclient.WantAuthError(t, s.reset(t, link, newPassword).WantStatus(t, http.StatusBadRequest), "invalid_input")
			if fields, _ := details["fields"].(object); fields["token"] == nil {
				t.Errorf("the details are %v", details)
			}
		}
		wantEnd(t, s.want(t, http.StatusOK, "POST", people+"/"+ada+"/reset-link", nil)["expiresAt"], 30*time.Minute)
		s.wantDead(t, "an invitation on the page of a reset", strings.Replace(link, "invitation", "reset-password", 1))
		s.reset(t, link, newPassword).WantStatus(t, http.StatusBadRequest)
		s.login(t, "ada@example.com", fixture.Password).WantStatus(t, http.StatusOK)
	}, "INVITATION_TTL=2h")
}

// wantEnd checks that what was just made ends after its lifetime.
func wantEnd(t *testing.T, expiresAt any, lifetime time.Duration) {
	t.Helper()
	text, _ := expiresAt.(string)
	end, err := time.Parse(time.RFC3339, text)
	if left := time.Until(end); err != nil || left > lifetime || left < lifetime-time.Minute {
		t.Errorf("it ends at %v, want in %v", expiresAt, lifetime)
	}
}
