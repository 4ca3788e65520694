package registryrecords

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// appliedStateStore stores the states of files. It implements registrystore.AppliedStates.
type appliedStateStore struct{ db *database.DB }

func (s *appliedStateStore) Save(ctx context.Context, a registry.AppliedState) error {
	objects, err := json.Marshal(a.Objects)
	if err != nil {
		return fmt.Errorf("the state that %s applies: %w", a.Owner, err)
	}
	_, err = s.db.Exec(ctx, `INSERT INTO applied_states (owner, apply_id, applied_by, applied_at, objects)
		VALUES (?, ?, ?, ?, ?) ON CONFLICT (owner) DO UPDATE SET apply_id = excluded.apply_id,
		applied_by = excluded.applied_by, applied_at = excluded.applied_at, objects = excluded.objects`,
		a.Owner, a.ApplyID, a.By, database.NewInstant(a.At), string(objects))
	return err
}

func (s *appliedStateStore) List(ctx context.Context) ([]registry.AppliedState, error) {
	find := database.Query{Text: `SELECT owner, apply_id, applied_by, applied_at, objects FROM applied_states
		ORDER BY owner`, Fixed: true}
	return database.CollectAll(ctx, s.db, find, func(row *sql.Rows) (a registry.AppliedState, err error) {
		var objects []byte
		if err = row.Scan(&a.Owner, &a.ApplyID, &a.By, database.TimeInto(&a.At), &objects); err != nil {
			return a, err
		}
		return a, checkRow(json.Unmarshal(objects, &a.Objects))
	})
}
