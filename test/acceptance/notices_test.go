package acceptance

import (
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/mailserver"
)

// await waits until a condition holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not come to be", what)
		}
	}
}

// TestNotices wants people told of a new device, a lock and a replay, once
// each, by a real mail server, and strangers of nothing.
func TestNotices(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		mail := mailserver.Start(t, mailserver.Options{Username: "tollgate", Password: "the-smtp-password"})
		s := e.start(t, byEmail(mail)...)
		ada, ben := e.newPerson(t, "ada@example.com"), e.newPerson(t, "ben@example.com")
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
		ada.login(t, s)
		await(t, "the notice of a new device", func() bool { return told(ada.email, device) == 1 })
		l := mail.Letters()[0]
		for _, part := range []string{"Example Tools", "127.0.0.1", "Firefox on Linux", time.Now().UTC().Format("2 January 2006")} {
			if !strings.Contains(l.Text, part) || !strings.Contains(l.HTML, part) {
				t.Errorf("the notice lacks %q: %s", part, l.Text)
			}
		}
		ada.login(t, s) // known by now

		first := ada.refreshToken
		call(t, "POST", s.api+"/auth/refresh", map[string]string{"refreshToken": first}).want(t, http.StatusOK)
		for range 2 { // the second finds everything ended
			call(t, "POST", s.api+"/auth/refresh", map[string]string{"refreshToken": first})
		}
		await(t, "the notice of a replay", func() bool { return told(ada.email, replay) == 1 })

		guesser := maps.Clone(ben.device)
		guesser["userAgent"] = "Call-555-1234-now/1.0 (evil.example)"
		for _, email := range []string{"nobody@example.com", ben.email} {
			for range 8 { // the lock, and more
				call(t, "POST", s.api+"/auth/login", map[string]any{"email": email, "password": "wrong", "deviceInfo": guesser})
			}
		}
		await(t, "the notice of a lock", func() bool { return told(ben.email, lock) == 1 })
		// What comes last has nothing of earlier acts behind it: had there been more notices, they would be there by now.
		cleo := newPublisher(t, e.newPerson(t, "cleo@example.com"))
		cleo.run(t, 0, password, "login", "--url", s.api, "--email", cleo.email, "--password-stdin")
		await(t, "the last notice", func() bool { return told(cleo.email, device) == 1 })
		if n := len(mail.Letters()); n != 4 {
			t.Errorf("%d letters, want four: %+v", n, mail.Letters())
		}
		if last := mail.Letters()[3].Text; !strings.Contains(last, "tollgate command line on Linux") {
			t.Errorf("the notice does not name the command line: %s", last)
		}
		for _, l := range mail.Letters() {
			if strings.Contains(l.Text+l.Subject, "555") || strings.Contains(l.Text+l.Subject, "evil") || strings.Contains(l.Text, first) {
				t.Errorf("a notice has words of a stranger, or a token: %s", l.Text)
			}
		}
	})
}

// TestNoticesDoNotDelay wants a login not to wait for a mail server that
// hangs, and the service to stop in time.
func TestNoticesDoNotDelay(t *testing.T) {
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	reached := make(chan struct{}, 100)
	mail := mailserver.Start(t, mailserver.Options{Username: "tollgate", Password: "the-smtp-password", Refuse: func(string) error {
		reached <- struct{}{}
		<-release
		return nil
	}})
	e := newEnvironment(t, "embedded")
	s := e.start(t, byEmail(mail)...)
	e.newPerson(t, "ada@example.com").login(t, s)
	<-reached // the notice is under way, and the login was answered before it could end
}

// TestNoticesOfTheDevelopmentCourier wants notices apart from codes, so that
// who reads codes finds nothing else, and none where they are off.
func TestNoticesOfTheDevelopmentCourier(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		file := filepath.Join(e.dir, "notices.jsonl")
		read := func() string {
			content, err := os.ReadFile(file)
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			return string(content)
		}
		s := e.start(t, "NOTICE_LOG_FILE="+file)
		ada := e.newPerson(t, "ada@example.com")
		ada.login(t, s)
		ada.stepUp(t, e, s)
		await(t, "the notice", func() bool { return strings.Count(read(), "\n") == 1 })
		for _, part := range []string{`"channel":"email"`, `"recipient":"ada@example.com"`, `"notice":"Somebody signed in`} {
			if !strings.Contains(read(), part) {
				t.Errorf("the line lacks %s: %s", part, read())
			}
		}
		s.stop()
		quiet := e.start(t, "NOTICE_LOG_FILE="+file, "NOTICES=off")
		e.newPerson(t, "ben@example.com").login(t, quiet)
		quiet.stop()
		if strings.Contains(read(), "ben@example.com") {
			t.Errorf("NOTICES=off, and told all the same: %s", read())
		}
	})
}
