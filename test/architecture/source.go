// Package architecture checks the shape of the source tree: which ring may import which, what the pure rings may call,
// and how large and how documented the code is. It reads files with go/parser and runs nothing, so it sees every build
// tag, and a test result is cached by the files that it read. It says nothing about behaviour.
package architecture

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strings"
)

// source is one parsed Go file.
type source struct {
	path string // slash-separated, from the root of the tree
	text []byte
	set  *token.FileSet
	tree *ast.File
}

// dir is the folder of the file, as an import path below the module's.
func (s source) dir() string { return path.Dir(s.path) }

func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

func (s source) isGenerated() bool { return ast.IsGenerated(s.tree) }

// at names the place of a node as file:line.
func (s source) at(n ast.Node) string {
	return fmt.Sprintf("%s:%d", s.path, s.set.Position(n.Pos()).Line)
}

// complaint is one broken rule.
type complaint struct {
	where string // file, file:line, or folder
	what  string // what stands there
	rule  string // what should
}

func (c complaint) String() string { return c.where + ": " + c.what + ": " + c.rule }

// load parses every Go file below the root, in the order of their paths. Folders that the go command passes over
// (names that begin with a dot or an underscore, testdata) are passed over here, and so is what the build leaves behind.
func load(root fs.FS) ([]source, error) {
	var all []source
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && passedOver(name):
			return fs.SkipDir
		case entry.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		s, err := parse(root, name)
		if err != nil {
			return err
		}
		all = append(all, s)
		return nil
	})
	return all, err
}

func passedOver(dir string) bool {
	base := path.Base(dir)
	return dir != "." && (base[0] == '.' || base[0] == '_' || base == "testdata" || isOutput(dir))
}

// isOutput reports whether a top-level folder is made by building or running, and ignored by git.
func isOutput(dir string) bool { return dir == "bin" || dir == "data" }

func parse(root fs.FS, name string) (source, error) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return source{}, err
	}
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, name, text, parser.ParseComments)
	if err != nil {
		return source{}, fmt.Errorf("parse: %w", err)
	}
	return source{path: name, text: text, set: set, tree: tree}, nil
}
