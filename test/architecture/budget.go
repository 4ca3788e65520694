package architecture

import (
	"bytes"
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
)

// measures are numbers that describe the whole tree.
type measures struct {
	lines       int // lines of files that people write for production
	wiringLines int // those of package wiring, without its settings
	interfaces  int // interfaces with methods outside of ports
	binds       int // calls of wire.Bind
	settings    int // rows of docs/settings.md
	chain       int // packages that import each other in a row
}

var settingRow = regexp.MustCompile("(?m)^\\| `[A-Z0-9_]+`")

// measureTree measures production code and the list of settings.
func measureTree(all []source, settings []byte) measures {
	m := measures{settings: len(settingRow.FindAll(settings, -1)), chain: longestChain(importsOf(all))}
	for _, s := range all {
		if s.isTest() || s.isGenerated() || isTestCode(s.dir()) {
			continue
		}
		lines := bytes.Count(s.text, []byte{'\n'})
		m.lines += lines
		if s.dir() == "wiring" {
			m.wiringLines += lines
		}
		ast.Inspect(s.tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				if i, ok := n.Type.(*ast.InterfaceType); ok && hasMethods(i) && !strings.HasPrefix(s.path, "ports/") {
					m.interfaces++
				}
			case *ast.SelectorExpr:
				if owner, ok := n.X.(*ast.Ident); ok && owner.Name == "wire" && n.Sel.Name == "Bind" {
					m.binds++
				}
			}
			return true
		})
	}
	return m
}

func hasMethods(i *ast.InterfaceType) bool {
	return slices.ContainsFunc(i.Methods.List, func(f *ast.Field) bool {
		_, ok := f.Type.(*ast.FuncType)
		return ok
	})
}

// checkBudget finds measures that have grown over their limit.
func checkBudget(m, most measures) []violation {
	var found []violation
	for _, one := range []struct {
		what    string
		n, most int
	}{
		{"lines of production code", m.lines, most.lines},
		{"lines of package wiring", m.wiringLines, most.wiringLines},
		{"interfaces outside of ports", m.interfaces, most.interfaces},
		{"calls of wire.Bind", m.binds, most.binds},
		{"settings", m.settings, most.settings},
		{"packages that import each other in a row", m.chain, most.chain},
	} {
		if one.n > one.most {
			found = append(found, violation{
				"the tree", fmt.Sprintf("has %d %s", one.n, one.what),
				fmt.Sprintf(
					"at most %d; fold before you add, or raise the limit of budget in tables.go with a reason",
					one.most),
			})
		}
	}
	return found
}

// checkPackageNames finds packages whose names differ by one letter.
func checkPackageNames(all []source) []violation {
	byName := map[string]string{}
	for _, s := range all {
		byName[path.Base(s.dir())] = s.dir()
	}
	var found []violation
	for a, dirA := range byName {
		for b, dirB := range byName {
			if isOneLetterApart(a, b) && !slices.Contains(termsOfTheField, b) {
				found = append(found, violation{
					dirA, "its name differs from that of " + dirB + " by one letter", "readers confuse them",
				})
			}
		}
	}
	return found
}

// isOneLetterApart reports whether b is a with one letter changed, and then the later of the two,
// or with one letter more.
func isOneLetterApart(a, b string) bool {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	switch {
	case len(a) == len(b):
		return a < b && a[i+1:] == b[i+1:]
	case len(a)+1 == len(b):
		return a[i:] == b[i+1:]
	}
	return false
}
