package authentication

import (
	"bytes"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/valkey-io/valkey-go"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// secrets holds the secrets that a full run sends and receives, by description, and the text of its
// refusals.
type secrets struct {
	values   map[string]string
	codes    []string // short secrets, searched for as whole words
	refusals bytes.Buffer
}

func (k *secrets) add(name, value string) {
	if len(value) < 8 {
		panic("too short to be looked for: " + name)
	}
	k.values[name] = value
}

// addTokens adds the tokens of a session.
func (k *secrets) addTokens(when string, p *fixture.Person) {
	k.add("access token "+when, p.AccessToken)
	k.add("refresh token "+when, p.RefreshToken)
	if p.DeviceToken != "" {
		k.add("device token "+when, p.DeviceToken)
	}
}

func (k *secrets) recordRefusal(a apiclient.Response) {
	fmt.Fprintln(&k.refusals, a.Status, a.Header, string(a.Body))
}

// TestNoSecretIsKeptInClear searches the log, the error responses, the audit log, all records and
// the counter store for every password, code and token of a full run.
func TestNoSecretIsKeptInClear(t *testing.T) {
	fixture.InBothEnvironments(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t, append([]string{"LOG_LEVEL=debug", "PACKAGE_CHECKS=off"}, fixture.RelaxedRiskSettings...)...)
		p := e.NewPerson(t, "ada@example.com", "publish *")
		k := runEverything(t, e, s, p)
		places := map[string][]byte{
			"log": serviceLines(s.Process.Log()), "error answers": k.refusals.Bytes(),
			"audit log": apiclient.Call(t, "GET", s.API+"/audit-logs?limit=1000", nil, p.Bearer()...).WantStatus(t,
				http.StatusOK).Body,
			"records": readEveryColumn(t, e),
		}
		if e.Shared {
			places["files"] = readFiles(t, filepath.Join(e.Dir, "data"))
			places["store"] = append(readEveryKey(t), readSessionCopy(t, s, p)...)
		}
		if !bytes.Contains(places["records"], []byte(p.Email)) ||
			!bytes.Contains(places["audit log"], []byte("REGISTRY_CHANGE")) {
			t.Fatal("what was looked at does not hold what the run did")
		}
		for place, content := range places {
			k.searchPlace(t, place, content)
		}
	})
}

// searchPlace checks that a place does not contain any of the secrets in any encoding.
func (k *secrets) searchPlace(t *testing.T, place string, content []byte) {
	t.Helper()
	lower := bytes.ToLower(content)
	for name, value := range k.values {
		for _, form := range append(base64Forms(value), value, hex.EncodeToString([]byte(value))) {
			if bytes.Contains(lower, []byte(strings.ToLower(form))) {
				t.Errorf("%s: the %s is there in clear, as %s", place, name, form)
			}
		}
	}
	codes := regexp.MustCompile(`[^0-9A-Za-z.](` + strings.Join(k.codes, "|") + `)[^0-9A-Za-z]`)
	for _, at := range codes.FindAllIndex(content, 10) {
		t.Errorf("%s: a code is there in clear: %q", place, content[max(at[0]-80, 0):at[1]])
	}
}

// base64Forms returns how base64 writes a secret that begins at each of the
// three places of a group, but for the characters that its neighbours share.
func base64Forms(value string) []string {
	var forms []string
	for shift := range 3 {
		padded := strings.Repeat("\x00", shift) + value
		padded = padded[:len(padded)/3*3]
		std := base64.StdEncoding.EncodeToString([]byte(padded))
		if shift > 0 {
			std = std[4:]
		}
		forms = append(forms, std, strings.NewReplacer("+", "-", "/", "_").Replace(std))
	}
	return forms
}

// runEverything performs all actions of a person who signs in, including failures.
func runEverything(t *testing.T, e *fixture.Environment, s *fixture.Service, p *fixture.Person) *secrets {
	t.Helper()
	k := &secrets{values: map[string]string{}}
	const wrong, renewed = "Wrong-Horse-9-Battery", "Another-Horse-8-Battery"
	for name, value := range map[string]string{
		"password": fixture.Password, "wrong password": wrong, "new password": renewed,
	} {
		k.add(name, value)
	}
	login := func(word string) apiclient.Response {
		return apiclient.Call(t, "POST", s.API+"/auth/login", map[string]any{
			"email": p.Email, "password": word, "deviceInfo": p.Device,
		})
	}
	k.recordRefusal(login(wrong).WantStatus(t, http.StatusUnauthorized))
	p.Login(t, s)
	k.addTokens("of the first login", p)
	k.recordRefusal(p.PostJSON(t, s, "/v0.1/publish", fixture.NewServerDocument("com.example/secret", "1.0.0")).
		WantStatus(t, http.StatusForbidden))

	id := startChallenge(t, p, s)
	k.recordRefusal(apiclient.Call(t, "POST", s.API+"/auth/step-up/verify", map[string]string{
		"challengeId": id, "otp": "314159",
	}).WantStatus(t, http.StatusUnauthorized))
	k.codes = append(k.codes, "314159", e.LastCode(t, p.Email))
	p.StepUp(t, e, s)
	k.codes = append(k.codes, e.LastCode(t, p.Email))
	k.addTokens("after step-up", p)
	p.PostJSON(t, s, "/v0.1/publish", fixture.NewServerDocument("com.example/secret", "1.0.0")).WantStatus(t,
		http.StatusOK)

	spent := p.RefreshToken
	var next struct{ AccessToken, RefreshToken string }
	apiclient.Call(t, "POST", s.API+"/auth/refresh", map[string]string{"refreshToken": spent}).WantStatus(t,
		http.StatusOK).Decode(t, &next)
	p.AccessToken, p.RefreshToken = next.AccessToken, next.RefreshToken
	k.addTokens("after a refresh", p)
	k.recordRefusal(p.PostJSON(t, s, "/auth/password", map[string]string{
		"currentPassword": wrong, "newPassword": renewed,
	}).WantStatus(t, http.StatusUnauthorized))
	k.recordRefusal(p.PostJSON(t, s, "/auth/password", map[string]string{
		"currentPassword": fixture.Password, "newPassword": "Short1!",
	}).WantStatus(t, badRequest))
	for _, word := range [][2]string{{fixture.Password, renewed}, {renewed, fixture.Password}} {
		p.PostJSON(t, s, "/auth/password", map[string]string{"currentPassword": word[0], "newPassword": word[1]}).
			WantStatus(t, http.StatusOK)
	}
	k.recordRefusal(apiclient.Call(t, "GET", s.API+"/devices", nil, "Authorization", "Bearer "+next.RefreshToken).
		WantStatus(t, http.StatusUnauthorized))

	withSecondFactor(t, s, p, k)
	k.recordRefusal(apiclient.Call(t, "POST", s.API+"/auth/refresh", map[string]string{"refreshToken": spent}).
		WantStatus(t, http.StatusForbidden))
	user := startLogin(t, p, s)
	acceptLogin(t, p, verifyLogin(t, p, s, user, k.values["recovery code 1"]))
	k.addTokens("after the replay", p)
	return k
}

// withSecondFactor enrols an authenticator, and signs in with it.
func withSecondFactor(t *testing.T, s *fixture.Service, p *fixture.Person, k *secrets) {
	t.Helper()
	app := enrolThroughAPI(t, s, p)
	raw, err := base32.StdEncoding.DecodeString(app.Secret(t))
	must.Succeed(t, err)
	k.add("TOTP secret", app.Secret(t))
	k.add("raw TOTP secret", string(raw))
	for i, code := range app.Recovery {
		k.add(fmt.Sprint("recovery code ", i), code)
		k.add(fmt.Sprint("recovery code without hyphens ", i), strings.ReplaceAll(code, "-", ""))
	}
	user := startLogin(t, p, s)
	k.recordRefusal(verifyLogin(t, p, s, user, "271828").WantStatus(t, http.StatusUnauthorized))
	code := app.Code(t, 1)
	k.codes = append(k.codes, "271828", code, app.Code(t, 0))
	acceptLogin(t, p, verifyLogin(t, p, s, user, code))
	k.addTokens("of the second factor", p)
}

// serviceLines returns the log without the lines in which otp-log, the courier for development,
// delivers codes.
func serviceLines(log string) []byte {
	var kept []byte
	for line := range strings.Lines(log) {
		if !strings.Contains(line, `"plugin":"otp-log"`) {
			kept = append(kept, line...)
		}
	}
	return kept
}

// readEveryColumn returns every column of every table: of PostgreSQL as text, bytes
// in hexadecimal; of SQLite the files.
func readEveryColumn(t *testing.T, e *fixture.Environment) []byte {
	t.Helper()
	if !e.Shared {
		return readFiles(t, filepath.Join(e.Dir, "data"))
	}
	db := e.OpenDatabase(t)
	db.SetMaxOpenConns(1) // the setting applies to the connection
	if _, err := db.ExecContext(t.Context(), "SET xmlbinary = hex"); err != nil {
		t.Fatal(err)
	}
	var text string
	must.Succeed(t, db.QueryRowContext(t.Context(), "SELECT database_to_xml(true, false, '')::text").Scan(&text))
	return []byte(text)
}

// readEveryKey returns all keys of the store with their values, of other tests too.
func readEveryKey(t *testing.T) []byte {
	t.Helper()
	client := connectToStore(t)
	var all bytes.Buffer
	for cursor := uint64(0); ; {
		page, err := client.Do(t.Context(), client.B().Scan().Cursor(cursor).Count(1000).Build()).AsScanEntry()
		must.Succeed(t, err)
		for _, key := range page.Elements {
			value, err := client.Do(t.Context(), client.B().Get().Key(key).Build()).ToString()
			if err != nil && !valkey.IsValkeyNil(err) {
				t.Fatalf("%s: %v", key, err)
			}
			fmt.Fprintf(&all, "%s %s\n", key, value)
		}
		if cursor = page.Cursor; cursor == 0 {
			return all.Bytes()
		}
	}
}

// readSessionCopy returns the copy of the person's session in the store. It lives for less than a
// second, so the session is used until the copy is read.
func readSessionCopy(t *testing.T, s *fixture.Service, p *fixture.Person) (copied []byte) {
	t.Helper()
	client := connectToStore(t)
	await.Until(t, "the store holds no copy of a session", func() bool {
		id, _ := fixture.ReadSession(t, s, p)
		value, err := client.Do(t.Context(), client.B().Get().Key("tollgate:session:"+id).Build()).AsBytes()
		copied = value
		return err == nil
	})
	return copied
}

// connectToStore returns a client of the counter store.
func connectToStore(t *testing.T) valkey.Client {
	t.Helper()
	_, address, found := strings.Cut(os.Getenv("TEST_VALKEY_URL"), "://")
	if !found {
		address = os.Getenv("TEST_VALKEY_URL")
	}
	client, err := valkey.NewClient(valkey.ClientOption{
		InitAddress: []string{strings.TrimSuffix(address, "/")}, DisableCache: true,
	})
	must.Succeed(t, err)
	t.Cleanup(client.Close)
	return client
}
