package architecture

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/must"
)

// TestEveryFolderIsDocumented checks that docs/architecture.md names every folder of core, ports,
// adapters and plugins.
func TestEveryFolderIsDocumented(t *testing.T) {
	text, err := os.ReadFile(root + "/docs/architecture.md")
	must.Succeed(t, err)
	for _, folder := range []string{"core", "ports", "adapters", "plugins"} {
		children, err := os.ReadDir(root + "/" + folder)
		must.Succeed(t, err)
		for _, child := range children {
			if child.IsDir() && !strings.Contains(string(text), "`"+child.Name()+"`") &&
				!strings.Contains(string(text), "`"+folder+"/"+child.Name()+"`") {
				t.Errorf("docs/architecture.md does not name %s/%s", folder, child.Name())
			}
		}
	}
}

// TestEveryRecordIsListed checks that docs/adr/README.md lists every decision record, and no other.
func TestEveryRecordIsListed(t *testing.T) {
	text, err := os.ReadFile(root + "/docs/adr/README.md")
	must.Succeed(t, err)
	files, err := filepath.Glob(root + "/docs/adr/0*.md")
	must.Succeed(t, err)
	for _, file := range files {
		if !strings.Contains(string(text), "]("+filepath.Base(file)+")") {
			t.Errorf("docs/adr/README.md does not list %s", filepath.Base(file))
		}
	}
	if listed := strings.Count(string(text), ".md)"); listed != len(files) {
		t.Errorf("docs/adr/README.md lists %d records of %d", listed, len(files))
	}
}

// TestHowToAdd checks that the files and folders that docs/how-to-add.md names exist.
func TestHowToAdd(t *testing.T) {
	text, err := os.ReadFile(root + "/docs/how-to-add.md")
	must.Succeed(t, err)
	named := regexp.MustCompile("`([a-z]+/[^`<]+|CHANGELOG.md)`").FindAllStringSubmatch(string(text), -1)
	if len(named) < 50 {
		t.Errorf("docs/how-to-add.md names %d files and folders; is the pattern right?", len(named))
	}
	for _, name := range named {
		if _, err := os.Stat(root + "/" + name[1]); err != nil {
			t.Errorf("docs/how-to-add.md names %s, which is not there", name[1])
		}
	}
}
