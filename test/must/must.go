// Package must ends a test whose preparation fails. It is not for what a test checks: a check says
// what it got and what it wants.
package must

// T is a test, a benchmark or a property.
type T interface {
	Helper()
	Fatal(args ...any)
}

// Succeed ends the test unless err is nil.
func Succeed(t T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
