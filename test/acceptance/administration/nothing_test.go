package administration

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestRegistryByCommands makes a curated registry with five people, a policy, a view with a token, a
// mirror, a webhook and a review, by commands on a machine that knows only the address of the service.
func TestRegistryByCommands(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.Environ = append(e.Environ, fixture.RegistrySettings()...)
		s := e.Start(t, "REGISTRY_REVIEW=on")
		boss := e.NewWriter(t, s, "boss@example.com", "operate *", "review *", "edit *", "publish *")
		ada := e.NewWriter(t, s, "ada@example.com")
		home := t.TempDir()
		as := func(p *fixture.Person) {
			e.Environ = []string{"HOME=" + home, "TOLLGATE_SERVER=" + s.API, "TOLLGATE_TOKEN=" + p.AccessToken}
		}
		as(boss)
		for _, name := range []string{"bea", "cai", "dan", "eli", "fay"} {
			var invited struct{ Invitation struct{ URL string } }
			e.ReadCommand(t, &invited, "user", "add", "--email", name+"@example.com", "--name", name)
			if !strings.Contains(invited.Invitation.URL, "://") {
				t.Errorf("%s got no link but %q", name, invited.Invitation.URL)
			}
			e.RunCommand(t, "", "grant", "add", "--email", name+"@example.com", "--action", "edit", "--resource", "com.example/*")
		}
		e.RunCommand(t, "", "grant", "add", "--email", "ada@example.com", "--action", "publish", "--resource", "com.example/*")
		e.RunCommand(t, "", "publisher", "add", "--method", "dns", "--domain", "example.com", "--pattern", "com.example/*")
		e.RunCommand(t, "", "view", "add", "data", "--include", "com.example/*", "--access", "token")
		token := strings.TrimSpace(e.RunCommand(t, "", "view", "token", "add", "data", "--name", "ci"))
		e.RunCommand(t, "", "mirror", "add", "public", "https://registry.invalid", "--include", "io.example/*")
		var hooks []struct{ Secret string }
		e.ReadCommand(t, &hooks, "webhook", "add", "https://hooks.example.com/t", "--events", "published")
		shown := e.RunCommand(t, "", "webhook", "list", "-o", "json") + e.RunCommand(t, "", "view", "token", "list", "data", "-o", "json")
		if token == "" || hooks[0].Secret == "" || strings.Contains(shown, token) || strings.Contains(shown, hooks[0].Secret) {
			t.Errorf("the token %q and the secret %q must be printed once: %s", token, hooks[0].Secret, shown)
		}

		document, err := json.Marshal(fixture.NewServerDocument("com.example/weather", "1.0.0"))
		must.Succeed(t, err)
		file := filepath.Join(home, "server.json")
		fixture.WriteFile(t, file, string(document))
		as(ada)
		e.RunCommand(t, "", "publish", file)
		as(boss)
		var reviews []struct{ ID, SubmittedBy string }
		e.ReadCommand(t, &reviews, "review", "list")
		if len(reviews) != 1 || reviews[0].SubmittedBy != "ada@example.com" {
			t.Fatalf("the reviews are %+v", reviews)
		}
		if names := e.RunCommand(t, "", "__complete", "review", "approve", ""); !strings.Contains(names, reviews[0].ID) {
			t.Errorf("the completion of a review is %q", names)
		}
		e.RunCommand(t, "", "review", "approve", reviews[0].ID)
		for _, args := range []string{"server list", "server search weather", "server show com.example/weather@1.0.0",
			"server deprecate com.example/weather@1.0.0 --message old", "server delete com.example/weather",
			"server restore com.example/weather", "__complete server show com.exam"} {
			if out := e.RunCommand(t, "", strings.Fields(args)...); !strings.Contains(out, "com.example/weather") {
				t.Errorf("%s: %s", args, out)
			}
		}
		await.Until(t, "the view has the server", func() bool {
			return apiclient.Call(t, "GET", s.API+"/registries/data/v0.1/servers/com.example%2Fweather/versions/latest", nil,
				"Authorization", "Bearer "+token).Status == http.StatusOK
		})
		state := filepath.Join(home, "state.yaml")
		fixture.WriteFile(t, state, e.RunCommand(t, "", "export-state"))
		if out := e.RunCommand(t, "", "apply", "-f", state); slices.Contains(strings.Fields(out), "create") || strings.Contains(out, "update") {
			t.Errorf("to apply what was exported changes %s", out)
		}
		fixture.WriteFile(t, state, "apiVersion: tollgate.dev/v1\nkind: State\nviews: [{name: more}]\n")
		if out := e.RunCommand(t, "", "apply", "-f", state, "--owner", "ops"); !strings.Contains(out, "create") {
			t.Errorf("apply has made nothing: %s", out)
		}
	})
}
