package authrecords

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/auth"
)

// accountStore stores the accounts of people. It implements [authstore.Accounts].
type accountStore struct {
	keyed[auth.UserID, auth.Account, accountRow]
}

type accountRow struct {
	bun.BaseModel `bun:"table:accounts"`

	ID           auth.UserID       `bun:"id,pk"`
	Email        auth.Email        `bun:"email"`
	Name         string            `bun:"name"`
	Phone        string            `bun:"phone"`
	PhonePending bool              `bun:"phone_pending"`
	PasswordHash auth.PasswordHash `bun:"password_hash"`
	State        auth.AccountState `bun:"state"`
	MFASecret    []byte            `bun:"mfa_secret"`
	MFAActive    bool              `bun:"mfa_active"`
	MFALastStep  int64             `bun:"mfa_last_step"`
	MFARecovery  recoveryHashes    `bun:"mfa_recovery"`
	MFAName      string            `bun:"mfa_name"`
	MFAMore      authenticators    `bun:"mfa_more"`
	ReplacedHash auth.PasswordHash `bun:"replaced_hash"`
	ReplacedAt   database.Instant  `bun:"replaced_at"`
	MFAEnrolled  database.Instant  `bun:"mfa_enrolled_at"`
	MFAEnroller  auth.SessionID    `bun:"mfa_enrolled_in"`
	AdmitUntil   database.Instant  `bun:"admitted_until,nullzero"`
	CreatedAt    database.Instant  `bun:"created_at"`
	UpdatedAt    database.Instant  `bun:"updated_at"`
}

func newAccountRow(a auth.Account) *accountRow {
	return &accountRow{
		ID: a.ID, Email: a.Email, Name: a.Name, Phone: a.Phone, PhonePending: a.PhonePending,
		PasswordHash: a.PasswordHash, State: a.State,
		MFASecret: nilToEmpty(a.MFA.Secret), MFAActive: a.MFA.Active, MFALastStep: a.MFA.LastStep,
		MFARecovery: a.MFA.Recovery, MFAEnrolled: database.NewInstant(a.MFA.Enrolment.At),
		MFAEnroller: a.MFA.Enrolment.SessionID, MFAName: a.MFA.Name, MFAMore: a.MFA.More,
		ReplacedHash: a.Replaced.Hash, ReplacedAt: database.NewInstant(a.Replaced.At),
		AdmitUntil: database.NewInstant(a.AdmittedUntil),
		CreatedAt:  database.NewInstant(a.CreatedAt), UpdatedAt: database.NewInstant(a.UpdatedAt),
	}
}

func (r *accountRow) toAccount() auth.Account {
	return auth.Account{
		ID: r.ID, Email: r.Email, Name: r.Name, Phone: r.Phone, PhonePending: r.PhonePending,
		PasswordHash: r.PasswordHash, State: r.State,
		MFA: auth.MFA{
			Secret: emptyToNil[auth.SealedSecret](r.MFASecret), Active: r.MFAActive, LastStep: r.MFALastStep,
			Recovery: r.MFARecovery, Name: r.MFAName, More: r.MFAMore,
			Enrolment: auth.Enrolment{At: r.MFAEnrolled.Time, SessionID: r.MFAEnroller},
		},
		Replaced:      auth.ReplacedPassword{Hash: r.ReplacedHash, At: r.ReplacedAt.Time},
		AdmittedUntil: r.AdmitUntil.Time,
		CreatedAt:     r.CreatedAt.Time, UpdatedAt: r.UpdatedAt.Time,
	}
}

// Create implements authstore.Accounts. A conflict is not an error of the statement, so that the
// transaction can go on.
func (s *accountStore) Create(ctx context.Context, a auth.Account) error {
	return s.insertNew(ctx, a, "the e-mail address is already in use")
}

func (s *accountStore) ByEmail(ctx context.Context, email auth.Email) (auth.Account, error) {
	return s.find(ctx, "email = ?", email)
}

func (s *accountStore) Update(ctx context.Context, id auth.UserID, change func(*auth.Account) error) error {
	return s.update(ctx, id, change, "email", "created_at")
}

func (s *accountStore) List(ctx context.Context, after auth.Email, limit int) ([]auth.Account, error) {
	if limit < 1 {
		return nil, ctx.Err()
	}
	return s.readList(ctx, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("email > ?", after).Order("email").Limit(limit)
	})
}

// recoveryHashes are the hashes of recovery codes in a column of bytes, one after the other.
type recoveryHashes []auth.RecoveryHash

func (h recoveryHashes) Value() (driver.Value, error) {
	b := make([]byte, 0, len(h)*len(auth.RecoveryHash{}))
	for _, recovery := range h {
		b = append(b, recovery[:]...)
	}
	return b, nil
}

// Scan implements sql.Scanner. An empty column is nil.
func (h *recoveryHashes) Scan(src any) error {
	b, ok := src.([]byte)
	if !ok || len(b)%len(auth.RecoveryHash{}) != 0 {
		return fmt.Errorf("the recovery codes in the database are a %T of %d bytes", src, len(b))
	}
	*h = nil
	for recovery := range slices.Chunk(b, len(auth.RecoveryHash{})) {
		*h = append(*h, auth.RecoveryHash(recovery))
	}
	return nil
}

// lockoutStore stores the counts of failed sign-ins. It implements [authstore.Lockouts].
type lockoutStore struct{ db *database.DB }

type lockoutRow struct {
	bun.BaseModel `bun:"table:lockouts,alias:l"`

	Key         auth.LockoutKey   `bun:"key,pk"`
	FailedAt    database.Instants `bun:"failed_at"`
	LockedUntil database.Instant  `bun:"locked_until"`
	Latest      database.Instant  `bun:"latest"` // the last failure or the end of the lock, for DeleteBefore
}

func newLockoutRow(key auth.LockoutKey, l *auth.Lockout) *lockoutRow {
	latest := l.Latest()
	if latest.IsZero() {
		latest = time.Unix(0, 0) // no NULL, so that one range of the index has all lockouts that are over
	}
	return &lockoutRow{
		Key: key, FailedAt: l.Failures, LockedUntil: database.NewInstant(l.LockedUntil),
		Latest: database.NewInstant(latest),
	}
}

func (r *lockoutRow) toLockout() auth.Lockout {
	return auth.Lockout{Failures: r.FailedAt, LockedUntil: r.LockedUntil.Time}
}

// Update implements authstore.Lockouts. It first inserts the row if there is no row to lock. If
// there is one, the statement does not change it, but locks it.
func (s *lockoutStore) Update(ctx context.Context, key auth.LockoutKey, change func(*auth.Lockout) error) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		row := newLockoutRow(key, &auth.Lockout{})
		err := tx.NewInsert().Model(row).On("CONFLICT (key) DO UPDATE").Set("key = EXCLUDED.key").
			Returning("*").Scan(ctx)
		if err != nil {
			return s.db.ClassifyError(err)
		}
		l := row.toLockout()
		if err := change(&l); err != nil {
			return err
		}
		_, err = tx.NewUpdate().Model(newLockoutRow(key, &l)).WherePK().Exec(ctx)
		return s.db.ClassifyError(err)
	})
}

func (s *lockoutStore) Get(ctx context.Context, key auth.LockoutKey) (auth.Lockout, error) {
	return database.Read(ctx, s.db, func(ctx context.Context, db bun.IDB) (auth.Lockout, error) {
		row := new(lockoutRow)
		err := db.NewSelect().Model(row).Where("key = ?", key).Scan(ctx)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return auth.Lockout{}, s.db.ClassifyError(err)
		}
		return row.toLockout(), nil
	})
}

func (s *lockoutStore) DeleteBefore(ctx context.Context, before time.Time) (int, error) {
	return s.db.InBatches(ctx, func(ctx context.Context, tx bun.IDB) (int, error) {
		old := s.db.LockForChange(tx.NewSelect().Model((*lockoutRow)(nil)).Column("key").
			Where("latest < ?", database.NewInstant(before)).Order("latest", "key").Limit(database.BatchSize))
		return s.db.AffectedRows(tx.NewDelete().Model((*lockoutRow)(nil)).Where("key IN (?)", old).Exec(ctx))
	})
}

// linkStore stores the hashes of links. It implements [authstore.Links].
type linkStore struct{ hashed[auth.Link, linkRow] }

type linkRow struct {
	bun.BaseModel `bun:"table:links"`

	Hash      hash             `bun:"hash,pk"`
	Purpose   auth.LinkPurpose `bun:"purpose"`
	UserID    auth.UserID      `bun:"user_id,nullzero"`
	CreatedAt database.Instant `bun:"created_at"`
	ExpiresAt database.Instant `bun:"expires_at"`
	Asker     string           `bun:"asker"`
	AskedFrom address          `bun:"asked_from"`
	Answer    hash             `bun:"answer,nullzero"`
	SessionID auth.SessionID   `bun:"session_id,nullzero"`
}

func newLinkRow(l auth.Link) *linkRow {
	return &linkRow{
		Hash: hash(l.Hash), Purpose: l.Purpose, UserID: l.UserID,
		CreatedAt: database.NewInstant(l.CreatedAt), ExpiresAt: database.NewInstant(l.ExpiresAt),
		Asker: l.Asker, AskedFrom: address{l.AskedFrom}, Answer: hash(l.Answer), SessionID: l.SessionID,
	}
}

func (r *linkRow) toLink() auth.Link {
	return auth.Link{
		Hash: auth.TokenHash(r.Hash), Purpose: r.Purpose, UserID: r.UserID,
		CreatedAt: r.CreatedAt.Time, ExpiresAt: r.ExpiresAt.Time,
		Asker: r.Asker, AskedFrom: r.AskedFrom.Addr, Answer: auth.TokenHash(r.Answer), SessionID: r.SessionID,
	}
}

func (s *linkStore) Put(ctx context.Context, l auth.Link) error { return s.insert(ctx, l) }

// Take implements authstore.Links. Of parallel calls, one removes the row.
func (s *linkStore) Take(ctx context.Context, h auth.TokenHash) error {
	return changeOne(ctx, s.db, noSuchRecord("link"), "DELETE FROM links WHERE hash = ?", hash(h))
}

func (s *linkStore) RemoveAll(ctx context.Context, user auth.UserID, purposes ...auth.LinkPurpose) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		q := tx.NewDelete().Model((*linkRow)(nil)).Where("purpose IN (?)", bun.List(purposes))
		if user == "" {
			q = q.Where("user_id IS NULL")
		} else {
			q = q.Where("user_id = ?", user)
		}
		_, err := q.Exec(ctx)
		return s.db.ClassifyError(err)
	})
}

func (s *linkStore) DeleteExpired(ctx context.Context, before time.Time) (int, error) {
	return s.removeExpired(ctx, before, "hash")
}
