package authrecords

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authorization"
)

// requestStore stores authorization requests. It implements [authorization.Requests].
type requestStore struct {
	hashed[oauth.Request, requestRow]
}

type requestRow struct {
	bun.BaseModel `bun:"table:oauth_requests"`

	Hash        hash             `bun:"hash,pk"`
	Browser     hash             `bun:"browser"`
	Client      oauth.ClientID   `bun:"client"`
	RedirectURI string           `bun:"redirect_uri"`
	Challenge   string           `bun:"challenge"`
	Resource    string           `bun:"resource"`
	State       string           `bun:"state"`
	Scopes      string           `bun:"scopes"` // JSON
	Level       level            `bun:"trust_level"`
	MaxAge      time.Duration    `bun:"max_age"` // nanoseconds, so that no age is rounded
	Prompt      string           `bun:"prompt"`
	LoginHint   string           `bun:"login_hint"`
	CreatedAt   database.Instant `bun:"created_at"`
	ExpiresAt   database.Instant `bun:"expires_at"`
}

func newRequestRow(r oauth.Request) *requestRow {
	return &requestRow{
		Hash: hash(r.ID), Browser: hash(r.Browser), Client: r.Client, RedirectURI: r.RedirectURI,
		Challenge: r.Challenge, Resource: r.Resource, State: r.State, Scopes: joinNames(r.Scopes),
		Level: level{r.Level}, MaxAge: r.MaxAge, Prompt: r.Prompt, LoginHint: r.LoginHint,
		CreatedAt: database.NewInstant(r.CreatedAt), ExpiresAt: database.NewInstant(r.ExpiresAt),
	}
}

func (r *requestRow) toRequest() oauth.Request {
	return oauth.Request{
		ID: auth.TokenHash(r.Hash), Browser: auth.TokenHash(r.Browser), Client: r.Client,
		RedirectURI: r.RedirectURI, Challenge: r.Challenge, Resource: r.Resource, State: r.State,
		Scopes: splitNames(r.Scopes), Level: r.Level.TrustLevel, MaxAge: r.MaxAge, Prompt: r.Prompt,
		LoginHint: r.LoginHint, CreatedAt: r.CreatedAt.Time, ExpiresAt: r.ExpiresAt.Time,
	}
}

// Take implements authorization.Requests. Of parallel calls, one removes the row.
func (s *requestStore) Take(ctx context.Context, id auth.TokenHash) error {
	return changeOne(ctx, s.db, noSuchRecord(s.noun), "DELETE FROM oauth_requests WHERE hash = ?", hash(id))
}

func (s *requestStore) DeleteExpired(ctx context.Context, before time.Time) (int, error) {
	return s.removeExpired(ctx, before, "hash")
}

// familyStore stores families of tokens. It implements [authorization.Families].
type familyStore struct {
	keyed[oauth.FamilyID, oauth.Family, familyRow]
}

type familyRow struct {
	bun.BaseModel `bun:"table:oauth_families"`

	ID          oauth.FamilyID   `bun:"id,pk"`
	UserID      auth.UserID      `bun:"user_id"`
	SessionID   auth.SessionID   `bun:"session_id,nullzero"`
	Client      oauth.ClientID   `bun:"client"`
	ClientName  string           `bun:"client_name"`
	RedirectURI string           `bun:"redirect_uri"`
	Challenge   string           `bun:"challenge"`
	Resource    string           `bun:"resource"`
	Scopes      string           `bun:"scopes"` // JSON
	Level       level            `bun:"trust_level"`
	AuthTime    database.Instant `bun:"auth_time"`
	Provider    string           `bun:"provider,nullzero"`
	Subject     string           `bun:"subject"`
	Groups      *string          `bun:"group_names"` // JSON; nil for nil
	CreatedAt   database.Instant `bun:"created_at"`
	UsedAt      database.Instant `bun:"used_at"`
	ExpiresAt   database.Instant `bun:"expires_at"`
	EndedAt     database.Instant `bun:"ended_at"`
	EndReason   string           `bun:"end_reason"`
}

func newFamilyRow(f oauth.Family) *familyRow {
	r := &familyRow{
		ID: f.ID, UserID: f.UserID, SessionID: f.SessionID, Client: f.Client, ClientName: f.ClientName,
		RedirectURI: f.RedirectURI, Challenge: f.Challenge, Resource: f.Resource, Scopes: joinNames(f.Scopes),
		Level: level{f.Level}, AuthTime: database.NewInstant(f.AuthTime), Provider: f.Provider, Subject: f.Subject,
		CreatedAt: database.NewInstant(f.CreatedAt), UsedAt: database.NewInstant(f.UsedAt),
		ExpiresAt: database.NewInstant(f.ExpiresAt), EndedAt: database.NewInstant(f.EndedAt), EndReason: f.EndReason,
	}
	if f.Groups != nil {
		r.Groups = new(joinNames(f.Groups))
	}
	return r
}

func (r *familyRow) toFamily() oauth.Family {
	f := oauth.Family{
		ID: r.ID, UserID: r.UserID, SessionID: r.SessionID, Client: r.Client, ClientName: r.ClientName,
		RedirectURI: r.RedirectURI, Challenge: r.Challenge, Resource: r.Resource, Scopes: splitNames(r.Scopes),
		Level: r.Level.TrustLevel, AuthTime: r.AuthTime.Time, Provider: r.Provider, Subject: r.Subject,
		CreatedAt: r.CreatedAt.Time, UsedAt: r.UsedAt.Time, ExpiresAt: r.ExpiresAt.Time, EndedAt: r.EndedAt.Time,
		EndReason: r.EndReason,
	}
	if r.Groups != nil {
		f.Groups = append([]string{}, splitNames(*r.Groups)...)
	}
	return f
}

// Add implements authorization.Families. It locks the row of the account first, because two parallel
// calls would otherwise not see each other's family.
func (s *familyStore) Add(ctx context.Context, f oauth.Family) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		var user auth.UserID
		find := s.db.LockForChange(tx.NewSelect().Model((*accountRow)(nil)).Column("id").Where("id = ?", f.UserID))
		if err := s.db.ClassifyFind(find.Scan(ctx, &user), noSuchRecord("account")); err != nil {
			return err
		}
		at := database.NewInstant(f.CreatedAt)
		if _, err := s.db.ExecStatement(ctx, tx, `UPDATE oauth_families SET ended_at = ?, end_reason = ?
			WHERE id IN (SELECT f.id FROM oauth_families AS f WHERE f.user_id = ? AND f.client = ? AND f.ended_at IS NULL
				AND f.expires_at > ? AND (f.session_id IS NULL OR EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = f.session_id
					AND s.ended_at IS NULL AND s.expires_at > ?))
				ORDER BY f.used_at IS NULL, f.created_at DESC, f.id DESC LIMIT 1000 OFFSET ?)`,
			at, oauth.EndTooMany, string(f.UserID), string(f.Client), at, at, oauth.MaxFamilies-1); err != nil {
			return err
		}
		return s.insert(ctx, f)
	})
}

func (s *familyStore) Update(ctx context.Context, id oauth.FamilyID, change func(*oauth.Family) error) error {
	return s.update(ctx, id, change, "user_id", "session_id", "created_at")
}

func (s *familyStore) Active(
	ctx context.Context, user auth.UserID, at time.Time, limit int,
) ([]oauth.Family, error) {
	if limit < 1 {
		return nil, ctx.Err()
	}
	now := database.NewInstant(at)
	return s.readList(ctx, func(q *bun.SelectQuery) *bun.SelectQuery {
		return selectActive(q, user, at).Where("used_at IS NOT NULL").
			Where(`(session_id IS NULL OR EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = family_row.session_id
				AND s.ended_at IS NULL AND s.expires_at > ?))`, now).
			Order("created_at DESC", "id DESC").Limit(limit)
	})
}

// End implements authorization.Families. It locks the rows in the order of their ids, so that two calls
// never wait for each other.
func (s *familyStore) End(
	ctx context.Context, which authorization.FamilyFilter, at time.Time, reason string,
) (ended int, err error) {
	if which == (authorization.FamilyFilter{}) {
		return 0, fault.New(fault.Internal, "the filter of families is empty")
	}
	now := database.NewInstant(at)
	err = s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		q := tx.NewSelect().Model((*familyRow)(nil)).Column("id").Where("ended_at IS NULL").
			Where("expires_at > ?", now)
		for condition, value := range map[string]string{
			"user_id = ?": string(which.UserID), "provider = ?": which.Provider, "resource = ?": which.Resource,
			// the beginnings are in indexes
			"substr(client, 1, 200) = substr(?0, 1, 200) AND client = ?0":   string(which.Client),
			"substr(subject, 1, 200) = substr(?0, 1, 200) AND subject = ?0": which.Subject,
		} {
			if value != "" {
				q.Where(condition, value)
			}
		}
		ended, err = s.db.AffectedRows(tx.NewUpdate().Model((*familyRow)(nil)).Set("ended_at = ?", now).
			Set("end_reason = ?", reason).Where("id IN (?)", s.db.LockForChange(q.Order("id"))).Exec(ctx))
		return err
	})
	return ended, err
}

// DeleteExpired implements authorization.Families. It removes the secrets first, of which a family may
// have thousands, so that no transaction is too long.
func (s *familyStore) DeleteExpired(ctx context.Context, before time.Time) (total int, err error) {
	for _, column := range []bun.Ident{"expires_at", "ended_at"} { // each has its index
		if _, err := s.db.InBatches(ctx, func(ctx context.Context, tx bun.IDB) (int, error) {
			over := tx.NewSelect().Model((*secretRow)(nil)).Column("secret_row.hash").
				Join("JOIN oauth_families AS f ON f.id = secret_row.family_id").
				Where("f.? < ?", column, database.NewInstant(before)).Limit(database.BatchSize)
			return s.db.AffectedRows(tx.NewDelete().Model((*secretRow)(nil)).Where("hash IN (?)", over).Exec(ctx))
		}); err != nil {
			return total, err
		}
		n, err := s.removePast(ctx, column, before, "id")
		if total += n; err != nil {
			return total, err
		}
	}
	return total, nil
}

// secretStore stores the hashes of codes and refresh tokens. It implements [authorization.Secrets].
type secretStore struct {
	hashed[oauth.Secret, secretRow]
}

type secretRow struct {
	bun.BaseModel `bun:"table:oauth_secrets"`

	Hash      hash             `bun:"hash,pk"`
	Family    oauth.FamilyID   `bun:"family_id"`
	Code      bool             `bun:"code"`
	IssuedAt  database.Instant `bun:"issued_at"`
	ExpiresAt database.Instant `bun:"expires_at"`
	SpentAt   database.Instant `bun:"spent_at"`
}

func newSecretRow(s oauth.Secret) *secretRow {
	return &secretRow{
		Hash: hash(s.Hash), Family: s.Family, Code: s.Code, IssuedAt: database.NewInstant(s.IssuedAt),
		ExpiresAt: database.NewInstant(s.ExpiresAt), SpentAt: database.NewInstant(s.SpentAt),
	}
}

func (r *secretRow) toSecret() oauth.Secret {
	return oauth.Secret{
		Hash: auth.TokenHash(r.Hash), Family: r.Family, Code: r.Code, IssuedAt: r.IssuedAt.Time,
		ExpiresAt: r.ExpiresAt.Time, SpentAt: r.SpentAt.Time,
	}
}

func (s *secretStore) Spend(ctx context.Context, h auth.TokenHash, when time.Time) error {
	return s.spend(ctx, h, when)
}

// consentStore stores consents. It implements [authorization.Consents].
type consentStore struct {
	table[oauth.Consent, consentRow]
}

type consentRow struct {
	bun.BaseModel `bun:"table:oauth_consents"`

	Hash      hash             `bun:"hash,pk"` // of what it is for
	UserID    auth.UserID      `bun:"user_id"`
	Client    oauth.ClientID   `bun:"client"`
	Host      string           `bun:"host"`
	Resource  string           `bun:"resource"`
	Scopes    string           `bun:"scopes"` // JSON
	Terms     hash             `bun:"terms"`
	GivenAt   database.Instant `bun:"given_at"`
	ExpiresAt database.Instant `bun:"expires_at"`
}

func newConsentRow(c oauth.Consent) *consentRow {
	return &consentRow{
		Hash: hashOf(string(c.UserID), string(c.Client), c.Host, c.Resource), UserID: c.UserID, Client: c.Client,
		Host: c.Host, Resource: c.Resource, Scopes: joinNames(c.Scopes), Terms: hash(c.Terms),
		GivenAt: database.NewInstant(c.GivenAt), ExpiresAt: database.NewInstant(c.ExpiresAt),
	}
}

func (r *consentRow) toConsent() oauth.Consent {
	return oauth.Consent{
		UserID: r.UserID, Client: r.Client, Host: r.Host, Resource: r.Resource, Scopes: splitNames(r.Scopes),
		Terms: auth.TokenHash(r.Terms), GivenAt: r.GivenAt.Time, ExpiresAt: r.ExpiresAt.Time,
	}
}

// hashOf returns the key of a row that long texts identify.
func hashOf(texts ...string) hash { return sha256.Sum256(fmt.Appendf(nil, "%q", texts)) }

func (s *consentStore) Put(ctx context.Context, c oauth.Consent) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		_, err := tx.NewInsert().Model(newConsentRow(c)).On("CONFLICT (hash) DO UPDATE").
			Set("scopes = EXCLUDED.scopes").Set("terms = EXCLUDED.terms").
			Set("given_at = EXCLUDED.given_at").Set("expires_at = EXCLUDED.expires_at").Exec(ctx)
		return s.db.ClassifyError(err)
	})
}

func (s *consentStore) Find(
	ctx context.Context, user auth.UserID, client oauth.ClientID, host, resource string,
) (oauth.Consent, error) {
	return s.find(ctx, "hash = ?", hashOf(string(user), string(client), host, resource))
}

func (s *consentStore) Remove(ctx context.Context, which authorization.FamilyFilter) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		q := tx.NewDelete().Model((*consentRow)(nil))
		for column, value := range map[string]string{
			"user_id": string(which.UserID), "client": string(which.Client), "resource": which.Resource,
		} {
			if value != "" {
				q.Where("? = ?", bun.Ident(column), value)
			}
		}
		_, err := q.Exec(ctx) // bun refuses one without a condition
		return s.db.ClassifyError(err)
	})
}

func (s *consentStore) DeleteExpired(ctx context.Context, before time.Time) (int, error) {
	return s.removeExpired(ctx, before, "hash")
}

// sightingStore stores what happened when documents were read. It implements [authorization.Sightings].
type sightingStore struct {
	table[oauth.Sighting, sightingRow]
}

type sightingRow struct {
	bun.BaseModel `bun:"table:oauth_sightings"`

	Hash    hash             `bun:"hash,pk"` // of the URL
	URL     oauth.ClientID   `bun:"url"`
	Name    string           `bun:"name"`
	Problem string           `bun:"problem"`
	At      database.Instant `bun:"seen_at"`
}

func newSightingRow(s oauth.Sighting) *sightingRow {
	return &sightingRow{
		Hash: hashOf(string(s.URL)), URL: s.URL, Name: s.Name, Problem: s.Problem, At: database.NewInstant(s.At),
	}
}

func (r *sightingRow) toSighting() oauth.Sighting {
	return oauth.Sighting{URL: r.URL, Name: r.Name, Problem: r.Problem, At: r.At.Time}
}

func (s *sightingStore) Note(ctx context.Context, sighting oauth.Sighting) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		_, err := tx.NewInsert().Model(newSightingRow(sighting)).On("CONFLICT (hash) DO UPDATE").
			Set("name = EXCLUDED.name").Set("problem = EXCLUDED.problem").Set("seen_at = EXCLUDED.seen_at").Exec(ctx)
		if err != nil {
			return s.db.ClassifyError(err)
		}
		_, err = s.db.ExecStatement(ctx, tx, `DELETE FROM oauth_sightings WHERE hash IN (SELECT hash FROM oauth_sightings
			ORDER BY seen_at DESC, hash DESC LIMIT 1000 OFFSET ?)`, oauth.MaxSightings)
		return err
	})
}

func (s *sightingStore) List(ctx context.Context, limit int) ([]oauth.Sighting, error) {
	if limit < 1 {
		return nil, ctx.Err()
	}
	return s.readList(ctx, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Order("seen_at DESC", "hash DESC").Limit(limit)
	})
}
