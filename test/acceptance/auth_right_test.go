package acceptance

import (
	"fmt"
	"net/http"
	"testing"
)

// crowd starts instances on one database and one store of counters, or one where there is no sharing.
func (e *environment) crowd(t *testing.T, n int, environ ...string) []*service {
	t.Helper()
	if !e.shared {
		n = 1
	}
	list := make([]*service, n)
	for i := range list {
		list[i] = e.start(t, environ...)
	}
	return list
}

// loginBody is the body of a person's login.
func (p *person) loginBody(word string) map[string]any {
	return map[string]any{"email": p.email, "password": word, "deviceInfo": p.device}
}

// failures counts the failed logins in a person's audit log.
func (p *person) failures(t *testing.T, s *service) (n int) {
	t.Helper()
	for _, entry := range p.log(t, s, "eventType=LOGIN_ATTEMPT&limit=1000").Logs {
		if !entry.Success {
			n++
		}
	}
	return n
}

// TestRightLoginsInParallel sends right passwords to all instances at once while one more wrong one would lock the account, and
// wants every one of them accepted and none counted or logged as a failure.
func TestRightLoginsInParallel(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		on := e.crowd(t, 4, append([]string{"AUTH_RATE_LIMIT=100000"}, unhurried...)...)
		p := e.newPerson(t, "ada@example.com")
		for round := range 6 {
			for range 4 {
				call(t, "POST", on[0].api+"/auth/login", p.loginBody("wrong")).want(t, http.StatusUnauthorized)
			}
			got := outcomes(t, together(t, 12, func(i int) (answer, error) {
				return try("POST", on[i%len(on)].api+"/auth/login", p.loginBody(password))
			}))
			if got["200"] != 12 {
				t.Errorf("round %d: 12 right passwords: %v", round, got)
			}
		}
		p.login(t, on[0])
		if n := p.failures(t, on[0]); n != 24 {
			t.Errorf("%d failed logins in the audit log, want the 24 wrong ones", n)
		}
	})
}

// TestRightAmongWrongInParallel mixes right passwords with fewer wrong ones than lock, and with more.
func TestRightAmongWrongInParallel(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		on := e.crowd(t, 3, "AUTH_RATE_LIMIT=100000")
		p := e.newPerson(t, "ada@example.com")
		mixed := func(wrong int) map[string]int {
			return outcomes(t, together(t, 20, func(i int) (answer, error) {
				word := password
				if i < wrong {
					word = "wrong"
				}
				return try("POST", on[i%len(on)].api+"/auth/login", p.loginBody(word))
			}))
		}
		for range 5 {
			if got := mixed(4); got["200"] != 16 || got["401 invalid_credentials"] != 4 {
				t.Errorf("4 wrong passwords of 20: %v", got)
			}
			p.login(t, on[0]) // resets the count
		}
		// A right one resets the count, so nobody knows how many of nineteen are looked at; but never five without a lock.
		if got := mixed(19); got["200"]+got["401 invalid_credentials"]+got["403 account_locked"] != 20 || got["200"] > 1 {
			t.Errorf("19 wrong passwords of 20: %v", got)
		}
		stranger := &person{email: "nobody@example.com", device: p.device}
		got := outcomes(t, together(t, 40, func(i int) (answer, error) {
			return try("POST", on[i%len(on)].api+"/auth/login", stranger.loginBody("wrong"))
		}))
		if got["401 invalid_credentials"] != 5 || got["403 account_locked"] != 35 {
			t.Errorf("40 wrong passwords of nobody: %v", got)
		}
	})
}

// TestRightCodesInParallel sends right codes at once, to all instances, wherever codes are asked for.
func TestRightCodesInParallel(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		on := e.crowd(t, 2, append([]string{"AUTH_RATE_LIMIT=100000", "LOCKOUT_THRESHOLD=2"}, unhurried...)...)
		p := e.newPerson(t, "ada@example.com")
		app := e.enrol(t, p)
		people := make([]*person, 8)
		user := ""
		for i := range people {
			people[i] = &person{email: p.email, device: map[string]string{"userAgent": fmt.Sprint("device ", i)}}
			user = people[i].half(t, on[0])
		}
		got := outcomes(t, together(t, len(people), func(i int) (answer, error) {
			return try("POST", on[i%len(on)].api+"/auth/mfa/verify",
				map[string]any{"userId": user, "mfaCode": app.recovery[i], "deviceInfo": people[i].device})
		}))
		if got["200"] != len(people) {
			t.Errorf("%d recovery codes on as many devices: %v", len(people), got)
		}

		p.half(t, on[0])
		p.take(t, p.verify(t, on[0], user, app.code(t, 1)))
		p.stepUp(t, e, on[0])
		all := func(path string, body map[string]string) map[string]int {
			return outcomes(t, together(t, 12, func(i int) (answer, error) {
				return try("POST", on[i%len(on)].api+path, body, p.bearer()...)
			}))
		}
		wantOne := func(what string, got map[string]int, others string) {
			t.Helper()
			if got["200"] != 1 || got[others] != 11 {
				t.Errorf("%s twelve times at once: %v, want one success and %s", what, got, others)
			}
		}
		code := map[string]string{"mfaCode": app.recovery[8]}
		wantOne("disable", all("/auth/mfa/disable", code), "409 conflict")
		var enrolled struct{ OTPAuthURI string }
		p.post(t, on[0], "/auth/mfa/enroll", nil).want(t, http.StatusOK).decode(t, &enrolled)
		app = &authenticator{key: readKey(t, enrolled.OTPAuthURI)}
		wantOne("activate", all("/auth/mfa/activate", map[string]string{"mfaCode": app.code(t, 0)}), "409 conflict")
		if n := p.failures(t, on[0]); n != 0 {
			t.Errorf("%d failed logins in the audit log, want none", n)
		}
	})
}

// TestPasswordChangesInParallel sends the right password at once to be changed: one change is made, and to the others the password
// is no longer right. None is told that anything is locked.
func TestPasswordChangesInParallel(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		on := e.crowd(t, 2, "AUTH_RATE_LIMIT=100000")
		p := e.newPerson(t, "ada@example.com")
		p.login(t, on[0])
		p.stepUp(t, e, on[0])
		present := password
		for round := range 5 {
			next := fmt.Sprint(password, round)
			got := outcomes(t, together(t, 6, func(i int) (answer, error) {
				return try("POST", on[i%len(on)].api+"/auth/password",
					map[string]string{"currentPassword": present, "newPassword": next}, p.bearer()...)
			}))
			if got["200"] != 1 || got["401 invalid_credentials"] != 5 {
				t.Errorf("round %d: six changes at once: %v, want one success and 401", round, got)
			}
			present = next
		}
	})
}

// TestHashesRenewedInParallel raises the cost of hashes and signs in everywhere at once.
func TestHashesRenewedInParallel(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		for round := range 5 {
			p := e.newPerson(t, fmt.Sprintf("ada%d@example.com", round))
			on := e.crowd(t, 2, "AUTH_RATE_LIMIT=100000", fmt.Sprint("ARGON2_ITERATIONS=", round+2))
			got := outcomes(t, together(t, 8, func(i int) (answer, error) {
				return try("POST", on[i%len(on)].api+"/auth/login", p.loginBody(password))
			}))
			if got["200"] != 8 {
				t.Errorf("round %d: eight right passwords: %v", round, got)
			}
		}
	})
}
