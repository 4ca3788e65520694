package registryrecords

import (
	"context"
	"database/sql"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// ownerStore stores who answers for servers. It implements registrystore.Owners.
type ownerStore struct{ db *database.DB }

func (s *ownerStore) Of(ctx context.Context, name registry.Name) (o registry.Owner, err error) {
	all, err := s.read(ctx, "name = ?", name.String())
	return all[name.String()], err
}

func (s *ownerStore) All(ctx context.Context) (map[string]registry.Owner, error) {
	return s.read(ctx, "1 = 1")
}

// read returns the owners of the servers that a condition selects.
func (s *ownerStore) read(ctx context.Context, condition string, args ...any) (map[string]registry.Owner, error) {
	all := map[string]registry.Owner{}
	q := database.Query{Text: "SELECT name, owner, contact FROM server_owners WHERE " + condition, Args: args}
	_, err := database.CollectAll(ctx, s.db, q, func(row *sql.Rows) (name string, err error) {
		var o registry.Owner
		err = row.Scan(&name, &o.Team, &o.Contact)
		all[name] = o
		return name, err
	})
	return all, err
}

func (s *ownerStore) Set(ctx context.Context, name registry.Name, o registry.Owner) error {
	if o == (registry.Owner{}) {
		_, err := s.db.Exec(ctx, "DELETE FROM server_owners WHERE name = ?", name.String())
		return err
	}
	_, err := s.db.Exec(ctx, `INSERT INTO server_owners (name, owner, contact) VALUES (?, ?, ?)
		ON CONFLICT (name) DO UPDATE SET owner = EXCLUDED.owner, contact = EXCLUDED.contact`, name.String(), o.Team, o.Contact)
	return err
}
