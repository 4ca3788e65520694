package architecture

import (
	"os"
	"strings"
	"testing"
)

// TestEveryFolderIsDocumented checks that docs/architecture.md names every folder of core, ports,
// adapters and plugins.
func TestEveryFolderIsDocumented(t *testing.T) {
	text, err := os.ReadFile(root + "/docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"core", "ports", "adapters", "plugins"} {
		children, err := os.ReadDir(root + "/" + folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, child := range children {
			if child.IsDir() && !strings.Contains(string(text), "`"+child.Name()+"`") && !strings.Contains(string(text), "`"+folder+"/"+child.Name()+"`") {
				t.Errorf("docs/architecture.md does not name %s/%s", folder, child.Name())
			}
		}
	}
}
