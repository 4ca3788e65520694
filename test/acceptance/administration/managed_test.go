package administration

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// managedTables are the tables of the objects that a file may manage.
var managedTables = []string{
	"grants", "publisher_policies", "review_rules", "webhooks", "registry_views", "mirrors", "service_accounts", "access_rules",
}

// checkManaged checks, for each route that changes what a file manages, that it does so with
// force=true only, and that the object keeps its owner.
func checkManaged(t *testing.T, s *site) {
	_, eve := fixture.ReadSession(t, s.one, s.eve)
	make := func(path string, body any) string {
		t.Helper()
		return decode(t, s.want(t, http.StatusCreated, "POST", path, body)).text("id")
	}
	grant := make("/grants", object{"person": eve, "action": "edit", "resource": "com.example/m"})
	draft := object{"method": "dns", "domain": "example.com", "pattern": everyName}
	policy, own, other := make("/policies", draft), make("/policies", draft), make("/policies", draft)
	rule := make("/review-rules", object{"pattern": "com.example/m", "when": "any"})
	webhook := make("/webhooks", object{"url": "https://example.com/hook", "events": []string{"status"}})
	s.want(t, http.StatusCreated, "PUT", "/views/managed", object{})
	s.want(t, http.StatusCreated, "PUT", "/mirrors/managed", object{"url": "https://registry.example.com"})
	s.want(t, http.StatusCreated, "PUT", "/service-accounts/managed", object{})
	access := object{"order": 1, "effect": "deny", "subjects": []string{"everyone"}, "servers": []string{everyName}}
	s.want(t, http.StatusCreated, "PUT", "/access-rules/managed", access)
	db := s.e.OpenDatabase(t)
	for _, table := range managedTables {
		if _, err := db.ExecContext(t.Context(), "UPDATE "+table+" SET managed_by = 'platform'"); err != nil {
			t.Fatal(err)
		}
	}
	s.want(t, http.StatusCreated, "POST", "/views/managed/tokens", object{"name": "first"}) // no file has tokens
	s.want(t, http.StatusNoContent, "DELETE", "/views/managed/tokens/first", nil)
	token := object{"name": "first", "scopes": []string{"decide"}}
	first := make("/service-accounts/managed/tokens", token)
	s.want(t, http.StatusNoContent, "DELETE", "/service-accounts/managed/tokens/"+first, nil)
	const admin, registry = "/admin/v1", "/x/dev.tollgate/publishers/"
	for _, route := range []struct {
		method, path string
		body         any
	}{
		{"PUT", admin + "/views/managed", object{"access": "token"}},
		{"DELETE", admin + "/views/managed", nil},
		{"PUT", admin + "/mirrors/managed", object{"url": "https://registry.example.com", "interval": "3h"}},
		{"DELETE", admin + "/mirrors/managed", nil},
		{"PATCH", admin + "/webhooks/" + webhook, object{"pattern": everyName}},
		{"DELETE", admin + "/webhooks/" + webhook, nil},
		{"DELETE", admin + "/grants/" + grant, nil},
		{"DELETE", admin + "/policies/" + policy, nil},
		{"DELETE", "/v0.1" + registry + own, nil},
		{"DELETE", "/v0" + registry + other, nil},
		{"DELETE", admin + "/review-rules/" + rule, nil},
		{"PUT", admin + "/service-accounts/managed", object{"description": "by hand"}},
		{"DELETE", admin + "/service-accounts/managed", nil},
		{"PUT", admin + "/access-rules/managed", object{
			"order": 2, "effect": "deny", "subjects": []string{"anyone"}, "servers": []string{everyName},
		}},
		{"DELETE", admin + "/access-rules/managed", nil},
	} {
		call := func(query string) apiclient.Response {
			return apiclient.Call(t, route.method, s.one.API+route.path+query, route.body, s.olga.Bearer()...)
		}
		if a := call(""); a.Status != http.StatusConflict || !strings.Contains(string(a.Body), "the file of platform") {
			t.Errorf("%s %s: %d %s", route.method, route.path, a.Status, a.Body)
		}
		a := call("?force=true")
		keeps := a.Status == http.StatusNoContent || decode(t, a)["managedBy"] == "platform"
		if a.Status >= http.StatusBadRequest || !keeps {
			t.Errorf("%s %s with force: %d %s", route.method, route.path, a.Status, a.Body)
		}
	}
}
