package adminapi_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

const stateHead = "apiVersion: tollgate.dev/v1\nkind: State\n"

// apply applies a document in YAML, and returns how many objects were created, updated, deleted and
// left as they are.
func (s *site) apply(t *testing.T, query, text string) string {
	t.Helper()
	var got struct{ Changes []struct{ Change string } }
	a := s.do(t, "POST", "/apply?"+query, text, append(s.olga.Bearer(), "Content-Type", "application/yaml")...)
	a.WantStatus(t, http.StatusOK).Decode(t, &got)
	n := map[string]int{}
	for _, one := range got.Changes {
		n[one.Change]++
	}
	return fmt.Sprint(n["create"], n["update"], n["delete"], n["none"])
}

// wantApplied is apply with the counts.
func (s *site) wantApplied(t *testing.T, counts, query, text string) {
	t.Helper()
	if got := s.apply(t, query, text); got != counts {
		t.Errorf("%s: %s, want %s", query, got, counts)
	}
}

// TestState applies the example of the documentation, adopts what was made by hand, and prunes only
// what the owner manages.
func TestState(t *testing.T) {
	s := openSite(t)
	s.e.WantAuditEvents(t, `"action":"mirror_run"`)
	s.e.NewPerson(t, "grace@example.com")
	text, err := os.ReadFile(filepath.Join(fixture.Root, "docs/examples/state/state.yaml"))
	must.Succeed(t, err)
	example := strings.ReplaceAll(string(text), "{env: HOOK_SECRET}", secret)
	dry := s.want(t, 200, "POST", "/apply?owner=docs&dryRun=true", example, "Content-Type", "application/x-yaml")
	done := s.want(t, 200, "POST", "/apply?owner=docs", example, "Content-Type", "application/yaml; charset=utf-8")
	if string(dry.Body) != string(done.Body) || !strings.Contains(string(done.Body), `"secret":"changed"`) {
		t.Errorf("a dry run answers\n%s\nand the apply\n%s", dry.Body, done.Body)
	}
	s.wantApplied(t, "0 0 0 11", "owner=docs&prune=true", example)
	exported := s.read(t, "/state").WantStatus(t, 200)
	// The operator was given the grant by a command.
	s.wantApplied(t, "0 0 0 12", "owner=fresh&prune=true", string(exported.Body))
	s.want(t, 200, "GET", "/state?owner=other", nil)
	s.want(t, 200, "PUT", "/views/data?force=true", object{"access": "token"})
	s.wantApplied(t, "0 1 0 10", "owner=docs&prune=true", example)
	if strings.Contains(s.seen.String(), secret) {
		t.Error("an answer has the secret of a webhook")
	}
	s.checkOwners(t)
}

// checkOwners adopts what was made by hand, and prunes it. The events of one apply have its id.
func (s *site) checkOwners(t *testing.T) {
	t.Helper()
	_, eve := fixture.ReadSession(t, s.Service, s.eve)
	s.play(t, "made by hand", "{eve}", eve)
	text := stateHead + "grants:\n  - {person: Eve@Example.com, action: edit, resource: com.hand/*}\n" +
		"policies:\n  - {method: dns, domain: hand.example, pattern: example.hand/*, actions: [status]}\n" +
		"views:\n  - {name: hand, access: token}\n"
	conflict := s.want(t, 409, "POST", "/apply?owner=team", text, "Content-Type", "application/yaml")
	if !strings.Contains(string(conflict.Body), "would change the") {
		t.Errorf("without adopt: %s", conflict.Body)
	}
	s.wantApplied(t, "0 3 0 0", "owner=team&adopt=true", text)
	s.wantApplied(t, "0 0 0 0", "owner=team", stateHead)
	s.wantApplied(t, "0 0 3 0", "owner=team&prune=true", stateHead)
	s.wantApplied(t, "0 0 0 0", "owner=team&prune=true", stateHead)
	ids := map[any]int{}
	for _, e := range s.readStream(t, "") {
		if id := e["details"].(object)["applyId"]; id != nil {
			ids[id]++
		}
	}
	if len(ids) != 4 {
		t.Errorf("the events have the ids %v, want those of the four applies that changed something", ids)
	}
}

// TestWrongState applies documents that are wrong. The errors name the place.
func TestWrongState(t *testing.T) {
	s := openSite(t)
	const yaml = "application/yaml"
	for _, c := range []struct {
		contentType, query, body string
		status                   int
		message                  string
	}{
		{yaml, "", stateHead + "views:\n  - name: a\n    hidden: true\n", 400,
			"views[0].hidden is not a known member (line 5, column 5)"},
		{yaml, "", stateHead + "views:\n  - name: a\n    include: [a b]\n", 400, "views[0].include[0] is wrong"},
		{yaml, "", stateHead + "views: []\nviews: []\n", 400,
			"views occurs twice in the same object (line 4, column 1)"},
		{yaml, "", "a: [", 400, "is not YAML"}, {yaml, "", "", 400, "is empty"}, {"application/json", "", "{", 400,
			"is not valid JSON"},
		{yaml, "dryRun=yes", stateHead, 400, "dryRun must be true or false"}, {yaml, "prune=1", stateHead, 400,
			"prune must be true or false"},
		{yaml, "adopt=x", stateHead, 400, "adopt must be true or false"}, {yaml, "owner=A%20B", stateHead, 400,
			"owner must have"},
		{
			yaml, "", stateHead + "webhooks:\n  - {url: 'https://a.example', events: [status], secret: {env: X}}\n",
			400,
			"webhooks[0].secret must be a string: the command",
		},
		{yaml, "", stateHead + "grants:\n  - {person: no@example.com, action: edit, resource: '*'}\n", 422,
			"grants[0].person"},
		{"text/plain", "", stateHead, 415, "content type must be"},
		{yaml, "", strings.Repeat("#", 4<<20) + "\n", 413, "larger than 4194304"},
	} {
		a := s.do(t, "POST", "/apply?"+c.query, c.body, append(s.olga.Bearer(), "Content-Type", c.contentType)...)
		if a.Status != c.status || !strings.Contains(strings.ReplaceAll(string(a.Body), `\"`, `"`), c.message) {
			t.Errorf("%.80s: %d %s, want %d %s", c.body, a.Status, a.Body, c.status, c.message)
		}
	}
	s.wantApplied(t, "0 0 0 0", "", stateHead+"# "+strings.Repeat("x", 4<<20-len(stateHead)-3)+"\n")
	s.wantWrong(t, "owner", "GET", "/state?owner=A", nil)
}

// TestRegisteredState applies clients and resources: a secret is no part of a state, and a flag that is true
// by default stays off.
func TestRegisteredState(t *testing.T) {
	s := openSite(t, "OAUTH=on", "PUBLIC_URL=https://tools.example.com")
	s.e.WantAuditEvents(t)
	const client = "clients:\n  - {clientId: web, name: Web, redirectUris: [https://web.example.com/], method: client_secret_post"
	state := stateHead + client + "}\n  - clientId: bot\n    name: Bot\n    redirectUris: [http://localhost/]\n" +
		"    method: private_key_jwt\n    jwks: {keys: [{kty: OKP, crv: Ed25519, x: AQ, key_ops: [verify], ext: true, n: 1.5, none: }]}\n" +
		"resources:\n  - {name: web, url: https://web.example.com/mcp, servers: [com.example/web], refresh: false}\n"
	s.wantApplied(t, "3 0 0 0", "owner=docs", state)
	made := s.do(t, "PUT", "/clients/web?force=true", object{
		"name": "Web", "redirectUris": []string{"https://web.example.com/"}, "method": "client_secret_post", "newSecret": true,
	}, s.olga.Bearer()...).WantStatus(t, http.StatusOK)
	s.keep(t, text(decode(t, made), "clientSecret"))
	s.wantApplied(t, "0 0 0 3", "owner=docs", state)
	exported := s.read(t, "/state?owner=docs").WantStatus(t, http.StatusOK)
	s.wantApplied(t, "0 0 0 3", "owner=docs", string(exported.Body))
	if !strings.Contains(string(exported.Body), `"refresh":false`) {
		t.Errorf("the state is %s", exported.Body)
	}
	s.wantWrong(t, "clients[0].newSecret", "POST", "/apply", stateHead+client+", newSecret: true}\n", "Content-Type", "application/yaml")
	s.wantWrong(t, "clients[0].jwks", "POST", "/apply", stateHead+client+", jwks: [7]}\n", "Content-Type", "application/yaml")
}
