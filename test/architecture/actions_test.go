package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/must"
)

// TestEveryActionHasAGoldenEvent checks that each action of the audit log that the core writes is
// in a golden file of the tests, so that a change of how it is stored is seen.
func TestEveryActionHasAGoldenEvent(t *testing.T) {
	files := parseCore(t)
	actions := map[string]token.Position{}
	for _, f := range files.list {
		takes := actionParameters(files, f)
		ast.Inspect(f, func(n ast.Node) bool {
			for _, text := range actionTexts(n, takes) {
				if name, err := strconv.Unquote(text.Value); err == nil && name != "" {
					actions[name] = files.set.Position(text.Pos())
				}
			}
			return true
		})
	}
	if len(actions) < 40 {
		t.Errorf("there are %d actions, want those of all use cases", len(actions))
	}
	golden := readGoldenEvents(t)
	for _, name := range []string{"operate", "deliver"} { // tests of the core check their details
		delete(actions, name)
	}
	for name, at := range actions {
		if !strings.Contains(golden, `"action":"`+name+`"`) {
			t.Errorf("%s: no event with the action %q is in a testdata/audit", at, name)
		}
	}
}

type parsedFiles struct {
	set  *token.FileSet
	list []*ast.File
}

// parseCore parses the files of core and ports without their tests.
func parseCore(t *testing.T) parsedFiles {
	t.Helper()
	files := parsedFiles{set: token.NewFileSet()}
	for _, dir := range []string{"../../core", "../../ports"} {
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(files.set, path, nil, parser.SkipObjectResolution)
			files.list = append(files.list, f)
			return err
		})
		must.Succeed(t, err)
	}
	return files
}

// actionParameters returns the positions of the parameters of type audit.Action, by the name of the
// function, of the functions that a file can call.
func actionParameters(files parsedFiles, from *ast.File) map[string][]int {
	folder := func(f *ast.File) string { return filepath.Dir(files.set.Position(f.Pos()).Filename) }
	takes := map[string][]int{}
	for _, f := range files.list {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !fn.Name.IsExported() && folder(f) != folder(from) {
				continue
			}
			at := 0
			for _, p := range fn.Type.Params.List {
				for range max(len(p.Names), 1) {
					if isAction(p.Type) && !slices.Contains(takes[fn.Name.Name], at) {
						takes[fn.Name.Name] = append(takes[fn.Name.Name], at)
					}
					at++
				}
			}
		}
	}
	return takes
}

// actionTexts returns the literals that a node uses as actions: constants of the type, the field
// Action of a literal, and arguments of functions that take an action.
func actionTexts(n ast.Node, takes map[string][]int) (texts []*ast.BasicLit) {
	add := func(e ast.Expr) {
		if text, ok := e.(*ast.BasicLit); ok && text.Kind == token.STRING {
			texts = append(texts, text)
		}
	}
	switch n := n.(type) {
	case *ast.ValueSpec:
		if isAction(n.Type) {
			for _, v := range n.Values {
				add(v)
			}
		}
	case *ast.KeyValueExpr:
		if key, ok := n.Key.(*ast.Ident); ok && strings.EqualFold(key.Name, "action") {
			add(n.Value)
		}
	case *ast.CallExpr:
		name := ""
		switch fn := n.Fun.(type) {
		case *ast.Ident:
			name = fn.Name
		case *ast.SelectorExpr:
			name = fn.Sel.Name
		}
		for _, at := range takes[name] {
			if at < len(n.Args) {
				add(n.Args[at])
			}
		}
	}
	return texts
}

func isAction(e ast.Expr) bool {
	s, ok := e.(*ast.SelectorExpr)
	return ok && s.Sel.Name == "Action" && s.X.(*ast.Ident).Name == "audit"
}

// readGoldenEvents returns the golden files of audit events.
func readGoldenEvents(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, dir := range []string{"../../adapters", "../../cmd", "../acceptance"} {
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(filepath.Dir(path), "testdata/audit") {
				return err
			}
			text, err := os.ReadFile(path)
			all.Write(text)
			return err
		})
		must.Succeed(t, err)
	}
	return all.String()
}
