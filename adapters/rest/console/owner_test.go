package console_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/webtest"
	"github.com/tollgate-dev/tollgate/test/apiclient"
)

// TestOwner sets who answers for a server: first by those who may not, then with what may not be said, then
// well. Readers see it, and find servers without an owner.
func TestOwner(t *testing.T) {
	e, s := start(t)
	e.WantAuditEvents(t)
	ada := e.NewWriter(t, s, "ada@example.com", "publish com.example/*", "edit com.example/*")
	publishVersion(t, s, ada, "com.example/weather", "1.0.0")
	publishVersion(t, s, ada, "com.example/mail", "1.0.0")
	publishVersion(t, s, ada, "com.example/gone", "1.0.0")
	const page = "/console/servers/com.example/weather"
	const form = "/console/own/com.example/weather/owner"
	b := openVerified(t, e, s, ada)
	good := []string{"owner", "Team \u202eWeather", "contact", "https://chat.example.com/weather?a=1&b=2"}
	b.Open(page, http.StatusOK).Follow("Change the owner", http.StatusOK).WantPath(form)
	sent := func(fields ...string) *http.Request {
		return b.Submission("Set the owner", append(good[:4:4], fields...)...)
	}

	rogue := newVerified(t, e, s, "eve@example.com", "publish com.other/*", "review *")
	rogue.Open(page, http.StatusOK).WantNoText("Change the owner", "Owner")
	rogue.Send(sent(), http.StatusForbidden)
	unverified := newBrowser(t, s)
	unverified.signIn(e.NewPerson(t, "uma@example.com", "operate *"))
	unverified.Send(sent(), http.StatusForbidden)
	risky := newBrowser(t, s)
	signInAtRisk(t, e, s, risky)
	risky.Send(sent(), http.StatusForbidden)
	b.Open(form, http.StatusOK)
	b.Send(webtest.FromElsewhere(sent()), http.StatusForbidden)
	b.Open("/console/own/com.example/absent/owner", http.StatusNotFound)
	for _, wrong := range [][]string{
		{"contact", "javascript:alert(1)"}, {"contact", "http://chat.example.com"}, {"contact", "https://ada:b@example.com"}, {"contact", "https://"},
		{"contact", "https://a b"}, {"contact", "https://b\u202e.example.com"}, {"contact", "a@b@c"}, {"contact", "ada@example.com?bcc=x y"},
		{"contact", "https://example.com/" + strings.Repeat("a", 300)}, {"owner", ""}, {"owner", strings.Repeat("a", 101)}, {"owner", "a\x00b"}, {"owner", "a\nb"},
	} {
		b.Open(form, http.StatusOK)
		b.Send(sent(wrong...), http.StatusUnprocessableEntity)
	}
	newBrowser(t, s).Open(page, http.StatusOK).WantNoText("Owner")

	b.Open(form, http.StatusOK)
	b.Send(sent(), http.StatusOK).WantPath(page+"?done=owner").WantText("The owner is set.", `Team \u202eWeather`, "https://chat.example.com/weather?a=1&b=2")
	b.Open(form, http.StatusOK).WantFields(good...)
	nobody := newBrowser(t, s)
	nobody.Open(page, http.StatusOK).WantText("Owner", `Team \u202eWeather`).WantNoText("Change the owner", "The owner is set.")
	nobody.Open("/console/?owner=none", http.StatusOK).WantText("2 servers", "com.example/mail").WantNoText("com.example/weather")
	nobody.Open("/console/?owner=known", http.StatusOK).WantText("1 server", "com.example/weather")
	nobody.Open("/console/", http.StatusOK).WantText("without an owner 2", "with an owner 1")

	olga := newOperator(t, e, s)
	olga.Open(page, http.StatusOK).Follow("Change the owner", http.StatusOK)
	olga.Press("Set the owner", http.StatusOK, "owner", "Platform", "contact", "platform@example.com").WantText("Platform", "platform@example.com")
	if link := olga.Element("href", "mailto:platform@example.com"); link == nil {
		t.Error("the address is no link")
	}
	olga.Open("/console/operator/log?server=com.example/weather", http.StatusOK).WantText(
		"set the owner of com.example/weather: Platform (platform@example.com)", `set the owner of com.example/weather: Team \u202eWeather`)

	var both sync.WaitGroup // of two at once, one stays whole
	b.Open(form, http.StatusOK)
	olga.Open(form, http.StatusOK)
	first, second := sent(), olga.Submission("Set the owner", "owner", "Platform", "contact", "platform@example.com")
	both.Go(func() { b.Try(first) })
	both.Go(func() { olga.Try(second) })
	both.Wait()
	nobody.Open(page, http.StatusOK)
	if text := nobody.Text(); strings.Contains(text, "Platform platform@example.com") == strings.Contains(text, `\u202eWeather https://chat.example.com`) {
		t.Errorf("after two changes at once: %s", text)
	}

	b.Open(form, http.StatusOK).Press("Set the owner", http.StatusOK, "owner", "", "contact", "").WantText("no team yet")
	nobody.Open(page, http.StatusOK).WantNoText("Owner")
	nobody.Open("/console/?owner=none", http.StatusOK).WantText("3 servers")
	apiclient.Call(t, "PATCH", s.API+"/v0.1/servers/com.example%2Fgone/versions/1.0.0/status", map[string]string{"status": "deleted"},
		ada.Bearer()...).WantStatus(t, http.StatusOK)
	nobody.Open("/console/?owner=none", http.StatusOK).WantText("2 servers")
}
