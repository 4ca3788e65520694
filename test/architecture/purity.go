package architecture

import (
	"go/ast"
	"slices"
	"strconv"
	"strings"
)

// checkPurity finds what import paths do not show: the clock, panics, exits and struct tags.
func checkPurity(all []source) []complaint {
	var found []complaint
	for _, s := range all {
		if s.isTest() || s.isGenerated() {
			continue
		}
		p := purity{
			source: s,
			ring:   locate(s.dir()).ring,
			time:   importName(s.tree, "time"),
			os:     importName(s.tree, "os"),
			log:    importName(s.tree, "log"),
		}
		ast.Inspect(s.tree, func(n ast.Node) bool {
			if c := p.check(n); c != nil {
				found = append(found, *c)
			}
			return true
		})
	}
	return found
}

// purity checks one file; time, os and log are the names that it gives to those packages, empty for none.
type purity struct {
	source source
	ring   ring

	time, os, log string
}

func (p purity) check(n ast.Node) *complaint {
	switch n := n.(type) {
	case *ast.SelectorExpr:
		return p.checkSelector(n)
	case *ast.CallExpr:
		return p.checkCall(n)
	case *ast.StructType:
		return p.checkTags(n)
	case *ast.ImportSpec:
		return p.checkDot(n)
	}
	return nil
}

// checkSelector looks at every mention, not only at calls: time.Now passed as a value is the clock as well.
func (p purity) checkSelector(n *ast.SelectorExpr) *complaint {
	owner, ok := n.X.(*ast.Ident)
	if !ok || owner.Obj != nil { // an identifier with an object is a variable, not a package
		return nil
	}
	what := owner.Name + "." + n.Sel.Name
	switch {
	case isPure(p.ring) && owner.Name == p.time && slices.Contains(clockCalls, n.Sel.Name):
		return &complaint{p.source.at(n), "mentions " + what, "in core and ports the time is a port"}
	case p.mayExit():
		return nil
	case owner.Name == p.os && n.Sel.Name == "Exit", owner.Name == p.log && strings.HasPrefix(n.Sel.Name, "Fatal"),
		owner.Name == p.log && strings.HasPrefix(n.Sel.Name, "Panic"):
		return &complaint{p.source.at(n), "mentions " + what, "only main exits"}
	}
	return nil
}

func (p purity) mayExit() bool { return p.source.tree.Name.Name == "main" || p.ring == spanning }

func (p purity) checkCall(n *ast.CallExpr) *complaint {
	if f, ok := n.Fun.(*ast.Ident); !ok || f.Name != "panic" || f.Obj != nil || p.ring == spanning || p.ring == contract {
		return nil
	}
	return &complaint{p.source.at(n), "calls panic", "failures are returned as errors"}
}

func (p purity) checkTags(n *ast.StructType) *complaint {
	if !isPure(p.ring) {
		return nil
	}
	for _, field := range n.Fields.List {
		if field.Tag != nil {
			return &complaint{p.source.at(field), "has the struct tag " + field.Tag.Value, "shapes of transports and stores stay in adapters"}
		}
	}
	return nil
}

// checkDot: names imported with a dot would hide the calls looked for here.
func (p purity) checkDot(n *ast.ImportSpec) *complaint {
	if n.Name == nil || n.Name.Name != "." {
		return nil
	}
	return &complaint{p.source.at(n), "imports " + n.Path.Value + " with a dot", "names show where they come from"}
}

// importName is the name by which a file calls a package of the standard library; empty when it does not import it.
func importName(f *ast.File, imported string) string {
	for _, spec := range f.Imports {
		if name, err := strconv.Unquote(spec.Path.Value); err != nil || name != imported {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return imported
	}
	return ""
}
