package plugins

import (
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/mailserver"
)

// TestNotices checks that a person gets one notice by mail of each event: a new device, a lock and
// a replay. An unknown address gets no mail.
func TestNotices(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		mail := mailserver.Start(t, mailserver.Options{Username: "tollgate", Password: "the-smtp-password"})
		s := e.Start(t, mailSettings(mail)...)
		ada, ben := e.NewPerson(t, "ada@example.com"), e.NewPerson(t, "ben@example.com")
		told := func(to, subject string) int {
			n := 0
			for _, l := range mail.Letters() {
				if l.To[0] == to && strings.Contains(l.Subject, subject) {
					n++
				}
			}
			return n
		}
		const device, lock, replay = "new device", "locked", "sessions were ended"
		ada.Login(t, s)
		await.Until(t, "the notice of a new device", func() bool { return told(ada.Email, device) == 1 })
		l := mail.Letters()[0]
		for _, part := range []string{
			"Example Tools", "127.0.0.1", "Firefox on Linux", time.Now().UTC().Format("2 January 2006"),
		} {
			if !strings.Contains(l.Text, part) || !strings.Contains(l.HTML, part) {
				t.Errorf("the notice lacks %q: %s", part, l.Text)
			}
		}
		ada.Login(t, s) // known by now

		first := ada.RefreshToken
		apiclient.Call(t, "POST", s.API+"/auth/refresh", map[string]string{"refreshToken": first}).WantStatus(t,
			http.StatusOK)
		for range 2 { // the second replay finds all sessions ended
			apiclient.Call(t, "POST", s.API+"/auth/refresh", map[string]string{"refreshToken": first})
		}
		await.Until(t, "the notice of a replay", func() bool { return told(ada.Email, replay) == 1 })

		guesser := maps.Clone(ben.Device)
		guesser["userAgent"] = "Call-555-1234-now/1.0 (evil.example)"
		for _, email := range []string{"nobody@example.com", ben.Email} {
			for range 8 { // the lock, and more
				apiclient.Call(t, "POST", s.API+"/auth/login", map[string]any{
					"email": email, "password": "wrong", "deviceInfo": guesser,
				})
			}
		}
		await.Until(t, "the notice of a lock", func() bool { return told(ben.Email, lock) == 1 })
		// This is the last notice: a further notice of the earlier acts would have arrived by now.
		cleo := fixture.NewPublisher(t, e.NewPerson(t, "cleo@example.com"))
		cleo.Run(t, 0, fixture.Password, "login", "--url", s.API, "--email", cleo.Email, "--password-stdin")
		await.Until(t, "the last notice", func() bool { return told(cleo.Email, device) == 1 })
		if n := len(mail.Letters()); n != 4 {
			t.Errorf("%d letters, want four: %+v", n, mail.Letters())
		}
		if last := mail.Letters()[3].Text; !strings.Contains(last, "tollgate command line on Linux") {
			t.Errorf("the notice does not name the command line: %s", last)
		}
		for _, l := range mail.Letters() {
			if strings.Contains(l.Text+l.Subject, "555") || strings.Contains(l.Text+l.Subject, "evil") ||
				strings.Contains(l.Text, first) {
				t.Errorf("a notice has words of a stranger, or a token: %s", l.Text)
			}
		}
	})
}

// TestNoticesDoNotDelay checks that a login does not wait for a mail server that hangs, and that
// the service stops in time.
func TestNoticesDoNotDelay(t *testing.T) {
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	reached := make(chan struct{}, 100)
	mail := mailserver.Start(t,
		mailserver.Options{Username: "tollgate", Password: "the-smtp-password", Refuse: func(string) error {
			reached <- struct{}{}
			<-release
			return nil
		}})
	e := fixture.NewEnvironment(t, "embedded")
	s := e.Start(t, mailSettings(mail)...)
	e.NewPerson(t, "ada@example.com").Login(t, s)
	<-reached // the notice is being sent, and the response to the login came before its end
}

// TestNoticesOfTheDevelopmentCourier checks that notices and codes go to separate files, and that
// there are no notices when they are off.
func TestNoticesOfTheDevelopmentCourier(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		file := filepath.Join(e.Dir, "notices.jsonl")
		read := func() string {
			content, err := os.ReadFile(file)
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			return string(content)
		}
		s := e.Start(t, "NOTICE_LOG_FILE="+file)
		ada := e.NewPerson(t, "ada@example.com")
		ada.Login(t, s)
		ada.StepUp(t, e, s)
		await.Until(t, "the notice", func() bool { return strings.Count(read(), "\n") == 1 })
		for _, part := range []string{
			`"channel":"email"`, `"recipient":"ada@example.com"`, `"notice":"Somebody signed in`,
		} {
			if !strings.Contains(read(), part) {
				t.Errorf("the line lacks %s: %s", part, read())
			}
		}
		s.Stop()
		quiet := e.Start(t, "NOTICE_LOG_FILE="+file, "NOTICES=off")
		e.NewPerson(t, "ben@example.com").Login(t, quiet)
		quiet.Stop()
		if strings.Contains(read(), "ben@example.com") {
			t.Errorf("with NOTICES=off a notice was sent: %s", read())
		}
	})
}

// TestLinksByEmail requests a link to set another password, and uses the one in the letter: its text
// has the link, also for couriers that do not know which part of it is one.
func TestLinksByEmail(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		mail := mailserver.Start(t, mailserver.Options{Username: "tollgate", Password: "the-smtp-password"})
		s := e.Start(t, append(mailSettings(mail), "PUBLIC_URL=https://tools.example.com")...)
		ada := e.NewPerson(t, "ada@example.com")
		apiclient.Call(t, "POST", s.API+"/auth/password/forgot", map[string]string{"email": ada.Email}).
			WantStatus(t, http.StatusOK)
		await.Until(t, "the letter", func() bool { return len(mail.Letters()) == 1 })
		letter := mail.Letters()[0]
		if letter.Subject != "Example Tools: Set a new password" || !slices.Contains(letter.To, ada.Email) {
			t.Errorf("the letter to %v is about %q", letter.To, letter.Subject)
		}
		address := regexp.MustCompile(`https://tools\.example\.com/console/reset-password\?code=([\w-]{43})`)
		plain, rich := address.FindStringSubmatch(letter.Text), address.FindStringSubmatch(letter.HTML)
		if len(plain) == 0 || !slices.Equal(plain, rich) {
			t.Fatalf("the letter has the links %v and %v: %s", plain, rich, letter.Text)
		}
		apiclient.Call(t, "POST", s.API+"/auth/password/reset",
			map[string]string{"token": plain[1], "newPassword": "Another-Horse-8-Battery"}).WantStatus(t, http.StatusOK)
		if strings.Contains(s.Process.Log(), plain[1]) {
			t.Error("the link is in the log")
		}
	})
}
