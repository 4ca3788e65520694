package outages

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/must"
)

// eventReceiver accepts every event from when all are stored, and calls disturb once, before it
// answers the one with a number.
type eventReceiver struct {
	t       *testing.T
	stored  chan struct{} // closed when all events are stored
	disturb func()
	at      int

	mu       sync.Mutex
	accepted map[string]int // requests by the name of the server
	events   map[string]bool
}

// ServeHTTP implements [http.Handler].
func (r *eventReceiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	var e struct{ ID, ServerName string }
	if err := json.NewDecoder(q.Body).Decode(&e); err != nil {
		r.t.Errorf("an event cannot be read: %v", err)
	}
	select {
	case <-r.stored:
	case <-q.Context().Done():
		return // the event comes again
	}
	r.mu.Lock()
	defer r.mu.Unlock() // the requests wait while the disturbance is made
	r.accepted[e.ServerName]++
	if !r.events[e.ID] {
		r.events[e.ID] = true
		if len(r.events) == r.at {
			r.disturb()
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

func (r *eventReceiver) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.events)
}

// TestEventsWhileTheDatabaseIsAway makes PostgreSQL unavailable while two instances deliver events.
// When it is back, every event arrives (contract C-54).
func TestEventsWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	const servers = 40
	eachFailure(t, mostFailures(), func(t *testing.T, on remoteServer, f failure) {
		address := on.url()
		away := make(chan struct{})
		r := &eventReceiver{t: t, stored: make(chan struct{}), at: 10, accepted: map[string]int{},
			events: map[string]bool{}, disturb: func() {
				if err := f.away(on); err != nil {
					t.Error(err)
				}
				close(away)
			}}
		receiver := httptest.NewServer(r)
		t.Cleanup(receiver.Close)
		one, other := startService(t, "DATABASE_URL="+address), startService(t, "DATABASE_URL="+address)
		runCommand(t, []string{"DATABASE_URL=" + address}, "", "webhook", "add", receiver.URL, "--events", "published")
		importServers(t, address, 0, servers)
		close(r.stored)
		<-away
		await.Until(t, "an error in a log", func() bool {
			return strings.Contains(one.Log()+other.Log(), "events could not be delivered")
		})
		if n := r.count(); n == servers {
			t.Error("all events arrived before the database was away")
		}
		must.Succeed(t, f.back(on))
		await.Until(t, "all events", func() bool { return r.count() == servers })
		await.Until(t, "no event waits", func() bool {
			return one.readMetric("tollgate_webhook_events_pending") == 0 &&
				other.readMetric("tollgate_webhook_events_pending") == 0
		})
		for n := range servers {
			if name := fmt.Sprintf("com.example/weather-%d", n); r.accepted[name] == 0 {
				t.Errorf("no event of %s arrived", name)
			}
		}
	})
}
