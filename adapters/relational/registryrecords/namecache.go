package registryrecords

import (
	"context"
	"database/sql"
	"encoding/json"
	"strings"
	"sync/atomic"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// nameCache has the index of the names that were read from the database.
type nameCache struct {
	index   *atomic.Pointer[nameIndex]
	loading chan struct{} // has a value while a caller reads all names
}

func newNameCache() nameCache {
	c := nameCache{index: new(atomic.Pointer[nameIndex]), loading: make(chan struct{}, 1)}
	c.index.Store(new(nameIndex))
	return c
}

// pageFromMemory returns the page of the versions of the first names that contain the text, which
// it finds in memory (docs/adr/0015-what-makes-reads-fast.md). It returns false if these
// names, at most limit of them, do not fill the page and there are more.
func (s *Servers) pageFromMemory(
	ctx context.Context, q registrystore.Query, limit int,
) (registrystore.Page, bool, error) {
	index, err := s.currentNames(ctx)
	if err != nil {
		return registrystore.Page{}, false, err
	}
	names := index.findInRanges(q, limit+1)
	if len(names) == 0 {
		return registrystore.Page{}, true, nil
	}
	list, err := json.Marshal(names[:min(limit, len(names))])
	if err != nil {
		return registrystore.Page{}, false, err
	}
	p, err := s.pageOfNames(ctx, q, condition{s.sql.namesOf, []any{string(list)}})
	return p, p.More || len(names) <= limit, err
}

// currentNames returns an index that has the names of all servers. Servers are never removed and
// their ids grow, so it reads only the names that were stored since the last search. It does not
// keep names that a transaction may roll back.
func (s *Servers) currentNames(ctx context.Context) (*nameIndex, error) {
	if _, ok := s.db.Transaction(ctx); ok {
		return s.readNames(ctx, s.names.index.Load())
	}
	known := s.names.index.Load()
	if known.last == 0 {
		select {
		case s.names.loading <- struct{}{}:
			defer func() { <-s.names.loading }()
			known = s.names.index.Load()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	current, err := s.readNames(ctx, known)
	if err == nil && current != known {
		s.names.index.CompareAndSwap(known, current) // or another caller has stored as many names
	}
	return current, err
}

// namesPerQuery is how many names one query reads at most.
const namesPerQuery = 10_000

// readNames returns an index with the names that known does not have yet.
func (s *Servers) readNames(ctx context.Context, known *nameIndex) (*nameIndex, error) {
	var added []string
	last, count := known.last, namesPerQuery
	for count == namesPerQuery {
		find := database.Query{Text: s.sql.newNames, Args: []any{last, namesPerQuery}, Fixed: true}
		var greatest sql.NullInt64
		var names sql.NullString
		if err := s.db.ScanRow(ctx, find, &greatest, &count, &names); err != nil {
			return nil, err
		}
		if count > 0 {
			last = greatest.Int64
			added = append(added, strings.Split(names.String, endOfName)...)
		}
	}
	if len(added) == 0 {
		return known, nil
	}
	return known.with(added, last), nil
}
