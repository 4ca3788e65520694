package state

import (
	"fmt"
	"net/http"
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

// TestState applies documents at once and by commands. What the routes do with a document is
// checked in adapters/rest/adminapi.
func TestState(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t)
		e.NewPerson(t, "grace@example.com")
		ada := e.NewWriter(t, s, "ada@example.com", "operate")
		t.Run("at once", func(t *testing.T) { checkAtOnce(t, e, s, ada) })
		t.Run("commands", func(t *testing.T) { checkCommands(t, e) })
	})
}

// checkAtOnce applies different documents at once, on two instances: each is applied whole, and the
// last one stays.
func checkAtOnce(t *testing.T, e *fixture.Environment, s *fixture.Service, ada *fixture.Person) {
	apis := []string{s.API, s.API}
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
			append(ada.Bearer(), "Content-Type", "application/yaml")...)
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
	apiclient.Call(t, "GET", s.API+"/admin/v1/state?owner=at-once", nil, ada.Bearer()...).WantStatus(t, http.StatusOK).
		Decode(t, &state)
	for _, v := range state.Views {
		if v.Include[0] != state.Views[0].Include[0] {
			t.Fatalf("two documents are mixed: %+v", state.Views)
		}
	}
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
	if out := e.RunCommand(t, "", "apply", "-f", folder, "--owner", "folder"); !strings.Contains(out,
		"view     folder                  create") {
		t.Errorf("the output is\n%s", out)
	}
	for _, format := range []string{"yaml", "json"} {
		exported := e.RunCommand(t, "", "export-state", "-o", format)
		if strings.Contains(exported, secret) {
			t.Error("the export has a secret")
		}
		if out := e.RunCommand(t, exported, "apply", "-f", "-"); strings.Contains(out, "update") ||
			strings.Contains(out, "create") {
			t.Errorf("the export applied:\n%s", out)
		}
	}
	fixture.WriteFile(t, filepath.Join(folder, "two.json"),
		`{"apiVersion": "tollgate.dev/v1", "kind": "State", "views": [{"nam": 1}]}`)
	if _, stderr, code := e.TryCommand(t, "", "apply", "-f", folder, "--owner", "folder"); code != 1 ||
		!strings.Contains(stderr, "views[0].nam is not a known member (two.json)") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	fixture.WriteFile(t, filepath.Join(folder, "one.yaml"), "webhooks: [{secret: {env: NOT_SET}}]\n")
	if _, stderr, code := e.TryCommand(t, "", "apply", "-f", folder); code != 1 || !strings.Contains(stderr,
		"NOT_SET") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// TestExampleByCommand applies the example of the documentation as it says.
func TestExampleByCommand(t *testing.T) {
	e := fixture.NewEnvironment(t, "example")
	e.NewPerson(t, "grace@example.com")
	if _, stderr, code := e.TryCommand(t, "", "apply", "-f", example); code != 1 || !strings.Contains(stderr,
		"HOOK_SECRET") {
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
