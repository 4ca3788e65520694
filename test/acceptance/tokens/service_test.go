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
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
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
		s.makeService(t, "publish com.example/*", "review com.example/*")
		token := s.make(t, ciTokens, operator, "registry:publish", "registry:review", "registry:read")
		s.checkFourEyes(t, token.Token)
		s.checkNeverByTokens(t, token.Token)
		s.checkActors(t)
		short := s.make(t, ciTokens, operator, "decide")
		s.call(t, "DELETE", ciTokens+"/"+short.ID, nil, operator...).WantStatus(t, http.StatusNoContent)
		s.call(t, "GET", me, nil, bearer(short.Token)...).WantStatus(t, http.StatusUnauthorized)
		tokens := s.call(t, "GET", ciTokens, nil, operator...).WantStatus(t, http.StatusOK)
		s.call(t, "DELETE", ci, nil, operator...).WantStatus(t, http.StatusNoContent)
		s.publish(t, "com.example/late", token.Token).WantStatus(t, http.StatusUnauthorized)
		if grants := e.RunCommand(t, "", "grant", "list"); strings.Contains(grants, "service:ci") {
			t.Errorf("the grants of a deleted account are left: %s", grants)
		}
		s.wantNoSecrets(t, tokens)
	})
}

// checkActors checks that what service accounts and people did in the registry is found by actor.
func (s *site) checkActors(t *testing.T) {
	t.Helper()
	var session struct{ UserID string }
	s.call(t, "GET", "/auth/session", nil, s.operator.Bearer()...).WantStatus(t, http.StatusOK).Decode(t, &session)
	for actor, server := range map[string]string{
		"service:ci": "com.example/of-service", "person:" + session.UserID: "com.example/of-person",
	} {
		found := s.call(t, "GET", "/admin/v1/audit?type=REGISTRY_CHANGE&actor="+actor, nil, s.operator.Bearer()...)
		found.WantStatus(t, http.StatusOK)
		if text := string(found.Body); !strings.Contains(text, `"action":"publish","actor":"`+actor+`"`) || !strings.Contains(text, server) {
			t.Errorf("of %s there is %s", actor, text)
		}
	}
}

// pendingReview returns the id of the only review that waits.
func (s *site) pendingReview(t *testing.T, header []string) string {
	t.Helper()
	var list struct{ Reviews []struct{ ID string } }
	s.call(t, "GET", registryRoot+"/x/dev.tollgate/reviews", nil, header...).WantStatus(t, http.StatusOK).Decode(t,
		&list)
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
			{"ref": "other"}, {"sub": "repo:other/tools:x"}, {"aud": "inner"},
			{"exp": time.Now().Add(-time.Minute).Unix()},
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
		if list := s.call(t, "GET", ciTokens, nil, s.operator.Bearer()...); strings.Contains(string(list.Body),
			"workload") {
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
			must.Succeed(t, err)
			for line := range bytes.Lines(content) {
				var entry struct{ Recipient, Notice string }
				must.Succeed(t, json.Unmarshal(line, &entry))
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

// TestResponses gets the other responses that the description of the routes of tokens has. What
// their handlers do with the input is checked in adapters/rest/adminapi.
func TestResponses(t *testing.T) {
	t.Parallel()
	s := startSite(t, fixture.NewEnvironment(t, "embedded"))
	s.makeService(t)
	weak := bearer(s.make(t, myTokens, s.operator.Bearer(), "decide").Token)
	draft := map[string]any{"name": "t", "scopes": []string{"decide"}}
	for _, r := range []struct {
		status       int // for the operator; a token without the scope gets 403
		method, path string
		body         any
	}{
		{200, "GET", myTokens, nil}, {400, "GET", myTokens + "?limit=0", nil}, {201, "POST", myTokens, draft},
		{404, "DELETE", myTokens + "/" + unknownID, nil}, {200, "GET", services, nil}, {200, "GET", ciTokens, nil},
		{404, "GET", services + "/none/tokens", nil}, {201, "POST", ciTokens, draft},
		{404, "POST", services + "/none/tokens", draft}, {404, "DELETE", ciTokens + "/" + unknownID, nil},
	} {
		s.call(t, r.method, r.path, r.body).WantStatus(t, http.StatusUnauthorized)
		s.call(t, r.method, r.path, r.body, s.operator.Bearer()...).WantStatus(t, r.status)
		path, _, _ := strings.Cut(r.path, "?")
		s.call(t, r.method, path, r.body, weak...).WantStatus(t, http.StatusForbidden)
	}
	s.call(t, "POST", myTokens, "{", s.operator.Bearer()...).WantStatus(t, http.StatusBadRequest)
	s.call(t, "POST", myTokens, "x", append(s.operator.Bearer(), "Content-Type", "text/plain")...).
		WantStatus(t, http.StatusUnsupportedMediaType)
}
