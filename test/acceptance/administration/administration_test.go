package administration

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/openapi"
	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestAdministration checks what two instances must agree on, and gets each response that the
// description of the administration API has. What handlers do with their input is checked in
// adapters/rest/adminapi.
func TestAdministration(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := openSite(t, e)
		t.Run("callers", func(t *testing.T) { checkCallers(t, s) })
		t.Run("responses", func(t *testing.T) { checkResponses(t, s) })
		t.Run("views", func(t *testing.T) { checkViews(t, s) })
		t.Run("conditions", func(t *testing.T) { checkConditions(t, s) })
		t.Run("methods", func(t *testing.T) { checkMethods(t, s) })
		t.Run("access rules", func(t *testing.T) { checkAccessRules(t, s) })
	})
}

// checkCallers gets from each route 401, 403, the refusals of a body, and what it answers the
// operator.
func checkCallers(t *testing.T, s *site) {
	large := strings.Repeat(" ", 5<<20)
	for _, r := range append(openapi.AdminRoutes(t),
		openapi.AdminRoute{Method: "GET", Path: "/methods"},
		openapi.AdminRoute{Method: "PUT", Path: "/methods", Body: object{"methods": []any{}}}) {
		apiclient.Call(t, r.Method, s.one.API+"/admin/v1"+r.Path, r.Body).WantStatus(t, http.StatusUnauthorized)
		s.callAs(t, s.eve, r.Method, r.Path, r.Body).WantStatus(t, http.StatusForbidden)
		if r.Method == "GET" && r.Path != "/overview" || r.Method == "DELETE" {
			query := map[string]string{"GET": "?limit=x", "DELETE": "?force=x", "/state": "?owner=A",
				"/audit": "?type=x"}
			s.call(t, r.Method, r.Path+cmp.Or(query[r.Path], query[r.Method]), nil)
		}
		if a := s.call(t, r.Method, r.Path, r.Body); a.Status == http.StatusUnauthorized ||
			a.Status == http.StatusForbidden {
			t.Errorf("%s %s: %d %s", r.Method, r.Path, a.Status, a.Body)
		}
		if r.Body == nil {
			continue
		}
		s.callAs(t, s.eve, r.Method, r.Path, "{").WantStatus(t, http.StatusBadRequest)
		s.callAs(t, s.eve, r.Method, r.Path, "a=b", "Content-Type", "text/plain").
			WantStatus(t, http.StatusUnsupportedMediaType)
		s.callAs(t, s.eve, r.Method, r.Path, large).WantStatus(t, http.StatusRequestEntityTooLarge)
	}
}

// checkResponses plays the requests in testdata.
func checkResponses(t *testing.T, s *site) {
	const rule = `"order":1,"effect":"deny","subjects":["everyone"],"servers":["com.example/*"]`
	for _, kind := range [][3]string{
		{"/views", "views", `"access":"public"`}, {"/mirrors", "mirrors", `"url":"https://registry.invalid"`},
		{"/service-accounts", "serviceAccounts", `"description":""`}, {"/access-rules", "accessRules", rule},
		{"/providers", "providers", `"issuer":"https://login.example.com","clientId":"tollgate"`},
	} {
		s.play(t, "named objects", "PATH", kind[0], "LIST", kind[1], "MEMBERS", kind[2])
	}
	_, eve := fixture.ReadSession(t, s.one, s.eve)
	s.play(t, "added objects", "EVE", eve)
	policy := object{"method": "dns", "domain": "example.com", "pattern": everyName}
	for _, root := range []string{"/v0.1", "/v0"} { // the routes of publishers remove policies too
		id := decode(t, s.want(t, 201, "POST", "/policies", policy)).text("id")
		s.manage(t, "publisher_policies")
		own := s.one.API + root + "/x/dev.tollgate/publishers/" + id
		apiclient.Call(t, "DELETE", own, nil, s.olga.Bearer()...).WantStatus(t, 409)
		apiclient.Call(t, "DELETE", own+"?force=true", nil, s.olga.Bearer()...).WantStatus(t, 204)
	}
	hook := s.want(t, 201, "POST", "/webhooks", object{"url": "http://127.0.0.1:1/hook", "events": []string{"status"}})
	s.want(t, 201, "PUT", "/mirrors/near", object{"url": s.other.API})
	await.Until(t, "the other registry is compared", func() bool { // 409 while an instance reads it
		return s.call(t, "GET", "/mirrors/near/diff", nil).Status == http.StatusOK
	})
	s.play(t, "actions", "HOOK", decode(t, hook).text("id"))
}

// manage makes a file the manager of all objects of a table.
func (s *site) manage(t *testing.T, table string) {
	t.Helper()
	update := "UPDATE " + table + " SET managed_by = 'platform'"
	if _, err := s.e.OpenDatabase(t).ExecContext(t.Context(), update); err != nil {
		t.Fatal(err)
	}
}

// play sends the requests of a section of testdata/steps.txt, in which fill has words and what they
// stand for in turn.
func (s *site) play(t *testing.T, section string, fill ...string) {
	t.Helper()
	content, err := os.ReadFile("testdata/steps.txt")
	must.Succeed(t, err)
	_, steps, _ := strings.Cut(string(content), "\n["+section+"]\n")
	steps, _, _ = strings.Cut(steps, "\n\n")
	id, tag := "", ""
	for line := range strings.Lines(strings.NewReplacer(fill...).Replace(steps)) {
		line = strings.NewReplacer("{id}", id, "{tag}", tag).Replace(strings.TrimSpace(line))
		if table, ok := strings.CutPrefix(line, "manage "); ok {
			s.manage(t, table)
			continue
		}
		words, body := strings.Split(line, " "), any(nil)
		if at := strings.Index(line, " {"); at > 0 {
			words, body = strings.Split(line[:at], " "), line[at+1:]
		}
		var header []string
		if len(words) > 3 {
			name, value, _ := strings.Cut(words[3], ":")
			header = []string{name, value}
		}
		a := s.call(t, words[1], words[2], body, header...)
		if strconv.Itoa(a.Status) != words[0] {
			t.Fatalf("%s: %d %s", line, a.Status, a.Body)
		}
		var got struct{ ID string }
		_ = json.Unmarshal(a.Body, &got) // a stream or no body has no id
		id, tag = cmp.Or(got.ID, id), cmp.Or(a.Header.Get("ETag"), tag)
	}
}

// checkViews reads a view with a token on the other instance.
func checkViews(t *testing.T, s *site) {
	read := func(secret string, want int) {
		t.Helper()
		await.Until(t, "the view on the other instance", func() bool {
			a := apiclient.Call(t, "GET", s.other.API+"/registries/data/v0.1/servers", nil, "Authorization",
				"Bearer "+secret)
			return a.Status == want
		})
	}
	const tokens = "/views/data/tokens"
	s.want(t, 201, "PUT", "/views/data", object{"access": "token"})
	token := decode(t, s.want(t, 201, "POST", tokens, object{"name": "ci"})).text("token")
	s.want(t, 409, "POST", tokens, object{"name": "ci"})
	s.want(t, 200, "GET", tokens, nil)
	read(token, 200)
	s.want(t, 204, "DELETE", tokens+"/ci", nil)
	s.want(t, 404, "DELETE", tokens+"/ci", nil)
	read(token, 401)
	s.want(t, 200, "PUT", "/views/data", object{"access": "public"})
	read("", 200)
	s.want(t, 204, "DELETE", "/views/data", nil)
	read("", 404)
}

// checkConditions checks that of parallel changes of one state, on both instances, one succeeds.
func checkConditions(t *testing.T, s *site) {
	tag := s.want(t, 201, "PUT", "/views/conditions", object{}).Header.Get("ETag")
	answers := fixture.CallInParallel(t, 8, func(i int) (apiclient.Response, error) {
		service := s.one
		if i%2 == 1 {
			service = s.other
		}
		return apiclient.TryCall("PUT", service.API+"/admin/v1/views/conditions",
			object{"include": []string{fmt.Sprintf("com.example/n%d", i)}}, append(s.olga.Bearer(), "If-Match", tag)...)
	})
	succeeded := 0
	for _, a := range answers {
		switch a.Status {
		case 200:
			succeeded++
		case 412:
		default:
			t.Errorf("a parallel change: %d %s", a.Status, a.Body)
		}
	}
	if succeeded != 1 {
		t.Errorf("%d of the parallel changes succeeded", succeeded)
	}
	s.want(t, 412, "DELETE", "/views/conditions", nil, "If-Match", tag)
	s.want(t, 204, "DELETE", "/views/conditions", nil, "If-Match", "*")
}

// checkMethods replaces the methods, which the other instance lists then.
func checkMethods(t *testing.T, s *site) {
	before := s.want(t, 200, "GET", "/methods", nil)
	method := object{"method_id": 7, "path": "/api/usage.{format}", "service_id": 3, "service_name": "usage"}
	list := object{"methods": []object{method}}
	s.want(t, 412, "PUT", "/methods", list, "If-Match", `"0"`)
	s.want(t, 200, "PUT", "/methods", list, "If-Match", before.Header.Get("ETag"))
	listing, err := http.Get(s.other.API + "/v2/api/methods.json")
	must.Succeed(t, err)
	defer listing.Body.Close()
	if text, err := io.ReadAll(listing.Body); err != nil || !strings.Contains(string(text), "/api/usage.{format}") {
		t.Errorf("the listing is %s, %v", text, err)
	}
	s.want(t, 200, "PUT", "/methods", string(before.Body))
}

// checkAccessRules checks that a rule and the listing of a server hold on the other instance within
// a second.
func checkAccessRules(t *testing.T, s *site) {
	const name, ada = "com.example/explained", "person:ada@example.com"
	until := func(what, effect, reason string) {
		t.Helper()
		await.Until(t, what, func() bool {
			a := apiclient.Call(t, "POST", s.other.API+"/admin/v1/access/explain",
				object{"subject": ada, "server": name, "tool": "read_x"}, s.olga.Bearer()...).WantStatus(t, 200)
			got := decode(t, a)
			return got["effect"] == effect && got["reason"] == reason
		})
	}
	until("an unknown server is denied", "deny", "not_listed")
	s.want(t, 200, "POST", "/reviews/approve", object{"ids": []string{s.submit(t, s.ada, name)}})
	until("a listed server is decided by default", "deny", "default")
	s.want(t, 201, "PUT", "/access-rules/ada", object{
		"order": 1, "effect": "allow", "subjects": []string{ada}, "servers": []string{everyName},
		"tools": []string{"read_*"},
	})
	until("a rule allows", "allow", "rule")
	s.want(t, 204, "DELETE", "/access-rules/ada", nil)
	until("the rule is gone", "deny", "default")
}

// submit publishes a document that waits for review, and returns the id of its review.
func (s *site) submit(t *testing.T, by *fixture.Person, name string) string {
	t.Helper()
	var got struct {
		Meta struct {
			Review struct{ ID string } `json:"dev.tollgate/review"`
		} `json:"_meta"`
	}
	by.PostJSON(t, s.one, "/v0.1/publish", fixture.NewServerDocument(name, "1.0.0")).WantStatus(t, 200).Decode(t, &got)
	return got.Meta.Review.ID
}
