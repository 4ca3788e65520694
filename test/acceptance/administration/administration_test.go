package administration

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/openapi"
	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestAdministration checks each subject of the administration API, over the wire and on two
// instances.
func TestAdministration(t *testing.T) {
	checks := []struct {
		name  string
		check func(*testing.T, *site)
	}{
		{"order of checks", checkOrder},
		{"bodies", checkBodies},
		{"grants", checkGrants},
		{"policies", checkPolicies},
		{"views", checkViews},
		{"conditions", checkConditions},
		{"mirrors", checkMirrors},
		{"webhooks", checkWebhooks},
		{"review rules", checkReviewRules},
		{"reviews", checkReviews},
		{"methods", checkMethods},
		{"overview", checkOverview},
		{"access rules", checkAccessRules},
		{"managed objects", checkManaged},
		{"lists", checkLists},
		{"audit", checkAudit},
		{"secrets", checkSecrets},
	}
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t, `"action":"mirror_added"`, `"action":"mirror_run"`)
		s := openSite(t, e)
		for _, c := range checks {
			t.Run(c.name, func(t *testing.T) { c.check(t, s) })
		}
	})
}

// TestSwitchedOff checks that ADMIN_API=off leaves nothing below /admin/v1.
func TestSwitchedOff(t *testing.T) {
	e := fixture.NewEnvironment(t, "embedded")
	e.Environ = append(e.Environ, "ADMIN_API=off")
	s := e.Start(t)
	response, err := http.Get(s.API + "/admin/v1/grants")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusNotFound {
		t.Errorf("status %d", response.StatusCode)
	}
}

// checkOrder checks 401 before 405 and 415 and 413, these before 400, and 400 before 403.
func checkOrder(t *testing.T, s *site) {
	low := s.e.NewPerson(t, "low@example.com", "operate *")
	low.Login(t, s.one)
	large := strings.Repeat(" ", 5<<20)
	for _, r := range openapi.AdminRoutes(t) {
		method, path, route := r.Method, r.Path, r.Method+" "+r.Path
		a := apiclient.Call(t, method, s.one.API+"/admin/v1"+path, r.Body)
		if a.Status != http.StatusUnauthorized || a.Header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s without a token: %d %s", route, a.Status, a.Body)
		}
		if a := s.callAs(t, s.eve, method, path, r.Body); a.Status != http.StatusForbidden {
			t.Errorf("%s without the grant: %d %s", route, a.Status, a.Body)
		}
		a = s.callAs(t, low, method, path, r.Body)
		if a.Status != http.StatusForbidden || !strings.Contains(string(a.Body), "insufficient_trust") {
			t.Errorf("%s below FULL_TRUST: %d %s", route, a.Status, a.Body)
		}
		if r.Body == nil {
			continue
		}
		for _, wrong := range []struct {
			body   any
			header []string
			status int
		}{
			{"{", nil, http.StatusBadRequest}, {"[1]", nil, http.StatusBadRequest},
			{object{"other": 1}, nil, http.StatusBadRequest},
			{"a=b", []string{"Content-Type", "text/plain"}, http.StatusUnsupportedMediaType},
			{large, nil, http.StatusRequestEntityTooLarge},
		} {
			if a := s.callAs(t, s.eve, method, path, wrong.body, wrong.header...); a.Status != wrong.status {
				t.Errorf("%s with %.20v: %d %s, want %d", route, wrong.body, a.Status, a.Body, wrong.status)
			}
		}
	}
	for _, undescribed := range []string{"PATCH /grants", "GET /none", "PATCH /none"} {
		method, path, _ := strings.Cut(undescribed, " ")
		for _, body := range []string{"", large} {
			status, _ := send(t, method, s.one.API+"/admin/v1"+path, body)
			if status != http.StatusUnauthorized {
				t.Errorf("%s without a token: %d", undescribed, status)
			}
		}
	}
	status, header := send(t, "PATCH", s.one.API+"/admin/v1/grants", "", s.eve.Bearer()...)
	if status != http.StatusMethodNotAllowed || !strings.Contains(header.Get("Allow"), "POST") {
		t.Errorf("PATCH /grants: %d %v", status, header)
	}
	if status, _ := send(t, "GET", s.one.API+"/admin/v1/none", "", s.eve.Bearer()...); status != http.StatusNotFound {
		t.Errorf("GET /none: %d", status)
	}
}

// send sends a request that the description does not have.
func send(t *testing.T, method, address, body string, header ...string) (int, http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode, response.Header
}

// checkBodies checks that every member that is wrong is named.
func checkBodies(t *testing.T, s *site) {
	a := s.want(t, http.StatusBadRequest, "PUT", "/views/no%20name",
		object{"include": 7, "access": "all", "other": 1, "another": 2})
	for _, field := range []string{"include", "other", "another"} {
		wantErrorOf(t, a, "validation_error", field)
	}
	s.wantError(t, 400, "validation_error", "access", "PUT", "/views/x", object{"access": "all"})
	s.wantError(t, 400, "validation_error", "name", "PUT", "/views/no%20name", object{})
	s.wantError(t, 400, "validation_error", "pattern", "POST", "/review-rules", object{"when": "any"})
	s.wantError(t, 400, "validation_error", "", "PUT", "/views/x", `{"access":"public","access":"token"}`)
	for _, r := range openapi.AdminRoutes(t) {
		method, path := r.Method, r.Path
		for _, parameter := range []string{"limit=101", "cursor=x", "force=x"} {
			name, _, _ := strings.Cut(parameter, "=")
			isList := method == "GET" && (strings.HasSuffix(path, "s") || path == "/audit" || path == "/people") &&
				path != "/methods"
			isChange := (method == "PUT" || method == "PATCH" || method == "DELETE") && path != "/methods" &&
				!strings.Contains(path, "/tokens/") && !strings.HasPrefix(path, "/people")
			if isList && name != "force" || isChange && name == "force" {
				s.wantError(t, 400, "validation_error", name, method, path+"?"+parameter, r.Body)
			}
		}
	}
}

func checkGrants(t *testing.T, s *site) {
	_, eve := fixture.ReadSession(t, s.one, s.eve)
	draft := object{"person": eve, "action": "edit", "resource": "com.example/eve"}
	made := decode(t, s.want(t, 201, "POST", "/grants", draft))
	if made.text("person") != eve || made.text("id") == "" || made["managedBy"] != "" {
		t.Errorf("the grant is %v", made)
	}
	s.wantError(t, 409, "conflict", "", "POST", "/grants", draft)
	s.wantError(t, 422, "rule_violated", "", "POST", "/grants", object{"person": unknownID, "action": "operate"})
	s.wantError(t, 400, "validation_error", "person", "POST", "/grants", object{"action": "operate"})
	s.wantError(t, 400, "validation_error", "action", "POST", "/grants", object{"person": eve, "action": "x"})
	s.wantError(t, 400, "validation_error", "resource", "POST", "/grants", object{"person": eve, "action": "edit"})
	one := "/grants/" + made.text("id")
	s.wantError(t, 412, "precondition_failed", "", "DELETE", one, nil, "If-Match", `"0"`)
	s.want(t, 204, "DELETE", one, nil)
	s.wantError(t, 404, "resource_not_found", "", "DELETE", one, nil)
}

func checkPolicies(t *testing.T, s *site) {
	_, ada := fixture.ReadSession(t, s.one, s.ada)
	_, eve := fixture.ReadSession(t, s.one, s.eve)
	draft := object{"method": "dns", "domain": "example.com", "pattern": everyName}
	free := decode(t, s.want(t, 201, "POST", "/policies", draft))
	draft["owner"] = ada
	owned := decode(t, s.want(t, 201, "POST", "/policies", draft))
	if free.text("createdBy") != "operator" || owned.text("createdBy") != ada || owned.text("state") != "active" {
		t.Errorf("the policies are %v and %v", free, owned)
	}
	draft["owner"] = eve
	s.wantError(t, 422, "rule_violated", "", "POST", "/policies", draft)
	s.wantError(t, 400, "validation_error", "pattern", "POST", "/policies", object{
		"method": "dns", "domain": "example.com", "pattern": "org.example/*",
	})
	if n := len(items(t, s.call(t, "GET", "/policies", nil), "policies")); n != 2 {
		t.Errorf("%d policies", n)
	}
	one := "/policies/" + owned.text("id")
	tag := s.want(t, 200, "GET", one, nil).Header.Get("ETag")
	s.wantError(t, 412, "precondition_failed", "", "DELETE", one, nil, "If-Match", `"0"`)
	s.want(t, 204, "DELETE", one, nil, "If-Match", tag)
	s.wantError(t, 404, "resource_not_found", "", "GET", one, nil)
	s.wantError(t, 404, "resource_not_found", "", "DELETE", one, nil)
}

func checkViews(t *testing.T, s *site) {
	draft := object{"include": []string{"com.example.data/*"}, "access": "token"}
	made := s.want(t, 201, "PUT", "/views/data", draft)
	again := s.want(t, 200, "PUT", "/views/data", draft)
	if made.Header.Get("ETag") == "" || made.Header.Get("ETag") != again.Header.Get("ETag") {
		t.Errorf("the tags are %v and %v", made.Header, again.Header)
	}
	token := decode(t, s.want(t, 201, "POST", "/views/data/tokens", object{"name": "ci"}))
	s.keep(t, token.text("token"))
	s.wantError(t, 409, "conflict", "", "POST", "/views/data/tokens", object{"name": "ci"})
	s.wantError(t, 404, "resource_not_found", "", "POST", "/views/none/tokens", object{"name": "ci"})
	read := func(secret string, want int) {
		t.Helper()
		await.Until(t, "the view on the other instance", func() bool {
			a := apiclient.Call(t, "GET", s.other.API+"/registries/data/v0.1/servers", nil, "Authorization", "Bearer "+secret)
			return a.Status == want
		})
	}
	read(token.text("token"), 200)
	s.want(t, 204, "DELETE", "/views/data/tokens/ci", nil)
	s.wantError(t, 404, "resource_not_found", "", "DELETE", "/views/data/tokens/ci", nil)
	read(token.text("token"), 401)
	s.want(t, 200, "PUT", "/views/data", object{"access": "public"})
	read("", 200)
	if n := len(items(t, s.call(t, "GET", "/views/data/tokens", nil), "tokens")); n != 0 {
		t.Errorf("%d tokens", n)
	}
	s.want(t, 204, "DELETE", "/views/data", nil)
	s.wantError(t, 404, "resource_not_found", "", "DELETE", "/views/data", nil)
	s.wantError(t, 404, "resource_not_found", "", "GET", "/views/data", nil)
	s.wantError(t, 404, "resource_not_found", "", "GET", "/views/data/tokens", nil)
	read("", 404)
	s.wantError(t, 400, "validation_error", "name", "PUT", "/views/all", object{})
}

func checkConditions(t *testing.T, s *site) {
	put := func(status int, body any, header ...string) string {
		t.Helper()
		return s.want(t, status, "PUT", "/views/conditions", body, header...).Header.Get("ETag")
	}
	put(412, object{}, "If-Match", "*")
	first := put(201, object{}, "If-None-Match", "*")
	put(412, object{}, "If-None-Match", "*")
	second := put(200, object{"deprecated": "hide"}, "If-Match", first)
	put(412, object{}, "If-Match", first)
	if got := s.want(t, 200, "GET", "/views/conditions", nil).Header.Get("ETag"); got != second || first == second {
		t.Errorf("the tags are %s, %s, and read %s", first, second, got)
	}
	// Of parallel changes of one state, one succeeds.
	answers := fixture.CallInParallel(t, 8, func(i int) (apiclient.Response, error) {
		service := s.one
		if i%2 == 1 {
			service = s.other
		}
		return apiclient.TryCall("PUT", service.API+"/admin/v1/views/conditions",
			object{"include": []string{fmt.Sprintf("com.example/n%d", i)}}, append(s.olga.Bearer(), "If-Match", second)...)
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
	s.wantError(t, 412, "precondition_failed", "", "DELETE", "/views/conditions", nil, "If-Match", second)
	s.want(t, 204, "DELETE", "/views/conditions", nil, "If-Match", "*")
	s.wantError(t, 404, "resource_not_found", "", "DELETE", "/views/conditions", nil, "If-Match", "*")
}

func checkMirrors(t *testing.T, s *site) {
	address := "http://127.0.0.1:1/registries/x/t/tgview_secret-of-a-mirror"
	s.keep(t, "tgview_secret-of-a-mirror")
	draft := object{"url": address, "interval": "2h", "exclude": []string{"com.example/x"}}
	made := decode(t, s.want(t, 201, "PUT", "/mirrors/corp", draft))
	if made.text("url") != "http://127.0.0.1:1/registries/x/t/***" || made.text("interval") != "2h0m0s" {
		t.Errorf("the mirror is %v", made)
	}
	await.Until(t, "a read of the other registry fails", func() bool {
		var m struct{ State struct{ Health string } }
		s.call(t, "GET", "/mirrors/corp", nil).WantStatus(t, 200).Decode(t, &m)
		return m.State.Health == "failing"
	})
	tag := s.want(t, 200, "GET", "/mirrors/corp", nil).Header.Get("ETag")
	draft["url"], draft["interval"] = made.text("url"), "90m"
	s.wantError(t, 412, "precondition_failed", "", "PUT", "/mirrors/corp", draft, "If-Match", `"0"`)
	s.want(t, 200, "PUT", "/mirrors/corp", draft, "If-Match", tag)
	s.want(t, 202, "POST", "/mirrors/corp/sync", nil)
	s.wantError(t, 503, "service_unavailable", "", "GET", "/mirrors/corp/diff", nil)
	s.wantError(t, 400, "validation_error", "interval", "PUT", "/mirrors/corp", object{"url": address, "interval": "1s"})
	s.wantError(t, 400, "validation_error", "purge", "DELETE", "/mirrors/corp?purge=x", nil)
	s.wantError(t, 412, "precondition_failed", "", "DELETE", "/mirrors/corp", nil, "If-Match", `"0"`)
	s.want(t, 204, "DELETE", "/mirrors/corp?purge=true", nil)
	s.want(t, 201, "PUT", "/mirrors/near", object{"url": s.other.API})
	await.Until(t, "the other registry is compared", func() bool { // 409 while an instance reads it
		a := s.call(t, "GET", "/mirrors/near/diff", nil)
		return a.Status == 200
	})
	s.want(t, 204, "DELETE", "/mirrors/near", nil)
	for _, call := range []string{"GET ", "DELETE ", "POST /sync", "GET /diff"} {
		method, path, _ := strings.Cut(call, " ")
		s.wantError(t, 404, "resource_not_found", "", method, "/mirrors/corp"+path, nil)
	}
}

func checkWebhooks(t *testing.T, s *site) {
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(receiver.Close)
	address := receiver.URL + "/path-of-a-webhook-4711"
	made := decode(t, s.want(t, 201, "POST", "/webhooks", object{"url": address, "events": []string{"status"}}))
	s.keep(t, made.text("secret"))
	one := "/webhooks/" + made.text("id")
	s.wantError(t, 400, "validation_error", "url", "POST", "/webhooks", object{"url": "ftp://x", "events": []string{"status"}})
	s.wantError(t, 400, "validation_error", "events", "PATCH", one, object{"events": []string{"x"}})
	s.wantError(t, 412, "precondition_failed", "", "PATCH", one, object{}, "If-Match", `"0"`)
	tag := s.want(t, 200, "GET", one, nil).Header.Get("ETag")
	changed := decode(t, s.want(t, 200, "PATCH", one, object{"events": []string{"published", "approved"}}, "If-Match", tag))
	if changed.text("url") != address || changed["secret"] != nil {
		t.Errorf("the webhook is %v", changed)
	}
	if test := decode(t, s.want(t, 200, "POST", one+"/test", nil)); test["delivered"] != true || test["status"] != 204.0 {
		t.Errorf("the test gave %v", test)
	}
	s.want(t, 201, "POST", "/review-rules", object{"pattern": "com.example/hooked", "when": "any"})
	s.ada.PostJSON(t, s.one, "/v0.1/publish", fixture.NewServerDocument("com.example/hooked", "1.0.0")).WantStatus(t, 200)
	var deliveries []object
	await.Until(t, "the events are delivered", func() bool {
		deliveries = items(t, s.call(t, "GET", one+"/deliveries", nil), "deliveries")
		return len(deliveries) > 0 && deliveries[0].text("state") == "delivered"
	})
	if d := deliveries[0]; d["status"] != 204.0 || d["duration"].(float64) <= 0 || d.text("time") == "" ||
		d.text("serverName") != "com.example/hooked" {
		t.Errorf("the delivery is %v", d)
	}
	again := decode(t, s.want(t, 200, "POST", one+"/redeliver", object{"event": deliveries[0].text("id")}))
	if none := decode(t, s.want(t, 200, "POST", one+"/redeliver", nil)); again["redelivered"] != 1.0 ||
		none["redelivered"] != 0.0 {
		t.Errorf("redelivered are %v and %v", again, none)
	}
	s.wantError(t, 404, "resource_not_found", "", "POST", one+"/redeliver", object{"event": unknownID})
	s.want(t, 204, "DELETE", one, nil)
	for _, call := range []string{"GET ", "PATCH ", "DELETE ", "POST /test", "POST /redeliver", "GET /deliveries"} {
		method, path, _ := strings.Cut(call, " ")
		var body any
		if method == "PATCH" {
			body = object{}
		}
		s.wantError(t, 404, "resource_not_found", "", method, one+path, body)
	}
}

func checkReviewRules(t *testing.T, s *site) {
	made := decode(t, s.want(t, 201, "POST", "/review-rules", object{"pattern": "com.example/open", "when": "same-origins"}))
	s.wantError(t, 400, "validation_error", "when", "POST", "/review-rules", object{"pattern": everyName, "when": "x"})
	if n := len(items(t, s.call(t, "GET", "/review-rules", nil), "reviewRules")); n != 2 {
		t.Errorf("%d rules", n)
	}
	one := "/review-rules/" + made.text("id")
	s.wantError(t, 412, "precondition_failed", "", "DELETE", one, nil, "If-Match", `"0"`)
	s.want(t, 204, "DELETE", one, nil)
	s.wantError(t, 404, "resource_not_found", "", "DELETE", one, nil)
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

// checkReviews decides several reviews at once: those of others, an own one, one that is decided, and
// one that does not exist.
func checkReviews(t *testing.T, s *site) {
	first, second := s.submit(t, s.ada, "com.example/r1"), s.submit(t, s.ada, "com.example/r2")
	own := s.submit(t, s.olga, "com.example/r3")
	decideAll := func(verb string, body object) (outcomes []string) {
		t.Helper()
		var got struct {
			Results []struct{ ID, Outcome, Error string }
		}
		s.want(t, 200, "POST", "/reviews/"+verb, body).Decode(t, &got)
		for _, r := range got.Results {
			outcomes = append(outcomes, r.Outcome+" "+r.Error)
		}
		return outcomes
	}
	got := decideAll("approve", object{"ids": []string{first, own, unknownID, "no id", first}})
	want := "[approved  refused access_denied refused resource_not_found refused resource_not_found refused conflict]"
	if fmt.Sprint(got) != want {
		t.Errorf("the outcomes are %s, want %s", fmt.Sprint(got), want)
	}
	if got := decideAll("reject", object{"ids": []string{second}, "comment": "it lies"}); fmt.Sprint(got) != "[rejected ]" {
		t.Errorf("rejected: %v", got)
	}
	s.wantError(t, 400, "validation_error", "comment", "POST", "/reviews/reject", object{"ids": []string{second}})
	s.wantError(t, 400, "validation_error", "ids", "POST", "/reviews/approve", object{"ids": []string{}})
	many := make([]string, 101)
	s.wantError(t, 400, "validation_error", "ids", "POST", "/reviews/approve", object{"ids": many})
	foreign := s.e.NewWriter(t, s.one, "org@example.com", "publish org.example/*")
	if got := decideAll("approve", object{"ids": []string{s.submit(t, foreign, "org.example/r4")}}); fmt.Sprint(got) !=
		"[refused access_denied]" {
		t.Errorf("without the grant for the name: %v", got)
	}
}

func checkMethods(t *testing.T, s *site) {
	before := s.want(t, 200, "GET", "/methods", nil)
	method := object{"method_id": 7, "path": "/api/usage.{format}", "service_id": 3, "service_name": "usage"}
	list := object{"methods": []object{method}}
	s.wantError(t, 412, "precondition_failed", "", "PUT", "/methods", list, "If-Match", `"0"`)
	s.callAs(t, s.eve, "PUT", "/methods", list).WantStatus(t, http.StatusForbidden)
	a := s.want(t, 200, "PUT", "/methods", list, "If-Match", before.Header.Get("ETag"))
	if got := decode(t, a)["methods"].([]any); len(got) != 1 {
		t.Errorf("the methods are %v", got)
	}
	listing, err := http.Get(s.other.API + "/v2/api/methods.json")
	if err != nil {
		t.Fatal(err)
	}
	defer listing.Body.Close()
	if text, err := io.ReadAll(listing.Body); err != nil || !strings.Contains(string(text), "/api/usage.{format}") {
		t.Errorf("the listing is %s, %v", text, err)
	}
	s.wantError(t, 400, "validation_error", "methods[1]", "PUT", "/methods", object{"methods": []object{method, method}})
	s.wantError(t, 400, "validation_error", "methods[0].path", "PUT", "/methods", object{"methods": []object{{"method_id": 1}}})
	s.want(t, 200, "PUT", "/methods", string(before.Body))
}

func checkOverview(t *testing.T, s *site) {
	if o := decode(t, s.want(t, 200, "GET", "/overview", nil)); o.text("status") == "" || o["warnings"] == nil {
		t.Errorf("the overview is %v", o)
	}
}

// checkLists reads each list in pages.
func checkLists(t *testing.T, s *site) {
	for _, name := range []string{"a", "b", "c"} {
		s.want(t, 201, "PUT", "/views/"+name, object{})
	}
	for path, name := range map[string]string{
		"/grants": "grants", "/views": "views", "/audit": "events", "/policies": "policies", "/mirrors": "mirrors",
		"/webhooks": "webhooks", "/review-rules": "reviewRules",
	} {
		whole := items(t, s.call(t, "GET", path+"?limit=100", nil), name)
		var paged []object
		for cursor := ""; ; {
			a := s.call(t, "GET", path+"?limit=1&cursor="+url.QueryEscape(cursor), nil)
			paged = append(paged, items(t, a, name)...)
			var list struct {
				Metadata struct {
					NextCursor string
					Count      int
				}
			}
			a.Decode(t, &list)
			if cursor = list.Metadata.NextCursor; cursor == "" || len(paged) == 100 {
				break
			}
		}
		if fmt.Sprint(paged) != fmt.Sprint(whole) {
			t.Errorf("%s in pages has %d, whole %d", path, len(paged), len(whole))
		}
	}
	for _, name := range []string{"a", "b", "c"} {
		s.want(t, 204, "DELETE", "/views/"+name, nil)
	}
}

// readStream reads a stream of events.
func (s *site) readStream(t *testing.T, query string) (events []object) {
	t.Helper()
	a := s.want(t, 200, "GET", "/audit"+query, nil, "Accept", "application/x-ndjson")
	lines := bufio.NewScanner(strings.NewReader(string(a.Body)))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e object
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("%v: %s", err, lines.Bytes())
		}
		events = append(events, e)
	}
	return events
}

func checkAudit(t *testing.T, s *site) {
	_, olga := fixture.ReadSession(t, s.one, s.olga)
	all := s.readStream(t, "")
	if len(all) < 60 {
		t.Fatalf("the stream has %d events", len(all))
	}
	seen := map[string]bool{}
	for i, e := range all { // in the order of the commits, which is not quite that of the times
		if seen[e.text("id")] {
			t.Errorf("event %d is in the stream twice", i)
		}
		seen[e.text("id")] = true
	}
	rest := s.readStream(t, "?after="+all[9].text("id"))
	if len(rest) < len(all)-10 || rest[0].text("id") != all[10].text("id") {
		t.Errorf("after the tenth event there are %d, the first %v", len(rest), rest[0])
	}
	s.wantError(t, 404, "resource_not_found", "", "GET", "/audit?after="+unknownID, nil, "Accept", "application/x-ndjson")
	count := func(query string, matches func(object) bool) {
		t.Helper()
		want := 0
		for _, e := range all {
			if matches(e) {
				want++
			}
		}
		if got := len(s.readStream(t, query)); got != want || want == 0 {
			t.Errorf("%s selects %d events, want %d", query, got, want)
		}
	}
	detail := func(e object, name string) any { return e["details"].(map[string]any)[name] }
	actor := "person:" + olga
	count("?actor="+actor, func(e object) bool { return detail(e, "actor") == actor })
	count("?actor=operator", func(e object) bool { return detail(e, "actor") == "operator" })
	count("?server=com.example/hooked", func(e object) bool { return detail(e, "serverName") == "com.example/hooked" })
	count("?type=METHODS_CHANGE", func(e object) bool { return e["type"] == "METHODS_CHANGE" })
	count("?person="+olga, func(e object) bool { return e["person"] == olga })
	middle := all[len(all)/2].text("time")
	count("?since="+middle, func(e object) bool { return e.text("time") >= middle })
	count("?until="+middle, func(e object) bool { return e.text("time") < middle })
	if got := s.readStream(t, "?actor=person:"+olga[:8]); len(got) != 0 {
		t.Errorf("a part of an actor selects %d events", len(got))
	}
	for _, field := range []string{"type=x", "person=x", "since=x", "until=x", "after=" + unknownID} {
		name, _, _ := strings.Cut(field, "=")
		s.wantError(t, 400, "validation_error", name, "GET", "/audit?"+field, nil)
	}
}

// checkSecrets checks that no secret is in a list, the audit log or the log of the service.
func checkSecrets(t *testing.T, s *site) {
	for _, path := range []string{"/views", "/webhooks", "/mirrors", "/audit?limit=100"} {
		s.wantNoSecret(t, path, string(s.call(t, "GET", path, nil).Body))
	}
	s.wantNoSecret(t, "the audit log", fmt.Sprint(s.readStream(t, "")))
	for _, service := range []*fixture.Service{s.one, s.other} {
		s.wantNoSecret(t, "the log", service.Process.Log())
	}
}
