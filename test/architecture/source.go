// Package architecture checks the structure of the source tree: which ring imports which, what the
// pure rings call, the size of files, package comments, and whether tests wait for a fixed time. It
// parses the files with go/parser and does not run the go command, so it sees files of every build
// tag, and test results are cached correctly. It does not test behaviour.
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

// dir returns the folder of the file, as an import path below that of the module.
func (s source) dir() string { return path.Dir(s.path) }

func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

func (s source) isGenerated() bool { return ast.IsGenerated(s.tree) }

// position returns the position of a node as file:line.
func (s source) position(n ast.Node) string {
	return fmt.Sprintf("%s:%d", s.path, s.set.Position(n.Pos()).Line)
}

// violation is one broken rule.
type violation struct {
	where string // file, file:line, or folder
	what  string // what is wrong
	rule  string // the rule
}

func (c violation) String() string { return c.where + ": " + c.what + ": " + c.rule }

// loadSources parses every Go file below the root, in the order of their paths. It skips the
// folders that the go command skips (names that begin with a dot or an underscore, testdata), and
// the output of builds.
func loadSources(root fs.FS) ([]source, error) {
	var all []source
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && isSkipped(name):
			return fs.SkipDir
		case entry.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		s, err := parseFile(root, name)
		if err != nil {
			return err
		}
		all = append(all, s)
		return nil
	})
	return all, err
}

func isSkipped(dir string) bool {
	base := path.Base(dir)
	return dir != "." && (base[0] == '.' || base[0] == '_' || base == "testdata" || isOutput(dir))
}

// isOutput reports whether a top-level folder is created by building or running, and ignored by
// git.
func isOutput(dir string) bool { return dir == "bin" || dir == "data" }

func parseFile(root fs.FS, name string) (source, error) {
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
