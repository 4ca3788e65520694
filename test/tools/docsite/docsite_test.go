package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/tollgate-dev/tollgate/test/must"
)

const root = "../../.."

// renderProject renders the documentation of the project.
func renderProject(t *testing.T) (*site, map[string][]byte) {
	t.Helper()
	s := newSite()
	s.from = root
	must.Succeed(t, s.read())
	files, err := s.render()
	must.Succeed(t, err)
	return s, files
}

// element is an element of a page with its attributes.
type element struct {
	name       string
	attributes map[string]string
}

func elementsOf(t *testing.T, page []byte) (all []element) {
	t.Helper()
	tree, err := html.Parse(bytes.NewReader(page))
	must.Succeed(t, err)
	for n := range tree.Descendants() {
		if n.Type == html.ElementNode {
			e := element{n.Data, map[string]string{}}
			for _, a := range n.Attr {
				e.attributes[a.Key] = a.Val
			}
			all = append(all, e)
		}
	}
	return all
}

// TestSite renders the documentation. Every link of every rendered page must lead to a file of the
// site and to an anchor there, or to a file of the project in its repository.
func TestSite(t *testing.T) {
	s, files := renderProject(t)
	elements, ids := map[string][]element{}, map[string]map[string]bool{}
	for address, content := range files {
		if path.Ext(address) != ".html" {
			continue
		}
		elements[address], ids[address] = elementsOf(t, content), map[string]bool{}
		for _, e := range elements[address] {
			id := e.attributes["id"]
			if ids[address][id] && id != "" {
				t.Errorf("%s has two elements %s", address, id)
			}
			ids[address][id] = true
		}
	}
	for address, list := range elements {
		for _, e := range list {
			for _, name := range []string{"href", "src"} {
				link, linked := e.attributes[name]
				if linked && !leads(s, files, ids, address, link) {
					t.Errorf("%s: %s leads nowhere", address, link)
				}
			}
			if e.name != "a" && strings.Contains(e.attributes["src"]+e.attributes["href"], "//") {
				t.Errorf("%s loads %v from elsewhere", address, e.attributes)
			}
		}
	}
	for _, source := range s.sources() {
		if p := s.pages[source]; p.Title == "" || files[p.Address] == nil {
			t.Errorf("%s has the title %q and is rendered to %s", source, p.Title, p.Address)
		}
	}
	for _, name := range []string{"index.html", "settings.html", "contract/registry.html", "adr/index.html", "project/CONTRIBUTING.html"} {
		if elements[name] == nil {
			t.Errorf("%s is missing", name)
		}
	}
	t.Logf("%d pages, %d other files", len(elements), len(files)-len(elements))
}

// leads reports whether a link in the page at an address leads to something.
func leads(s *site, files map[string][]byte, ids map[string]map[string]bool, address, link string) bool {
	if inRepository, ok := strings.CutPrefix(link, s.repository+"/"); ok {
		_, name, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(inRepository, "blob/"), "tree/"), "/")
		// The index of a folder may be made of its pages.
		name, _, _ = strings.Cut(strings.TrimSuffix(name, index), "#")
		_, err := os.Stat(filepath.Join(root, name))
		return err == nil
	}
	if strings.Contains(link, ":") {
		return true // to another site
	}
	file, fragment, _ := strings.Cut(link, "#")
	target := address
	if file != "" {
		target = path.Join(path.Dir(address), file)
	}
	return files[target] != nil && (fragment == "" || ids[target][fragment])
}

// TestSearchIndex checks that the search has the words of headings, texts, tables and commands.
func TestSearchIndex(t *testing.T) {
	_, files := renderProject(t)
	encoded := bytes.TrimSuffix(bytes.TrimPrefix(files["search-index.js"], []byte("window.searchIndex = ")), []byte(";\n"))
	var all []found
	must.Succeed(t, json.Unmarshal(encoded, &all))
	for words, address := range map[string]string{
		"TRUSTED_PROXIES":              "settings.html#",
		"A reverse proxy in front":     "reverse-proxies.html#a-reverse-proxy-in-front",
		"the database does not answer": "troubleshooting.html#",
		"grant add":                    "commands.html#",
	} {
		if !slices.ContainsFunc(all, func(f found) bool {
			return strings.HasPrefix(f.Address, address) && strings.Contains(f.Heading+"\n"+f.Text, words)
		}) {
			t.Errorf("%q is not found at %s", words, address)
		}
	}
	t.Logf("%d sections, %d bytes", len(all), len(encoded))
}

// writeProject writes a project with an index of readers and the given page.
func writeProject(t *testing.T, page string) *site {
	t.Helper()
	s := newSite()
	s.from, s.to = t.TempDir(), filepath.Join(t.TempDir(), "site")
	for name, text := range map[string]string{
		"README.md": "# P\n", "CONTRIBUTING.md": "# C\n", "CHANGELOG.md": "# L\n", "SECURITY.md": "# S\n", "code/main.go": "package main\n",
		"docs/README.md":  "# Documentation\n\n| I am | do | look up |\n|---|---|---|\n| a **reader** | [read](page.md) | [all](adr) |\n",
		"docs/adr/1-a.md": "# A decision\n", "docs/examples/a.yaml": "a: b\n", "docs/page.md": page,
	} {
		name = filepath.Join(s.from, name)
		must.Succeed(t, os.MkdirAll(filepath.Dir(name), 0o700))
		must.Succeed(t, os.WriteFile(name, []byte(text), 0o600))
	}
	return s
}

// TestLinks checks where each kind of link leads, and that the ones that lead nowhere are named.
func TestLinks(t *testing.T) {
	s := writeProject(t, "# Page\n\n## A `b`, c_d & é\n\n## Twice\n\n<!-- docs: not run, why -->\n\n## Twice\n\n"+
		"[1](README.md) [2](adr) [3](../CONTRIBUTING.md) [4](../code) [5](../code/main.go) [6](examples/a.yaml)\n"+
		"[7](#a-b-c_d--é) [8](#twice-1) [9](https://example.com/) [10](adr/1-a.md#a-decision)\n\n<a id=\"r-1\"></a>**R** [11](#r-1)\n")
	must.Succeed(t, s.run())
	written, err := os.ReadFile(filepath.Join(s.to, "page.html"))
	must.Succeed(t, err)
	_, content, _ := strings.Cut(string(written), "<article>")
	for _, want := range []string{
		`"index.html">1<`, `"adr/index.html">2<`, `"project/CONTRIBUTING.html">3<`, `"https://github.com/tollgate-dev/tollgate/tree/main/code">4<`,
		`"https://github.com/tollgate-dev/tollgate/blob/main/code/main.go">5<`, `"examples/a.yaml">6<`, `"#a-b-c_d--%C3%A9">7<`, `"#twice-1">8<`,
		`"https://example.com/">9<`, `"adr/1-a.html#a-decision">10<`, `"#r-1">11<`, `<h2 id="twice-1">`, `<h2 id="a-b-c_d--é">`,
	} {
		if !strings.Contains(content, want) {
			t.Errorf("the page does not have %s:\n%s", want, content)
		}
	}
	if strings.Contains(content, "<!--") || !strings.Contains(string(written), `<a href="page.html" aria-current="page">Read</a>`) {
		t.Errorf("the page is %s", written)
	}
	if _, err := os.Stat(filepath.Join(s.to, "examples", "a.yaml")); err != nil {
		t.Error(err)
	}
	err = writeProject(t, "# Page\n\n[1](none.md) [2](#none) [3](../../none) [4](adr/1-a.md#none) [5](../none.go)\n").run()
	for _, want := range []string{
		"docs/page.md: the link none.md: there is no such file", "the link #none: the page has no such heading",
		"the link ../../none: it leads out of the project", "the link adr/1-a.md#none: the page has", "the link ../none.go: there is",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
}

// TestWrite checks that a site replaces an earlier one, and that a folder with other files is left
// alone.
func TestWrite(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "site")
	for range 2 {
		s := writeProject(t, "# Page\n")
		s.to = folder
		must.Succeed(t, s.run())
	}
	other := writeProject(t, "# Page\n")
	other.to = other.from
	if err := other.run(); err == nil || !strings.Contains(err.Error(), "-to: the folder") {
		t.Errorf("the error is %v", err)
	}
	if _, err := os.Stat(filepath.Join(other.from, "docs", "page.md")); err != nil {
		t.Error(err)
	}
}
