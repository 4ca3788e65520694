package authentication

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pquerna/otp"
	"github.com/pquerna/otp/totp"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// startLogin makes the first step of a login and returns the user id.
func startLogin(t *testing.T, p *fixture.Person, s *fixture.Service) string {
	t.Helper()
	a := apiclient.Call(t, "POST", s.API+"/auth/login", map[string]any{
		"email": p.Email, "password": fixture.Password, "deviceInfo": p.Device,
	},
		"X-Device-Token", p.DeviceToken).WantStatus(t, http.StatusOK)
	var got map[string]any
	a.Decode(t, &got)
	id, _ := got["userId"].(string)
	if len(got) != 3 || got["requiresMFA"] != true || id == "" || got["message"] == "" ||
		a.Header.Get("X-Device-Token") != "" || a.Header.Get("Set-Cookie") != "" {
		t.Fatalf("the first step answers %s, %v", a.Body, a.Header)
	}
	return id
}

// verifyLogin makes the second step.
func verifyLogin(t *testing.T, p *fixture.Person, s *fixture.Service, user, code string) apiclient.Response {
	t.Helper()
	return apiclient.Call(t, "POST", s.API+"/auth/mfa/verify", map[string]any{
		"userId": user, "mfaCode": code, "deviceInfo": p.Device,
	})
}

// acceptLogin stores the tokens of the response to the second step.
func acceptLogin(t *testing.T, p *fixture.Person, a apiclient.Response) {
	t.Helper()
	var got map[string]any
	a.WantStatus(t, http.StatusOK).Decode(t, &got)
	names := slices.Sorted(maps.Keys(got))
	if !slices.Equal(names, []string{"accessToken", "expiresIn", "refreshToken", "trustLevel"}) ||
		a.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("the second step answers %s", a.Body)
	}
	p.AccessToken, p.RefreshToken, p.TrustLevel = got["accessToken"].(string), got["refreshToken"].(string),
		got["trustLevel"].(string)
	p.DeviceToken = a.Header.Get("X-Device-Token")
	cookie, err := http.ParseSetCookie(a.Header.Get("Set-Cookie"))
	if err != nil || cookie.Value != p.DeviceToken || len(p.DeviceToken) != 43 {
		t.Errorf("device token %q, cookie %v, %v", p.DeviceToken, cookie, err)
	}
}

// TestMFA enrols an authenticator, signs in with it, and removes it again.
func TestMFA(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		// This test signs in and fails faster than people do.
		s := e.Start(t, fixture.RelaxedRiskSettings...)
		ada := e.NewPerson(t, "ada@example.com")
		ada.Login(t, s)
		apiclient.WantAuthError(t, ada.PostJSON(t, s, "/auth/mfa/enroll", nil).WantStatus(t, http.StatusForbidden),
			"insufficient_trust")
		ada.StepUp(t, e, s)
		apiclient.WantAuthError(t,
			ada.PostJSON(t, s, "/auth/step-up/initiate", map[string]string{"method": "AUTHENTICATOR_APP"}).WantStatus(t,
				http.StatusBadRequest), "validation_error")
		apiclient.WantAuthError(t,
			ada.PostJSON(t, s, "/auth/mfa/activate", map[string]string{"mfaCode": "123456"}).WantStatus(t,
				http.StatusConflict), "conflict")
		apiclient.WantAuthError(t,
			ada.PostJSON(t, s, "/auth/mfa/disable", map[string]string{"mfaCode": "123456"}).WantStatus(t,
				http.StatusConflict), "conflict")

		app := enrolThroughAPI(t, s, ada)
		apiclient.WantAuthError(t,
			ada.PostJSON(t, s, "/auth/mfa/enroll", nil).WantStatus(t, http.StatusConflict), "conflict")
		user := checkSecondStep(t, s, ada, app)
		stepUpWithApp(t, s, ada, app)

		other := &fixture.Person{Email: ada.Email, Device: map[string]string{"userAgent": "another", "language": "en"}}
		startLogin(t, other, s)
		acceptLogin(t, other, verifyLogin(t, other, s, user, strings.ToUpper(app.Recovery[0])))
		if other.TrustLevel != "LIMITED_TRUST" {
			t.Errorf("a new device confirmed by a second factor is at %s", other.TrustLevel)
		}
		startLogin(t, other, s)
		apiclient.WantAuthError(t,
			verifyLogin(t, other, s, user, app.Recovery[0]).WantStatus(t, http.StatusUnauthorized), "invalid_mfa")
		apiclient.WantAuthError(t,
			other.PostJSON(t, s, "/auth/mfa/disable", map[string]string{"mfaCode": app.Recovery[1]}).WantStatus(t,
				http.StatusForbidden), "insufficient_trust")
		other.StepUp(t, e, s)
		apiclient.WantAuthError(t,
			other.PostJSON(t, s, "/auth/mfa/disable", map[string]string{"mfaCode": app.Recovery[0]}).WantStatus(t,
				http.StatusUnauthorized), "invalid_mfa")
		other.PostJSON(t, s, "/auth/mfa/disable", map[string]string{"mfaCode": app.Recovery[1]}).WantStatus(t,
			http.StatusOK)
		other.Login(t, s)
	})
}

func enrolThroughAPI(t *testing.T, s *fixture.Service, p *fixture.Person) *fixture.Authenticator {
	t.Helper()
	var enrolled struct{ Secret, OTPAuthURI string }
	p.PostJSON(t, s, "/auth/mfa/enroll", nil).WantStatus(t, http.StatusOK).Decode(t, &enrolled)
	var again struct{ Secret string }
	p.PostJSON(t, s, "/auth/mfa/enroll", nil).WantStatus(t, http.StatusOK).Decode(t, &again)
	p.PostJSON(t, s, "/auth/mfa/enroll", map[string]any{}).WantStatus(t, http.StatusOK).Decode(t, &enrolled)
	apiclient.WantAuthError(t, p.PostJSON(t, s, "/auth/mfa/enroll", map[string]string{"currentPassword": ""}).
		WantStatus(t, http.StatusBadRequest), "invalid_input")
	checkQRCode(t, enrolled.OTPAuthURI, enrolled.Secret, p.Email)
	if again.Secret == enrolled.Secret {
		t.Error("enrolling again gives the same secret")
	}
	app := &fixture.Authenticator{URI: enrolled.OTPAuthURI}
	wrong := &fixture.Authenticator{
		URI: strings.ReplaceAll(enrolled.OTPAuthURI, enrolled.Secret, again.Secret),
	}
	apiclient.WantAuthError(t,
		p.PostJSON(t, s, "/auth/mfa/activate", map[string]string{"mfaCode": wrong.Code(t, 0)}).WantStatus(t,
			http.StatusUnauthorized), "invalid_mfa")
	apiclient.WantAuthError(t,
		p.PostJSON(t, s, "/auth/mfa/activate", map[string]any{"mfaCode": 123456}).WantStatus(t, http.StatusBadRequest),
		"invalid_input")
	var activated struct{ RecoveryCodes []string }
	p.PostJSON(t, s, "/auth/mfa/activate", map[string]string{"mfaCode": app.Code(t, 0)}).WantStatus(t, http.StatusOK).
		Decode(t, &activated)
	if app.Recovery = activated.RecoveryCodes; len(app.Recovery) != 10 {
		t.Fatalf("recovery codes %q", app.Recovery)
	}
	return app
}

// checkQRCode checks that another implementation of TOTP reads the content of a QR code, and shows the code of the
// fixture's.
func checkQRCode(t *testing.T, uri, secret, email string) {
	t.Helper()
	key, err := otp.NewKeyFromURL(uri)
	if err != nil {
		t.Fatalf("%s: %v", uri, err)
	}
	if key.Type() != "totp" || key.Period() != 30 || key.Digits() != otp.DigitsSix || key.Algorithm() != otp.AlgorithmSHA1 ||
		key.Issuer() != "Tollgate" || key.Secret() != secret || key.AccountName() != email {
		t.Errorf("an app reads %s as %s of %s for %s, every %d s, %d digits", uri, key.Type(), key.Issuer(),
			key.AccountName(), key.Period(), key.Digits())
	}
	at := time.Now()
	code, err := totp.GenerateCode(key.Secret(), at)
	ours := (&fixture.Authenticator{URI: uri}).Code(t, 0)
	if err != nil || code != ours && auth.TOTPStep(at) == auth.TOTPStep(time.Now()) {
		t.Errorf("an app shows %s, the fixture %s, error %v", code, ours, err)
	}
}

// checkSecondStep checks that every wrong answer is refused, with the same response for each.
func checkSecondStep(t *testing.T, s *fixture.Service, p *fixture.Person, app *fixture.Authenticator) (user string) {
	t.Helper()
	p.DeviceToken = ""
	user = startLogin(t, p, s)
	const nobody = "66666666-7777-4888-8999-aaaaaaaaaaaa"
	stranger := &fixture.Person{Device: map[string]string{"userAgent": "stranger"}}
	bodies := map[string]bool{}
	for _, a := range []apiclient.Response{
		verifyLogin(t, p, s, nobody, app.Code(t, 1)), verifyLogin(t, stranger, s, user, app.Code(t, 1)),
		verifyLogin(t, p, s, user, "nonsense"),
	} {
		apiclient.WantAuthError(t, a.WantStatus(t, http.StatusUnauthorized), "invalid_mfa")
		bodies[string(a.Body)] = true
	}
	if len(bodies) != 1 {
		t.Errorf("refusals differ: %v", bodies)
	}
	apiclient.WantAuthError(t, apiclient.Call(t, "POST", s.API+"/auth/mfa/verify", map[string]any{
		"userId": "ada", "mfaCode": "1", "deviceInfo": p.Device,
	}).WantStatus(t, http.StatusBadRequest), "validation_error")
	code := app.Code(t, 1) // of the same step for both
	acceptLogin(t, p, verifyLogin(t, p, s, user, code))
	apiclient.WantAuthError(t, verifyLogin(t, p, s, user, code).WantStatus(t, http.StatusUnauthorized), "invalid_mfa")
	if p.TrustLevel != "FULL_TRUST" {
		t.Errorf("after a code of the authenticator the trust level is %s", p.TrustLevel)
	}
	apiclient.Call(t, "POST", s.API+"/auth/refresh", map[string]string{"refreshToken": p.RefreshToken}).WantStatus(t,
		http.StatusOK)
	return user
}

// stepUpWithApp checks that a code that was used for a login cannot be used for a step-up.
func stepUpWithApp(t *testing.T, s *fixture.Service, p *fixture.Person, app *fixture.Authenticator) {
	t.Helper()
	var challenge struct{ ChallengeID, Method string }
	p.PostJSON(t, s, "/auth/step-up/initiate", map[string]string{"method": "AUTHENTICATOR_APP"}).WantStatus(t,
		http.StatusOK).Decode(t, &challenge)
	if challenge.Method != "AUTHENTICATOR_APP" {
		t.Errorf("challenge %+v", challenge)
	}
	apiclient.WantAuthError(t,
		apiclient.Call(t, "POST", s.API+"/auth/step-up/resend", map[string]string{
			"challengeId": challenge.ChallengeID,
		}).WantStatus(t, http.StatusBadRequest), "invalid_input")
	for _, used := range []string{app.Recovery[9], "000000"} {
		apiclient.WantAuthError(t,
			apiclient.Call(t, "POST", s.API+"/auth/step-up/verify", map[string]string{
				"challengeId": challenge.ChallengeID, "otp": used,
			}).
				WantStatus(t, http.StatusUnauthorized), "invalid_otp")
	}
	// The login used the code of the next step. The code of the present step is in the window, but
	// it is refused because it is not later.
	before := app.Code(t, 0)
	a := apiclient.Call(t, "POST", s.API+"/auth/step-up/verify", map[string]string{
		"challengeId": challenge.ChallengeID, "otp": before,
	})
	if a.Status == http.StatusOK {
		t.Errorf("a code of a step before the last one taken passes: %s", a.Body)
	}
	apiclient.WantAuthError(t,
		apiclient.Call(t, "POST", s.API+"/auth/step-up/verify", map[string]string{
			"challengeId": challenge.ChallengeID, "otp": before,
		}).
			WantStatus(t, http.StatusTooManyRequests), "rate_limit_exceeded")
}

// TestTrustThisBrowser marks devices as TRUSTED with the code of a second factor and of a step-up. A
// wrong code marks nothing.
func TestTrustThisBrowser(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		s := e.Start(t, fixture.RelaxedRiskSettings...)
		ada := e.NewPerson(t, "ada@example.com")
		ada.Login(t, s)
		wantMark := func(p *fixture.Person, mark string) {
			t.Helper()
			_, device := findDevice(t, s, p)
			if device != mark {
				t.Errorf("the device is %s, want %s", device, mark)
			}
		}
		var challenge struct{ ChallengeID string }
		ada.PostJSON(t, s, "/auth/step-up/initiate", map[string]string{"method": "EMAIL_OTP"}).WantStatus(t,
			http.StatusOK).Decode(t, &challenge)
		answer := map[string]any{"challengeId": challenge.ChallengeID, "otp": "nope", "trustDevice": true}
		apiclient.WantAuthError(t, apiclient.Call(t, "POST", s.API+"/auth/step-up/verify", answer).WantStatus(t,
			http.StatusUnauthorized), "invalid_otp")
		wantMark(ada, "PENDING")
		answer["trustDevice"] = "yes"
		apiclient.WantAuthError(t, apiclient.Call(t, "POST", s.API+"/auth/step-up/verify", answer).WantStatus(t,
			http.StatusBadRequest), "invalid_input")
		answer["otp"], answer["trustDevice"] = e.LastCode(t, ada.Email), true
		a := apiclient.Call(t, "POST", s.API+"/auth/step-up/verify", answer).WantStatus(t, http.StatusOK)
		wantMark(ada, "TRUSTED")
		ada.DeviceToken = a.Header.Get("X-Device-Token")
		if ada.Login(t, s); ada.TrustLevel != "FULL_TRUST" {
			t.Errorf("the next login is at %s", ada.TrustLevel)
		}

		bob := e.NewPerson(t, "bob@example.com")
		app := e.EnrolAuthenticator(t, bob)
		user := startLogin(t, bob, s)
		second := map[string]any{"userId": user, "mfaCode": app.Code(t, 1), "deviceInfo": bob.Device, "trustDevice": true}
		acceptLogin(t, bob, apiclient.Call(t, "POST", s.API+"/auth/mfa/verify", second))
		if wantMark(bob, "TRUSTED"); bob.TrustLevel != "FULL_TRUST" {
			t.Errorf("after the code the level is %s", bob.TrustLevel)
		}
	})
}

// findDevice returns the id and the mark of the only device of a person.
func findDevice(t *testing.T, s *fixture.Service, p *fixture.Person) (id, mark string) {
	t.Helper()
	var list struct {
		Devices []struct{ ID, TrustStatus string }
	}
	apiclient.Call(t, "GET", s.API+"/devices", nil, p.Bearer()...).WantStatus(t, http.StatusOK).Decode(t, &list)
	if len(list.Devices) != 1 {
		t.Fatalf("devices %+v", list.Devices)
	}
	return list.Devices[0].ID, list.Devices[0].TrustStatus
}

// startPair starts two instances, or one if the environment is not shared.
func startPair(t *testing.T, e *fixture.Environment) []*fixture.Service {
	t.Helper()
	list := []*fixture.Service{e.Start(t)}
	if e.Shared {
		list = append(list, e.Start(t))
	}
	return list
}

// verifyAll sends the codes at once, to all instances in turn, and returns the number of responses
// by outcome.
func verifyAll(t *testing.T, on []*fixture.Service, p *fixture.Person, user string, codes []string) map[string]int {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	got := map[string]int{}
	for i, code := range codes {
		all.Go(func() {
			a, err := apiclient.TryCall("POST", on[i%len(on)].API+"/auth/mfa/verify", map[string]any{
				"userId": user, "mfaCode": code, "deviceInfo": p.Device,
			})
			mu.Lock()
			defer mu.Unlock()
			var body struct{ Error string }
			if err != nil || json.Unmarshal(a.Body, &body) != nil {
				got["failed"]++
				return
			}
			got[fmt.Sprint(a.Status, " ", body.Error)]++
		})
	}
	all.Wait()
	return got
}

// TestMFAInParallel checks that each code is accepted once on all instances together, and that no
// more guesses are checked than the threshold allows.
func TestMFAInParallel(t *testing.T) {
	fixture.InBothEnvironments(t, func(t *testing.T, e *fixture.Environment) {
		on := startPair(t, e)
		p := e.NewPerson(t, "ada@example.com")
		app := e.EnrolAuthenticator(t, p)
		user := startLogin(t, p, on[0])
		got := verifyAll(t, on, p, user, slices.Repeat([]string{app.Code(t, 1)}, 10))
		if got["200 "] != 1 || got["401 invalid_mfa"] != 9 {
			t.Errorf("one code ten times: %v", got)
		}
		startLogin(t, p, on[0])
		got = verifyAll(t, on, p, user, slices.Repeat([]string{app.Recovery[0]}, 10))
		if got["200 "] != 1 || got["401 invalid_mfa"] != 9 {
			t.Errorf("one recovery code ten times: %v", got)
		}
		startLogin(t, p, on[0])
		acceptLogin(t, p, verifyLogin(t, p, on[0], user, app.Recovery[1])) // resets the count of failures
		startLogin(t, p, on[0])
		wrong := make([]string, 50)
		for i := range wrong {
			wrong[i] = fmt.Sprintf("nope%02d", i)
		}
		got = verifyAll(t, on, p, user, wrong)
		if got["401 invalid_mfa"] != 5 || got["403 account_locked"] != 45 {
			t.Errorf("50 wrong codes: %v, want five looked at", got)
		}
		apiclient.WantAuthError(t, verifyLogin(t, p, on[0], user, app.Recovery[2]).WantStatus(t, http.StatusForbidden),
			"account_locked")
		login := map[string]any{"email": p.Email, "password": fixture.Password, "deviceInfo": p.Device}
		apiclient.WantAuthError(t,
			apiclient.Call(t, "POST", on[0].API+"/auth/login", login, "X-Device-Token", p.DeviceToken).WantStatus(t,
				http.StatusForbidden), "account_locked")
		// a confirmed device has a separate count
		apiclient.Call(t, "POST", on[0].API+"/auth/login", login).WantStatus(t, http.StatusOK)
	})
}

// TestMFAOfOperators checks that an operator can remove an authenticator, and that the answer of a
// disabled person is refused.
func TestMFAOfOperators(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		s := e.Start(t)
		p := e.NewPerson(t, "ada@example.com")
		app := e.EnrolAuthenticator(t, p)
		if list := e.RunCommand(t, "", "user", "list"); !strings.Contains(list, "active") ||
			strings.Contains(list, app.Secret(t)) {
			t.Errorf("user list: %s", list)
		}
		user := startLogin(t, p, s)
		e.RunCommand(t, "", "user", "disable", "--email", p.Email)
		apiclient.WantAuthError(t, verifyLogin(t, p, s, user, app.Recovery[0]).WantStatus(t, http.StatusUnauthorized),
			"invalid_mfa")
		e.RunCommand(t, "", "user", "enable", "--email", p.Email)
		e.RunCommand(t, "", "user", "disable-mfa", "--email", p.Email)
		apiclient.WantAuthError(t, verifyLogin(t, p, s, user, app.Recovery[0]).WantStatus(t, http.StatusUnauthorized),
			"invalid_mfa")
		p.Login(t, s)
		shown := e.RunCommand(t, "", "user", "enrol-mfa", "--email", p.Email)
		if strings.Count(shown, "\n") != 2 ||
			!strings.Contains(shown, "otpauth://totp/Tollgate:ada%40example.com?secret=") {
			t.Errorf("enrol-mfa shows %s", shown)
		}
		p.Login(t, s) // an authenticator that is not active does not require a code
	})
}
