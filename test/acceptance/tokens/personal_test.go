package tokens

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// publish publishes a server with a token.
func (s *site) publish(t *testing.T, name, secret string) apiclient.Response {
	t.Helper()
	return s.call(t, "POST", "/v0.1/publish", fixture.NewServerDocument(name, "1.0.0"), bearer(secret)...)
}

// TestPersonalTokens makes, lists, uses and deletes a token of a person.
func TestPersonalTokens(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		t.Parallel()
		s := startSite(t, e)
		anna := e.NewWriter(t, s.Service, "anna@example.com", "publish com.example/*")
		made := s.make(t, myTokens, anna.Bearer(), "registry:publish", "registry:read")
		if made.LastUsedAt != nil || strings.Join(made.Scopes, " ") != "registry:publish registry:read" {
			t.Errorf("the token is %+v", made)
		}
		s.publish(t, "com.example/weather", made.Token).WantStatus(t, http.StatusOK)
		s.publish(t, "org.example/weather", made.Token).WantStatus(t, http.StatusForbidden) // no grant
		var list struct{ Tokens []token }
		listed := s.call(t, "GET", myTokens, nil, anna.Bearer()...).WantStatus(t, http.StatusOK)
		listed.Decode(t, &list)
		if len(list.Tokens) != 1 || list.Tokens[0].ID != made.ID || list.Tokens[0].Token != "" ||
			list.Tokens[0].LastUsedAt == nil || list.Tokens[0].LastUsedFrom == nil {
			t.Errorf("the list is %s", listed.Body)
		}
		described := s.call(t, "GET", me, nil, bearer(made.Token)...).WantStatus(t, http.StatusOK)
		s.checkNeverByTokens(t, made.Token)
		for _, bad := range []string{neverMade, wrongSum, made.Token[:52], "tgp_"} {
			s.publish(t, "com.example/bad", bad).WantStatus(t, http.StatusUnauthorized)
		}
		s.call(t, "DELETE", myTokens+"/"+made.ID, nil, anna.Bearer()...).WantStatus(t, http.StatusNoContent)
		s.publish(t, "com.example/late", made.Token).WantStatus(t, http.StatusUnauthorized)
		s.wantNoSecrets(t, listed, described)
	})
}

// checkNeverByTokens checks what no token may do, whatever its scopes.
func (s *site) checkNeverByTokens(t *testing.T, secret string) {
	t.Helper()
	for _, path := range []string{"/auth/session", "/devices", "/sessions", "/audit-logs"} {
		s.call(t, "GET", path, nil, bearer(secret)...).WantStatus(t, http.StatusUnauthorized)
	}
	s.call(t, "POST", "/auth/step-up/initiate", map[string]string{"method": "EMAIL_OTP"}, bearer(secret)...).
		WantStatus(t, http.StatusUnauthorized)
}

// TestTokenIsDeletedWhileItIsUsed deletes a token while many requests to two instances use it:
// after the answer to the deletion neither accepts it.
func TestTokenIsDeletedWhileItIsUsed(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		t.Parallel()
		s := startSite(t, e)
		apis := []string{s.API, e.Start(t, fixture.RegistrySettings()...).API}
		made := s.make(t, myTokens, s.operator.Bearer(), "admin:read")
		stop := make(chan struct{})
		var group sync.WaitGroup
		for i := range 4 {
			group.Go(func() {
				for refused := false; ; {
					select {
					case <-stop:
						return
					default:
					}
					a, err := apiclient.TryCall("GET", apis[i%2]+me, nil, bearer(made.Token)...)
					switch {
					case err != nil:
						t.Error(err)
						return
					case a.Status == http.StatusUnauthorized:
						refused = true
					case a.Status != http.StatusOK || refused:
						t.Errorf("%d after a refusal: %s", a.Status, a.Body)
						return
					}
				}
			})
		}
		s.call(t, "DELETE", myTokens+"/"+made.ID, nil, s.operator.Bearer()...).WantStatus(t, http.StatusNoContent)
		for _, api := range apis {
			apiclient.Call(t, "GET", api+me, nil, bearer(made.Token)...).WantStatus(t, http.StatusUnauthorized)
		}
		close(stop)
		group.Wait()
	})
}

// TestTokenBounds checks that a person has at most 20 tokens and a service account 50, also with
// parallel requests.
func TestTokenBounds(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		t.Parallel()
		s := startSite(t, e)
		s.makeService(t)
		draft := map[string]any{"name": "t", "scopes": []string{"decide"}}
		for path, most := range map[string]int{myTokens: 20, ciTokens: 50} {
			counts := map[int]int{}
			for _, a := range fixture.CallInParallel(t, most+5, func(int) (apiclient.Response, error) {
				return apiclient.TryCall("POST", s.API+path, draft, s.operator.Bearer()...)
			}) {
				counts[a.Status]++
			}
			if counts[http.StatusCreated] != most || counts[http.StatusConflict] != 5 {
				t.Errorf("the statuses are %v, want %d times 201 and 5 times 409", counts, most)
			}
		}
	})
}
