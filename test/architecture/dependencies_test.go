package architecture

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	requirement  = regexp.MustCompile(`(?m)^(?:require )?\s*([^\s/]+\.[^\s]+) v\S+$`) // an indirect one ends in a comment
	listedModule = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| \\S.* \\|$")
)

// TestDependenciesAreExplained wants each module that go.mod requires directly in docs/dependencies.md, once, with
// a reason, and no others.
func TestDependenciesAreExplained(t *testing.T) {
	required := found(t, root+"/go.mod", requirement)
	listed := found(t, root+"/docs/dependencies.md", listedModule)
	if len(required) < 10 {
		t.Fatalf("go.mod requires %v", required)
	}
	for _, module := range required {
		if !slices.Contains(listed, module) {
			t.Errorf("docs/dependencies.md does not say why %s is there", module)
		}
	}
	for i, module := range listed {
		if !slices.Contains(required, module) {
			t.Errorf("docs/dependencies.md names %s, which go.mod does not require directly", module)
		}
		if slices.Contains(listed[:i], module) {
			t.Errorf("docs/dependencies.md names %s twice", module)
		}
	}
}

func found(t *testing.T, path string, pattern *regexp.Regexp) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, match := range pattern.FindAllStringSubmatch(string(text), -1) {
		all = append(all, strings.TrimSpace(match[1]))
	}
	return all
}
