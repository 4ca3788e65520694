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

	"github.com/tollgate-dev/tollgate/test/must"
)

const contractFolder = "docs/contract/"

var (
	// ruleHeading matches the place where a page of the contract states a rule.
	ruleHeading = regexp.MustCompile(`<a id="([^"]*)"></a>\*\*([A-Z]-[0-9]+)\.`)
	// ruleNumber matches a citation of a rule. It does not match the curve P-384.
	ruleNumber = regexp.MustCompile(`\b[RALMOPCKTW]-[0-9]{1,2}\b`)
	// pageCited matches a citation of a page of the documentation; a heading or anchor is optional.
	pageCited = regexp.MustCompile(`\b(docs/[\w/.-]+\.md)(?:#([\w-]+))?`)
	// externalCitations match citations of texts that are not in the repository.
	externalCitations = []*regexp.Regexp{
		regexp.MustCompile(`(?i)\bdecisions?,? (?:section )?[0-9]+(?:\.[0-9]+)?\b`),
		regexp.MustCompile(`(?i)\b(?:authentication|registry|rate limit) document\b`),
		regexp.MustCompile(`(?i)\brules? [0-9]+\b`),
		regexp.MustCompile(`\b[Ss]ection [A-Z][a-z]+`),
		regexp.MustCompile(`(?i)\btable of the (?:alternative )?cache store\b`),
	}
)

// contractPages returns the pages of the contract by the letter of their rules.
func contractPages() map[string]string {
	return map[string]string{
		"R": contractFolder + "registry.md", "P": contractFolder + "publishers.md", "C": contractFolder + "curation.md",
		"A": contractFolder + "authentication.md", "L": contractFolder + "ratelimit.md",
		"K": contractFolder + "passkeys.md", "T": contractFolder + "authorization.md",
		"W": contractFolder + "tools.md", "M": contractFolder + "methods.md", "O": contractFolder + "operations.md",
	}
}

// TestCitations checks that the numbers of the contract's rules are unique, that every number that
// a comment or a page cites is the number of a rule, that the pages cited in comments exist, and
// that no comment or page cites a text outside the repository.
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
			complaints = append(complaints, number+" is not a rule in "+contractFolder)
		}
	}
	for _, cited := range pageCited.FindAllStringSubmatch(text, -1) {
		page, found := pages[cited[1]]
		switch {
		case !found:
			complaints = append(complaints, cited[1]+" does not exist")
		case cited[2] != "" && !slices.Contains(linkAnchors(page), cited[2]):
			complaints = append(complaints, cited[0]+" is not a heading or anchor of that page")
		}
	}
	for _, form := range externalCitations {
		for _, found := range form.FindAllString(text, -1) {
			complaints = append(complaints,
				`"`+found+`" cites a text outside the repository; cite a rule in `+contractFolder)
		}
	}
	return complaints
}

// readRules returns the numbers of all rules. Each rule must appear once, on the page of its
// letter, and its anchor must be its number in lower case.
func readRules(t *testing.T, pages map[string]string) map[string]bool {
	t.Helper()
	rules := map[string]bool{}
	for letter, name := range contractPages() {
		found := ruleHeading.FindAllStringSubmatch(pages[name], -1)
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
				t.Errorf("%s: rule %s appears twice", name, number)
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

// readTexts returns the texts in the project that may contain citations, by file name or position:
// the comments of Go files, and whole pages, scripts and other files. It joins lines, so that a
// citation may continue on the next line.
func readTexts(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." &&
			(strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"bin", "data", "testdata"}, d.Name())):
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
	must.Succeed(t, err)
	return texts
}

// addComments adds the comments of a Go file to texts.
func addComments(texts map[string]string, name string) error {
	set := token.NewFileSet()
	file, err := goparser.ParseFile(set, filepath.Join(root, name), nil,
		goparser.ParseComments|goparser.SkipObjectResolution)
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

// joinLines joins the lines of a text and removes comment markers.
func joinLines(text string) string {
	var words []string
	for line := range strings.SplitSeq(text, "\n") {
		words = append(words, strings.Fields(strings.TrimLeft(line, " \t/#-*"))...)
	}
	return strings.Join(words, " ")
}

// TestCitationComplaints checks that citationComplaints reports broken citations in each of their
// forms.
func TestCitationComplaints(t *testing.T) {
	pages := map[string]string{
		"docs/contract/registry.md": "<a id=\"r-1\"></a>**R-1. Paths.**\n\n## Requests and answers",
	}
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
		"a decision without a number":                    0,
	} {
		if got := citationComplaints(joinLines(text), pages, rules); len(got) != want {
			t.Errorf("citationComplaints(%q) = %q, want %d complaints", text, got, want)
		}
	}
	if joined := joinLines("// as decisions\n// 2.3 has it"); joined != "as decisions 2.3 has it" {
		t.Errorf("joinLines returned %q", joined)
	}
}
