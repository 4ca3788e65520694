package adminapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/oidcissuer"
)

// TestWebhookActions tests a webhook, reads its deliveries and has one delivered again.
func TestWebhookActions(t *testing.T) {
	s := openSite(t)
	s.e.WantAuditEvents(t)
	var status atomic.Int32
	status.Store(http.StatusNoContent)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		w.WriteHeader(int(status.Load()))
	}))
	t.Cleanup(receiver.Close)
	made := decode(t, s.want(t, 201, "POST", "/webhooks", object{"url": receiver.URL + "/hook",
		"events": []string{"status", "published"}}))
	s.keep(t, text(made, "secret"))
	one := "/webhooks/" + text(made, "id")
	s.want(t, 200, "POST", one+"/test", nil)
	status.Store(http.StatusTeapot)
	s.want(t, 200, "POST", one+"/test", nil)
	status.Store(http.StatusNoContent)
	pat := s.e.NewWriter(t, s.Service, "pat@example.com", "publish "+everyName)
	for _, version := range []string{"1.0.0", "1.1.0"} {
		pat.PostJSON(t, s.Service, "/v0.1/publish", fixture.NewServerDocument("com.example/hooked",
			version)).WantStatus(t, 200)
	}
	var deliveries []any
	await.Until(t, "the events are delivered", func() bool {
		a := s.read(t, one+"/deliveries")
		deliveries, _ = decode(t, a)["deliveries"].([]any)
		return strings.Count(string(a.Body), `"state":"delivered"`) == 2
	})
	newest := deliveries[0].(object)
	if newest["duration"].(float64) <= 0 || newest["status"] != 204.0 {
		t.Errorf("the newest delivery is %v", newest)
	}
	if last := deliveries[1].(object); text(newest, "time") <= text(last, "time") {
		t.Errorf("the delivery of %s comes before that of %s", text(newest, "time"), text(last, "time"))
	}
	again := s.want(t, 200, "POST", one+"/redeliver", object{"event": newest["id"]})
	none := s.want(t, 200, "POST", one+"/redeliver", nil)
	if decode(t, again)["redelivered"] != 1.0 || decode(t, none)["redelivered"] != 0.0 {
		t.Errorf("redelivered are %s and %s", again.Body, none.Body)
	}
	s.play(t, "webhook", "{one}", one)
	receiver.Close()
	if a := s.do(t, "POST", one+"/test", nil, s.olga.Bearer()...); decode(t, a)["delivered"] != false || text(decode(t,
		a), "problem") == "" {
		t.Errorf("the test of a receiver that is away: %s", a.Body)
	}
	s.play(t, "webhook that is removed", "{one}", one)
}

// TestMirrorActions reads another registry, compares it when it has another version, and removes
// what came from it.
func TestMirrorActions(t *testing.T) {
	s := openSite(t)
	const token = "tgview_secret-of-a-mirror"
	var version atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		document := fixture.NewServerDocument("com.example/mirrored", fmt.Sprintf("1.%d.0", version.Load()))
		official := object{"status": "active", "publishedAt": "2026-01-01T00:00:00Z",
			"updatedAt": "2026-01-01T00:00:00Z", "isLatest": true}
		_ = json.NewEncoder(w).Encode(object{ // the test sees what is missing
			"servers":  []object{{"server": document, "_meta": object{fixture.OfficialKey: official}}},
			"metadata": object{"count": 1},
		})
	}))
	t.Cleanup(other.Close)
	s.want(t, 201, "PUT", "/mirrors/near", object{"url": other.URL, "lenient": true})
	s.want(t, 201, "PUT", "/mirrors/away", object{"url": "http://127.0.0.1:1/registries/x/t/" + token})
	for path, want := range map[string]string{"/mirrors/near": "ok", "/mirrors/away": "failing"} {
		await.Until(t, "a mirror that is "+want, func() bool {
			state, _ := decode(t, s.read(t, path))["state"].(object)
			return state["health"] == want
		})
	}
	version.Add(1)
	s.play(t, "mirrors")
	if s.read(t, "/state"); strings.Contains(s.seen.String(), token) {
		t.Errorf("%s was seen", token)
	}
	purged := fixture.ServerURL(s.Service, "com.example/mirrored", "/versions/latest")
	apiclient.Call(t, "GET", purged, nil).WantStatus(t, http.StatusNotFound)
}

// TestProviderTest tests a provider that responds, and one that does not.
func TestProviderTest(t *testing.T) {
	s := openSite(t, "PUBLIC_URL=https://tools.example.com")
	issuer := oidcissuer.StartProvider(t)
	body := object{"issuer": issuer.URL, "clientId": "tollgate", "clientSecret": secret,
		"networks": []string{"127.0.0.0/8", "::1/128"}}
	a := s.want(t, 201, "PUT", "/providers/acme", body)
	if strings.Contains(string(a.Body), secret) {
		t.Errorf("the secret is shown: %s", a.Body)
	}
	s.want(t, 200, "POST", "/providers/acme/test", nil)
	body["networks"] = []string{}
	s.want(t, 200, "PUT", "/providers/acme", body)
	s.want(t, 200, "POST", "/providers/acme/test", nil)
	s.want(t, 404, "POST", "/providers/none/test", nil)
	s.wantWrong(t, "name", "PUT", "/providers/Acme", body)
	s.wantWrong(t, "clientSecret", "PUT", "/providers/acme", with(body, object{"clientSecret": ""}))
	hasSecret := func(changed object) bool {
		var got struct{ HasSecret bool }
		s.want(t, 200, "PUT", "/providers/acme", with(body, changed)).Decode(t, &got)
		return got.HasSecret
	}
	elsewhere := oidcissuer.StartProvider(t).URL
	if !hasSecret(object{"clientSecret": nil}) || hasSecret(object{"clientSecret": nil, "issuer": elsewhere}) ||
		!hasSecret(nil) || hasSecret(object{"clientSecret": nil, "clientId": "other"}) {
		t.Error("the secret is for the issuer and the client for which it was given, and for no other")
	}
	hasSecret(nil)
	s.want(t, 200, "PUT", "/providers/acme", fmt.Sprintf(`{"issuer":%q,"clientId":"tollgate","clientSecret":null}`,
		issuer.URL))
}

// TestReviews decides several reviews at once: those of others, an own one, one that is decided,
// and one that does not exist.
func TestReviews(t *testing.T) {
	s := openSite(t, "REGISTRY_REVIEW=on")
	s.e.WantAuditEvents(t)
	olga := s.e.NewWriter(t, s.Service, "boss@example.com", "operate *", "review "+everyName, "publish "+everyName)
	s.olga = olga
	ada := s.e.NewWriter(t, s.Service, "ada@example.com", "publish *")
	submit := func(by *fixture.Person, name string) string {
		t.Helper()
		var got struct {
			Meta struct {
				Review struct{ ID string } `json:"dev.tollgate/review"`
			} `json:"_meta"`
		}
		by.PostJSON(t, s.Service, "/v0.1/publish", fixture.NewServerDocument(name, "1.0.0")).WantStatus(t,
			200).Decode(t, &got)
		return got.Meta.Review.ID
	}
	decide := func(verb string, body object, want ...string) {
		t.Helper()
		var got struct {
			Results []struct{ Outcome, Error string }
		}
		s.want(t, 200, "POST", "/reviews/"+verb, body).Decode(t, &got)
		var outcomes []string
		for _, r := range got.Results {
			outcomes = append(outcomes, strings.TrimSpace(r.Outcome+" "+r.Error))
		}
		if fmt.Sprint(outcomes) != fmt.Sprint(want) {
			t.Errorf("the outcomes are %v, want %v", outcomes, want)
		}
	}
	first, own, foreign := submit(ada, "com.example/r1"), submit(olga, "com.example/r2"), submit(ada, "org.example/r3")
	decide("approve", object{"ids": []string{strings.ToUpper(first), own, foreign, unknownID, "no id", first}},
		"approved",
		"refused access_denied", "refused access_denied", "refused resource_not_found", "refused resource_not_found",
		"refused conflict")
	decide("reject", object{"ids": []string{submit(ada, "com.example/r4")}, "comment": "it lies"}, "rejected")
	s.play(t, "reviews", "{id}", first)
	s.do(t, "POST", "/reviews/approve", object{"ids": slices.Repeat([]string{unknownID}, 100)}, s.olga.Bearer()...).WantStatus(t, 200)
	s.wantWrong(t, "ids", "POST", "/reviews/approve", object{"ids": make([]string, 101)})
	long := object{"ids": []string{first}, "comment": strings.Repeat("x", 10_000)}
	s.wantWrong(t, "comment", "POST", "/reviews/approve", long)
}

// TestMethods replaces the listing of API methods.
func TestMethods(t *testing.T) {
	s := openSite(t)
	s.e.WantAuditEvents(t)
	before := s.read(t, "/methods").WantStatus(t, 200)
	const method = `{"method_id":7,"path":"/api/usage.{format}","service_id":3,"service_name":"usage","parameters":["format"]}`
	const list = `{"methods":[` + method + `]}`
	s.want(t, 412, "PUT", "/methods", list, "If-Match", `"0"`)
	tag := before.Header.Get("ETag")
	s.want(t, 200, "PUT", "/methods", list, "If-Match", tag)
	s.want(t, 412, "PUT", "/methods", list, "If-Match", tag)
	s.play(t, "methods", "{method}", method)
	s.do(t, "PUT", "/methods", string(before.Body), s.olga.Bearer()...).WantStatus(t, 200)
}

// TestViewTokens makes and removes tokens of a view.
func TestViewTokens(t *testing.T) {
	s := openSite(t)
	s.e.WantAuditEvents(t)
	const path = "/views/data/tokens"
	s.want(t, 201, "PUT", "/views/data", object{"access": "token"})
	for _, name := range []string{"ci", "cd"} {
		s.keep(t, text(decode(t, s.want(t, 201, "POST", path, object{"name": name})), "token"))
	}
	first := decode(t, s.want(t, 200, "GET", path+"?limit=1", nil))
	s.want(t, 200, "GET", path+"?cursor="+text(first["metadata"].(object), "nextCursor"), nil)
	s.play(t, "view tokens", "{path}", path)
}

// TestHolders checks who may hold a grant, and who may own a policy.
func TestHolders(t *testing.T) {
	s := openSite(t)
	s.e.WantAuditEvents(t)
	_, eve := fixture.ReadSession(t, s.Service, s.eve)
	s.play(t, "holders", "{eve}", eve, "{EVE}", strings.ToUpper(eve))
	if a := s.read(t, "/grants"); strings.Contains(string(a.Body), `"service"`) {
		t.Errorf("a removed service account holds a grant: %s", a.Body)
	}
}

// TestExplain asks why calls are allowed or denied.
func TestExplain(t *testing.T) {
	s := openSite(t)
	pat := s.e.NewWriter(t, s.Service, "pat@example.com", "publish "+everyName)
	pat.PostJSON(t, s.Service, "/v0.1/publish", fixture.NewServerDocument("com.example/explained",
		"1.0.0")).WantStatus(t, 200)
	s.want(t, 201, "PUT", "/access-rules/pat", object{
		"order": 1, "effect": "allow", "subjects": []string{"person:pat@example.com"}, "servers": []string{everyName},
		"tools": []string{"read_*"},
	})
	const subject, server = "person:pat@example.com", "com.example/explained"
	question := object{"subject": subject, "server": server, "tool": "read_x"}
	await.Until(t, "the server and the rule are known", func() bool {
		a := s.do(t, "POST", "/access/explain", question, s.olga.Bearer()...)
		return text(decode(t, a), "reason") == "rule"
	})
	s.play(t, "explain", "{server}", server, "{pat}", subject)
}
