package notifying

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestCommands checks the commands of webhooks (contract C-51, C-57).
func TestCommands(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		t.Parallel()
		e.Start(t)
		checkRefusedWebhooks(t, e)
		r := newReceiver(t)
		id := r.add(e, "released,published,published", "com.example/*")
		w := readWebhook(t, e, id)
		if w.URL != r.url() || strings.Join(w.Events, " ") != "published released" || w.Pattern != "com.example/*" ||
			w.CreatedAt == "" || len(r.secret) != 44 || w.DeadEvents == nil {
			t.Errorf("the webhook is %+v with a secret of %d characters", w, len(r.secret))
		}
		checkTest(t, e, r, id)
		const unknown = "3f30e8b6-7d1c-4c0e-9c53-0d9f4a1f2b3c"
		for _, args := range [][]string{
			{"test", unknown}, {"remove", unknown}, {"redeliver", unknown}, {"redeliver", id, "--event", unknown}, {
				"redeliver", id, "--event", "",
			},
		} {
			if _, stderr, code := e.TryCommand(t, "", append([]string{"webhook"}, args...)...); code != 1 ||
				stderr == "" {
				t.Errorf("webhook %v: exit %d, %q", args, code, stderr)
			}
		}
		if said := e.RunCommand(t, "", "webhook", "redeliver", id); said != "0 events are sent again\n" {
			t.Errorf("redeliver prints %q", said)
		}
		e.RunCommand(t, "", "webhook", "remove", strings.ToUpper(id))
		var none []webhook
		if e.ReadCommand(t, &none, "webhook", "list"); none == nil || len(none) != 0 {
			t.Errorf("after the removal the list is %+v", none)
		}
		audit := e.RunCommand(t, "", "audit", "search", "--type", "REGISTRY_CHANGE", "-o", "wide")
		for _, word := range []string{"webhook_add", "webhook_redeliver", "webhook_remove", id, r.address} {
			if !strings.Contains(audit, word) {
				t.Errorf("the audit log has no %s", word)
			}
		}
		if strings.Contains(audit, r.secret) || strings.Contains(audit, secretPath) {
			t.Errorf("the audit log has the secret or the path of the URL:\n%s", audit)
		}
	})
}

// checkRefusedWebhooks adds webhooks that are refused with the name of what is wrong.
func checkRefusedWebhooks(t *testing.T, e *fixture.Environment) {
	t.Helper()
	for _, c := range []struct{ url, events, pattern, names string }{
		{"http://example.com/hook", "published", "*", "url"},
		{"https://169.254.169.254/latest", "published", "*", "url"},
		{"https://example.com/hook", "published,deleted", "*", "events"},
		{"https://example.com/hook", "published", "**", "pattern"},
	} {
		if _, stderr, code := e.TryCommand(t, "", "webhook", "add", c.url, "--events", c.events, "--pattern",
			c.pattern); code != 1 || !strings.Contains(stderr, c.names) {
			t.Errorf("webhook add %s --events %s --pattern %s: exit %d, %q, want an error that names %s", c.url,
				c.events, c.pattern, code, stderr, c.names)
		}
	}
	var none []webhook
	if e.ReadCommand(t, &none, "webhook", "list"); len(none) != 0 {
		t.Errorf("refused webhooks are listed: %+v", none)
	}
	for _, url := range []string{"https://example.com/hook", "https://localhost:8443/hook", "http://[::1]:8090/hook"} {
		var added []webhook
		e.ReadCommand(t, &added, "webhook", "add", url, "--events", "published")
		if added[0].Pattern != "*" {
			t.Errorf("the webhook is %+v", added[0])
		}
		e.RunCommand(t, "", "webhook", "remove", added[0].ID)
	}
}

// checkTest sends test events, to a receiver that accepts them, one that refuses and one that is
// away.
func checkTest(t *testing.T, e *fixture.Environment, r *receiver, id string) {
	t.Helper()
	if said := e.RunCommand(t, "", "webhook", "test", id); said != "the receiver answered with the status 204\n" {
		t.Errorf("test prints %q", said)
	}
	got := r.awaitEvents("test - -")
	if want := `{"id":"` + got[0].event.ID + `","type":"test","time":"` + got[0].event.Time +
		`","serverName":null,"version":null,"data":null}`; got[0].body != want {
		t.Errorf("the body is %s, want %s", got[0].body, want)
	}
	r.setAnswer(func(event, int) int { return http.StatusTeapot })
	if _, stderr, code := e.TryCommand(t, "", "webhook", "test", id); code != 1 ||
		!strings.Contains(stderr, "the receiver answered with the status 418") {
		t.Errorf("test: exit %d, %q", code, stderr)
	}
	r.stop()
	if _, stderr, code := e.TryCommand(t, "", "webhook", "test", id); code != 1 ||
		!strings.Contains(stderr, "the connection failed") {
		t.Errorf("test: exit %d, %q", code, stderr)
	}
	r.start()
}
