package browse

import (
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/page"
)

// position is a place in a listing: its filters, and the name and version after which the next page
// begins.
type position struct {
	filters filters
	name    string
	version string
}

// positionFormat identifies the encoding of a position, to distinguish it from later ones.
const positionFormat = "1"

// separator separates the parts of a position; no part can contain it.
const separator = "\x00"

// encode returns the position as the content of a cursor.
func (p position) encode() []byte {
	since := ""
	if !p.filters.since.IsZero() {
		since = strconv.FormatInt(p.filters.since.UnixMicro(), 10)
	}
	return []byte(strings.Join([]string{
		positionFormat, p.filters.search, since, p.filters.version, strconv.FormatBool(p.filters.deleted), p.name, p.version,
	}, separator))
}

// parsePosition returns the position in the content of a cursor, or page.UnknownCursor.
func parsePosition(content []byte) (position, error) {
	parts := strings.Split(string(content), separator)
	if len(parts) != 7 || parts[0] != positionFormat {
		return position{}, page.UnknownCursor()
	}
	f := filters{search: parts[1], version: parts[3], deleted: parts[4] == "true"}
	if parts[2] != "" {
		micros, err := strconv.ParseInt(parts[2], 10, 64)
		if err != nil {
			return position{}, page.UnknownCursor()
		}
		f.since = time.UnixMicro(micros).UTC()
	}
	return position{f, parts[5], parts[6]}, nil
}

// startPosition returns where the page of a query begins.
func (b *Browser) startPosition(q Query) (position, error) {
	if q.Cursor == "" {
		f, err := parseFilters(q)
		return position{filters: f}, err
	}
	content, err := b.cursors.Open(q.Cursor)
	if err != nil {
		return position{}, err
	}
	p, err := parsePosition(content)
	if err != nil {
		return position{}, err
	}
	return p, p.filters.checkMatch(q)
}
