package authrecords

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
)

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

// Value implements driver.Valuer.
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

// Scan implements sql.Scanner.
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
