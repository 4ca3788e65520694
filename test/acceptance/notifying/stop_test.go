package notifying

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestStoppedInstances stops one instance after the other, as an update does, while events are
// delivered. Each event arrives, and the first requests of the events of one server are in order.
func TestStoppedInstances(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		t.Parallel()
		s := openSite(t, e)
		const servers, versions = 4, 8
		r := newReceiver(t)
		r.mayOverlap = true // a request that is broken off may still be in progress when it is repeated
		arrived, gate := make(chan struct{}, 1), make(chan struct{})
		r.setAnswer(func(event, int) int {
			select {
			case arrived <- struct{}{}:
			default: // the test knows already
			}
			<-gate
			return http.StatusNoContent
		})
		id := r.add(e, "published", "*")
		for n := range servers {
			for v := range versions {
				s.publish(t, fmt.Sprintf("com.example/s%d", n), fmt.Sprintf("1.%d.0", v))
			}
		}
		<-arrived // and is not answered yet
		s.one.Stop()
		e.Start(t)
		s.other.Stop()
		close(gate)
		await.Until(t, "all events", func() bool { return len(firstRequests(r)) == servers*versions })
		seen := map[string][]string{}
		for _, q := range firstRequests(r) {
			seen[*q.event.ServerName] = append(seen[*q.event.ServerName], *q.event.Version)
		}
		for name, list := range seen {
			if !slices.IsSorted(list) || len(list) != versions {
				t.Errorf("the events of %s arrived as %v", name, list)
			}
		}
		await.Until(t, "no event waits", func() bool { return readWebhook(t, e, id).Pending == 0 })
	})
}

// firstRequests returns the first request of each event.
func firstRequests(r *receiver) (list []received) {
	seen := map[string]bool{}
	for _, q := range r.all() {
		if !seen[q.event.ID] {
			seen[q.event.ID] = true
			list = append(list, q)
		}
	}
	return list
}
