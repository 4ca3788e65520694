package database_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/authrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestStreamOfOlderVersions checks that the stream of the audit log begins with the events from before
// migration 0043, and that a reader can continue after each of them.
func TestStreamOfOlderVersions(t *testing.T) {
	for kind, place := range emptyDatabases() {
		t.Run(kind, func(t *testing.T) {
			db := place(t)()
			all, err := db.Pending(t.Context())
			must.Succeed(t, err)
			before := slices.IndexFunc(all, func(name string) bool { return name >= "0043" })
			if _, err := db.MigrateTo(t.Context(), before); err != nil {
				t.Fatal(err)
			}
			added, want := []int{3, 1, 2, 4}, []int{3, 1, 2, 4, 9, 0}
			if kind == relationaltest.PostgreSQL {
				want = []int{1, 2, 3, 4, 9, 0}
			}
			for _, n := range added {
				addOldEvent(t, db, kind, n)
			}
			if _, err := db.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			addOldEvent(t, db, kind, 9) // by an instance that is not yet replaced
			addOldEvent(t, db, kind, 0)
			readAsOldInstance(t, db)
			log := authrecords.NewAuditLog(db.DB)
			for i := range want {
				for limit := 1; limit < 4; limit++ {
					if got := follow(t, log, want[i], limit); !slices.Equal(got, want[i+1:]) {
						t.Errorf("after %d in pages of %d the stream has %v, want %v", want[i], limit, got, want[i+1:])
					}
				}
			}
			if got := follow(t, log, -1, 2); !slices.Equal(got, want) {
				t.Errorf("the stream has %v, want %v", got, want)
			}
		})
	}
}

func oldEventID(n int) audit.EventID {
	return audit.EventID(fmt.Sprintf("00000000-1234-4abc-8def-%012d", n))
}

func addOldEvent(t *testing.T, db *relationaltest.Database, kind string, n int) {
	t.Helper()
	at := "'" + epoch.Add(time.Duration(n)*time.Second).Format(time.RFC3339) + "'"
	if kind == relationaltest.SQLite {
		at = fmt.Sprint(epoch.Add(time.Duration(n) * time.Second).UnixMicro())
	}
	err := db.Execute(t.Context(), fmt.Sprintf(`INSERT INTO audit_events (id, time, type, user_id, success, details)
		VALUES ('%s', %s, 'LOGIN_ATTEMPT', NULL, true, '{"n":%d}')`, oldEventID(n), at, n))
	must.Succeed(t, err)
}

// readAsOldInstance reads all columns into a row that does not have the new one.
func readAsOldInstance(t *testing.T, db *relationaltest.Database) {
	t.Helper()
	err := db.InTransaction(t.Context(), func(ctx context.Context, tx bun.IDB) error {
		var rows []struct {
			bun.BaseModel `bun:"table:audit_events,alias:e"`

			ID       string `bun:"id,pk"`
			Time     any    `bun:"time"`
			Category string `bun:"column:type"`
			Subject  any    `bun:"user_id"`
			Success  bool   `bun:"success"`
			Details  string `bun:"details"`
		}
		return tx.NewSelect().TableExpr("audit_events").ColumnExpr("*").Scan(ctx, &rows)
	})
	if err != nil {
		t.Errorf("an old instance cannot read the log: %v", err)
	}
}

// follow returns the numbers of the events after one, or of all of them if it is negative.
func follow(t *testing.T, log authstore.AuditLog, after, limit int) (numbers []int) {
	t.Helper()
	var place authstore.AuditPlace
	if after >= 0 {
		place.ID = oldEventID(after)
	}
	for {
		events, next, err := log.Follow(t.Context(), authstore.AuditQuery{Limit: limit}, place)
		must.Succeed(t, err)
		if len(events) == 0 {
			return numbers
		}
		for i := range events {
			number, _ := events[i].Details["n"].(audit.Number)
			numbers = append(numbers, int(number))
		}
		place = next
	}
}
