package operator

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/rest/apidocs"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/webtest"
	"github.com/tollgate-dev/tollgate/test/acceptance/operator/contact"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/kinddocs"
	"github.com/tollgate-dev/tollgate/test/must"
)

// maxKind is how many lines a new kind may cost.
const maxKind = 150

// newKindFiles returns the files of the service with one kind more, contacts, and counts their lines.
func newKindFiles(t *testing.T) (files map[string]string, lines int) {
	t.Helper()
	read := func(path string) string {
		content, err := os.ReadFile(path)
		must.Succeed(t, err)
		return string(content)
	}
	files = map[string]string{}
	add := func(path, content string) {
		files[path] = content
		lines += strings.Count(content, "\n")
	}
	add("core/registry/contact/contact.go", read("contact/contact.go"))
	for _, dialect := range []string{"postgres", "sqlite"} {
		add("adapters/relational/"+dialect+"/migrations/9999_owner_contacts.sql", read("contact/table.sql"))
	}
	change := func(path string, edits ...string) {
		files[path] = read(filepath.Join(fixture.Root, path))
		for i := 0; i < len(edits); i += 2 {
			before, after, found := strings.Cut(files[path], edits[i])
			if !found {
				t.Fatalf("%s does not have %q", path, edits[i])
			}
			files[path] = before + edits[i] + edits[i+1] + after
			lines++
		}
	}
	imported := []string{"import (\n", "\t\"github.com/tollgate-dev/tollgate/core/registry/contact\"\n"}
	change("wiring/wire_gen.go", append(imported,
		"kinds := inprocess.NewKinds(federatingProviders, v2, viewingOperator, operator, delegatingServices, v3, v4, v5, v6, authorizingConfig)\n",
		"\tcontact.Add(kinds, db, runner, trail)\n",
		"kinds := inprocess.NewKinds(federatingProviders, v, viewingOperator, mirroringOperator, delegatingServices, v2, v3, v4, v5, authorizingConfig)\n",
		"\tcontact.Add(kinds, db, runner, trail)\n")...)
	change("cmd/tollgate/operator/operator.go", append(imported,
		"return []*cobra.Command{\n", "\t\tnewKind(p, &contact.Kind, kindTexts{}).newGroup(),\n")...)
	change("adapters/rest/console/site/menu.go",
		`Link{Text: "Registry"},`, ` Link{Text: "Contacts", Path: "owner-contacts"},`)
	return files, lines
}

// TestNewKind adds a kind of objects to the service, which has API, console, commands, state file and
// sentences in the audit log then.
func TestNewKind(t *testing.T) {
	t.Parallel()
	files, lines := newKindFiles(t)
	if lines > maxKind {
		t.Errorf("the kind has %d lines", lines)
	}
	dir := t.TempDir()
	must.Succeed(t, instance.BuildChanged(fixture.Root, dir, fixture.RaceDetector, "cmd/tollgate", files))
	program := filepath.Join(dir, "tollgate")
	e := fixture.NewEnvironment(t, "embedded")
	e.RunProgram(t, program, "", "migrate")
	process, err := instance.Start(program, e.Environ, "serve")
	must.Succeed(t, err)
	defer func() { must.Succeed(t, process.Stop()) }()
	command := func(args ...string) string { return e.RunProgram(t, program, "", args...) }
	want := func(what, text string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("%s does not have %q:\n%s", what, part, text)
			}
		}
	}
	e.RunProgram(t, program, fixture.Password+"\n", "user", "add", "--email", "olga@example.com", "--name", "Olga", "--password-stdin")
	command("grant", "add", "--email", "olga@example.com", "--action", "operate")
	command("owner-contact", "set", "web", "--server", "com.example/*", "--email", "ada@example.com", "--urgent")
	want("the list of the command", command("owner-contact", "list"), "SERVERS", "com.example/*", "ada@example.com")

	b := webtest.New(t, "http://"+process.API)
	b.SignIn("olga@example.com", fixture.Password)
	b.Open("/console/step-up?next=/console/operator", http.StatusOK)
	b.Verify(e, "olga@example.com", http.StatusOK)
	b.Open("/console/operator", http.StatusOK).Follow("Contacts", http.StatusOK).
		WantText("Owner contacts", "Servers", "E-mail address", "com.example/*", "ada@example.com", "Yes")
	b.Follow("web", http.StatusOK).WantFields("servers", "com.example/*", "email", "ada@example.com", "urgent", "true")
	b.Press("Save this owner contact", http.StatusOK, "email", "bob@example.com").WantText("The changes are saved.")
	b.Open("/console/operator/owner-contacts", http.StatusOK).Follow("New owner contact", http.StatusOK)
	b.Press("Add this owner contact", http.StatusUnprocessableEntity, "name", "ops", "servers", "com.example/**", "email", "ops@example.com").
		WantFields("name", "ops", "email", "ops@example.com")
	b.Press("Add this owner contact", http.StatusOK, "servers", "com.example/*").WantText("It is added.", "ops")
	b.Press("Remove the owner contact ops", http.StatusOK).WantText("It is removed.").WantNoText("ops@example.com")

	state := command("export-state")
	want("the state", state, "ownerContacts", "bob@example.com")
	file := filepath.Join(dir, "state.yaml")
	must.Succeed(t, os.WriteFile(file, []byte(strings.ReplaceAll(state, "bob@", "eve@")), 0o600))
	want("the plan", command("apply", "--dry-run", "--adopt", "-f", file), "ownerContact", "web")
	want("what the API shows", command("owner-contact", "show", "web", "--output", "json"), `"servers"`, `"com.example/*"`)
	command("owner-contact", "remove", "web")
	b.Open("/console/operator/log", http.StatusOK).WantText("added the owner contact web", "changed the owner contact web",
		"removed the owner contact web")
	// What make generate writes. That the service serves it is tested elsewhere; with it, a third of the packages of the
	// service would be compiled again.
	described, err := kinddocs.Complete(apidocs.Document(), append(kinddocs.All(), &contact.Kind))
	must.Succeed(t, err)
	want("the description of the API", string(described), "/admin/v1/owner-contacts/{name}", "AdminOwnerContact")
}
