package publisher

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestReviewOfPublishers checks that the maker of a policy does not decide about what a publisher
// submits by it, that the token of a publisher neither reads nor decides reviews, and that the
// limit of pending documents holds for a publisher (contract C-12, C-14, C-15, C-16).
func TestReviewOfPublishers(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		t.Parallel()
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
		wantSentence(t,
			apiclient.Call(t, "POST", review+"/approve", nil, maker.Bearer()...).WantStatus(t, http.StatusForbidden),
			"through a policy that you created")
		apiclient.Call(t, "POST", review+"/approve", nil, other.Bearer()...).WantStatus(t, http.StatusOK)
		if _, listed := p.readVersions(t, "com.example/weather")["1.0.0"]; !listed {
			t.Error("the approved version is not listed")
		}
		e.RunCommand(t, "", "review", "rule", "add", "--pattern", "com.example/*", "--when", "any",
			"--publisher", policy)
		if a := p.publish(t, token, "com.example/weather", "1.1.0").WantStatus(t,
			http.StatusOK); strings.Contains(string(a.Body), "dev.tollgate/review") {
			t.Errorf("a rule for the policy does not approve: %s", a.Body)
		}
	})
}

// TestClientsSubmitForReview publishes with the publishing client of the public registry and with
// tollgate while review is on: both succeed, and tollgate says that the version waits (contract
// C-10).
func TestClientsSubmitForReview(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		t.Parallel()
		p := startProofs(t, e, "REGISTRY_REVIEW=on")
		key := newEd25519Key(t)
		p.allowDomain(t, "example.com", key, "--pattern", "com.example/*")
		c := newProofClient(t)
		c.run(t, "login", "dns", "--domain", "example.com", "--private-key", key.private, "--registry", p.API)
		file := documentFile(t, fixture.NewServerDocument("com.example/weather", "1.0.0"))
		c.run(t, "publish", file)
		ada := fixture.NewPublisher(t, e.NewPerson(t, "ada@example.com", "publish com.example/*"))
		ada.Run(t, 0, fixture.Password+"\n", "login", "--url", p.API, "--email", ada.Email, "--password-stdin")
		ada.Run(t, 3, fixture.Password, "login", "--password-stdin", "--step-up", "email")
		ada.Run(t, 0, "", "login", "--code", e.LastCode(t, ada.Email), "--trust-device")
		stdout, stderr := ada.Run(t, 0, "", "publish",
			documentFile(t, fixture.NewServerDocument("com.example/weather", "1.1.0")))
		if !strings.Contains(stdout, "REVIEW") || !strings.Contains(stderr, "listed after a reviewer has approved it") {
			t.Errorf("tollgate publish: %s%s", stdout, stderr)
		}
		var got struct{ Review string }
		stdout, _ = ada.Run(t, 0, "", "publish", "-o", "json",
			documentFile(t, fixture.NewServerDocument("com.example/weather", "1.2.0")))
		if fixture.DecodeJSON(t, stdout, &got); got.Review == "" {
			t.Errorf("tollgate publish -o json: %s", stdout)
		}
		apiclient.Call(t, "GET", p.API+"/v0.1"+fixture.ServerPath("com.example/weather")+"/versions", nil).WantStatus(t,
			http.StatusNotFound)
		e.RunCommand(t, "", "review", "approve", "--all-pending")
		if n := len(p.readVersions(t, "com.example/weather")); n != 3 {
			t.Errorf("%d versions are listed after the approval, want 3", n)
		}
	})
}
