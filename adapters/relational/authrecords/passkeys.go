package authrecords

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/auth"
)

// passkeyStore stores the passkeys of people. It implements [authstore.Passkeys].
type passkeyStore struct {
	table[auth.Passkey, passkeyRow]
}

type passkeyRow struct {
	bun.BaseModel `bun:"table:passkeys"`

	ID             auth.PasskeyID   `bun:"id,pk"`
	UserID         auth.UserID      `bun:"user_id"`
	CredentialID   []byte           `bun:"credential_id"`
	PublicKey      []byte           `bun:"public_key"`
	SignCount      int64            `bun:"sign_count"`
	Transports     string           `bun:"transports"` // separated by spaces
	AAGUID         []byte           `bun:"aaguid"`
	BackupEligible bool             `bun:"backup_eligible"`
	BackedUp       bool             `bun:"backed_up"`
	Name           string           `bun:"name"`
	CreatedAt      database.Instant `bun:"created_at"`
	LastUsedAt     database.Instant `bun:"last_used_at,nullzero"`
	SuspendedAt    database.Instant `bun:"suspended_at,nullzero"`
}

func newPasskeyRow(p auth.Passkey) *passkeyRow {
	return &passkeyRow{
		ID: p.ID, UserID: p.UserID, CredentialID: []byte(p.Credential.ID), PublicKey: p.PublicKey,
		SignCount: int64(p.SignCount), Transports: strings.Join(p.Transports, " "), AAGUID: p.AAGUID[:],
		BackupEligible: p.BackupEligible, BackedUp: p.BackedUp, Name: p.Name,
		CreatedAt: database.NewInstant(p.CreatedAt), LastUsedAt: database.NewInstant(p.LastUsedAt),
		SuspendedAt: database.NewInstant(p.SuspendedAt),
	}
}

func (r *passkeyRow) toPasskey() auth.Passkey {
	p := auth.Passkey{
		ID: r.ID, UserID: r.UserID, Name: r.Name, CreatedAt: r.CreatedAt.Time, LastUsedAt: r.LastUsedAt.Time,
		SuspendedAt: r.SuspendedAt.Time,
		Credential: auth.Credential{
			ID: auth.CredentialID(r.CredentialID), PublicKey: r.PublicKey,
			SignCount:      uint32(r.SignCount), // #nosec G115 -- is stored from one
			BackupEligible: r.BackupEligible, BackedUp: r.BackedUp,
		},
	}
	if r.Transports != "" {
		p.Transports = strings.Fields(r.Transports)
	}
	copy(p.AAGUID[:], r.AAGUID)
	return p
}

func (s *passkeyStore) Add(ctx context.Context, p auth.Passkey) error {
	return s.insertNew(ctx, p, "this passkey is registered already")
}

func (s *passkeyStore) Find(ctx context.Context, id auth.CredentialID) (auth.Passkey, error) {
	return s.find(ctx, "credential_id = ?", []byte(id))
}

func (s *passkeyStore) Of(ctx context.Context, user auth.UserID) ([]auth.Passkey, error) {
	return s.readList(ctx, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("user_id = ?", user).Order("created_at", "id")
	})
}

func (s *passkeyStore) Update(ctx context.Context, id auth.PasskeyID, change func(*auth.Passkey) error) error {
	return s.update(ctx, id, change, "user_id", "credential_id", "public_key", "transports", "aaguid",
		"backup_eligible", "created_at")
}

func (s *passkeyStore) Remove(ctx context.Context, user auth.UserID, id auth.PasskeyID) error {
	return changeOne(ctx, s.db, noSuchRecord("passkey"), "DELETE FROM passkeys WHERE user_id = ? AND id = ?",
		string(user), string(id))
}

// authenticators are the further authenticators of an account in a column of text: JSON, or empty if
// it has only the first.
type authenticators []auth.Authenticator

type authenticatorJSON struct {
	Name     string         `json:"name"`
	Secret   []byte         `json:"secret"`
	Active   bool           `json:"active"`
	LastStep int64          `json:"lastStep"`
	At       int64          `json:"enrolledAt"` // microseconds since 1970
	Session  auth.SessionID `json:"enrolledIn"`
}

func (all authenticators) Value() (driver.Value, error) {
	if len(all) == 0 {
		return "", nil
	}
	rows := make([]authenticatorJSON, len(all))
	for i := range all {
		a := &all[i]
		rows[i] = authenticatorJSON{
			a.Name, a.Secret, a.Active, a.LastStep, a.Enrolment.At.UnixMicro(), a.Enrolment.SessionID,
		}
	}
	text, err := json.Marshal(rows)
	return string(text), err
}

func (all *authenticators) Scan(src any) error {
	var text []byte
	switch s := src.(type) {
	case string:
		text = []byte(s)
	case []byte:
		text = s
	default:
		return fmt.Errorf("the authenticators in the database are a %T", src)
	}
	*all = nil
	if len(text) == 0 {
		return nil
	}
	var rows []authenticatorJSON
	if err := json.Unmarshal(text, &rows); err != nil {
		return fmt.Errorf("read the authenticators in the database: %w", err)
	}
	for _, r := range rows {
		*all = append(*all, auth.Authenticator{
			Name: r.Name, Secret: r.Secret, Active: r.Active, LastStep: r.LastStep,
			Enrolment: auth.Enrolment{At: time.UnixMicro(r.At).UTC(), SessionID: r.Session},
		})
	}
	return nil
}
