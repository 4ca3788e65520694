package docs

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/must"
)

// TestChangelog checks that the versions of CHANGELOG.md have a date and are sorted, the newest
// first, that the Helm chart installs the newest, and that no entry is there twice: merges of branches
// keep the lines of both.
func TestChangelog(t *testing.T) {
	text, err := os.ReadFile("../../CHANGELOG.md")
	must.Succeed(t, err)
	chart, err := os.ReadFile("../../deploy/helm/tollgate/Chart.yaml")
	must.Succeed(t, err)
	heading := regexp.MustCompile(`^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d{2}-\d{2})$`)
	section, date, seen := "", "9999", map[string]bool{}
	for line := range strings.SplitSeq(string(text), "\n") {
		switch {
		case strings.HasPrefix(line, "## "):
			section = line
			m := heading.FindStringSubmatch(line)
			if m == nil && line != "## [Unreleased]" {
				t.Errorf("%q must be ## [MAJOR.MINOR.PATCH] - DATE", line)
			}
			if m != nil {
				if date == "9999" && !strings.Contains(string(chart), "appVersion: "+m[1]+"\n") {
					t.Errorf("the Helm chart does not install %s", m[1])
				}
				if m[2] > date {
					t.Errorf("%s is newer than the version before it in the file", line)
				}
				date = m[2]
			}
		case strings.HasPrefix(line, "### "):
			if line = section + line; seen[line] {
				t.Errorf("%s stands twice", line)
			}
			seen[line] = true
		case strings.HasPrefix(line, "- "):
			if seen[line] {
				t.Errorf("the entry %q stands twice", line)
			}
			seen[line] = true
		}
	}
}
