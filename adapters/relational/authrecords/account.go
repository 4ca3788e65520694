package authrecords

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/auth"
)

// accountStore stores the accounts of people. It implements [authstore.Accounts].
type accountStore struct {
	table[auth.Account, accountRow]
}

type accountRow struct {
	bun.BaseModel `bun:"table:accounts"`

	ID           auth.UserID       `bun:"id,pk"`
	Email        auth.Email        `bun:"email"`
	Name         string            `bun:"name"`
	Phone        string            `bun:"phone"`
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
		ID: a.ID, Email: a.Email, Name: a.Name, Phone: a.Phone, PasswordHash: a.PasswordHash, State: a.State,
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
		ID: r.ID, Email: r.Email, Name: r.Name, Phone: r.Phone, PasswordHash: r.PasswordHash, State: r.State,
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

func (s *accountStore) Get(ctx context.Context, id auth.UserID) (auth.Account, error) {
	return s.find(ctx, "id = ?", id)
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

// Value implements driver.Valuer.
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
