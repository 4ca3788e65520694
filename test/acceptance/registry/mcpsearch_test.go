package registry

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestMCPSearch finds servers by a word of their title or description only, the name that is the word first, in the registry
// and in a view.
func TestMCPSearch(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t, append(fixture.RegistrySettings(), "MCP=on")...)
		e.RunCommand(t, "", "view", "add", "team", "--include", "com.example/*")
		ada := e.NewPerson(t, "ada@example.com", "publish *")
		ada.Login(t, s)
		ada.StepUp(t, e, s)
		for name, texts := range map[string][2]string{
			"com.example/crm": {"Relations", "Knows all customers."}, "com.example/alpha": {"Customers and more", "Notes."},
			"org.example/customers": {"Lists", "People."}, "com.example/other": {"Other", "Nothing."},
		} {
			document := fixture.NewServerDocument(name, "1.0.0")
			document["title"], document["description"] = texts[0], texts[1]
			document["remotes"] = []any{map[string]any{"type": "streamable-http", "url": "https://" + strings.ReplaceAll(name, "/", ".") + "/mcp"}}
			ada.PostJSON(t, s, "/v0.1/publish", document).WantStatus(t, http.StatusOK)
		}
		for place, want := range map[string]string{
			"/mcp": "org.example/customers com.example/alpha com.example/crm", "/registries/team/mcp": "com.example/alpha com.example/crm",
		} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.API+place, strings.NewReader(
				`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_servers","arguments":{"query":"Customers"}}}`))
			must.Succeed(t, err)
			r.Header = http.Header{"Accept": {"application/json, text/event-stream"}, "Content-Type": {"application/json"}}
			response, err := http.DefaultClient.Do(r)
			must.Succeed(t, err)
			body, err := io.ReadAll(response.Body)
			must.Succeed(t, err)
			_ = response.Body.Close() // it was read
			var names []string
			for _, part := range strings.Split(string(body), "name: ")[1:] {
				name, _, _ := strings.Cut(part, `\n`)
				names = append(names, name)
			}
			if got := strings.Join(names, " "); got != want {
				t.Errorf("%s finds %s, want %s: %.300s", place, got, want, body)
			}
		}
	})
}
