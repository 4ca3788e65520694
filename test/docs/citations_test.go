package docs

import (
	"go/ast"
	goparser "go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const contractFolder = "docs/contract/"

var (
	// ruleAnchor is where a page of the contract states a rule.
	ruleAnchor = regexp.MustCompile(`<a id="([^"]*)"></a>\*\*([A-Z]-[0-9]+)\.`)
	// ruleNumber is a citation of a rule.
	ruleNumber = regexp.MustCompile(`\b[RALMO]-[0-9]+\b`)
	// pageCited is a citation of a page of the documentation, with a heading or anchor or without.
	pageCited = regexp.MustCompile(`\b(docs/[\w/.-]+\.md)(?:#([\w-]+))?`)
	// outside are citations of texts that are not in the repository.
	outside = []*regexp.Regexp{
		regexp.MustCompile(`(?i)\bdecisions?,? (?:section )?[0-9]+(?:\.[0-9]+)?\b`),
		regexp.MustCompile(`(?i)\b(?:authentication|registry|rate limit) document\b`),
		regexp.MustCompile(`(?i)\brules? [0-9]+\b`),
		regexp.MustCompile(`\b[Ss]ection [A-Z][a-z]+`),
		regexp.MustCompile(`(?i)\btable of the (?:alternative )?cache store\b`),
	}
)

// prefixes returns the pages of the contract by the letter of their rules.
func prefixes() map[string]string {
	return map[string]string{
		"R": contractFolder + "registry.md", "A": contractFolder + "authentication.md", "L": contractFolder + "ratelimit.md",
		"M": contractFolder + "methods.md", "O": contractFolder + "operations.md",
	}
}

// TestCitations checks that the numbers of the contract's rules are unique, that every number that a
// comment or a page cites is that of a rule, that the pages cited in comments exist, and that nothing
// cites a text outside the repository.
func TestCitations(t *testing.T) {
	pages := readPages(t)
	rules := readRules(t, pages)
	for place, text := range readTexts(t) {
		for _, complaint := range citationComplaints(text, pages, rules) {
			t.Errorf("%s: %s", place, complaint)
		}
	}
}

// citationComplaints returns what is wrong with the citations in a text.
func citationComplaints(text string, pages map[string]string, rules map[string]bool) []string {
	var complaints []string
	for _, number := range ruleNumber.FindAllString(text, -1) {
		if !rules[number] {
			complaints = append(complaints, number+" is no rule of "+contractFolder)
		}
	}
	for _, cited := range pageCited.FindAllStringSubmatch(text, -1) {
		page, found := pages[cited[1]]
		switch {
		case !found:
			complaints = append(complaints, cited[1]+" does not exist")
		case cited[2] != "" && !slices.Contains(slugs(page), cited[2]):
			complaints = append(complaints, cited[0]+" has no such heading or anchor")
		}
	}
	for _, form := range outside {
		for _, found := range form.FindAllString(text, -1) {
			complaints = append(complaints, `"`+found+`" cites what is not in the repository; cite a rule of `+contractFolder)
		}
	}
	return complaints
}

// readRules returns the numbers of all rules. Each stands once, on the page of its letter, with its own
// number in lower case as its anchor.
func readRules(t *testing.T, pages map[string]string) map[string]bool {
	t.Helper()
	rules := map[string]bool{}
	for letter, name := range prefixes() {
		found := ruleAnchor.FindAllStringSubmatch(pages[name], -1)
		if len(found) == 0 {
			t.Errorf("%s has no rules", name)
		}
		for _, rule := range found {
			switch anchor, number := rule[1], rule[2]; {
			case anchor != strings.ToLower(number):
				t.Errorf("%s: rule %s has the anchor %q", name, number, anchor)
			case !strings.HasPrefix(number, letter+"-"):
				t.Errorf("%s: rule %s has the letter of another page", name, number)
			case rules[number]:
				t.Errorf("%s: rule %s is there twice", name, number)
			default:
				rules[number] = true
			}
		}
		if anchors := anchor.FindAllString(pages[name], -1); len(anchors) != len(found) {
			t.Errorf("%s has %d anchors and %d rules", name, len(anchors), len(found))
		}
	}
	return rules
}

// readTexts returns the texts of the project that cite, by the place where each begins: the comments of
// Go files, and pages, scripts and other files whole. Lines are joined, so that a citation may cross them.
func readTexts(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"bin", "data", "testdata"}, d.Name())):
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		switch path.Ext(name) {
		case ".go":
			return addComments(texts, name)
		case ".md", ".proto", ".sql", ".yaml", ".yml", ".sh", ".js", ".css", ".html", ".env", ".service":
			text, err := os.ReadFile(filepath.Join(root, name))
			texts[name] = joinLines(string(text))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// addComments adds the comments of a Go file to texts.
func addComments(texts map[string]string, name string) error {
	set := token.NewFileSet()
	file, err := goparser.ParseFile(set, filepath.Join(root, name), nil, goparser.ParseComments|goparser.SkipObjectResolution)
	if err != nil {
		return err
	}
	if ast.IsGenerated(file) {
		return nil
	}
	for _, group := range file.Comments {
		place := set.Position(group.Pos())
		place.Filename = name
		texts[place.String()] = joinLines(group.Text())
	}
	return nil
}

// joinLines joins the lines of a text, without the marks of comments.
func joinLines(text string) string {
	var words []string
	for line := range strings.SplitSeq(text, "\n") {
		words = append(words, strings.Fields(strings.TrimLeft(line, " \t/#-*"))...)
	}
	return strings.Join(words, " ")
}

// TestCitationComplaints checks that a citation that leads nowhere is found, in each of its forms.
func TestCitationComplaints(t *testing.T) {
	pages := map[string]string{"docs/contract/registry.md": "<a id=\"r-1\"></a>**R-1. Paths.**\n\n## Requests and answers"}
	rules := map[string]bool{"R-1": true}
	for text, want := range map[string]int{
		"MaxName is the greatest length (contract R-1).": 0,
		"(contract R-1, R-2)":                            1,
		"contract A-1 to A-3":                            2,
		"see docs/contract/registry.md#r-1":              0,
		"docs/contract/registry.md#requests-and-answers": 0,
		"see docs/contract/registry.md#r-7":              1,
		"see docs/nothing.md":                            1,
		"SHA-256, UTF-8 and RFC 8259, section 4":         0,
		"as decisions 2.3 has it":                        1,
		"(decisions, section 0 and 2.4)":                 1,
		"the rate limit document, section Errors":        2,
		"with and without rule 10 of it":                 1,
		"a decision that nobody asks about":              0,
	} {
		if got := citationComplaints(joinLines(text), pages, rules); len(got) != want {
			t.Errorf("%q: %q, want %d", text, got, want)
		}
	}
	if joined := joinLines("// as decisions\n// 2.3 has it"); joined != "as decisions 2.3 has it" {
		t.Errorf("joined to %q", joined)
	}
}
