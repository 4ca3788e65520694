package state

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// example is the file that the documentation explains.
const example = "../../../docs/examples/state"

const secret = "64-random-characters-that-only-the-receiver-knows"

// changes is the answer to an apply.
type changes struct {
	Changes []struct {
		Kind, Key, Change string
		Fields            map[string]any
	}
}

// count returns how many objects were created, updated, deleted and left as they are.
func (c changes) count() string {
	n := map[string]int{}
	for _, one := range c.Changes {
		n[one.Change]++
	}
	return fmt.Sprint(n["create"], n["update"], n["delete"], n["none"])
}

// operator is a person who may operate, with a service.
type operator struct {
	*fixture.Person

	service *fixture.Service
}

func (o *operator) post(t *testing.T, contentType, query, body string) apiclient.Response {
	t.Helper()
	return apiclient.Call(t, "POST", o.service.API+"/admin/v1/apply?"+query, body,
		append(o.Bearer(), "Content-Type", contentType)...)
}

func (o *operator) apply(t *testing.T, query, body string) (c changes) {
	t.Helper()
	o.post(t, "application/yaml", query, body).WantStatus(t, http.StatusOK).Decode(t, &c)
	return c
}

func readExample(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(example, "state.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestState(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t, "at-once")
		s := e.Start(t)
		e.NewPerson(t, "grace@example.com")
		o := &operator{e.NewWriter(t, s, "ada@example.com", "operate"), s}
		t.Run("the example", func(t *testing.T) { checkExample(t, o) })
		t.Run("refusals", func(t *testing.T) { checkRefusals(t, e, o) })
		t.Run("owners", func(t *testing.T) { checkOwners(t, e, o) })
		t.Run("by hand", func(t *testing.T) { checkByHand(t, o) })
		t.Run("at once", func(t *testing.T) { checkAtOnce(t, e, o) })
		t.Run("commands", func(t *testing.T) { checkCommands(t, e) })
	})
}

// checkExample applies the example file of the documentation by the API, and what is exported then.
func checkExample(t *testing.T, o *operator) {
	text := strings.ReplaceAll(readExample(t), "{env: HOOK_SECRET}", secret)
	dry := o.post(t, "application/x-yaml", "owner=docs&dryRun=true", text).WantStatus(t, http.StatusOK)
	done := o.post(t, "application/yaml", "owner=docs", text).WantStatus(t, http.StatusOK)
	if string(dry.Body) != string(done.Body) {
		t.Errorf("a dry run answers\n%s\nand the apply\n%s", dry.Body, done.Body)
	}
	if strings.Contains(string(done.Body), secret) || !strings.Contains(string(done.Body), `"secret":"changed"`) {
		t.Errorf("the secret is not only \"changed\": %s", done.Body)
	}
	if done.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("Cache-Control is %q", done.Header.Get("Cache-Control"))
	}
	if got := o.apply(t, "owner=docs&prune=true", text).count(); got != "0 0 0 11" {
		t.Errorf("the second apply: %s", got)
	}
	exported := apiclient.Call(t, "GET", o.service.API+"/admin/v1/state", nil, o.Bearer()...).WantStatus(t, http.StatusOK)
	if strings.Contains(string(exported.Body), secret) {
		t.Error("the export has a secret")
	}
	// the operator was given the grant by a command
	var c changes
	o.post(t, "application/json", "owner=fresh&prune=true", string(exported.Body)).WantStatus(t, http.StatusOK).Decode(t, &c)
	if got := c.count(); got != "0 0 0 12" {
		t.Errorf("the export applied: %s", got)
	}
	own := apiclient.Call(t, "GET", o.service.API+"/admin/v1/state?owner=other", nil, o.Bearer()...).WantStatus(t, http.StatusOK)
	if strings.Contains(string(own.Body), "name") {
		t.Errorf("the export of another owner: %s", own.Body)
	}
}

// checkRefusals checks the statuses, and that errors name the place.
func checkRefusals(t *testing.T, e *fixture.Environment, o *operator) {
	const head = "apiVersion: tollgate.dev/v1\nkind: State\n"
	const yaml = "application/yaml"
	cases := map[string]struct {
		contentType, query, body string
		status                   int
		code, message            string
	}{
		"an unknown member": {yaml, "", head + "views:\n  - name: a\n    hidden: true\n", 400, "validation_error", "views[0].hidden is not a known member (line 5, column 5)"},
		"a wrong pattern":   {yaml, "", head + "views:\n  - name: a\n    include: [a b]\n", 400, "validation_error", "views[0].include[0] is wrong"},
		"a name twice":      {yaml, "", head + "views: []\nviews: []\n", 400, "validation_error", "views occurs twice in the same object (line 4, column 1)"},
		"no YAML":           {yaml, "", "a: [", 400, "validation_error", "is not YAML"},
		"no JSON":           {"application/json", "", "{", 400, "validation_error", "is not valid JSON"},
		"an empty body":     {yaml, "", "", 400, "validation_error", "is empty"},
		"a wrong flag":      {yaml, "dryRun=yes", head, 400, "validation_error", "dryRun must be true or false"},
		"a wrong owner":     {yaml, "owner=A%20B", head, 400, "validation_error", "owner must have"},
		"a reference":       {yaml, "", head + "webhooks:\n  - {url: 'https://a.example', events: [status], secret: {env: X}}\n", 400, "validation_error", "webhooks[0].secret must be a string: the command"},
		"nobody":            {yaml, "", head + "grants:\n  - {person: no@example.com, action: edit, resource: '*'}\n", 422, "rule_violated", "grants[0].person"},
		"by hand":           {yaml, "", head + "grants: []\nviews:\n  - {name: hand, access: token}\n", 409, "conflict", "views[0] would change the view \"hand\""},
		"another type":      {"text/plain", "", head, 415, "invalid_input", "content type must be"},
		"too large":         {yaml, "", strings.Repeat("#", 4<<20) + "\n", 413, "invalid_input", "larger than 4194304"},
	}
	e.RunCommand(t, "", "view", "add", "hand")
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var got struct{ Error, Message string }
			o.post(t, c.contentType, c.query, c.body).WantStatus(t, c.status).Decode(t, &got)
			if c.status < 413 && got.Error != c.code || c.status == 422 && got.Error != c.code || !strings.Contains(got.Message, c.message) {
				t.Errorf("got %+v, want %s %q", got, c.code, c.message)
			}
		})
	}
	large := head + "# " + strings.Repeat("x", 4<<20-len(head)-3) + "\n"
	if got := o.apply(t, "", large).count(); got != "0 0 0 0" {
		t.Errorf("a body of 4 MiB: %s", got)
	}
	apiclient.Call(t, "POST", o.service.API+"/admin/v1/apply", head, "Content-Type", yaml).WantStatus(t, http.StatusUnauthorized)
	apiclient.Call(t, "GET", o.service.API+"/admin/v1/state", nil).WantStatus(t, http.StatusUnauthorized)
	other := &operator{e.NewWriter(t, o.service, "bo@example.com", "publish *"), o.service}
	other.post(t, yaml, "", head).WantStatus(t, http.StatusForbidden)
	other.post(t, yaml, "", head+"x: y\n").WantStatus(t, http.StatusBadRequest)
	apiclient.Call(t, "GET", o.service.API+"/admin/v1/state", nil, other.Bearer()...).WantStatus(t, http.StatusForbidden)
	apiclient.Call(t, "GET", o.service.API+"/admin/v1/state?owner=A", nil, o.Bearer()...).WantStatus(t, http.StatusBadRequest)
}

// checkOwners adopts what was made by hand, and prunes only what the owner manages.
func checkOwners(t *testing.T, e *fixture.Environment, o *operator) {
	const head = "apiVersion: tollgate.dev/v1\nkind: State\n"
	e.RunCommand(t, "", "grant", "add", "--email", "grace@example.com", "--action", "edit", "--resource", "com.hand/*")
	e.RunCommand(t, "", "publisher", "add", "--method", "dns", "--domain", "hand.example", "--pattern", "example.hand/*")
	text := head + "grants:\n  - {person: Grace@Example.com, action: edit, resource: com.hand/*}\n" +
		"policies:\n  - {method: dns, domain: hand.example, pattern: example.hand/*, actions: [status]}\n" +
		"views:\n  - {name: hand, access: token}\n"
	if got := o.apply(t, "owner=team&adopt=true", text).count(); got != "0 3 0 0" {
		t.Errorf("the adoption: %s", got)
	}
	if got := o.apply(t, "owner=team&prune=true", head).count(); got != "0 0 3 0" {
		t.Errorf("without objects: %s", got)
	}
	if got := o.apply(t, "owner=team&prune=true", head).count(); got != "0 0 0 0" {
		t.Errorf("a second time: %s", got)
	}
	// the events of one apply have its id
	ids := map[string]int{}
	var log []fixture.AuditEvent
	e.ReadCommand(t, &log, "audit", "search", "--limit", "1000")
	for _, event := range log {
		if id, ok := event.Details["applyId"].(string); ok {
			ids[id]++
		}
	}
	if n := len(ids); n < 3 {
		t.Errorf("%d ids of applies are in the events, want those of three at least: %v", n, ids)
	}
}

// checkByHand changes what a file manages by the API.
func checkByHand(t *testing.T, o *operator) {
	path := o.service.API + "/admin/v1/views/data"
	refused := func(method, query string, status int) {
		t.Helper()
		r, err := http.NewRequest(method, path+query, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+o.AccessToken)
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = got.Body.Close() // it is not read
		if got.StatusCode != status {
			t.Errorf("%s %s is %d, want %d", method, query, got.StatusCode, status)
		}
	}
	call := func(method, query string, status int) apiclient.Response {
		t.Helper()
		var body any
		if method == "PUT" {
			body = map[string]any{"access": "token"}
		}
		return apiclient.Call(t, method, path+query, body, o.Bearer()...).WantStatus(t, status)
	}
	refused("PUT", "", http.StatusConflict)
	refused("DELETE", "?force=false", http.StatusConflict)
	refused("DELETE", "?force=1", http.StatusBadRequest)
	var changed struct{ Access, ManagedBy string }
	call("PUT", "?force=true", http.StatusOK).Decode(t, &changed)
	if changed.Access != "token" || changed.ManagedBy != "docs" {
		t.Errorf("after a change by hand: %+v", changed)
	}
	text := strings.ReplaceAll(readExample(t), "{env: HOOK_SECRET}", secret)
	if got := o.apply(t, "owner=docs&prune=true", text).count(); got != "0 1 0 10" {
		t.Errorf("the apply after it: %s", got)
	}
}

// checkAtOnce applies different documents at once, on two instances: each is applied whole, and the
// last one stays.
func checkAtOnce(t *testing.T, e *fixture.Environment, o *operator) {
	apis := []string{o.service.API, o.service.API}
	if e.Shared { // the other instance knows the session
		apis[1] = e.Start(t).API
	}
	const callers, views = 4, 12
	answers := fixture.CallInParallel(t, callers, func(i int) (apiclient.Response, error) {
		text := "apiVersion: tollgate.dev/v1\nkind: State\nviews:\n"
		for v := range views {
			text += fmt.Sprintf("  - {name: at-once-%d, include: [com.example%d/*]}\n", v, i)
		}
		return apiclient.TryCall("POST", apis[i%2]+"/admin/v1/apply?owner=at-once&prune=true", text,
			append(o.Bearer(), "Content-Type", "application/yaml")...)
	})
	created := 0
	for _, a := range answers {
		var c changes
		a.WantStatus(t, http.StatusOK).Decode(t, &c)
		for _, one := range c.Changes {
			if one.Change == "create" {
				created++
			}
		}
	}
	if created != views {
		t.Errorf("%d views were created, want %d: the others are updates", created, views)
	}
	var state struct{ Views []struct{ Include []string } }
	apiclient.Call(t, "GET", o.service.API+"/admin/v1/state?owner=at-once", nil, o.Bearer()...).WantStatus(t, http.StatusOK).
		Decode(t, &state)
	for _, v := range state.Views {
		if v.Include[0] != state.Views[0].Include[0] {
			t.Fatalf("two documents are mixed: %+v", state.Views)
		}
	}
	o.apply(t, "owner=at-once&prune=true", "apiVersion: tollgate.dev/v1\nkind: State\n")
}

// checkCommands applies a folder with references to secrets, and what is exported.
func checkCommands(t *testing.T, e *fixture.Environment) {
	folder := t.TempDir()
	fixture.WriteFile(t, filepath.Join(folder, "one.yaml"),
		"apiVersion: tollgate.dev/v1\nkind: State\nwebhooks:\n  - url: https://folder.example\n    events: [status]\n    secret: {file: "+
			filepath.Join(folder, "secret")+"}\n")
	fixture.WriteFile(t, filepath.Join(folder, "secret"), secret+"\n")
	fixture.WriteFile(t, filepath.Join(folder, "two.json"),
		`{"apiVersion": "tollgate.dev/v1", "kind": "State", "views": [{"name": "folder"}]}`)
	var c changes
	e.ReadCommand(t, &c, "apply", "-f", folder, "--owner", "folder", "--dry-run")
	if got := c.count(); got != "2 0 0 0" {
		t.Errorf("the dry run: %s", got)
	}
	if out := e.RunCommand(t, "", "apply", "-f", folder, "--owner", "folder"); !strings.Contains(out, "view     folder                  create") {
		t.Errorf("the output is\n%s", out)
	}
	for _, format := range []string{"yaml", "json"} {
		exported := e.RunCommand(t, "", "export-state", "-o", format)
		if strings.Contains(exported, secret) {
			t.Error("the export has a secret")
		}
		if out := e.RunCommand(t, exported, "apply", "-f", "-"); strings.Contains(out, "update") || strings.Contains(out, "create") {
			t.Errorf("the export applied:\n%s", out)
		}
	}
	fixture.WriteFile(t, filepath.Join(folder, "two.json"), `{"apiVersion": "tollgate.dev/v1", "kind": "State", "views": [{"nam": 1}]}`)
	if _, stderr, code := e.TryCommand(t, "", "apply", "-f", folder, "--owner", "folder"); code != 1 ||
		!strings.Contains(stderr, "views[0].nam is not a known member (two.json)") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	fixture.WriteFile(t, filepath.Join(folder, "one.yaml"), "webhooks: [{secret: {env: NOT_SET}}]\n")
	if _, stderr, code := e.TryCommand(t, "", "apply", "-f", folder); code != 1 || !strings.Contains(stderr, "NOT_SET") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// TestExampleByCommand applies the example of the documentation as it says.
func TestExampleByCommand(t *testing.T) {
	e := fixture.NewEnvironment(t, "example")
	e.NewPerson(t, "grace@example.com")
	if _, stderr, code := e.TryCommand(t, "", "apply", "-f", example); code != 1 || !strings.Contains(stderr, "HOOK_SECRET") {
		t.Errorf("without the secret: exit code %d, %s", code, stderr)
	}
	e.Environ = append(e.Environ, "HOOK_SECRET="+secret)
	var c changes
	e.ReadCommand(t, &c, "apply", "-f", example, "--prune")
	if got := c.count(); got != "11 0 0 0" {
		t.Errorf("the first apply: %s", got)
	}
	e.ReadCommand(t, &c, "apply", "-f", example, "--prune")
	if got := c.count(); got != "0 0 0 11" {
		t.Errorf("the second apply: %s", got)
	}
}
