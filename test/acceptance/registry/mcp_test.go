package registry

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// scenarios are those of the conformance suite that do not need the tools of its own example, for the
// registry and for a view.
var scenarios = map[string][]string{
	"/mcp":                 {"server-initialize", "ping", "tools-list", "resources-list", "dns-rebinding-protection"},
	"/registries/team/mcp": {"server-initialize", "tools-list"},
}

// TestMCPConformance runs the conformance suite of the Model Context Protocol against the registry
// and a view, as MCP servers, and publishes the file that describes one.
func TestMCPConformance(t *testing.T) {
	t.Parallel()
	suite := os.Getenv("TEST_MCP")
	if suite == "" {
		t.Skip("needs the conformance suite: run the test by test/servers/with.sh, or set TEST_MCP to what `make servers` prints")
	}
	e := fixture.NewEnvironment(t, "embedded")
	// The file that describes the server has the version of a built program.
	s := e.StartProcess(t, append(fixture.RegistrySettings(), "MCP=on")...)
	e.RunCommand(t, "", "view", "add", "team", "--include", "com.example/*")
	for place, list := range scenarios {
		c := exec.CommandContext(t.Context(), "node", suite, "server", "--url", s.API+place, "--output-dir", "results")
		c.Dir = t.TempDir()
		said, _ := c.CombinedOutput() // it fails, because of the other scenarios
		for _, scenario := range list {
			found, err := filepath.Glob(filepath.Join(c.Dir, "results", "server-"+scenario+"-2*", "checks.json"))
			if err != nil || len(found) != 1 {
				t.Fatalf("%s of %s: %d results, error %v\n%s", scenario, place, len(found), err, said)
			}
			checks, err := os.ReadFile(found[0])
			if text := string(checks); err != nil || !strings.Contains(text, `"status": "SUCCESS"`) ||
				strings.Contains(text, `"status": "FAILURE"`) || strings.Contains(text, `"status": "WARNING"`) {
				t.Errorf("%s of %s: %v\n%s", scenario, place, err, text)
			}
		}
	}
	response, err := http.Get(s.API + "/registries/team/mcp/server.json")
	must.Succeed(t, err)
	defer response.Body.Close()
	file, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("the file: %v %s", err, file)
	}
	a := apiclient.Call(t, "POST", s.API+"/v0.1/validate", file).WantStatus(t, http.StatusOK)
	if !strings.Contains(string(a.Body), `"valid":true`) {
		t.Errorf("the file that describes the MCP server: %s", a.Body)
	}
}
