package acceptance

import (
	"net/http"
	"testing"
	"time"
)

// TestRetention wants audit events to go when their time is over, which is
// counted, and sessions to stay until theirs is.
func TestRetention(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		s := e.start(t, "RETENTION_INTERVAL=1s", "AUDIT_RETENTION=1s")
		ada := e.newPerson(t, "ada@example.com")
		ada.login(t, s)
		total := func() int {
			var found struct{ Total int }
			call(t, "GET", s.api+"/audit-logs", nil, ada.bearer()...).want(t, http.StatusOK).decode(t, &found)
			return found.Total
		}
		for deadline := time.Now().Add(30 * time.Second); total() > 0; {
			if time.Now().After(deadline) {
				t.Fatalf("%d events are still there", total())
			}
			time.Sleep(50 * time.Millisecond)
		}
		const removed = "tollgate_records_removed_total"
		await(t, "the removed events are counted", func() bool { return s.metric(removed, "kind", "audit_events") > 0 })
		if n := s.metric(removed, "kind", "sessions"); n != 0 {
			t.Errorf("%v removed sessions are counted", n)
		}
	})
}
