package architecture

import (
	"fmt"
	"strings"
)

// documentPackages returns docs/packages.md: all packages but those of tests, with the first
// sentence of their comments.
func documentPackages(all []source) string {
	var page strings.Builder
	page.WriteString("# Packages\n\nThe first sentence of each package's comment, written by `make generate`. " +
		"[architecture.md](architecture.md) explains the\nrings; the tests are in `test`.\n")
	area, listed := "", ""
	for _, s := range all {
		if s.isTest() || isTestCode(s.dir()) || s.dir() == listed || s.tree.Doc == nil || isDirective(s.tree.Doc) {
			continue
		}
		listed = s.dir()
		first, _, _ := strings.Cut(listed, "/")
		if first != area {
			area = first
			fmt.Fprintf(&page, "\n## %s\n\n| package | |\n|---|---|\n", area)
		}
		fmt.Fprintf(&page, "| `%s` | %s |\n", strings.TrimPrefix(listed, area+"/"), purpose(s.tree.Doc.Text()))
	}
	return page.String()
}

// purpose returns the first sentence of a package comment, without the words "Package x" before it.
func purpose(comment string) string {
	paragraph, _, _ := strings.Cut(comment, "\n\n")
	sentence, _, _ := strings.Cut(strings.Join(strings.Fields(paragraph), " "), ". ")
	if words := strings.SplitN(sentence, " ", 3); len(words) == 3 && words[0] == "Package" {
		sentence = words[2]
	}
	return strings.ReplaceAll(strings.TrimSuffix(sentence, "."), "|", "\\|")
}
