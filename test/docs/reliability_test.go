package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// heldBy matches a package and a test of it in the table of faults.
var heldBy = regexp.MustCompile("`([a-z0-9/]+)` (Test[A-Za-z0-9]+)")

// TestFaultsHaveTests checks that each fault in docs/reliability.md names tests, and that they
// exist in their packages.
func TestFaultsHaveTests(t *testing.T) {
	page, err := os.ReadFile("../../docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	faults := 0
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| fault |") {
			continue
		}
		faults++
		tests := heldBy.FindAllStringSubmatch(line, -1)
		if len(tests) == 0 {
			t.Errorf("no test is named: %s", line)
		}
		for _, test := range tests {
			if !hasTest(t, test[1], test[2]) {
				t.Errorf("%s has no %s: %s", test[1], test[2], line)
			}
		}
	}
	if faults < 40 {
		t.Errorf("the tables have %d faults", faults)
	}
}

// hasTest reports whether a test file of a folder declares a test.
func hasTest(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../..", folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(content), "\nfunc "+name+"(t *testing.T)") {
			return true
		}
	}
	return false
}
