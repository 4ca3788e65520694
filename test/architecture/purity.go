package architecture

import (
	"go/ast"
	"path"
	"slices"
	"strconv"
	"strings"
)

// checkPurity finds violations that import paths do not show: use of the clock, panics, exits,
// struct tags and maps of anything.
func checkPurity(all []source) []violation {
	var found []violation
	for _, s := range all {
		if s.isTest() || s.isGenerated() {
			continue
		}
		p := purityCheck{
			source: s,
			ring:   locationOf(s.dir()).ring,
			time:   importName(s.tree, "time"),
			os:     importName(s.tree, "os"),
			log:    importName(s.tree, "log"),
		}
		ast.Inspect(s.tree, func(n ast.Node) bool {
			if c := p.checkNode(n); c != nil {
				found = append(found, *c)
			}
			return true
		})
	}
	return found
}

// purityCheck checks one file. time, os and log are the names by which it imports these packages,
// empty if it does not.
type purityCheck struct {
	source source
	ring   ring

	time, os, log string
}

func (p purityCheck) checkNode(n ast.Node) *violation {
	switch n := n.(type) {
	case *ast.SelectorExpr:
		return p.checkSelector(n)
	case *ast.CallExpr:
		return p.checkCall(n)
	case *ast.StructType:
		return p.checkTags(n)
	case *ast.MapType:
		return p.checkMap(n)
	case *ast.ImportSpec:
		return p.checkDotImport(n)
	}
	return nil
}

// checkSelector checks every mention, not only calls, because time.Now can also be passed as a
// value.
func (p purityCheck) checkSelector(n *ast.SelectorExpr) *violation {
	owner, ok := n.X.(*ast.Ident)
	if !ok || owner.Obj != nil { // an identifier with an object is a variable, not a package
		return nil
	}
	what := owner.Name + "." + n.Sel.Name
	switch {
	case isPure(p.ring) && owner.Name == p.time && slices.Contains(clockCalls, n.Sel.Name):
		return &violation{p.source.position(n), "mentions " + what, "core and ports get the time from a port"}
	case p.mayExit():
		return nil
	case owner.Name == p.os && n.Sel.Name == "Exit", owner.Name == p.log && strings.HasPrefix(n.Sel.Name, "Fatal"),
		owner.Name == p.log && strings.HasPrefix(n.Sel.Name, "Panic"):
		return &violation{p.source.position(n), "mentions " + what, "only main exits"}
	}
	return nil
}

func (p purityCheck) mayExit() bool { return p.source.tree.Name.Name == "main" || p.ring == spanning }

func (p purityCheck) checkCall(n *ast.CallExpr) *violation {
	if f, ok := n.Fun.(*ast.Ident); !ok || f.Name != "panic" || f.Obj != nil ||
		slices.Contains([]ring{spanning, waiting, contract}, p.ring) {
		return nil
	}
	return &violation{p.source.position(n), "calls panic", "failures are returned as errors"}
}

func (p purityCheck) checkTags(n *ast.StructType) *violation {
	if !isPure(p.ring) {
		return nil
	}
	for _, field := range n.Fields.List {
		if field.Tag != nil {
			return &violation{
				p.source.position(field), "has the struct tag " + field.Tag.Value,
				"formats of transports and stores belong to adapters",
			}
		}
	}
	return nil
}

// checkMap refuses maps of anything: a reader cannot see what they contain.
func (p purityCheck) checkMap(n *ast.MapType) *violation {
	value, named := n.Value.(*ast.Ident)
	empty, unnamed := n.Value.(*ast.InterfaceType)
	if !isPure(p.ring) || !(named && value.Name == "any" || unnamed && len(empty.Methods.List) == 0) {
		return nil
	}
	return &violation{p.source.position(n), "has a map of anything", "JSON without a known form is a jsonvalue.Object"}
}

// checkDotImport refuses imports with a dot, which would hide calls from the other checks.
func (p purityCheck) checkDotImport(n *ast.ImportSpec) *violation {
	if n.Name == nil || n.Name.Name != "." {
		return nil
	}
	return &violation{p.source.position(n), "imports " + n.Path.Value + " with a dot", "names must show their package"}
}

// importName returns the name by which a file imports a package of the standard library, or the
// empty text if it does not import it.
func importName(f *ast.File, imported string) string {
	for _, spec := range f.Imports {
		if name, err := strconv.Unquote(spec.Path.Value); err != nil || name != imported {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path.Base(imported)
	}
	return ""
}
