package browsing

import (
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/page"
)

// FuzzCursor: a text that is not a cursor is refused, and a position that is encoded is decoded
// unchanged.
func FuzzCursor(f *testing.F) {
	f.Add("weather", "1.0.0", int64(0), true, "com.example/a", "2.0.0")
	f.Add("", "latest", int64(1), false, "", "")
	f.Fuzz(func(t *testing.T, search, version string, since int64, deleted bool, name, after string) {
		b := New(nil, page.NewSealer([]byte("0123456789abcdef0123456789abcdef")))
		if _, err := b.startPosition(Query{Cursor: search}); err == nil && search != "" {
			t.Fatalf("%q opened as a cursor", search)
		}
		for _, s := range []string{search, version, name, after} {
			if strings.Contains(s, separator) || len(s) > 300 {
				return
			}
		}
		p := position{"", filters{search: search, version: version, deleted: deleted}, name, after}
		if since != 0 {
			p.filters.since = time.UnixMicro(since % 1e16).UTC()
		}
		if p.filters.since.IsZero() {
			p.filters.since = time.Time{}
		}
		got, err := b.startPosition(Query{Cursor: b.cursors.Seal(p.encode())})
		if err != nil || got != p {
			t.Fatalf("%+v came out as %+v, %v", p, got, err)
		}
		p.view = "team"
		if _, err := b.startPosition(Query{Cursor: b.cursors.Seal(p.encode())}); err == nil {
			t.Fatalf("the cursor of a view is good in the registry: %+v", p)
		}
		b.view = "team"
		if got, err := b.startPosition(Query{Cursor: b.cursors.Seal(p.encode())}); err != nil || got != p {
			t.Fatalf("in a view, %+v came out as %+v, %v", p, got, err)
		}
	})
}
