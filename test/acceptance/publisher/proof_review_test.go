package publisher

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/apiclient"
	"github.com/tollgate-dev/tollgate/test/acceptance/internal/fixture"
)

// TestReviewOfPublishers checks that the maker of a policy does not decide about what a publisher
// submits by it, that the token of a publisher neither reads nor decides reviews, and that the limit of
// pending documents holds for a publisher (contract C-12, C-14, C-15, C-16).
func TestReviewOfPublishers(t *testing.T) {
	fixture.InEachEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		p := startProofs(t, e, "REGISTRY_REVIEW=on", "REVIEW_PENDING_MAX=1")
		maker := e.NewWriter(t, p.Service, "ada@example.com", "publish *", "review *")
		other := e.NewWriter(t, p.Service, "bea@example.com", "review *")
		token, policy := p.tokenByPerson(t, maker, newEd25519Key(t), "example.com", "com.example/*")
		var published struct {
			Meta map[string]struct{ ID string } `json:"_meta"`
		}
		p.publish(t, token, "com.example/weather", "1.0.0").WantStatus(t, http.StatusOK).Decode(t, &published)
		path := p.API + "/v0.1/x/dev.tollgate/reviews"
		review := path + "/" + published.Meta["dev.tollgate/review"].ID
		var shown struct{ State, SubmittedBy, Policy string }
		apiclient.Call(t, "GET", review, nil, maker.Bearer()...).WantStatus(t, http.StatusOK).Decode(t, &shown)
		if shown.State != "pending" || shown.SubmittedBy != "dns:example.com" || shown.Policy != policy {
			t.Errorf("the review is %+v", shown)
		}
		p.publish(t, token, "com.example/weather", "1.1.0").WantStatus(t, http.StatusTooManyRequests)
		bearer := []string{"Authorization", "Bearer " + token}
		apiclient.Call(t, "GET", path, nil, bearer...).WantStatus(t, http.StatusForbidden)
		apiclient.Call(t, "GET", review, nil, bearer...).WantStatus(t, http.StatusForbidden)
		apiclient.Call(t, "POST", review+"/approve", nil, bearer...).WantStatus(t, http.StatusForbidden)
		wantSentence(t, apiclient.Call(t, "POST", review+"/approve", nil, maker.Bearer()...).WantStatus(t, http.StatusForbidden), "through a policy that you created")
		apiclient.Call(t, "POST", review+"/approve", nil, other.Bearer()...).WantStatus(t, http.StatusOK)
		if _, listed := p.readVersions(t, "com.example/weather")["1.0.0"]; !listed {
			t.Error("the approved version is not listed")
		}
		e.RunCommand(t, "", "review", "rule", "add", "--pattern", "com.example/*", "--when", "any", "--publisher", policy)
		if a := p.publish(t, token, "com.example/weather", "1.1.0").WantStatus(t, http.StatusOK); strings.Contains(string(a.Body), "dev.tollgate/review") {
			t.Errorf("a rule for the policy does not approve: %s", a.Body)
		}
	})
}
