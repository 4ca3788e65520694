package adminapi

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/page"
)

// metadata is the metadata of a list, like that of the list of servers.
type metadata struct {
	NextCursor string `json:"nextCursor,omitempty"`
	Count      int    `json:"count"`
}

// listing is a list in the order of the keys of its items.
type listing[T, J any] struct {
	name string // of the member with the items
	// fetch returns at most limit items whose keys follow one; the empty key is before all.
	fetch func(ctx context.Context, after string, limit int) ([]T, error)
	key   func(*T) string
	shape func(*T) J
}

// handle returns the act that answers with a page: that of the parameters limit and cursor. A
// cursor is good for the path and the filters that returned it.
func (l listing[T, J]) handle(q *request) act {
	limit, err := page.ParseLimit(q.query("limit"))
	q.check("limit", err)
	after, err := q.openCursor()
	q.check("cursor", err)
	selection := q.selection()
	return func(ctx context.Context) (answer, error) {
		items, err := l.fetch(ctx, after, limit+1)
		if err != nil {
			return answer{}, err
		}
		var meta metadata
		if len(items) > limit {
			items = items[:limit]
			meta.NextCursor = q.api.use.Cursors.Seal([]byte(selection + "\x00" + l.key(&items[limit-1])))
		}
		meta.Count = len(items)
		shapes := each.MapRef(items, l.shape)
		return answer{status: http.StatusOK, body: map[string]any{l.name: shapes, "metadata": meta}}, nil
	}
}

// openCursor returns the key after which a page begins; empty without a cursor.
func (q *request) openCursor() (string, error) {
	cursor := q.query("cursor")
	if cursor == "" {
		return "", nil
	}
	content, err := q.api.use.Cursors.Open(cursor)
	if err != nil {
		return "", err
	}
	selection, after, ok := strings.Cut(string(content), "\x00")
	if !ok || selection != q.selection() {
		return "", fault.New(fault.Invalid, "cursor is of another list, or of other filters")
	}
	return after, nil
}

// selection returns the path of the request and, in short, its filters.
func (q *request) selection() string {
	filters := url.Values{}
	for name, value := range q.Queries() {
		if name != "limit" && name != "cursor" && value != "" {
			filters.Set(name, value)
		}
	}
	if len(filters) == 0 {
		return strings.Clone(q.Path())
	}
	sum := sha256.Sum256([]byte(filters.Encode()))
	return fmt.Sprintf("%s?%x", q.Path(), sum[:16])
}
