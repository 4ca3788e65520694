package outages

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/instance"
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
	type server struct {
		*instance.Postgres
		wire *breakableProxy
	}
	for name, c := range map[string]struct{ away, back func(server) error }{
		"frozen":  {func(s server) error { return s.Freeze() }, func(s server) error { return s.Thaw() }},
		"stopped": {func(s server) error { s.Stop(); return nil }, func(s server) error { return s.Start() }},
		"cut off": {
			func(s server) error { s.wire.stopForwarding(); return nil }, func(s server) error {
				s.wire.forwardNewConnections()
				return nil
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startPostgres(t)
			on := server{p, newBreakableProxy(t, p.Address)}
			address := p.URL(on.wire.address())
			away := make(chan struct{})
			r := &eventReceiver{t: t, stored: make(chan struct{}), at: 10, accepted: map[string]int{},
				events: map[string]bool{}, disturb: func() {
					if err := c.away(on); err != nil {
						t.Error(err)
					}
					close(away)
				}}
			receiver := httptest.NewServer(r)
			t.Cleanup(receiver.Close)
			one, other := startService(t, "DATABASE_URL="+address), startService(t, "DATABASE_URL="+address)
			runCommand(t, address, "webhook", "add", receiver.URL, "--events", "published")
			importServers(t, address, 0, servers)
			close(r.stored)
			<-away
			await.Until(t, "an error in a log", func() bool {
				return strings.Contains(one.Log()+other.Log(), "events could not be delivered")
			})
			if n := r.count(); n == servers {
				t.Error("all events arrived before the database was away")
			}
			failOnError(t, c.back(on))
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
}

// runCommand runs an operator command.
func runCommand(t *testing.T, address string, args ...string) {
	t.Helper()
	command := exec.Command(filepath.Join(built, "tollgate"), args...)
	command.Env = append(os.Environ(), "DATABASE_URL="+address)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
}
