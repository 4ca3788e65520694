package architecture

import (
	"fmt"
	"go/ast"
	"go/scanner"
	"go/token"
	"io/fs"
	"slices"
	"strings"
)

// checkTopFolders finds folders of the root that the table does not list.
func checkTopFolders(root fs.FS) ([]violation, error) {
	entries, err := fs.ReadDir(root, ".")
	if err != nil {
		return nil, err
	}
	var found []violation
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() && name[0] != '.' && !isOutput(name) && !slices.Contains(topFolders, name) {
			found = append(found, violation{name, "is a folder of the root", "the root may contain only " + strings.Join(topFolders, ", ")})
		}
	}
	return found, nil
}

// checkPackageComments finds packages without a proper package comment.
func checkPackageComments(all []source) []violation {
	files := map[string][]source{}
	var dirs []string
	for _, s := range all {
		if files[s.dir()] == nil {
			dirs = append(dirs, s.dir())
		}
		files[s.dir()] = append(files[s.dir()], s)
	}
	var found []violation
	for _, dir := range dirs {
		if what := packageCommentProblem(files[dir]); what != "" {
			found = append(found, violation{dir, what, "a package comment is a sentence that says what the package is for and what it is not"})
		}
	}
	return found
}

// packageCommentProblem returns what is wrong with the comment of a package, or the empty text. A
// comment in a test file counts only if the package has no other files.
func packageCommentProblem(files []source) string {
	if slices.ContainsFunc(files, func(s source) bool { return !s.isTest() }) {
		files = slices.DeleteFunc(slices.Clone(files), source.isTest)
	}
	problem := "has no package comment"
	for _, s := range files {
		text := s.tree.Doc.Text()
		name := s.tree.Name.Name
		switch {
		case s.tree.Doc == nil || isDirective(s.tree.Doc):
			continue
		case name != "main" && !strings.HasPrefix(text, "Package "+strings.TrimSuffix(name, "_test")+" "):
			problem = "has a package comment that does not begin with \"Package " + name + "\""
		case !strings.Contains(text, "."):
			problem = "has a package comment that is not a sentence"
		default:
			return ""
		}
	}
	return problem
}

// isDirective reports whether a comment is only for tools (//go:build, //lint:).
func isDirective(doc *ast.CommentGroup) bool { return strings.TrimSpace(doc.Text()) == "" }

// checkSizes finds files with too many lines of code.
func checkSizes(all []source) []violation {
	var found []violation
	for _, s := range all {
		if s.isTest() || s.isGenerated() {
			continue
		}
		if n := codeLines(s.text); n > maxCodeLines {
			found = append(found, violation{s.path, fmt.Sprintf("has %d lines of code", n), fmt.Sprintf("at most %d; split it by noun", maxCodeLines)})
		}
	}
	return found
}

// codeLines returns the number of lines that have a token. Comments have none; all lines of a raw
// string count.
func codeLines(text []byte) int {
	set := token.NewFileSet()
	file := set.AddFile("", set.Base(), len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	lines := map[int]bool{}
	for {
		pos, kind, literal := s.Scan()
		if kind == token.EOF {
			return len(lines)
		}
		if kind == token.SEMICOLON && literal == "\n" {
			continue
		}
		first := file.Line(pos)
		for i := range strings.Count(literal, "\n") + 1 {
			lines[first+i] = true
		}
	}
}
