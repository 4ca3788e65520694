package authentication

import (
	"net/http"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestRetention checks that audit events are deleted and counted after their retention, and that
// sessions are not deleted before theirs.
func TestRetention(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t, "RETENTION_INTERVAL=1s", "AUDIT_RETENTION=1s")
		ada := e.NewPerson(t, "ada@example.com")
		ada.Login(t, s)
		total := func() int {
			var found struct{ Total int }
			apiclient.Call(t, "GET", s.API+"/audit-logs", nil, ada.Bearer()...).WantStatus(t, http.StatusOK).
				Decode(t, &found)
			return found.Total
		}
		await.Until(t, "no event is left", func() bool { return total() == 0 })
		const removed = "tollgate_records_removed_total"
		await.Until(t, "the removed events are counted", func() bool {
			return s.Metric(removed, "kind", "audit_events") > 0
		})
		if n := s.Metric(removed, "kind", "sessions"); n != 0 {
			t.Errorf("%v removed sessions are counted", n)
		}
	})
}
