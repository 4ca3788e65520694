package companies

import (
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/oidcissuer"
)

// TestOnlyWay checks that an identity stays that is the only way in: also if the password of the person
// is not accepted, or the provider of another identity is not there any more.
func TestOnlyWay(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e)
		s.linkOperator(t)
		identities := func() (all []string) {
			for _, i := range s.want(t, 200, "GET", "/auth/identities", nil)["identities"].([]any) {
				all = append(all, "/auth/identities/"+i.(object)["id"].(string))
			}
			return all
		}
		first := identities()[0]
		enforced := s.settings("domains", []string{"acme.example", "example.com"}, "enforce", true)
		s.want(t, 200, "PUT", providers+"/acme", enforced)
		s.wantCode(t, 409, "conflict", "DELETE", first, nil)

		acme, second := s.provider, s.second(t)
		b := s.newBrowser(t)
		acme.SignIn("u3", "olga@elsewhere.example")
		b.signIn().want(200)
		b.open("/console/step-up").post("/console/step-up/send", "step-up.method", "EMAIL_OTP")
		s.verify(t, b)
		b.link("second").want(200, "is linked")
		if got := identities(); len(got) != 2 {
			t.Fatalf("the identities are %v", got)
		}
		s.want(t, 204, "DELETE", providers+"/second", nil)
		s.wantCode(t, 409, "conflict", "DELETE", first, nil)
		s.want(t, 201, "PUT", providers+"/second", second)
		s.want(t, 204, "DELETE", first, nil)
		s.want(t, 200, "PUT", providers+"/acme", s.settings())
		s.want(t, 204, "DELETE", identities()[0], nil) // the password is accepted again
		acme.SignIn("u1", "ada@acme.example")
		s.want(t, 200, "PUT", providers+"/acme", s.settings("create", true))
		ada := s.newBrowser(t).signIn().want(200)
		if e.Shared {
			return
		}
		s.addPasskey(t, s.operator.Email)
		s.want(t, 200, "PUT", providers+"/acme", enforced) // by the passkey
		if !ada.isSignedIn() {
			t.Error("enforce has ended a session")
		}
	})
}

// second makes a provider that speaks for no domain, and returns its settings.
func (s *site) second(t *testing.T) object {
	t.Helper()
	other := oidcissuer.StartProvider(t)
	other.SignIn("o1", "olga@second.example")
	settings := s.settings("issuer", other.URL, "domains", []string{})
	s.want(t, 201, "PUT", providers+"/second", settings)
	return settings
}

// addPasskey adds a passkey to a person in the database, SQLite.
func (s *site) addPasskey(t *testing.T, email string) {
	t.Helper()
	if _, err := s.database(t).ExecContext(t.Context(), `INSERT INTO passkeys SELECT '5d0a31a1-5c52-4c4f-8f6b-0d2f2d3f6a01', id,
		x'00112233445566778899aabbccddeeff', x'00', 0, '', x'00', 0, 0, 'key', created_at, NULL, NULL
		FROM accounts WHERE email = ?`, email); err != nil {
		t.Fatal(err)
	}
}

// TestLockAndCompany checks that a lock after failures and company sign-ins do not touch each other,
// and that refused company sign-ins lock no one.
func TestLockAndCompany(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e, "LOCKOUT_THRESHOLD=5")
		e.NewPerson(t, "bert@acme.example")
		login := func(password string) int {
			return apiclient.Call(t, "POST", s.API+"/auth/login", object{
				"email": "bert@acme.example", "password": password, "deviceInfo": object{},
			}).Status
		}
		s.provider.SignIn("u1", "bert@acme.example")
		s.newBrowser(t).signIn().want(200)
		s.want(t, 200, "PUT", providers+"/acme", s.settings("requiredGroups", []string{"staff"}))
		for range 6 {
			s.newBrowser(t).signIn().want(403)
		}
		if got := login(fixture.Password); got != 200 {
			t.Fatalf("after refused company sign-ins a password has status %d", got)
		}
		s.want(t, 200, "PUT", providers+"/acme", s.settings())
		for range 4 {
			login("Wrong-Horse-9-Battery")
		}
		s.newBrowser(t).signIn().want(200)
		if got := login("Wrong-Horse-9-Battery"); got != 401 {
			t.Errorf("the fifth failure has status %d", got)
		}
		if got := login(fixture.Password); got != 403 {
			t.Errorf("a company sign-in has reset the failures: a password has status %d", got)
		}
		s.newBrowser(t).signIn().want(200)
		if got := login(fixture.Password); got != 403 {
			t.Errorf("a company sign-in has ended the lock: a password has status %d", got)
		}
	})
}
