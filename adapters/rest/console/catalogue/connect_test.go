package catalogue

import (
	"os"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/must"
)

// TestProgramsAreAsDocumented checks that the page says what the documentation of clients says: each
// file, and each setting.
func TestProgramsAreAsDocumented(t *testing.T) {
	t.Parallel()
	var snippets []string
	for _, c := range clients {
		snippets = append(snippets, c.file)
	}
	for _, p := range programs {
		if p.File != "" && !strings.Contains(strings.Join(snippets, "\n"), p.File) {
			t.Errorf("%s: no snippet is for %s", p.Name, p.File)
		}
		if p.List == "" {
			continue
		}
		page, err := os.ReadFile("../../../../docs/clients/" + string(p.List) + ".md")
		must.Succeed(t, err)
		wanted := []string{p.Setting}
		for _, place := range p.Places {
			wanted = append(wanted, "| "+place.System+" | `"+place.File+"` |")
		}
		for _, text := range wanted {
			if !strings.Contains(string(page), text) {
				t.Errorf("%s: the documentation does not have %s", p.Name, text)
			}
		}
	}
}
