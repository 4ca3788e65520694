package authrecords

import (
	"context"
	"database/sql"
	"strings"
	"unicode/utf8"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
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
	Identities int              `bun:"identities,scanonly"`
	Passkeys   int              `bun:"passkeys,scanonly"`
	Left       company.Name     `bun:"left_company,scanonly"`
	LeftAt     database.Instant `bun:"left_at,scanonly"`
}

func (r *personRow) toPerson() authstore.Person {
	p := authstore.Person{
		Account: r.toAccount(), LastSignIn: r.LastSignIn.Time, Identities: r.Identities, Passkeys: r.Passkeys, Left: r.Left,
	}
	if p.Left != "" {
		p.LeftAt = r.LeftAt.Time
	}
	return p
}

// hasLeft is a condition on an account: a company has refused the person, and no one confirms the person now.
const hasLeft = `EXISTS (SELECT 1 FROM company_identities i WHERE i.user_id = ?TableAlias.id AND i.confirmed_at IS NULL)
	AND NOT EXISTS (SELECT 1 FROM company_identities i WHERE i.user_id = ?TableAlias.id AND i.confirmed_at IS NOT NULL)`

const (
	// maxFound is how many people the index of parts selects at most. Of a part that more people have,
	// a page is soon full without it.
	maxFound = 1000
	// window is among how many people, in their order, one query looks for a part without the index.
	window = 2000
)

// Search implements authstore.Directory. It selects the page first, and counts only for its people.
func (s *directory) Search(ctx context.Context, q authstore.DirectoryQuery) ([]authstore.Person, error) {
	page, err := s.findPage(ctx, q)
	if err != nil || len(page) == 0 {
		return nil, err
	}
	return s.readList(ctx, func(rows *bun.SelectQuery) *bun.SelectQuery {
		return rows.ColumnExpr("?TableColumns").
			ColumnExpr("(SELECT max(s.created_at) FROM sessions s WHERE s.user_id = ?TableAlias.id) AS last_sign_in").
			ColumnExpr("(SELECT count(*) FROM company_identities i WHERE i.user_id = ?TableAlias.id) AS identities").
			ColumnExpr("(SELECT count(*) FROM passkeys p WHERE p.user_id = ?TableAlias.id) AS passkeys").
			ColumnExpr("CASE WHEN "+hasLeft+` THEN (SELECT coalesce(nullif(max(i.groups_by), ''), 'company') FROM company_identities i
				WHERE i.user_id = ?TableAlias.id) ELSE '' END AS left_company`).
			ColumnExpr("(SELECT max(s.ended_at) FROM sessions s WHERE s.user_id = ?TableAlias.id AND s.end_reason = ?) AS left_at",
				string(auth.EndCompany)).
			Where("id IN (?)", bun.List(page)).Order("email")
	})
}

// findPage returns the ids of the people on a page. It looks for a part that many people have, or
// that the index does not have, in one window of people after the other, since PostgreSQL cannot know
// that a page is soon full.
func (s *directory) findPage(ctx context.Context, q authstore.DirectoryQuery) (page []auth.UserID, err error) {
	found, err := s.findPart(ctx, q.Part)
	if err != nil {
		return nil, err
	}
	if q.Part == "" || found != nil && len(found) <= maxFound {
		return s.findInOrder(ctx, q, found, "")
	}
	for {
		last := database.Query{
			Text: "SELECT email FROM accounts WHERE email > ? ORDER BY email LIMIT 1 OFFSET ?", Args: []any{string(q.After), window - 1},
		}
		end, err := database.CollectAll(ctx, s.db, last, database.ScanText[auth.Email])
		if err != nil {
			return nil, err
		}
		more, err := s.findInOrder(ctx, q, nil, append(end, "")[0])
		page = append(page, more...)
		if q.Limit -= len(more); err != nil || len(end) == 0 || q.Limit == 0 {
			return page, err
		}
		q.After = end[0]
	}
}

// findInOrder returns the ids of the first people that a query selects: of some people unless these
// are nil, and up to an e-mail address unless that is empty.
func (s *directory) findInOrder(
	ctx context.Context, q authstore.DirectoryQuery, among []auth.UserID, end auth.Email,
) ([]auth.UserID, error) {
	return database.Read(ctx, s.db, func(ctx context.Context, tx bun.IDB) (ids []auth.UserID, err error) {
		rows := tx.NewSelect().Model((*accountRow)(nil)).Column("id").Order("email").Limit(q.Limit)
		if among != nil {
			rows = rows.Where("id IN (?)", bun.List(among))
		}
		if q.After != "" {
			rows = rows.Where("email > ?", q.After)
		}
		if end != "" {
			rows = rows.Where("email <= ?", end)
		}
		if !q.AdmittedAt.IsZero() {
			rows = rows.Where("admitted_until > ?", database.NewInstant(q.AdmittedAt))
		}
		if q.Left {
			rows = rows.Where(hasLeft)
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
		return ids, s.db.ClassifyError(rows.Scan(ctx, &ids))
	})
}

// partIndexes are the selections of the indexes of parts, for a part and a limit.
var partIndexes = map[dialect.Name]string{
	dialect.PG: `SELECT id FROM accounts WHERE account_parts((email || ' ' || name) COLLATE "C") @>
		account_parts(? COLLATE "C") LIMIT ?`,
	dialect.SQLite: `SELECT id FROM account_parts WHERE words MATCH '"' || replace(?, '"', '""') || '"' LIMIT ?`,
}

// findPart returns the ids of some people, among whom are all that have a part in their e-mail
// address or name: one more than maxFound at most. It returns nil for a part that the index does not
// have.
func (s *directory) findPart(ctx context.Context, part string) ([]auth.UserID, error) {
	const inIndex = 3 // characters
	if utf8.RuneCountInString(part) < inIndex {
		return nil, nil
	}
	found, err := database.CollectAll(ctx, s.db, database.Query{
		Text: partIndexes[s.db.Kind()], Args: []any{strings.ReplaceAll(part, "\x00", "\x01"), maxFound + 1},
	}, database.ScanText[auth.UserID])
	return append([]auth.UserID{}, found...), err
}

func (s *directory) Count(ctx context.Context, most int) (n int, err error) {
	count := database.Query{
		Text: "SELECT count(*) FROM (SELECT 1 AS one FROM accounts LIMIT CAST(? AS bigint)) AS counted", Args: []any{most},
	}
	return n, s.db.ScanRow(ctx, count, &n)
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

// Groups implements authstore.Directory.
func (s *directory) Groups(ctx context.Context) ([]string, error) {
	find := database.Query{Text: `SELECT groups_by, group_names, count(*) FROM company_identities WHERE groups_by <> ''
		GROUP BY groups_by, group_names ORDER BY count(*) DESC, groups_by, group_names LIMIT 5000`, Fixed: true}
	var people []int
	memberships, err := database.CollectAll(ctx, s.db, find, func(row *sql.Rows) (m company.Membership, err error) {
		var names string
		var count int
		err = row.Scan(&m.Provider, &names, &count)
		m.Groups, people = splitNames(names), append(people, count)
		return m, err
	})
	if err != nil {
		return nil, err
	}
	return company.CountedGroups(memberships, people[len(people)-len(memberships):]), nil
}
