package authrecords

import (
	"context"
	"net/netip"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/scope"
)

// apiTokenStore stores the hashes of tokens of people and of service accounts. It implements
// [authstore.APITokens] and [authstore.APITokenExpiry].
type apiTokenStore struct {
	table[auth.APIToken, apiTokenRow]
}

type apiTokenRow struct {
	bun.BaseModel `bun:"table:api_tokens"`

	ID           auth.APITokenID  `bun:"id,pk"`
	Hash         hash             `bun:"hash"`
	UserID       auth.UserID      `bun:"user_id,nullzero"`
	Service      string           `bun:"service,nullzero"`
	Name         string           `bun:"name"`
	Prefix       string           `bun:"prefix"`
	Scopes       string           `bun:"scopes"`
	Networks     string           `bun:"networks"`
	Workload     bool             `bun:"workload"`
	CreatedBy    auth.Owner       `bun:"created_by"`
	CreatedAt    database.Instant `bun:"created_at"`
	ExpiresAt    database.Instant `bun:"expires_at"`
	NoticeAt     database.Instant `bun:"notice_at,nullzero"`
	LastUsedAt   database.Instant `bun:"last_used_at,nullzero"`
	LastUsedFrom address          `bun:"last_used_from"`
}

func newAPITokenRow(t auth.APIToken) *apiTokenRow {
	r := &apiTokenRow{
		ID: t.ID, Hash: hash(t.Hash), Name: t.Name, Prefix: t.Prefix, Scopes: t.Scopes.String(), Workload: t.Workload,
		CreatedBy: t.CreatedBy, CreatedAt: database.NewInstant(t.CreatedAt), ExpiresAt: database.NewInstant(t.ExpiresAt),
		NoticeAt: database.NewInstant(t.NoticeAt), LastUsedAt: database.NewInstant(t.LastUsedAt),
		LastUsedFrom: address{t.LastUsedFrom},
	}
	if service, ok := t.Owner.Service(); ok {
		r.Service = service
	} else {
		r.UserID = auth.UserID(t.Owner)
	}
	networks := each.Texts(t.Networks)
	r.Networks = strings.Join(networks, " ")
	return r
}

func (r *apiTokenRow) toAPIToken() auth.APIToken {
	t := auth.APIToken{
		ID: r.ID, Hash: auth.TokenHash(r.Hash), Owner: auth.Owner(r.UserID), Name: r.Name, Prefix: r.Prefix,
		Workload: r.Workload, CreatedBy: r.CreatedBy, CreatedAt: r.CreatedAt.Time, ExpiresAt: r.ExpiresAt.Time,
		NoticeAt: r.NoticeAt.Time, LastUsedAt: r.LastUsedAt.Time, LastUsedFrom: r.LastUsedFrom.Addr,
	}
	if r.Service != "" {
		t.Owner = auth.ServiceOwner(r.Service)
	}
	for _, text := range strings.Fields(r.Scopes) {
		t.Scopes = append(t.Scopes, scope.Scope(text))
	}
	for _, text := range strings.Fields(r.Networks) {
		n, _ := netip.ParsePrefix(text) // a network that does not parse contains no address
		t.Networks = append(t.Networks, n)
	}
	return t
}

// ofOwner returns the condition for the tokens of an owner.
func ofOwner(o auth.Owner) (condition string, owner string) {
	if service, ok := o.Service(); ok {
		return "service = ?", service
	}
	return "user_id = ?", string(o)
}

// Add implements authstore.APITokens. It locks the row of the owner, because two parallel calls
// would otherwise not see each other's token.
func (s *apiTokenStore) Add(ctx context.Context, t auth.APIToken) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		condition, owner := ofOwner(t.Owner)
		locked := tx.NewSelect().Table("accounts").Column("id").Where("id = ?", owner)
		if _, ok := t.Owner.Service(); ok {
			locked = tx.NewSelect().Table("service_accounts").Column("name").Where("name = ?", owner)
		}
		var found string
		if err := s.db.LockForChange(locked).Scan(ctx, &found); err != nil {
			return s.db.ClassifyFind(err, noSuchRecord(s.noun))
		}
		n, err := tx.NewSelect().Model((*apiTokenRow)(nil)).Where(condition, owner).Where("NOT workload").
			Where("expires_at > ?", database.NewInstant(t.CreatedAt)).Count(ctx)
		if err != nil {
			return s.db.ClassifyError(err)
		}
		if n >= t.Owner.MaxTokens() && !t.Workload {
			return fault.Newf(fault.Conflict, "there are %d tokens already: delete one that is not needed", n)
		}
		return s.insert(ctx, t)
	})
}

func (s *apiTokenStore) Find(ctx context.Context, h auth.TokenHash) (auth.APIToken, error) {
	return s.find(ctx, `hash = ? AND (user_id IN (SELECT id FROM accounts WHERE state = 'active') OR
		service IN (SELECT name FROM service_accounts WHERE state = 'active'))`, hash(h))
}

func (s *apiTokenStore) Of(
	ctx context.Context, owner auth.Owner, after auth.APITokenID, limit int,
) ([]auth.APIToken, error) {
	condition, arg := ofOwner(owner)
	return s.readList(ctx, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where(condition, arg).Where("NOT workload").Where("id > ?", after).Order("id").Limit(limit)
	})
}

func (s *apiTokenStore) Remove(ctx context.Context, owner auth.Owner, id auth.APITokenID) (t auth.APIToken, err error) {
	condition, arg := ofOwner(owner)
	err = s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		t, err = s.findOne(ctx, s.db.LockForChange(tx.NewSelect().Where("id = ?", id).
			Where(condition, arg).Where("NOT workload")))
		if err != nil {
			return err
		}
		_, err = tx.NewDelete().Model((*apiTokenRow)(nil)).Where("id = ?", id).Exec(ctx)
		return s.db.ClassifyError(err)
	})
	return t, err
}

func (s *apiTokenStore) Use(ctx context.Context, t auth.APIToken) error {
	at := database.NewInstant(t.LastUsedAt)
	_, err := s.db.Exec(ctx, `UPDATE api_tokens SET last_used_at = ?, last_used_from = ?
		WHERE id = ? AND (last_used_at IS NULL OR last_used_at < ?)`, at, address{t.LastUsedFrom}, t.ID, at)
	return err
}

func (s *apiTokenStore) Due(ctx context.Context, now time.Time, limit int) ([]auth.APIToken, error) {
	return s.readList(ctx, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("notice_at <= ?", database.NewInstant(now)).Order("notice_at").Limit(limit)
	})
}

func (s *apiTokenStore) MoveNotice(ctx context.Context, id auth.APITokenID, from, to time.Time) error {
	return changeOne(ctx, s.db, fault.New(fault.Conflict, "the end of the token was announced already"),
		"UPDATE api_tokens SET notice_at = ? WHERE id = ? AND notice_at = ?", database.NewInstant(to), id,
		database.NewInstant(from))
}

func (s *apiTokenStore) DeleteExpired(ctx context.Context, before time.Time) (int, error) {
	return s.removeExpired(ctx, before, "id")
}
