package acceptance

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
)

// authenticator is a person's app, of another make than the service.
type authenticator struct {
	key      *otp.Key
	recovery []string
}

// readKey reads a QR code's content as an app does.
func readKey(t *testing.T, uri string) *otp.Key {
	t.Helper()
	key, err := otp.NewKeyFromURL(uri)
	if err != nil {
		t.Fatalf("%s: %v", uri, err)
	}
	if key.Type() != "totp" || key.Period() != 30 || key.Digits() != otp.DigitsSix || key.Algorithm() != otp.AlgorithmSHA1 || key.Issuer() != "Tollgate" {
		t.Errorf("an app reads %s as %s of %s, every %d s, %d digits", uri, key.Type(), key.Issuer(), key.Period(), key.Digits())
	}
	return key
}

// code returns the app's code of a number of steps from now. The present one and the next are good whatever time a test takes.
func (a *authenticator) code(t *testing.T, steps int) string {
	t.Helper()
	code, err := totp.GenerateCode(a.key.Secret(), time.Now().Add(time.Duration(steps)*30*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// enrol gives a person an active authenticator, as an operator does.
func (e *environment) enrol(t *testing.T, p *person) *authenticator {
	t.Helper()
	var enrolled struct{ Secret, OTPAuthURI string }
	decode(t, e.tollgate(t, "", "user", "enrol-mfa", "--email", p.email, "-o", "json"), &enrolled)
	a := &authenticator{key: readKey(t, enrolled.OTPAuthURI)}
	if a.key.Secret() != enrolled.Secret || a.key.AccountName() != p.email {
		t.Errorf("the app reads %s of %s, the secret is %s", a.key.Secret(), a.key.AccountName(), enrolled.Secret)
	}
	var activated struct{ RecoveryCodes []string }
	decode(t, e.tollgate(t, "", "user", "enrol-mfa", "--email", p.email, "-o", "json", "--activate", a.code(t, 0)), &activated)
	a.recovery = activated.RecoveryCodes
	return a
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}

// half makes the first step of a login and returns the user's id.
func (p *person) half(t *testing.T, s *service) string {
	t.Helper()
	a := call(t, "POST", s.api+"/auth/login", map[string]any{"email": p.email, "password": password, "deviceInfo": p.device},
		"X-Device-Token", p.deviceToken).want(t, http.StatusOK)
	var got map[string]any
	a.decode(t, &got)
	id, _ := got["userId"].(string)
	if len(got) != 3 || got["requiresMFA"] != true || id == "" || got["message"] == "" || a.header.Get("X-Device-Token") != "" || a.header.Get("Set-Cookie") != "" {
		t.Fatalf("the first step answers %s, %v", a.body, a.header)
	}
	return id
}

// verify makes the second step.
func (p *person) verify(t *testing.T, s *service, user, code string) answer {
	t.Helper()
	return call(t, "POST", s.api+"/auth/mfa/verify", map[string]any{"userId": user, "mfaCode": code, "deviceInfo": p.device})
}

// take keeps the session that an answer to the second step gives.
func (p *person) take(t *testing.T, a answer) {
	t.Helper()
	var got map[string]any
	a.want(t, http.StatusOK).decode(t, &got)
	names := slices.Sorted(maps.Keys(got))
	if !slices.Equal(names, []string{"accessToken", "expiresIn", "refreshToken", "trustLevel"}) || a.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("the second step answers %s", a.body)
	}
	p.accessToken, p.refreshToken, p.trustLevel = got["accessToken"].(string), got["refreshToken"].(string), got["trustLevel"].(string)
	p.deviceToken = a.header.Get("X-Device-Token")
	cookie, err := http.ParseSetCookie(a.header.Get("Set-Cookie"))
	if err != nil || cookie.Value != p.deviceToken || len(p.deviceToken) != 43 {
		t.Errorf("device token %q, cookie %v, %v", p.deviceToken, cookie, err)
	}
}

func (p *person) post(t *testing.T, s *service, path string, body any) answer {
	t.Helper()
	return call(t, "POST", s.api+path, body, p.bearer()...)
}

// TestMFA walks from a password alone to an authenticator, in and out with it, and back.
func TestMFA(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		// This test signs in and fails faster than people do.
		s := e.start(t, "RISK_VELOCITY_SESSIONS=1000", "RISK_FAILED_FEW=0", "RISK_FAILED_SOME=0", "RISK_FAILED_MANY=0")
		ada := e.newPerson(t, "ada@example.com")
		ada.login(t, s)
		wantCode(t, ada.post(t, s, "/auth/mfa/enroll", nil).want(t, http.StatusForbidden), "insufficient_trust")
		ada.stepUp(t, e, s)
		wantCode(t, ada.post(t, s, "/auth/step-up/initiate", map[string]string{"method": "AUTHENTICATOR_APP"}).want(t, http.StatusBadRequest), "validation_error")
		wantCode(t, ada.post(t, s, "/auth/mfa/activate", map[string]string{"mfaCode": "123456"}).want(t, http.StatusConflict), "conflict")
		wantCode(t, ada.post(t, s, "/auth/mfa/disable", map[string]string{"mfaCode": "123456"}).want(t, http.StatusConflict), "conflict")

		app := enrolOverTheWire(t, s, ada)
		wantCode(t, ada.post(t, s, "/auth/mfa/enroll", nil).want(t, http.StatusConflict), "conflict")
		user := secondStep(t, s, ada, app)
		stepUpWithTheApp(t, s, ada, app)

		other := &person{email: ada.email, device: map[string]string{"userAgent": "another", "language": "en"}}
		other.half(t, s)
		other.take(t, other.verify(t, s, user, strings.ToUpper(app.recovery[0])))
		if other.trustLevel != "LIMITED_TRUST" {
			t.Errorf("a new device confirmed by a second factor is at %s", other.trustLevel)
		}
		other.half(t, s)
		wantCode(t, other.verify(t, s, user, app.recovery[0]).want(t, http.StatusUnauthorized), "invalid_mfa")
		wantCode(t, other.post(t, s, "/auth/mfa/disable", map[string]string{"mfaCode": app.recovery[1]}).want(t, http.StatusForbidden), "insufficient_trust")
		other.stepUp(t, e, s)
		wantCode(t, other.post(t, s, "/auth/mfa/disable", map[string]string{"mfaCode": app.recovery[0]}).want(t, http.StatusUnauthorized), "invalid_mfa")
		other.post(t, s, "/auth/mfa/disable", map[string]string{"mfaCode": app.recovery[1]}).want(t, http.StatusOK)
		other.login(t, s)
		wantMFAEvents(t, s, other)
	})
}

func enrolOverTheWire(t *testing.T, s *service, p *person) *authenticator {
	t.Helper()
	var enrolled struct{ Secret, OTPAuthURI string }
	p.post(t, s, "/auth/mfa/enroll", nil).want(t, http.StatusOK).decode(t, &enrolled)
	var again struct{ Secret string }
	p.post(t, s, "/auth/mfa/enroll", nil).want(t, http.StatusOK).decode(t, &again)
	p.post(t, s, "/auth/mfa/enroll", map[string]any{}).want(t, http.StatusOK).decode(t, &enrolled)
	if again.Secret == enrolled.Secret {
		t.Error("enrolling again gives the same secret")
	}
	app := &authenticator{key: readKey(t, enrolled.OTPAuthURI)}
	wrong := &authenticator{key: readKey(t, strings.ReplaceAll(enrolled.OTPAuthURI, enrolled.Secret, again.Secret))}
	wantCode(t, p.post(t, s, "/auth/mfa/activate", map[string]string{"mfaCode": wrong.code(t, 0)}).want(t, http.StatusUnauthorized), "invalid_mfa")
	wantCode(t, p.post(t, s, "/auth/mfa/activate", map[string]any{"mfaCode": 123456}).want(t, http.StatusBadRequest), "invalid_input")
	var activated struct{ RecoveryCodes []string }
	p.post(t, s, "/auth/mfa/activate", map[string]string{"mfaCode": app.code(t, 0)}).want(t, http.StatusOK).decode(t, &activated)
	if app.recovery = activated.RecoveryCodes; len(app.recovery) != 10 {
		t.Fatalf("recovery codes %q", app.recovery)
	}
	return app
}

// secondStep refuses every answer but the right one, and tells nobody from another.
func secondStep(t *testing.T, s *service, p *person, app *authenticator) (user string) {
	t.Helper()
	p.deviceToken = ""
	user = p.half(t, s)
	const nobody = "66666666-7777-4888-8999-aaaaaaaaaaaa"
	stranger := &person{device: map[string]string{"userAgent": "stranger"}}
	bodies := map[string]bool{}
	for _, a := range []answer{
		p.verify(t, s, nobody, app.code(t, 1)), stranger.verify(t, s, user, app.code(t, 1)), p.verify(t, s, user, "nonsense"),
	} {
		wantCode(t, a.want(t, http.StatusUnauthorized), "invalid_mfa")
		bodies[string(a.body)] = true
	}
	if len(bodies) != 1 {
		t.Errorf("refusals differ: %v", bodies)
	}
	for _, c := range []struct {
		body any
		code string
	}{
		{map[string]any{"userId": "ada", "mfaCode": "1", "deviceInfo": p.device}, "validation_error"},
		{map[string]any{"userId": user, "deviceInfo": p.device}, "invalid_input"},
		{map[string]any{"userId": user, "mfaCode": "1"}, "invalid_input"},
		{map[string]any{"userId": user, "mfaCode": "\x00", "deviceInfo": p.device}, "invalid_input"},
	} {
		wantCode(t, call(t, "POST", s.api+"/auth/mfa/verify", c.body).want(t, http.StatusBadRequest), c.code)
	}
	p.take(t, p.verify(t, s, user, app.code(t, 1)))
	wantCode(t, p.verify(t, s, user, app.code(t, 1)).want(t, http.StatusUnauthorized), "invalid_mfa")
	if p.trustLevel != "LIMITED_TRUST" {
		t.Errorf("trust level is %s", p.trustLevel)
	}
	call(t, "POST", s.api+"/auth/refresh", map[string]string{"refreshToken": p.refreshToken}).want(t, http.StatusOK)
	return user
}

// stepUpWithTheApp wants codes that count at a login to be used up for a step-up.
func stepUpWithTheApp(t *testing.T, s *service, p *person, app *authenticator) {
	t.Helper()
	var challenge struct{ ChallengeID, Method string }
	p.post(t, s, "/auth/step-up/initiate", map[string]string{"method": "AUTHENTICATOR_APP"}).want(t, http.StatusOK).decode(t, &challenge)
	if challenge.Method != "AUTHENTICATOR_APP" {
		t.Errorf("challenge %+v", challenge)
	}
	wantCode(t, call(t, "POST", s.api+"/auth/step-up/resend", map[string]string{"challengeId": challenge.ChallengeID}).want(t, http.StatusBadRequest), "invalid_input")
	for _, used := range []string{app.recovery[9], "000000"} {
		wantCode(t, call(t, "POST", s.api+"/auth/step-up/verify", map[string]string{"challengeId": challenge.ChallengeID, "otp": used}).
			want(t, http.StatusUnauthorized), "invalid_otp")
	}
	// The login took the code of the next step, so that the present one, of the window though it is, is not later than it.
	before := app.code(t, 0)
	a := call(t, "POST", s.api+"/auth/step-up/verify", map[string]string{"challengeId": challenge.ChallengeID, "otp": before})
	if a.status == http.StatusOK {
		t.Errorf("a code of a step before the last one taken passes: %s", a.body)
	}
	wantCode(t, call(t, "POST", s.api+"/auth/step-up/verify", map[string]string{"challengeId": challenge.ChallengeID, "otp": before}).
		want(t, http.StatusTooManyRequests), "rate_limit_exceeded")
}

// wantMFAEvents wants what TestMFA did in the audit log.
func wantMFAEvents(t *testing.T, s *service, p *person) {
	t.Helper()
	var log struct {
		Logs []struct {
			EventType string
			Success   bool
			Details   map[string]any
		}
	}
	call(t, "GET", s.api+"/audit-logs?limit=1000", nil, p.bearer()...).want(t, http.StatusOK).decode(t, &log)
	got := map[string]int{}
	for _, entry := range log.Logs {
		switch d := entry.Details; {
		case entry.EventType == "CREDENTIAL_CHANGE":
			got[fmt.Sprint(d["action"])]++
		case d["mfaRequired"] == true:
			got["required"]++
		case d["step"] == "mfa":
			got[fmt.Sprintf("%t %v %v", entry.Success, d["factor"], d["reason"])]++
		case entry.EventType == "RISK_EVALUATION":
			got["scored"]++
		}
	}
	want := map[string]int{
		"mfa_enrol": 3, "mfa_activate": 1, "mfa_disable": 1, "required": 3, "true totp <nil>": 1, "true recovery_code <nil>": 1,
		"false <nil> invalid_mfa": 2, "scored": 4,
	}
	if !maps.Equal(got, want) {
		t.Errorf("the audit log tells %v, want %v", got, want)
	}
}

// instances starts one instance, or two where they can share their records.
func (e *environment) instances(t *testing.T) []*service {
	t.Helper()
	list := []*service{e.start(t)}
	if e.shared {
		list = append(list, e.start(t))
	}
	return list
}

// verifyAll sends answers at once, to all instances in turn, and counts what comes back.
func verifyAll(t *testing.T, on []*service, p *person, user string, codes []string) map[string]int {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	got := map[string]int{}
	for i, code := range codes {
		all.Go(func() {
			a, err := try("POST", on[i%len(on)].api+"/auth/mfa/verify", map[string]any{"userId": user, "mfaCode": code, "deviceInfo": p.device})
			mu.Lock()
			defer mu.Unlock()
			var body struct{ Error string }
			if err != nil || json.Unmarshal(a.body, &body) != nil {
				got["failed"]++
				return
			}
			got[fmt.Sprint(a.status, " ", body.Error)]++
		})
	}
	all.Wait()
	return got
}

// TestMFAInParallel wants each code to count once, on all instances together, and no more guesses looked at than the threshold.
func TestMFAInParallel(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		on := e.instances(t)
		p := e.newPerson(t, "ada@example.com")
		app := e.enrol(t, p)
		user := p.half(t, on[0])
		got := verifyAll(t, on, p, user, slices.Repeat([]string{app.code(t, 1)}, 10))
		if got["200 "] != 1 || got["401 invalid_mfa"] != 9 {
			t.Errorf("one code ten times: %v", got)
		}
		p.half(t, on[0])
		got = verifyAll(t, on, p, user, slices.Repeat([]string{app.recovery[0]}, 10))
		if got["200 "] != 1 || got["401 invalid_mfa"] != 9 {
			t.Errorf("one recovery code ten times: %v", got)
		}
		p.half(t, on[0])
		p.take(t, p.verify(t, on[0], user, app.recovery[1])) // resets the count of failures
		p.half(t, on[0])
		wrong := make([]string, 50)
		for i := range wrong {
			wrong[i] = fmt.Sprintf("nope%02d", i)
		}
		got = verifyAll(t, on, p, user, wrong)
		if got["401 invalid_mfa"] != 5 || got["403 account_locked"] != 45 {
			t.Errorf("50 wrong codes: %v, want five looked at", got)
		}
		wantCode(t, p.verify(t, on[0], user, app.recovery[2]).want(t, http.StatusForbidden), "account_locked")
		login := map[string]any{"email": p.email, "password": password, "deviceInfo": p.device}
		wantCode(t, call(t, "POST", on[0].api+"/auth/login", login, "X-Device-Token", p.deviceToken).want(t, http.StatusForbidden), "account_locked")
		call(t, "POST", on[0].api+"/auth/login", login).want(t, http.StatusOK) // a device that proves itself has a count of its own
	})
}

// TestMFAOfOperators wants an operator to take an authenticator away, and a disabled person's answer refused.
func TestMFAOfOperators(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		s := e.start(t)
		p := e.newPerson(t, "ada@example.com")
		app := e.enrol(t, p)
		if list := e.tollgate(t, "", "user", "list"); !strings.Contains(list, "active") || strings.Contains(list, app.key.Secret()) {
			t.Errorf("user list: %s", list)
		}
		user := p.half(t, s)
		e.tollgate(t, "", "user", "disable", "--email", p.email)
		wantCode(t, p.verify(t, s, user, app.recovery[0]).want(t, http.StatusUnauthorized), "invalid_mfa")
		e.tollgate(t, "", "user", "enable", "--email", p.email)
		e.tollgate(t, "", "user", "disable-mfa", "--email", p.email)
		wantCode(t, p.verify(t, s, user, app.recovery[0]).want(t, http.StatusUnauthorized), "invalid_mfa")
		p.login(t, s)
		shown := e.tollgate(t, "", "user", "enrol-mfa", "--email", p.email)
		if strings.Count(shown, "\n") != 2 || !strings.Contains(shown, "otpauth://totp/Tollgate:ada%40example.com?secret=") {
			t.Errorf("enrol-mfa shows %s", shown)
		}
		p.login(t, s) // one that is not active asks for nothing
	})
}
