package tokens

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
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
		for _, part := range []string{`"trustLevel":"TOKEN"`, `"tokenPrefix":"` + made.Prefix, `"anna@example.com"`} {
			if !strings.Contains(string(described.Body), part) {
				t.Errorf("/me lacks %s: %s", part, described.Body)
			}
		}
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
	draft := map[string]any{"name": "t", "scopes": []string{"decide"}}
	for _, a := range []apiclient.Response{
		s.call(t, "GET", myTokens, nil, bearer(secret)...), s.call(t, "POST", myTokens, draft, bearer(secret)...),
		s.call(t, "DELETE", myTokens+"/"+unknownID, nil, bearer(secret)...),
	} {
		apiclient.WantAuthError(t, a.WantStatus(t, http.StatusForbidden), "access_denied")
	}
}

// TestTokensEndEverywhere checks on a second instance that a token ends within a second when it is
// deleted and while its owner is locked or disabled, and that grants are those of the moment.
func TestTokensEndEverywhere(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		t.Parallel()
		s := startSite(t, e)
		other := s.Service
		if e.Shared {
			other = e.Start(t, fixture.RegistrySettings()...)
		}
		anna := e.NewWriter(t, s.Service, "anna@example.com", "publish *")
		made := s.make(t, myTokens, anna.Bearer(), "registry:publish")
		n := 0
		wantWithinASecond := func(what string, status int) {
			t.Helper()
			began := time.Now()
			await.Until(t, what, func() bool {
				n++
				doc := fixture.NewServerDocument(fmt.Sprintf("com.example/a%d", n), "1.0.0")
				a := apiclient.Call(t, "POST", other.API+"/v0.1/publish", doc, bearer(made.Token)...)
				return a.Status == status
			})
			if took := time.Since(began); took > 5*time.Second { // a busy machine
				t.Errorf("%s: it took %s", what, took)
			}
		}
		wantWithinASecond("a new token is accepted", http.StatusOK)
		for _, act := range [][2]string{{"lock", "unlock"}, {"disable", "enable"}} {
			e.RunCommand(t, "", "user", act[0], "--email", anna.Email)
			wantWithinASecond("the token of a person after "+act[0], http.StatusUnauthorized)
			e.RunCommand(t, "", "user", act[1], "--email", anna.Email)
			wantWithinASecond("the token of a person after "+act[1], http.StatusOK)
		}
		e.RunCommand(t, "", "grant", "remove", "--email", anna.Email, "--action", "publish", "--resource", "*")
		wantWithinASecond("a token without a grant", http.StatusForbidden)
		anna.Login(t, s.Service)
		s.call(t, "DELETE", myTokens+"/"+made.ID, nil, anna.Bearer()...).WantStatus(t, http.StatusNoContent)
		wantWithinASecond("a deleted token", http.StatusUnauthorized)
	})
}

// TestTokenIsDeletedWhileItIsUsed deletes a token while many requests to two instances use it: after
// the answer to the deletion neither accepts it.
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

// TestTokenBounds checks that a person has at most 20 tokens, also with parallel requests, the
// bounds of the fields, and the networks.
func TestTokenBounds(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		t.Parallel()
		s := startSite(t, e)
		draft := map[string]any{"name": "t", "scopes": []string{"decide"}}
		for field, value := range map[string]any{
			"name": "", "scopes": []string{"all"}, "expiresAt": "2026-01-01T00:00:00Z", "networks": []string{"x"},
			"token": "tgp_mine",
		} {
			changed := map[string]any{"name": "t", "scopes": []string{"decide"}, field: value}
			a := s.call(t, "POST", myTokens, changed, s.operator.Bearer()...).WantStatus(t, http.StatusBadRequest)
			details := apiclient.WantAuthError(t, a, "validation_error")
			if fields, _ := details["fields"].(map[string]any); fields[field] == nil {
				t.Errorf("%s: the details are %v", field, details)
			}
		}
		statuses := make([]int, 25)
		var group sync.WaitGroup
		for i := range statuses {
			group.Go(func() {
				a, err := apiclient.TryCall("POST", s.API+myTokens, draft, s.operator.Bearer()...)
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
		if counts[http.StatusCreated] != 20 || counts[http.StatusConflict] != 5 {
			t.Errorf("the statuses are %v, want 20 times 201 and 5 times 409", counts)
		}
		bert := e.NewWriter(t, s.Service, "bert@example.com", "publish *")
		for network, status := range map[string]int{"127.0.0.0/8": http.StatusOK, "192.0.2.0/24": http.StatusUnauthorized} {
			var made token
			s.call(t, "POST", myTokens, map[string]any{
				"name": "t", "scopes": []string{"decide"}, "networks": []string{network},
			}, bert.Bearer()...).WantStatus(t, http.StatusCreated).Decode(t, &made)
			s.call(t, "GET", me, nil, bearer(made.Token)...).WantStatus(t, status)
		}
	})
}

// TestTokenNeedsTrust checks that a session below FULL_TRUST makes no token, and may delete one.
func TestTokenNeedsTrust(t *testing.T) {
	t.Parallel()
	e := fixture.NewEnvironment(t, "embedded")
	s := startSite(t, e)
	p := e.NewPerson(t, "carl@example.com")
	p.Login(t, s.Service)
	a := s.call(t, "POST", myTokens, map[string]any{"name": "t", "scopes": []string{"decide"}}, p.Bearer()...)
	apiclient.WantAuthError(t, a.WantStatus(t, http.StatusForbidden), "insufficient_trust")
	s.call(t, "GET", myTokens, nil, p.Bearer()...).WantStatus(t, http.StatusOK)
	s.call(t, "DELETE", myTokens+"/"+unknownID, nil, p.Bearer()...).WantStatus(t, http.StatusNotFound)
}
