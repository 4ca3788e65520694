package mirroring

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/upstream"
)

// TestReviewOfMirrors checks how documents of mirrors are reviewed (contract C-68).
func TestReviewOfMirrors(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		t.Parallel()
		s := openSite(t, e, "REGISTRY_REVIEW=on")
		up := upstream.Start(t, records("judged", 2)...)
		s.add(t, "judged", up)
		s.sync(t, "judged")
		s.wantListed(t, "example.judged")
		var list struct {
			Reviews []struct{ ID, ServerName, SubmittedBy, Kind string }
		}
		const path = "/v0.1/x/dev.tollgate/reviews"
		s.send(t, s.bea, "GET", path, nil).WantStatus(t, http.StatusOK).Decode(t, &list)
		if len(list.Reviews) != 2 || list.Reviews[0].SubmittedBy != "mirror:judged" ||
			list.Reviews[0].Kind != "new-server" {
			t.Fatalf("reviews: %+v", list.Reviews)
		}
		for i, verdict := range []string{"approve", "reject"} {
			apiclient.Call(t, "POST", s.other.API+path+"/"+list.Reviews[i].ID+"/"+verdict, `{"comment":"so it is"}`,
				s.bea.Bearer()...).WantStatus(t, http.StatusOK)
		}
		s.wantListed(t, "example.judged", list.Reviews[0].ServerName+"@1.0.0 active of judged")
		if got := s.sync(t, "judged", "--full"); got.Submitted != 0 {
			t.Errorf("what was decided is submitted again: %+v", got)
		}

		trusted := upstream.Start(t, records("trusted", 2)...)
		s.add(t, "trusted", trusted, "--review", "trusted")
		s.sync(t, "trusted")
		s.wantListed(t, "example.trusted", linesOf("trusted", 2, "trusted")...)

		s.e.RunCommand(t, "", "mirror", "remove", "judged", "--purge")
		s.wantListed(t, "example.judged")
	})
}

// decode decodes the body of a request.
func decode(t *testing.T, r *http.Request, into any) {
	t.Helper()
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		t.Error(err)
	}
}
