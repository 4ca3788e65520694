package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/webtest"
	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

const approve = "Sign in the command"

// TestCommandPage checks what the page shows of a command, who may decide about it, and how often.
func TestCommandPage(t *testing.T) {
	e, s := start(t, fixture.RiskPolicy("relaxed"))
	b := newBrowser(t, s)
	b.SignIn(e.NewPerson(t, "ada@example.com").Email, fixture.Password)
	c := fixture.BeginCommand(t, s.API)
	b.Open(fixture.CommandPage, http.StatusOK).WantText("Enter the code that tollgate login shows")
	b.Press("Continue", http.StatusOK, "code", strings.ToLower(strings.ReplaceAll(c.UserCode, "-", " ")))
	b.WantText("tollgate on Linux", "127.0.0.1", "just now", "ada@example.com", "Go on only if you started tollgate login yourself",
		"Verify yourself first").WantNoText("It asked from another address")

	elsewhere := b.Request("GET", c.Path(), nil, "")
	elsewhere.Header.Set("Sec-Fetch-Site", "cross-site")
	b.Send(elsewhere, http.StatusOK).WantText("Enter the code").WantFields("code", c.UserCode).WantNoText("tollgate on Linux")

	b.Open(c.Path(), http.StatusOK)
	b.Send(webtest.FromElsewhere(b.Submission("Sign in with less")), http.StatusForbidden)
	apiclient.WantAuthError(t, c.Poll(t, s.API).WantStatus(t, 400), "authorization_pending")

	b.Open(c.Path(), http.StatusOK)
	late := b.Submission("Sign in with less")
	b.Press("Sign out", http.StatusOK)
	b.Send(late, http.StatusOK).WantText("Sign in", "Your session has ended")
	b.SignIn("ada@example.com", fixture.Password)

	b.Open(c.Path(), http.StatusOK)
	twice := b.Submission("Sign in with less")
	b.Press("Sign in with less", http.StatusOK).WantText("Go back to the terminal")
	b.Send(twice, http.StatusUnprocessableEntity).WantText("is not the code of a command that waits")
	c.Poll(t, s.API).WantStatus(t, 200)

	refused := fixture.BeginCommand(t, s.API)
	b.Open(refused.Path(), http.StatusOK)
	b.Press("Refuse", http.StatusOK).WantText("It gets nothing.")
	apiclient.WantAuthError(t, refused.Poll(t, s.API).WantStatus(t, 403), "access_denied")

	waiting := fixture.BeginCommand(t, s.API)
	for _, code := range []string{"BCDFGHJK", "%00", "%E2%80%AEBCDF-GHJK", strings.Repeat("x", 300)} {
		b.Open(fixture.CommandPage+"?code="+code, http.StatusUnprocessableEntity)
	}
	b.Open(waiting.Path(), http.StatusTooManyRequests).WantText("Too many wrong codes")
}

// TestCommandTrust checks that a step-up on the page gives the command full trust.
func TestCommandTrust(t *testing.T) {
	e, s := start(t, fixture.RiskPolicy("relaxed"))
	b := newBrowser(t, s)
	ada := e.NewPerson(t, "ada@example.com")
	b.SignIn(ada.Email, fixture.Password)
	c := fixture.BeginCommand(t, s.API)
	b.Open(c.Path(), http.StatusOK)
	b.Press("Verify, then sign in the command", http.StatusForbidden).WantText("To go on with Sign in the command")
	b.Verify(e, ada.Email, http.StatusOK)
	b.WantText(c.UserCode, "The command gets everything that you may do.")
	apiclient.WantAuthError(t, c.Poll(t, s.API).WantStatus(t, 400), "authorization_pending")
	b.Press(approve, http.StatusOK)
	var got struct{ TrustLevel, Email string }
	if c.Poll(t, s.API).WantStatus(t, 200).Decode(t, &got); got.TrustLevel != "FULL_TRUST" || got.Email != ada.Email {
		t.Errorf("the command gets %+v", got)
	}
}

// TestCommandWithLess checks that a command gets no more than the button said, also if the person has been verified since
// the page was shown, and nothing for a form without a button.
func TestCommandWithLess(t *testing.T) {
	e, s := start(t, fixture.RiskPolicy("relaxed"))
	b := newBrowser(t, s)
	ada := e.NewPerson(t, "ada@example.com")
	b.SignIn(ada.Email, fixture.Password)
	c := fixture.BeginCommand(t, s.API)
	b.Open(c.Path(), http.StatusOK)
	less := b.Submission("Sign in with less")
	b.Submit(fixture.CommandPage, http.StatusOK, url.Values{"code": {c.UserCode}}).WantText("Sign in the tollgate command?")
	b.Open("/console/step-up?next=/console/account", http.StatusOK)
	b.Verify(e, ada.Email, http.StatusOK)
	b.Send(less, http.StatusOK).WantText("The command gets everything that you may do.")
	apiclient.WantAuthError(t, c.Poll(t, s.API).WantStatus(t, 400), "authorization_pending")
}
