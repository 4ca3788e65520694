package site

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/must"
)

// TestEveryPage parses the template of each page, which the service does only when the page is first
// shown. Each template is of a page, or a part of some. That the pages are shown, the tests of package
// console check.
func TestEveryPage(t *testing.T) {
	t.Parallel()
	folders, err := filepath.Glob("../*/templates")
	if err != nil || len(folders) < 8 {
		t.Fatal(folders, err)
	}
	for _, folder := range folders {
		code := readAll(t, filepath.Join(filepath.Dir(folder), "*.go"))
		var sources strings.Builder
		for _, text := range code {
			sources.WriteString(text)
		}
		var mains, parts []string
		for file, text := range readAll(t, filepath.Join(folder, "*.html")) {
			name := "templates/" + filepath.Base(file)
			if !strings.Contains(sources.String(), `"`+name+`"`) {
				t.Errorf("no page has the template %s", file)
			}
			if strings.Contains(text, `{{define "main"}}`) {
				mains = append(mains, name)
			} else if name != "templates/layout.html" {
				parts = append(parts, name)
			}
		}
		for _, main := range mains {
			page := NewPage(os.DirFS(filepath.Dir(folder)), append(parts[:len(parts):len(parts)], main)...)
			if page.parse().Lookup("main") == nil {
				t.Errorf("%s of %s shows nothing", main, folder)
			}
		}
	}
}

// readAll returns the contents of the files with a pattern, by name.
func readAll(t *testing.T, pattern string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatal(pattern, err)
	}
	contents := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		must.Succeed(t, err)
		contents[file] = string(text)
	}
	return contents
}
