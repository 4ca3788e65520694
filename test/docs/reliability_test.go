package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/tollgate-dev/tollgate/test/must"
)

// heldBy matches a package and tests of it: in the table of faults, in the rules of the contract and elsewhere.
var heldBy = regexp.MustCompile("`((?:adapters|cmd|core|plugins|ports|test|wiring)[a-z0-9/]*)`:? (Test\\w+(?:,\\s+Test\\w+)*)")

// TestFaultsHaveTests checks that each fault in docs/reliability.md names tests, or why it is not mended.
func TestFaultsHaveTests(t *testing.T) {
	page, err := os.ReadFile("../../docs/reliability.md")
	must.Succeed(t, err)
	faults := 0
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| fault |") {
			continue
		}
		faults++
		if !heldBy.MatchString(line) && !strings.Contains(line, "| refused: ") {
			t.Errorf("no test is named: %s", line)
		}
	}
	if faults < 40 {
		t.Errorf("the tables have %d faults", faults)
	}
}

// TestNamedTestsExist checks that the tests that pages name are in the packages that they name.
func TestNamedTestsExist(t *testing.T) {
	named := 0
	for page, text := range readPages(t) {
		for _, found := range heldBy.FindAllStringSubmatch(text, -1) {
			for name := range strings.FieldsFuncSeq(found[2], func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
				if named++; !hasTest(t, found[1], name) {
					t.Errorf("%s: %s has no %s", page, found[1], name)
				}
			}
		}
	}
	if named < 140 {
		t.Errorf("pages name %d tests", named)
	}
}

// hasTest reports whether a test file of a folder declares a test.
func hasTest(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../..", folder, "*_test.go"))
	must.Succeed(t, err)
	for _, file := range files {
		content, err := os.ReadFile(file)
		must.Succeed(t, err)
		if strings.Contains(string(content), "\nfunc "+name+"(t *testing.T)") {
			return true
		}
	}
	return false
}
