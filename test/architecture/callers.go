package architecture

import (
	"go/ast"
	"slices"
	"strings"
)

const (
	callerRule = "who calls is found out where a request arrives, by authority.Authority; use cases take an authority.Caller"
	tokenRule  = "only core/auth takes access tokens; a use case takes an authority.Caller"
)

// checkCallers finds code that makes a caller without a check, and use cases that take a token.
func checkCallers(all []source) []violation {
	var found []violation
	for _, s := range all {
		if s.isTest() || s.isGenerated() {
			continue
		}
		port := importName(s.tree, module+"/ports/authority")
		ast.Inspect(s.tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && port != "" && x.Name == port &&
					!mayMakeCaller(s.dir(), n.Sel.Name) {
					found = append(found, violation{s.position(n), "mentions authority." + n.Sel.Name, callerRule})
				}
			case *ast.Field:
				if isToken(n) && !mayTakeToken(s.path) {
					found = append(found, violation{s.position(n), "takes a token as text", tokenRule})
				}
			}
			return true
		})
	}
	return found
}

// mayMakeCaller reports whether a folder may mention a function of the port, if it makes callers.
func mayMakeCaller(dir, function string) bool {
	makers, makes := callerMakers[function]
	return !makes || strings.HasPrefix(dir, "test/") || slices.Contains(makers, dir)
}

// isToken reports whether a field or a parameter is a token as text.
func isToken(f *ast.Field) bool {
	kind, ok := f.Type.(*ast.Ident)
	return ok && kind.Name == "string" &&
		slices.ContainsFunc(f.Names, func(name *ast.Ident) bool { return strings.EqualFold(name.Name, "token") })
}

// mayTakeToken reports whether a file may take tokens as text.
func mayTakeToken(file string) bool {
	return !strings.HasPrefix(file, "core/") || strings.HasPrefix(file, "core/auth/") ||
		slices.Contains(tokenTakers, file)
}

// checkChanges finds use cases of the registry that lock or save a server by themselves, and could
// forget its events and its record in the audit log.
func checkChanges(all []source) []violation {
	const rule = "a server is changed by core/registry/change, with its events and its record in the audit log"
	var found []violation
	for _, s := range all {
		if s.isTest() || !strings.HasPrefix(s.path, "core/") {
			continue
		}
		ast.Inspect(s.tree, func(n ast.Node) bool {
			method, ok := n.(*ast.SelectorExpr)
			if !ok || method.Sel.Name != "Lock" && method.Sel.Name != "Save" {
				return true
			}
			store, ok := method.X.(*ast.SelectorExpr)
			if ok && store.Sel.Name == "Writer" &&
				(method.Sel.Name == "Lock" || !slices.Contains(serverSavers, s.path)) {
				found = append(found, violation{s.position(n), "calls Writer." + method.Sel.Name, rule})
			}
			return true
		})
	}
	return found
}
