package acceptance

import (
	"bytes"
	"database/sql"
	"encoding/base32"
	"encoding/hex"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/uptrace/bun/driver/pgdriver"
)

// TestPasswordChange wants the new password to count at once, and nothing that the old one began to go on.
func TestPasswordChange(t *testing.T) {
	const renewed = "Another-Horse-8-Battery"
	each(t, func(t *testing.T, e *environment) {
		s := e.start(t)
		ada, thief := e.newPerson(t, "ada@example.com"), &person{email: "ada@example.com", device: map[string]string{"userAgent": "thief"}}
		thief.login(t, s)
		change := func(p *person, present, next string) answer {
			return p.post(t, s, "/auth/password", map[string]string{"currentPassword": present, "newPassword": next})
		}
		wantCode(t, change(thief, password, renewed).want(t, http.StatusForbidden), "insufficient_trust")
		ada.login(t, s)
		ada.stepUp(t, e, s)
		wantCode(t, change(ada, "Wrong-Horse-9", renewed).want(t, http.StatusUnauthorized), "invalid_credentials")
		for _, weak := range []string{"short", "Password123!"} {
			details := wantCode(t, change(ada, password, weak).want(t, http.StatusBadRequest), "validation_error")
			if fields, _ := details["fields"].(map[string]any); fields["newPassword"] == nil {
				t.Errorf("details are %v", details)
			}
		}
		wantCode(t, ada.post(t, s, "/auth/password", map[string]string{"newPassword": renewed}).want(t, http.StatusBadRequest), "invalid_input")
		change(ada, password, renewed).want(t, http.StatusOK)

		for call(t, "GET", s.api+"/sessions", nil, thief.bearer()...).status == http.StatusOK {
			// A copy of the session passes for less than a second more.
		}
		wantCode(t, call(t, "GET", s.api+"/sessions", nil, thief.bearer()...), "invalid_token")
		wantCode(t, call(t, "POST", s.api+"/auth/refresh", map[string]string{"refreshToken": thief.refreshToken}).want(t, http.StatusUnauthorized), "invalid_token")
		call(t, "GET", s.api+"/sessions", nil, ada.bearer()...).want(t, http.StatusOK)
		login := func(word string) answer {
			return call(t, "POST", s.api+"/auth/login", map[string]any{"email": ada.email, "password": word, "deviceInfo": ada.device})
		}
		wantCode(t, login(password).want(t, http.StatusUnauthorized), "invalid_credentials")
		login(renewed).want(t, http.StatusOK)

		for range 5 {
			wantCode(t, change(ada, "Wrong-Horse-9", renewed).want(t, http.StatusUnauthorized), "invalid_credentials")
		}
		wantCode(t, change(ada, renewed, password).want(t, http.StatusForbidden), "account_locked")
		login(renewed).want(t, http.StatusOK) // whoever guesses from within locks nobody out
	})
}

// TestSecondFactorsAreNotKeptInClear looks for them in all that the service keeps and logs.
func TestSecondFactorsAreNotKeptInClear(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		s := e.start(t)
		p := e.newPerson(t, "ada@example.com")
		app := e.enrol(t, p)
		user := p.half(t, s)
		code := app.code(t, 1)
		p.take(t, p.verify(t, s, user, code))
		p.half(t, s)
		p.take(t, p.verify(t, s, user, app.recovery[0]))
		p.half(t, s)

		raw, err := base32.StdEncoding.DecodeString(app.key.Secret())
		if err != nil {
			t.Fatal(err)
		}
		kept := append(e.kept(t), []byte(s.process.Log())...)
		if !bytes.Contains(kept, []byte(p.email)) {
			t.Fatal("what is kept does not even hold the address of the person")
		}
		secrets := append([]string{app.key.Secret(), string(raw), hex.EncodeToString(raw), p.deviceToken, p.refreshToken, p.accessToken, password}, app.recovery...)
		for _, secret := range secrets {
			plain := strings.ReplaceAll(secret, "-", "")
			for _, form := range []string{secret, plain, hex.EncodeToString([]byte(secret)), hex.EncodeToString([]byte(plain))} {
				if bytes.Contains(bytes.ToLower(kept), bytes.ToLower([]byte(form))) {
					t.Errorf("%q is kept in clear", form)
				}
			}
		}
	})
}

// kept returns all that the environment's records hold.
func (e *environment) kept(t *testing.T) []byte {
	t.Helper()
	if !e.shared {
		return files(t, filepath.Join(e.dir, "data"))
	}
	var address string
	for _, variable := range e.environ {
		if value, ok := strings.CutPrefix(variable, "DATABASE_URL="); ok {
			address = value
		}
	}
	db := sql.OpenDB(pgdriver.NewConnector(pgdriver.WithDSN(address)))
	defer func() { _ = db.Close() }() // nothing was written
	var text string
	err := db.QueryRowContext(t.Context(),
		"SELECT database_to_xml(true, false, '')::text").Scan(&text)
	if err != nil {
		t.Fatal(err)
	}
	return []byte(text)
}

func files(t *testing.T, dir string) []byte {
	t.Helper()
	var all []byte
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		all = append(all, content...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
