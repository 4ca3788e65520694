package architecture

import (
	"fmt"
	"go/ast"
	"strings"
	"unicode"
	"unicode/utf8"
)

// checkDocNames finds functions whose comments begin with another name: after a rename, for
// example. A comment that begins in lower case begins with a name, because it is no sentence
// otherwise; one that begins in upper case does so if its first word is declared in the package.
func checkDocNames(all []source) []violation {
	declared := map[string]map[string]bool{} // names by folder
	for _, s := range all {
		if declared[s.dir()] == nil {
			declared[s.dir()] = map[string]bool{}
		}
		for _, d := range s.tree.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				declared[s.dir()][f.Name.Name] = true
			}
		}
	}
	var found []violation
	for _, s := range all {
		if s.isGenerated() {
			continue
		}
		for _, d := range s.tree.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if name := docName(f); name != "" && name != f.Name.Name && (startsLower(name) || declared[s.dir()][name]) {
				found = append(found, violation{
					s.position(f), fmt.Sprintf("the comment of %s begins with %s", f.Name, name),
					"it begins with the name of the function",
				})
			}
		}
	}
	return found
}

// docName returns the first word of the comment of a function if it may be a name.
func docName(f *ast.FuncDecl) string {
	first, _, _ := strings.Cut(strings.TrimSpace(f.Doc.Text()), " ")
	first = strings.TrimRight(first, ",:")
	if strings.ContainsFunc(first, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_'
	}) {
		return ""
	}
	return first
}

func startsLower(name string) bool {
	r, _ := utf8.DecodeRuneInString(name)
	return unicode.IsLower(r)
}
