package authrecords_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/relational/authrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/secrets/secretstest"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestChanges checks which transactions of this process count as changes of who may do what: those that
// are stored, with an event of an account or its credentials.
func TestChanges(t *testing.T) {
	relationaltest.InEach(t, func(t *testing.T, db *relationaltest.Database) {
		changes, log, entropy := authrecords.NewChanges(db.DB), authrecords.NewAuditLog(db.DB), &secretstest.Entropy{}
		for category, want := range map[audit.Category]bool{
			audit.AccountChange: true, audit.CredentialChange: true, audit.LoginAttempt: false, audit.RegistryChange: false,
		} {
			e := audit.Event{ID: secrets.NewUUID[audit.EventID](entropy), Time: time.Now(), Category: category}
			before := changes()
			refused := errors.New("refused")
			err := db.Atomically(t.Context(), func(ctx context.Context) error { return errors.Join(log.Append(ctx, e), refused) })
			if !errors.Is(err, refused) || changes() != before {
				t.Errorf("%s that is not stored is a change (%v)", category, err)
			}
			must.Succeed(t, db.Atomically(t.Context(), func(ctx context.Context) error {
				err := log.Append(ctx, e)
				if changes() != before {
					t.Errorf("%s is a change before the commit", category)
				}
				return err
			}))
			if (changes() != before) != want {
				t.Errorf("%s is a change: %t, want %t", category, !want, want)
			}
		}
	})
}
