package tokens

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/oidcissuer"
)

// TestServiceAccounts makes a service account, which publishes and reviews by its own grants, and
// ends with its tokens and grants.
func TestServiceAccounts(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		t.Parallel()
		s := startSite(t, e, "REGISTRY_REVIEW=on")
		operator := s.operator.Bearer()
		draft := map[string]any{"description": "builds"}
		made := s.call(t, "PUT", ci, draft, append(operator, "If-None-Match", "*")...).WantStatus(t, http.StatusCreated)
		s.call(t, "PUT", ci, draft, append(operator, "If-None-Match", "*")...).WantStatus(t, http.StatusPreconditionFailed)
		again := s.call(t, "PUT", ci, draft, append(operator, "If-Match", made.Header.Get("ETag"))...).
			WantStatus(t, http.StatusOK)
		if again.Header.Get("ETag") != made.Header.Get("ETag") {
			t.Errorf("the same account has the ETags %s and %s", made.Header.Get("ETag"), again.Header.Get("ETag"))
		}
		for _, action := range []string{"publish", "review"} {
			s.call(t, "POST", admin+"/grants", map[string]any{"service": "ci", "action": action, "resource": "com.example/*"},
				operator...).WantStatus(t, http.StatusCreated)
		}
		token := s.make(t, ciTokens, operator, "registry:publish", "registry:review", "registry:read")
		s.checkFourEyes(t, token.Token)
		s.call(t, "PUT", ci, map[string]any{"state": "disabled"}, operator...).WantStatus(t, http.StatusOK)
		s.call(t, "GET", me, nil, bearer(token.Token)...).WantStatus(t, http.StatusUnauthorized)
		s.call(t, "PUT", ci, map[string]any{"state": "active"}, operator...).WantStatus(t, http.StatusOK)
		described := s.call(t, "GET", me, nil, bearer(token.Token)...).WantStatus(t, http.StatusOK)
		if !strings.Contains(string(described.Body), `"service":"ci"`) {
			t.Errorf("/me is %s", described.Body)
		}
		s.checkNeverByTokens(t, token.Token)
		read := s.call(t, "GET", ci, nil, operator...).WantStatus(t, http.StatusOK)
		if !strings.Contains(string(read.Body), `"state":"active"`) || read.Header.Get("ETag") == "" {
			t.Errorf("the account is %s", read.Body)
		}
		short := s.make(t, ciTokens, operator, "decide")
		s.call(t, "DELETE", ciTokens+"/"+short.ID, nil, operator...).WantStatus(t, http.StatusNoContent)
		s.call(t, "GET", me, nil, bearer(short.Token)...).WantStatus(t, http.StatusUnauthorized)
		list := s.call(t, "GET", services, nil, operator...).WantStatus(t, http.StatusOK)
		tokens := s.call(t, "GET", ciTokens, nil, operator...).WantStatus(t, http.StatusOK)
		s.call(t, "DELETE", ci, nil, append(operator, "If-Match", `"0000000000000000"`)...).
			WantStatus(t, http.StatusPreconditionFailed)
		s.call(t, "DELETE", ci, nil, operator...).WantStatus(t, http.StatusNoContent)
		s.call(t, "GET", me, nil, bearer(token.Token)...).WantStatus(t, http.StatusUnauthorized)
		s.call(t, "PUT", ci, draft, operator...).WantStatus(t, http.StatusCreated)
		s.call(t, "GET", me, nil, bearer(token.Token)...).WantStatus(t, http.StatusUnauthorized)
		if grants := e.RunCommand(t, "", "grant", "list"); strings.Contains(grants, "service:ci") {
			t.Errorf("the grants of a deleted account are left: %s", grants)
		}
		s.wantNoSecrets(t, list, tokens)
	})
}

// pendingReview returns the id of the only review that waits.
func (s *site) pendingReview(t *testing.T, header []string) string {
	t.Helper()
	var list struct{ Reviews []struct{ ID string } }
	s.call(t, "GET", registryRoot+"/x/dev.tollgate/reviews", nil, header...).WantStatus(t, http.StatusOK).Decode(t, &list)
	if len(list.Reviews) != 1 {
		t.Fatalf("%d reviews wait, want 1", len(list.Reviews))
	}
	return list.Reviews[0].ID
}

// checkFourEyes checks that neither a service account nor a person, by session or token, approves
// what the same one has submitted.
func (s *site) checkFourEyes(t *testing.T, service string) {
	t.Helper()
	person := s.make(t, myTokens, s.operator.Bearer(), "registry:publish", "registry:review", "registry:read").Token
	approve := func(header []string, status int) {
		t.Helper()
		path := registryRoot + "/x/dev.tollgate/reviews/" + s.pendingReview(t, header) + "/approve"
		s.call(t, "POST", path, map[string]any{}, header...).WantStatus(t, status)
	}
	publish := func(name, token string) {
		t.Helper()
		if a := s.publish(t, name, token); a.Status != http.StatusAccepted && a.Status != http.StatusOK {
			t.Fatalf("publish: %d %s", a.Status, a.Body)
		}
	}
	publish("com.example/of-service", service)
	approve(bearer(service), http.StatusForbidden)
	approve(bearer(person), http.StatusOK)
	publish("com.example/of-person", person)
	approve(bearer(person), http.StatusForbidden)
	approve(s.operator.Bearer(), http.StatusForbidden)
	approve(bearer(service), http.StatusOK)
}

// TestServiceTokenBounds checks that an account has at most 50 tokens, also with parallel requests.
func TestServiceTokenBounds(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		t.Parallel()
		s := startSite(t, e)
		s.makeService(t)
		draft := map[string]any{"name": "t", "scopes": []string{"decide"}}
		var group sync.WaitGroup
		statuses := make([]int, 55)
		for i := range statuses {
			group.Go(func() {
				a, err := apiclient.TryCall("POST", s.API+ciTokens, draft, s.operator.Bearer()...)
				if err != nil {
					t.Error(err)
				}
				statuses[i] = a.Status
			})
		}
		group.Wait()
		counts := map[int]int{}
		for _, status := range statuses {
			counts[status]++
		}
		if counts[http.StatusCreated] != 50 || counts[http.StatusConflict] != 5 {
			t.Errorf("the statuses are %v, want 50 times 201 and 5 times 409", counts)
		}
		s.call(t, "POST", services+"/none/tokens", draft, s.operator.Bearer()...).WantStatus(t, http.StatusNotFound)
	})
}

// TestWorkloads exchanges ID tokens of an issuer for tokens of a service account.
func TestWorkloads(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		t.Parallel()
		issuer := oidcissuer.Start(t)
		const origin = "https://tools.example.com"
		s := startSite(t, e, "OIDC_ISSUERS="+issuer.URL, "PUBLIC_URL="+origin, "PUBLISHER_PROOFS=off")
		s.makeService(t, "publish com.example/*")
		workload := map[string]any{
			"issuer": issuer.URL, "subject": "repo:acme/*", "claims": map[string]string{"ref": "main"},
			"scopes": []string{"registry:publish"},
		}
		inner := map[string]any{
			"issuer": issuer.URL, "subject": "cluster:x", "audience": "inner", "scopes": []string{"decide"},
		}
		s.call(t, "PUT", ci, map[string]any{"workloads": []any{inner, workload}}, s.operator.Bearer()...).
			WantStatus(t, http.StatusOK)
		n := 0
		sign := func(changed map[string]any) string {
			n++
			claims := issuer.NewClaims(origin, time.Now())
			maps.Copy(claims, map[string]any{"sub": "repo:acme/tools:x", "ref": "main", "jti": fmt.Sprint("j", n)})
			maps.Copy(claims, changed)
			return issuer.Sign(t, claims)
		}
		exchange := func(account, token string, status int) (secret string) {
			t.Helper()
			var got struct {
				AccessToken string
				ExpiresIn   int
			}
			a := s.call(t, "POST", "/auth/workload", map[string]string{"serviceAccount": account, "token": token})
			if a.WantStatus(t, status); status == http.StatusOK {
				a.Decode(t, &got)
				s.secrets = append(s.secrets, got.AccessToken)
			}
			return got.AccessToken
		}
		token := sign(nil)
		secret := exchange("ci", token, http.StatusOK)
		exchange("ci", token, http.StatusUnauthorized) // used before
		for _, changed := range []map[string]any{
			{"ref": "other"}, {"sub": "repo:other/tools:x"}, {"aud": "inner"}, {"exp": time.Now().Add(-time.Minute).Unix()},
		} {
			exchange("ci", sign(changed), http.StatusUnauthorized)
		}
		exchange("none", sign(nil), http.StatusUnauthorized)
		exchange("ci", "no token", http.StatusUnauthorized)
		exchange("", sign(nil), http.StatusBadRequest)
		decide := exchange("ci", sign(map[string]any{"sub": "cluster:x", "aud": "inner"}), http.StatusOK)
		refused := s.publish(t, "com.example/b", decide).WantStatus(t, http.StatusForbidden)
		if got, want := refused.Header.Get("WWW-Authenticate"), scopeHeader+`, scope="registry:publish", `+
			`resource_metadata="https://tools.example.com/.well-known/oauth-protected-resource/v0.1"`; got != want {
			t.Errorf("the other workload gets %s, want %s", got, want)
		}
		s.publish(t, "com.example/a", secret).WantStatus(t, http.StatusOK)
		s.publish(t, "org.example/a", secret).WantStatus(t, http.StatusForbidden)
		if list := s.call(t, "GET", ciTokens, nil, s.operator.Bearer()...); strings.Contains(string(list.Body), "workload") {
			t.Errorf("the list has the tokens of workloads: %s", list.Body)
		}
		last := exchange("ci", sign(nil), http.StatusOK)
		s.call(t, "DELETE", ci, nil, s.operator.Bearer()...).WantStatus(t, http.StatusNoContent)
		s.publish(t, "com.example/c", last).WantStatus(t, http.StatusUnauthorized)
		exchange("ci", sign(nil), http.StatusUnauthorized)
		s.wantNoSecrets(t)
	})
}

// TestTokenNotices makes the time of a notice come, with two instances: the person gets one notice.
func TestTokenNotices(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		t.Parallel()
		file := filepath.Join(e.Dir, "notices.jsonl")
		s := startSite(t, e, "NOTICE_LOG_FILE="+file)
		if e.Shared {
			e.Start(t, append(fixture.RegistrySettings(), "NOTICE_LOG_FILE="+file)...)
		}
		s.makeService(t)
		s.make(t, myTokens, s.operator.Bearer(), "decide")
		s.make(t, ciTokens, s.operator.Bearer(), "decide") // made by the same person
		past := fmt.Sprint(time.Now().Add(-time.Hour).UnixMicro())
		if e.Shared {
			past = "now() - interval '1 hour'"
		}
		if _, err := e.OpenDatabase(t).ExecContext(t.Context(), "UPDATE api_tokens SET notice_at = "+past); err != nil {
			t.Fatal(err)
		}
		count := func() (n int) {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for line := range bytes.Lines(content) {
				var entry struct{ Recipient, Notice string }
				if err := json.Unmarshal(line, &entry); err != nil {
					t.Fatal(err)
				}
				if strings.HasPrefix(entry.Notice, "A token of yours") && entry.Recipient == s.operator.Email {
					n++
				}
			}
			return n
		}
		await.Until(t, "both tokens are announced", func() bool { return count() >= 2 })
		if n := count(); n != 2 {
			t.Errorf("%d notices, want one for each token", n)
		}
	})
}

// TestRefusals gets each refusal that the description of the API has.
func TestRefusals(t *testing.T) {
	t.Parallel()
	e := fixture.NewEnvironment(t, "embedded")
	s := startSite(t, e)
	s.makeService(t)
	weak, operator := s.make(t, myTokens, s.operator.Bearer(), "decide"), s.operator.Bearer()
	draft := map[string]any{"name": "t", "scopes": []string{"decide"}}
	for _, r := range []struct {
		method, path string
		body         any
		statuses     []int // of the operator; 401 and 403 are for all
	}{
		{"GET", me, nil, []int{200}},
		{"GET", myTokens + "?limit=0", nil, []int{400}},
		{"POST", myTokens, map[string]any{"name": 1}, []int{400}},
		{"DELETE", myTokens + "/" + unknownID, nil, []int{404}},
		{"GET", services + "?limit=101", nil, []int{400}},
		{"GET", services + "/none", nil, []int{404}},
		{"PUT", ci, map[string]any{"workloads": "all"}, []int{400}},
		{"PUT", ci, map[string]any{"secret": "x"}, []int{400}},
		{"DELETE", services + "/none", nil, []int{404}},
		{"GET", ciTokens + "?cursor=x", nil, []int{400}},
		{"GET", services + "/none/tokens", nil, []int{404}},
		{"POST", ciTokens, map[string]any{"scopes": []string{"decide"}}, []int{400}},
		{"POST", services + "/none/tokens", draft, []int{404}},
		{"DELETE", ciTokens + "/" + unknownID, nil, []int{404}},
	} {
		s.call(t, r.method, r.path, r.body).WantStatus(t, http.StatusUnauthorized)
		s.call(t, r.method, r.path, r.body, operator...).WantStatus(t, r.statuses[0])
		valid := r.body
		if valid != nil {
			valid = draft
		}
		if r.method == "PUT" {
			valid = map[string]any{}
		}
		path, _, _ := strings.Cut(r.path, "?")
		if a := s.call(t, r.method, path, valid, bearer(weak.Token)...); r.path != me && a.Status != http.StatusForbidden {
			t.Errorf("%s %s by a token without the scope: %d %s", r.method, path, a.Status, a.Body)
		}
	}
}
