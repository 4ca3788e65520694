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

// checkTop finds folders in the root that have no place there.
func checkTop(root fs.FS) ([]complaint, error) {
	entries, err := fs.ReadDir(root, ".")
	if err != nil {
		return nil, err
	}
	var found []complaint
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() && name[0] != '.' && !isOutput(name) && !slices.Contains(topFolders, name) {
			found = append(found, complaint{name, "is a folder of the root", "the root holds " + strings.Join(topFolders, ", ")})
		}
	}
	return found, nil
}

// checkDocs finds packages that do not say what they are for.
func checkDocs(all []source) []complaint {
	files := map[string][]source{}
	var dirs []string
	for _, s := range all {
		if files[s.dir()] == nil {
			dirs = append(dirs, s.dir())
		}
		files[s.dir()] = append(files[s.dir()], s)
	}
	var found []complaint
	for _, dir := range dirs {
		if what := docFault(files[dir]); what != "" {
			found = append(found, complaint{dir, what, "a package comment is a sentence that says what the package is for and what it is not"})
		}
	}
	return found
}

// docFault says what is wrong with the comment of a package; empty when nothing is. Tests document a package
// only where there is nothing else in it.
func docFault(files []source) string {
	if slices.ContainsFunc(files, func(s source) bool { return !s.isTest() }) {
		files = slices.DeleteFunc(slices.Clone(files), source.isTest)
	}
	fault := "has no package comment"
	for _, s := range files {
		text := s.tree.Doc.Text()
		name := s.tree.Name.Name
		switch {
		case s.tree.Doc == nil || isDirective(s.tree.Doc):
			continue
		case name != "main" && !strings.HasPrefix(text, "Package "+strings.TrimSuffix(name, "_test")+" "):
			fault = "has a package comment that does not begin with \"Package " + name + "\""
		case !strings.Contains(text, "."):
			fault = "has a package comment that is no sentence"
		default:
			return ""
		}
	}
	return fault
}

// isDirective tells a comment for tools (//go:build, //lint:) from one for readers.
func isDirective(doc *ast.CommentGroup) bool { return strings.TrimSpace(doc.Text()) == "" }

// checkSizes finds files that should be two.
func checkSizes(all []source) []complaint {
	var found []complaint
	for _, s := range all {
		if s.isTest() || s.isGenerated() {
			continue
		}
		if n := codeLines(s.text); n > maxCodeLines {
			found = append(found, complaint{s.path, fmt.Sprintf("has %d lines of code", n), fmt.Sprintf("at most %d; split it by noun", maxCodeLines)})
		}
	}
	return found
}

// codeLines counts the lines that hold a token; comments hold none, a raw string holds all its lines.
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
