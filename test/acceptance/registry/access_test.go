package registry

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// checkOrderOfChecks sends writes with several errors each. The response must report the error that
// comes first in the documented order.
func checkOrderOfChecks(t *testing.T, r *registry) {
	name := "com.example.checks/server"
	r.publish(t, name, "1.0.0")
	stranger := r.NewWriter(t, r.s, "stranger@example.com")
	low := r.NewPerson(t, "low@example.com", "publish *", "edit *")
	low.Login(t, r.s)
	broken := map[string]any{"name": name, "version": "1.0.0"}
	large := strings.Repeat("[", 1<<20+1)
	type sender struct {
		who    string
		header []string
	}
	nobody, forged := sender{"nobody", nil}, sender{"forged", []string{"Authorization", "Bearer a.b.c"}}
	basic := sender{"basic", []string{"Authorization", "Basic " + r.writer.AccessToken}}
	ungranted, untrusted := sender{"ungranted", stranger.Bearer()}, sender{"untrusted", low.Bearer()}
	writer := sender{"writer", r.writer.Bearer()}
	for _, c := range []struct {
		method, path string
		by           sender
		body         any
		status       int
	}{
		{"POST", "/publish", nobody, large, 413},
		{"PUT", fixture.ServerPath(name, "1.0.0"), nobody, large, 413},
		{"PATCH", fixture.ServerPath(name) + "/status", nobody, large, 413},
		{"POST", "/publish", nobody, "{", 401},
		{"POST", "/publish", forged, "{", 401},
		{"POST", "/publish", basic, "{", 401},
		{"PUT", fixture.ServerPath(name, "9.9.9"), nobody, "{", 401},
		{"DELETE", fixture.ServerPath(name, "9.9.9"), nobody, nil, 401},
		{"PATCH", fixture.ServerPath(name, "9.9.9") + "/status", nobody, "{", 401},
		{"PATCH", fixture.ServerPath("com.example.checks/none") + "/status", forged, "{", 401},
		{"POST", "/publish", ungranted, "{", 400},
		{"PUT", fixture.ServerPath(name, "1.0.0"), ungranted, "[]", 400},
		{"PATCH", fixture.ServerPath(name, "1.0.0") + "/status", ungranted, "[]", 400},
		{"PATCH", fixture.ServerPath(name) + "/status", untrusted, "null", 400},
		{"POST", "/publish", untrusted, "7", 400},
		{"POST", "/publish", ungranted, broken, 403},
		{"POST", "/publish", untrusted, broken, 403},
		{"PUT", fixture.ServerPath(name, "1.0.0"), ungranted, fixture.NewServerDocument(name, "2.0.0"), 403},
		{"PUT", fixture.ServerPath(name, "9.9.9"), untrusted, broken, 403},
		{"DELETE", fixture.ServerPath(name, "9.9.9"), ungranted, nil, 403},
		{"DELETE", fixture.ServerPath(name, "9.9.9"), untrusted, nil, 403},
		{"PATCH", fixture.ServerPath(name, "9.9.9") + "/status", ungranted, `{"status":"none"}`, 403},
		{"PATCH", fixture.ServerPath(name) + "/status", untrusted, `{"status":"none"}`, 403},
		{"PATCH", fixture.ServerPath(name, "9.9.9") + "/status", writer, `{"status":"none"}`, 400},
		{"PATCH", fixture.ServerPath("com.example.checks/none") + "/status", writer, `{"status":"none"}`, 400},
		{"PATCH", fixture.ServerPath(name, "9.9.9") + "/status", writer, `{"status":"active"}`, 404},
		{"PATCH", fixture.ServerPath(name, "1.0.0") + "/status", writer, `{"status":"active"}`, 400},
		{"POST", "/publish", writer, broken, 422},
		{"POST", "/publish", writer, fixture.NewServerDocument(name, "1.0.0"), 409},
	} {
		a := apiclient.Call(t, c.method, r.s.API+"/v0.1"+c.path, c.body, c.by.header...)
		if a.Status != c.status {
			t.Errorf("%s %s by %s is %d, want %d: %s", c.method, c.path, c.by.who, a.Status, c.status, a.Body)
			continue
		}
		apiclient.WantRegistryError(t, a)
		challenge := a.Header.Get("WWW-Authenticate")
		switch {
		case a.Status == 401 && !strings.HasPrefix(challenge, "Bearer"):
			t.Errorf("%s %s by %s: 401 with the challenge %q", c.method, c.path, c.by.who, challenge)
		case a.Status == 403 &&
			strings.Contains(challenge, "insufficient_user_authentication") != (c.by.who == "untrusted"):
			t.Errorf("%s %s by %s: 403 with the challenge %q", c.method, c.path, c.by.who, challenge)
		}
	}
	typed := apiclient.Call(t, "POST", r.s.API+"/v0.1/publish", "a", "Content-Type", "text/plain")
	apiclient.WantRegistryError(t, typed.WantStatus(t, http.StatusUnsupportedMediaType))
}

// checkGrants gives and takes grants. Each change must apply from the next request on, to the
// actions of the grant only.
func checkGrants(t *testing.T, r *registry) {
	name := "com.example.grants/server"
	r.publish(t, name, "1.0.0", "2.0.0")
	p := r.NewWriter(t, r.s, "grantee@example.com")
	grant := func(verb, action string) {
		r.RunCommand(t, "", "grant", verb, "--email", p.Email, "--action", action, "--resource", "com.example.grants/*")
	}
	next := 3
	may := func(held ...string) {
		t.Helper()
		version := fmt.Sprintf("%d.0.0", next)
		next++
		deprecated := map[bool]string{true: "deprecated", false: "active"}[next%2 == 0]
		for _, c := range []struct {
			method, path string
			body         any
			needs        []string
		}{
			{"POST", "/publish", fixture.NewServerDocument(name, version), []string{"publish"}},
			{"PUT", fixture.ServerPath(name, "1.0.0"), fixture.NewServerDocument(name, "1.0.0"), []string{"edit"}},
			{
				"PATCH", fixture.ServerPath(name, "1.0.0") + "/status", map[string]string{"status": deprecated},
				[]string{"publish", "edit"},
			},
			{
				"PATCH", fixture.ServerPath(name) + "/status", map[string]string{"status": deprecated}, []string{
					"publish", "edit",
				},
			},
			{"DELETE", fixture.ServerPath(name, version), nil, []string{"edit"}},
		} {
			allowed := slices.ContainsFunc(c.needs, func(n string) bool { return slices.Contains(held, n) })
			a := apiclient.Call(t, c.method, r.s.API+"/v0.1"+c.path, c.body, p.Bearer()...)
			if (a.Status == http.StatusForbidden) == allowed {
				t.Errorf("%s %s with %v is %d: %s", c.method, c.path, held, a.Status, a.Body)
			}
			if a.Status == http.StatusForbidden {
				wantFault(t, a, http.StatusForbidden, c.needs[0], "permission")
			}
		}
	}
	may()
	grant("add", "publish")
	may("publish")
	grant("add", "edit")
	may("publish", "edit")
	grant("remove", "publish")
	may("edit")
	grant("remove", "edit")
	may()
	other := fixture.NewServerDocument("com.example.other/server", "1.0.0")
	grant("add", "publish")
	wantFault(t, apiclient.Call(t, "POST", r.s.API+"/v0.1/publish", other, p.Bearer()...), http.StatusForbidden,
		"com.example.other/server")
	if got := r.RunCommand(t, "", "grant", "list", "--output", "json"); !strings.Contains(got, "com.example.grants/*") {
		t.Errorf("grants are %s", got)
	}
}

// checkPatterns checks that a pattern selects the right servers.
func checkPatterns(t *testing.T, r *registry) {
	p := r.NewWriter(t, r.s, "pattern@example.com")
	pattern := []string{"--email", p.Email, "--action", "publish", "--resource"}
	for i, c := range []struct {
		pattern string
		allowed map[string]bool // server names; each gets its own version
	}{
		{"*", map[string]bool{"com.example.patterns/a": true, "org.example.patterns/b": true}},
		{
			"com.example.patterns/*", map[string]bool{
				"com.example.patterns/a": true, "com.example.patternsx/a": false, "Com.example.patterns/a": false,
			},
		},
		{
			"com.example.patt*", map[string]bool{
				"com.example.patterns/a": true, "com.example.patternsx/a": true, "com.example.pat/a": false,
			},
		},
		{
			"com.example.patterns/a", map[string]bool{
				"com.example.patterns/a": true, "com.example.patterns/ab": false, "com.example.patterns/A": false,
			},
		},
		{
			"com.example.patterns/a*", map[string]bool{
				"com.example.patterns/a": true, "com.example.patterns/ab": true, "com.example.patterns/b": false,
			},
		},
	} {
		r.RunCommand(t, "", append([]string{"grant", "add"}, append(pattern, c.pattern)...)...)
		for name, allowed := range c.allowed {
			doc := fixture.NewServerDocument(name, fmt.Sprintf("1.%d.0", i))
			doc["remotes"] = []any{}
			want := map[bool]int{true: http.StatusOK, false: http.StatusForbidden}[allowed]
			if a := apiclient.Call(t, "POST", r.s.API+"/v0.1/publish", doc, p.Bearer()...); a.Status != want {
				t.Errorf("pattern %s, server %s: %d %s", c.pattern, name, a.Status, a.Body)
			}
		}
		r.RunCommand(t, "", append([]string{"grant", "remove"}, append(pattern, c.pattern)...)...)
	}
	for _, wrong := range []string{"", "com.*/a", "**", "com.example/*x", "com.example", "com.example/a b", "a/b/c"} {
		if said := wantCommandFailure(t, r.Environment,
			append([]string{"grant", "add"}, append(pattern, wrong)...)...); !strings.Contains(said, "pattern") {
			t.Errorf("grant of %q says %s", wrong, said)
		}
	}
}

// checkTrust takes one session through the trust levels.
func checkTrust(t *testing.T, r *registry) {
	p := r.NewPerson(t, "trust@example.com", "publish com.example.trust/*", "edit com.example.trust/*")
	p.Login(t, r.s)
	name := "com.example.trust/server"
	try := func(method, path string, body any) apiclient.Response {
		return apiclient.Call(t, method, r.s.API+"/v0.1"+path, body, p.Bearer()...)
	}
	r.publish(t, name, "1.0.0")
	for _, c := range []struct {
		method, path string
		body         any
	}{
		{"POST", "/publish", fixture.NewServerDocument(name, "2.0.0")}, {
			"PUT", fixture.ServerPath(name, "1.0.0"), fixture.NewServerDocument(name, "1.0.0"),
		}, {"DELETE", fixture.ServerPath(name, "1.0.0"), nil},
		{"PATCH", fixture.ServerPath(name, "1.0.0") + "/status", `{"status":"deprecated"}`}, {
			"PATCH", fixture.ServerPath(name) + "/status", `{"status":"deprecated"}`,
		},
	} {
		a := try(c.method, c.path, c.body)
		wantFault(t, a, http.StatusForbidden, "step up")
		challenge := a.Header.Get("WWW-Authenticate")
		for _, part := range []string{"Bearer ", `error="insufficient_user_authentication"`, "acr_values="} {
			if !strings.Contains(challenge, part) {
				t.Errorf("%s %s: challenge %q has no %s", c.method, c.path, challenge, part)
			}
		}
	}
	// The service checks the grant first: a person without a grant is not asked to step up.
	other := try("POST", "/publish", fixture.NewServerDocument("com.example.elsewhere/server", "1.0.0")).WantStatus(t,
		http.StatusForbidden)
	if got := other.Header.Get("WWW-Authenticate"); got != "" {
		t.Errorf("without a grant the challenge is %q", got)
	}
	p.StepUp(t, r.Environment, r.s)
	// the same token is accepted from now on
	decodeRecord(t, try("POST", "/publish", fixture.NewServerDocument(name, "2.0.0")))
	session, _ := fixture.ReadSession(t, r.s, p)
	apiclient.Call(t, "POST", r.s.API+"/auth/logout", map[string]string{"sessionId": session}, p.Bearer()...).
		WantStatus(t, http.StatusOK)
	apiclient.WantRegistryError(t,
		try("POST", "/publish", fixture.NewServerDocument(name, "3.0.0")).WantStatus(t, http.StatusUnauthorized))
}

// TestWriteTrust checks that writes need the trust level that the operator sets.
func TestWriteTrust(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		t.Parallel()
		s := e.Start(t, append(fixture.RegistrySettings(), "REGISTRY_WRITE_TRUST=UNVERIFIED")...)
		p := e.NewPerson(t, "ada@example.com", "publish *")
		p.Login(t, s)
		if p.TrustLevel != "UNVERIFIED" {
			t.Fatalf("trust level of a first login is %s", p.TrustLevel)
		}
		decodeRecord(t,
			apiclient.Call(t, "POST", s.API+"/v0.1/publish", fixture.NewServerDocument("com.example/server", "1.0.0"),
				p.Bearer()...))
	})
}

// checkAudit checks that each write, successful or refused, has an audit event that names the
// person, the change and the reason.
func checkAudit(t *testing.T, r *registry) {
	p := r.NewPerson(t, "audited@example.com", "publish com.example.audit/*", "edit com.example.audit/*")
	p.Login(t, r.s)
	name := "com.example.audit/server"
	try := func(method, path string, body any) apiclient.Response {
		return apiclient.Call(t, method, r.s.API+"/v0.1"+path, body, p.Bearer()...)
	}
	session, user := fixture.ReadSession(t, r.s, p)
	steps := []struct {
		method, path string
		body         any
		status       int
		action       string
		server       string
		version      any
		reason       string // a word of the reason
	}{
		{"POST", "/publish", fixture.NewServerDocument(name, "1.0.0"), 403, "publish", name, "1.0.0", "step up"},
		{"POST", "/publish", fixture.NewServerDocument(name, "1.0.0"), 200, "publish", name, "1.0.0", ""},
		{"POST", "/publish", fixture.NewServerDocument(name, "1.0.0"), 409, "publish", name, "1.0.0", "1.0.0"},
		{
			"POST", "/publish", fixture.NewServerDocument("org.example.audit/no", "1.0.0"), 403, "publish",
			"org.example.audit/no", "1.0.0", "permission",
		},
		{
			"POST", "/publish", map[string]any{"name": name, "version": "2.0.0"}, 422, "publish", name, "2.0.0",
			"description",
		},
		{"POST", "/publish", "{", 400, "publish", "", nil, "JSON"},
		{
			"PUT", fixture.ServerPath(name, "1.0.0"), fixture.NewServerDocument(name, "1.0.0"), 200, "edit",
			name, "1.0.0", "",
		},
		{
			"PUT", fixture.ServerPath(name, "9.0.0"), fixture.NewServerDocument(name, "9.0.0"), 404, "edit", name,
			"9.0.0", "not found",
		},
		{
			"PATCH", fixture.ServerPath(name, "1.0.0") + "/status", `{"status":"deprecated"}`, 200, "status",
			name, "1.0.0", "",
		},
		{
			"PATCH", fixture.ServerPath(name, "1.0.0") + "/status", `{"status":"deprecated"}`, 400, "status", name,
			"1.0.0", "no changes",
		},
		{"PATCH", fixture.ServerPath(name) + "/status", `{"status":"active"}`, 200, "status", name, nil, ""},
		{"DELETE", fixture.ServerPath(name, "1.0.0"), nil, 200, "delete", name, "1.0.0", ""},
		{"DELETE", fixture.ServerPath(name, "1.0.0"), nil, 404, "delete", name, "1.0.0", "not found"},
	}
	for i, s := range steps {
		if i == 1 {
			p.StepUp(t, r.Environment, r.s)
		}
		try(s.method, s.path, s.body).WantStatus(t, s.status)
	}
	var log struct {
		Logs  []fixture.AuditEvent `json:"logs"`
		Total int                  `json:"total"`
	}
	a := apiclient.Call(t, "GET", r.s.API+"/audit-logs?eventType=REGISTRY_CHANGE&limit=100", nil, p.Bearer()...).
		WantStatus(t, http.StatusOK)
	a.Decode(t, &log)
	events := log.Logs
	if len(events) != len(steps) || log.Total != len(steps) {
		t.Fatalf("%d events of %d, want %d: %s", len(events), log.Total, len(steps), a.Body)
	}
	slices.Reverse(events) // newest first
	for i, s := range steps {
		e := events[i]
		reason, refused := e.Details["reason"].(string)
		level := map[bool]string{true: "UNVERIFIED", false: "FULL_TRUST"}[i == 0]
		server, _ := e.Details["serverName"].(string)
		if e.EventType != "REGISTRY_CHANGE" || e.Success != (s.status == 200) || e.Details["action"] != s.action ||
			server != s.server ||
			e.Details["version"] != s.version || refused != (s.reason != "") || !strings.Contains(reason, s.reason) ||
			e.Details["userId"] != user || e.Details["sessionId"] != session || e.Details["trustLevel"] != level {
			t.Errorf("%s %s, %d: event is %+v", s.method, s.path, s.status, e)
		}
	}
}
