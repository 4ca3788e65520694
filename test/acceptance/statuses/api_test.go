package statuses

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// route is a request that is sent once by each caller, in each variant. "{n}" in the path and in
// the name of a document is replaced by a number of the caller, so that each acts on something of
// its own.
type route struct {
	method, path string
	variants     []variant
	// prepare makes what the request is for, and returns what replaces "{id}" in the path;
	// optional.
	prepare func(s *site, n string) string
}

// variant is one body of a route, with more headers.
type variant struct {
	name   string
	body   func(n string) any // nil for no body
	header []string
}

var none = []variant{{name: "-"}}

// bodies returns a good body and a bad one, and those that no route with a JSON body reads.
func bodies(good, bad any) []variant {
	as := func(body any) func(string) any { return func(string) any { return body } }
	return []variant{
		{"bad field", as(bad), nil}, {"bad JSON", as("{"), nil}, {"no JSON object", as("[1]"), nil}, {
			"no JSON", as("a=b"), []string{"Content-Type", "text/plain"},
		},
		{"good", as(good), nil},
	}
}

// documents returns the bodies with server documents.
func documents(name, version string, headers ...string) []variant {
	all := bodies(nil, map[string]any{"name": namespace + "open", "version": "1.0.0"})
	all[0].body = func(n string) any {
		return map[string]any{
			"name": namespace + strings.ReplaceAll(name, "{n}", n), "version": version, "description": 7,
		}
	}
	all[len(all)-1].body = func(n string) any {
		return fixture.NewServerDocument(namespace+strings.ReplaceAll(name, "{n}", n), version)
	}
	stale := all[len(all)-1]
	stale.name, stale.header = "stale", headers
	return append([]variant{stale}, all...)
}

// publishRoutes are those that may be switched off.
func publishRoutes() []route {
	const servers = "/v0.1/servers/"
	open := url.PathEscape(namespace) + "open-{n}"
	publishOpen := func(s *site, n string) string { s.publish("open-"+n, "1.0.0"); return "" }
	if_ := []string{"If-Match", `"stale"`}
	return []route{
		{"POST", "/v0.1/publish", documents("open-new-{n}", "1.0.0", "If-None-Match", "*"), nil},
		{"POST", "/v0.1/publish", documents("wait-new-{n}", "1.0.0"), nil},
		{
			"POST", "/v0.1/publish",
			bodies(map[string]any{"name": "com.example/other"}, map[string]any{"name": "no name"}), nil,
		},
		{"PUT", servers + open + "/versions/1.0.0", documents("open-{n}", "1.0.0", if_...), publishOpen},
		{"PUT", servers + open + "/versions/9.0.0", documents("open-{n}", "9.0.0"), nil},
		{"PUT", servers + "com.example%2Fother/versions/1.0.0", documents("open-{n}", "9.0.0"), nil},
		{"PUT", servers + "no%20name/versions/1", documents("open-{n}", "9.0.0"), nil},
		{"PUT", servers + "%ff/versions/1.0.0", documents("open-{n}", "9.0.0"), nil},
		{"DELETE", servers + open + "/versions/1.0.0", []variant{{"stale", nil, if_}, {name: "-"}}, nil},
		{"DELETE", servers + open + "/versions/1.0.0", none, nil},
		{"DELETE", servers + "no%20name/versions/1", none, nil},
		{"DELETE", servers + "%ff/versions/1.0.0", none, nil},
		{"PUT", "/v0/servers/" + open + "/versions/1.0.0", documents("open-{n}", "1.0.0"), nil},
	}
}

// registryRoutes are the other routes of the registry.
func registryRoutes() []route {
	const servers, own = "/v0.1/servers/", "/v0.1/x/dev.tollgate/"
	status := url.PathEscape(namespace) + "open-s{n}"
	publishStatus := func(s *site, n string) string { s.publish("open-s"+n, "1.0.0"); return "" }
	statusBodies := append([]variant{
		{
			"stale", func(string) any { return map[string]string{"status": "deprecated"} }, []string{
				"If-Match", `"stale"`,
			},
		},
	},
		bodies(map[string]string{"status": "deprecated"}, map[string]string{"status": "good"})...)
	submit := func(s *site, _ string) string { return s.submit() }
	comment := append(bodies(map[string]string{"comment": "because"}, map[string]any{"comment": 7}), variant{
		name: "again",
	})
	hideOne := func(s *site, n string) string { s.hide("open-h" + n); return "" }
	policy := map[string]any{"method": "dns", "domain": domain, "pattern": namespace + "*"}
	return []route{
		{"GET", "/v0.1/servers", none, nil}, {"GET", "/v0.1/servers?limit=x", none, nil},
		{"GET", servers + status + "/versions/latest", none, nil}, {"GET", "/v0.1/version", none, nil},
		{"POST", "/v0.1/validate", documents("open-{n}", "1.0.0"), nil},
		{"GET", "/registries/closed/v0.1/servers", none, nil}, {
			"GET", "/registries/closed/allowlist/vscode.json", none, nil,
		},
		{"GET", "/registries/closed/t/x/v0.1/servers", none, nil},
		{"PATCH", servers + status + "/versions/1.0.0/status", statusBodies, publishStatus},
		{"PATCH", servers + status + "/versions/9.0.0/status", statusBodies, nil},
		{"PATCH", servers + "%ff/versions/1.0.0/status", statusBodies, nil},
		{"PATCH", servers + status + "/status", statusBodies, publishStatusAgain},
		{"PATCH", servers + "no%20name/status", statusBodies, nil},
		{"PATCH", servers + "%ff/status", statusBodies, nil},
		{"GET", own + "reviews", none, nil}, {"GET", own + "reviews?limit=x", none, nil}, {
			"GET", own + "reviews?state=x", none, nil,
		},
		{"GET", own + "reviews/{id}", none, submit}, {"GET", own + "reviews/" + unknownID, none, nil},
		{"POST", own + "reviews/{id}/approve", comment, submit}, {
			"POST", own + "reviews/" + unknownID + "/approve", comment, nil,
		},
		{"POST", own + "reviews/{id}/reject", append([]variant{{name: "-"}}, comment...), submit},
		{"POST", own + "reviews/" + unknownID + "/reject", comment, nil},
		{"GET", own + "quarantine", none, nil}, {"GET", own + "quarantine?limit=x", none, nil}, {
			"GET", own + "quarantine?cursor=x", none, nil,
		},
		{"POST", own + "quarantine", quarantineBodies(), publishHeld},
		{
			"POST", own + "quarantine",
			bodies(map[string]string{"serverName": "com.example/other", "reason": "x"}, map[string]string{
				"reason": "x",
			}), nil,
		},
		{
			"DELETE", own + "quarantine?serverName=" + url.QueryEscape(namespace) + "open-h{n}", []variant{
				{name: "-"}, {name: "again"},
			}, hideOne,
		},
		{"DELETE", own + "quarantine", none, nil}, {"DELETE", own + "quarantine?serverName=no%20name", none, nil},
		{"DELETE", own + "quarantine?serverName=%ff", none, nil}, {
			"DELETE", own + "quarantine?serverName=com.example%2Fother", none, nil,
		},
		{"GET", own + "publishers", none, nil},
		{
			"POST", own + "publishers",
			bodies(policy, map[string]any{"method": "dns", "domain": "statuses.example", "pattern": "x y"}), nil,
		},
		{
			"POST", own + "publishers",
			bodies(map[string]any{"method": "dns", "domain": "example.com", "pattern": "com.example/*"}, map[string]any{
				"method": 7,
			}), nil,
		},
		{"DELETE", own + "publishers/{id}", []variant{{name: "-"}, {name: "again"}}, addPolicy}, {
			"DELETE", own + "publishers/x", none, nil,
		},
		{
			"POST", "/v0.1/auth/dns",
			bodies(map[string]string{"domain": domain, "timestamp": "2020-01-01T00:00:00Z", "signed_timestamp": "00"},
				map[string]any{"domain": 7}), nil,
		},
		{
			"POST", "/v0.1/auth/github-oidc",
			bodies(map[string]string{"oidc_token": "x"}, map[string]any{"oidc_token": 7}), nil,
		},
	}
}

func publishStatusAgain(s *site, n string) string { s.publish("open-s"+n, "1.1.0"); return "" }

func publishHeld(s *site, n string) string { s.publish("open-q"+n, "1.0.0"); return "" }

func addPolicy(s *site, _ string) string {
	var added struct{ ID string }
	policy := map[string]string{"method": "dns", "domain": domain, "pattern": namespace + "*"}
	s.sam.PostJSON(s.t, s.Service, "/v0.1/x/dev.tollgate/publishers", policy).WantStatus(s.t, http.StatusCreated).
		Decode(s.t, &added)
	return added.ID
}

// quarantineBodies are the bodies to put a server in quarantine.
func quarantineBodies() []variant {
	draft := func(reason string) func(n string) any {
		return func(n string) any {
			return map[string]any{"serverName": namespace + "open-q" + n, "version": nil, "reason": reason}
		}
	}
	all := bodies(nil, map[string]any{"serverName": 7})
	all[len(all)-1].body = draft("it sends mail")
	return append([]variant{{"no reason", draft(""), nil}}, append(all, variant{"again", draft("again"), nil})...)
}

// authRoutes are the routes of authentication, and those of the methods listing.
func authRoutes() []route {
	const unknown = "/" + unknownID
	device := map[string]string{"userAgent": "x"}
	code := map[string]string{"challengeId": unknownID, "otp": "123456"}
	return []route{
		{"GET", "/auth/session", none, nil},
		{"GET", "/auth/identities", none, nil}, {"DELETE", "/auth/identities" + unknown, none, nil},
		{"GET", "/auth/passkeys", none, nil}, {"POST", "/auth/passkeys/register/begin", none, nil},
		{
			"POST", "/auth/passkeys/register/finish",
			bodies(map[string]any{"ceremonyId": "x", "credential": map[string]any{}, "name": "Laptop"}, map[string]any{"name": 7}), nil,
		},
		{
			"POST", "/auth/passkeys/sign-in/begin",
			bodies(map[string]any{"deviceInfo": device}, map[string]any{"deviceInfo": 7}), nil,
		},
		{
			"POST", "/auth/passkeys/sign-in/finish",
			bodies(map[string]any{"ceremonyId": "x", "credential": map[string]any{}}, map[string]any{"ceremonyId": 7}), nil,
		},
		{
			"PATCH", "/auth/passkeys" + unknown,
			bodies(map[string]string{"name": "Laptop"}, map[string]any{"name": 7}), nil,
		},
		{"DELETE", "/auth/passkeys" + unknown, none, nil}, {"DELETE", "/auth/passkeys/x", none, nil},
		{
			"POST", "/auth/logout",
			bodies(map[string]string{"sessionId": unknownID}, map[string]string{"sessionId": "x"}), nil,
		},
		{
			"POST", "/auth/step-up/initiate",
			bodies(map[string]string{"method": "AUTHENTICATOR_APP"}, map[string]string{"method": "x"}), nil,
		},
		{"POST", "/auth/step-up/verify", bodies(code, map[string]string{"challengeId": "x"}), nil},
		{
			"POST", "/auth/step-up/resend",
			bodies(map[string]string{"challengeId": unknownID}, map[string]string{"challengeId": "x"}), nil,
		},
		{"GET", "/devices", none, nil}, {"GET", "/devices?limit=x", none, nil},
		{
			"PUT", "/devices" + unknown + "/trust",
			bodies(map[string]string{"trustStatus": "TRUSTED"}, map[string]string{"trustStatus": "x"}), nil,
		},
		{
			"PUT", "/devices/x/trust",
			bodies(map[string]string{"trustStatus": "TRUSTED"}, map[string]string{"trustStatus": "x"}), nil,
		},
		{
			"PUT", "/devices" + unknown + "/name",
			bodies(map[string]string{"name": "Laptop"}, map[string]any{"name": 7}), nil,
		},
		{"DELETE", "/devices" + unknown, none, nil}, {"DELETE", "/devices/x", none, nil},
		{"GET", "/sessions", none, nil}, {"DELETE", "/sessions" + unknown, none, nil}, {
			"DELETE", "/sessions/x", none, nil,
		},
		{"GET", "/audit-logs", none, nil}, {"GET", "/audit-logs?limit=x", none, nil},
		{
			"POST", "/auth/password",
			bodies(map[string]string{"currentPassword": fixture.Password, "newPassword": "short"}, map[string]any{
				"newPassword": 7,
			}), nil,
		},
		{
			"POST", "/auth/mfa/activate",
			bodies(map[string]string{"mfaCode": "123456"}, map[string]any{"mfaCode": 7}), nil,
		},
		{
			"POST", "/auth/mfa/disable",
			bodies(map[string]string{"mfaCode": "123456"}, map[string]any{"mfaCode": 7}), nil,
		},
		{"POST", "/auth/mfa/enroll", none, nil},
		{
			"POST", "/auth/login",
			bodies(map[string]any{"email": "x@example.com", "password": "wrong", "deviceInfo": device}, map[string]any{
				"email": 7,
			}), nil,
		},
		{
			"POST", "/auth/mfa/verify",
			bodies(map[string]any{"userId": unknownID, "mfaCode": "123456", "deviceInfo": device}, map[string]any{
				"userId": 7,
			}), nil,
		},
		{
			"POST", "/auth/refresh",
			bodies(map[string]string{"refreshToken": "x"}, map[string]any{"refreshToken": 7}), nil,
		},
		{"GET", "/.well-known/jwks.json", none, nil},
		{"GET", "/v2/api/methods.json", none, nil}, {"GET", "/v2/api/methods.xml?callback=x", none, nil},
		{"GET", "/v2/api/methods.json?callback=%20", none, nil}, {"GET", "/v2/none", none, nil},
	}
}

// adminRoutes are the routes of administration.
func adminRoutes() []route {
	const root, id = "/admin/v1/", "/" + unknownID
	stale := []variant{{"stale", nil, []string{"If-Match", `"stale"`}}, {name: "-"}}
	rule := map[string]string{"pattern": namespace + "none", "when": "any"}
	access := map[string]any{
		"order": 1, "effect": "deny", "subjects": []string{"everyone"}, "servers": []string{namespace + "none"},
	}
	hook := map[string]any{"url": "https://example.com/hook", "events": []string{"status"}}
	addRule := func(s *site, _ string) string { return s.adminID("review-rules", rule) }
	addHook := func(s *site, _ string) string { return s.adminID("webhooks", hook) }
	noGrant := map[string]string{"person": unknownID, "action": "edit", "resource": namespace + "x"}
	policy := map[string]string{"method": "dns", "domain": domain, "pattern": namespace + "*"}
	method := map[string]any{"methods": []any{map[string]int{"method_id": 0}}}
	routes := []route{
		{"POST", root + "grants", bodies(noGrant, map[string]string{"action": "x"}), nil},
		{"DELETE", root + "grants" + id, none, nil},
		{"POST", root + "policies", bodies(policy, map[string]any{"method": 7}), nil},
		{"GET", root + "policies" + id, none, nil}, {"DELETE", root + "policies" + id, none, nil},
		{"PUT", root + "views/admin{n}", append(bodies(map[string]string{}, map[string]string{"access": "x"}),
			variant{"stale", func(string) any { return map[string]string{} }, []string{"If-None-Match", "*"}}), nil},
		{"GET", root + "views/admin{n}", none, nil},
		{"POST", root + "views/none/tokens", bodies(map[string]string{"name": "a"}, map[string]string{"name": "A"}), nil},
		{"DELETE", root + "views/admin{n}/tokens/a", none, nil}, {"DELETE", root + "views/admin{n}", stale, nil},
		{"GET", root + "mirrors/none", none, nil},
		{"PUT", root + "mirrors/no%20name", bodies(map[string]string{"url": "https://example.com"}, map[string]int{"url": 7}), nil},
		{"POST", root + "mirrors/none/sync", none, nil}, {"GET", root + "mirrors/none/diff", none, nil},
		{"DELETE", root + "mirrors/none", none, nil},
		{"POST", root + "webhooks", bodies(hook, map[string]int{"url": 7}), nil},
		{"GET", root + "webhooks" + id, none, nil},
		{"PATCH", root + "webhooks/{id}", bodies(map[string]string{}, map[string]int{"url": 7}), addHook},
		{"POST", root + "webhooks" + id + "/redeliver", none, nil}, {"POST", root + "webhooks" + id + "/test", none, nil},
		{"GET", root + "webhooks" + id + "/deliveries", none, nil}, {"DELETE", root + "webhooks/{id}", stale, addHook},
		{"POST", root + "review-rules", bodies(rule, map[string]string{"pattern": "x"}), nil},
		{"DELETE", root + "review-rules/{id}", stale, addRule},
		{"POST", root + "reviews/approve", bodies(map[string]any{"ids": []string{unknownID}}, map[string]int{"ids": 7}), nil},
		{"POST", root + "reviews/reject", bodies(map[string]any{"ids": []string{unknownID}, "comment": "x"},
			map[string]any{"ids": []string{unknownID}}), nil},
		{"PUT", root + "methods", bodies(method, map[string]int{"methods": 7}), nil},
		{"PUT", root + "access-rules/rule{n}", append(bodies(access, map[string]int{"effect": 7}),
			variant{"stale", func(string) any { return access }, []string{"If-None-Match", "*"}}), nil},
		{"GET", root + "access-rules/rule{n}", none, nil}, {"DELETE", root + "access-rules/rule{n}", stale, nil},
		{"POST", root + "access/explain", bodies(map[string]string{"subject": "anyone", "server": namespace + "none"},
			map[string]int{"subject": 7}), nil},
		{"GET", root + "audit?actor=x", none, nil}, {"GET", root + "audit?since=x", none, nil},
		{"GET", root + "overview", none, nil}, {"GET", root + "methods", none, nil},
	}
	for _, list := range []string{"grants", "policies", "views", "mirrors", "webhooks", "review-rules", "access-rules"} {
		routes = append(routes, route{"GET", root + list, none, nil}, route{"GET", root + list + "?limit=x", none, nil})
	}
	return routes
}

// decisionRoutes are the routes for proxies.
func decisionRoutes() []route {
	question := map[string]any{
		"subject": map[string]string{"type": "service", "id": "ci"}, "action": map[string]string{"name": "tools/list"},
		"resource": map[string]string{"type": "mcp_server", "id": namespace + "none"},
	}
	return []route{
		{"GET", "/decide/http", none, nil},
		{"POST", "/access/v1/evaluation", bodies(question, map[string]int{"subject": 7}), nil},
		{"POST", "/access/v1/evaluations", bodies(question, map[string]int{"evaluations": 7}), nil},
		{"GET", "/.well-known/authzen-configuration", none, nil},
	}
}

// callAPI sends all requests to the API and returns a line for each.
func (s *site) callAPI(t *testing.T) []string {
	t.Helper()
	return s.callAll(t, slices.Concat(publishRoutes(), registryRoutes(), authRoutes(), adminRoutes(), decisionRoutes()))
}

func (s *site) callAll(t *testing.T, routes []route) (lines []string) {
	t.Helper()
	for _, r := range routes {
		got := make([]answers, len(r.variants))
		for i, c := range s.callers {
			n, path := fmt.Sprint(i), r.path
			if r.prepare != nil && s.sam != nil {
				path = strings.ReplaceAll(path, "{id}", r.prepare(s, n))
			}
			path = strings.ReplaceAll(path, "{n}", n)
			for j, v := range r.variants {
				var body any
				if v.body != nil {
					body = v.body(n)
				}
				a := apiclient.Call(t, r.method, s.API+path, body,
					append(append([]string{}, c.header...), v.header...)...)
				got[j].request = r.method + " " + r.path + " | " + v.name
				got[j].add(c.name, fmt.Sprintf("%d %s", a.Status, errorOf(a)))
			}
		}
		lines = append(lines, allLines(got)...)
	}
	return lines
}
