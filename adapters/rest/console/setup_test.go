package console_test

import (
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestSetup makes the first account with a link, and requests a link for another password.
func TestSetup(t *testing.T) {
	e := newEnvironment(t)
	s := run(t, e, "NOTICE_LOG_FILE="+filepath.Join(e.Dir, "notices"), "OTP_EMAIL_PLUGIN=otp-log")
	link := pathOf(t, regexp.MustCompile(`http\S+`).FindString(e.RunCommand(t, "", "setup-link")))
	b := newBrowser(t, s)
	b.Open("/console/", http.StatusOK).WantText("This service is not set up yet")
	b.Open(link, http.StatusOK)
	for _, c := range [][]string{
		{"email", "olga", "E-mail address must be an e-mail address."}, {"name", "", "Name must not be empty."},
		{"password", "short", "Password must have at least 8 characters"},
	} {
		b.Press("Make the account", http.StatusUnprocessableEntity, append([]string{
			"email", "olga@example.com", "name", "Olga", "password", fixture.Password,
		}, c[:2]...)...).WantText(c[2])
	}
	b.Press("Make the account", http.StatusOK, "email", "olga@example.com", "name", "Olga", "password", fixture.Password)
	b.WantPath("/console/operator")
	b.WantText("What is not set up yet", "Set up an authenticator app", "PUBLIC_URL", "TLS_CERT")
	b.WantText("Open TLS: Without it")
	b.Press("Dismiss: TLS", http.StatusOK).WantPath("/console/operator").WantText("1 dismissed in this browser").WantNoText("Open TLS")
	b.Open("/console/operator", http.StatusOK).WantNoText("Open TLS")
	b.Press("Show again: TLS", http.StatusOK).WantText("Open TLS: Without it").WantNoText("dismissed")
	for _, none := range []string{"", "x", "tls.app", "a;Path=/"} {
		b.Submit("/console/operator/dismiss", http.StatusNotFound, url.Values{"id": {none}})
	}
	other := newBrowser(t, s)
	other.Open(link, http.StatusNotFound)
	other.Open("/console/forgot-password", http.StatusOK).Press("Send the link", http.StatusUnprocessableEntity, "email", "olga")
	other.WantText("E-mail address must be an e-mail address.")
	other.Press("Send the link", http.StatusOK, "email", "nobody@example.com").WantText("If nobody@example.com has an account")
}
