package relational

import (
	"cmp"
	"context"
	"math"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// readPage returns a page of records. Where its documents are small they come as
// one row: what the drivers do for a row costs more than the row.
func (s *Servers) readPage(ctx context.Context, q query, e extent) (registrystore.Page, error) {
	p, whole, err := s.smallPage(ctx, q, e)
	switch {
	case err != nil || whole:
		return p, err
	case s.db.dialect.Name == PostgreSQL:
		return s.packedPage(ctx, q, e)
	}
	return s.wholeRecords(ctx, q, e)
}

// smallRows bounds the rows of a small page where nothing else does.
const smallRows = 128

// smallPage returns the page and true where each of its documents is so small
// that the bound cannot be reached. To add up their sizes would cost
// PostgreSQL a quarter more.
func (s *Servers) smallPage(ctx context.Context, q query, e extent) (p registrystore.Page, whole bool, err error) {
	rows := cmp.Or(e.rows, smallRows)
	most := min(e.maxBytes()/rows, math.MaxInt32) // no document is larger
	gather := s.queryJoined
	if s.db.dialect.Name == PostgreSQL {
		gather = s.queryPacked
	}
	all, found, err := gather(ctx, extent{rows: rows}.withLimit(q), most)
	if err != nil || len(all) < found || e.rows == 0 && found > rows {
		return registrystore.Page{}, false, err
	}
	return pageOf(all, found, e), true, nil
}

// pageOf returns the page of the records that a query returned, of those that
// it found.
func pageOf(all []registry.Record, found int, e extent) registrystore.Page {
	if e.rows > 0 && len(all) > e.rows {
		all = all[:e.rows]
	}
	return registrystore.Page{Records: all, More: len(all) < found}
}
