package program

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
)

func TestMethods(t *testing.T) {
	dir := newDatabase(t)
	before := runCommand(t, dir, "", "methods", "list", "-o", "json")
	var listed []map[string]any
	if err := json.Unmarshal([]byte(before.stdout), &listed); err != nil || len(listed) != 35 {
		t.Fatalf("methods list: %d methods, %v", len(listed), err)
	}
	add := []string{
		"methods", "add", "--id", "7", "--path", "/parking/{lot}.{format}", "--service-id", "5", "--service", "parking",
	}
	if r := runCommand(t, dir, "",
		append(add, "--parameter", "lot", "--parameter", "format")...); r.code != cli.ExitOK ||
		!strings.Contains(r.stdout, "/parking/{lot}.{format}  parking  5           lot format") {
		t.Errorf("methods add: %+v", r)
	}
	if r := runCommand(t, dir, "", add...); r.code != cli.ExitFailed || !strings.Contains(r.stderr, "another method") {
		t.Errorf("methods add again: %+v", r)
	}
	if r := runCommand(t, dir, "", "methods", "remove", "7"); r.code != cli.ExitOK {
		t.Errorf("methods remove: %+v", r)
	}
	if r := runCommand(t, dir, "", "methods", "remove", "7"); r.code != cli.ExitFailed ||
		!strings.Contains(r.stderr, "there is no method 7") {
		t.Errorf("methods remove again: %+v", r)
	}
	file := filepath.Join(dir, "openapi.yaml")
	if err := os.WriteFile(file, []byte("openapi: 3.1.0\npaths:\n  /pets: {}\n  /pets/{id}: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := runCommand(t, dir, "", "methods", "import", "--replace", "--first-id", "1", "--service-id", "1",
		"--service", "pets", file); r.code != cli.ExitOK || strings.Count(r.stdout, "pets") != 4 {
		t.Errorf("methods import of an OpenAPI document: %+v", r)
	}
	if r := runCommand(t, dir, before.stdout, "methods", "import", "--replace", "-"); r.code != cli.ExitOK {
		t.Errorf("methods import of the exported list: %+v", r)
	}
	if after := runCommand(t, dir, "", "methods", "list", "-o", "json"); after.stdout != before.stdout {
		t.Errorf("after the import of the exported list, the list is %s", after.stdout)
	}
	checkMethodEvents(t, dir, "add 7", "remove 7", "import 1", "import 2", "remove 1", "remove 2")
}

// checkMethodEvents checks that the audit log contains these changes of methods, made by an
// operator and assigned to no person. It skips the changes of the initial methods.
func checkMethodEvents(t *testing.T, dir string, want ...string) {
	t.Helper()
	var events []struct {
		UserID  string
		Details struct {
			Action, Actor, Path, Service string
			MethodID                     int
		}
	}
	r := runCommand(t, dir, "", "audit", "search", "--type", "METHODS_CHANGE", "--limit", "0", "-o", "json")
	if err := json.Unmarshal([]byte(r.stdout), &events); err != nil {
		t.Fatalf("%+v: %v", r, err)
	}
	var changes []string
	for _, e := range slices.Backward(events) { // newest first
		if e.UserID != "" || e.Details.Actor != "operator" || e.Details.Path == "" || e.Details.Service == "" {
			t.Errorf("unexpected event %+v", e)
		}
		if e.Details.MethodID < 1000 {
			changes = append(changes, e.Details.Action+" "+strconv.Itoa(e.Details.MethodID))
		}
	}
	// the initial methods were removed and added again
	if !slices.Equal(changes, want) || len(events) != len(want)+2*35 {
		t.Errorf("the log contains %v and %d events in all, want %v", changes, len(events), want)
	}
}

func TestWrongMethods(t *testing.T) {
	dir := newDatabase(t)
	add := func(path string) []string {
		return []string{"methods", "add", "--id", "7", "--path", path, "--service-id", "5", "--service", "s"}
	}
	for _, c := range []struct {
		stdin string
		args  []string
		names string
	}{
		{"", add("parking"), "path"},
		{"", add("/a/{b"), "{b"},
		{"", append(add("/a/{b}"), "--parameter", "c"), "parameters"},
		{"", []string{"methods", "add", "--id", "7"}, "path"},
		{"", []string{"methods", "remove", "seven"}, "seven"},
		{"", []string{"methods", "import", dir + "/none"}, dir + "/none"},
		{`{"openapi":"3.1.0","paths":{"/a":{}}}`, []string{"methods", "import", "-"}, "x-method-id"},
		{`[{"method_id":1}]`, []string{"methods", "import", "-"}, "method 1 of the list"},
	} {
		r := runCommand(t, dir, c.stdin, c.args...)
		if r.code != cli.ExitFailed || !strings.Contains(r.stderr, c.names) || strings.Count(r.stderr, "\n") != 1 ||
			r.stdout != "" {
			t.Errorf("%v: %+v, want one sentence that contains %q", c.args, r, c.names)
		}
	}
}
