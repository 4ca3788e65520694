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
			found = append(found, violation{
				name, "is a folder of the root", "the root may contain only " + strings.Join(topFolders, ", "),
			})
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
			found = append(found, violation{
				dir, what, "a package comment is a sentence that says what the package is for and what it is not",
			})
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
			found = append(found, violation{
				s.path, fmt.Sprintf("has %d lines of code", n),
				fmt.Sprintf("at most %d; split it by noun", maxCodeLines),
			})
		}
	}
	return found
}

// codeLines returns the number of lines that have a token. Comments have no token; all lines of a
// raw string count.
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

// checkHandlers finds handlers of the console that are too long. A handler gets a request and
// returns an error alone.
func checkHandlers(all []source) []violation {
	var found []violation
	for _, s := range all {
		if s.isTest() || !strings.HasPrefix(s.path, consoleFolder) {
			continue
		}
		for _, d := range s.tree.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !isHandler(f.Type) {
				continue
			}
			if n := s.set.Position(f.Body.Rbrace).Line - s.set.Position(f.Body.Lbrace).Line - 1; n > maxHandlerLines {
				found = append(found, violation{
					s.position(f), fmt.Sprintf("%s has %d lines", f.Name, n),
					fmt.Sprintf("a handler has at most %d", maxHandlerLines),
				})
			}
		}
	}
	return found
}

// isHandler reports whether a function gets a *Visit or a *fiber.Ctx and returns an error alone.
func isHandler(f *ast.FuncType) bool {
	if f.Results.NumFields() != 1 {
		return false
	}
	if result, ok := f.Results.List[0].Type.(*ast.Ident); !ok || result.Name != "error" {
		return false
	}
	return slices.ContainsFunc(f.Params.List, func(p *ast.Field) bool {
		pointer, ok := p.Type.(*ast.StarExpr)
		if !ok {
			return false
		}
		switch of := pointer.X.(type) {
		case *ast.Ident:
			return of.Name == "Visit"
		case *ast.SelectorExpr:
			return of.Sel.Name == "Visit" || of.Sel.Name == "Ctx"
		}
		return false
	})
}
