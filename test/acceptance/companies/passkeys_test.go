package companies

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/softkey"
)

// ceremony is a ceremony that has begun.
type ceremony struct {
	CeremonyID string
	PublicKey  struct {
		Challenge string
		User      struct{ ID string }
	}
}

// answer returns the response of an authenticator to a ceremony.
func (c ceremony) answer(t *testing.T, api string) softkey.Response {
	t.Helper()
	return softkey.Response{Challenge: decodeBase64(t, c.PublicKey.Challenge), Party: "localhost", Origin: api}
}

func decodeBase64(t *testing.T, text string) []byte {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(text)
	must.Succeed(t, err)
	return b
}

// TestPasskeyOfACompany checks over the wire that a passkey does not sign in who may not sign in at the
// company, or whom the company has not confirmed for longer than maxSession; and that it cannot be
// removed while nothing else leads in, neither a password that is not accepted nor an identity without
// its provider (contract K-1, K-9).
func TestPasskeyOfACompany(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e)
		bert, local := e.NewPerson(t, "bert@acme.example"), *s.Service
		local.API = strings.Replace(s.API, "127.0.0.1", "localhost", 1)
		bert.Login(t, s.Service)
		bert.StepUp(t, e, s.Service)
		var c ceremony
		bert.PostJSON(t, &local, "/auth/passkeys/register/begin", nil).WantStatus(t, 200).Decode(t, &c)
		key := softkey.New(softkey.ES256)
		key.Handle = decodeBase64(t, c.PublicKey.User.ID)
		var made struct{ ID string }
		bert.PostJSON(t, &local, "/auth/passkeys/register/finish", object{
			"ceremonyId": c.CeremonyID, "credential": json.RawMessage(key.Register(c.answer(t, local.API))), "name": "Laptop",
		}).WantStatus(t, 201).Decode(t, &made)
		signIn := func(what string, good bool) {
			t.Helper()
			apiclient.Call(t, "POST", local.API+"/auth/passkeys/sign-in/begin", object{"deviceInfo": object{}}).
				WantStatus(t, 200).Decode(t, &c)
			a := apiclient.Call(t, "POST", local.API+"/auth/passkeys/sign-in/finish",
				object{"ceremonyId": c.CeremonyID, "credential": json.RawMessage(key.Sign(c.answer(t, local.API)))})
			if good {
				if a.Status != 200 {
					t.Errorf("%s: status %d: %s", what, a.Status, a.Body)
				}
				return
			}
			if a.Status != 401 {
				t.Fatalf("%s: status %d: %s", what, a.Status, a.Body)
			}
			apiclient.WantAuthError(t, a, "invalid_credentials")
		}
		remove := func() apiclient.Response {
			t.Helper()
			return apiclient.Call(t, "DELETE", local.API+"/auth/passkeys/"+made.ID, nil, bert.Bearer()...)
		}
		signIn("without an identity", true)
		s.want(t, 200, "PUT", providers+"/acme?force=true", s.settings("enforce", true))
		signIn("of an enforced domain", true)
		apiclient.WantAuthError(t, remove().WantStatus(t, 409), "conflict")

		s.provider.SignIn("u1", "bert@acme.example", "groups", "staff")
		s.newBrowser(t).signIn().want(200)
		signIn("confirmed by the company", true)
		s.want(t, 200, "PUT", providers+"/acme?force=true", s.settings("enforce", true, "requiredGroups", []string{"staff"}))
		s.provider.SignIn("u1", "bert@acme.example")
		s.newBrowser(t).signIn().want(403)
		signIn("refused by the company", false)
		s.provider.SignIn("u1", "bert@acme.example", "groups", "staff")
		s.newBrowser(t).signIn().want(200)
		signIn("confirmed again", true)
		age(t, s, "company_identities", "confirmed_at", 12)
		signIn("not confirmed for maxSession", false)

		s.want(t, 204, "DELETE", providers+"/acme", nil)
		signIn("without the provider", true)
		remove().WantStatus(t, 204) // the password is accepted again
	})
}

// age moves a time in a table some hours into the past.
func age(t *testing.T, s *site, table, column string, hours int) {
	t.Helper()
	past := "(" + column + " - 3600000000 * ?)"
	if s.e.Shared {
		past = "(" + column + " - interval '1 hour' * $1)"
	}
	if _, err := s.database(t).ExecContext(t.Context(), "UPDATE "+table+" SET "+column+" = "+past, hours); err != nil {
		t.Fatal(err)
	}
}
