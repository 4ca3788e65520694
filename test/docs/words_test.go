package docs

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// maxWords is how many words all pages together may have. Whoever adds a page shortens others.
const maxWords = 52_000

var (
	// pageWord is what is between spaces, but the lines of tables.
	pageWord    = regexp.MustCompile(`[^\s|]*[^\s|-][^\s|]*`)
	htmlComment = regexp.MustCompile(`(?s)<!--.*?-->`)
	// unlimited are the pages whose words are not counted: rules, decisions, history, and what is
	// generated.
	unlimited = regexp.MustCompile(`^(docs/(contract|adr)/.*|docs/(commands|settings|packages)\.md|CHANGELOG\.md)$`)
	// withoutKind are the pages that lead to the others.
	withoutKind = []string{"README.md", "SECURITY.md", "docs/README.md"}
)

// kindsOf returns the columns of the table of docs/README.md in which each page is.
func kindsOf(index string) map[string][]string {
	var columns []string
	kinds := map[string][]string{}
	for line := range strings.Lines(index) {
		if !strings.HasPrefix(line, "|") {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if columns == nil {
			columns = cells
			continue
		}
		for i, cell := range cells[:min(len(cells), len(columns))] {
			for _, found := range link.FindAllStringSubmatch(cell, -1) {
				name, _, _ := strings.Cut(found[1], "#")
				page, column := path.Join("docs", name), strings.TrimSpace(columns[i])
				if !slices.Contains(kinds[page], column) {
					kinds[page] = append(kinds[page], column)
				}
			}
		}
	}
	return kinds
}

// TestWords checks that every page has one kind, which is the column of docs/README.md in which it,
// or the index of its folder, is; and that all pages together do not grow.
func TestWords(t *testing.T) {
	pages := readPages(t)
	kinds := kindsOf(pages["docs/README.md"])
	for page, kind := range kindsOf(pages["docs/operate.md"]) { // those of an operator are one page deeper
		if kinds[page] == nil {
			kinds[page] = kind
		}
	}
	words, total := map[string]int{}, 0
	for name, text := range pages {
		if unlimited.MatchString(name) {
			continue
		}
		n := len(pageWord.FindAllString(htmlComment.ReplaceAllString(text, ""), -1))
		total += n
		of := kinds[name]
		if of == nil && path.Dir(name) != "docs" {
			of = kinds[path.Join(path.Dir(name), "README.md")]
		}
		switch {
		case slices.Contains(withoutKind, name):
			words["lead to the others"] += n
		case len(of) == 1:
			words[of[0]] += n
		default:
			t.Errorf("%s is in the columns %q of docs/README.md, want one", name, of)
		}
	}
	t.Logf("%d words: %v", total, words)
	if total > maxWords {
		t.Errorf("the pages have %d words, want at most %d: %v", total, maxWords, words)
	}
}

// TestKindsOf checks that a page has the kind of its column, wherever it is in it.
func TestKindsOf(t *testing.T) {
	kinds := kindsOf("# Index\n\n| I am | start | do |\n|---|---|---|\n| a **reader** | [a](a.md) | [b](b.md#x), [c](../C.md) |\n" +
		"| a writer | [a](a.md#y) | [a](a.md), [d](d/README.md) |\n")
	for page, want := range map[string][]string{
		"docs/a.md": {"start", "do"}, "docs/b.md": {"do"}, "C.md": {"do"}, "docs/d/README.md": {"do"}, "docs/e.md": nil,
	} {
		if got := kinds[page]; !slices.Equal(got, want) {
			t.Errorf("%s has the kinds %q, want %q", page, got, want)
		}
	}
}
