package architecture

import (
	"fmt"
	"go/ast"
	"slices"
)

// realWait is a file in which code of tests waits for a fixed time, how often, and why it must.
type realWait struct {
	path   string
	count  int
	reason string
}

// checkWaits finds code of tests that waits for a fixed time, except what the table lists, and what
// the table lists and is gone.
func checkWaits(all []source, table []realWait) []violation {
	var found []violation
	listed := map[string]int{}
	for _, w := range table {
		listed[w.path] = w.count
	}
	for _, s := range all {
		waits := findWaits(s)
		if n := listed[s.path]; len(waits) > n {
			found = append(found, waits[n:]...)
		} else if len(waits) < n {
			found = append(found, violation{
				s.path, fmt.Sprintf("waits %d times for a fixed time", len(waits)),
				fmt.Sprintf("the table says %d; change the table", n),
			})
		}
		delete(listed, s.path)
	}
	for path := range listed {
		found = append(found, violation{path, "does not exist", "remove it from the table of waits"})
	}
	return found
}

// findWaits returns the mentions of the calls that wait for a fixed time, outside of bubbles of
// synctest, where time costs nothing.
func findWaits(s source) (found []violation) {
	clock, bubbles := importName(s.tree, "time"), importName(s.tree, "testing/synctest")
	if clock == "" || !s.isTest() && !isTestCode(s.dir()) {
		return nil
	}
	ast.Inspect(s.tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			return bubbles == "" || !isMention(n.Fun, bubbles, "Test")
		case *ast.SelectorExpr:
			if isMention(n, clock, waitCalls...) {
				found = append(found, violation{
					s.position(n), "mentions time." + n.Sel.Name,
					"tests wait by test/await, or in a bubble of synctest; the table lists what must take real time",
				})
			}
		}
		return true
	})
	return found
}

// isMention reports whether an expression is one of the functions of a package, by the name that
// the file has for it.
func isMention(e ast.Expr, name string, functions ...string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	owner, ok := s.X.(*ast.Ident)
	return ok && owner.Obj == nil && owner.Name == name && slices.Contains(functions, s.Sel.Name)
}
