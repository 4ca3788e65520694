package administration

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
)

// checkAccessRules checks the rules about calls: what is stored comes back, also from the other
// instance, what is wrong is named, and conditions hold.
func checkAccessRules(t *testing.T, s *site) {
	const path = "/access-rules/readers"
	rule := object{
		"order": 10, "effect": "allow", "subjects": []string{"person:Ada@Example.com", "group:acme/developers"},
		"servers": []string{everyName}, "tools": []string{"read_*"}, "minTrust": "LIMITED_TRUST",
		"networks": []string{"10.0.0.0/8"}, "expiresAt": "2100-01-01T00:00:00Z",
	}
	made := s.want(t, http.StatusCreated, "PUT", path, rule, "If-None-Match", "*")
	s.want(t, http.StatusOK, "PUT", path, rule)
	s.wantError(t, http.StatusPreconditionFailed, "precondition_failed", "", "PUT", path, rule, "If-None-Match", "*")
	read := apiclient.Call(t, "GET", s.other.API+"/admin/v1"+path, nil, s.olga.Bearer()...).WantStatus(t, http.StatusOK)
	if string(read.Body) != string(made.Body) || read.Header.Get("ETag") != made.Header.Get("ETag") {
		t.Errorf("the other instance answers %s, want %s", read.Body, made.Body)
	}
	got := decode(t, read)
	if got.text("name") != "readers" || got.text("mode") != "enforce" || got["order"] != 10.0 ||
		got["subjects"].([]any)[0] != "person:ada@example.com" || len(got["methods"].([]any)) != 0 {
		t.Errorf("the rule is %s", read.Body)
	}
	for field, value := range map[string]any{
		"order": 10_001, "effect": "maybe", "subjects": []string{}, "subjects[0]": []string{"robot:x"}, "servers[0]": []string{"x y"},
		"methods[0]": []string{"tools/none"}, "tools[1]": []string{"a", "a"}, "minTrust": "SOME", "networks[0]": []string{"10.0.0"},
		"expiresAt": "tomorrow", "mode": "later", "other": 1,
	} {
		wrong := object{"order": 1, "effect": "allow", "subjects": []string{"everyone"}, "servers": []string{everyName}}
		member, _, _ := strings.Cut(field, "[")
		wrong[member] = value
		s.wantError(t, http.StatusBadRequest, "validation_error", field, "PUT", "/access-rules/wrong", wrong)
	}
	s.wantError(t, http.StatusBadRequest, "validation_error", "name", "PUT", "/access-rules/No", rule)
	s.want(t, http.StatusCreated, "PUT", "/access-rules/second", rule)
	page := s.want(t, http.StatusOK, "GET", "/access-rules?limit=1", nil)
	if list := items(t, page, "accessRules"); len(list) != 1 || list[0].text("name") != "readers" {
		t.Errorf("the first page is %s", page.Body)
	}
	s.want(t, http.StatusPreconditionFailed, "DELETE", path, nil, "If-Match", `"stale"`)
	s.want(t, http.StatusNoContent, "DELETE", path, nil, "If-Match", made.Header.Get("ETag"))
	s.want(t, http.StatusNotFound, "DELETE", path, nil)
	s.want(t, http.StatusNotFound, "GET", path, nil)
	s.want(t, http.StatusNoContent, "DELETE", "/access-rules/second", nil)
	checkExplain(t, s)
}

// checkExplain checks that a rule, the listing of a server and quarantine hold on the other instance
// within a second.
func checkExplain(t *testing.T, s *site) {
	t.Helper()
	const name = "com.example/explained"
	ask := func(subject, server string) object {
		t.Helper()
		return decode(t, apiclient.Call(t, "POST", s.other.API+"/admin/v1/access/explain",
			object{"subject": subject, "server": server, "tool": "read_x"}, s.olga.Bearer()...).WantStatus(t, http.StatusOK))
	}
	until := func(what, subject, effect, reason string) {
		t.Helper()
		await.Until(t, what, func() bool {
			got := ask(subject, name)
			return got["effect"] == effect && got["reason"] == reason
		})
	}
	ada := "person:ada@example.com"
	until("an unknown server is denied", ada, "deny", "not_listed")
	s.want(t, http.StatusOK, "POST", "/reviews/approve", object{"ids": []string{s.submit(t, s.ada, name)}})
	until("a listed server is decided by default", ada, "deny", "default")
	s.want(t, http.StatusCreated, "PUT", "/access-rules/ada", object{
		"order": 1, "effect": "allow", "subjects": []string{ada}, "servers": []string{everyName}, "tools": []string{"read_*"},
	})
	until("a rule allows", ada, "allow", "rule")
	got := ask("anyone", name)
	if got.text("effect") != "challenge" || len(got["steps"].([]any)) != 1 || got.text("listing") != "listed" {
		t.Errorf("the explanation is %v", got)
	}
	if got["stepsTotal"] != 1.0 || len(got["trustReasons"].([]any)) != 0 {
		t.Errorf("the explanation about anyone is %v", got)
	}
	if reasons := fmt.Sprint(ask(ada, name)["trustReasons"]); !strings.Contains(reasons, "The newest session began at 20") ||
		!strings.Contains(reasons, "It has FULL_TRUST since a step-up") {
		t.Errorf("the reasons are %s", reasons)
	}
	page := func(offset, limit int) string {
		t.Helper()
		got := decode(t, s.want(t, http.StatusOK, "POST", "/access/explain", object{
			"subject": "anyone", "server": name, "tool": "read_x", "offset": offset, "limit": limit,
		}))
		return fmt.Sprint(len(got["steps"].([]any)), got["stepsTotal"])
	}
	if first, second, last := page(0, 1), page(1, 1000), page(10000, 1); first != "1 1" || second != "0 1" || last != "0 1" {
		t.Errorf("the pages are %s, %s and %s", first, second, last)
	}
	for field, value := range map[string]any{"offset": -1, "limit": 0} {
		s.wantError(t, http.StatusBadRequest, "validation_error", field, "POST", "/access/explain",
			object{"subject": "anyone", "server": name, field: value})
	}
	s.want(t, http.StatusNoContent, "DELETE", "/access-rules/ada", nil)
	until("the rule is gone", ada, "deny", "default")
	s.wantError(t, http.StatusBadRequest, "validation_error", "server", "POST", "/access/explain", object{"subject": ada})
	s.wantError(t, http.StatusUnprocessableEntity, "rule_violated", "", "POST", "/access/explain",
		object{"subject": "service:nobody", "server": name})
}
