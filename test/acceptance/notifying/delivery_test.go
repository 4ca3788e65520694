package notifying

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestDelivery checks order, repetition and several instances (contract C-54 to C-56).
func TestDelivery(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		t.Parallel()
		s := openSite(t, e)
		for name, check := range map[string]func(*testing.T, *site){
			"order": checkOrder, "several instances": checkInstances,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				check(t, s)
			})
		}
	})
}

// checkOrder lets the first attempts of two events fail: later events of their server wait for
// them, those of another server do not.
func checkOrder(t *testing.T, s *site) {
	r := newReceiver(t)
	r.setAnswer(func(e event, attempt int) int {
		if attempt == 1 && (e.label() == "published slow 1.0.0" || e.label() == "published slow 1.1.0") {
			return http.StatusInternalServerError
		}
		return http.StatusNoContent
	})
	id := r.add(s.e, allEvents, "com.example.order/*")
	s.publish(t, "com.example.order/slow", "1.0.0", "1.1.0", "1.2.0")
	s.publish(t, "com.example.order/fast", "1.0.0", "1.1.0")
	await.Until(t, "the events of the fast server", func() bool { return len(r.accepted()) >= 2 })
	if got := labels(r.accepted())[:2]; !slices.Equal(got, []string{"published fast 1.0.0", "published fast 1.1.0"}) {
		t.Errorf("the first accepted events are %q, want those of the server that does not wait", got)
	}
	await.Until(t, "the events of the slow server", func() bool { return len(r.accepted()) >= 5 })
	tried := slices.DeleteFunc(labels(r.all()), func(l string) bool { return strings.Contains(l, "fast") })
	if want := []string{
		"published slow 1.0.0", "published slow 1.0.0", "published slow 1.1.0", "published slow 1.1.0",
		"published slow 1.2.0",
	}; !slices.Equal(tried, want) {
		t.Errorf("the attempts are %q, want %q", tried, want)
	}
	bodies := map[string]string{}
	for _, q := range r.all() {
		if before, ok := bodies[q.event.ID]; ok && before != q.body {
			t.Errorf("an event is repeated with another body: %s", q.body)
		}
		bodies[q.event.ID] = q.body
	}
	await.Until(t, "no event waits", func() bool { return readWebhook(t, s.e, id).Pending == 0 })
	if w := readWebhook(t, s.e,
		id); w.LastSuccess == "" || w.LastFailure == "" ||
		w.LastProblem != "the receiver answered with the status 500" || w.Dead != 0 || w.Secret != "" {
		t.Errorf("the webhook is listed as %+v", w)
	}
}

// checkInstances changes servers at both instances, which also deliver. The receiver reports
// requests about one server that overlap.
func checkInstances(t *testing.T, s *site) {
	const servers, versions = 6, 10
	r := newReceiver(t)
	r.add(s.e, "published", "com.example.many/*")
	fixture.CallInParallel(t, servers, func(n int) (last apiclient.Response, err error) {
		for v := range versions {
			at := []*fixture.Service{s.one, s.other}[(n+v)%2]
			doc := fixture.NewServerDocument(fmt.Sprintf("com.example.many/s%d", n), fmt.Sprintf("1.%d.0", v))
			if last, err = apiclient.TryCall("POST", at.API+"/v0.1/publish", doc, s.ada.Bearer()...); err != nil ||
				last.Status != http.StatusOK {
				return last, fmt.Errorf("publish: %w, %d %s", err, last.Status, last.Body)
			}
		}
		return last, nil
	})
	await.Until(t, "all events", func() bool { return len(r.accepted()) >= servers*versions })
	got := r.all()
	if len(got) != servers*versions {
		t.Errorf("%d requests arrived, want %d", len(got), servers*versions)
	}
	next := map[string]int{}
	for _, q := range got {
		if want := fmt.Sprintf("1.%d.0", next[*q.event.ServerName]); *q.event.Version != want {
			t.Errorf("%s arrived, want %s", q.event.label(), want)
		}
		next[*q.event.ServerName]++
	}
	if r.most > 4 {
		t.Errorf("%d requests were in progress at the same time, want at most 4", r.most)
	}
}

// TestKilledInstance kills the instance that waits for a response. Another one sends the event
// again.
func TestKilledInstance(t *testing.T) {
	t.Parallel()
	fixture.InBothEnvironments(t, func(t *testing.T, e *fixture.Environment) {
		t.Parallel()
		e.Environ = append(e.Environ, fixture.RegistrySettings()...)
		one := e.StartProcess(t)
		s := &site{e: e, one: one, ada: e.NewWriter(t, one, "ada@example.com", "publish *")}
		r := newReceiver(t)
		arrived, release := make(chan struct{}, 1), make(chan struct{})
		r.setAnswer(func(_ event, attempt int) int {
			if attempt == 1 {
				arrived <- struct{}{}
				<-release
				return http.StatusServiceUnavailable
			}
			return http.StatusNoContent
		})
		id := r.add(e, "published", "*")
		s.publish(t, "com.example/killed", "1.0.0", "1.1.0")
		await.Receive(t, "a request", arrived)
		one.Process.Kill()
		close(release)
		await.Until(t, "the end of the first request", func() bool { return len(r.all()) > 0 })
		e.EndLease(t, "webhooks", "id = '"+id+"'", 20*time.Second)
		e.Start(t)
		got := r.awaitEvents("published killed 1.0.0", "published killed 1.1.0")
		if first := r.all()[0]; first.body != got[0].body {
			t.Errorf("the event was repeated as %s, was %s", got[0].body, first.body)
		}
	})
}

// TestDeadEvents gives events up after a second (contract C-56), and checks what commands, metrics
// and log show.
func TestDeadEvents(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		t.Parallel()
		s := openSite(t, e, "WEBHOOK_RETRY_FOR=1s")
		r := newReceiver(t)
		r.setAnswer(func(event, int) int { return http.StatusInternalServerError })
		id := r.add(e, allEvents, "*")
		s.publish(t, "com.example/dead", "1.0.0", "1.1.0")
		await.Until(t, "two dead events", func() bool { return readWebhook(t, e, id).Dead == 2 })
		w := readWebhook(t, e, id)
		if w.Pending != 0 || len(w.DeadEvents) != 2 || w.LastSuccess != "" {
			t.Fatalf("the webhook is listed as %+v", w)
		}
		newest, first := w.DeadEvents[0], w.DeadEvents[1]
		if *newest.Version != "1.1.0" || *first.Version != "1.0.0" || first.Type != "published" ||
			first.ServerName != "com.example/dead" || first.Attempts < 2 ||
			first.Problem != "the receiver answered with the status 500" || first.DeadSince == "" ||
			first.ID != r.all()[0].event.ID {
			t.Errorf("the dead events are %+v", w.DeadEvents)
		}
		if table := e.RunCommand(t, "", "webhook", "list"); !strings.Contains(table, first.ID) ||
			!strings.Contains(table, "DEAD SINCE") {
			t.Errorf("the list is\n%s", table)
		}
		checkDeadMetrics(t, s)
		r.setAnswer(func(event, int) int { return http.StatusNoContent })
		r.forget()
		table := strings.ReplaceAll(e.RunCommand(t, "", "webhook", "deliveries", id), "com.example/dead", "the server")
		if strings.Count(table, "dead") != 2 {
			t.Errorf("the deliveries are %s", table)
		}
		if said := e.RunCommand(t, "", "webhook", "redeliver", id); said != "2 events are sent again\n" {
			t.Errorf("redeliver prints %q", said)
		}
		r.awaitEvents("published dead 1.0.0", "published dead 1.1.0")
		await.Until(t, "no dead events", func() bool {
			w := readWebhook(t, e, id)
			return w.Dead == 0 && w.Pending == 0 && w.LastSuccess != ""
		})
		r.forget()
		if said := e.RunCommand(t, "", "webhook", "redeliver", strings.ToUpper(id), "--event",
			strings.ToUpper(first.ID)); said != "1 event is sent again\n" {
			t.Errorf("redeliver prints %q", said)
		}
		if again := r.awaitEvents("published dead 1.0.0"); again[0].event.ID != first.ID {
			t.Errorf("%s was sent again, want %s", again[0].event.ID, first.ID)
		}
		checkNoSecrets(t, s, r)
	})
}

// checkDeadMetrics checks the metrics after two events are dead. The counters are per instance.
func checkDeadMetrics(t *testing.T, s *site) {
	sum := func(outcome string) float64 {
		return s.one.Metric("tollgate_webhook_attempts_total", "outcome", outcome) +
			s.other.Metric("tollgate_webhook_attempts_total", "outcome", outcome)
	}
	if sum("dead") != 2 || sum("failed") < 1 || sum("delivered") != 0 {
		t.Errorf("the attempts are dead %v, failed %v, delivered %v", sum("dead"), sum("failed"), sum("delivered"))
	}
	for _, at := range []*fixture.Service{s.one, s.other} {
		await.Until(t, "the gauges", func() bool {
			return at.Metric("tollgate_webhook_events_dead") == 2 && at.Metric("tollgate_webhook_events_pending") == 0
		})
	}
}

// checkNoSecrets checks that neither the logs nor the files of the database have the secret, and
// that the logs have no path of a URL.
func checkNoSecrets(t *testing.T, s *site, r *receiver) {
	t.Helper()
	logs := s.one.Process.Log() + s.other.Process.Log()
	for _, word := range []string{
		"an event could not be delivered; the next attempt follows", "an event could not be delivered and is dead",
	} {
		if !strings.Contains(logs, word) {
			t.Errorf("the logs do not have %q", word)
		}
	}
	for _, secret := range []string{r.secret, secretPath, secretKey} {
		if strings.Contains(logs, secret) {
			t.Errorf("a log has %q", secret)
		}
	}
	files, err := filepath.Glob(filepath.Join(s.e.Dir, "data", "*"))
	must.Succeed(t, err)
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(content), r.secret) {
			t.Errorf("%s has the secret", file)
		}
	}
	if list := s.e.RunCommand(t, "", "webhook", "list", "--output", "json"); strings.Contains(list, r.secret) {
		t.Errorf("the list has the secret: %s", list)
	}
}
