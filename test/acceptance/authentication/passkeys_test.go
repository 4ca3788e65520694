package authentication

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/apiclient"
	"github.com/tollgate-dev/tollgate/test/acceptance/internal/fixture"
	"github.com/tollgate-dev/tollgate/test/softkey"
)

// started is a ceremony that has begun, or a challenge.
type started struct {
	CeremonyID, ChallengeID string
	PublicKey               struct {
		Challenge string
		User      struct{ ID string }
	}
}

func decodeBytes(t *testing.T, text string) []byte {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestPasskeys registers a passkey, signs in and steps up with it, and removes it.
func TestPasskeys(t *testing.T) {
	fixture.InEachEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t, append([]string{"PUBLIC_URL=https://tollgate.example.com"}, fixture.RelaxedRiskSettings...)...)
		e.WantAuditEvents(t)
		ada := e.NewPerson(t, "ada@example.com")
		ada.Login(t, s)
		ada.StepUp(t, e, s)
		respond := func(b started) softkey.Response {
			return softkey.Response{
				Challenge: decodeBytes(t, b.PublicKey.Challenge), Party: "tollgate.example.com",
				Origin: "https://tollgate.example.com",
			}
		}
		k := softkey.New(softkey.ES256)
		k.Count = 1
		var b started
		ada.PostJSON(t, s, "/auth/passkeys/register/begin", nil).WantStatus(t, http.StatusOK).Decode(t, &b)
		if k.Handle = decodeBytes(t, b.PublicKey.User.ID); len(k.Handle) != 64 {
			t.Errorf("the handle has %d bytes", len(k.Handle))
		}
		finish := map[string]any{
			"ceremonyId": b.CeremonyID, "credential": json.RawMessage(k.Register(respond(b))), "name": "Laptop",
		}
		ada.PostJSON(t, s, "/auth/passkeys/register/finish", finish).WantStatus(t, http.StatusCreated)
		apiclient.WantAuthError(t, ada.PostJSON(t, s, "/auth/passkeys/register/finish", finish).WantStatus(t,
			http.StatusBadRequest), "validation_error")

		signIn := func(spoil func(*softkey.Response)) apiclient.Response {
			t.Helper()
			var b started
			apiclient.Call(t, "POST", s.API+"/auth/passkeys/sign-in/begin", map[string]any{
				"deviceInfo": map[string]string{"userAgent": "new"},
			}).WantStatus(t, http.StatusOK).Decode(t, &b)
			r := respond(b)
			spoil(&r)
			body := map[string]any{"ceremonyId": b.CeremonyID, "credential": json.RawMessage(k.Sign(r))}
			a := apiclient.Call(t, "POST", s.API+"/auth/passkeys/sign-in/finish", body)
			apiclient.WantAuthError(t, apiclient.Call(t, "POST", s.API+"/auth/passkeys/sign-in/finish", body).
				WantStatus(t, http.StatusUnauthorized), "invalid_credentials")
			return a
		}
		apiclient.WantAuthError(t, signIn(func(r *softkey.Response) { r.Origin += ".evil" }).WantStatus(t,
			http.StatusUnauthorized), "invalid_credentials")
		a := signIn(func(*softkey.Response) {}).WantStatus(t, http.StatusOK)
		if !strings.Contains(string(a.Body), `"trustLevel":"FULL_TRUST"`) || a.Header.Get("X-Device-Token") == "" {
			t.Errorf("the sign-in answers %s", a.Body)
		}

		ada.PostJSON(t, s, "/auth/step-up/initiate", map[string]string{"method": "PASSKEY"}).WantStatus(t,
			http.StatusOK).Decode(t, &b)
		ada.PostJSON(t, s, "/auth/step-up/verify", map[string]any{
			"challengeId": b.ChallengeID, "credential": json.RawMessage(k.Sign(respond(b))),
		}).WantStatus(t, http.StatusOK)

		k.Count = 1 // a copy
		apiclient.WantAuthError(t, signIn(func(*softkey.Response) {}).WantStatus(t, http.StatusUnauthorized),
			"invalid_credentials")
		k.Count = 100
		apiclient.WantAuthError(t, signIn(func(*softkey.Response) {}).WantStatus(t, http.StatusUnauthorized),
			"invalid_credentials")
		var list struct{ Passkeys []struct{ ID, Name string } }
		apiclient.Call(t, "GET", s.API+"/auth/passkeys", nil, ada.Bearer()...).WantStatus(t, http.StatusOK).Decode(t, &list)
		if len(list.Passkeys) != 1 || list.Passkeys[0].Name != "Laptop" {
			t.Fatalf("passkeys %+v", list.Passkeys)
		}
		path := s.API + "/auth/passkeys/" + list.Passkeys[0].ID
		apiclient.Call(t, "PATCH", path, map[string]string{"name": "Desk"}, ada.Bearer()...).WantStatus(t, http.StatusOK)
		apiclient.Call(t, "DELETE", path, nil, ada.Bearer()...).WantStatus(t, http.StatusNoContent)
		apiclient.Call(t, "DELETE", path, nil, ada.Bearer()...).WantStatus(t, http.StatusNotFound)
	})
}
