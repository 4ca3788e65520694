package docs

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	codeBlock = regexp.MustCompile("(?s)```.*?```")
	link      = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading   = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notInSlug = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
	anchor    = regexp.MustCompile(`<a id="([^"]+)"></a>`)
)

// readPages returns all pages of the project by their paths, without the blocks
// of code.
func readPages(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	tree := os.DirFS(root)
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".md":
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		pages[name] = codeBlock.ReplaceAllString(string(text), "")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

// TestLinks wants every link within the project to lead to a file, and to a
// heading or an anchor where it names one; and every page of docs to be
// reached from the README.
func TestLinks(t *testing.T) {
	pages := readPages(t)
	reached, next := map[string]bool{}, []string{"README.md"}
	for len(next) > 0 {
		name := next[0]
		next = next[1:]
		if reached[name] {
			continue
		}
		reached[name] = true
		for _, target := range follow(t, pages, name) {
			next = append(next, pagesAt(pages, target)...)
		}
	}
	for name := range pages {
		if strings.HasPrefix(name, "docs/") && !reached[name] {
			t.Errorf("no page leads to %s", name)
		}
		if !reached[name] {
			follow(t, pages, name)
		}
	}
}

// follow returns what the links of a page lead to.
func follow(t *testing.T, pages map[string]string, name string) []string {
	t.Helper()
	var targets []string
	for _, found := range link.FindAllStringSubmatch(pages[name], -1) {
		if strings.Contains(found[1], "://") {
			continue
		}
		file, part, _ := strings.Cut(found[1], "#")
		target := name
		if file != "" {
			target = path.Join(path.Dir(name), file)
		}
		if _, err := os.Stat(filepath.Join(root, target)); err != nil {
			t.Errorf("%s links to %s, which is not there", name, found[1])
		}
		if part != "" && !slices.Contains(slugs(pages[target]), part) {
			t.Errorf("%s links to %s, which has no such heading or anchor", name, found[1])
		}
		targets = append(targets, target)
	}
	return targets
}

// pagesAt returns a page, or those in a folder.
func pagesAt(pages map[string]string, target string) []string {
	var list []string
	for name := range pages {
		if name == target || path.Dir(name) == target {
			list = append(list, name)
		}
	}
	return list
}

// slugs returns what the headings and the anchors of a page are linked by.
func slugs(page string) []string {
	var list []string
	for _, h := range heading.FindAllStringSubmatch(page, -1) {
		list = append(list, strings.ReplaceAll(notInSlug.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-"))
	}
	for _, a := range anchor.FindAllStringSubmatch(page, -1) {
		list = append(list, a[1])
	}
	return list
}
