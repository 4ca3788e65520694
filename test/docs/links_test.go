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

	"github.com/tollgate-dev/tollgate/test/must"
)

var (
	codeBlock = regexp.MustCompile("(?s)```.*?```")
	link      = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading   = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notInSlug = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
	anchor    = regexp.MustCompile(`<a id="([^"]+)"></a>`)
)

// readPages returns the text of every page of the project, without code blocks, by its path.
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
	must.Succeed(t, err)
	return pages
}

// TestLinks checks that every link within the project leads to an existing file and, if it has a
// fragment, to an existing heading or anchor, and that every page in docs can be reached from the
// README.
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
		for _, target := range linkTargets(t, pages, name) {
			next = append(next, pagesAt(pages, target)...)
		}
	}
	for name := range pages {
		if strings.HasPrefix(name, "docs/") && !reached[name] {
			t.Errorf("%s cannot be reached by links from README.md", name)
		}
		if !reached[name] {
			linkTargets(t, pages, name)
		}
	}
}

// TestIndex checks that every page but those of the contract and of design decisions is at most two
// links from the index.
func TestIndex(t *testing.T) {
	pages := readPages(t)
	near, last := map[string]bool{}, []string{"docs/README.md"}
	for range 3 {
		var next []string
		for _, name := range last {
			if !near[name] {
				near[name] = true
				for _, target := range linkTargets(t, pages, name) {
					next = append(next, pagesAt(pages, target)...)
				}
			}
		}
		last = next
	}
	for name := range pages {
		if strings.HasPrefix(name, "docs/") && !near[name] && !strings.HasPrefix(name, "docs/contract/") &&
			!strings.HasPrefix(name, "docs/adr/") {
			t.Errorf("%s is more than two links from docs/README.md", name)
		}
	}
}

// linkTargets returns the paths of the files that a page links to, and reports broken links.
func linkTargets(t *testing.T, pages map[string]string, name string) []string {
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
			t.Errorf("%s links to %s, which does not exist", name, found[1])
		}
		if part != "" && !slices.Contains(linkAnchors(pages[target]), part) {
			t.Errorf("%s links to %s, but the page has no such heading or anchor", name, found[1])
		}
		targets = append(targets, target)
	}
	return targets
}

// pagesAt returns target if it is a page, or the pages in the folder target.
func pagesAt(pages map[string]string, target string) []string {
	var list []string
	for name := range pages {
		if name == target || path.Dir(name) == target {
			list = append(list, name)
		}
	}
	return list
}

// linkAnchors returns the fragments by which a page's headings and anchors can be linked.
func linkAnchors(page string) []string {
	var list []string
	for _, h := range heading.FindAllStringSubmatch(page, -1) {
		list = append(list, strings.ReplaceAll(notInSlug.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-"))
	}
	for _, a := range anchor.FindAllStringSubmatch(page, -1) {
		list = append(list, a[1])
	}
	return list
}
