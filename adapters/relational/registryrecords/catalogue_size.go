package registryrecords

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// countedSize is a number of servers that the catalogue has at least: they stay.
type countedSize struct {
	servers int64
	at      time.Time
}

// sampled is the number of servers of a sample.
const sampled = 256

// estimate reports whether a search finds far more than MaxFound servers, and whether the titles of
// more match: by a sample of the servers. The index of parts would have to be read as a whole. What it
// says of titles decides only how they are found, so it need not be as certain.
func (s catalogueStore) estimate(ctx context.Context, q registrystore.Search) (many, manyTitles bool, err error) {
	var matching, titles sql.NullInt64
	all, titled := s.conditions(q), s.titleHas(q.Words).and("1 = 1")
	sample := database.Query{
		Text: "SELECT count(*), sum(CASE WHEN " + titled.text + " THEN 1 ELSE 0 END)" +
			" FROM (SELECT * FROM catalogue ORDER BY spread LIMIT CAST(? AS bigint)) AS c" + all.where(),
		Args: slices.Concat(titled.args, []any{sampled}, all.args),
	}
	if err := s.db.ScanRow(ctx, sample, &matching, &titles); err != nil || matching.Int64 == 0 {
		return false, false, err
	}
	size, err := s.currentSize(ctx)
	const limit = registrystore.MaxFound * sampled
	return matching.Int64*size > 8*limit, titles.Int64*size > limit, err
}

// countAfter is how long a number of up to a thousand servers is good for estimates. A greater one is
// good for longer: it takes longer to count, and changes less.
const countAfter = 10 * time.Second

func (s catalogueStore) currentSize(ctx context.Context) (int64, error) {
	known := s.size.Load()
	if known != nil && time.Since(known.at) < countAfter*time.Duration(1+known.servers/1000) {
		return known.servers, nil
	}
	now := countedSize{at: time.Now()}
	count := database.Query{Text: "SELECT count(*) FROM catalogue", Fixed: true}
	err := s.db.ScanRow(ctx, count, &now.servers)
	if err == nil {
		s.size.Store(&now)
	}
	return now.servers, err
}
