package people

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestDelivery invites people with a courier, with one that refuses, and without one: the response
// and the command say whether the link was sent, and the link is good in any case.
func TestDelivery(t *testing.T) {
	inSite(t, func(t *testing.T, s *site) {
		id, _ := s.invite(t, "ivy@example.com")
		s.add(t, "ada@example.com")
		for _, c := range []struct {
			what      string
			settings  []string
			delivered bool
		}{
			{"with a courier", []string{"OTP_EMAIL_PLUGIN=otp-log", "NOTICE_LOG_FILE=" + s.notices}, true},
			{"with a courier that refuses", []string{"OTP_EMAIL_PLUGIN=otp-log"}, false},
			{"without a courier", []string{"OTP_EMAIL_PLUGIN=", "ENVIRONMENT=production"}, false},
		} {
			s.Stop()
			s.Service = s.e.Start(t, append(fixture.RegistrySettings(), c.settings...)...)
			again := s.want(t, http.StatusOK, "POST", people+"/"+id+"/invitation", nil)
			email := strings.ReplaceAll(c.what, " ", "-") + "@example.com"
			made := s.want(t, http.StatusCreated, "POST", people, object{"email": email, "name": "A Person"})
			invitation, _ := made["invitation"].(object)
			if again["delivered"] != c.delivered || invitation["delivered"] != c.delivered {
				t.Errorf("%s: %v, %v", c.what, again, invitation)
			}
			sent := len(s.links(t, "ivy@example.com"))
			for _, one := range []object{again, invitation} {
				link, _ := one["url"].(string)
				s.wantGood(t, c.what, link)
				if strings.Contains(s.Process.Log(), codeOf(link)) {
					t.Errorf("%s: the link is in the log", c.what)
				}
			}
			s.wantPrinted(t, c.delivered)
			if got := len(s.links(t, "ivy@example.com")) - sent; got != map[bool]int{true: 1}[c.delivered] {
				t.Errorf("%s: a command sent %d links", c.what, got)
			}
			ada := s.add(t, "ada-"+email)
			s.reset(t, s.makeResetLink(t, ada), newPassword).WantStatus(t, http.StatusOK)
			s.forgot(t, "ada-"+email)
			b := s.newBrowser(t)
			b.open(t, "/console/forgot-password")
			if says := strings.Contains(b.Page.Body, "This service sends no e-mail"); says != (c.what == "without a courier") {
				t.Errorf("%s: the page says that no e-mail is sent: %t", c.what, says)
			}
		}
	})
}

// wantPrinted checks what invite-again prints about the delivery: at the service, and on the
// database, where a command sends nothing.
func (s *site) wantPrinted(t *testing.T, delivered bool) {
	t.Helper()
	invite := []string{"user", "invite-again", "--email", "ivy@example.com"}
	environ := s.e.Environ
	s.e.Environ = append(s.e.Environ[:len(environ):len(environ)], "TOLLGATE_TOKEN="+s.operator.AccessToken)
	var got struct {
		URL       string
		Delivered *bool
	}
	s.e.ReadCommand(t, &got, append(invite, "--server", s.API)...)
	s.e.Environ = environ
	if got.Delivered == nil || *got.Delivered != delivered {
		t.Errorf("the command at the service prints %v", got)
	}
	s.wantGood(t, "the link of the command", got.URL)
	table := strings.Fields(s.e.RunCommand(t, "", invite...))
	if len(table) < 6 || table[2] != "DELIVERED" || table[len(table)-1] != "false" {
		t.Errorf("the command on the database prints %v", table)
	}
	s.wantDead(t, "the link before", got.URL)
}
