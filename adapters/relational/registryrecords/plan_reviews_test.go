package registryrecords_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/test/must"
)

// insertReviews returns the statements that add, for each server of insertServers, a pending
// replacement, a pending new version, a review that an operator decided and one that a person did. On SQLite (see
// relationaltest.Rows), it is each tenth server.
func insertReviews(kind string) (statements []string) {
	words, some := wordsOf(kind), map[string]string{relationaltest.SQLite: " WHERE n.i % 10 = 1"}[kind]
	for _, r := range []struct{ prefix, version, state, kind, by string }{
		{"r", "v.version", "pending", "replacement", ""}, {"n", "'3.0.0'", "pending", "new-version", ""},
		{"o", "'4.0.0'", "approved", "new-version", "operator"}, {"p", "'5.0.0'", "rejected", "new-version", "bea"},
	} {
		decided := "NULL"
		if r.by != "" {
			decided = words.at
		}
		statements = append(statements,
			`INSERT INTO reviews (id, name, version, state, kind, document, checks, submitter, policy, makers, submitted_at,
				decided_by, decided_at, comment, rule)
			SELECT '`+r.prefix+"' || n.i, v.name, "+r.version+", '"+r.state+"', '"+r.kind+"', "+words.empty+
				", 'null', 'ada', '', 'null', "+words.at+
				", '"+r.by+"', "+decided+", '', '' FROM "+numbers(kind, 10_000)+" JOIN versions AS v ON v.name = "+
				numberedServer+" AND v.version = '1.0.0'"+some)
	}
	return statements
}

// checkPlansOfReviews checks that the documents of a page of reviews, and what operators
// have decided, are found without reading the others.
func checkPlansOfReviews(t *testing.T, db *relationaltest.Database) {
	t.Helper()
	stores := newStores(db)
	pending := make([]review.Review, registrystore.MaxCompared)
	for i := range pending {
		prefix, kind := "r", review.Replacement
		if i%2 > 0 {
			prefix, kind = "n", review.NewVersion
		}
		pending[i].ID, pending[i].Kind = registry.ReviewID(fmt.Sprintf("%s%d", prefix, 400*i+1)), kind
	}
	t.Run("compared documents", func(t *testing.T) {
		checkRowsRead(t, db, 4*registrystore.MaxCompared, func(ctx context.Context) error {
			documents, err := stores.Reviews.Compared(ctx, pending)
			for i, d := range documents {
				if d == nil {
					t.Errorf("%s is compared with nothing", pending[i].ID)
				}
			}
			return err
		})
	})
	t.Run("approvals of servers that are found", func(t *testing.T) {
		must.Succeed(t, db.Execute(t.Context(), "DELETE FROM catalogue_backlog WHERE name <> 'com.example.o7919/server-1'"))
		_, err := stores.Catalogue.Index(t.Context(), 100)
		must.Succeed(t, err)
		plans, err := db.Plans(t.Context(), func(ctx context.Context) error {
			found, err := stores.Catalogue.Find(ctx, registrystore.Search{Order: registrystore.ByFit, Limit: 30})
			if len(found.Servers) != 1 {
				t.Errorf("Find returned %d servers, want 1", len(found.Servers))
			}
			return err
		})
		must.Succeed(t, err)
		looked := 0
		for query, plan := range plans {
			if strings.Contains(query, "decided_by") {
				if looked++; !strings.Contains(plan, "reviews_approved") {
					t.Errorf("it does not look approvals up by the index:\n%s\n%s", query, plan)
				}
			}
		}
		if looked == 0 {
			t.Error("no query reads approvals")
		}
	})
	t.Run("decisions of operators", func(t *testing.T) {
		after := time.Date(2026, 1, 1, 0, 0, 9000, 0, time.UTC)
		checkRowsRead(t, db, 150, func(ctx context.Context) error {
			decided, err := stores.Backlog.DecidedByOperator(ctx, after, after.AddDate(1, 0, 0), 100)
			if len(decided) != 100 {
				t.Errorf("DecidedByOperator returned %d reviews, want 100", len(decided))
			}
			return err
		})
	})
}
