package registryrecords

import (
	"cmp"
	"context"
	"database/sql"
	"math"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// readPage returns the page of a query, whose text begins after WHERE. It reads the page as one
// packed row if that is faster (database.ListEncoding), else row by row.
func (s *Servers) readPage(ctx context.Context, q database.Query, e extent) (registrystore.Page, error) {
	if p, complete, err := s.readSmallPage(ctx, q, e); err != nil || complete {
		return p, err
	}
	packed, ok := s.sql.Lists.PackUpTo(e.withLimit(q), e.maxBytes())
	if !ok {
		return s.readRows(ctx, q, e)
	}
	all, counted, err := s.readPacked(ctx, packed)
	return pageOf(all, counted, e), err
}

// smallRows is the number of rows of a small page that has no limit of rows.
const smallRows = 128

// readSmallPage returns the page and true if each of its documents is so small that the page cannot
// reach its limit of bytes. Otherwise it returns false.
func (s *Servers) readSmallPage(ctx context.Context, q database.Query, e extent) (p registrystore.Page, complete bool, err error) {
	rows := cmp.Or(e.rows, smallRows)
	maxDocument := min(e.maxBytes()/rows, math.MaxInt32) // no document is larger
	all, counted, err := s.readPacked(ctx, s.sql.Lists.PackSmall(extent{rows: rows}.withLimit(q), maxDocument))
	if err != nil || len(all) < counted || e.rows == 0 && counted > rows {
		return registrystore.Page{}, false, err
	}
	return pageOf(all, counted, e), true, nil
}

// readPacked returns the records of a packed query, and how many rows it counted.
func (s *Servers) readPacked(ctx context.Context, q database.Query) ([]registry.Record, int, error) {
	columns, err := database.Collect(ctx, s.db, q, func(rows *sql.Rows) (columns [2]sql.NullString, err error) {
		for rows.Next() {
			if err := rows.Scan(&columns[0], &columns[1]); err != nil {
				return columns, err
			}
		}
		return columns, nil
	})
	if err != nil {
		return nil, 0, err
	}
	return s.sql.Lists.Unpack([2]string{columns[0].String, columns[1].String}, parseFacts)
}

// pageOf returns the page of the records that a query returned, if it counted counted rows.
func pageOf(all []registry.Record, counted int, e extent) registrystore.Page {
	if e.rows > 0 && len(all) > e.rows {
		all = all[:e.rows]
	}
	return registrystore.Page{Records: all, More: len(all) < counted}
}
