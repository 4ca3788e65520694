package authrecords

import (
	"context"
	"encoding/json"
	"time"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
)

// identityStore stores which identities are linked to accounts. It implements [authstore.Identities].
type identityStore struct {
	table[company.Identity, identityRow]
}

type identityRow struct {
	bun.BaseModel `bun:"table:company_identities"`

	ID          company.IdentityID `bun:"id,pk"`
	UserID      auth.UserID        `bun:"user_id"`
	Issuer      string             `bun:"issuer"`
	Subject     string             `bun:"subject"`
	Email       auth.Email         `bun:"email"`
	LinkedAt    database.Instant   `bun:"linked_at"`
	LastUsedAt  database.Instant   `bun:"last_used_at"`
	ConfirmedAt database.Instant   `bun:"confirmed_at,nullzero"`
	GroupsBy    company.Name       `bun:"groups_by"`
	GroupNames  string             `bun:"group_names"` // JSON
}

func newIdentityRow(i company.Identity) *identityRow {
	return &identityRow{
		ID: i.ID, UserID: i.UserID, Issuer: i.Issuer, Subject: i.Subject, Email: i.Email,
		LinkedAt: database.NewInstant(i.LinkedAt), LastUsedAt: database.NewInstant(i.LastUsedAt),
		ConfirmedAt: database.NewInstant(i.ConfirmedAt), GroupsBy: i.Membership.Provider,
		GroupNames: joinNames(i.Membership.Groups),
	}
}

func (r *identityRow) toIdentity() company.Identity {
	return company.Identity{
		ID: r.ID, UserID: r.UserID, Issuer: r.Issuer, Subject: r.Subject, Email: r.Email, LinkedAt: r.LinkedAt.Time,
		LastUsedAt: r.LastUsedAt.Time, ConfirmedAt: r.ConfirmedAt.Time,
		Membership: company.Membership{Provider: r.GroupsBy, Groups: splitNames(r.GroupNames)},
	}
}

// joinNames returns names as JSON, and splitNames the names of such a text; nil for one without any.
func joinNames(names []string) string {
	text, err := json.Marshal(names)
	if err != nil || names == nil {
		return "[]"
	}
	return string(text)
}

func splitNames(text string) (names []string) {
	if json.Unmarshal([]byte(text), &names) != nil || len(names) == 0 { // what was stored can be read
		return nil
	}
	return names
}

func (s *identityStore) Add(ctx context.Context, i company.Identity) error {
	return s.insertNew(ctx, i, "this identity is linked to an account already")
}

func (s *identityStore) Find(ctx context.Context, issuer, subject string) (company.Identity, error) {
	return s.find(ctx, "issuer = ? AND subject = ?", issuer, subject)
}

func (s *identityStore) Of(ctx context.Context, user auth.UserID) ([]company.Identity, error) {
	return s.readList(ctx, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("user_id = ?", user).Order("linked_at", "id")
	})
}

func (s *identityStore) Use(
	ctx context.Context, id company.IdentityID, email auth.Email, m company.Membership, at time.Time,
) error {
	used := database.NewInstant(at)
	_, err := s.db.Exec(ctx, `UPDATE company_identities SET email = ?, groups_by = ?, group_names = ?, last_used_at = ?,
		confirmed_at = ? WHERE id = ?`,
		string(email), string(m.Provider), joinNames(m.Groups), used, used, string(id))
	return err
}

func (s *identityStore) Confirm(
	ctx context.Context, id company.IdentityID, at time.Time, m *company.Membership,
) error {
	if m != nil {
		_, err := s.db.Exec(ctx,
			"UPDATE company_identities SET confirmed_at = ?, groups_by = ?, group_names = ? WHERE id = ?",
			database.NewInstant(at), string(m.Provider), joinNames(m.Groups), string(id))
		return err
	}
	_, err := s.db.Exec(ctx, "UPDATE company_identities SET confirmed_at = ? WHERE id = ?",
		database.NewInstant(at), string(id))
	return err
}

// Remove implements authstore.Identities. The database deletes the logins.
func (s *identityStore) Remove(ctx context.Context, user auth.UserID, id company.IdentityID) error {
	return changeOne(ctx, s.db, noSuchRecord("identity"), "DELETE FROM company_identities WHERE user_id = ? AND id = ?",
		string(user), string(id))
}

// loginStore stores the sign-ins at providers. It implements [authstore.Logins].
type loginStore struct{ table[company.Login, loginRow] }

type loginRow struct {
	bun.BaseModel `bun:"table:company_logins,alias:l"`

	ID         company.LoginID    `bun:"id,pk"`
	SessionID  auth.SessionID     `bun:"session_id,nullzero"`
	IdentityID company.IdentityID `bun:"identity_id"`
	Provider   company.Name       `bun:"provider"`
	SID        string             `bun:"sid"`
	Refresh    []byte             `bun:"refresh"`
	AnsweredAt database.Instant   `bun:"answered_at"`
	RecheckAt  database.Instant   `bun:"recheck_at,nullzero"`
}

func newLoginRow(l company.Login) *loginRow {
	return &loginRow{
		ID: l.ID, SessionID: l.SessionID, IdentityID: l.IdentityID, Provider: l.Provider, SID: l.SID,
		Refresh: nilToEmpty(l.Refresh), AnsweredAt: database.NewInstant(l.AnsweredAt),
		RecheckAt: database.NewInstant(l.RecheckAt),
	}
}

func (r *loginRow) toLogin() company.Login {
	return company.Login{
		ID: r.ID, SessionID: r.SessionID, IdentityID: r.IdentityID, Provider: r.Provider, SID: r.SID,
		Refresh: emptyToNil[auth.SealedSecret](r.Refresh), AnsweredAt: r.AnsweredAt.Time, RecheckAt: r.RecheckAt.Time,
	}
}

func (s *loginStore) Add(ctx context.Context, l company.Login) error { return s.insert(ctx, l) }

func (s *loginStore) Bind(ctx context.Context, id company.LoginID, session auth.SessionID) error {
	return changeOne(ctx, s.db, noSuchRecord("login"),
		"UPDATE company_logins SET session_id = ? WHERE id = ? AND session_id IS NULL", string(session), string(id))
}

func (s *loginStore) Find(ctx context.Context, q authstore.LoginQuery) ([]company.Login, error) {
	return s.readList(ctx, func(find *bun.SelectQuery) *bun.SelectQuery {
		find = find.ExcludeColumn().Join("JOIN sessions AS s ON s.id = l.session_id").
			Where("s.ended_at IS NULL AND s.expires_at > ?", database.NewInstant(q.At)).Order("l.recheck_at", "l.id")
		for column, value := range map[string]string{
			"l.provider": string(q.Provider), "l.identity_id": string(q.Identity), "l.session_id": string(q.Session),
			"l.sid": q.SID,
		} {
			if value != "" {
				find = find.Where(column+" = ?", value)
			}
		}
		if !q.Due.IsZero() {
			find = find.Where("l.recheck_at <= ?", database.NewInstant(q.Due))
		}
		if len(q.Without) > 0 {
			find = find.Where("l.provider NOT IN (?)", bun.List(q.Without))
		}
		if q.Limit > 0 {
			find = find.Limit(q.Limit)
		}
		return find
	})
}

func (s *loginStore) Renew(ctx context.Context, l company.Login, from time.Time) error {
	return changeOne(ctx, s.db, fault.New(fault.Conflict, "the login was checked by another instance"),
		"UPDATE company_logins SET refresh = ?, answered_at = ?, recheck_at = ? WHERE id = ? AND recheck_at = ?",
		nilToEmpty(l.Refresh), database.NewInstant(l.AnsweredAt), database.NewInstant(l.RecheckAt), string(l.ID),
		database.NewInstant(from))
}

// DeleteAbandoned implements authstore.Logins. The index of the sessions finds the rows without one.
func (s *loginStore) DeleteAbandoned(ctx context.Context, before time.Time) (int, error) {
	return s.db.InBatches(ctx, func(ctx context.Context, tx bun.IDB) (int, error) {
		abandoned := tx.NewSelect().Model((*loginRow)(nil)).Column("id").Where("session_id IS NULL").
			Where("answered_at < ?", database.NewInstant(before)).Limit(database.BatchSize)
		return s.db.AffectedRows(tx.NewDelete().Model((*loginRow)(nil)).Where("id IN (?)", abandoned).Exec(ctx))
	})
}
