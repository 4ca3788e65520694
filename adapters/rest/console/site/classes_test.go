package site

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/must"
)

var (
	attribute   = regexp.MustCompile(`class="((?:\{\{.*?\}\}|[^"{])*)"`)
	action      = regexp.MustCompile(`\{\{.*?\}\}`)
	declaration = regexp.MustCompile(`(?s)/\*.*?\*/|\{[^{}]*\}`)
	class       = regexp.MustCompile(`\.([a-z][a-z-]*)`)
)

// TestClasses checks that each class of the style sheet is in a template, and each class of a
// template in the style sheet.
func TestClasses(t *testing.T) {
	t.Parallel()
	styled, used := map[string]bool{}, map[string]string{}
	for _, m := range class.FindAllStringSubmatch(declaration.ReplaceAllString(string(styleFile), " "), -1) {
		styled[m[1]] = true
	}
	files, err := filepath.Glob("../*/templates/*.html")
	if err != nil || len(files) < 20 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		must.Succeed(t, err)
		for _, m := range attribute.FindAllStringSubmatch(string(content), -1) {
			for _, name := range strings.Fields(action.ReplaceAllString(m[1], " ")) {
				used[name] = file
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(used)) {
		if !styled[name] {
			t.Errorf("the style sheet does not have the class %s of %s", name, used[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(styled)) {
		if used[name] == "" {
			t.Errorf("no template has the class %s of the style sheet", name)
		}
	}
}
