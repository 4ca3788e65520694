package authrecords

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
)

var _ authstore.Accounts = (*Accounts)(nil)

// Accounts keeps the records of people who sign in. It implements [authstore.Accounts].
type Accounts struct{ db *database.DB }

// NewAccounts returns the accounts of a database.
func NewAccounts(db *database.DB) *Accounts { return &Accounts{db: db} }

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
	ReplacedHash auth.PasswordHash `bun:"replaced_hash"`
	ReplacedAt   database.Instant  `bun:"replaced_at"`
	MFAEnrolled  database.Instant  `bun:"mfa_enrolled_at"`
	MFAEnroller  auth.SessionID    `bun:"mfa_enrolled_in"`
	CreatedAt    database.Instant  `bun:"created_at"`
	UpdatedAt    database.Instant  `bun:"updated_at"`
}

func rowOfAccount(a auth.Account) *accountRow {
	return &accountRow{
		ID: a.ID, Email: a.Email, Name: a.Name, Phone: a.Phone, PasswordHash: a.PasswordHash, State: a.State,
		MFASecret: filled(a.MFA.Secret), MFAActive: a.MFA.Active, MFALastStep: a.MFA.LastStep,
		MFARecovery: a.MFA.Recovery, MFAEnrolled: database.NewInstant(a.MFA.Enrolment.At), MFAEnroller: a.MFA.Enrolment.SessionID,
		ReplacedHash: a.Replaced.Hash, ReplacedAt: database.NewInstant(a.Replaced.At), CreatedAt: database.NewInstant(a.CreatedAt), UpdatedAt: database.NewInstant(a.UpdatedAt),
	}
}

func (r *accountRow) toAccount() auth.Account {
	return auth.Account{
		ID: r.ID, Email: r.Email, Name: r.Name, Phone: r.Phone, PasswordHash: r.PasswordHash, State: r.State,
		MFA: auth.MFA{
			Secret: emptied[auth.SealedSecret](r.MFASecret), Active: r.MFAActive, LastStep: r.MFALastStep, Recovery: r.MFARecovery,
			Enrolment: auth.Enrolment{At: r.MFAEnrolled.Time, SessionID: r.MFAEnroller},
		},
		Replaced:  auth.ReplacedPassword{Hash: r.ReplacedHash, At: r.ReplacedAt.Time},
		CreatedAt: r.CreatedAt.Time, UpdatedAt: r.UpdatedAt.Time,
	}
}

// Create adds an account.
func (s *Accounts) Create(ctx context.Context, a auth.Account) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		// A conflict must not fail the statement: the transaction may go on.
		n, err := s.db.AffectedRows(tx.NewInsert().Model(rowOfAccount(a)).On("CONFLICT DO NOTHING").Exec(ctx))
		if err == nil && n == 0 {
			return fault.New(fault.Conflict, "", "the e-mail address is already in use")
		}
		return err
	})
}

// Get returns the account of an id.
func (s *Accounts) Get(ctx context.Context, id auth.UserID) (auth.Account, error) {
	return database.Read(ctx, s.db, func(ctx context.Context, db bun.IDB) (auth.Account, error) {
		return s.findOne(ctx, db.NewSelect().Where("id = ?", id))
	})
}

// ByEmail returns the account of an address.
func (s *Accounts) ByEmail(ctx context.Context, email auth.Email) (auth.Account, error) {
	return database.Read(ctx, s.db, func(ctx context.Context, db bun.IDB) (auth.Account, error) {
		return s.findOne(ctx, db.NewSelect().Where("email = ?", email))
	})
}

// Update lets change alter an account.
func (s *Accounts) Update(ctx context.Context, id auth.UserID, change func(*auth.Account) error) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		a, err := s.findOne(ctx, s.db.LockForChange(tx.NewSelect().Where("id = ?", id)))
		if err != nil {
			return err
		}
		if err := change(&a); err != nil {
			return err
		}
		_, err = tx.NewUpdate().Model(rowOfAccount(a)).ExcludeColumn("id", "email", "created_at").
			Where("id = ?", id).Exec(ctx)
		return s.db.ClassifyError(err)
	})
}

// List returns accounts in the order of their addresses.
func (s *Accounts) List(ctx context.Context, after auth.Email, limit int) ([]auth.Account, error) {
	if limit < 1 {
		return nil, ctx.Err()
	}
	return database.Read(ctx, s.db, func(ctx context.Context, db bun.IDB) ([]auth.Account, error) {
		var rows []accountRow
		err := db.NewSelect().Model(&rows).Where("email > ?", after).Order("email").Limit(limit).Scan(ctx)
		if err != nil {
			return nil, s.db.ClassifyError(err)
		}
		list := make([]auth.Account, len(rows))
		for i := range rows {
			list[i] = rows[i].toAccount()
		}
		return list, nil
	})
}

func (s *Accounts) findOne(ctx context.Context, q *bun.SelectQuery) (auth.Account, error) {
	row := new(accountRow)
	if err := q.Model(row).Scan(ctx); err != nil {
		return auth.Account{}, classifyLookup(s.db, err, "account")
	}
	return row.toAccount(), nil
}

// recoveryHashes are the hashes of recovery codes as a column holds them: one
// behind the other.
type recoveryHashes []auth.RecoveryHash

// Value writes the hashes.
func (h recoveryHashes) Value() (driver.Value, error) {
	b := make([]byte, 0, len(h)*len(auth.RecoveryHash{}))
	for _, one := range h {
		b = append(b, one[:]...)
	}
	return b, nil
}

// Scan reads the hashes; none is nil.
func (h *recoveryHashes) Scan(src any) error {
	b, ok := src.([]byte)
	if !ok || len(b)%len(auth.RecoveryHash{}) != 0 {
		return fmt.Errorf("the recovery codes in the database are a %T of %d bytes", src, len(b))
	}
	*h = nil
	for one := range slices.Chunk(b, len(auth.RecoveryHash{})) {
		*h = append(*h, auth.RecoveryHash(one))
	}
	return nil
}
