package tools

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// watching are the settings of a service that queries servers of this machine every second.
var watching = []string{"TOOLS_INTERVAL=1s", "TOOLS_NETWORKS=127.0.0.0/8"}

// byHand are those of a service that queries them by hand only.
var byHand = []string{"TOOLS_NETWORKS=127.0.0.0/8"}

// TestWatched checks, on both databases, that a changed description is noticed within an interval, in all
// versions with the remote, with its event, its notice and its record, and that it goes with the difference.
func TestWatched(t *testing.T) {
	fixture.InBothEnvironments(t, func(t *testing.T, e *fixture.Environment) {
		s, r := openSite(t, e, watching...), newToolServer(t, "a")
		events := newHook(t, e)
		s.publishAt(t, server, "1.0.0", r.url)
		s.awaits(t, "1.0.0", "approved a")
		s.publishAt(t, server, "2.0.0", r.url)
		s.awaits(t, "2.0.0", "approved a")
		r.shows("b")
		s.awaits(t, "1.0.0", "approved a, changed b")
		s.awaits(t, "2.0.0", "approved a, changed b")
		await.Until(t, "two events", func() bool { return len(events.all()) == 2 })
		for _, one := range events.all() {
			if one.Type != "tools_changed" || one.ServerName != server || one.Data["remote"] != r.url || one.Data["state"] != "changed" ||
				fmt.Sprint(one.Data["changed"], one.Data["new"], one.Data["removed"]) != "[forecast] [] []" || one.Data["mark"] == one.Data["approvedMark"] {
				t.Errorf("the event is %+v", one)
			}
		}
		await.Until(t, "the gauge", func() bool { return s.Metric("tollgate_tools_changed") == 2 })
		s.AwaitLog("The tools of a server changed")
		r.shows("a")
		s.awaits(t, "1.0.0", "approved a")
		s.awaits(t, "2.0.0", "approved a")
		await.Until(t, "the gauge", func() bool { return s.Metric("tollgate_tools_changed") == 0 })
		var acts []string
		for _, act := range s.actsOf(t, "tools_record", "tools_change") {
			if act["actor"] != "tools" || act["part"] != r.url {
				t.Errorf("the audit log has %v", act)
			}
			acts = append(acts, fmt.Sprint(act["action"], " ", act["toolState"]))
		}
		want := "tools_record approved, tools_record approved, tools_change changed, tools_change changed, tools_change approved, tools_change approved"
		if got := strings.Join(acts, ", "); got != want || len(events.all()) != 2 {
			t.Errorf("the audit log has %s, and there were %d events", got, len(events.all()))
		}
		if s.Metric("tollgate_tools_asked_total", "result", "same") < 1 || s.Metric("tollgate_tools_asked_total", "result", "changed") < 1 {
			t.Error("questions are not counted")
		}
	})
}

// TestAway checks that the last list counts while a remote is away, and who reads what is wrong with it.
func TestAway(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s, r := openSite(t, e, watching...), newToolServer(t, "a")
		s.publishAt(t, server, "1.0.0", r.url)
		s.awaits(t, "1.0.0", "approved a")
		r.breaks(http.NotFound)
		s.awaits(t, "1.0.0", "approved a, error could not be asked")
		if got := s.shown(t, "1.0.0", s.ada.Bearer()...); got != "approved a, error could not be asked" {
			t.Errorf("a publisher reads %s", got)
		}
		if got := s.shown(t, "1.0.0", s.rita.Bearer()...); !strings.HasPrefix(got, "approved a, error "+r.url+": connect") {
			t.Errorf("a reviewer reads %s", got)
		}
		olga := e.NewWriter(t, s.Service, "olga@example.com", "operate")
		a := s.call(t, "GET", toolsPath("1.0.0"), nil, olga.Bearer()...)
		if !strings.Contains(string(a.Body), r.url+": connect") || !strings.HasPrefix(a.Header.Get("Cache-Control"), "private") {
			t.Errorf("an operator reads %s %v", a.Body, a.Header)
		}
		r.breaks(nil)
		s.call(t, "POST", askPath("1.0.0"), nil, s.rita.Bearer()...).WantStatus(t, http.StatusOK) // the service waits longer each time
		s.awaits(t, "1.0.0", "approved a")
	})
}

// TestUnstable checks that a server that shows another list each time is noticed once, and then asked once
// a day.
func TestUnstable(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		var n atomic.Int32
		s, r := openSite(t, e, watching...), newToolServer(t, "")
		r.showsBy(func() string { return fmt.Sprint(n.Load()) })
		events := newHook(t, e)
		s.publishAt(t, server, "1.0.0", r.url)
		s.awaits(t, "1.0.0", "approved 0")
		n.Store(1)
		s.awaits(t, "1.0.0", "approved 0, changed 1")
		n.Store(2)
		s.awaits(t, "1.0.0", "approved 0, unstable 2")
		asked := r.count()
		s.publishAt(t, "com.example/other", "1.0.0", newToolServer(t, "x").url)
		await.Until(t, "an interval", func() bool { return s.Metric("tollgate_tools_asked_total", "result", "same") >= 3 })
		if r.count() != asked {
			t.Error("an unstable server is asked more than once a day")
		}
		n.Store(3)
		s.call(t, "POST", askPath("1.0.0"), map[string]any{"remote": r.url}, s.rita.Bearer()...).WantStatus(t, http.StatusOK)
		s.awaits(t, "1.0.0", "approved 0, unstable 3")
		if all := events.all(); len(all) != 2 || all[1].Data["state"] != "unstable" {
			t.Errorf("the events are %v", all)
		}
	})
}

// TestQuarantined checks that a version is in quarantine while it shows other tools, if the operator wants
// that, and is asked on.
func TestQuarantined(t *testing.T) {
	fixture.InBothEnvironments(t, func(t *testing.T, e *fixture.Environment) {
		s, r := openSite(t, e, append(watching, "TOOLS_ON_CHANGE=quarantine")...), newToolServer(t, "a")
		s.publishAt(t, server, "1.0.0", r.url)
		s.awaits(t, "1.0.0", "approved a")
		r.shows("b")
		await.Until(t, "quarantine", func() bool { return s.call(t, "GET", toolsPath("1.0.0"), nil).Status != http.StatusOK })
		var list struct {
			Quarantined []struct{ Version, Reason, By string }
		}
		s.call(t, "GET", "/v0.1/x/dev.tollgate/quarantine", nil, s.rita.Bearer()...).Decode(t, &list)
		if q := list.Quarantined; len(q) != 1 || q[0].By != "tools" || q[0].Version != "1.0.0" || !strings.Contains(q[0].Reason, `changed "forecast"`) {
			t.Errorf("in quarantine are %+v", q)
		}
		asked := r.count()
		await.Until(t, "another question", func() bool { return r.count() > asked })
		var queue struct{ Reviews []struct{ ID, Kind string } }
		s.call(t, "GET", "/v0.1/x/dev.tollgate/reviews", nil, s.rita.Bearer()...).Decode(t, &queue)
		if len(queue.Reviews) != 1 || queue.Reviews[0].Kind != "tools" {
			t.Fatalf("the queue has %+v", queue.Reviews)
		}
		s.call(t, "POST", "/v0.1/x/dev.tollgate/reviews/"+queue.Reviews[0].ID+"/approve", nil, s.rita.Bearer()...).WantStatus(t, http.StatusOK)
		s.awaits(t, "1.0.0", "approved b") // the approval releases it
		r.shows("c")
		hidden := func() bool { return s.call(t, "GET", toolsPath("1.0.0"), nil).Status != http.StatusOK }
		await.Until(t, "quarantine", hidden)
		s.call(t, "DELETE", "/v0.1/x/dev.tollgate/quarantine?serverName="+server+"&version=1.0.0", nil, s.rita.Bearer()...).
			WantStatus(t, http.StatusNoContent)
		s.awaits(t, "1.0.0", "approved c") // the release approves what was seen last
		s.call(t, "GET", "/v0.1/x/dev.tollgate/reviews", nil, s.rita.Bearer()...).Decode(t, &queue)
		asked = r.count()
		await.Until(t, "another question", func() bool { return r.count() > asked+1 })
		if len(queue.Reviews) != 0 || hidden() {
			t.Errorf("after the release the queue has %+v", queue.Reviews)
		}
	})
}

// TestTwoInstances checks that of several instances one queries a remote.
func TestTwoInstances(t *testing.T) {
	fixture.InBothEnvironments(t, func(t *testing.T, e *fixture.Environment) {
		s, r := openSite(t, e, watching...), newToolServer(t, "a")
		e.Start(t, append(fixture.RegistrySettings(), watching...)...)
		slow := make(chan struct{}, 1)
		r.showsBy(func() string {
			select {
			case slow <- struct{}{}:
				defer func() { <-slow }()
			default:
				t.Error("the remote is asked twice at once")
			}
			return "a"
		})
		s.publishAt(t, server, "1.0.0", r.url)
		await.Until(t, "five questions", func() bool { return r.count() >= 5 })
		s.awaits(t, "1.0.0", "approved a")
		if records := s.actsOf(t, "tools_record"); len(records) != 1 {
			t.Errorf("the audit log has %v", records)
		}
	})
}

// TestHungAtShutdown checks that a server that never answers does not keep the service from its end.
func TestHungAtShutdown(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s, r := openSite(t, e, watching...), newToolServer(t, "a")
		r.breaks(func(_ http.ResponseWriter, q *http.Request) { <-q.Context().Done() }) // its body is read
		s.publishAt(t, server, "1.0.0", r.url)
		await.Until(t, "a question", func() bool { return r.count() > 0 })
		s.Stop()
		again := &site{Service: e.Start(t, append(fixture.RegistrySettings(), watching...)...), environment: e}
		r.breaks(nil)
		again.awaits(t, "1.0.0", "approved a") // the lease has ended with the service
	})
}

// hookEvent is an event that a webhook got.
type hookEvent struct {
	Type, ServerName, Version string
	Data                      map[string]any
}

// hook is a receiver of events about tools.
type hook struct {
	mu   sync.Mutex
	got  []hookEvent
	seen map[string]bool
}

func newHook(t *testing.T, e *fixture.Environment) *hook {
	t.Helper()
	h := &hook{seen: map[string]bool{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var one struct {
			hookEvent
			ID string
		}
		if err := json.NewDecoder(r.Body).Decode(&one); err != nil {
			t.Error(err)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if !h.seen[one.ID] {
			h.got, h.seen[one.ID] = append(h.got, one.hookEvent), true
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(server.Close)
	e.RunCommand(t, "", "webhook", "add", server.URL, "--events", "tools_changed")
	return h
}

func (h *hook) all() []hookEvent {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.got
}
