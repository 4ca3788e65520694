package relationaltest

import "testing"

// InEach runs a test in an empty, migrated database of each kind.
func InEach(t *testing.T, test func(t *testing.T, db *Database)) {
	t.Helper()
	for kind, open := range Databases(t) {
		t.Run(kind, func(t *testing.T) { test(t, open(t)) })
	}
}

// MeasureInEach runs a benchmark in an empty, migrated database of each kind.
func MeasureInEach(b *testing.B, measure func(b *testing.B, db *Database)) {
	b.Helper()
	for kind, open := range Databases(b) {
		b.Run(kind, func(b *testing.B) { measure(b, open(b)) })
	}
}

// Kind returns SQLite or PostgreSQL.
func (d *Database) Kind() string { return d.kind }

// Fill runs statements, in their order.
func (d *Database) Fill(t testing.TB, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if err := d.Execute(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// RunContract runs the tests of a contract in databases of each kind. stores returns the stores of
// the database of one test.
func RunContract[S any](
	t *testing.T, run func(t *testing.T, open func(t *testing.T) S), stores func(t *testing.T, db *Database) S,
) {
	t.Helper()
	for kind, open := range Databases(t) {
		t.Run(kind, func(t *testing.T) {
			run(t, func(t *testing.T) S { return stores(t, open(t)) })
		})
	}
}
