package architecture

import (
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/must"
)

// The modules of the repository, by folder, in the order of the sections of docs/dependencies.md.
var modules = []string{".", "plugins/sdk", "test/acceptance", "test/tools"}

var (
	// an indirect one ends in a comment
	requirement  = regexp.MustCompile(`(?m)^(?:require )?\s*([^\s/]+\.[^\s]+) v\S+$`)
	listedModule = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| \\S.* \\|$")
)

// TestDependenciesAreExplained wants each module that a go.mod requires directly in
// docs/dependencies.md, once, with a reason, in the section of the first module that requires it,
// and no others.
func TestDependenciesAreExplained(t *testing.T) {
	page := readFile(t, "docs/dependencies.md")
	sections := strings.Split(page, "\n## ")[1:]
	if len(sections) != len(modules) {
		t.Fatalf("docs/dependencies.md has %d sections, want one for each of %v", len(sections), modules)
	}
	var explained []string
	for i, folder := range modules {
		required := requiredBy(t, folder)
		listed := findAll(sections[i], listedModule)
		for _, module := range required {
			if !slices.Contains(explained, module) && !slices.Contains(listed, module) {
				t.Errorf("the section of %s in docs/dependencies.md does not say why %s is there", folder, module)
			}
		}
		for j, module := range listed {
			if !slices.Contains(required, module) {
				t.Errorf("docs/dependencies.md names %s, which %s/go.mod does not require directly", module, folder)
			}
			if slices.Contains(explained, module) || slices.Contains(listed[:j], module) {
				t.Errorf("docs/dependencies.md names %s twice", module)
			}
		}
		explained = append(explained, listed...)
	}
}

// TestPluginAuthorsInheritLittle keeps the requirements of the SDK few, because the modules of
// plugins inherit them.
func TestPluginAuthorsInheritLittle(t *testing.T) {
	if required := requiredBy(t, "plugins/sdk"); len(required) == 0 || len(required) >= 10 {
		t.Errorf("the SDK requires %d modules directly, want fewer than ten: %v", len(required), required)
	}
}

// TestTheServiceRequiresNoTestLibraries keeps libraries that only tests need out of the go.mod of
// the service, except those of docs/dependencies.md under "In the tests next to the code".
func TestTheServiceRequiresNoTestLibraries(t *testing.T) {
	text := readFile(t, "go.mod")
	for _, library := range []string{
		"github.com/chromedp/", "github.com/compose-spec/", "github.com/creack/pty", "github.com/getkin/",
		"github.com/maxmind/mmdbwriter",
		"github.com/pquerna/otp", "github.com/prometheus/prometheus", "github.com/santhosh-tekuri/", "gonum.org/",
		"gotest.tools/gotestsum", "k8s.io/",
	} {
		if strings.Contains(text, "\t"+library) {
			t.Errorf("go.mod lists %s, which no part of the service needs", library)
		}
	}
}

// TestAllModulesAreKnown wants the go.mod files of the repository to be those of the list.
func TestAllModulesAreKnown(t *testing.T) {
	var found []string
	for _, pattern := range []string{"go.mod", "*/go.mod", "*/*/go.mod", "*/*/*/go.mod"} {
		found = append(found, glob(t, pattern)...)
	}
	for i := range found {
		found[i] = strings.TrimSuffix(strings.TrimSuffix(found[i], "go.mod"), "/")
	}
	found[0] = "."
	if !slices.Equal(found, modules) {
		t.Errorf("the repository has the modules %v, the list %v", found, modules)
	}
}

// requiredBy returns the modules that the go.mod of a folder requires directly, without those of
// this repository.
func requiredBy(t *testing.T, folder string) []string {
	t.Helper()
	required := findAll(readFile(t, folder+"/go.mod"), requirement)
	return slices.DeleteFunc(required, func(m string) bool { return m == module || strings.HasPrefix(m, module+"/") })
}

func findAll(text string, pattern *regexp.Regexp) []string {
	var all []string
	for _, match := range pattern.FindAllStringSubmatch(text, -1) {
		all = append(all, strings.TrimSpace(match[1]))
	}
	return all
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(root + "/" + path)
	must.Succeed(t, err)
	return string(text)
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := fs.Glob(os.DirFS(root), pattern)
	must.Succeed(t, err)
	return found
}
