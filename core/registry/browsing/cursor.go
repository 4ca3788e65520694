package browsing

import (
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/page"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/view"
)

// position is a place in a listing: its view and filters, and the name and version after which the
// next page begins.
type position struct {
	view    view.Name // empty for the registry itself
	filters filters
	name    string
	version string
}

// The formats identify the encoding of a position, to distinguish it from later ones. That of a
// position in a view has the name of the view at the end, and that of one with traits has the view,
// which may be empty, and the traits.
const (
	positionFormat = "1"
	viewFormat     = "2"
	traitsFormat   = "3"
)

// separator separates the parts of a position; no part can contain it.
const separator = "\x00"

// encode returns the position as the content of a cursor.
func (p position) encode() []byte {
	since := ""
	if !p.filters.since.IsZero() {
		since = strconv.FormatInt(p.filters.since.UnixMicro(), 10)
	}
	parts := []string{
		positionFormat, p.filters.search, since, p.filters.version, strconv.FormatBool(p.filters.deleted),
		p.name, p.version,
	}
	switch t := p.filters.traits; {
	case t != (traits{}):
		parts[0] = traitsFormat
		parts = append(parts, string(p.view), string(t.status), t.packageType, t.remote)
	case p.view != "":
		parts[0] = viewFormat
		parts = append(parts, string(p.view))
	}
	return []byte(strings.Join(parts, separator))
}

// parsePosition returns the position in the content of a cursor, or page.UnknownCursor.
func parsePosition(content []byte) (position, error) {
	parts := strings.Split(string(content), separator)
	plain, inView := len(parts) == 7 && parts[0] == positionFormat, len(parts) == 8 && parts[0] == viewFormat
	withTraits := len(parts) == 11 && parts[0] == traitsFormat
	if !plain && !inView && !withTraits {
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
	p := position{filters: f, name: parts[5], version: parts[6]}
	if !plain {
		p.view = view.Name(parts[7])
	}
	if withTraits {
		p.filters.traits = traits{status: registry.Status(parts[8]), packageType: parts[9], remote: parts[10]}
	}
	return p, nil
}

// startPosition returns where the page of a query begins.
func (b *Browser) startPosition(q Query) (position, error) {
	if q.Cursor == "" {
		f, err := parseFilters(q)
		return position{view: b.view, filters: f}, err
	}
	content, err := b.cursors.Open(q.Cursor)
	if err != nil {
		return position{}, err
	}
	p, err := parsePosition(content)
	if err != nil {
		return position{}, err
	}
	if p.view != b.view {
		return position{}, invalidParameter("cursor", "is of another view of the registry: start without a cursor")
	}
	return p, p.filters.checkMatch(q)
}
