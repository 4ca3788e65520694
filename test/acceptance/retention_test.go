package acceptance

import (
	"net/http"
	"testing"
	"time"
)

// TestRetention wants audit events to go when their time is over, and sessions
// to stay until theirs is.
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
	})
}
