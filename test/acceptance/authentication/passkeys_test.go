package authentication

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
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
	must.Succeed(t, err)
	return b
}

// passkeyOwner is a person with a passkey at a service on localhost.
type passkeyOwner struct {
	*fixture.Person
	t *testing.T
	s *fixture.Service
}

// begin begins a registration.
func (o passkeyOwner) begin() (b started) {
	o.t.Helper()
	o.PostJSON(o.t, o.s, "/auth/passkeys/register/begin", nil).WantStatus(o.t, http.StatusOK).Decode(o.t, &b)
	return b
}

// finish ends a registration with a key.
func (o passkeyOwner) finish(b started, k *softkey.Key) apiclient.Response {
	o.t.Helper()
	k.Handle = decodeBytes(o.t, b.PublicKey.User.ID)
	answer := softkey.Response{
		Challenge: decodeBytes(o.t, b.PublicKey.Challenge), Party: "localhost", Origin: o.s.API,
	}
	return o.PostJSON(o.t, o.s, "/auth/passkeys/register/finish", map[string]any{
		"ceremonyId": b.CeremonyID, "credential": json.RawMessage(k.Register(answer)), "name": "Laptop",
	})
}

// TestPasskeyLimits checks the bounds of passkeys: a key is there once, and a person has at most 20;
// a credential has at most 16 KiB; and where the browser would use another host, there are none
// (contract K-1, K-4, K-7).
func TestPasskeyLimits(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t, fixture.RelaxedRiskSettings...)
		elsewhere := s.API // of 127.0.0.1
		s.API = strings.Replace(s.API, "127.0.0.1", "localhost", 1)
		o := passkeyOwner{e.NewPerson(t, "ada@example.com"), t, s}
		o.Login(t, s)
		o.StepUp(t, e, s)
		k := softkey.New(softkey.ES256)
		o.finish(o.begin(), k).WantStatus(t, http.StatusCreated)
		apiclient.WantAuthError(t, o.finish(o.begin(), k).WantStatus(t, http.StatusConflict), "conflict")
		begun := o.begin()
		for range 19 {
			o.finish(o.begin(), softkey.New(softkey.ES256)).WantStatus(t, http.StatusCreated)
		}
		apiclient.WantAuthError(t, o.finish(begun, softkey.New(softkey.ES256)).WantStatus(t, http.StatusConflict), "conflict")
		apiclient.WantAuthError(t, o.PostJSON(t, s, "/auth/passkeys/register/begin", nil).WantStatus(t, http.StatusConflict),
			"conflict")
		long := map[string]any{"ceremonyId": "x", "credential": map[string]string{"id": strings.Repeat("a", 16<<10)}}
		apiclient.Call(t, "POST", s.API+"/auth/passkeys/sign-in/finish", long).WantStatus(t, http.StatusUnauthorized)

		for path, method := range map[string]string{
			"register/finish": "POST", "sign-in/begin": "POST", "sign-in/finish": "POST", unknownID: "PATCH",
		} {
			for status, body := range map[int]string{
				http.StatusBadRequest: "{", http.StatusRequestEntityTooLarge: strings.Repeat(" ", 1<<20+1),
				http.StatusUnsupportedMediaType: "{}",
			} {
				header := o.Bearer()
				if status == http.StatusUnsupportedMediaType {
					header = append(header, "Content-Type", "text/plain")
				}
				apiclient.Call(t, method, s.API+"/auth/passkeys/"+path, body, header...).WantStatus(t, status)
			}
		}
		var challenge started
		o.PostJSON(t, s, "/auth/step-up/initiate", map[string]string{"method": "PASSKEY"}).WantStatus(t, http.StatusOK).
			Decode(t, &challenge)
		for path, body := range map[string]any{
			"passkeys/register/begin": nil, "passkeys/register/finish": long, "passkeys/sign-in/begin": long,
			"passkeys/sign-in/finish": long, "step-up/initiate": map[string]string{"method": "PASSKEY"},
			"step-up/verify": map[string]any{"challengeId": challenge.ChallengeID, "credential": map[string]any{}},
		} {
			a := apiclient.Call(t, "POST", elsewhere+"/auth/"+path, body, o.Bearer()...)
			if a.Status != http.StatusNotImplemented {
				t.Errorf("%s at 127.0.0.1 is %d: %s", path, a.Status, a.Body)
			}
		}
	})
}

// TestPasskeyOptions checks what a browser gets to call an authenticator (contract K-2).
func TestPasskeyOptions(t *testing.T) {
	e := fixture.NewEnvironment(t, "embedded")
	s := e.Start(t, fixture.RelaxedRiskSettings...)
	s.API = strings.Replace(s.API, "127.0.0.1", "localhost", 1)
	o := passkeyOwner{e.NewPerson(t, "ada@example.com"), t, s}
	o.Login(t, s)
	o.StepUp(t, e, s)
	read := func(path string, body any) (options map[string]any) {
		var begun struct{ PublicKey map[string]any }
		o.PostJSON(t, s, path, body).WantStatus(t, http.StatusOK).Decode(t, &begun)
		return begun.PublicKey
	}
	shown := func(v any) string {
		text, err := json.Marshal(v)
		must.Succeed(t, err)
		return string(text)
	}
	first := softkey.New(softkey.ES256)
	o.finish(o.begin(), first).WantStatus(t, http.StatusCreated)
	create, again := read("/auth/passkeys/register/begin", nil), read("/auth/passkeys/register/begin", nil)
	get := read("/auth/passkeys/sign-in/begin", map[string]any{"deviceInfo": map[string]any{}})
	for name, want := range map[string]string{
		"attestation": `"none"`, "timeout": "300000",
		"pubKeyCredParams": `[{"alg":-8,"type":"public-key"},{"alg":-7,"type":"public-key"},{"alg":-257,"type":"public-key"}]`,
	} {
		if got := shown(create[name]); got != want {
			t.Errorf("%s is %s", name, got)
		}
	}
	choice := create["authenticatorSelection"].(map[string]any)
	if choice["userVerification"] != "required" || choice["residentKey"] != "required" {
		t.Errorf("the choice of authenticators is %v", choice)
	}
	if len(create["excludeCredentials"].([]any)) != 1 || shown(create["user"]) != shown(again["user"]) {
		t.Errorf("the options are %v, and then %v", create, again)
	}
	if get["userVerification"] != "required" || shown(get["allowCredentials"]) != "[]" || get["timeout"] != 300000.0 {
		t.Errorf("the options of a sign-in are %v", get)
	}
	seen := map[string]bool{}
	for _, options := range []map[string]any{create, again, get} {
		challenge := options["challenge"].(string)
		if seen[challenge] || len(decodeBytes(t, challenge)) != 32 {
			t.Errorf("the challenge is %s", challenge)
		}
		seen[challenge] = true
	}
}

// TestPasskeys registers a passkey, signs in and steps up with it, and removes it.
func TestPasskeys(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
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
