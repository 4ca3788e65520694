package authrecords

import (
	"context"
	"strings"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/ports/authstore"
)

// directory finds people. It implements [authstore.Directory] and [authstore.Operators].
type directory struct {
	table[authstore.Person, personRow]
}

// personRow is the row of an account with the time of its last session.
type personRow struct {
	accountRow `bun:",extend"`

	LastSignIn database.Instant `bun:"last_sign_in,scanonly"`
}

func (r *personRow) toPerson() authstore.Person {
	return authstore.Person{Account: r.toAccount(), LastSignIn: r.LastSignIn.Time}
}

func (s *directory) Search(ctx context.Context, q authstore.DirectoryQuery) ([]authstore.Person, error) {
	return s.readList(ctx, func(rows *bun.SelectQuery) *bun.SelectQuery {
		rows = rows.ColumnExpr("?TableColumns").
			ColumnExpr("(SELECT max(s.created_at) FROM sessions s WHERE s.user_id = ?TableAlias.id) AS last_sign_in").
			Order("email").Limit(q.Limit)
		if q.After != "" {
			rows = rows.Where("email > ?", q.After)
		}
		if !q.AdmittedAt.IsZero() {
			rows = rows.Where("admitted_until > ?", database.NewInstant(q.AdmittedAt))
		}
		if q.ID != "" {
			rows = rows.Where("id = ?", q.ID)
		}
		if q.State != "" {
			rows = rows.Where("state = ?", q.State)
		}
		if q.Part != "" {
			part := "%" + likeLiteral.Replace(q.Part) + "%"
			rows = rows.Where(`(lower(email) LIKE lower(?) ESCAPE '\' OR lower(name) LIKE lower(?) ESCAPE '\')`, part, part)
		}
		return rows
	})
}

// likeLiteral escapes the characters that have a meaning in a LIKE pattern.
var likeLiteral = strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`)

// Lock implements authstore.Operators. The change of the row keeps other transactions out.
func (s *directory) Lock(ctx context.Context) error {
	_, err := s.db.Exec(ctx, "UPDATE guards SET name = name WHERE name = 'operators'")
	return err
}

func (s *directory) Any(ctx context.Context) (bool, error) {
	return database.Read(ctx, s.db, func(ctx context.Context, tx bun.IDB) (found bool, err error) {
		err = s.db.ScanInto(ctx, tx, &found, `SELECT EXISTS (SELECT 1 FROM grants g
			JOIN accounts a ON CAST(a.id AS text) = g.holder WHERE g.action = 'operate' AND a.state = 'active')`)
		return found, err
	})
}
