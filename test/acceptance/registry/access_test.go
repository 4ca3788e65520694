package registry

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// write is a write of a server, and the status for a writer.
type write struct {
	method, path string
	body         any
	needs        []string // one of these grants
	status       int
}

// newWrites returns a write of each kind. The statuses are those of the writes in this order.
func newWrites(name string) []write {
	version := fixture.ServerPath(name, "1.0.0")
	either := []string{"publish", "edit"}
	return []write{
		{"POST", "/publish", fixture.NewServerDocument(name, "1.0.0"), []string{"publish"}, 409},
		{"PUT", version, fixture.NewServerDocument(name, "1.0.0"), []string{"edit"}, 200},
		{"PATCH", version + "/status", map[string]string{"status": "deprecated"}, either, 200},
		{"PATCH", fixture.ServerPath(name) + "/status", map[string]string{"status": "active"}, either, 200},
		{"DELETE", version, nil, []string{"edit"}, 200},
	}
}

// checkWriters sends each write as everybody who may not, and as people with some of the grants. A
// change of the grants and a step-up count from the next request on.
func checkWriters(t *testing.T, r *registry) {
	const name = "com.example.writers/server"
	r.publish(t, name, "1.0.0")
	stranger := r.NewWriter(t, r.s, "stranger@example.com")
	low := r.NewPerson(t, "low@example.com", "publish com.example.writers/*", "edit com.example.writers/*")
	low.Login(t, r.s)
	for _, w := range newWrites(name) {
		for who, c := range map[string]struct {
			header    []string
			status    int
			challenge string
		}{
			"nobody":               {nil, 401, "Bearer"},
			"a forged token":       {[]string{"Authorization", "Bearer a.b.c"}, 401, "Bearer"},
			"another scheme":       {[]string{"Authorization", "Basic " + r.writer.AccessToken}, 401, "Bearer"},
			"a person without":     {stranger.Bearer(), 403, ""},
			"a person below trust": {low.Bearer(), 403, `Bearer error="insufficient_user_authentication"`},
		} {
			a := apiclient.Call(t, w.method, r.s.API+"/v0.1"+w.path, w.body, c.header...)
			challenge := a.Header.Get("WWW-Authenticate")
			if a.Status != c.status || !strings.HasPrefix(challenge, c.challenge) ||
				c.challenge == "" && challenge != "" {
				t.Errorf("%s %s by %s: %d %s, challenge %q", w.method, w.path, who, a.Status, a.Body, challenge)
			}
			apiclient.WantRegistryError(t, a)
		}
	}
	low.StepUp(t, r.Environment, r.s) // the same token is accepted from now on
	for _, held := range [][]string{{"publish"}, {"edit"}, {}, {"publish", "edit"}} {
		for _, action := range []string{"publish", "edit"} {
			verb := map[bool]string{true: "add", false: "remove"}[slices.Contains(held, action)]
			r.TryCommand(t, "", "grant", verb, "--email", low.Email, "--action", action, // it may have it already
				"--resource", "com.example.writers/*")
		}
		for _, w := range newWrites(name) {
			allowed := slices.ContainsFunc(w.needs, func(n string) bool { return slices.Contains(held, n) })
			a := apiclient.Call(t, w.method, r.s.API+"/v0.1"+w.path, w.body, low.Bearer()...)
			if !allowed {
				wantFault(t, a, http.StatusForbidden, w.needs[0], "permission")
			} else if a.Status != w.status {
				t.Errorf("%s %s with %v is %d: %s", w.method, w.path, held, a.Status, a.Body)
			}
		}
		r.send(t, "PATCH", fixture.ServerPath(name)+"/status", `{"status":"active"}`) // as before
	}
	session, _ := fixture.ReadSession(t, r.s, low)
	low.PostJSON(t, r.s, "/auth/logout", map[string]string{"sessionId": session}).WantStatus(t, http.StatusOK)
	apiclient.WantRegistryError(t, low.PostJSON(t, r.s, "/v0.1/publish", fixture.NewServerDocument(name, "3.0.0")).
		WantStatus(t, http.StatusUnauthorized))
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
		decodeRecord(t, p.PostJSON(t, s, "/v0.1/publish", fixture.NewServerDocument("com.example/server", "1.0.0")))
	})
}

// checkAudit checks that each write, successful or refused, has an audit event that names the
// person, the change and the reason.
func checkAudit(t *testing.T, r *registry) {
	p := r.NewPerson(t, "audited@example.com", "publish com.example.audit/*", "edit com.example.audit/*")
	p.Login(t, r.s)
	const name = "com.example.audit/server"
	first, version := fixture.NewServerDocument(name, "1.0.0"), fixture.ServerPath(name, "1.0.0")
	session, user := fixture.ReadSession(t, r.s, p)
	broken := object{"name": name, "version": "2.0.0"}
	steps := []struct {
		method, path string
		body         any
		status       int
		action       string
		server       string
		version      any
		reason       string // a word of the reason
	}{
		{"POST", "/publish", first, 403, "publish", name, "1.0.0", "step up"},
		{"POST", "/publish", first, 200, "publish", name, "1.0.0", ""},
		{"POST", "/publish", broken, 422, "publish", name, "2.0.0", "description"},
		{"POST", "/publish", "{", 400, "publish", "", nil, "JSON"},
		{"PUT", version, first, 200, "edit", name, "1.0.0", ""},
		{"PATCH", version + "/status", `{"status":"deprecated"}`, 200, "status", name, "1.0.0", ""},
		{"PATCH", version + "/status", `{"status":"deprecated"}`, 400, "status", name, "1.0.0", "no changes"},
		{"PATCH", fixture.ServerPath(name) + "/status", `{"status":"active"}`, 200, "status", name, nil, ""},
		{"DELETE", version, nil, 200, "delete", name, "1.0.0", ""},
		{"DELETE", version, nil, 404, "delete", name, "1.0.0", "not found"},
	}
	for i, s := range steps {
		if i == 1 {
			p.StepUp(t, r.Environment, r.s)
		}
		apiclient.Call(t, s.method, r.s.API+"/v0.1"+s.path, s.body, p.Bearer()...).WantStatus(t, s.status)
	}
	log := p.ReadAuditLog(t, r.s, "eventType=REGISTRY_CHANGE&limit=100")
	if len(log.Logs) != len(steps) || log.Total != len(steps) {
		t.Fatalf("%d events of %d, want %d: %+v", len(log.Logs), log.Total, len(steps), log)
	}
	slices.Reverse(log.Logs) // newest first
	for i, s := range steps {
		d := log.Logs[i].Details
		reason, refused := d["reason"].(string)
		level := map[bool]string{true: "UNVERIFIED", false: "FULL_TRUST"}[i == 0]
		server, _ := d["serverName"].(string)
		if log.Logs[i].Success != (s.status == 200) || d["action"] != s.action || server != s.server ||
			d["version"] != s.version || refused != (s.reason != "") || !strings.Contains(reason, s.reason) ||
			d["userId"] != user || d["sessionId"] != session || d["trustLevel"] != level {
			t.Errorf("%s %s, %d: event is %+v", s.method, s.path, s.status, log.Logs[i])
		}
	}
}
